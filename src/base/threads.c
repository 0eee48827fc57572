#include "base/threads.h"

#include "base/str.h"

#include <sched.h>
#include <stdlib.h>

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

unsigned threads_wanted(unsigned asked)
{
	cpu_set_t may;
	const int64_t n = threads_of_thread ?: asked ?: threads_of_process ?: threads_of_variable();
	if (n)
		return threads_most(n);
	return sched_getaffinity(0, sizeof may, &may) == 0 ? threads_most(CPU_COUNT(&may)) : 1;
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
