/* Prints what is registered as JSON, for tools/gen_docs.py: registry_dump reports|columns|detectors|inputs|formats|exports|endpoints */
#include "base/buf.h"
#include "base/mem.h"
#include "detect/detect.h"
#include "export/export.h"
#include "input/input.h"
#include "render/render.h"
#include "query/report.h"

#ifdef HAVE_SERVE
#include "serve/endpoint.h"
#endif

#include <stdio.h>

static void columns(struct table *t, const char *const *ids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		TABLE_COLUMN(t, .id = ids[i], .title = ids[i], .help = "", .type = CELL_STR);
}

static void row(struct table *t, const char *const *cells, unsigned n)
{
	table_row(t);
	for (unsigned i = 0; i < n; i++)
		if (cells[i])
			table_set_str_copy(t, i, str_from(cells[i]));
}

/* report_grouping's or report_compat's words with spaces between; NULL for none. */
static const char *join(const struct report *r, const char *(*word)(const struct report *r, unsigned i), struct buf *b)
{
	buf_clear(b);
	for (unsigned i = 0; word(r, i); i++)
		buf_printf(b, i ? " %s" : "%s", word(r, i));
	buf_char(b, 0);
	return b->n > 1 ? b->p : NULL;
}

static void reports(struct table *t)
{
	columns(t, (const char *const[]){"name", "title", "help", "group_by", "compat", "combines"}, 6);
	struct buf group = {0}, compat = {0};
	for (const struct report *const *r = report_registry; *r; r++)
		row(t, (const char *const[]){(*r)->name, (*r)->title, (*r)->help, join(*r, report_grouping, &group), join(*r, report_compat, &compat),
		                                report_combines(*r) ? "yes" : NULL}, 6);
	buf_release(&group);
	buf_release(&compat);
}

static void report_columns(struct table *t)
{
	columns(t, (const char *const[]){"report", "section", "id", "type", "unit", "when", "help"}, 7);
	struct buf when = {0};
	for (const struct report *const *r = report_registry; *r; r++) {
		unsigned n;
		struct section_entry *list = section_entries(*r, &n);
		for (unsigned i = 0; i < n; i++) {
			const struct column *c = &list[i].c.column;
			buf_clear(&when);
			section_put_when(*r, &list[i], &when);
			buf_char(&when, 0);
			row(t, (const char *const[]){(*r)->name, list[i].section, c->id, table_type_name(c->type), table_unit_name(c->unit), when.p, c->help}, 7);
		}
		mem_free(list);
	}
	buf_release(&when);
}

static void detectors(struct table *t)
{
	columns(t, (const char *const[]){"id", "title", "why", "fix", "disprove", "compat", "report"}, 7);
	for (const struct detector *const *d = detector_registry; *d; d++)
		row(t, (const char *const[]){(*d)->id, (*d)->title, (*d)->why, (*d)->fix, (*d)->disprove, (*d)->experts ? (*d)->experts->name : NULL, (*d)->report}, 7);
}

static void inputs(struct table *t)
{
	columns(t, (const char *const[]){"name", "help"}, 2);
	for (const struct input *const *i = input_registry; *i; i++)
		row(t, (const char *const[]){(*i)->name, (*i)->help}, 2);
}

static void formats(struct table *t)
{
	columns(t, (const char *const[]){"name", "help"}, 2);
	for (const struct renderer *const *r = renderer_registry; *r; r++)
		row(t, (const char *const[]){(*r)->name, (*r)->help}, 2);
}

static void exports(struct table *t)
{
	columns(t, (const char *const[]){"name", "title", "options"}, 3);
	struct buf options = {0}, help = {0};
	for (const struct export_format *const *f = export_registry; *f; f++) {
		buf_clear(&options);
		for (const struct export_option *o = (*f)->options; o && o->name; o++) {
			buf_clear(&help);
			export_help(o, &help);
			buf_printf(&options, "%s%s\t%s\t", options.n ? "\n" : "", o->name, o->arg ? o->arg : "");
			for (unsigned i = 0; o->values && o->values[i]; i++)
				buf_printf(&options, "%s%s", i ? " " : "", o->values[i]);
			buf_printf(&options, "\t" STR_FMT, STR_ARG(buf_view(&help)));
		}
		buf_char(&options, 0);
		row(t, (const char *const[]){(*f)->name, (*f)->title, options.p}, 3);
	}
	buf_release(&help);
	buf_release(&options);
}

#ifdef HAVE_SERVE
static const char *chosen_by(unsigned flags)
{
	return flags & ENDPOINT_INPUT ? "input" : flags & ENDPOINT_SPAN ? "run worker span" : NULL;
}

static void endpoint_rows(struct table *t, const struct endpoint *k)
{
	struct buf params = {0};
	for (const struct endpoint_param *p = k->params; p && p->name; p++)
		buf_printf(&params, "%s%s%s\t%s", params.n ? "\n" : "", p->name, p->required ? "" : "?", p->help);
	buf_char(&params, 0);
	row(t, (const char *const[]){k->path, k->help, k->flags & ENDPOINT_POST ? "POST" : "GET", chosen_by(k->flags), params.p}, 5);
	buf_release(&params);
	if (k->also)
		endpoint_rows(t, k->also);
}
#endif

static void endpoints(struct table *t)
{
	columns(t, (const char *const[]){"path", "help", "method", "input", "params"}, 5);
#ifdef HAVE_SERVE
	for (const struct endpoint *const *k = endpoint_registry; *k; k++)
		endpoint_rows(t, *k);
#endif
}

static const struct registry {
	const char *name;
	void (*fill)(struct table *t);
} registries[] = {{"reports", reports}, {"columns", report_columns}, {"detectors", detectors}, {"inputs", inputs}, {"formats", formats}, {"exports", exports}, {"endpoints", endpoints}};

int main(int argc, char **argv)
{
	for (unsigned i = 0; argc == 2 && i < sizeof registries / sizeof *registries; i++) {
		if (strcmp(argv[1], registries[i].name) != 0)
			continue;
		struct table t;
		struct buf out = {0};
		struct err e = {0};
		table_init(&t, argv[1], argv[1]);
		registries[i].fill(&t);
		int failed = renderer_find(STR("json"))->render(&t, &(struct render_options){.input = ""}, &out, &e);
		fwrite(out.p, 1, out.n, stdout);
		buf_release(&out);
		table_release(&t);
		return failed ? 1 : 0;
	}
	fprintf(stderr, "usage: registry_dump reports|columns|detectors|inputs|formats|exports|endpoints\n");
	return 2;
}
