/* Jobs made by several threads: what the caller takes, in which order, and what happens where memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/crew.h"
#include "base/mem.h"
#include "base/threads.h"

#include "failing_malloc.h"

#include <pthread.h>
#include <stdatomic.h>

enum { JOBS = 200 };

struct work {
	pthread_t caller;
	unsigned threads, stop_at;
	atomic_uint made[JOBS], joined;
	atomic_bool wrong;        /* cmocka's asserts are for the caller alone */
	unsigned *result[JOBS], taken;
};

static void join(void *context)
{
	((struct work *)context)->joined++;
}

static void make(void *context, unsigned job)
{
	struct work *w = context;
	w->made[job]++;
	w->result[job] = NEW(unsigned);
	*w->result[job] = job * 3;
	if (threads_wanted(0) != 1)
		w->wrong = true;
}

static int take(void *context, unsigned job)
{
	struct work *w = context;
	if (job != w->taken++ || w->made[job] != 1 || *w->result[job] != job * 3 || !pthread_equal(w->caller, pthread_self()))
		w->wrong = true;
	mem_free(w->result[job]);
	w->result[job] = NULL;
	return job == w->stop_at ? 7 : 0;
}

static int run(struct work *w, unsigned threads, unsigned stop_at)
{
	*w = (struct work){.caller = pthread_self(), .threads = threads, .stop_at = stop_at};
	return crew_run(&(struct crew_jobs){.n = JOBS, .context = w, .join = join, .make = make, .take = take}, threads);
}

static void test_in_order(void **state)
{
	(void)state;
	struct work w;
	for (unsigned threads = 0; threads < 9; threads++) {
		assert_int_equal(run(&w, threads, JOBS), 0);
		assert_int_equal(w.taken, JOBS);
		assert_false(w.wrong);
		assert_true(w.joined <= (threads ? threads - 1 : 0));
	}
}

static void test_one_thread_makes_nothing_in_advance(void **state)
{
	(void)state;
	struct work w;
	assert_int_equal(run(&w, 1, 20), 7);
	assert_int_equal(w.made[20], 1);
	assert_int_equal(w.made[21], 0);
	assert_int_equal(w.joined, 0);
}

static void test_the_first_refusal_counts(void **state)
{
	(void)state;
	struct work w;
	for (unsigned threads = 2; threads < 6; threads++) {
		assert_int_equal(run(&w, threads, 20), 7);
		assert_int_equal(w.taken, 21);
		assert_false(w.wrong);
		for (unsigned i = 0; i < JOBS; i++)
			mem_free(w.result[i]);
	}
}

static void test_no_jobs(void **state)
{
	(void)state;
	assert_int_equal(crew_run(&(struct crew_jobs){.n = 0, .make = make, .take = take}, 4), 0);
}

/* --- memory --- */

static void keep(void *context, unsigned job)
{
	make(context, job);
}

static int leave(void *context, unsigned job)
{
	(void)context;
	(void)job;
	return 0;
}

static void run_kept(void *context)
{
	struct work *w = context;
	crew_run(&(struct crew_jobs){.n = JOBS, .context = w, .make = keep, .take = leave}, w->threads);
}

/* What members allocated is in the caller's pool. */
static void test_blocks_are_the_callers(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads < 5; threads++) {
		struct work w = {.threads = threads};
		struct mem_pool pool = {0};
		assert_int_equal(mem_try(&pool, run_kept, &w), 0);
		for (unsigned i = 0; i < JOBS; i++)
			assert_int_equal(*w.result[i], i * 3);
		assert_non_null(pool.newest);
		mem_pool_release(&pool);
	}
}

/* Whatever thread meets it: the call of the caller is left, and all blocks are in the pool. */
static void test_memory_runs_out(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads < 5; threads++)
		for (unsigned long at = 1; at < 3 * JOBS; at += at < 20 ? 1 : 37) {
			struct work w = {.threads = threads};
			struct mem_pool pool = {0};
			failing_count = 0;
			failing_done = false;
			failing_at = at;
			int rc = mem_try(&pool, run_kept, &w);
			failing_at = 0;
			if (!failing_done)
				assert_int_equal(rc, 0);
			if (rc == 0)
				for (unsigned i = 0; i < JOBS; i++)
					assert_int_equal(*w.result[i], i * 3);
			mem_pool_release(&pool);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order), cmocka_unit_test(test_one_thread_makes_nothing_in_advance), cmocka_unit_test(test_the_first_refusal_counts),
		cmocka_unit_test(test_no_jobs), cmocka_unit_test(test_blocks_are_the_callers), cmocka_unit_test(test_memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
