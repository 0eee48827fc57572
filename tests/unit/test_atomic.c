/* Files that appear whole or not at all: full disks, links, permissions, what other users and ended processes left. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "io/atomic.h"
#include "io/left.h"
#include "io/leftovers.h"

static char folder[] = "/tmp/opscope_atomic_XXXXXX";

static int make_folder(void **state)
{
	signal(SIGXFSZ, SIG_IGN);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int empty_folder(void **state)
{
	return system("find . -mindepth 1 -delete");
}

static int remove_folder(void **state)
{
	return empty_folder(state) || chdir("/") || rmdir(folder) ? -1 : 0;
}

static int put(const char *path, const char *text, struct err *e)
{
	struct atomic_file f;
	*e = (struct err){0};
	if (atomic_begin(&f, path, e))
		return -1;
	return atomic_write(&f, str_from(text), e) ? atomic_abort(&f) : atomic_commit(&f, e);
}

static int put_any(const char *path, const char *text, struct err *e)
{
	struct atomic_file f;
	*e = (struct err){0};
	if (atomic_begin_any(&f, path, e))
		return -1;
	return atomic_write(&f, str_from(text), e) ? atomic_abort(&f) : atomic_commit(&f, e);
}

static void assert_holds(const char *path, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	got[fread(got, 1, sizeof got - 1, f)] = 0;
	fclose(f);
	assert_string_equal(got, text);
}

static void assert_files(int n)
{
	char command[64];
	snprintf(command, sizeof command, "test $(find . -mindepth 1 | wc -l) -eq %d", n);
	assert_int_equal(system(command), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static void new_and_replaced(void **state)
{
	struct err e;
	mode_t old = umask(027);
	assert_int_equal(put("a", "one", &e), 0);
	umask(old);
	assert_holds("a", "one");
	assert_int_equal(mode_of("a") & 0777, 0640);
	assert_int_equal(chmod("a", 0604), 0);
	assert_int_equal(put("a", "two", &e), 0);
	assert_holds("a", "two");
	assert_int_equal(mode_of("a") & 0777, 0604);
	assert_files(1);
}

static void aborted(void **state)
{
	struct err e;
	struct atomic_file f;
	assert_int_equal(put("a", "one", &e), 0);
	assert_int_equal(atomic_begin(&f, "a", &e), 0);
	assert_non_null(strchr(f.temp, '/'));
	assert_int_equal(atomic_write(&f, STR("two"), &e), 0);
	assert_files(2);
	assert_int_equal(atomic_abort(&f), -1);
	assert_holds("a", "one");
	assert_files(1);
}

static void links(void **state)
{
	struct err e;
	assert_int_equal(mkdir("d", 0777), 0);
	assert_int_equal(put("d/file", "one", &e), 0);
	assert_int_equal(symlink("file", "d/near"), 0);
	assert_int_equal(symlink("d/near", "far"), 0);
	assert_int_equal(put("far", "two", &e), 0);
	assert_true(S_ISLNK(mode_of("far")) && S_ISLNK(mode_of("d/near")) && S_ISREG(mode_of("d/file")));
	assert_holds("d/file", "two");
	assert_files(4);
	/* Where a link points may not be there yet. */
	assert_int_equal(unlink("d/file"), 0);
	assert_int_equal(put("far", "three", &e), 0);
	assert_true(S_ISLNK(mode_of("far")) && S_ISLNK(mode_of("d/near")) && S_ISREG(mode_of("d/file")));
	assert_holds("far", "three");
	assert_files(4);
}

static void links_in_a_circle(void **state)
{
	struct err e;
	assert_int_equal(symlink("b", "a"), 0);
	assert_int_equal(symlink("a", "b"), 0);
	assert_int_equal(put("a", "one", &e), -1);
	assert_non_null(strstr(e.msg, "a: cannot follow the link: Too many levels of symbolic links"));
	assert_files(2);
}

/* Only what is not there is new: a link may lead to where nobody can look. */
static void link_to_nowhere(void **state)
{
	struct err e;
	char name[300];
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	assert_int_equal(symlink(name, "a"), 0);
	assert_int_equal(put("a", "one", &e), -1);
	assert_non_null(strstr(e.msg, "a: cannot look at it: File name too long"));
	assert_true(S_ISLNK(mode_of("a")));
	assert_files(1);
}

