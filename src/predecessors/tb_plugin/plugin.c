#include "predecessors/tb_plugin/plugin.h"

#include "render/number.h"

const char *const plugin_view_name[PLUGIN_VIEWS] = {"Overview", "Operator", "Kernel", "Trace", "Distributed", "Memory", "Module", "Lightning"};

int plugin_report(const struct request *r, const char *report, const char *group_by, const char *device, struct table *out, struct err *e)
{
	struct report_args a = {.compat = "tb-plugin", .group_by = group_by, .device = device};
	return report_run(report_find(str_from(report)), r->entry->profile, &a, out, e);
}

bool plugin_grouped(const struct request *r, const char *value)
{
	return str_eqc(request_value(r, "group_by"), value);
}

const struct table *plugin_section(const struct table *t, const char *name)
{
	static const struct table none;
	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	return t ? t : &none;
}

void plugin_put_cell(struct buf *b, const struct table *t, size_t row, int col)
{
	if (col < 0 || table_is_null(t, row, (unsigned)col)) {
		buf_cstr(b, "null");
		return;
	}
	switch (t->data[col].col.type) {
	case CELL_STR:
		json_put_string(b, table_str(t, row, (unsigned)col));
		return;
	case CELL_I64:
		buf_i64(b, table_i64(t, row, (unsigned)col));
		return;
	case CELL_F64:
		number_shortest(b, table_f64(t, row, (unsigned)col));
		return;
	case CELL_BOOL:
		buf_cstr(b, table_i64(t, row, (unsigned)col) ? "true" : "false");
		return;
	}
}

void plugin_put_member(struct buf *b, const char *name, const struct table *t, size_t row, const char *column)
{
	json_put_string(b, str_from(name));
	buf_char(b, ':');
	plugin_put_cell(b, t, row, table_find_column(t, str_from(column)));
}

void plugin_put_column(struct buf *b, const struct column *c, bool help)
{
	buf_printf(b, "{\"type\":\"%s\",", c->type == CELL_STR ? "string" : "number");
	json_put_text(b, "name", str_from(c->title));
	if (help && c->help) {
		buf_char(b, ',');
		json_put_text(b, "tooltip", str_from(c->help));
	}
	buf_char(b, '}');
}

int plugin_put_pie(struct buf *b, const char *title, struct table *t, const char *column, struct err *e)
{
	int name = table_find_column(t, STR("name")), value = table_find_column(t, str_from(column));
	bool any = false;
	if (value >= 0 && table_sort(t, str_from(column), true, e) < 0)
		return -1;
	buf_char(b, '{');
	if (title) {
		json_put_text(b, "title", str_from(title));
		buf_char(b, ',');
	}
	buf_cstr(b, "\"columns\":[{\"type\":\"string\",\"name\":\"name\"},{\"type\":\"number\",\"name\":\"value\"}],\"rows\":[");
	for (size_t i = 0; value >= 0 && i < t->n_rows; i++) {
		if (table_is_null(t, i, (unsigned)value) || table_f64(t, i, (unsigned)value) <= 0)
			continue;
		buf_cstr(b, any ? ",[" : "[");
		any = true;
		plugin_put_cell(b, t, i, name);
		buf_char(b, ',');
		plugin_put_cell(b, t, i, value);
		buf_char(b, ']');
	}
	buf_cstr(b, "]}");
	return 0;
}

void plugin_put_table(struct buf *b, const struct table *t)
{
	buf_cstr(b, "{\"columns\":[");
	for (unsigned c = 0; c < t->n_columns; c++) {
		buf_cstr(b, c ? "," : "");
		/* The plugin explained what is no time and no count. */
		const struct column *k = &t->data[c].col;
		plugin_put_column(b, k, k->type == CELL_F64 || strstr(k->id, "tensor_cores"));
	}
	buf_cstr(b, "],\"rows\":[");
	for (size_t i = 0; i < t->n_rows; i++) {
		buf_cstr(b, i ? ",\n[" : "\n[");
		for (unsigned c = 0; c < t->n_columns; c++) {
			buf_cstr(b, c ? "," : "");
			plugin_put_cell(b, t, i, (int)c);
		}
		buf_char(b, ']');
	}
	buf_cstr(b, "]}");
}
