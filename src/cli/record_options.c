#include "cli/record.h"

#include "base/now.h"
#include "opscope/ask.h"

#include <signal.h>
#include <stdio.h>

enum {
	KEY_BACKEND = 0x200, KEY_DELAY, KEY_DURATION, KEY_KILL, KEY_RANGE, KEY_STEPS, KEY_KEY_RANGE, KEY_SAMPLE, KEY_MEMORY, KEY_SYNC, KEY_GRAPH,
	KEY_MAX_SIZE, KEY_ENV, KEY_NO_REPORT, KEY_NSYS_OPTIONS, KEY_ON_DEMAND, KEY_ASK, KEY_AT,
};
enum { MAX_SIZE_LEAST = 2 << 20 };
enum { SAMPLE_HZ = 997, SAMPLE_HZ_MAX = 20000 }; /* a prime: in step with nothing */

static const struct argp_option option_list[] = {
	{NULL, 0, NULL, 0, "Where to:", 1},
	{"output", 'o', "NAME", 0, "the run directory, made if need be (default: opscope-1, opscope-2, ...), or NAME.opscope: one file, imported when the program ends; with --ask a folder in the program's run directory (default: asked-1, asked-2, ...)", 0},
	{"force", 'f', NULL, 0, "remove captures that are there; other files stay", 0},
	{"no-report", KEY_NO_REPORT, NULL, 0, "do not print what was recorded", 0},
	{NULL, 0, NULL, 0, "When:", 2},
	{"delay", KEY_DELAY, "SECONDS", 0, "start collecting so much later; also 500ms", 0},
	{"duration", KEY_DURATION, "SECONDS", 0, "stop collecting after that; the program goes on", 0},
	{"kill", KEY_KILL, NULL, 0, "with --duration: end the program then", 0},
	{"range", KEY_RANGE, "NAME[@DOMAIN]", 0, "collect inside the ranges of this name; cudaProfilerApi: between cudaProfilerStart and cudaProfilerStop", 0},
	{"steps", KEY_STEPS, "A..B", 0, "collect steps A to B: by the numbers of opscope_step(), or those of --key-range", 0},
	{"key-range", KEY_KEY_RANGE, "NAME", 0, "what a step is, for --steps: the ranges of this name, counted from 0", 0},
	{NULL, 0, NULL, 0, "On demand:", 3},
	{"on-demand", KEY_ON_DEMAND, "SIGNAL", OPTION_ARG_OPTIONAL, "record nothing until --ask does, or until SIGNAL (USR1, USR2) comes to opscope: then --duration, or --steps=N", 0},
	{"ask", KEY_ASK, "PID|DIR|SOCKET", 0, "let a program that runs with --on-demand record now, with what it started, or all of a run directory: for --duration, for --steps=N, or until Ctrl-C", 0},
	{"at", KEY_AT, "TIME", 0, "with --ask: begin then, in seconds since 1970, so that several machines begin together", 0},
	{NULL, 0, NULL, 0, "What:", 4},
	{"sample", KEY_SAMPLE, "cpu[:HZ]", 0, "stacks of the threads that run, HZ times a second (997) where the system allows it", 0},
	{"memory", KEY_MEMORY, NULL, 0, "allocations of CUDA", 0},
	{"sync", KEY_SYNC, NULL, 0, "events of CUDA and what waits for them", 0},
	{"graph", KEY_GRAPH, "node|graph", 0, "CUDA graphs by kernel (the default), or as a whole, which costs less", 0},
	{"max-size", KEY_MAX_SIZE, "SIZE[,ring|stop]", 0, "keep no more than so much of each process: 8G (or 8), 500M; ring: the newest; stop (the default): the oldest", 0},
	{NULL, 0, NULL, 0, "How:", 5},
	{"backend", KEY_BACKEND, "auto|own|nsys", 0, "own: a library inside the program; nsys: an installed Nsight Systems; auto (the default): own, nsys where that is missing", 0},
	{"env", KEY_ENV, "NAME=VALUE", 0, "put this into the program's environment; may be given several times", 0},
	{"nsys-options", KEY_NSYS_OPTIONS, "ARGS", 0, "further arguments of nsys profile", 0},
	{0},
};

