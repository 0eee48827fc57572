#include "predecessors/dlprof/cli_dlprof.h"

#include "analysis/analysis.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *const dlprof_format_name[DLPROF_FORMATS] = {[DLPROF_CSV] = "csv", [DLPROF_JSON] = "json"};

const struct dlprof_report dlprof_reports[DLPROF_REPORTS] = {
#define DLPROF_REPORT(key, other, suffix, title, report, group_by) {key, other, suffix, title, report, group_by},
#include "predecessors/dlprof/cli_reports.def"
#undef DLPROF_REPORT
};

enum { LIST_NONE, LIST_REPORTS, LIST_FORMATS };
enum {
	KEY_DATABASE = 0x200, KEY_NSYS_BASE, KEY_NSYS_ARGS, KEY_RANGE, KEY_DETAILED, KEY_KEY_OP, KEY_START, KEY_STOP, KEY_PATH, KEY_NAME,
	KEY_REPORTS, KEY_FORMATS, KEY_DUMP, KEY_DLDB,
};

static const struct argp_option option_list[] = {
	{NULL, 0, NULL, 0, "What to profile, or what profile to read:", 0},
	{"mode", 'm', "simple|tensorflow1|tensorflow2|tensorrt|trtexec|pytorch", 0, "which columns reports have (default: all); trtexec is tensorrt", 0},
	{"database", KEY_DATABASE, "FILE", 0, "read this: a database of Nsight Systems or DLProf, or any other INPUT; nothing is run", 0},
	{"nsys_database", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"delay", 'y', "SECONDS", 0, "start collecting so much later", 0},
	{"duration", 'd', "SECONDS", 0, "stop collecting, and the program, after that", 0},
	{"nsys_base_name", KEY_NSYS_BASE, "NAME", 0, "name of nsys' files, or of the run directory (default: nsys_profile)", 0},
	{"nsys_base_output_filename", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"nsys_options", KEY_NSYS_ARGS, "ARGS", 0, "arguments of nsys instead of '-t cuda,nvtx -s none'; cuda and nvtx must be traced", 0},
	{"nsys_opts", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"nsys_profile_range", KEY_RANGE, "true|false", 0, "collect between profiler.start() and profiler.stop() only", 0},
	{NULL, 0, NULL, 0, "What to aggregate:", 0},
	{"key_node", KEY_KEY_OP, "NAME", 0, "the op, by name or op id, that each iteration calls once (default: global_step)", 0},
	{"key_op", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"iter_start", KEY_START, "N", 0, "first iteration (default: 0)", 0},
	{"iter_stop", KEY_STOP, "N", 0, "last iteration (default: the last)", 0},
	{NULL, 0, NULL, 0, "What to write:", 0},
	{"reports", KEY_REPORTS, "LIST", 0, "summary, detail, iteration, kernel, tensor, op_type, group_node, expert_systems, or all", 0},
	{"formats", KEY_FORMATS, "LIST", 0, "csv, json (default: csv)", 0},
	{"file_formats", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"output_path", KEY_PATH, "DIR", 0, "where files go; it is made if need be (default: ./)", 0},
	{"base_name", KEY_NAME, "TEXT", 0, "name of the profile, and what the reports' file names begin with (default: dlprof)", 0},
	{"profile_name", 0, NULL, OPTION_ALIAS, NULL, 0},
	{"detailed_mode", KEY_DETAILED, "true|false", 0, "false: without data types and shapes of TensorFlow ops (default: true)", 0},
	{"dump_model_data", KEY_DUMP, "true|false", 0, "write ops, calls and kernels, and what belongs to what, as JSON", 0},
	{"dldb", KEY_DLDB, "no|beside|instead", 0, "dlprof_dldb.sqlite, DLProf's own database, 'beside' dlprof_dldb.opscope, or 'instead' of it (default: no)", 0},
	{"force", 'f', "true|false", 0, "replace files that exist (default: false)", 0},
	{"verbosity", 'v', "quiet|minimal|normal|detailed|diagnostic", 0, "how much to print (default: normal)", 0},
	{"version", 'V', NULL, 0, "print the version", 0},
	{0},
};

/* The place of `word` in a NULL-terminated list; ends the process when it is not there. */
static int choice(const char *option, const char *word, const char *const *list)
{
	struct buf all = {0};
	for (int i = 0; list[i]; i++) {
		if (strcmp(list[i], word) == 0) {
			buf_release(&all);
			return i;
		}
		buf_printf(&all, "%s%s", i ? ", " : "", list[i]);
	}
	cli_usage("dlprof: --%s=%s: expected one of " STR_FMT, option, word, STR_ARG(buf_view(&all)));
}

static bool truth(const char *option, const char *word)
{
	static const char *const list[] = {"false", "true", NULL};
	return choice(option, word, list);
}

static int64_t whole(const char *option, const char *word)
{
	int64_t v;
	if (!str_to_i64(str_from(word), &v) || v < 0)
		cli_usage("dlprof: --%s=%s: the number of an iteration, 0 or more, was expected", option, word);
	return v;
}

