#include "record/nsys.h"

/* The kinds of calls to trace that this nsys knows. */
static void put_traces(const struct nsys *n, struct words *c, struct words *notes)
{
	static const char *const more[] = {"osrt", "cudnn", "cublas"};
	struct buf list = {0}, lacking = {0};
	buf_cstr(&list, "cuda,nvtx");
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		if (nsys_has(n, more[i]))
			buf_printf(&list, ",%s", more[i]);
		else
			buf_printf(&lacking, "%s%s", lacking.n ? ", " : "", more[i]);
	words_add(c, "-t");
	words_printf(c, STR_FMT, STR_ARG(buf_view(&list)));
	if (lacking.n)
		words_printf(notes, "this nsys does not trace " STR_FMT, STR_ARG(buf_view(&lacking)));
	buf_release(&list);
	buf_release(&lacking);
}

static void put_seconds(struct words *c, const char *option, int64_t ns)
{
	words_add(c, option);
	if (ns % LAUNCH_S)
		words_printf(c, "%lld.%03lld", (long long)(ns / LAUNCH_S), (long long)(ns % LAUNCH_S / 1000000));
	else
		words_printf(c, "%lld", (long long)(ns / LAUNCH_S));
}

/* A text of --range as nsys wants it, where '@' begins the domain, too. True: it ends in a '*' that stands for more. */
static bool nsys_command_put_text(struct buf *b, const char *s, const char *end)
{
	bool star = false;
	for (; s < end; s++) {
		star = *s == '*' && s + 1 == end;
		s += *s == '\\' && s + 1 < end;
		if (*s == '@' || *s == '\\')
			buf_char(b, '\\');
		buf_char(b, *s);
	}
	return star;
}

/* NAME, NAME@DOMAIN, NAME@ (docs/record.md). False: what only our own library knows, a text that begins so. */
static bool put_range_name(struct buf *b, const char *range, bool any_domain)
{
	const char *end = range + strlen(range), *at = NULL;
	for (const char *p = range; p < end; p++) {
		at = *p == '@' ? p : at;
		p += *p == '\\' && p + 1 < end;
	}
	bool star = nsys_command_put_text(b, range, at ? at : end), any = at && strcmp(at, "@*") == 0;
	if (!at || any)
		buf_cstr(b, any_domain ? "@*" : "");
	else if (at[1])
		buf_char(b, '@');
	return !(at && !any && nsys_command_put_text(b, at + 1, end)) && !star;
}

static bool is_api_range(const struct record_spec *s) { return s->range && strcmp(s->range, RECORD_API_RANGE) == 0; }

static void nsys_command_put_range(const struct nsys *n, const struct record_spec *s, struct words *c, struct words *env, struct words *notes)
{
	bool api = is_api_range(s), any_domain = str_has(buf_view(&n->help), STR("@*"));
	words_add(c, "-c");
	words_add(c, api ? "cudaProfilerApi" : "nvtx");
	if (!api) {
		struct buf b = {0};
		put_range_name(&b, s->range, any_domain);
		words_add(c, "-p");
		words_printf(c, STR_FMT, STR_ARG(buf_view(&b)));
		buf_release(&b);
		if (!any_domain)
			words_add(notes, "this nsys looks for --range in the default domain, or in the one behind '@', alone");
		words_add(env, "NSYS_NVTX_PROFILER_REGISTER_ONLY=0"); /* else a text that is not registered never matches */
	}
	/* The default ends the program with the range. */
	if (nsys_has(n, "--capture-range-end"))
		words_add(c, "--capture-range-end=stop");
	else if (nsys_has(n, "--stop-on-range-end"))
		words_add(c, "--stop-on-range-end=true");
	else
		words_add(notes, "this nsys cannot stop at the end of the range: what came after it is recorded, too");
}

static void nsys_command_put_times(const struct nsys *n, const struct record_spec *s, struct words *c, struct words *notes)
{
	if (s->delay_ns)
		put_seconds(c, "-y", s->delay_ns);
	if (s->duration_ns)
		put_seconds(c, "-d", s->duration_ns);
	if ((s->duration_ns || s->range) && nsys_has(n, "--kill"))
		words_add(c, s->kill ? "--kill=sigterm" : "--kill=none");
	else if (s->duration_ns && !s->kill)
		words_add(notes, "this nsys has no --kill: it may end the program with the duration");
}

static void nsys_command_put_choices(const struct nsys *n, const struct record_spec *s, struct words *c, struct words *notes)
{
	words_add(c, "-s");
	words_add(c, !s->sample_cpu ? "none" : nsys_has(n, "process-tree") ? "process-tree" : "cpu");
	if (nsys_has(n, "--cpuctxsw"))
		words_add(c, "--cpuctxsw=none");
	if (nsys_has(n, "--cuda-graph-trace")) /* its default hides the kernels in graphs */
		words_printf(c, "--cuda-graph-trace=%s", s->graph ? s->graph : "node");
	else if (s->graph)
		words_printf(notes, "this nsys has no --cuda-graph-trace: --graph=%s has no effect", s->graph);
	if (s->memory && nsys_has(n, "--cuda-memory-usage"))
		words_add(c, "--cuda-memory-usage=true");
	else if (s->memory)
		words_add(notes, "this nsys has no --cuda-memory-usage: no memory is recorded");
}

static int nsys_command_check(const struct record_spec *s, struct err *e)
{
	struct words w = {0};
	struct buf b = {0};
	bool output = false, whole = !s->range || is_api_range(s) || put_range_name(&b, s->range, true);
	buf_release(&b);
	if (!whole)
		return err_set(e, ERR_USAGE, "--range=%s: nsys knows whole texts, not how they begin (but NAME@* for any domain); the whole text can be had, or --backend=own", s->range);
	if (s->steps)
		return err_set(e, ERR_USAGE, "--steps: nsys cannot choose steps; --range=NAME, --delay and --duration can be had, or --backend=own");
	if (s->max_bytes)
		return err_set(e, ERR_USAGE, "--max-size: nsys has no such bound; --duration can be had, or --backend=own");
	words_split(&w, s->nsys_options ? s->nsys_options : "");
	for (int i = 0; i < w.n; i++)
		output |= strcmp(w.v[i], "-o") == 0 || strncmp(w.v[i], "--output", 8) == 0;
	words_release(&w);
	return output ? err_set(e, ERR_USAGE, "--nsys-options: the output is chosen by --output of opscope record") : 0;
}

int nsys_command(const struct nsys *n, const struct record_spec *s, const char *base, struct words *c, struct words *env, struct words *notes, struct err *e)
{
	if (nsys_command_check(s, e) < 0)
		return -1;
	for (int i = 0; i < s->env.n; i++)
		words_add(env, s->env.v[i]);
	words_printf(c, "%s", n->path.p);
	words_add(c, "profile");
	put_traces(n, c, notes);
	nsys_command_put_choices(n, s, c, notes);
	words_add(c, "-f");
	words_add(c, "true");
	words_add(c, "-o");
	words_printf(c, "%s", base);
	if (s->range)
		nsys_command_put_range(n, s, c, env, notes);
	nsys_command_put_times(n, s, c, notes);
	words_split(c, s->nsys_options ? s->nsys_options : "");
	for (int i = 0; i < s->argc; i++)
		words_add(c, s->argv[i]);
	return 0;
}