static void take_sample(struct record_spec *s, const char *arg)
{
	struct str rest = str_from(arg), what = {0};
	int64_t hz = SAMPLE_HZ;
	str_split(&rest, ':', &what);
	bool ok = str_eqc(what, "cpu") && (!rest.p || (str_to_i64(rest, &hz) && hz >= 1 && hz <= SAMPLE_HZ_MAX));
	if (!ok)
		cli_usage("record: --sample=%s: expected cpu, or cpu:HZ with 1 to %d samples a second", arg, SAMPLE_HZ_MAX);
	s->sample_cpu = true;
	s->sample_hz = hz;
}

static void take_max_size(struct record_spec *s, const char *arg)
{
	struct str rest = str_from(arg), size = {0};
	str_split(&rest, ',', &size);
	if (rest.p && !str_eqc(rest, "ring") && !str_eqc(rest, "stop"))
		cli_usage("record: --max-size=%s: expected ring or stop behind the comma", arg);
	s->max_bytes = (int64_t)cli_size("record: --max-size", size);
	if (s->max_bytes < MAX_SIZE_LEAST)
		cli_usage("record: --max-size=%s: at least %dM was expected: less has no room for events beside texts", arg, MAX_SIZE_LEAST >> 20);
	s->ring = rest.p && str_eqc(rest, "ring");
}

static void take_env(struct record_spec *s, const char *arg)
{
	const char *equals = strchr(arg, '=');
	if (!equals || equals == arg)
		cli_usage("record: --env=%s: NAME=VALUE was expected", arg);
	words_add(&s->env, arg);
}

static enum record_backend backend_of(const char *arg)
{
	static const char *const names[] = {"auto", "own", "nsys"};
	for (int i = 0; i < 3; i++)
		if (strcmp(arg, names[i]) == 0)
			return (enum record_backend)i;
	cli_usage("record: --backend=%s: expected auto, own or nsys", arg);
}

static void take_steps(struct record_options *o, const char *arg)
{
	struct report_args a = {0};
	struct err e;
	if (report_args_steps(&a, str_from(arg), &e) < 0)
		cli_usage("record: --%s", e.msg);
	snprintf(o->steps, sizeof o->steps, "%lld..%lld", (long long)(a.step_first < 0 ? 0 : a.step_first), (long long)a.step_last);
	o->spec.steps = o->steps;
}

/* A NAME[@DOMAIN]: no range without a text begins or ends anything. */
static const char *cli_record_options_range_name(const char *option, const char *arg, const char *other)
{
	const char *at = NULL;
	for (const char *p = arg; *p; p++) {
		at = *p == '@' ? p : at;
		p += *p == '\\' && p[1];
	}
	if (!*arg || at == arg)
		cli_usage("record: --%s%s%s: the name of a range was expected%s%s", option, *arg ? "=" : "", arg, at ? " in front of '@'" : "", other);
	return arg;
}

/* Seconds, also with the unit behind: 2, 0.5, 2s, 500ms. */
static int64_t take_time(const char *option, const char *arg, bool zero)
{
	enum { MS = 1000000, MS_MOST = 999999999 };
	struct str s = str_from(arg);
	char seconds[32];
	int64_t v;
	if (str_ends(s, STR("ms")) && str_to_i64((struct str){s.p, s.n - 2}, &v) && v >= !zero && v <= MS_MOST && is_digit(s.p[0]))
		return v * MS;
	bool unit = s.n > 1 && s.n < sizeof seconds && s.p[s.n - 1] == 's' && is_digit(s.p[s.n - 2]);
	if (unit)
		snprintf(seconds, sizeof seconds, "%.*s", (int)s.n - 1, arg);
	return cli_seconds_ns(option, unit ? seconds : arg, zero);
}

