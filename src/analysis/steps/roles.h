/* Step time by role: every nanosecond of a step belongs
 * to the first role of the list that was active, on any thread of the profile or stream of a GPU. Needs PASS_STEPS.
 *
 * Algorithm: free := union of the steps. For roles in order: part := ranges of the role within free; free := free - part.
 * What is left is "Other". Per step each part is cut at the step's borders; the parts sum to the step's length.
 *
 * The order is kernel, memset, communication, memcpy, then the host's, so that Communication is what analysis/time/busy.h calls exposed. Each
 * GPU has its own device work and all have the host's ranges; figures are means over the GPUs, so that the work of one does not hide the idle
 * time of another. Where GPUs run collectives, ranges of collectives on the host but those of gloo, MPI and UCC only enqueue them: they are CPU Exec.
 *
 * struct roles_rules say what is otherwise where numbers of another tool are asked for. */
#ifndef OPSCOPE_ANALYSIS_STEPS_ROLES_H
#define OPSCOPE_ANALYSIS_STEPS_ROLES_H

#include "analysis/steps/steps.h"
#include "analysis/time/interval.h"
#include "store/profile.h"

enum role {
	ROLE_KERNEL, ROLE_MEMCPY, ROLE_MEMSET, ROLE_COMM, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_OTHER,
	ROLES,
};
/* "CPU Exec", and the same as part of a column id: "cpu_exec". */
extern const char *const role_title[ROLES];
extern const char *const role_id[ROLES];
/* When each role was active. */
struct role_ranges {
	struct intervals host[ROLES];
	struct intervals (*device)[ROLES]; /* of each view */
	uint32_t views;                    /* 1, or one of each GPU */
	int32_t *gpu;                      /* their ordinals; none where a view is of all */
	uint32_t gpus;
};
/* The views of n GPUs; with n = 0 one of all. Once. */
void role_ranges_add_gpus(struct role_ranges *r, const int32_t *device, uint32_t n);
/* Once all ranges are there: each set sorted, and disjoint. */
void role_ranges_normalise(struct role_ranges *r);
void role_ranges_release(struct role_ranges *r);

struct roles_rules {
	enum role order[ROLES];  /* the first that was active has the time */
	bool edges;              /* what is no whole step is shared out, too */
	bool again;              /* where no time is left before the last role, the rest begin anew with the whole steps, and are counted twice: of a step of 100,
	                          * kernel 100, runtime 20, CPU 100 have 100, 20 and 80 */
	void (*collect)(const struct profile *p, const struct steps *steps, struct role_ranges *out); /* ranges in any order */
};
extern const struct roles_rules roles_own;

struct role_costs {
	int64_t ns[ROLES];
	int64_t total_ns;       /* length of the step */
};

/* The same of one GPU, over the steps chosen. */
struct role_gpu {
	int32_t device;          /* ordinal; INT32_MIN = not known */
	struct role_costs sum;
};

struct roles {
	const struct step **step; /* the steps chosen, borrowed from the profile */
	struct role_costs *cost;  /* of each */
	unsigned n;
	struct role_costs sum;    /* over the steps chosen */
	struct role_gpu *gpu;     /* each GPU that worked, in order of ordinal; `sum` and `cost` are the means over these */
	unsigned gpus;
	struct role_costs *edge;  /* of steps->edge, which are in no sum */
	unsigned edges;           /* 0 when a range of steps was chosen */
	bool shown[ROLES];        /* device roles only with a device, communication only where there is some */
	bool has_device;
	bool is_kept;             /* store/reuse.h */
};

/* Over all that count of `steps`, or those with numbers first..last. */
struct roles *roles_new(const struct profile *p, const struct steps *steps, const struct roles_rules *rules, const int64_t *first, const int64_t *last);
void roles_free(struct roles *r);

/* Mean over the steps chosen, ns and percent of the mean step; 0 when there is none. */
double roles_mean_ns(const struct roles *r, enum role role);
double roles_mean_step_ns(const struct roles *r);
double roles_share_pct(const struct roles *r, enum role role);

#endif
