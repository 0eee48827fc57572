#include "cli/cli.h"

#include "analysis/ranks/job.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/size.h"
#include "base/spill.h"
#include "base/threads.h"
#include "io/remote/remote.h"
#include "op/user_rules.h"
#include "render/render.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	struct err e = {.code = ERR_USAGE};
	vsnprintf(e.msg, sizeof e.msg, fmt, ap);
	va_end(ap);
	exit(cli_fail(&e, EXIT_USAGE));
}

void cli_args_add(struct cli_args *a, char *arg)
{
	a->v = mem_realloc(a->v, (size_t)a->n + 1, sizeof *a->v);
	a->v[a->n++] = (char *)(uintptr_t)remote_name(arg); /* from here on no message can hold what an address hides */
}

const char *cli_nearest(const char *typed, const char *(*word)(unsigned i), unsigned n)
{
	const char **words = NEW_ARRAY(n, const char *);
	for (unsigned i = 0; i < n; i++)
		words[i] = word(i);
	const char *best = nearest_word(typed, words, n);
	mem_free(words);
	return best;
}

const char *cli_output_path(const char *arg)
{
	if (!*arg)
		cli_usage("-o: the name of a file was expected, not nothing");
	return arg;
}

uint64_t cli_size(const char *option, struct str arg)
{
	uint64_t bytes;
	if (!size_read(arg, &bytes))
		cli_usage("%s=" STR_FMT ": " SIZE_EXPECTED, option, STR_ARG(arg));
	return bytes;
}

static void cli_say_moved(const char *from, const char *to)
{
	struct err e;
	err_set(&e, ERR_IO, "the disk of %s is full: the rest of what --memory keeps there goes to %s", from, to);
	cli_fail(&e, EXIT_DONE);
}

uint64_t cli_limit_memory(const char *arg)
{
	struct err e, why;
	const uint64_t bytes = cli_size("--memory", str_from(arg));
	spill_tell(cli_say_moved);
	if (spill_limit(bytes, &why) < 0) {
		err_set(&e, why.code, "--memory=%s cannot be kept: %s; everything stays in memory", arg, why.msg);
		cli_fail(&e, EXIT_DONE);
	}
	return bytes;
}

/* Of a command that reads one input: a server has use for a small number, too, since it lets go of inputs. */
static void cli_doubt_memory(const char *arg, uint64_t bytes)
{
	const uint64_t least = 32 << 20; /* what reading takes with all libraries */
	struct err e;
	if (bytes < least) {
		err_set(&e, ERR_LIMIT, "--memory=%s cannot be kept: opscope itself needs 10 to 20 MB; the least is 32M", arg);
		cli_fail(&e, EXIT_DONE);
	}
}

int64_t cli_seconds_ns(const char *option, const char *text, bool zero)
{
	size_t n = strspn(text, "0123456789"), dot = text[n] == '.', after = strspn(text + n + dot, "0123456789");
	int64_t whole = 0, rest = 0;
	if (!n || text[n + dot + after] || (dot && !after) || n > 9 || (!zero && strspn(text, "0.") == strlen(text)))
		cli_usage("%s=%s: a number of seconds%s was expected", option, text, zero ? "" : " above 0");
	str_to_i64((struct str){text, n}, &whole);
	for (size_t i = 0; i < 9; i++)
		rest = rest * 10 + (i < after ? text[n + dot + i] - '0' : 0);
	return whole * 1000000000 + rest;
}

static int64_t parse_number(const char *option, const char *text)
{
	int64_t v;
	if (!str_to_i64(str_from(text), &v) || v < 0)
		cli_usage("--%s=%s: a whole number from 0 to %lld was expected", option, text, (long long)INT64_MAX);
	return v;
}

void cli_set_threads(const char *arg)
{
	int64_t n;
	if (!str_to_i64(str_from(arg), &n) || n < 1)
		cli_usage("--threads=%s: a whole number from 1 on was expected", arg);
	threads_set(n < THREADS_MOST ? (unsigned)n : THREADS_MOST);
}

