/* Step time by role (the plugin's event_parser.py and overall_parser.py): every nanosecond of a step belongs
 * to the first role of the list that was active, on any thread of the profile or stream of a GPU. Needs PASS_STEPS.
 *
 * Algorithm: free := union of the steps. For roles in order: part := ranges of the role within free; free := free - part.
 * What is left is "Other". Per step each part is cut at the step's borders; the parts sum to the step's length.
 *
 * ROLES_DEFAULT: the order is kernel, memset, communication, memcpy, then the host's, so that Communication is what analysis/busy.h calls exposed. Each
 * GPU has its own device work and all have the host's ranges; figures are means over the GPUs, so that the work of one does not hide the idle
 * time of another. Where GPUs run collectives, ranges of collectives on the host but those of gloo, MPI and UCC only enqueue them: they are CPU Exec.
 *
 * ROLES_TB_PLUGIN differs in what the plugin did:
 *   - once `free` is empty before the last role, it starts again with the whole steps: later roles are counted twice
 *     (step 100, kernel 100, runtime 20, CPU 100: the parts sum to 200); memcpy stands before memset and communication;
 *   - the work of all GPUs is one union;
 *   - driver API calls are not known to it, device-side annotations count as CPU Exec;
 *   - a collective is one of the ten nccl:/gloo: names, and a kernel is communication only by such an op's external id. */
#ifndef OPSCOPE_ANALYSIS_ROLES_H
#define OPSCOPE_ANALYSIS_ROLES_H

#include "analysis/steps.h"
#include "store/profile.h"

enum role {
	ROLE_KERNEL, ROLE_MEMCPY, ROLE_MEMSET, ROLE_COMM, ROLE_RUNTIME, ROLE_DATALOADER, ROLE_CPU, ROLE_OTHER,
	ROLES,
};
/* "CPU Exec" as the plugin spells it, and the same as part of a column id: "cpu_exec". */
extern const char *const role_title[ROLES];
extern const char *const role_id[ROLES];
/* In which order roles are asked, the first that was active has the time: of the default rules and of the plugin's. */
extern const enum role roles_order[2][ROLES];

enum roles_rules { ROLES_DEFAULT, ROLES_TB_PLUGIN };

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
	struct role_gpu *gpu;     /* each GPU that worked, in order of ordinal; `sum` and `cost` are the means over these. ROLES_DEFAULT alone */
	unsigned gpus;
	struct role_costs *edge;  /* of steps->edge, which are in no sum */
	unsigned edges;           /* 0 when a range of steps was chosen, and by the plugin's rules */
	bool shown[ROLES];        /* device roles only with a device, communication only where there is some */
	bool has_device;
};

/* Over all steps, or those with numbers first..last. */
struct roles *roles_new(const struct profile *p, enum roles_rules rules, const int64_t *first, const int64_t *last);
void roles_free(struct roles *r);

/* Mean over the steps chosen, ns and percent of the mean step; 0 when there is none. */
double roles_mean_ns(const struct roles *r, enum role role);
double roles_mean_step_ns(const struct roles *r);
double roles_share_pct(const struct roles *r, enum role role);

#endif
