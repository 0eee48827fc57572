#include "open/job_list.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

static int job_list_by_rank(const void *a, const void *b)
{
	const struct trace_file *x = a, *y = b;
	return COMPARE(x->rank, y->rank) ?: str_cmp_natural(x->path, y->path);
}

bool job_list_is(struct trace_list *l)
{
	struct trace_file *v = NEW_ARRAY(l->n, struct trace_file);
	bool is = l->n > 1, differs = false;
	for (unsigned i = 0; i < l->n && is; i++) {
		if (l->v[i].found && discover_is_empty(l->v[i].path.p)) {
			discover_drop_empty(l, i--);
			continue;
		}
		v[i] = l->v[i];
		is = discover_rank_for_certain(&l->v[i], &v[i].rank) && str_eq(l->v[i].run, l->v[0].run);
	}
	if (is)
		qsort(v, l->n, sizeof *v, job_list_by_rank);
	for (unsigned i = 1; i < l->n && is; i++) {
		bool again = v[i].rank == v[i - 1].rank;
		differs |= !again;
		is = !again || str_eq(v[i].span, v[i - 1].span); /* spans of one rank follow each other */
	}
	for (unsigned i = 0; i < l->n && is && differs; i++)
		l->v[i] = v[i];
	mem_free(v);
	return is && differs;
}

void job_list_warn(const struct trace_list *l, struct table *t)
{
	for (unsigned i = 0; i < l->n_odd; i++)
		if (!ANY_WHERE(k, 0, l->n, l->v[k].rank == l->odd[i].rank))
			table_warn(t, STR_FMT " is left out: the file cannot be read, or is no recording", STR_ARG(l->odd[i].path));
	for (unsigned i = 0; i < l->n_empty; i++)
		table_warn(t, STR_FMT " is left out: the file is empty", STR_ARG(l->empty[i]));
}
