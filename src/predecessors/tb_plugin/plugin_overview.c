/* The plugin's overview: steps, their mean, what to do, the GPUs. */
#include "base/html_text.h"
#include "predecessors/tb_plugin/plugin.h"
#include "query/advice.h"
#include "render/number.h"

static const char tooltip_column[] = "{\"type\":\"string\",\"role\":\"tooltip\",\"p\":{\"html\":\"true\"}}";

/* "kernel_us" of a role, of which "kernel_pct" is the share; not "total_us". */
static bool is_role(const struct column *c)
{
	return str_ends(str_from(c->id), STR("_us")) && strcmp(c->id, "total_us") != 0;
}

static void put_step_tip(struct buf *b, const struct table *t, size_t row, unsigned col)
{
	struct buf text = {0};
	buf_cstr(&text, "<div class=\"visualization-tooltip\" style=\"white-space: nowrap;\">Step ");
	html_put_text(&text, table_str(t, row, 0));
	buf_printf(&text, "<br>Total: %lldus<br><b>%s: %lldus</b><br>Percentage: ", (long long)table_i64(t, row, 1), t->data[col].col.title,
	           (long long)table_i64(t, row, col));
	number_shortest(&text, table_f64(t, row, col + 1));
	buf_cstr(&text, "%</div>");
	json_put_string(b, buf_view(&text));
	buf_release(&text);
}

static void plugin_overview_put_steps(struct buf *b, const struct table *t)
{
	buf_cstr(b, "\"steps\":{\"columns\":[{\"type\":\"string\",\"name\":\"Step\"}");
	for (unsigned c = 0; c < t->n_columns; c++)
		if (is_role(&t->data[c].col)) {
			buf_char(b, ',');
			plugin_put_column(b, &t->data[c].col, false);
			buf_printf(b, ",%s", tooltip_column);
		}
	buf_cstr(b, "],\"rows\":[");
	for (size_t i = 0; i < t->n_rows; i++) {
		buf_cstr(b, i ? ",\n[" : "\n[");
		plugin_put_cell(b, t, i, 0);
		for (unsigned c = 0; c < t->n_columns; c++)
			if (is_role(&t->data[c].col)) {
				buf_char(b, ',');
				plugin_put_cell(b, t, i, (int)c);
				buf_char(b, ',');
				put_step_tip(b, t, i, c);
			}
		buf_char(b, ']');
	}
	buf_cstr(b, "]}");
}

static void put_part(struct buf *b, const struct table *t, size_t row)
{
	buf_char(b, '{');
	plugin_put_member(b, "name", t, row, "role");
	buf_cstr(b, ",\"description\":\"\",");
	plugin_put_member(b, "value", t, row, "mean_us");
	buf_char(b, ',');
	plugin_put_member(b, "extra", t, row, "share_pct");
}

static void put_performance(struct buf *b, const struct table *t)
{
	buf_cstr(b, ",\n\"performance\":[");
	put_part(b, t, 0);
	buf_cstr(b, ",\"children\":[");
	for (size_t i = 1; i < t->n_rows; i++) {
		buf_cstr(b, i > 1 ? "," : "");
		put_part(b, t, i);
		buf_char(b, '}');
	}
	buf_cstr(b, "]}]");
}

/* Findings of opscope's own: each a problem and what to do. */
static int put_recommendations(struct buf *b, const struct request *r, struct err *e)
{
	struct table t;
	struct buf text = {0};
	if (advice_table(r->entry->profile, &(struct report_args){0}, &t, e) < 0)
		return -1;
	int problem = table_find_column(&t, STR("problem")), advice = table_find_column(&t, STR("advice"));
	buf_cstr(&text, "<ul>");
	for (size_t i = 0; i < t.n_rows; i++) {
		buf_cstr(&text, "<li>");
		html_put_text(&text, table_str(&t, i, (unsigned)problem));
		buf_cstr(&text, ". ");
		html_put_text(&text, table_str(&t, i, (unsigned)advice));
		buf_cstr(&text, "</li>");
	}
	buf_cstr(&text, t.n_rows ? "</ul>" : "<li>N/A</li></ul>");
	buf_cstr(b, ",\n");
	json_put_text(b, "recommendations", buf_view(&text));
	buf_release(&text);
	table_release(&t);
	return 0;
}

struct workers {
	struct str run, last;
	unsigned n;
};