void cli_warn_threads(void)
{
	static bool said;
	if (threads_odd() && !said)
		fprintf(stderr, "opscope: OPSCOPE_THREADS=%s: a number from 1 on was expected; as many threads read as there are processors\n", threads_odd());
	said = true;
}

static void parse_steps(struct report_args *r, const char *text)
{
	struct err e;
	if (report_args_population(r, str_from(text), &e) < 0)
		cli_usage("--%s", e.msg);
}

static void check_renderer(const char *name)
{
	if (renderer_find(str_from(name)))
		return;
	struct buf list = {0};
	for (const struct renderer *const *r = renderer_registry; *r; r++)
		buf_printf(&list, "%s%s", list.n ? ", " : "", (*r)->name);
	cli_usage("--format=%s: no such format; there are: " STR_FMT, name, STR_ARG(buf_view(&list)));
}

/* Before a long trace is read for nothing. */
static void check_suffix(const struct output_options *o)
{
	if (cli_renderer(o))
		return;
	struct buf list = {0};
	for (const struct renderer *const *r = renderer_registry; *r; r++)
		buf_printf(&list, "%s.%s", list.n ? ", " : "", renderer_suffix(*r));
	cli_usage("-o %s: no format has this suffix; there are: " STR_FMT " (or none: text); --format chooses one for any name",
	          o->path, STR_ARG(buf_view(&list)));
}

enum { KEY_SORT = 0x100, KEY_COLUMNS, KEY_FILTER, KEY_SECTION, KEY_LIMIT, KEY_WIDTH, KEY_MAX_WIDTH, KEY_TITLE, KEY_TIME_UNIT, KEY_FORMAT, KEY_NAMES, KEY_NOTES,
       KEY_INPUT_FORMAT, KEY_CAPTURE, KEY_PROVENANCE, KEY_EXECUTION_TRACE, KEY_COUNTERS, KEY_RUN, KEY_WORKER, KEY_SPAN, KEY_RANK, KEY_ALIGN, KEY_STEPS, KEY_KEY_OP, KEY_DEVICE, KEY_RULES, KEY_GPU,
       KEY_KERNEL_RULES, KEY_AGGREGATION, KEY_THREADS, KEY_MEMORY };

static const struct argp_option output_list[] = {
	{NULL, 0, NULL, 0, "Output:", 2},
	{"format", KEY_FORMAT, "FORMAT", 0, "text (the default), csv, json, html or markdown", 0},
	{NULL, 'o', "FILE", 0, "write to FILE; its suffix .txt, .csv, .json, .html or .md chooses the format", 0},
	{"sort", KEY_SORT, "COLUMN", 0, "numbers descending, text ascending; +COLUMN ascending, -COLUMN descending", 0},
	{"limit", KEY_LIMIT, "N", 0, "at most N rows of each table whose rows are no parts of a sum; 0 or -1 = all (default: 30 as text, else all)", 0},
	{"columns", KEY_COLUMNS, "A,B,...", 0, "these columns, in this order, by id", 0},
	{"filter", KEY_FILTER, "TEXT", 0, "only rows that have TEXT in some text column, any case (not COLUMN=VALUE)", 0},
	{"section", KEY_SECTION, "NAME", 0, "only this table of the report; all: those too that text leaves out unless asked for", 0},
	{"title", KEY_TITLE, "TEXT", 0, "heading of text and HTML", 0},
	{"time-unit", KEY_TIME_UNIT, "ns|us|ms|s", 0, "durations as text and HTML in this unit (default: what suits each)", 0},
	{"max-width", KEY_MAX_WIDTH, "[COLUMN:]N,...", 0, "as text at most N characters of this column, or of all text columns", 0},
	{"names", KEY_NAMES, "short|full", 0, "kernels by their short or full names (default: short as text and HTML; CSV and JSON have both)", 0},
	{"notes", KEY_NOTES, "brief|full", 0, "brief: the note that matters most, one line; full: all (default: brief as text and HTML; CSV and JSON have all)", 0},
	{"width", KEY_WIDTH, "N", 0, "width of text output (default: the environment's COLUMNS, else the terminal's, else unlimited)", 0},
	{0},
};

