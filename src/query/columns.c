#include "query/columns.h"

#include <string.h>

static const struct report_column columns[] = {
#define REPORT_COLUMN(report, section, id, title, type, unit, when, help) \
	{report, section, when, {id, title, help, CELL_##type, UNIT_##unit}},
#include "query/columns.def"
};

enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

const struct report_column *report_columns(const char *report, unsigned *n)
{
	unsigned first = 0, end;
	while (first < N_COLUMNS && strcmp(columns[first].report, report) != 0)
		first++;
	for (end = first; end < N_COLUMNS && strcmp(columns[end].report, report) == 0;)
		end++;
	*n = end - first;
	return columns + first;
}

const struct report_column *report_column_find(const char *report, const char *section, struct str id)
{
	unsigned n;
	const struct report_column *c = report_columns(report, &n);
	for (unsigned i = 0; i < n; i++)
		if (str_eqc(id, c[i].c.id) && (section ? c[i].section && strcmp(c[i].section, section) == 0 : !c[i].section))
			return &c[i];
	return NULL;
}
