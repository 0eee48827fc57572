/* The plugin's steps and devices, shared by its overview and by the reports on these. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_STEPS_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_STEPS_H

#include "predecessors/tb_plugin/rules.h"

/* Adds columns, rows and notes to an empty table. */
void tb_step_table(const struct roles *r, const struct steps *s, struct table *t);
/* The devices that ran kernels. */
void tb_device_table(const struct profile *p, const struct steps *s, const struct report_args *args, struct table *t);

#endif
