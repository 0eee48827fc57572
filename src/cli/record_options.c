#include "cli/record.h"

#include <stdio.h>

enum {
	KEY_BACKEND = 0x200, KEY_DELAY, KEY_DURATION, KEY_KILL, KEY_RANGE, KEY_STEPS, KEY_KEY_RANGE, KEY_SAMPLE, KEY_MEMORY, KEY_SYNC, KEY_GRAPH,
	KEY_MAX_SIZE, KEY_ENV, KEY_NO_REPORT, KEY_NSYS_OPTIONS,
};
enum { MAX_SIZE_LEAST = 2 << 20 };
enum { SAMPLE_HZ = 997, SAMPLE_HZ_MAX = 20000 }; /* a prime: in step with nothing */

static const struct argp_option option_list[] = {
	{NULL, 0, NULL, 0, "Where to:", 1},
	{"output", 'o', "NAME", 0, "the run directory, made if need be (default: opscope-1, opscope-2, ...), or NAME.opscope: one file, imported when the program ends", 0},
	{"force", 'f', NULL, 0, "remove captures that are there; other files stay", 0},
	{"no-report", KEY_NO_REPORT, NULL, 0, "do not print what was recorded", 0},
	{NULL, 0, NULL, 0, "When:", 2},
	{"delay", KEY_DELAY, "SECONDS", 0, "start collecting so much later", 0},
	{"duration", KEY_DURATION, "SECONDS", 0, "stop collecting after that; the program goes on", 0},
	{"kill", KEY_KILL, NULL, 0, "with --duration: end the program then", 0},
	{"range", KEY_RANGE, "NAME[@DOMAIN]", 0, "collect inside the ranges of this name; cudaProfilerApi: between cudaProfilerStart and cudaProfilerStop", 0},
	{"steps", KEY_STEPS, "A..B", 0, "collect steps A to B: by the numbers of opscope_step(), or those of --key-range", 0},
	{"key-range", KEY_KEY_RANGE, "NAME", 0, "what a step is, for --steps: the ranges of this name, counted from 0", 0},
	{NULL, 0, NULL, 0, "What:", 3},
	{"sample", KEY_SAMPLE, "cpu[:HZ]", 0, "stacks of the threads that run, HZ times a second (997) where the system allows it", 0},
	{"memory", KEY_MEMORY, NULL, 0, "allocations of CUDA", 0},
	{"sync", KEY_SYNC, NULL, 0, "events of CUDA and what waits for them", 0},
	{"graph", KEY_GRAPH, "node|graph", 0, "CUDA graphs by kernel (the default), or as a whole, which costs less", 0},
	{"max-size", KEY_MAX_SIZE, "SIZE[,ring|stop]", 0, "keep no more than so much of each process: 8G (or 8), 500M; ring: the newest; stop (the default): the oldest", 0},
	{NULL, 0, NULL, 0, "How:", 4},
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

static error_t parse_when(int key, char *arg, struct record_spec *s)
{
	switch (key) {
	case KEY_DELAY: s->delay_ns = cli_seconds_ns("record: --delay", arg, true); return 0;
	case KEY_DURATION: s->duration_ns = cli_seconds_ns("record: --duration", arg, false); return 0;
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
	case KEY_STEPS: take_steps(o, arg); return 0;
	case KEY_MAX_SIZE: take_max_size(s, arg); return 0;
	case KEY_ENV: take_env(s, arg); return 0;
	case KEY_NSYS_OPTIONS: s->nsys_options = arg; return 0;
	case ARGP_KEY_ARG:
		s->argv = state->argv + state->next - 1;
		s->argc = state->argc - state->next + 1;
		state->next = state->argc;
		return 0;
	default: return parse_when(key, arg, s);
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = cli_record_options_parse,
	.args_doc = "-- COMMAND [ARGUMENT...]",
	.doc = "Runs a program and records what it does on GPUs and in its ranges: CUDA through CUPTI, NVTX, ITT, in it and in all processes that it starts. "
	       "Its exit status, its signals and its terminal are as without. Afterwards prints, on standard error, where the time went, what was found, and "
	       "what could not be seen and why.",
};

static void cli_record_options_check(const struct record_options *o)
{
	const struct record_spec *s = &o->spec;
	if (!s->argc)
		cli_usage("record: a command was expected: opscope record [options] -- COMMAND");
	if (s->kill && !s->duration_ns)
		cli_usage("record: --kill: with --duration only");
	if (s->kill && (s->range || s->steps))
		cli_usage("record: --kill: the duration would have to begin with the program, not with --range or --steps");
	if (s->key_range && !s->steps)
		cli_usage("record: --key-range: says what the steps of --steps are; which steps was expected, too");
	if (s->range && s->steps)
		cli_usage("record: --range and --steps: only one of them chooses when to collect");
	if (s->nsys_options && o->backend != RECORD_NSYS)
		cli_usage("record: --nsys-options: with --backend=nsys only");
}

void record_parse(int argc, char **argv, struct record_options *o)
{
	*o = (struct record_options){0};
	cli_parse_in_order(&argp, argc, argv, o);
	cli_record_options_check(o);
}
