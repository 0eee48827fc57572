/* Within pyprof*.c: the ranges around launches, and what each of them says. */
#ifndef OPSCOPE_PREDECESSORS_PYPROF_CHAIN_H
#define OPSCOPE_PREDECESSORS_PYPROF_CHAIN_H

#include "base/intern.h"
#include "predecessors/pyprof/records.h"

/* What a range is to PyProf; first that fits, by its text. */
enum pyprof_range { PYPROF_IGNORED, PYPROF_MARKER, PYPROF_LAYER, PYPROF_TRACE, PYPROF_REPR, PYPROF_SEQUENCE, PYPROF_PLAIN };

/* By name, told once a string. */
struct pyprof_names {
	uint16_t *flags;     /* enum name_flag bits; 0 = not asked yet */
	uint32_t *op_id;     /* name -> id + 1 in `ops` */
	uint32_t *sane_id;   /* the same of the name without what says "backward" */
	uint32_t *marker_of_args; /* argument set -> string id of its "marker"; 0 = none */
	struct intern ops;
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

/* What follows from one chain. Buffers are kept between calls; release with pyprof_facts_release. */
struct pyprof_facts {
	struct pyprof_seq *seq; /* without repetitions. PyProf: sorted, pruned; default: in order, the middle left out */
	int64_t *id;         /* their numbers, ascending, without repetitions; without 0 if there is another, unless the least is below it */
	uint32_t *op;        /* ids in names->ops */
	uint32_t n_seq, n_ids, n_ops, cap_seq, cap_ids, cap_ops;
	unsigned seq_left_out, op_left_out;
	uint32_t mod0;       /* id in names->ops of the first module; that of "na" */
	uint32_t n_markers;  /* argument markers */
	bool backward;
	bool accumulate;     /* adds a gradient to a parameter's: of no one forward op */
};
/* PyProf marks torch.__getattr__ too, which as a module attribute runs the whole program inside: no op by the default rules. */
bool pyprof_is_import(const struct pyprof_records *r, uint32_t span);
/* `path` goes to the chain. Of lists of more than `most` the middle is left out. */
void pyprof_facts_of(const struct pyprof_records *r, struct pyprof_path *path, uint32_t chain, unsigned most, struct pyprof_facts *f);
void pyprof_facts_release(struct pyprof_facts *f);

/* What stays in seqId and what moves to altSeqId, each in order, given the number that stays. Room for n in both. */
void pyprof_split_ids(enum pyprof_record_rules rules, const int64_t *id, unsigned n, int64_t stays, int64_t *seq, unsigned *n_seq,
                      int64_t *alt, unsigned *n_alt);

/* Field `key` of a kernel from a .dict, as Python wrote it; {0} = not there. */
struct str pyprof_dict_field(const struct pyprof_records *r, uint32_t gpu, const char *key);

#endif