static void parse_align(struct trace_options *o, const char *text)
{
	static const char *const words[] = {[JOB_ALIGN_AUTO] = "auto", [JOB_ALIGN_ENDS] = "ends", [JOB_ALIGN_NONE] = "none"};
	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(text, words[i]) == 0) {
			o->report.align = (int)i;
			o->report.clocks = NULL;
			return;
		}
	struct err e;
	o->report.clocks = clock_file_read(text, &o->arena, &e);
	if (!o->report.clocks)
		cli_usage("--align=%s: auto, ends, none or a file of clocks was expected (%s)", text, e.msg);
}

/* "3", "0,3,8..11", "all". */
static void parse_rank(struct trace_options *o, const char *arg)
{
	o->every_rank = strcmp(arg, "all") == 0;
	bool list = strchr(arg, ',') || strstr(arg, "..");
	o->has_rank = !o->every_rank && !list;
	o->rank = o->has_rank ? parse_number("rank", arg) : 0;
	o->rank_list = list ? arg : NULL;
	o->ranks = list ? discover_read_ranks(str_from(arg), &o->arena, &o->n_ranks) : NULL;
	if (list && !o->ranks)
		cli_usage("--rank=%s: a rank, some of them as in 0,3,8..11, or all was expected", arg);
}

static enum table_names parse_names(const char *text)
{
	if (strcmp(text, "short") != 0 && strcmp(text, "full") != 0)
		cli_usage("--names=%s: short or full was expected", text);
	return *text == 's' ? NAMES_SHORT : NAMES_FULL;
}

