/* The tables of the TensorBoard plugin. As run() of a report. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_TABLES_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_TABLES_H

#include "query/report.h"

report_run_fn tb_kernels, tb_operators, tb_modules, tb_memory, tb_overview, tb_steps, tb_devices;

#endif
