/* Tables as text of some form, and profiles as files of other programs. */
#include "api/api.h"

#include "base/buf.h"
#include "base/mem.h"
#include "export/export.h"
#include "io/atomic.h"
#include "query/curve.h"
#include "render/render.h"
#include "render/view.h"

#include <sys/stat.h>

static const struct renderer *find_renderer(const char *format, struct err *e)
{
	struct buf list = {0};
	const struct renderer *r = format ? renderer_find(str_from(format)) : NULL;
	if (r)
		return r;
	for (const struct renderer *const *i = renderer_registry; *i; i++)
		buf_printf(&list, "%s%s", list.n ? ", " : "", (*i)->name);
	err_set(e, ERR_USAGE, "no format '%s'; there are: " STR_FMT, format ? format : "NULL", STR_ARG(buf_view(&list)));
	buf_release(&list);
	return NULL;
}

static bool is_asked(const struct arrangement *a)
{
	return a->sort || a->filter || a->columns || a->title || a->time_unit || a->max_width;
}

/* Whether this form shows fewer points of a curve, as the command line does. */
static bool is_thinned(const struct table *t, const struct renderer *r, const struct opscope_options *o)
{
	size_t rows = render_rows(r, t);
	return t->curve && rows && t->n_rows > rows && !(o && (o->limit || o->arrange.sort));
}

/* The table as asked for, made in *copy, which is to be released; *t itself where nothing is to be changed. NULL and *e. */
static const struct table *arranged(const struct table *t, const struct renderer *r, const struct opscope_options *o, struct table *copy, struct err *e)
{
	bool asked = o && is_asked(&o->arrange), thinned = false;
	table_init(copy, t->name, t->title);
	for (const struct table *s = t; s; s = s->next)
		thinned |= is_thinned(s, r, o);
	if (!asked && !thinned)
		return t;
	table_copy(copy, t);
	if (asked && arrange_tables(copy, copy, &o->arrange, e) < 0)
		return NULL;
	for (struct table *s = copy; s; s = s->next)
		if (is_thinned(s, r, o))
			curve_thin(s, render_rows(r, s));
	return copy;
}

/* What the command line shows of such tables in this form. */
static void render_cut(struct table *view, bool limited, const struct renderer *r, const struct opscope_options *o)
{
	int64_t limit = o ? api_number(o->limit) : -1;
	for (struct table *s = view; s; s = s->next) {
		s->names = o && o->names ? o->names : NAMES_SHORT;
		s->shown_notes = o && o->notes ? o->notes : NOTES_FULL;
		if (limit >= 0 || !limited)
			table_limit(s, limit >= 0 ? (size_t)limit : render_rows(r, s));
	}
}

static int render_view(const struct table *shown, const struct opscope_table *t, const struct renderer *r, const struct opscope_options *o,
                       struct buf *out, struct err *e)
{
	const struct render_options options = {
		.width = o && o->width ? (unsigned)api_number(o->width) : 0,
		.input = o && o->input_name ? o->input_name : t->input,
		.fragment = o && o->fragment,
	};
	struct table *view = table_view(shown, true), *folded = NULL, **end = &view;
	render_cut(view, t->limited, r, o);
	if (r->folds)
		table_fold(view, &folded);
	int rc = r->render(view, &options, out, e);
	while (*end)
		end = &(*end)->next;
	*end = folded;
	table_view_free(view);
	return rc;
}

struct rendering {
	const struct opscope_table *t;
	const char *format;
	const struct opscope_options *o;
	struct buf out;
	int rc;
	struct err e;
};

static void render_it(void *rendering)
{
	struct rendering *x = rendering;
	const struct renderer *r = find_renderer(x->format, &x->e);
	struct table copy;
	x->rc = -1;
	if (!r)
		return;
	const struct table *shown = arranged(x->t->t, r, x->o, &copy, &x->e);
	if (shown)
		x->rc = render_view(shown, x->t, r, x->o, &x->out, &x->e);
	table_release(&copy);
	buf_char(&x->out, 0);
	if (x->rc < 0)
		buf_release(&x->out);
}

char *opscope_table_render(const struct opscope_table *t, const char *format, const struct opscope_options *o, size_t *size, char *error,
                           size_t error_size)
{
	struct rendering x = {.t = t, .format = format, .o = o};
	struct mem_pool blocks = {0};
	if (!t)
		x.rc = err_set(&x.e, ERR_USAGE, "opscope_table_render: a table was expected, not NULL");
	else if (api_try(&blocks, render_it, &x, &x.e) < 0)
		x.rc = -1;
	mem_pool_drop(&blocks);
	if (x.rc < 0) {
		api_error(&x.e, error, error_size);
		return NULL;
	}
	if (size)
		*size = x.out.n - 1;
	return x.out.p;
}

