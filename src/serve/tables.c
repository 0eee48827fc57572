#include "serve/tables.h"

#include "render/render.h"

const char *const table_formats[] = {"json", "csv", NULL};

int table_choice(const struct request *r, struct report_args *a, struct err *e)
{
	struct str steps = request_value(r, "steps");
	*a = (struct report_args){.group_by = request_value(r, "group_by").p, .compat = request_value(r, "compat").p,
	                          .key_op = request_value(r, "key_op").p, .device = request_value(r, "device").p};
	struct str per = request_value(r, "per");
	a->per = str_eqc(per, "step") ? REPORT_PER_STEP : str_eqc(per, "call") ? REPORT_PER_CALL : REPORT_PER_TOTAL;
	if (request_number(r, "aggregation", 1, INT64_MAX, 0, &a->aggregation, e) < 0)
		return -1;
	return steps.p ? report_args_population(a, steps, e) : 0;
}

/* Leaves out the first rows: cells of all columns move down. */
static void skip_rows(struct table *t, size_t n)
{
	n = n < t->n_rows ? n : t->n_rows;
	if (!n)
		return;
	for (unsigned c = 0; c < t->n_columns; c++) {
		struct column_data *d = &t->data[c];
		memmove(d->cell, d->cell + n, (t->n_rows - n) * sizeof *d->cell);
		memmove(d->set, d->set + n, (t->n_rows - n) * sizeof *d->set);
	}
	t->n_rows -= n;
}

static int serve_tables_shape(const struct request *r, struct table *t, struct err *e)
{
	struct str sort = request_value(r, "sort"), filter = request_value(r, "filter"), columns = request_value(r, "columns");
	bool descending = sort.n && sort.p[0] == '-';
	int64_t limit, offset;
	if (request_number(r, "limit", 0, UINT32_MAX, 0, &limit, e) < 0 || request_number(r, "offset", 0, UINT32_MAX, 0, &offset, e) < 0)
		return -1;
	if (filter.n)
		table_filter(t, filter);
	if (sort.n && table_sort(t, (struct str){sort.p + descending, sort.n - descending}, descending, e) < 0)
		return err_prefix(e, "sort");
	size_t found = t->n_rows;
	skip_rows(t, (size_t)offset);
	table_limit(t, (size_t)limit);
	if (t->n_rows < found && !t->hidden_rows)
		t->hidden_rows = found - t->n_rows;
	return columns.n && table_select(t, columns, e) < 0 ? err_prefix(e, "columns") : 0;
}

/* "RUN_WORKER_report.csv": plain characters alone, since it stands in a header. */
static const char *file_name(const struct request *r, const char *table)
{
	char *name = arena_bytes(r->arena, 200);
	size_t n = 0;
	struct str parts[] = {r->entry ? r->entry->worker : STR("opscope"), STR("_"), str_from(table)};
	for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
		for (size_t k = 0; k < parts[i].n && n < 190; k++) {
			char c = parts[i].p[k];
			bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
			name[n++] = plain ? c : '_';
		}
	memcpy(name + n, ".csv", 5);
	return name;
}

int table_answer(const struct request *r, struct table *t, struct response *out, struct err *e)
{
	struct str section = request_value(r, "section");
	bool csv = str_eqc(request_value(r, "format"), "csv");
	struct table *chosen = t;
	while (section.n && chosen && !str_eqc(section, chosen->name))
		chosen = chosen->next;
	if (!chosen)
		return err_set(e, ERR_USAGE, "section=" STR_FMT ": no such table", STR_ARG(section));
	if (serve_tables_shape(r, chosen, e) < 0)
		return -1;
	struct render_options o = {.input = r->entry ? r->entry->path.p : "", .section = csv && section.n ? section.p : NULL};
	if (csv) {
		out->type = "text/csv; charset=utf-8";
		out->file_name = file_name(r, chosen->name);
	}
	return renderer_find(csv ? STR("csv") : STR("json"))->render(t, &o, &out->body, e);
}
