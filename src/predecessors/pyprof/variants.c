/* The report `pyprof` as PyProf and as PyProf2 print it. */
#include "predecessors/pyprof/records.h"
#include "query/predecessor.h"

static const enum pyprof_record_rules pyprof_rules = PYPROF_RECORDS_3, pyprof2_rules = PYPROF_RECORDS_2;

static const struct report_variant pyprof_variants[] = {
	{.report = "pyprof", .compat = "pyprof", .rules = &pyprof_rules},
	{.report = "pyprof", .compat = "pyprof2", .rules = &pyprof2_rules},
	{0},
};

const struct predecessor predecessor_pyprof = {.variants = pyprof_variants};