static enum dlprof_dldb dldb_of(const char *word)
{
	static const char *const list[] = {[DLDB_NO] = "no", [DLDB_BESIDE] = "beside", [DLDB_INSTEAD] = "instead", NULL};
	return (enum dlprof_dldb)choice("dldb", word, list);
}

static const char *seconds(const char *option, const char *word, bool zero, int64_t *ns)
{
	*ns = cli_seconds_ns(option, word, zero);
	return word;
}

static bool add_report(struct dlprof_options *o, struct str word)
{
	for (int i = 0; i < DLPROF_REPORTS; i++)
		if (str_eqc(word, dlprof_reports[i].key) || str_eqc(word, dlprof_reports[i].other)) {
			o->reports |= 1u << i;
			return true;
		}
	if (!str_eqc(word, "all"))
		return false;
	o->reports = (1u << DLPROF_REPORTS) - 1;
	return true;
}

static bool add_format(struct dlprof_options *o, struct str word)
{
	for (int i = 0; i < DLPROF_FORMATS; i++)
		if (str_eqc(word, dlprof_format_name[i])) {
			o->formats |= 1u << i;
			return true;
		}
	return false;
}

static bool cli_options_add_word(struct dlprof_options *o, unsigned list, struct str word)
{
	return list == LIST_REPORTS ? add_report(o, word) : list == LIST_FORMATS ? add_format(o, word) : false;
}

/* "a,b". Where the list ends with blanks instead, the other words follow as plain words. */
static void add_list(struct dlprof_options *o, unsigned list, const char *option, const char *words)
{
	struct str rest = str_from(words), word;
	while (str_split(&rest, ',', &word))
		if (word.n && !cli_options_add_word(o, list, word))
			cli_usage("dlprof: --%s: no '" STR_FMT "'; there are: %s", option, STR_ARG(word),
			          list == LIST_REPORTS ? "summary, detail, iteration, kernel, tensor, op_type, group_node, expert_systems, all" : "csv, json");
	o->list = list;
}

struct str dlprof_mode_name(enum dlprof_mode mode)
{
	static const char *const names[] = {
		[DLPROF_SIMPLE] = "simple", [DLPROF_TENSORFLOW1] = "tensorflow1", [DLPROF_TENSORFLOW2] = "tensorflow2", [DLPROF_TENSORRT] = "tensorrt",
		[DLPROF_PYTORCH] = "pytorch",
	};
	return mode == DLPROF_AUTO ? (struct str){0} : str_from(names[mode]);
}

static enum dlprof_mode mode_of(const char *word)
{
	static const char *const list[] = {"simple", "tensorflow1", "tensorflow2", "tensorrt", "pytorch", "trtexec", NULL};
	static const enum dlprof_mode mode[] = {DLPROF_SIMPLE, DLPROF_TENSORFLOW1, DLPROF_TENSORFLOW2, DLPROF_TENSORRT, DLPROF_PYTORCH,
	                                        DLPROF_TENSORRT};
	return mode[choice("mode", word, list)];
}

/* A plain word: another one of a list, else the program to profile, with all that follows. */
static void take_word(struct dlprof_options *o, char *word, struct argp_state *state)
{
	if (!state->quoted && o->list && cli_options_add_word(o, o->list, str_from(word)))
		return;
	if (*word == '-')
		cli_usage("dlprof: %s stands behind --, where the program was expected: options stand before it", word);
	o->app = state->argv + state->next - 1;
	o->app_n = state->argc - state->next + 1;
	state->next = state->argc;
}

