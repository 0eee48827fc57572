/* The tables of torch. As run() of a report; args->variant->rules is the struct torch_rules of a version. */
#ifndef OPSCOPE_PREDECESSORS_TORCH_REPORTS_H
#define OPSCOPE_PREDECESSORS_TORCH_REPORTS_H

#include "query/report.h"

report_run_fn torch_key_averages, torch_total_average, torch_module_flops;

#endif