/* CLOCK_REALTIME. */
static int64_t take_moment(const char *arg)
{
	enum { DIGITS = 10, PLACES = 9 };
	size_t n = strspn(arg, "0123456789"), places = arg[n] == '.' ? strspn(arg + n + 1, "0123456789") : 0;
	int64_t ns = 0;
	if (n != DIGITS || arg[n + (arg[n] == '.') + places] || (arg[n] == '.' && !places))
		cli_usage("record: --at=%s: seconds since 1970 were expected, as `date +%%s.%%N` prints them", arg);
	for (size_t i = 0; i < n + PLACES; i++)
		ns = ns * 10 + (i < n ? arg[i] - '0' : i - n < places ? arg[i + 1] - '0' : 0);
	if (ns < now_realtime_ns())
		cli_usage("record: --at=%s: a moment that is to come was expected", arg);
	return ns;
}

static int take_signal(const char *arg)
{
	const char *name = strncmp(arg, "SIG", 3) == 0 ? arg + 3 : arg;
	if (strcmp(name, "USR1") == 0)
		return SIGUSR1;
	if (strcmp(name, "USR2") == 0)
		return SIGUSR2;
	cli_usage("record: --on-demand=%s: USR1 or USR2 was expected", arg);
}

static error_t parse_when(int key, char *arg, struct record_options *o)
{
	struct record_spec *s = &o->spec;
	switch (key) {
	case KEY_ON_DEMAND:
		o->on_demand = true;
		s->ask_signal = arg ? take_signal(arg) : 0;
		return 0;
	case KEY_ASK: o->ask = arg; return 0;
	case KEY_AT: s->asked.start_ns = take_moment(arg); return 0;
	case KEY_DELAY: s->delay_ns = take_time("record: --delay", arg, true); return 0;
	case KEY_DURATION: s->duration_ns = take_time("record: --duration", arg, false); return 0;
	case KEY_KILL: s->kill = true; return 0;
	case KEY_RANGE: s->range = cli_record_options_range_name("range", arg, ", or " RECORD_API_RANGE); return 0;
	case KEY_KEY_RANGE: s->key_range = cli_record_options_range_name("key-range", arg, ""); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static error_t cli_record_options_parse(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;
	struct record_spec *s = &o->spec;
	switch (key) {
	case 'o':
		if (!*arg)
			cli_usage("record: --output: a name was expected");
		o->output = arg;
		return 0;
	case 'f': o->force = true; return 0;
	case KEY_NO_REPORT: o->no_report = true; return 0;
	case KEY_BACKEND: o->backend = backend_of(arg); return 0;
	case KEY_SAMPLE: take_sample(s, arg); return 0;
	case KEY_MEMORY: s->memory = true; return 0;
	case KEY_SYNC: s->sync = true; return 0;
	case KEY_GRAPH:
		if (strcmp(arg, "node") != 0 && strcmp(arg, "graph") != 0)
			cli_usage("record: --graph=%s: expected node or graph", arg);
		s->graph = arg;
		return 0;
	case KEY_STEPS: o->steps_given = arg; return 0;
	case KEY_MAX_SIZE: take_max_size(s, arg); return 0;
	case KEY_ENV: take_env(s, arg); return 0;
	case KEY_NSYS_OPTIONS: s->nsys_options = arg; return 0;
	case ARGP_KEY_ARG:
		s->argv = state->argv + state->next - 1;
		s->argc = state->argc - state->next + 1;
		state->next = state->argc;
		return 0;
	default: return parse_when(key, arg, o);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = cli_record_options_parse,
	.args_doc = "-- COMMAND [ARGUMENT...]\n--ask=PID|DIR|SOCKET",
	.doc = "Runs a program and records what it does on GPUs and in its ranges: CUDA through CUPTI, NVTX, ITT, in it and in all processes that it starts. "
	       "Its exit status, its signals and its terminal are as without. Afterwards prints, on standard error, where the time went, what was found, and "
	       "what could not be seen and why.",
};

/* What makes no sense, or has no meaning yet, where somebody asks: the first of these that was given. */
static void check_on_demand(const struct record_options *o)
{
	const struct record_spec *s = &o->spec;
	const char *mode = o->ask ? "--ask" : "--on-demand";
	const struct { bool given; const char *option; } wrong[] = {
		{o->ask && o->on_demand, "--on-demand"}, {o->ask && s->argc, "a command"}, {s->range, "--range"}, {s->kill, "--kill"}, {s->sample_cpu, "--sample"},
		{o->backend == RECORD_NSYS, "--backend=nsys"}, {o->ask && (s->memory || s->sync || s->graph || s->max_bytes || s->env.n), "--memory, --sync, --graph, --max-size or --env"},
		{o->ask && o->force, "--force"}, {!o->ask && s->asked.start_ns, "--at"}, {!o->ask && !s->ask_signal && (s->duration_ns || s->delay_ns || o->steps_given), "--duration, --delay or --steps"},
		{o->ask && s->delay_ns && s->asked.start_ns, "--delay beside --at"}, {o->on_demand && o->output && str_ends(str_from(o->output), STR(".opscope")), "--output=NAME.opscope"},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		if (wrong[i].given)
			cli_usage("record: %s: not with %s%s", wrong[i].option, mode, i == 1 ? ": the program runs already" : i == 9 ? ": whoever asks says so (--ask), or --on-demand=SIGNAL is to ask" : "");
	if (s->ask_signal && !s->duration_ns && !o->steps_given)
		cli_usage("record: --on-demand=SIGNAL: --duration or --steps=N was expected, too: how long to record when it comes");
}

static void check_asked_output(const struct record_options *o)
{
	if (o->ask && o->output && !ask_is_name(o->output))
		cli_usage("record: --output=%s: with --ask the name of a folder to be made in the program's run directory was expected: letters, digits, '-', '_', '.', at most %d", o->output,
		          ASK_NAME_MOST);
}

static void take_asked(struct record_options *o)
{
	struct record_spec *s = &o->spec;
	struct ask_request *r = &s->asked;
	int64_t n = 0;
	check_on_demand(o);
	check_asked_output(o);
	if (o->steps_given && (!str_to_i64(str_from(o->steps_given), &n) || n < 1))
		cli_usage("record: --steps=%s: how many was expected, 1 or more: they are counted from the first one that begins after the asking", o->steps_given);
	if (s->key_range && (!n || strlen(s->key_range) > ASK_KEY_MOST || strchr(s->key_range, '\n')))
		cli_usage("record: --key-range: with --steps, a text of one line and %d bytes at most was expected", ASK_KEY_MOST);
	r->steps = n;
	r->duration_ns = s->duration_ns;
	r->delay_ns = s->delay_ns;
	r->key_range = s->key_range;
}

static void cli_record_options_check(const struct record_options *o)
{
	const struct record_spec *s = &o->spec;
	if (o->ask)
		return;
	if (!s->argc)
		cli_usage("record: a command was expected: opscope record [options] -- COMMAND");
	if (s->kill && !s->duration_ns)
		cli_usage("record: --kill: with --duration only");
	if (s->kill && (s->range || s->steps))
		cli_usage("record: --kill: the duration would have to begin with the program, not with --range or --steps");
	if (o->on_demand)
		return;
	if (s->key_range && !s->steps)
		cli_usage("record: --key-range: says what the steps of --steps are; which steps was expected, too");
	if (s->range && s->steps)
		cli_usage("record: --range and --steps: only one of them chooses when to collect");
	if (s->asked.start_ns)
		cli_usage("record: --at: with --ask only");
	if (s->nsys_options && o->backend != RECORD_NSYS)
		cli_usage("record: --nsys-options: with --backend=nsys only");
}

void record_parse(int argc, char **argv, struct record_options *o)
{
	*o = (struct record_options){0};
	cli_parse_in_order(&argp, argc, argv, o);
	if (o->ask || o->on_demand)
		take_asked(o);
	else if (o->steps_given)
		take_steps(o, o->steps_given);
	cli_record_options_check(o);
}