/* As the kernel does with protected_symlinks and protected_regular, whether it does or not. */
static void of_another_user(void **state)
{
	enum { OTHER = 12345 };
	struct err e;
	if (geteuid() != 0)
		skip_because("only root can give a file away");
	assert_int_equal(mkdir("shared", 0777), 0);
	assert_int_equal(chmod("shared", 01777), 0);
	assert_int_equal(put("aim", "one", &e), 0);
	static const char *const links[] = {"shared/link", "shared/new"};
	assert_int_equal(symlink("../aim", links[0]), 0);
	assert_int_equal(symlink("../not_yet", links[1]), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lchown(links[i], OTHER, OTHER), 0);
		assert_int_equal(put(links[i], "two", &e), -1);
		assert_non_null(strstr(e.msg, "a link of another user, in a folder where everyone may write: it is not followed"));
	}
	assert_holds("aim", "one");
	assert_int_equal(put("shared/file", "one", &e), 0);
	assert_int_equal(chown("shared/file", OTHER, OTHER), 0);
	assert_int_equal(put("shared/file", "two", &e), -1);
	assert_non_null(strstr(e.msg, "a file of another user"));
	assert_holds("shared/file", "one");
	assert_files(5);
	/* Whose folder it is may put there what he likes; and in a folder of one's own, links are followed. */
	assert_int_equal(chown("shared", OTHER, OTHER), 0);
	assert_int_equal(put("shared/link", "two", &e), 0);
	assert_int_equal(chown("shared", 0, 0), 0);
	assert_int_equal(chmod("shared", 0777), 0);
	assert_int_equal(put("shared/link", "three", &e), 0);
	assert_holds("aim", "three");
	assert_files(5);
}

/* A pipe that was opened to be read and written: nobody waits for the other end. */
static void assert_in_pipe(int fd, const char *text)
{
	char got[64] = "";
	assert_int_equal(read(fd, got, sizeof got - 1), strlen(text));
	assert_string_equal(got, text);
}

/* What is no file is written to as it stands, by whatever path it is reached. */
static void as_it_stands(void **state)
{
	struct err e;
	int ends[2];
	char path[64];
	assert_int_equal(put_any("file", "one", &e), 0);
	assert_holds("file", "one");
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(symlink("fifo", "link"), 0);
	int fd = open("fifo", O_RDWR | O_NONBLOCK);
	assert_int_equal(put_any("fifo", "two", &e), 0);
	assert_in_pipe(fd, "two");
	assert_int_equal(put_any("link", "three", &e), 0);
	assert_in_pipe(fd, "three");
	close(fd);
	assert_true(S_ISFIFO(mode_of("fifo")));
	assert_int_equal(pipe(ends), 0);
	static const char *const folders[] = {"/dev/fd", "/proc/self/fd"};
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%d", folders[i], ends[1]);
		assert_int_equal(put_any(path, "four", &e), 0);
		assert_in_pipe(ends[0], "four");
	}
	assert_int_equal(symlink(path, "to_descriptor"), 0);
	assert_int_equal(put_any("to_descriptor", "five", &e), 0);
	assert_in_pipe(ends[0], "five");
	assert_int_equal(put_any("/dev/null", "six", &e), 0);
	assert_int_equal(put_any("/dev/full", "six", &e), -1);
	assert_non_null(strstr(e.msg, "/dev/full: cannot write: No space left on device"));
	assert_int_equal(put_any(".", "six", &e), -1);
	assert_non_null(strstr(e.msg, ".: cannot write: Is a directory"));
	close(ends[0]);
	close(ends[1]);
	assert_files(4);
}

/* In a folder where everyone may write, a link, a pipe or a device of another user is not written to, whatever it leads to. */
static void as_it_stands_of_another_user(void **state)
{
	enum { OTHER = 12345 };
	struct err e;
	if (geteuid() != 0)
		skip_because("only root can give a file away");
	assert_int_equal(mkdir("shared", 0777), 0);
	assert_int_equal(chmod("shared", 01777), 0);
	assert_int_equal(mkfifo("shared/fifo", 0666), 0);
	int fd = open("shared/fifo", O_RDWR | O_NONBLOCK);
	assert_int_equal(symlink("fifo", "shared/own"), 0);
	assert_int_equal(put_any("shared/own", "one", &e), 0);
	assert_in_pipe(fd, "one");
	assert_int_equal(chown("shared/fifo", OTHER, OTHER), 0);
	static const char *const paths[] = {"shared/fifo", "shared/own"};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(put_any(paths[i], "two", &e), -1);
		assert_non_null(strstr(e.msg, "a pipe or device of another user, in a folder where everyone may write: it is not written to"));
	}
	close(fd);
	assert_int_equal(symlink("/dev/null", "shared/link"), 0);
	assert_int_equal(lchown("shared/link", OTHER, OTHER), 0);
	assert_int_equal(put_any("shared/link", "two", &e), -1);
	assert_non_null(strstr(e.msg, "a link of another user, in a folder where everyone may write: it is not followed"));
	assert_files(4);
}

