/* The tables of TraceLens. As run() of a report. */
#ifndef OPSCOPE_PREDECESSORS_TRACELENS_TABLES_H
#define OPSCOPE_PREDECESSORS_TRACELENS_TABLES_H

#include "query/report.h"

report_run_fn tracelens_gpu_timeline, tracelens_costs;

#endif
