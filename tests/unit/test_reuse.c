/* Results of analysis that are made once: by whom, until when, and for which thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "store/profile.h"
#include "store/reuse.h"

#include <pthread.h>

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
	assert_false(reuse_keep(p, one, &number[0], release_number));
	reuse_begin(p);
	assert_null(reuse_find(p, one));
	assert_true(reuse_keep(p, one, &number[0], release_number));
	assert_true(reuse_keep(p, two, &number[1], release_number));
	assert_ptr_equal(reuse_find(p, two), &number[1]);
	reuse_forget(p);
	assert_int_equal(n_released, 2);
	assert_int_equal(released[0], 2);
	assert_int_equal(released[1], 1);
	assert_null(reuse_find(p, one));
	assert_true(reuse_keep(p, one, &number[0], release_number));
	reuse_end(p);
	assert_int_equal(n_released, 3);
	assert_false(reuse_keep(p, one, &number[0], release_number));
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
	return reuse_find(profile, one) || reuse_keep(profile, one, &number, release_number) ? profile : NULL;
}

/* As the server does: events are looked at while another request makes an aggregation. */
static void test_other_threads_make_their_own(void **state)
{
	(void)state;
	unsigned number = 1;
	struct profile *p = profile_new();
	n_released = 0;
	reuse_begin(p);
	assert_true(reuse_keep(p, one, &number, release_number));
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
	assert_true(reuse_keep(p, one, &number, release_number));
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_last_is_released_first), cmocka_unit_test(test_other_threads_make_their_own),
	                                   cmocka_unit_test(test_threads_take_turns)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
