#include "cli/cli.h"

#include "analysis/steps/steps.h"
#include "base/utf8.h"
#include "cli/share.h"
#include "io/atomic.h"
#include "query/arrange.h"
#include "query/curve.h"
#include "render/render.h"
#include "render/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void cli_put_failure(const struct err *e, struct buf *out)
{
	buf_cstr(out, "opscope: ");
	utf8_put_safe(out, str_from(e->msg));
	buf_char(out, '\n');
}

int cli_fail(const struct err *e, int status)
{
	struct buf line = {0};
	cli_put_failure(e, &line);
	fwrite(line.p, 1, line.n, stderr);
	buf_release(&line);
	return status;
}

/* NULL = standard output. */
static const char *file_path(const struct output_options *o)
{
	return cli_is_stdout(o->path) ? NULL : o->path;
}

/* What stands behind the last dot of the file's name; empty when there is none, or only a leading one. */
static struct str cli_output_suffix_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	return dot && dot != name ? str_from(dot + 1) : STR("");
}

const struct renderer *cli_renderer(const struct output_options *o)
{
	if (o->format)
		return renderer_find(str_from(o->format));
	struct str suffix = file_path(o) ? cli_output_suffix_of(o->path) : STR("");
	return suffix.n ? renderer_of_suffix(suffix) : renderer_find(STR("text"));
}

static struct table *find_section(struct table *t, const char *name, struct err *e)
{
	struct buf list = {0};
	for (struct table *s = t; s; s = s->next) {
		if (!name || strcmp(s->name, name) == 0) {
			buf_release(&list);
			return s;
		}
		buf_printf(&list, "%s%s", list.n ? ", " : "", s->name);
	}
	err_set(e, ERR_USAGE, "--section=%s: no such table; there are: " STR_FMT, name, STR_ARG(buf_view(&list)));
	buf_release(&list);
	return NULL;
}

static size_t rows_shown(const struct output_options *o, const struct renderer *r, const struct table *t)
{
	return o->limit >= 0 ? (size_t)o->limit : render_rows(r, t);
}

size_t cli_row_limit(const struct output_options *o)
{
	const struct renderer *r = cli_renderer(o);
	return o->sort || o->filter || !r ? 0 : rows_shown(o, r, &(struct table){0});
}

static int cli_output_shape(struct table *first, struct table *chosen, const struct output_options *o, const struct renderer *r, struct err *e)
{
	bool predecessor = o->trace && o->trace->report.compat; /* as it printed them */
	const struct arrangement a = {o->sort, o->filter, o->columns, o->title, o->time_unit, o->max_width, o->report};
	if (arrange_tables(first, chosen, &a, e) < 0)
		return -1;
	for (struct table *s = first; s; s = s->next) {
		if (s->curve && o->limit < 0 && !(s == chosen && o->sort))
			curve_thin(s, rows_shown(o, r, s));
		table_limit(s, rows_shown(o, r, s));
		s->names = o->names || predecessor ? o->names : NAMES_SHORT;
		s->shown_notes = o->notes || predecessor ? o->notes : NOTES_BRIEF;
	}
	return 0;
}

static bool cli_is_terminal(void)
{
	return isatty(STDOUT_FILENO) && !cli_share_is_relayed();
}

