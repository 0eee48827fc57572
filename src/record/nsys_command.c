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

/* The range's text as nsys wants it: '@' begins the domain. */
static void put_range_name(const struct nsys *n, struct words *c, const char *name)
{
	struct buf b = {0};
	for (; *name; name++) {
		if (*name == '@' || *name == '\\')
			buf_char(&b, '\\');
		buf_char(&b, *name);
	}
	if (str_has(buf_view(&n->help), STR("@*")))
		buf_cstr(&b, "@*");
	words_add(c, "-p");
	words_printf(c, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
}

static void put_range(const struct nsys *n, const struct record_spec *s, struct words *c, struct words *env, struct words *notes)
{
	bool api = strcmp(s->range, RECORD_API_RANGE) == 0;
	words_add(c, "-c");
	words_add(c, api ? "cudaProfilerApi" : "nvtx");
	if (!api) {
		put_range_name(n, c, s->range);
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

static void put_times(const struct nsys *n, const struct record_spec *s, struct words *c, struct words *notes)
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

static void put_choices(const struct nsys *n, const struct record_spec *s, struct words *c, struct words *notes)
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

static int check(const struct record_spec *s, struct err *e)
{
	struct words w = {0};
	bool output = false;
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
	if (check(s, e) < 0)
		return -1;
	for (int i = 0; i < s->env.n; i++)
		words_add(env, s->env.v[i]);
	words_printf(c, "%s", n->path.p);
	words_add(c, "profile");
	put_traces(n, c, notes);
	put_choices(n, s, c, notes);
	words_add(c, "-f");
	words_add(c, "true");
	words_add(c, "-o");
	words_printf(c, "%s", base);
	if (s->range)
		put_range(n, s, c, env, notes);
	put_times(n, s, c, notes);
	words_split(c, s->nsys_options ? s->nsys_options : "");
	for (int i = 0; i < s->argc; i++)
		words_add(c, s->argv[i]);
	return 0;
}
