#include "base/threads.h"

#include "base/str.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char threads_variable[] = "OPSCOPE_THREADS";
static unsigned threads_of_process;
static __thread unsigned threads_of_thread;

static unsigned threads_most(int64_t n)
{
	return n < THREADS_MOST ? (unsigned)n : THREADS_MOST;
}

/* 0 = it does not say. */
static int64_t threads_of_variable(void)
{
	const char *text = getenv(threads_variable);
	int64_t n;
	return text && str_to_i64(str_from(text), &n) && n > 0 ? n : 0;
}

/* The kernel refuses a set that is smaller than its own: with more than CPU_SETSIZE processors, all that run are counted. */
static int64_t threads_of_machine(void)
{
	cpu_set_t may;
	const int64_t n = sched_getaffinity(0, sizeof may, &may) == 0 ? CPU_COUNT(&may) : sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? n : 1;
}

unsigned threads_wanted(unsigned asked)
{
	const int64_t n = threads_of_thread ?: asked ?: threads_of_process ?: threads_of_variable();
	return threads_most(n ?: threads_of_machine());
}

void threads_set(unsigned n)
{
	threads_of_process = n;
}

unsigned threads_limit(unsigned n)
{
	const unsigned before = threads_of_thread;
	threads_of_thread = n;
	return before;
}

const char *threads_odd(void)
{
	const char *text = getenv(threads_variable);
	return text && *text && !threads_of_process && !threads_of_variable() ? text : NULL;
}

bool threads_start(pthread_t *thread, void *(*run)(void *context), void *context)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
	sigset_t blocked, before;
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &before); /* the new thread inherits the mask */
	const bool started = pthread_create(thread, NULL, run, context) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}
