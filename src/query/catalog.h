/* Every table that the reports can give, under names that SQL can use: "gpu_timeline" for the report gpu-timeline,
 * "operators_by_stack" for a grouping other than the default, "memory_curve" for a section. */
#ifndef OPSCOPE_QUERY_CATALOG_H
#define OPSCOPE_QUERY_CATALOG_H

#include "query/report.h"

struct catalog_entry {
	const struct report *report;
	const char *group_by;   /* NULL = the default */
	const char *name;
};

struct catalog {
	struct catalog_entry *v;
	unsigned n, cap;
	struct arena arena;     /* owns the names */
};

void catalog_init(struct catalog *c);
void catalog_release(struct catalog *c);

/* "PREFIX_NAME" or, when `section` is not NULL, "PREFIX_NAME_SECTION"; without "PREFIX_" when prefix is NULL. In *a. */
const char *catalog_name(struct arena *a, const char *prefix, const char *name, const char *section);

#endif
