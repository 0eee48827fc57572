/* What passes do otherwise for the plugin's numbers. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_RULES_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_RULES_H

#include "analysis/steps/roles.h"
#include "analysis/time/gpu_metrics.h"
#include "analysis/tree/modules.h"
#include "query/window.h"

extern const struct optree_rules tb_optree;
extern const struct module_rules tb_module_rules;
extern const struct roles_rules tb_roles;
extern const struct gpu_metrics_rules tb_gpu_metrics;

/* The ops that are collectives, five of NCCL and then as many of Gloo. */
enum { TB_COMMS = 10, TB_COMMS_OF_NCCL = 5 };
extern const char *const tb_comm_name[TB_COMMS];
/* Which of them has this name; TB_COMMS = none. */
unsigned tb_comm_of(struct str name);
/* An external id that was not recorded is 0. */
static inline int64_t tb_ext_id(int64_t id) { return id == ID_NONE ? 0 : id; }

/* The steps that the plugin knows: ProfilerStep alone. The last is left out with less than 0.8 times the device events of the step before, which
 * also leaves out a whole step that is shorter than the others (the last of a gradient accumulation). *a holds them. */
const struct steps *tb_steps_of(const struct profile *p, struct arena *a);

/* window_of with these steps, which *a, an empty one, holds as long as the window is used. With an error *a is empty. */
int tb_window(const struct profile *p, const struct report_args *args, struct arena *a, struct window *w, struct err *e);

#endif