/* What is written is as closed to others as what it replaces, from the beginning. */
static void permissions_while_writing(void **state)
{
	struct err e;
	struct atomic_file f;
	struct stat st;
	mode_t old = umask(0);
	assert_int_equal(put("a", "one", &e), 0);
	assert_int_equal(chmod("a", 0600), 0);
	if (geteuid() == 0)
		assert_int_equal(chown("a", 12345, 12346), 0);
	assert_int_equal(atomic_begin(&f, "a", &e), 0);
	assert_int_equal(mode_of(f.temp) & 0777, 0600);
	assert_int_equal(atomic_write(&f, STR("two"), &e), 0);
	assert_int_equal(atomic_commit(&f, &e), 0);
	umask(old);
	assert_int_equal(mode_of("a") & 0777, 0600);
	assert_int_equal(stat("a", &st), 0);
	assert_true(geteuid() != 0 || (st.st_uid == 12345 && st.st_gid == 12346));
	assert_files(1);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0666);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

/* Only files of the exact name, that nobody holds. */
static void left_by_others(void **state)
{
	struct err e;
	struct atomic_file f;
	static const char *const kept[] = {".opscope-0123456789abcde", ".opscope-0123456789abcdef0", ".opscope-0123456789abcdeg", "opscope-0123456789abcdef"};
	for (int i = 0; i < 4; i++)
		write_text(kept[i], "mine");
	assert_int_equal(symlink("opscope-0123456789abcdef", ".opscope-00000000000000bb"), 0);
	write_text(".opscope-0123456789abcdef", "left");
	write_text(".opscope-1111111111111111", "being written");
	int fd = open(".opscope-1111111111111111", O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(atomic_begin(&f, "b", &e), 0);
	assert_int_equal(put("a", "one", &e), 0); /* while b is written */
	assert_int_equal(atomic_commit(&f, &e), 0);
	assert_files(8);
	assert_true(access(".opscope-0123456789abcdef", F_OK) < 0);
	assert_holds(".opscope-1111111111111111", "being written");
	close(fd);
	assert_int_equal(put("a", "two", &e), 0);
	assert_true(access(".opscope-1111111111111111", F_OK) < 0);
	assert_files(7);
}

/* Folders, too: those that are ours, that nobody holds, and in which files alone lie. */
static void folders_left_by_others(void **state)
{
	enum { OTHER = 12345 };
	struct err e;
	char *held;
	write_text("aim", "mine");
	assert_int_equal(mkdir(".opscope-0123456789abcdef", 0700), 0);
	write_text(".opscope-0123456789abcdef/index.html", "left");
	write_text(".opscope-0123456789abcdef/.opscope-1111111111111111", "left");
	assert_int_equal(mkdir(".opscope-2222222222222222", 0700), 0);
	write_text(".opscope-2222222222222222/file", "mine");
	assert_int_equal(symlink("../aim", ".opscope-2222222222222222/link"), 0);
	assert_int_equal(mkdir(".opscope-3333333333333333", 0700), 0);
	assert_int_equal(mkdir(".opscope-3333333333333333/folder", 0700), 0);
	int fd = left_make_folder("./", &held);
	assert_true(fd >= 0 && (mode_of(held) & 0777) == 0700 && strlen(held) == strlen("./.opscope-0123456789abcdef"));
	assert_true(access(".opscope-0123456789abcdef", F_OK) < 0);
	assert_files(7);
	assert_int_equal(put("a", "one", &e), 0);
	assert_files(8);
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(chown(held, OTHER, OTHER), 0);
		assert_int_equal(put("a", "one", &e), 0);
		assert_files(8);
		assert_int_equal(chown(held, 0, 0), 0);
	}
	assert_int_equal(put("a", "two", &e), 0);
	assert_true(access(held, F_OK) < 0);
	assert_files(7);
	assert_holds(".opscope-2222222222222222/file", "mine");
	mem_free(held);
}