static error_t parse_output(int key, char *arg, struct argp_state *state)
{
	struct output_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		o->limit = -1;
		return 0;
	case ARGP_KEY_SUCCESS:
		check_suffix(o);
		return 0;
	case KEY_FORMAT:
		check_renderer(arg);
		o->format = arg;
		return 0;
	case 'o':
		o->path = cli_output_path(arg);
		return 0;
	case KEY_SORT:
		o->sort = arg;
		return 0;
	case KEY_LIMIT:
		o->limit = strcmp(arg, "-1") == 0 ? 0 : (long)parse_number("limit", arg);
		return 0;
	case KEY_COLUMNS:
		o->columns = arg;
		return 0;
	case KEY_FILTER:
		o->filter = arg;
		return 0;
	case KEY_TITLE:
		o->title = arg;
		return 0;
	case KEY_TIME_UNIT:
		o->time_unit = arg;
		return 0;
	case KEY_MAX_WIDTH:
		o->max_width = arg;
		return 0;
	case KEY_NAMES:
		o->names = parse_names(arg);
		return 0;
	case KEY_NOTES:
		if (strcmp(arg, "brief") != 0 && strcmp(arg, "full") != 0)
			cli_usage("--notes=%s: brief or full was expected", arg);
		o->notes = *arg == 'b' ? NOTES_BRIEF : NOTES_FULL;
		return 0;
	case KEY_SECTION:
		o->section = arg;
		return 0;
	case KEY_WIDTH: {
		int64_t width = parse_number("width", arg);
		o->width = width > 100000 ? 100000 : (unsigned)width;
		return 0;
	}
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp output_argp = {.options = output_list, .parser = parse_output};

static const struct argp_option trace_list_options[] = {
	{NULL, 0, NULL, 0, "Which trace:", 1},
	{"input-format", KEY_INPUT_FORMAT, "FORMAT", 0, "do not recognise the input by its content", 0},
	{"capture", KEY_CAPTURE, "PATH", 0, "a trace of the capture of the graphs that this one replays, or a folder of such (default: capture_traces/ beside it)", 0},
	{"provenance", KEY_PROVENANCE, "PATH", 0, "what torch.compile wrote down about its kernels: a log of TORCH_TRACE, or a folder of such, of tlparse or TORCH_COMPILE_DEBUG (default: torch_trace/ beside the trace)", 0},
	{"execution-trace", KEY_EXECUTION_TRACE, "PATH", 0, "torch's execution trace of the same run and process, or a folder of such: gives ops shapes, types and ids of tensors", 0},
	{"counters", KEY_COUNTERS, "FILE", 0, "hardware counters of its kernels: what ncu --csv --page raw printed of another run of the program", 0},
	{"run", KEY_RUN, "NAME", 0, "of a directory: this run", 0},
	{"worker", KEY_WORKER, "NAME", 0, "this worker", 0},
	{"span", KEY_SPAN, "N", 0, "this span of the worker: 1, 2, ... or default", 0},
	{"rank", KEY_RANK, "RANKS", 0, "these ranks of a distributed job: 2, or 0,3,8..11; all: each rank's rows, one below the other", 0},
	{"align", KEY_ALIGN, "auto|ends|none|FILE", 0, "clocks of the ranks of a job: ends (of collectives), none (as recorded), auto (as recorded where ends coincide so; the default), or a CSV file with the columns rank and offset_ns", 0},
	{"steps", KEY_STEPS, "A..B", 0, "only steps A to B; all: also what lies outside the steps, which most reports leave out; outside: only that", 0},
	{"key-op", KEY_KEY_OP, "NAME", 0, "what each step calls once: a range, op, op id or kernel (default: found, as info says)", 0},
	{"aggregation", KEY_AGGREGATION, "N", 0, "key op and steps of aggregation N of the file (opscope report aggregations)", 0},
	{"device", KEY_DEVICE, "N", 0, "only GPU N, or cpu", 0},
	{"gpu", KEY_GPU, "NAME", 0, "the GPUs are these (\"H100 80GB HBM3\"), whatever the input says or does not say", 0},
	{"rules", KEY_RULES, "FILE", 0, "costs of ops of your own: RULE(...) and GRAD(...) rows as in src/op/rules.def", 0},
	{"kernel-rules", KEY_KERNEL_RULES, "FILE", 0, "names of kernels of your own: KERNEL(...) rows as in src/op/kernels.def", 0},
	{"threads", KEY_THREADS, "N", 0, CLI_THREADS_HELP, 0},
	{"memory", KEY_MEMORY, "SIZE", 0, "use about SIZE of memory at most; the rest of a large trace goes to a file: 1G, 500M (default: what the machine or container has)", 0},
	{0},
};

/* A name of no file is wrong usage; a file that is there and cannot be read is a failure like that of an input. */
static void fail_rules(const char *option, const char *path, struct err *e)
{
	if (e->code != ERR_IO || access(path, R_OK) < 0)
		cli_usage("--%s: %s", option, e->msg);
	err_prefix(e, "--%s", option);
	exit(cli_fail(e, EXIT_INPUT));
}

/* Adds the file's content to *hash. */
static void load_rules(struct trace_options *o, int (*add)(struct user_rules *u, const char *path, struct err *e), const char *option, const char *path, uint64_t *hash)
{
	struct err e;
	if (!o->user_rules)
		o->user_rules = user_rules_new(&o->arena);
	if (add(o->user_rules, path, &e) < 0)
		fail_rules(option, path, &e);
	char piece[4096];
	size_t n;
	FILE *f = fopen(path, "re");
	while (f && (n = fread(piece, 1, sizeof piece, f)) > 0)
		*hash = hash_u64(*hash + hash_bytes(piece, n)) | 1;
	if (!f || ferror(f)) {
		err_set(&e, ERR_IO, "%s: %s", path, strerror(errno));
		fail_rules(option, path, &e);
	}
	fclose(f);
}

void trace_options_release(struct trace_options *o)
{
	arena_release(&o->arena);
}

struct str cli_rules(const struct trace_options *o, bool gpu, char text[CLI_RULES_BYTES])
{
	struct { const char *name; uint64_t hash; } file[] = {{"rules", o->rules}, {"kernel-rules", o->kernel_rules}};
	size_t n;
	*text = 0;
	if (gpu && o->gpu)
		snprintf(text, CLI_RULES_BYTES - 80, "--gpu=%s", o->gpu);
	n = strlen(text);
	for (int i = 0; i < 2; i++)
		if (file[i].hash)
			n += (size_t)snprintf(text + n, CLI_RULES_BYTES - n, "%s--%s=#%016llx", n ? " " : "", file[i].name, (unsigned long long)file[i].hash);
	return str_from(text);
}

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
	struct trace_options *o = state->input;
	switch (key) {
	case KEY_INPUT_FORMAT:
		o->input.format = arg;
		return 0;
	case KEY_PROVENANCE:
		o->input.provenance = arg;
		return 0;
	case KEY_COUNTERS:
		o->input.counters = arg;
		return 0;
	case KEY_CAPTURE:
		o->input.capture = arg;
		return 0;
	case KEY_EXECUTION_TRACE:
		o->input.execution_trace = arg;
		return 0;
	case KEY_RUN:
		o->run = arg;
		return 0;
	case KEY_WORKER:
		o->worker = arg;
		return 0;
	case KEY_SPAN:
		o->span = arg;
		return 0;
	case KEY_ALIGN:
		parse_align(o, arg);
		return 0;
	case KEY_RANK:
		parse_rank(o, arg);
		return 0;
	case KEY_STEPS:
		parse_steps(&o->report, arg);
		return 0;
	case KEY_KEY_OP:
		if (!*arg)
			cli_usage("--key-op=: the name of a range, op, op id or kernel was expected");
		o->report.key_op = arg;
		return 0;
	case KEY_AGGREGATION:
		o->report.aggregation = parse_number("aggregation", arg);
		if (o->report.aggregation <= 0)
			cli_usage("--aggregation=%s: a number from 1 on was expected", arg);
		return 0;
	case KEY_DEVICE:
		o->report.device = arg;
		return 0;
	case KEY_GPU:
		o->gpu = arg;
		return 0;
	case KEY_RULES:
		load_rules(o, user_rules_add_costs, "rules", arg, &o->rules);
		return 0;
	case KEY_THREADS:
		cli_set_threads(arg);
		return 0;
	case KEY_MEMORY:
		cli_doubt_memory(arg, cli_limit_memory(arg));
		return 0;
	case KEY_KERNEL_RULES:
		load_rules(o, user_rules_add_kernels, "kernel-rules", arg, &o->kernel_rules);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp trace_argp = {.options = trace_list_options, .parser = parse_trace};

/* What cli_parse puts around a command's argp: --help, and errors in one line. */
struct outer {
	const struct argp *root;
	void *input;
	const char *command, *args; /* args_doc of the command: ways to call it, a line each */
};

static const struct argp_option help_list[] = {
	{"help", 'h', NULL, 0, "this text", -1},
	{0},
};

/* The names of all long options that a command takes. */
struct option_names {
	const char *v[128];
	unsigned n;
};

static void cli_options_list_options(const struct argp *a, struct option_names *names)
{
	for (const struct argp_option *o = a->options; o && (o->name || o->key || o->doc); o++)
		if (o->name && names->n < sizeof names->v / sizeof names->v[0])
			names->v[names->n++] = o->name;
	for (const struct argp_child *c = a->children; c && c->argp; c++)
		cli_options_list_options(c->argp, names);
}

/* "--gruop-by=name": the option meant, if it is none that there is. */
static const char *option_meant(const struct outer *o, const char *arg)
{
	struct option_names names = {.n = 0};
	char typed[64];
	size_t n = strcspn(arg + 2, "=");
	if (strncmp(arg, "--", 2) != 0 || !n || n >= sizeof typed)
		return NULL;
	memcpy(typed, arg + 2, n);
	typed[n] = 0;
	cli_options_list_options(o->root, &names);
	for (unsigned i = 0; i < names.n; i++)
		if (strcmp(names.v[i], typed) == 0)
			return NULL;
	return nearest_word(typed, names.v, names.n);
}

static void report_bad_option(const struct outer *o, const struct argp_state *state)
{
	int at = state->next > 0 ? state->next - 1 : 0;
	const char *arg = state->argv[at < state->argc ? at : state->argc - 1], *meant = option_meant(o, arg);
	if (meant)
		cli_usage("%s: no option %s; did you mean --%s? (see opscope %s --help)", o->command, arg, meant, o->command);
	if (arg[0] == '-')
		cli_usage("%s: unknown option, or one without its value: %s (see opscope %s --help)", o->command, arg, o->command);
	cli_usage("%s: wrong arguments near '%s' (see opscope %s --help)", o->command, arg, o->command);
}

static void print_usage(const struct outer *o)
{
	struct str rest = str_from(o->args ? o->args : ""), way;
	const char *start = "Usage:";
	while (str_split(&rest, '\n', &way)) {
		printf("%s opscope %s " STR_FMT "%s[OPTION...]\n", start, o->command, STR_ARG(way), way.n ? " " : "");
		start = "   or:";
	}
}

static error_t parse_outer(int key, char *arg, struct argp_state *state)
{
	struct outer *o = state->input;
	char name[64];
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = o->input;
		return 0;
	case 'h':
		snprintf(name, sizeof name, "opscope %s", o->command);
		print_usage(o);
		argp_help(o->root, stdout, ARGP_HELP_LONG | ARGP_HELP_DOC, name);
		exit(EXIT_DONE);
	case ARGP_KEY_ERROR:
		report_bad_option(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void parse_with(const struct argp *a, int argc, char **argv, void *input, unsigned flags)
{
	const struct argp_child children[] = {{a, 0, NULL, 0}, {0}};
	const struct argp root = {.options = help_list, .parser = parse_outer, .children = children};
	struct outer outer = {.root = &root, .input = input, .command = argv[0], .args = a->args_doc};
	/* What is wrong with the words themselves was told above. */
	int why = argp_parse(&root, argc, argv, flags | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &outer);
	struct err e;
	if (!why)
		return;
	if (why == ENOMEM)
		err_nomem(&e);
	else
		err_set(&e, ERR_IO, "the command line cannot be read: %s", strerror(why));
	exit(cli_fail(&e, EXIT_INPUT));
}

void cli_parse(const struct argp *a, int argc, char **argv, void *input)
{
	parse_with(a, argc, argv, input, 0);
}

void cli_parse_in_order(const struct argp *a, int argc, char **argv, void *input)
{
	parse_with(a, argc, argv, input, ARGP_IN_ORDER);
}

const struct argp_child table_children[] = {{&trace_argp, 0, NULL, 1}, {&output_argp, 0, NULL, 2}, {0}};

error_t cli_table_option(int key, char *arg, struct argp_state *state)
{
	struct table_command *c = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->trace;
		state->child_inputs[1] = &c->output;
		c->output.trace = &c->trace;
		return 0;
	case ARGP_KEY_ARG:
		cli_args_add(&c->args, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void cli_parse_table(const char *args_doc, const char *doc, int argc, char **argv, struct table_command *c)
{
	const struct argp a = {.parser = cli_table_option, .children = table_children, .args_doc = args_doc, .doc = doc};
	cli_parse(&a, argc, argv, c);
	cli_refuse_overwrite(c->output.path, &c->args);
}

void cli_refuse_overwrite(const char *path, const struct cli_args *inputs)
{
	struct stat out, in;
	if (!path || stat(path, &out) < 0 || !S_ISREG(out.st_mode))
		return;
	for (int i = 0; i < inputs->n; i++)
		if (stat(inputs->v[i], &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			cli_usage("-o %s is the input: another file was expected", path);
}
