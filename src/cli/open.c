#include "cli/cli.h"

#include "base/buf.h"
#include "base/mem.h"
#include "cli/progress.h"
#include "cli/share.h"
#include "gpu/gpu_state.h"
#include "open/trace_open.h"
#include "store/load_job.h"

#include <stdio.h>

/* What tells traces apart. The text is the list's, or goes into its arena. */
static struct str run_of(struct trace_list *l, unsigned i)
{
	return l->v[i].run;
}
static struct str worker_of(struct trace_list *l, unsigned i)
{
	return l->v[i].worker;
}
static struct str span_of(struct trace_list *l, unsigned i)
{
	return l->v[i].span;
}
static struct str cli_open_rank_of(struct trace_list *l, unsigned i)
{
	int64_t rank;
	return discover_rank(&l->v[i], &rank) ? arena_printf(&l->arena, "%lld", (long long)rank) : STR("");
}

/* The different values of one property over the list, in order, at most a few; how many there are is the result. Traces without one are left out. */
static unsigned list_values(struct trace_list *l, struct str (*property)(struct trace_list *, unsigned i), struct buf *out)
{
	enum { SHOWN = 6 };
	unsigned n = 0;
	struct str *value = NEW_ARRAY(l->n, struct str);
	for (unsigned i = 0; i < l->n; i++) {
		struct str v = property(l, i);
		bool seen = !v.n;
		for (unsigned k = 0; k < n && !seen; k++)
			seen = str_eq(v, value[k]);
		if (seen)
			continue;
		if (n < SHOWN)
			buf_printf(out, "%s" STR_FMT, n ? ", " : "", STR_ARG(v));
		value[n++] = v;
	}
	if (n > SHOWN)
		buf_printf(out, ", ...");
	mem_free(value);
	return n;
}

/* One line that names the options which tell the candidates apart, with their values. */
static int cli_open_fail_ambiguous(struct trace_list *l, const struct cli_args *paths, const struct trace_options *o)
{
	static const struct {
		const char *option;
		struct str (*property)(struct trace_list *, unsigned i);
	} ways[] = {{"--run", run_of}, {"--worker", worker_of}, {"--span", span_of}, {"--rank", cli_open_rank_of}};
	struct buf how = {0}, values = {0};
	for (unsigned i = 0; !o->by_path && i < sizeof ways / sizeof ways[0]; i++) {
		buf_clear(&values);
		if (list_values(l, ways[i].property, &values) > 1)
			buf_printf(&how, "%s%s (" STR_FMT ")", how.n ? ", " : "", ways[i].option, STR_ARG(buf_view(&values)));
	}
	if (!how.n)
		buf_cstr(&how, "the path of one file");
	struct err e;
	struct buf given = {0};
	for (int i = 0; i < paths->n; i++)
		buf_printf(&given, "%s%s", i ? " " : "", paths->v[i]);
	struct str all = buf_view(&given);
	err_set(&e, ERR_USAGE, STR_FMT ": %u traces where one was expected; choose with " STR_FMT "; `opscope info " STR_FMT "` lists them",
	        STR_ARG(all), l->n, STR_ARG(buf_view(&how)), STR_ARG(all));
	buf_release(&given);
	buf_release(&how);
	buf_release(&values);
	return cli_fail(&e, EXIT_USAGE);
}

static void cli_open_fail_none(const struct trace_list *l, const struct cli_args *paths, const struct trace_options *o, unsigned before,
                               struct err *e)
{
	if (!before) {
		err_set(e, ERR_DATA, "%s: no traces in this directory%s; *.pt.trace.json, other trace *.json (.gz) or *.opscope were expected",
		        paths->v[0], l->unreadable ? " (parts of it could not be read)" : "");
		return;
	}
	struct buf wanted = {0};
	if (o->run)
		buf_printf(&wanted, " --run=%s", o->run);
	if (o->worker)
		buf_printf(&wanted, " --worker=%s", o->worker);
	if (o->span)
		buf_printf(&wanted, " --span=%s", o->span);
	if (o->has_rank)
		buf_printf(&wanted, " --rank=%lld", (long long)o->rank);
	if (o->rank_list)
		buf_printf(&wanted, " --rank=%s", o->rank_list);
	err_set(e, ERR_USAGE, "%s: none of %u trace%s matches" STR_FMT "; `opscope info %s` lists them", paths->v[0], before,
	        before == 1 ? "" : "s", STR_ARG(buf_view(&wanted)), paths->v[0]);
	buf_release(&wanted);
}