/* In a child that begins to write; how it ends, as waitpid says. */
static int in_child(void (*end)(void))
{
	struct err e;
	struct atomic_file f;
	int status;
	fflush(NULL); /* the child ends by exit, too */
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (atomic_begin(&f, "a", &e) == 0 && atomic_write(&f, STR("two"), &e) == 0 && chdir("/") == 0)
			end();
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void end_by_exit(void) { exit(1); }
static void end_by_kill(void) { raise(SIGKILL); }

static void end_by_signal(void)
{
	leftovers_end_on_signals();
	raise(SIGTERM);
}

/* A child of its own does not take what is its parent's. */
static void end_in_grandchild(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		exit(0);
	waitpid(pid, &status, 0);
	_exit(0);
}

static void process_ends(void **state)
{
	struct err e;
	int status;
	assert_int_equal(put("a", "one", &e), 0);
	status = in_child(end_by_exit);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_files(1);
	status = in_child(end_by_signal);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_files(1);
	status = in_child(end_in_grandchild);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_files(2);
	status = in_child(end_by_kill);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_files(2);
	assert_holds("a", "one");
	assert_int_equal(put("a", "three", &e), 0);
	assert_files(1);
}

/* A signal is never held for as long as the writing takes. */
static void signals_are_let_through(void **state)
{
	struct err e;
	struct atomic_file f;
	sigset_t mask;
	assert_int_equal(atomic_begin(&f, "a", &e), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	assert_false(sigismember(&mask, SIGINT) || sigismember(&mask, SIGTERM) || sigismember(&mask, SIGHUP));
	assert_int_equal(atomic_commit(&f, &e), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
	assert_false(sigismember(&mask, SIGINT));
}

static void full_disk(void **state)
{
	static char text[] = "longer than the limit";
	struct err e;
	struct rlimit old, tight;
	assert_int_equal(put("a", "one", &e), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	for (rlim_t limit = 0; limit < sizeof text - 1; limit += 4) {
		tight = (struct rlimit){limit, old.rlim_max};
		setrlimit(RLIMIT_FSIZE, &tight);
		int replaced = put("a", text, &e), created = put("b", text, &e);
		setrlimit(RLIMIT_FSIZE, &old);
		assert_true(replaced == -1 && created == -1);
		assert_int_equal(e.code, ERR_IO);
		assert_non_null(strstr(e.msg, "b: cannot write: File too large"));
		assert_holds("a", "one");
		assert_files(1);
	}
}

static void refused(void **state)
{
	struct err e;
	assert_int_equal(mkdir("d", 0777), 0);
	assert_int_equal(put("d", "one", &e), -1);
	assert_non_null(strstr(e.msg, "d: not a regular file"));
	assert_int_equal(put("no/such/folder", "one", &e), -1);
	assert_non_null(strstr(e.msg, "no/such/folder: cannot create: No such file"));
	assert_int_equal(put("/dev/null", "one", &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_files(1);
}

/* The name of the temporary file does not grow with that of the target. */
static void longest_name(void **state)
{
	struct err e;
	char name[256];
	memset(name, 'x', 255);
	name[255] = 0;
	assert_int_equal(put(name, "one", &e), 0);
	assert_holds(name, "one");
	assert_files(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(new_and_replaced, empty_folder),
		cmocka_unit_test_teardown(aborted, empty_folder),
		cmocka_unit_test_teardown(links, empty_folder),
		cmocka_unit_test_teardown(links_in_a_circle, empty_folder),
		cmocka_unit_test_teardown(link_to_nowhere, empty_folder),
		cmocka_unit_test_teardown(of_another_user, empty_folder),
		cmocka_unit_test_teardown(as_it_stands, empty_folder),
		cmocka_unit_test_teardown(as_it_stands_of_another_user, empty_folder),
		cmocka_unit_test_teardown(permissions_while_writing, empty_folder),
		cmocka_unit_test_teardown(left_by_others, empty_folder),
		cmocka_unit_test_teardown(folders_left_by_others, empty_folder),
		cmocka_unit_test_teardown(process_ends, empty_folder),
		cmocka_unit_test_teardown(signals_are_let_through, empty_folder),
		cmocka_unit_test_teardown(full_disk, empty_folder),
		cmocka_unit_test_teardown(refused, empty_folder),
		cmocka_unit_test_teardown(longest_name, empty_folder),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
