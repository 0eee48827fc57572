/* The tables of the TensorBoard plugin. As run() of a report. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_TABLES_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_TABLES_H

#include "query/report.h"
#include "query/window.h"

report_run_fn tb_kernels, tb_operators, tb_modules, tb_memory, tb_overview, tb_steps, tb_devices;

/* The first table of tb_memory for another window: calls that reach into it, events that lie in it. Needs what `memory` needs. */
int tb_memory_statistics(const struct profile *p, const struct report_args *args, const struct window *w, struct table *out, struct err *e);

#endif
