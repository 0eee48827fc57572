/* Reports of Nsight Systems itself (.nsys-rep, .qdrep, .qdstrm): a format of its own, which only nsys reads. Where nsys is on
 * the PATH it is asked to export the report into a folder of our own; else the user is told what to run. */
#include "input/input.h"

#include "base/mem.h"
#include "base/program.h"
#include "io/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern const struct input input_nsys;

/* Of the files that nsys makes. */
static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
enum { SUFFIXES = sizeof suffixes / sizeof suffixes[0] };

/* Signals that would leave the folder behind are blocked: in a program whose signal handler removes leftovers (io/leftovers.h) until nsys has ended,
 * elsewhere until the folder is gone. */
struct nsys_rep_held {
	sigset_t set, before;
	int listed[SUFFIXES + 1]; /* the folder and the files, among the leftovers */
};

static void hold_signals(struct nsys_rep_held *h)
{
	sigemptyset(&h->set);
	sigaddset(&h->set, SIGINT);
	sigaddset(&h->set, SIGTERM);
	sigaddset(&h->set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &h->set, &h->before);
}

/* Its status as waitpid gives it; a signal that ends us ends it first. -1: lost. */
static int nsys_rep_wait_for(pid_t pid, const struct nsys_rep_held *h)
{
	static const struct timespec moment = {.tv_nsec = 50000000};
	int status;
	for (;;) {
		pid_t done = waitpid(pid, &status, WNOHANG);
		if (done == pid || (done < 0 && errno != EINTR))
			return done == pid ? status : -1;
		int s = sigtimedwait(&h->set, NULL, &moment);
		if (s > 0) {
			kill(pid, s);
			raise(s); /* held until the folder is gone */
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
			return status ? status : -1;
		}
	}
}

/* Runs nsys without a shell, its output thrown away: 0, or -1 with the reason. `path` does not begin with '-'. */
static int nsys_rep_export_to(const char *path, const char *out, const struct nsys_rep_held *h, struct err *e)
{
	char *const argv[] = {"nsys", "export", "--type", "sqlite", "--force-overwrite", "true", "--output", (char *)(uintptr_t)out,
	                      (char *)(uintptr_t)path, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t pid;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &h->before);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	int rc = posix_spawnp(&pid, "nsys", &actions, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (rc)
		return err_set(e, ERR_IO, "%s: cannot run nsys: %s", path, strerror(rc));
	int status = nsys_rep_wait_for(pid, h);
	if (status < 0)
		return err_set(e, ERR_IO, "%s: nsys was lost", path);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, ERR_FORMAT, "%s: `nsys export --type sqlite` failed with status %d: run it by hand, and give its result to opscope",
		               path, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}

static int read_exported(const char *file, const char *path, struct profile *p, struct err *e)
{
	struct source *s = source_open(file, e);
	if (!s)
		return err_prefix(e, "%s: nsys wrote no database", path);
	int rc = input_nsys.read(s, p, e);
	source_close(s);
	return rc;
}

/* The folder that nsys exports to, and what waits until it is gone. */
struct export {
	char folder[256], file[300];
	struct nsys_rep_held h;
	struct mem_undo undo;
};

/* Calls see(x, i, path) for each file that nsys names after its output, and for the folder behind them. */
static void each_leftover(struct export *x, void (*see)(struct export *x, int i, const char *path))
{
	char name[sizeof x->file + 16];
	for (int i = 0; i < SUFFIXES; i++) {
		snprintf(name, sizeof name, "%s%s", x->file, suffixes[i]);
		see(x, i, name);
	}
	see(x, SUFFIXES, x->folder);
}

static void list_one(struct export *x, int i, const char *path)
{
	x->h.listed[i] = leftover_add(path);
}

static void remove_one(struct export *x, int i, const char *path)
{
	if (i < SUFFIXES)
		unlink(path);
	else
		rmdir(path);
	leftover_drop(x->h.listed[i]);
}

/* Removes the files and the folder, then lets signals through. False: something is left. */
static bool end_export(struct export *x)
{
	mem_undo_end(&x->undo);
	each_leftover(x, remove_one);
	bool gone = access(x->folder, F_OK) < 0;
	pthread_sigmask(SIG_SETMASK, &x->h.before, NULL);
	return gone;
}

static void nsys_rep_abandon(void *x)
{
	end_export(x);
}

static int nsys_rep_convert(const char *path, struct profile *p, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	struct export x;
	if (snprintf(x.folder, sizeof x.folder, "%s/opscope-nsys-XXXXXX", tmp && *tmp ? tmp : "/tmp") >= (int)sizeof x.folder)
		return err_set(e, ERR_IO, "%s: the name of the folder for the export, %s, is too long", path, tmp);
	hold_signals(&x.h);
	if (!mkdtemp(x.folder)) {
		err_set(e, ERR_IO, "%s: cannot make a folder for the export, %s: %s", path, x.folder, strerror(errno));
		pthread_sigmask(SIG_SETMASK, &x.h.before, NULL);
		return -1;
	}
	snprintf(x.file, sizeof x.file, "%s/export.sqlite", x.folder);
	each_leftover(&x, list_one);
	mem_undo_begin(&x.undo, nsys_rep_abandon, &x);
	int rc = nsys_rep_export_to(path, x.file, &x.h, e);
	if (leftovers_see_signals())
		pthread_sigmask(SIG_SETMASK, &x.h.before, NULL);
	if (rc == 0)
		rc = read_exported(x.file, path, p, e);
	if (!end_export(&x))
		diag_add(&p->diags, "left-behind", DIAG_NOTE, -1, "nsys left files in %s", x.folder);
	return rc;
}

static int nsys_rep_read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s);
	if (strcmp(path, "-") == 0 || program_find("nsys", NULL) != 0)
		return err_set(e, ERR_FORMAT, "%s: a report of Nsight Systems, which only nsys can read: run `nsys export --type sqlite %s%s` "
		               "where it is installed, and give the .sqlite file to opscope", path, path[0] == '-' && path[1] ? "./" : "", path);
	/* What begins with '-' would be an option to nsys. */
	struct buf b = {0};
	buf_printf(&b, "%s%s", path[0] == '-' ? "./" : "", path);
	buf_char(&b, 0);
	int rc = nsys_rep_convert(b.p, p, e);
	buf_release(&b);
	return rc;
}

/* Their first bytes are not documented, and are no text: the name has to help. */
static int nsys_rep_sniff(struct str head, const char *path, struct err *e)
{
	static const char *const suffix[] = {".nsys-rep", ".qdrep", ".qdstrm"};
	if (str_starts(head, STR("SQLite format 3")) || !path)
		return 0;
	for (size_t i = 0; i < sizeof suffix / sizeof suffix[0]; i++)
		if (str_ends(str_from(path), str_from(suffix[i])))
			return 60;
	return 0;
}

const struct input input_nsys_rep = {
	.name = "nsys-rep",
	.help = "Nsight Systems reports (.nsys-rep, .qdrep), read through nsys where it is on the PATH",
	.sniff = nsys_rep_sniff,
	.read = nsys_rep_read_file,
};
