/* Runs a program under Nsight Systems, as DLProf does: nsys profile -t cuda,nvtx -s none --show-output=true --export=sqlite -o DIR/NAME. */
#include "predecessors/dlprof/cli_dlprof.h"

#include "record/nsys.h"

#include <sys/stat.h>

static void push_option(struct words *c, const char *option, const char *value)
{
	words_printf(c, "%s%s", option, value);
}

/* Some people write the quotes inside the quotes: '"-t cuda,nvtx"'. */
static const char *without_quotes(struct dlprof_options *o, const char *text)
{
	size_t n = strlen(text);
	bool quoted = n > 2 && text[0] == '"' && text[n - 1] == '"' && !memchr(text + 1, '"', n - 2);
	return quoted ? arena_str(&o->arena, (struct str){text + 1, n - 2}).p : text;
}

static void cli_nsys_build(struct dlprof_options *o, const char *base, struct words *c)
{
	const char *args = without_quotes(o, o->nsys_args ? o->nsys_args : "-t cuda,nvtx -s none");
	words_add(c, "nsys");
	words_add(c, "profile");
	words_split(c, args);
	push_option(c, "--show-output=", o->verbosity <= DLPROF_MINIMAL ? "false" : "true");
	words_add(c, "--export=sqlite");
	if (o->force)
		words_add(c, "--force-overwrite=true");
	if (o->delay)
		push_option(c, "--delay=", o->delay);
	if (o->duration)
		push_option(c, "--duration=", o->duration);
	if (o->profile_range) {
		words_add(c, "--capture-range=cudaProfilerApi");
		words_add(c, "--capture-range-end=stop");
	}
	words_add(c, "-o");
	words_add(c, base);
	for (int i = 0; i < o->app_n; i++)
		words_add(c, o->app[i]);
	if (o->nsys_args && (!strstr(args, "cuda") || !strstr(args, "nvtx")))
		dlprof_say(o, DLPROF_MINIMAL, "Warning: --nsys_options should trace cuda and nvtx: without them there are no kernels or no ops");
}

static void tell_command(const struct dlprof_options *o, const struct words *c)
{
	struct buf b = {0};
	for (int i = 0; i < c->n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", c->v[i]);
	dlprof_say(o, DLPROF_DETAILED, "Running " STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
}

static int cli_nsys_run(const struct dlprof_options *o, const struct words *c, int *wait_status, struct err *e)
{
	struct words warnings = {0};
	struct launched done;
	int rc = nsys_wait(c->v, NULL, o->output_path, &done, &warnings, e);
	for (int i = 0; i < warnings.n; i++)
		dlprof_say(o, DLPROF_MINIMAL, "Warning: %s", warnings.v[i]);
	words_release(&warnings);
	*wait_status = done.wait_status;
	return rc < 0 ? err_prefix(e, "dlprof") : 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What nsys may leave, the best first; a report is exported when it is read. */
enum { N_FILES = NSYS_REPORTS + 1 };

static const char *cli_nsys_file_of(struct dlprof_options *o, const char *base, int i)
{
	return arena_printf(&o->arena, "%s.%s", base, i ? nsys_suffix[i - 1] : "sqlite").p;
}

static const char *written(struct dlprof_options *o, const char *base, const struct stat *before)
{
	struct stat now;
	for (int i = 0; i < N_FILES; i++) {
		const char *path = cli_nsys_file_of(o, base, i);
		if (stat(path, &now) == 0 && S_ISREG(now.st_mode) && !same_file(&now, &before[i]))
			return path;
	}
	return NULL;
}

const char *dlprof_run_nsys(struct dlprof_options *o, int *status)
{
	struct stat before[N_FILES];
	struct words c = {0};
	struct err e;
	int wait_status = 0;
	const char *base = dlprof_path(o, "%s", o->nsys_base), *profile = NULL;
	for (int i = 0; i < N_FILES; i++) {
		const char *path = cli_nsys_file_of(o, base, i);
		before[i] = (struct stat){0};
		if (stat(path, &before[i]) == 0 && !o->force) {
			err_set(&e, ERR_IO, "dlprof: %s is there already: --force=true replaces it, --nsys_base_name=NAME chooses another name", path);
			*status = cli_fail(&e, EXIT_INPUT);
			return NULL;
		}
	}
	cli_nsys_build(o, base, &c);
	tell_command(o, &c);
	if (cli_nsys_run(o, &c, &wait_status, &e) < 0) {
		*status = cli_fail(&e, EXIT_INPUT);
	} else {
		*status = launch_status(wait_status);
		profile = written(o, base, before);
		if (!profile) {
			err_set(&e, ERR_IO, "dlprof: nsys ended with status %d and wrote no %s.sqlite", *status, base);
			*status = cli_fail(&e, *status ? *status : EXIT_INPUT);
		} else if (*status) {
			dlprof_say(o, DLPROF_MINIMAL, "nsys ended with status %d; what it wrote is read all the same", *status);
		} else {
			dlprof_say(o, DLPROF_NORMAL, "nsys has profiled the program");
		}
	}
	words_release(&c);
	return profile;
}
