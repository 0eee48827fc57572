/* Within pyprof: the ranges around launches, and what each range says. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_CHAIN_H
#define OPSCOPE_PREDECESSORS_PYPROF_CHAIN_H

#include "base/intern.h"
#include "predecessors/pyprof/records.h"

/* What a range is to PyProf, by its text: the first kind that fits. */
enum pyprof_range { PYPROF_IGNORED, PYPROF_MARKER, PYPROF_LAYER, PYPROF_TRACE, PYPROF_REPR, PYPROF_SEQUENCE, PYPROF_PLAIN };

/* What names say; each name is looked at once. Arrays are by string id. */
struct pyprof_names {
	uint16_t *flags;     /* bits of enum name_flag; 0 = not looked at */
	uint32_t *op_id;     /* id in `ops` + 1; 0 = not looked at */
	uint32_t *sane_id;   /* the same of the name's forward op, "Mm" of "MmBackward" */
	uint32_t *short_id;  /* the same of the kernel's short name */
	uint32_t *marker_of_args; /* by argument set: string id of its "marker"; 0 = none */
	struct intern ops;   /* names of ops and modules */
};

enum name_flag {
	NAME_ASKED = 1, NAME_IGNORED = 2, NAME_LAYER = 4, NAME_TRACE = 8, NAME_REPR = 16,
	NAME_BACK = 32,       /* ends in "Backward", "backward", "Backward0": PyProf calls it backward */
	NAME_BACK_OP = 64,    /* ends in "Backward", "backward": PyProf looks the op up */
	NAME_AUTOGRAD = 128,  /* a range of autograd's backward pass, of any version */
	NAME_ACCUMULATE = 256, /* AccumulateGrad */
};

struct pyprof_names *pyprof_names_new(const struct profile *p);
void pyprof_names_free(struct pyprof_names *x);
unsigned pyprof_name_flags(const struct pyprof_records *r, uint32_t name);
enum pyprof_range pyprof_range_kind(const struct pyprof_records *r, uint32_t span);

/* Gives every kernel its chain: r->chain by r->gpu; fills r->node. */
void pyprof_chains(struct pyprof_records *r);

/* A sequence marker. */
struct pyprof_seq {
	uint32_t name;
	int64_t seq;
};

struct pyprof_path;

/* What the ranges around a launch say. Buffers are kept between calls; release with pyprof_facts_release. */
struct pyprof_facts {
	struct pyprof_seq *seq; /* each once. By PyProf's rules sorted and pruned; by the default rules outermost first */
	int64_t *id;         /* numbers of `seq`, ascending, each once. 0 is left out if it is the least of several */
	uint32_t *op;        /* ids in names->ops */
	uint32_t n_seq, n_ids, n_ops, cap_seq, cap_ids, cap_ops;
	unsigned seq_left_out, op_left_out; /* how many more there are, in the middle */
	uint32_t mod0;       /* id in names->ops of the first marker's module; without markers that of "na" */
	uint32_t n_markers;  /* argument markers */
	bool backward;
	bool accumulate;     /* AccumulateGrad: adds to the gradient of a parameter, and belongs to no single forward op */
};
/* Whether a range is PyProf's marker of torch.__getattr__. Such a call may run the whole program inside; by the default rules it is no op. */
bool pyprof_is_import(const struct pyprof_records *r, uint32_t span);
/* Fills *f with what the ranges from the outermost to node `chain` say; *path goes there. Of lists with more than `most` >= 2 entries, the middle is left out. */
void pyprof_facts_of(const struct pyprof_records *r, struct pyprof_path *path, uint32_t chain, unsigned most, struct pyprof_facts *f);
void pyprof_facts_release(struct pyprof_facts *f);

/* Divides sequence numbers into those that stay in seqId (`stays`, if it is among them) and those that move to altSeqId, each in order. seq[n], alt[n]. */
void pyprof_split_ids(enum pyprof_record_rules rules, const int64_t *id, unsigned n, int64_t stays, int64_t *seq, unsigned *n_seq,
                      int64_t *alt, unsigned *n_alt);

/* Field `key` of a kernel from a .dict, as Python wrote it; {0} = not there. */
struct str pyprof_dict_field(const struct pyprof_records *r, uint32_t gpu, const char *key);

#endif
