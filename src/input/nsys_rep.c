/* Reports of Nsight Systems itself (.nsys-rep, .qdrep, .qdstrm): a format of its own, which only nsys reads. Where nsys is on
 * the PATH it is asked to export the report into a folder of our own; else the user is told what to run. */
#include "input/input.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
extern const struct input input_nsys;

static bool is_on_path(const char *program)
{
	struct str dirs = str_from(getenv("PATH")), dir;
	bool found = false;
	while (!found && dirs.n && str_split(&dirs, ':', &dir)) {
		struct buf b = {0};
		buf_printf(&b, STR_FMT "/%s", STR_ARG(dir), program);
		buf_char(&b, 0);
		found = dir.n && access(b.p, X_OK) == 0;
		buf_release(&b);
	}
	return found;
}

/* Runs nsys without a shell, its output thrown away: 0, or -1 with the reason. */
static int export_to(const char *path, const char *out, struct err *e)
{
	char *const argv[] = {"nsys", "export", "--type", "sqlite", "--force-overwrite", "true", "--output", (char *)(uintptr_t)out,
	                      (char *)(uintptr_t)path, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = 0;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
	int rc = posix_spawnp(&pid, "nsys", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc)
		return err_set(e, ERR_IO, "%s: cannot run nsys: %s", path, strerror(rc));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(e, ERR_IO, "%s: nsys was lost: %s", path, strerror(errno));
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

static int read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s), *tmp = getenv("TMPDIR");
	if (strcmp(path, "-") == 0 || !is_on_path("nsys"))
		return err_set(e, ERR_FORMAT, "%s: a report of Nsight Systems, which only nsys can read: run `nsys export --type sqlite %s` "
		               "where it is installed, and give the .sqlite file to opscope", path, path);
	char folder[256], file[300];
	if (snprintf(folder, sizeof folder, "%s/opscope-nsys-XXXXXX", tmp && *tmp ? tmp : "/tmp") >= (int)sizeof folder || !mkdtemp(folder))
		return err_set(e, ERR_IO, "%s: cannot make a folder for the export: %s", path, strerror(errno));
	snprintf(file, sizeof file, "%s/export.sqlite", folder);
	int rc = export_to(path, file, e);
	if (rc == 0)
		rc = read_exported(file, path, p, e);
	unlink(file);
	if (rmdir(folder) < 0 && rc == 0)
		diag_add(&p->diags, "left-behind", DIAG_NOTE, -1, "nsys left files in %s", folder);
	return rc;
}

/* Their first bytes are not documented, and are no text: the name has to help. */
static int sniff(struct str head, const char *path)
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
	.sniff = sniff,
	.read = read_file,
};