bool cli_is_job_file(const struct trace_list *l)
{
	return l->n == 1 && l->v[0].keeps_job;
}

int cli_discover(const struct cli_args *paths, const struct trace_options *o, struct trace_list *l, int *status)
{
	struct err e;
	if (cli_share_me()) {
		cli_share_list(l);
		return 0;
	}
	for (int i = 0; i < paths->n; i++)
		if (discover_add(l, paths->v[i], &e) < 0) {
			*status = cli_fail(&e, EXIT_INPUT);
			return -1;
		}
	discover_finish(l);
	int keeps_job = l->n == 1 ? load_job_look(l->v[0].path.p, &e) : 0;
	if (keeps_job < 0) {
		*status = cli_fail(&e, EXIT_INPUT);
		return -1;
	}
	if (keeps_job)
		l->v[0].keeps_job = true;
	unsigned before = l->n;
	discover_select(l, o->run, o->worker, o->span);
	if (o->has_rank && !cli_is_job_file(l))
		discover_select_rank(l, o->rank);
	if (o->ranks && !cli_is_job_file(l))
		discover_select_ranks(l, o->ranks, o->n_ranks);
	if (l->n)
		return 0;
	cli_open_fail_none(l, paths, o, before, &e);
	*status = cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	return -1;
}

/* A line for each. Of an .opscope file, whoever made it has seen them all, and whoever reads it has to know of what is lost; `opscope info` has the rest. */
static void cli_put_diagnostics(const struct profile *p, const char *path, struct buf *out)
{
	for (unsigned i = 0; i < p->diags.n; i++) {
		const struct diag_entry *d = &p->diags.entry[i];
		if (d->level == DIAG_NOTE || (p->reopened && d->level != DIAG_LOSS))
			continue;
		struct err e;
		err_set(&e, ERR_NONE, "%s: " STR_FMT, path, STR_ARG(d->message));
		size_t n = strlen(e.msg), room = sizeof e.msg - n;
		if (d->count > 1)
			snprintf(e.msg + n, room, " (%llu such, this one first)", (unsigned long long)d->count);
		cli_put_failure(&e, out);
	}
}

static struct profile *cli_read_with(const char *path, const struct trace_options *o, const struct input_options *input, struct buf *said, struct err *e)
{
	struct profile *p = trace_open(path, input, e);
	if (p)
		p->user_rules = o->user_rules;
	if (p && o->gpu && gpu_state(p, str_from(o->gpu), e) < 0) {
		profile_free(p);
		p = NULL;
	}
	if (p)
		cli_put_diagnostics(p, path, said);
	return p;
}

struct profile *cli_read_quietly(const char *path, const struct trace_options *o, struct buf *said, struct err *e)
{
	return cli_read_with(path, o, &o->input, said, e);
}

struct profile *cli_try_read(const char *path, const struct trace_options *o, struct err *e)
{
	struct progress bar;
	struct input_options input = o->input;
	struct buf said = {0};
	cli_warn_threads();
	progress_start(&bar, path);
	input.progress = progress_update;
	input.progress_context = &bar;
	struct profile *p = cli_read_with(path, o, &input, &said, e);
	progress_stop(&bar);
	if (said.n)
		fwrite(said.p, 1, said.n, stderr);
	buf_release(&said);
	return p;
}

struct profile *cli_read(const char *path, const struct trace_options *o, int *status)
{
	struct err e;
	struct profile *p = cli_try_read(path, o, &e);
	if (!p)
		*status = cli_fail(&e, e.code == ERR_USAGE ? EXIT_USAGE : EXIT_INPUT);
	return p;
}

struct profile *cli_open_one(const struct cli_args *paths, const struct trace_options *o, int *status)
{
	struct trace_list l = {0};
	struct profile *p = NULL;
	if (cli_discover(paths, o, &l, status) == 0) {
		if (l.n == 1)
			p = cli_read(l.v[0].path.p, o, status);
		else
			*status = cli_open_fail_ambiguous(&l, paths, o);
	}
	discover_release(&l);
	return p;
}

struct profile *cli_open(const char *path, const struct trace_options *o, int *status)
{
	char *v[] = {(char *)(uintptr_t)path};
	return cli_open_one(&(struct cli_args){v, 1}, o, status);
}
