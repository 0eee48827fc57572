#include "io/leftovers.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 64 };
enum slot_state { FREE, TAKEN, LISTED };

/* Of fixed size, and without a lock: a signal handler reads it. A child of fork() has a copy of its parent's list, which is not its own. */
struct leftovers_slot {
	enum slot_state state;
	pid_t pid;
	char path[PATH_MAX];
};
static struct leftovers_slot slots[SLOTS];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool sees_signals;

static void remove_at_exit(void)
{
	atexit(leftovers_remove);
}

/* Absolute: the process may go to another folder meanwhile. */
static bool leftovers_put_path(struct leftovers_slot *s, const char *path)
{
	size_t n = 0;
	if (*path != '/') {
		if (!getcwd(s->path, sizeof s->path))
			return false;
		n = strlen(s->path);
	}
	int more = snprintf(s->path + n, sizeof s->path - n, "%s%s", n ? "/" : "", path);
	return more >= 0 && (size_t)more < sizeof s->path - n;
}

int leftover_add(const char *path)
{
	pthread_once(&once, remove_at_exit);
	for (int i = 0; i < SLOTS; i++) {
		struct leftovers_slot *s = &slots[i];
		enum slot_state is = FREE;
		if (!__atomic_compare_exchange_n(&s->state, &is, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		bool fits = leftovers_put_path(s, path);
		s->pid = getpid();
		__atomic_store_n(&s->state, fits ? LISTED : FREE, __ATOMIC_RELEASE);
		return fits ? i : LEFTOVER_NONE;
	}
	return LEFTOVER_NONE;
}

void leftover_drop(int number)
{
	if (number != LEFTOVER_NONE)
		__atomic_store_n(&slots[number].state, FREE, __ATOMIC_RELEASE);
}

void leftovers_remove(void)
{
	int before = errno;
	pid_t self = getpid();
	for (int folders = 0; folders < 2; folders++)
		for (int i = 0; i < SLOTS; i++) {
			const struct leftovers_slot *s = &slots[i];
			if (__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == LISTED && s->pid == self)
				folders ? rmdir(s->path) : unlink(s->path);
		}
	errno = before;
}

static void end_by(int number)
{
	sigset_t one;
	leftovers_remove();
	signal(number, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, number);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	raise(number);
}

void leftovers_end_on_signals(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU};
	struct sigaction now, action = {.sa_handler = end_by};
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) /* ignored: as by nohup */
			sigaction(ends[i], &action, NULL);
	sees_signals = true;
}

bool leftovers_see_signals(void)
{
	return sees_signals;
}