static void plugin_overview_see_worker(void *context, const struct library_entry *x)
{
	struct workers *w = context;
	if (!str_eq(x->run, w->run) || x->state == ENTRY_GONE || (w->n && str_eq(x->worker, w->last)))
		return;
	w->n++;
	w->last = x->worker;
}

static void put_environments(struct buf *b, const struct request *r, const struct table *t)
{
	struct workers w = {.run = r->entry->run};
	library_look(r->library, plugin_overview_see_worker, &w);
	buf_printf(b, ",\n\"environments\":[{\"title\":\"Number of Worker(s)\",\"value\":\"%u\"}", w.n);
	for (size_t i = 0; i < t->n_rows; i++)
		if (str_eqc(table_str(t, i, 0), "Device Type")) {
			buf_cstr(b, ",{\"title\":\"Device Type\",\"value\":");
			plugin_put_cell(b, t, i, 1);
			buf_char(b, '}');
		}
	buf_char(b, ']');
}

static void plugin_overview_put_metric(struct buf *b, const struct table *t, size_t row, const char *id, const char *title, const char *unit)
{
	int c = table_find_column(t, str_from(id));
	struct buf text = {0};
	if (c < 0 || table_is_null(t, row, (unsigned)c))
		return;
	if (t->data[c].col.type == CELL_F64) {
		number_shortest(&text, table_f64(t, row, (unsigned)c));
		if (!memchr(text.p, '.', text.n))
			buf_cstr(&text, ".0");
	} else {
		buf_str(&text, table_str(t, row, (unsigned)c));
	}
	buf_cstr(&text, unit);
	buf_printf(b, ",{\"title\":\"%s\",", title);
	json_put_text(b, "value", buf_view(&text));
	buf_char(b, '}');
	buf_release(&text);
}

static void plugin_overview_put_gpus(struct buf *b, const struct table *t)
{
	if (!t->n_rows)
		return;
	buf_cstr(b, ",\n\"gpu_metrics\":{\"title\":\"GPU Summary\",\"data\":[");
	for (size_t i = 0; i < t->n_rows; i++) {
		buf_printf(b, "%s{\"title\":\"GPU %lld:\",\"value\":\"\"}", i ? "," : "", (long long)table_i64(t, i, 0));
		plugin_overview_put_metric(b, t, i, "name", "Name", "");
		plugin_overview_put_metric(b, t, i, "memory_gb", "Memory", " GB");
		plugin_overview_put_metric(b, t, i, "compute_capability", "Compute Capability", "");
		plugin_overview_put_metric(b, t, i, "gpu_utilization_pct", "GPU Utilization", " %");
		plugin_overview_put_metric(b, t, i, "sm_efficiency_pct", "Est. SM Efficiency", " %");
		plugin_overview_put_metric(b, t, i, "achieved_occupancy_pct", "Est. Achieved Occupancy", " %");
		plugin_overview_put_metric(b, t, i, "tc_time_pct", "Kernel Time using Tensor Cores", " %");
	}
	buf_cstr(b, "],\"tooltip\":\"GPU Utilization: share of the time of all steps in which a kernel ran.\\n"
	         "Est. SM Efficiency: how many multiprocessors had a block, over that time.\\nEst. Achieved Occupancy: mean of the kernels' occupancy, weighted by their time.\\n"
	         "Kernel Time using Tensor Cores: of the time of kernels that operators launched.\"}");
}

static int plugin_overview_run(const struct request *r, struct response *out, struct err *e)
{
	struct buf *b = &out->body;
	struct table t;
	if (plugin_report(r, "overview", NULL, NULL, &t, e) < 0)
		return -1;
	buf_char(b, '{');
	plugin_overview_put_steps(b, plugin_section(&t, "steps"));
	put_performance(b, &t);
	int rc = put_recommendations(b, r, e);
	put_environments(b, r, plugin_section(&t, "environment"));
	plugin_overview_put_gpus(b, plugin_section(&t, "devices"));
	buf_cstr(b, "}\n");
	table_release(&t);
	return rc;
}

const struct endpoint endpoint_plugin_overview = {
	.path = PLUGIN_PATH "overview",
	.help = "steps by role, their mean, recommendations, GPUs",
	.flags = PLUGIN_FLAGS | ENDPOINT_FRESH,
	.run = plugin_overview_run,
};