void opscope_text_free(char *text)
{
	mem_free(text);
}

/* The format's options among those given; the newest value of each counts. ERR_USAGE for one that only other formats have. */
static int own_values(const struct export_format *f, const struct opscope_options *o, const char **value, struct err *e)
{
	for (const struct api_option *own = o ? o->own : NULL; own; own = own->next) {
		unsigned i = 0;
		while (f->options && f->options[i].name && strcmp(f->options[i].name, own->name) != 0)
			i++;
		if (!f->options || !f->options[i].name)
			return err_set(e, ERR_USAGE, "export %s has no option '%s'", f->name, own->name);
		if (!value[i])
			value[i] = own->value;
	}
	return 0;
}

static const struct export_format *find_format(const char *name, struct err *e)
{
	struct buf list = {0};
	const struct export_format *f = export_find(str_from(name));
	if (f)
		return f;
	for (const struct export_format *const *i = export_registry; *i; i++)
		buf_printf(&list, "%s%s", list.n ? ", " : "", (*i)->name);
	err_set(e, ERR_USAGE, "no export format '%s'; there are: " STR_FMT, name, STR_ARG(buf_view(&list)));
	buf_release(&list);
	return NULL;
}

struct export_job {
	struct opscope_profile *from;
	const char *format_name, *path;
	const struct opscope_options *o;
	const struct export_format *format;
	struct report_args args;
	const char *value[EXPORT_OPTIONS_MAX];
	struct diags notes;
	char *list;               /* of the notes; NULL = there is none, or none is wanted */
	bool wants_list;
	int rc;
	struct err e;
};

static int render_write_to(struct export_job *j, int fd, struct err *e)
{
	struct sink s;
	sink_init(&s, fd, str_ends(str_from(j->path), STR(".gz")));
	int rc = export_run(j->format, j->from->p, &j->args, j->value, &s, &j->notes, e);
	if (sink_finish(&s) < 0 && rc == 0)
		rc = err_set(e, ERR_IO, "%s: cannot write: %s", j->path, strerror(s.error));
	return rc;
}

static int render_write_file(struct export_job *j, struct err *e)
{
	struct atomic_file f;
	if (atomic_begin_any(&f, j->path, e))
		return -1;
	return render_write_to(j, f.fd, e) < 0 ? atomic_abort(&f) : atomic_commit(&f, e);
}

static bool render_is_input(const struct opscope_profile *p, const char *path)
{
	struct stat st;
	return p->inode && stat(path, &st) == 0 && st.st_dev == p->device && st.st_ino == p->inode;
}

/* A line each; NULL = there is none. */
static char *list_notes(const struct diags *notes)
{
	struct buf b = {0};
	for (unsigned i = 0; i < notes->n; i++)
		buf_printf(&b, "%s" STR_FMT, i ? "\n" : "", STR_ARG(notes->entry[i].message));
	if (notes->n)
		buf_char(&b, 0);
	return b.p;
}

static void export_it(void *job)
{
	struct export_job *j = job;
	j->rc = -1;
	j->format = find_format(j->format_name, &j->e);
	if (!j->format || own_values(j->format, j->o, j->value, &j->e) < 0)
		return;
	if (render_is_input(j->from, j->path)) {
		err_set(&j->e, ERR_USAGE, "%s: the trace was read from this file, which the export would replace: export to another", j->path);
		return;
	}
	j->rc = render_write_file(j, &j->e);
	if (j->rc == 0 && j->wants_list)
		j->list = list_notes(&j->notes);
	diags_release(&j->notes);
	mem_disown(j->list);
}

int opscope_export(struct opscope_profile *p, const char *format, const char *path, const struct opscope_options *o, char **notes, char *error,
                   size_t error_size)
{
	struct export_job j = {.from = p, .format_name = format, .path = path, .o = o, .args = o ? o->report : (struct report_args){0}, .wants_list = notes != NULL};
	j.args.compat = NULL; /* of formats it is an option of their own */
	if (notes)
		*notes = NULL;
	if (!p || !format || !path)
		j.rc = err_set(&j.e, ERR_USAGE, "opscope_export: a profile, a format and a path were expected, not NULL");
	else if (api_try_with(p, export_it, &j, &j.e) < 0)
		j.rc = -1;
	if (j.rc < 0)
		return api_error(&j.e, error, error_size);
	if (notes)
		*notes = j.list;
	return 0;
}