unsigned cli_terminal_width(void)
{
	enum { NARROWEST = 20, WIDEST = 10000 };
	struct winsize size;
	const char *columns = getenv("COLUMNS");
	int64_t n;
	if (columns && str_to_i64(str_from(columns), &n) && n >= NARROWEST && n <= WIDEST)
		return (unsigned)n;
	if (!cli_is_terminal())
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

bool cli_color(const struct output_options *o)
{
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
	return !file_path(o) && cli_is_terminal() && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

bool cli_printed(void)
{
	if (fflush(stdout) == 0 || errno == EPIPE)
		return true;
	struct err e;
	err_set(&e, ERR_IO, "cannot write to standard output: %s", strerror(errno));
	__fpurge(stdout); /* or the next flush would fail again */
	cli_fail(&e, EXIT_INPUT);
	return false;
}

/* A reader that has seen enough (`| head`) is no error. */
static int write_stdout(struct str s, struct err *e)
{
	if (fd_write_all(STDOUT_FILENO, s) < 0 && errno != EPIPE)
		return err_set(e, ERR_IO, "standard output: %s", strerror(errno));
	return 0;
}

static int cli_output_write_file(const char *path, struct str s, struct err *e)
{
	struct atomic_file f;
	if (atomic_begin_any(&f, path, e))
		return -1;
	return atomic_write(&f, s, e) ? atomic_abort(&f) : atomic_commit(&f, e);
}

/* CSV keeps control characters of names, which a file may hold but a terminal must not get. */
static void make_terminal_safe(struct buf *out)
{
	struct buf safe = {0};
	struct str rest = buf_view(out), line;
	for (bool more = str_split(&rest, '\n', &line); more;) {
		utf8_put_safe(&safe, line);
		more = str_split(&rest, '\n', &line);
		if (more)
			buf_char(&safe, '\n');
	}
	buf_release(out);
	*out = safe;
}

static void put_option(struct buf *out, const char *name, const char *value)
{
	if (value)
		buf_printf(out, "%s--%s=%s", out->n ? " " : "", name, value);
}

/* The options that decide what the tables hold, as one would type them. */
static void put_choice(struct buf *out, const struct output_options *o)
{
	const struct trace_options *t = o->trace;
	char text[64];
	if (t) {
		put_option(out, "group-by", t->report.group_by);
		put_option(out, "compat", t->report.compat);
		if (t->report.top_level)
			buf_cstr(out, out->n ? " --top-level" : "--top-level");
		put_option(out, "run", t->run);
		put_option(out, "worker", t->worker);
		put_option(out, "span", t->span);
		snprintf(text, sizeof text, "%lld", (long long)t->rank);
		put_option(out, "rank", t->has_rank ? text : t->rank_list);
		struct steps_text steps = steps_range_text(t->report.step_first, t->report.step_last);
		put_option(out, "steps", t->report.has_steps ? steps.s + strlen("--steps=") : NULL);
		put_option(out, "device", t->report.device);
	}
	put_option(out, "section", o->section);
	put_option(out, "filter", o->filter);
	put_option(out, "sort", o->sort);
	put_option(out, "columns", o->columns);
	snprintf(text, sizeof text, "%ld", o->limit);
	put_option(out, "limit", o->limit > 0 ? text : NULL);
}

static int render(const struct table *t, const struct renderer *r, const struct output_options *o, const char *input_name,
                  struct err *e)
{
	struct buf choice = {0};
	put_choice(&choice, o);
	const struct render_options options = {
		.width = o->width || file_path(o) ? o->width : cli_terminal_width(),
		.color = cli_color(o),
		.report = o->report ? o->report->name : NULL,
		.input = input_name,
		.choice = buf_view(&choice),
	};
	struct buf out = {0};
	int rc = r->render(t, &options, &out, e);
	buf_release(&choice);
	if (rc == 0 && file_path(o)) {
		rc = cli_output_write_file(file_path(o), buf_view(&out), e);
	} else if (rc == 0) {
		if (strcmp(r->name, "text") != 0 && cli_is_terminal())
			make_terminal_safe(&out);
		rc = write_stdout(buf_view(&out), e);
	}
	buf_release(&out);
	return rc;
}

int cli_output(struct table *t, const struct output_options *options, const char *input_name)
{
	struct err e;
	struct output_options chosen_options = *options, *o = &chosen_options;
	const struct renderer *r = cli_renderer(o);
	bool all = o->section && strcmp(o->section, "all") == 0;
	if (all)
		o->section = NULL;
	struct table *chosen = find_section(t, o->section, &e), *folded = NULL;
	if (!chosen || cli_output_shape(t, chosen, o, r, &e) < 0)
		return cli_fail(&e, EXIT_USAGE);
	if (r->folds && !all && !o->section)
		table_fold(t, &folded);
	struct table only = *chosen; /* a view; the parts stay the report's */
	if (o->section)
		only.next = NULL;
	int rc = render(o->section ? &only : t, r, o, input_name, &e);
	struct table **end = &t->next;
	while (*end)
		end = &(*end)->next;
	*end = folded;
	return rc < 0 ? cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT) : EXIT_DONE;
}

bool cli_can_stream(const struct output_options *o)
{
	const struct renderer *r = cli_renderer(o);
	return r && r->streams && !o->sort && !o->filter && !o->section;
}

static int stream_write(struct cli_stream *s, struct buf *out, struct err *e)
{
	const char *path = file_path(s->options);
	if (path)
		return (!s->begun && atomic_begin_any(&s->file, path, e)) || atomic_write(&s->file, buf_view(out), e) ? -1 : 0;
	if (cli_is_terminal())
		make_terminal_safe(out);
	if (fd_write_all(STDOUT_FILENO, buf_view(out)) == 0)
		return 0;
	s->enough = errno == EPIPE;
	return s->enough ? 0 : err_set(e, ERR_IO, "standard output: %s", strerror(errno));
}

int cli_stream_put(struct cli_stream *s, struct table *piece, struct err *e)
{
	const struct output_options *o = s->options;
	struct render_options how = {.goes_on = s->begun};
	struct buf out = {0};
	if (!s->renderer)
		s->renderer = cli_renderer(o);
	if (cli_output_shape(piece, piece, o, s->renderer, e) < 0)
		return -1;
	if (o->limit > 0)
		table_limit(piece, (size_t)o->limit - s->rows);
	s->rows += piece->n_rows;
	s->enough = o->limit > 0 && s->rows >= (size_t)o->limit;
	int rc = s->renderer->render(piece, &how, &out, e) || stream_write(s, &out, e) ? -1 : s->enough;
	s->begun = true;
	buf_release(&out);
	return rc;
}

int cli_stream_end(struct cli_stream *s, bool ok, struct err *e)
{
	if (!s->file.path)
		return 0;
	return ok ? atomic_commit(&s->file, e) : atomic_abort(&s->file);
}

bool cli_is_stdout(const char *path)
{
	return path && (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0);
}
