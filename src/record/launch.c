#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Handed on. The others either cannot be caught, or have no meaning between processes. */
static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { N_PASSED_ON = sizeof passed_on / sizeof passed_on[0] };

int64_t launch_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * LAUNCH_S + t.tv_nsec;
}

int launch_status(int s)
{
	return WIFSIGNALED(s) ? 128 + WTERMSIG(s) : WEXITSTATUS(s);
}

void launch_end_like(int s)
{
	fflush(stdout);
	if (WIFSIGNALED(s)) {
		struct rlimit none = {0, 0};
		sigset_t set;
		setrlimit(RLIMIT_CORE, &none);
		prctl(PR_SET_DUMPABLE, 0);
		signal(WTERMSIG(s), SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, WTERMSIG(s));
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		raise(WTERMSIG(s));
	}
	exit(launch_status(s));
}

/* --- the child's side, between fork and exec -------------------------------------------------------------------- */

/* What we changed about signals here is undone. Those that are caught are as usual after exec. */
static void restore_signals(const sigset_t *mask, const struct sigaction *child)
{
	sigaction(SIGCHLD, child, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
}

static void set_environment(char *const *env)
{
	for (; env && *env; env++)
		if (strchr(*env, '='))
			putenv(*env);
		else
			unsetenv(*env);
}

static int redirect(const char *log)
{
	int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	return in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0 ? -1 : 0;
}

/* `go` has an end of file when it may start; `failed` takes errno. */
static void become(const struct launch *l, const sigset_t *mask, const struct sigaction *child, int go, int failed)
{
	char nothing;
	while (read(go, &nothing, 1) < 0 && errno == EINTR)
		;
	restore_signals(mask, child);
	set_environment(l->env);
	if (!l->log || redirect(l->log) == 0)
		execvp(l->argv[0], l->argv);
	int why = errno;
	while (write(failed, &why, sizeof why) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* --- waiting ---------------------------------------------------------------------------------------------------- */

/* Those to wait for: not what was ignored when we started. */
static void watched(const struct launch *l, sigset_t *s)
{
	struct sigaction now;
	sigemptyset(s);
	sigaddset(s, SIGCHLD);
	for (int i = 0; i < N_PASSED_ON; i++)
		if (sigaction(passed_on[i], NULL, &now) == 0 && (now.sa_handler != SIG_IGN || passed_on[i] == l->own_signal))
			sigaddset(s, passed_on[i]);
}

/* What the terminal sends, it sends to the whole process group. */
static bool came_to_us_alone(const siginfo_t *info)
{
	return info->si_code <= 0;
}

struct deadline {
	int64_t at_ns;  /* 0 = none */
	int signal;
};

static int64_t until(const struct launch *l, const struct deadline *d, int64_t now)
{
	int64_t left = 3600 * LAUNCH_S;
	if (l->tick && l->tick_ns < left)
		left = l->tick_ns;
	if (d->at_ns && d->at_ns - now < left)
		left = d->at_ns > now ? d->at_ns - now : 0;
	return left;
}

static void end_it(const struct launch *l, pid_t pid, struct deadline *d, struct launched *r)
{
	int64_t now = launch_now_ns();
	if (!d->at_ns || now < d->at_ns)
		return;
	kill(pid, d->signal);
	r->timed_out = true;
	*d = d->signal == SIGTERM ? (struct deadline){now + LAUNCH_GRACE_S * LAUNCH_S, SIGKILL} : (struct deadline){0, 0};
}

static void launch_wait_for(const struct launch *l, pid_t pid, const sigset_t *set, struct launched *r)
{
	int64_t now = launch_now_ns(), room = INT64_MAX - now, tick_at = now;
	struct deadline d = {l->term_after_ns ? now + (l->term_after_ns < room ? l->term_after_ns : room) : 0, SIGTERM};
	while (waitpid(pid, &r->wait_status, WNOHANG) == 0) {
		siginfo_t info;
		int64_t left = until(l, &d, launch_now_ns());
		int sig = sigtimedwait(set, &info, &(struct timespec){left / LAUNCH_S, left % LAUNCH_S});
		if (sig > 0 && sig == l->own_signal) {
			l->signalled(l->context);
		} else if (sig > 0 && sig != SIGCHLD) {
			r->interrupted |= sig != SIGUSR1 && sig != SIGUSR2;
			if (came_to_us_alone(&info))
				kill(pid, sig);
		}
		end_it(l, pid, &d, r);
		if (l->tick && launch_now_ns() - tick_at >= l->tick_ns) {
			l->tick(l->context, pid);
			tick_at = launch_now_ns();
		}
	}
}

/* The errno of the exec that failed, or 0. */
static int exec_error(int fd)
{
	int why = 0;
	ssize_t n;
	while ((n = read(fd, &why, sizeof why)) < 0 && errno == EINTR)
		;
	return n == (ssize_t)sizeof why ? why : 0;
}

static int fail_to_start(const struct launch *l, int why, struct launched *r, struct err *e)
{
	r->wait_status = (why == ENOENT ? 127 : 126) << 8;
	return err_set(e, ERR_IO, "%s: cannot be run: %s", l->argv[0], why == ENOENT ? "no such program" : strerror(why));
}

static int start_and_wait(const struct launch *l, const int go[2], const int failed[2], struct launched *r, struct err *e)
{
	sigset_t set, before;
	struct sigaction usual = {.sa_handler = SIG_DFL}, child;
	watched(l, &set);
	sigaction(SIGCHLD, &usual, &child); /* ignored, it would take the exit status away */
	sigprocmask(SIG_BLOCK, &set, &before);
	fflush(NULL);
	pid_t pid = fork();
	int why = pid < 0 ? errno : 0;
	if (pid == 0) {
		close(go[1]);
		become(l, &before, &child, go[0], failed[1]);
	}
	close(failed[1]);
	if (pid > 0 && l->ready)
		l->ready(l->context, pid);
	close(go[1]);
	if (pid > 0) {
		why = exec_error(failed[0]);
		launch_wait_for(l, pid, &set, r);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGCHLD, &child, NULL);
	return why ? fail_to_start(l, why, r, e) : 0;
}

int launch_run(const struct launch *l, struct launched *r, struct err *e)
{
	int go[2], failed[2];
	*r = (struct launched){0};
	if (pipe2(go, O_CLOEXEC) < 0)
		return fail_to_start(l, errno, r, e);
	if (pipe2(failed, O_CLOEXEC) < 0) {
		int why = errno;
		close(go[0]);
		close(go[1]);
		return fail_to_start(l, why, r, e);
	}
	int rc = start_and_wait(l, go, failed, r, e);
	close(go[0]);
	close(failed[0]);
	return rc;
}
