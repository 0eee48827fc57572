#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int launch_capture_start(char *const *argv, int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t a;
	sigset_t usual;
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGXFSZ);
	posix_spawnattr_init(&a);
	posix_spawnattr_setflags(&a, POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigdefault(&a, &usual);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	int rc = posix_spawnp(pid, argv[0], &actions, &a, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&a);
	return rc;
}

/* Until the end of the output; false when the time is over. What is beyond LAUNCH_OUTPUT is read and forgotten. */
static bool launch_capture_take(int fd, int64_t deadline, struct buf *out)
{
	for (;;) {
		int64_t left = deadline - launch_now_ns();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		if (left <= 0)
			return false;
		if (poll(&p, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		char piece[4096];
		ssize_t n = read(fd, piece, sizeof piece);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return true;
		if (n > 0 && out->n < LAUNCH_OUTPUT)
			buf_put(out, piece, (size_t)n);
	}
}

/* It may have closed its output and still run. */
static bool ended(pid_t pid, int64_t deadline, int *wait_status)
{
	for (;;) {
		pid_t done = waitpid(pid, wait_status, WNOHANG);
		if (done < 0 && errno != EINTR)
			*wait_status = 127 << 8;
		if (done == pid || (done < 0 && errno != EINTR))
			return true;
		if (launch_now_ns() >= deadline)
			return false;
		poll(NULL, 0, 10);
	}
}

int launch_capture(char *const *argv, int64_t limit_ns, struct buf *out, int *wait_status, struct err *e)
{
	int fd[2];
	pid_t pid;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return err_set(e, ERR_IO, "%s: cannot be run: %s", argv[0], strerror(errno));
	int rc = launch_capture_start(argv, fd[1], &pid);
	close(fd[1]);
	if (rc) {
		close(fd[0]);
		return err_set(e, ERR_IO, "%s: cannot be run: %s", argv[0], strerror(rc));
	}
	int64_t deadline = launch_now_ns() + limit_ns;
	bool in_time = launch_capture_take(fd[0], deadline, out) && ended(pid, deadline, wait_status);
	close(fd[0]);
	if (in_time)
		return 0;
	kill(pid, SIGKILL);
	while (waitpid(pid, wait_status, 0) < 0 && errno == EINTR)
		;
	return err_set(e, ERR_IO, "%s %s: no answer in %lld s", argv[0], argv[1] ? argv[1] : "", (long long)(limit_ns / LAUNCH_S));
}