static error_t cli_options_parse(int key, char *arg, struct argp_state *state)
{
	static const char *const levels[] = {"quiet", "minimal", "normal", "detailed", "diagnostic", NULL};
	struct dlprof_options *o = state->input;
	if (key == ARGP_KEY_ARG) {
		take_word(o, arg, state);
		return 0;
	}
	if (key < ARGP_KEY_ARGS && key > 0)
		o->list = LIST_NONE;
	switch (key) {
	case 'm': o->mode = mode_of(arg); return 0;
	case 'y': o->delay = seconds("dlprof: --delay", arg, true, &o->delay_ns); return 0;
	case 'd': o->duration = seconds("dlprof: --duration", arg, false, &o->duration_ns); return 0;
	case 'f': o->force = truth("force", arg); return 0;
	case 'v': o->verbosity = (enum dlprof_verbosity)choice("verbosity", arg, levels); return 0;
	case 'V':
		puts("opscope " OPSCOPE_VERSION " as dlprof");
		exit(EXIT_DONE);
	case KEY_DATABASE: o->database = arg; return 0;
	case KEY_NSYS_BASE: o->nsys_base = arg; return 0;
	case KEY_NSYS_ARGS: o->nsys_args = arg; return 0;
	case KEY_RANGE: o->profile_range = truth("nsys_profile_range", arg); return 0;
	case KEY_DETAILED: o->detailed = truth("detailed_mode", arg); return 0;
	case KEY_KEY_OP: o->key_op = arg; return 0;
	case KEY_START: o->iter_start = whole("iter_start", arg); o->has_start = true; return 0;
	case KEY_STOP: o->iter_stop = whole("iter_stop", arg); o->has_stop = true; return 0;
	case KEY_PATH: o->output_path = arg; return 0;
	case KEY_NAME: o->profile_name = arg; return 0;
	case KEY_REPORTS: add_list(o, LIST_REPORTS, "reports", arg); return 0;
	case KEY_FORMATS: add_list(o, LIST_FORMATS, "formats", arg); return 0;
	case KEY_DUMP: o->dump_model = truth("dump_model_data", arg); return 0;
	case KEY_DLDB: o->dldb = dldb_of(arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = option_list,
	.parser = cli_options_parse,
	.args_doc = "PROGRAM [ARGUMENT...]\n--database=FILE",
	.doc = "DLProf's command: runs a program under Nsight Systems, or with opscope's own library in it where no nsys is on the PATH, or takes a profile that "
	       "is there, and writes DLProf's reports of it, number by number, and its findings. Options stand before the program. Lists are divided by commas, or by "
	       "blanks and ended by --.",
};

static void cli_options_check(struct dlprof_options *o)
{
	if (!o->database && !o->app_n)
		cli_usage("dlprof: a program to profile was expected, or --database=FILE (see dlprof --help)");
	if (o->has_start && o->has_stop && o->iter_stop < o->iter_start)
		cli_usage("dlprof: --iter_stop=%lld: --iter_start=%lld or more was expected", (long long)o->iter_stop, (long long)o->iter_start);
	if (!o->base_name.n || memchr(o->base_name.p, '/', o->base_name.n))
		cli_usage("dlprof: --base_name=%s: the beginning of a file's name was expected; --output_path chooses the folder",
		          o->profile_name);
	if (memchr(o->base_name.p, '\n', o->base_name.n))
		cli_usage("dlprof: --base_name: a name of one line was expected");
	if (!*o->nsys_base || strchr(o->nsys_base, '/'))
		cli_usage("dlprof: --nsys_base_name=%s: a file's name was expected; --output_path chooses the folder", o->nsys_base);
	if (o->mode != DLPROF_SIMPLE)
		return;
	if (o->key_op || o->has_start || o->has_stop)
		cli_usage("dlprof: --mode=simple has no iterations: --key_node, --iter_start and --iter_stop are for the other modes");
	if (o->reports == (1u << DLPROF_REPORTS) - 1)
		o->reports = 1u << DLPROF_SUMMARY | 1u << DLPROF_KERNEL;
	if (o->reports & ~(1u << DLPROF_SUMMARY | 1u << DLPROF_KERNEL) || o->dump_model)
		cli_usage("dlprof: --mode=simple has the reports summary and kernel; the others are about ops");
}

void dlprof_parse(int argc, char **argv, struct dlprof_options *o)
{
	*o = (struct dlprof_options){.nsys_base = "nsys_profile", .output_path = ".", .verbosity = DLPROF_NORMAL, .detailed = true};
	cli_parse_in_order(&argp, argc, argv, o);
	o->base_name = arena_str(&o->arena, str_from(o->profile_name ? o->profile_name : "dlprof"));
	for (size_t i = 0; i < o->base_name.n; i++)
		if (o->base_name.p[i] == ' ')
			((char *)(uintptr_t)o->base_name.p)[i] = '_';
	if (!o->formats)
		o->formats = 1u << DLPROF_CSV;
	cli_options_check(o);
}

void dlprof_put_safe(struct buf *line)
{
	struct buf safe = {0};
	utf8_put_safe(&safe, buf_view(line));
	fwrite(safe.p, 1, safe.n, stdout);
	putchar('\n');
	buf_release(&safe);
}

void dlprof_say(const struct dlprof_options *o, enum dlprof_verbosity from, const char *fmt, ...)
{
	char text[4096], clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;
	struct buf line = {0};
	va_list ap;
	if (o->verbosity < from)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (localtime_r(&now, &tm))
		strftime(clock, sizeof clock, "%H:%M:%S", &tm);
	buf_printf(&line, "[DLProf-%s] %s", clock, text);
	dlprof_put_safe(&line);
	buf_release(&line);
	fflush(stdout);
}

const char *dlprof_path(struct dlprof_options *o, const char *fmt, ...)
{
	char name[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	size_t n = strlen(o->output_path);
	return arena_printf(&o->arena, "%s%s%s", o->output_path, n && o->output_path[n - 1] == '/' ? "" : "/", name).p;
}

int dlprof_set_key(struct profile *p, const char *key_op, struct err *e)
{
	struct str key = str_from(key_op ? key_op : "");
	if (!str_eq(key, p->key_op)) {
		p->key_op = key.n ? arena_str(&p->arena, key) : (struct str){0};
		p->passes_done &= ~(unsigned)PASS_STEPS;
	}
	return analysis_run(p, PASS_STEPS, e);
}
