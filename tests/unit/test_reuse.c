/* Results of analysis that are made once: by whom, until when, and for which thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/mem.h"
#include "store/profile.h"
#include "store/reuse.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static const char one[] = "one", two[] = "two";
static unsigned n_released, released[4];

static void release_number(void *number)
{
	released[n_released++] = *(unsigned *)number;
}

static void test_the_last_is_released_first(void **state)
{
	(void)state;
	unsigned number[] = {1, 2};
	struct profile *p = profile_new();
	n_released = 0;
	assert_false(reuse_keep(p, one, &number[0], release_number, NULL));
	reuse_begin(p);
	assert_null(reuse_find(p, one));
	assert_true(reuse_keep(p, one, &number[0], release_number, NULL));
	assert_true(reuse_keep(p, two, &number[1], release_number, NULL));
	assert_ptr_equal(reuse_find(p, two), &number[1]);
	reuse_forget(p);
	assert_int_equal(n_released, 2);
	assert_int_equal(released[0], 2);
	assert_int_equal(released[1], 1);
	assert_null(reuse_find(p, one));
	assert_true(reuse_keep(p, one, &number[0], release_number, NULL));
	reuse_end(p);
	assert_int_equal(n_released, 3);
	assert_false(reuse_keep(p, one, &number[0], release_number, NULL));
	profile_free(p);
}

/* What `ask` gives of the profile in a thread of its own. */
static void *in_another_thread(void *(*ask)(void *), struct profile *p)
{
	pthread_t other;
	void *answer = NULL;
	assert_int_equal(pthread_create(&other, NULL, ask, p), 0);
	assert_int_equal(pthread_join(other, &answer), 0);
	return answer;
}

static void *look(void *profile)
{
	static unsigned number;
	return reuse_find(profile, one) || reuse_keep(profile, one, &number, release_number, NULL) ? profile : NULL;
}

/* As the server does: events are looked at while another request makes an aggregation. */
static void test_other_threads_make_their_own(void **state)
{
	(void)state;
	unsigned number = 1;
	struct profile *p = profile_new();
	n_released = 0;
	reuse_begin(p);
	assert_true(reuse_keep(p, one, &number, release_number, NULL));
	assert_null(in_another_thread(look, p));
	profile_free(p); /* ends it, too */
	assert_int_equal(n_released, 1);
}

/* Turns: what one thread kept, the next is handed. */
static void *take_turn(void *profile)
{
	struct profile *p = profile;
	reuse_take(p);
	void *found = reuse_find(p, one);
	reuse_drop(p);
	return found;
}

static void test_threads_take_turns(void **state)
{
	(void)state;
	unsigned number = 1;
	struct profile *p = profile_new();
	n_released = 0;
	assert_true(reuse_begin(p));
	assert_false(reuse_begin(p));
	assert_true(reuse_keep(p, one, &number, release_number, NULL));
	reuse_drop(p);
	assert_null(reuse_find(p, one));
	assert_ptr_equal(in_another_thread(take_turn, p), &number);
	assert_null(reuse_find(p, one));
	reuse_take(p);
	assert_ptr_equal(reuse_find(p, one), &number);
	reuse_end(p);
	reuse_take(p); /* nothing is kept */
	assert_null(reuse_find(p, one));
	assert_int_equal(n_released, 1);
	profile_free(p);
}

/* --- several threads that are handed the same results --- */

struct asker {
	struct profile *p;
	const void *joins;
	atomic_uint *n_made;
	unsigned number;
	void *got;
	enum { KEEPS, GIVES_UP, FAILS } first; /* what it does where it is the first to ask */
};

static void ask(void *asker)
{
	struct asker *a = asker;
	a->got = reuse_find(a->p, one);
	if (a->got)
		return;
	const bool is_first = atomic_fetch_add(a->n_made, 1) == 0;
	sched_yield();
	if (is_first && a->first == FAILS)
		mem_fail(0);
	if (is_first && a->first == GIVES_UP) {
		reuse_give_up(a->p, one);
		return;
	}
	bool is_kept = false;
	const bool kept = reuse_keep(a->p, one, &a->number, release_number, &is_kept);
	a->got = kept && is_kept ? &a->number : NULL;
}

static void *ask_joined(void *asker)
{
	struct asker *a = asker;
	reuse_join(a->joins);
	mem_try(NULL, ask, a);
	return NULL;
}

static void test_made_once(void **state)
{
	(void)state;
	enum { THREADS = 6 };
	for (unsigned round = 0; round < 60; round++) {
		struct profile *p = profile_new();
		struct asker a[THREADS];
		pthread_t thread[THREADS];
		atomic_uint n_made = 0;
		unsigned without = 0;
		n_released = 0;
		reuse_begin(p);
		for (unsigned i = 0; i < THREADS; i++) {
			a[i] = (struct asker){.p = p, .joins = reuse_thread(), .n_made = &n_made, .first = round % 3};
			assert_int_equal(pthread_create(&thread[i], NULL, ask_joined, &a[i]), 0);
		}
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		void *kept = reuse_look(p, one);
		assert_non_null(kept);
		for (unsigned i = 0; i < THREADS; i++) {
			without += !a[i].got;
			assert_true(!a[i].got || a[i].got == kept);
		}
		assert_int_equal(without, round % 3 == KEEPS ? 0 : 1);
		assert_int_equal(n_made, round % 3 == KEEPS ? 1 : 2);
		profile_free(p);
		assert_int_equal(n_released, 1);
	}
}

/* Who only looks does not wait, and may keep what nobody is making. */
static void test_looking(void **state)
{
	(void)state;
	unsigned number = 1, other = 2;
	struct profile *p = profile_new();
	n_released = 0;
	reuse_begin(p);
	assert_null(reuse_look(p, one));
	assert_true(reuse_keep(p, one, &number, release_number, NULL));
	assert_false(reuse_keep(p, one, &other, release_number, NULL));
	assert_ptr_equal(reuse_look(p, one), &number);
	assert_null(reuse_find(p, two));
	assert_null(reuse_look(p, two));
	assert_true(reuse_keep(p, two, &other, release_number, NULL));
	profile_free(p);
	assert_int_equal(n_released, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_last_is_released_first), cmocka_unit_test(test_other_threads_make_their_own),
	                                   cmocka_unit_test(test_threads_take_turns), cmocka_unit_test(test_made_once), cmocka_unit_test(test_looking)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
