/* Runs a program under Nsight Systems, as DLProf does: nsys profile -t cuda,nvtx -s none --show-output=true --export=sqlite -o DIR/NAME. */
#include "cli/dlprof.h"

#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

struct command_line {
	char **v;
	int n, cap;
};

static void push(struct command_line *c, const char *word)
{
	MEM_GROW(c->v, c->cap, c->n + 2);
	c->v[c->n++] = (char *)(uintptr_t)word;
	c->v[c->n] = NULL;
}

static void push_fmt(struct dlprof_options *o, struct command_line *c, const char *option, const char *value)
{
	push(c, arena_printf(&o->arena, "%s%s", option, value).p);
}

/* Words as a shell divides them, without expanding anything: '...', "...", and \ before a character. */
static void push_words(struct dlprof_options *o, struct command_line *c, const char *text)
{
	char quote = 0;
	bool open = false;
	struct buf word = {0};
	for (const char *at = text;; at++) {
		bool ends = !*at || (!quote && strchr(" \t\n", *at));
		if (ends && open)
			push(c, arena_str(&o->arena, word.n ? buf_view(&word) : STR("")).p);
		if (!*at)
			break;
		if (ends) {
			open = false;
			buf_clear(&word);
			continue;
		}
		open = true;
		if (quote ? *at == quote : *at == '\'' || *at == '"')
			quote = quote ? 0 : *at;
		else if (*at == '\\' && quote != '\'' && at[1])
			buf_char(&word, *++at);
		else
			buf_char(&word, *at);
	}
	buf_release(&word);
}

/* Some people write the quotes inside the quotes: '"-t cuda,nvtx"'. */
static const char *without_quotes(struct dlprof_options *o, const char *text)
{
	size_t n = strlen(text);
	bool quoted = n > 2 && text[0] == '"' && text[n - 1] == '"' && !memchr(text + 1, '"', n - 2);
	return quoted ? arena_str(&o->arena, (struct str){text + 1, n - 2}).p : text;
}

static void build(struct dlprof_options *o, const char *base, struct command_line *c)
{
	const char *args = without_quotes(o, o->nsys_args ? o->nsys_args : "-t cuda,nvtx -s none");
	push(c, "nsys");
	push(c, "profile");
	push_words(o, c, args);
	push_fmt(o, c, "--show-output=", o->verbosity <= DLPROF_MINIMAL ? "false" : "true");
	push(c, "--export=sqlite");
	if (o->force)
		push(c, "--force-overwrite=true");
	if (o->delay)
		push_fmt(o, c, "--delay=", o->delay);
	if (o->duration)
		push_fmt(o, c, "--duration=", o->duration);
	if (o->profile_range) {
		push(c, "--capture-range=cudaProfilerApi");
		push(c, "--capture-range-end=stop");
	}
	push(c, "-o");
	push(c, base);
	for (int i = 0; i < o->app_n; i++)
		push(c, o->app[i]);
	if (o->nsys_args && (!strstr(args, "cuda") || !strstr(args, "nvtx")))
		dlprof_say(o, DLPROF_MINIMAL, "Warning: --nsys_options should trace cuda and nvtx: without them there are no kernels or no ops");
}

static void tell_command(const struct dlprof_options *o, const struct command_line *c)
{
	struct buf b = {0};
	for (int i = 0; i < c->n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", c->v[i]);
	dlprof_say(o, DLPROF_DETAILED, "Running " STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
}

/* The signals that end a program, with SIGCHLD: while nsys runs they wait for us. */
static void watched(sigset_t *s)
{
	static const int list[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
	sigemptyset(s);
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
		sigaddset(s, list[i]);
}

/* The child starts as if we had never changed a signal. */
static int spawn(char **argv, const sigset_t *mask, pid_t *pid)
{
	posix_spawnattr_t a;
	sigset_t ignored;
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGPIPE);
	sigaddset(&ignored, SIGXFSZ);
	posix_spawnattr_init(&a);
	posix_spawnattr_setflags(&a, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&a, &ignored);
	posix_spawnattr_setsigmask(&a, mask);
	int rc = posix_spawnp(pid, "nsys", NULL, &a, argv, environ);
	posix_spawnattr_destroy(&a);
	return rc;
}

/* Hands on what we are told to end by, except what the terminal sends to nsys as well. Its wait status. */
static int wait_for(pid_t pid, const sigset_t *set)
{
	int status = 0;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		siginfo_t info;
		int sig = sigwaitinfo(set, &info);
		if (sig == SIGTERM || sig == SIGHUP || ((sig == SIGINT || sig == SIGQUIT) && info.si_code <= 0))
			kill(pid, sig);
	}
	return status;
}

static int run(struct command_line *c, int *wait_status, struct err *e)
{
	sigset_t set, before;
	pid_t pid;
	watched(&set);
	sigprocmask(SIG_BLOCK, &set, &before);
	int rc = spawn(c->v, &before, &pid);
	if (rc == 0)
		*wait_status = wait_for(pid, &set);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (rc == ENOENT)
		return err_set(e, ERR_IO, "dlprof: nsys was not found on the PATH: Nsight Systems has to be installed to profile a program; "
		               "--database=FILE reads a profile that is there");
	return rc ? err_set(e, ERR_IO, "dlprof: nsys cannot be run: %s", strerror(rc)) : 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What nsys may leave, the best first; a report is exported when it is read. */
static const char *const suffixes[] = {"sqlite", "nsys-rep", "qdrep"};
enum { N_SUFFIXES = sizeof suffixes / sizeof suffixes[0] };

static const char *written(struct dlprof_options *o, const char *base, const struct stat *before)
{
	struct stat now;
	for (int i = 0; i < N_SUFFIXES; i++) {
		const char *path = arena_printf(&o->arena, "%s.%s", base, suffixes[i]).p;
		if (stat(path, &now) == 0 && S_ISREG(now.st_mode) && !same_file(&now, &before[i]))
			return path;
	}
	return NULL;
}

const char *dlprof_run_nsys(struct dlprof_options *o, int *status)
{
	struct stat before[N_SUFFIXES];
	struct command_line c = {0};
	struct err e;
	int wait_status = 0;
	const char *base = dlprof_path(o, "%s", o->nsys_base), *profile = NULL;
	for (int i = 0; i < N_SUFFIXES; i++) {
		const char *path = arena_printf(&o->arena, "%s.%s", base, suffixes[i]).p;
		before[i] = (struct stat){0};
		if (stat(path, &before[i]) == 0 && !o->force) {
			err_set(&e, ERR_IO, "dlprof: %s is there already: --force=true replaces it, --nsys_base_name=NAME chooses another name", path);
			*status = cli_fail(&e, EXIT_INPUT);
			return NULL;
		}
	}
	build(o, base, &c);
	tell_command(o, &c);
	if (run(&c, &wait_status, &e) < 0) {
		*status = cli_fail(&e, EXIT_INPUT);
	} else {
		*status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
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
	mem_free(c.v);
	return profile;
}
