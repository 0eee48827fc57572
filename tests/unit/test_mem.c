/* Calls that are abandoned when memory runs out: what comes back, what is given back, what is done on the way. */
#include "test.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "failing_malloc.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 100000, NEVER = 0 };

static void succeed(void *context)
{
	*(char **)context = NEW_ARRAY(BIG, char);
}

static void fail_after_blocks(void *context)
{
	struct arena a = {0};
	struct buf b = {0};
	for (int i = 0; i < 1000; i++) {
		arena_alloc(&a, 1000);
		buf_printf(&b, "%d ", i);
	}
	*(bool *)context = true;
	mem_fail(0);
}

static void a_call_that_succeeds_leaves_its_blocks_in_the_pool(void **state)
{
	struct mem_pool pool = {0};
	char *p = NULL;
	size_t before = failing_held;
	assert_int_equal(mem_try(&pool, succeed, &p), 0);
	assert_non_null(p);
	assert_non_null(pool.newest);
#ifndef FAILING_BY_LINKER
	assert_true(failing_held >= before + BIG);
#endif
	mem_pool_release(&pool);
	assert_null(pool.newest);
	assert_int_equal(failing_held, before);
}

static void what_is_freed_leaves_the_pool(void **state)
{
	struct mem_pool pool = {0};
	char *p = NULL;
	assert_int_equal(mem_try(&pool, succeed, &p), 0);
	mem_free(p);
	assert_null(pool.newest);
	mem_pool_release(&pool);
}

static void an_abandoned_call_gives_all_back(void **state)
{
	struct mem_pool pool = {0};
	bool came = false;
	size_t before = failing_held;
	assert_int_equal(mem_try(&pool, fail_after_blocks, &came), -1);
	assert_true(came);
	mem_pool_release(&pool);
	assert_int_equal(failing_held, before);
}

static void grow_old_block(void *context)
{
	char **p = context;
	*p = mem_realloc(*p, 10 * BIG, 1);
	NEW_ARRAY(BIG, char);
	mem_fail(0);
}

/* It was there before the call, and so it is afterwards, where the call moved it to. */
static void an_older_block_stays_its_owner_s(void **state)
{
	struct mem_pool older = {0}, pool = {0};
	char *noted = NULL, *plain = mem_alloc(BIG, 1);
	size_t before = failing_held;
	assert_int_equal(mem_try(&older, succeed, &noted), 0);
	assert_int_equal(mem_try(&pool, grow_old_block, &noted), -1);
	assert_int_equal(mem_try(&pool, grow_old_block, &plain), -1);
	mem_pool_release(&pool);
	memset(noted, 1, 10 * BIG);
	memset(plain, 1, 10 * BIG);
	mem_pool_release(&older);
	plain = mem_realloc(plain, BIG, 1);
	assert_in_range(failing_held + 4096, before, before + 2 * 4096);
	mem_free(plain);
}

static void resize_and_fail(void *context)
{
	char *p = mem_alloc(10, 1);
	for (size_t n = 10; n < BIG; n *= 3)
		p = mem_realloc(p, n, 1);
	*(char **)context = p;
	mem_fail(0);
}

static void a_resized_block_is_given_back(void **state)
{
	struct mem_pool pool = {0};
	char *p = NULL;
	size_t before = failing_held;
	assert_int_equal(mem_try(&pool, resize_and_fail, &p), -1);
	assert_non_null(pool.newest);
	mem_pool_release(&pool);
	assert_int_equal(failing_held, before);
}

struct nest {
	struct mem_pool *inner;
	int inner_is;
	char *block;
	bool went_on, fails;
};

static void nested(void *context)
{
	struct nest *n = context;
	bool came;
	n->block = NEW_ARRAY(BIG, char);
	n->inner_is = mem_try(n->inner, fail_after_blocks, &came);
	n->went_on = true;
	if (n->fails)
		mem_fail(0);
}

/* The inner one alone is abandoned; without a pool of its own, its blocks are in the outer one's. */
static void the_innermost_call_is_abandoned(void **state)
{
	struct mem_pool outer = {0}, inner = {0};
	size_t before = failing_held;
	struct nest n = {.inner = &inner};
	assert_int_equal(mem_try(&outer, nested, &n), 0);
	assert_int_equal(n.inner_is, -1);
	assert_true(n.went_on);
	mem_pool_release(&inner);
	memset(n.block, 1, BIG);
	mem_pool_release(&outer);
	assert_int_equal(failing_held, before);

	n = (struct nest){.fails = true};
	assert_int_equal(mem_try(&outer, nested, &n), -1);
	assert_int_equal(n.inner_is, -1);
	assert_true(n.went_on);
	mem_pool_release(&outer);
	assert_int_equal(failing_held, before);
}

static void a_disowned_block_outlives_the_pool(void **state)
{
	struct mem_pool pool = {0}, other = {0};
	char *p = NULL, *q = NULL;
	assert_int_equal(mem_try(&pool, succeed, &p), 0);
	assert_int_equal(mem_try(&pool, succeed, &q), 0);
	mem_disown(p);
	mem_disown(NULL);
	mem_pool_move(&other, &pool);
	assert_null(pool.newest);
	mem_pool_release(&pool);
	memset(q, 1, BIG);
	mem_pool_release(&other);
	memset(p, 1, BIG);
	mem_free(p);
	assert_int_equal(mem_try(&pool, succeed, &p), 0);
	mem_pool_drop(&pool);
	memset(p, 1, BIG);
	mem_free(p);
}

static struct mem_pool kept;

static void keep_and_fail(void *context)
{
	*(char **)context = NEW_ARRAY(BIG, char);
	mem_keep(&kept);
	NEW_ARRAY(BIG, char);
	mem_fail(0);
}

static void what_is_kept_outlives_the_call(void **state)
{
	struct mem_pool pool = {0};
	char *p = NULL;
	size_t before = failing_held;
	assert_int_equal(mem_try(&pool, keep_and_fail, &p), -1);
	mem_pool_release(&pool);
	memset(p, 1, BIG);
	mem_pool_release(&kept);
	assert_int_equal(failing_held, before);
	mem_keep(&kept); /* outside of any call */
	assert_null(kept.newest);
}

static char done[16];

static void note(void *letter)
{
	size_t n = strlen(done);
	done[n] = *(const char *)letter;
}

static void undone(void *context)
{
	struct mem_undo a, b, c;
	mem_undo_begin(&a, note, (char[]){'a'});
	mem_undo_begin(&b, note, (char[]){'b'});
	mem_undo_begin(&c, note, (char[]){'c'});
	mem_undo_end(&b);
	if (*(bool *)context)
		mem_fail(0);
	mem_undo_end(&a);
	mem_undo_end(&c);
}

static struct mem_undo lasting;
static char lasting_letter = 'l';

static void begin_lasting(void *context)
{
	mem_undo_begin(&lasting, note, &lasting_letter);
}

static void fail_around_lasting(void *context)
{
	assert_int_equal(mem_try(NULL, begin_lasting, NULL), 0);
	mem_fail(0);
}

static void things_are_undone_newest_first(void **state)
{
	bool fails = true;
	memset(done, 0, sizeof done);
	assert_int_equal(mem_try(NULL, undone, &fails), -1);
	assert_string_equal(done, "ca");
	fails = false;
	assert_int_equal(mem_try(NULL, undone, &fails), 0);
	assert_string_equal(done, "ca");
}

/* What an inner call opened and left open is undone with the outer one; of the outermost, it is nobody's any more. */
static void what_is_left_open_is_the_outer_call_s(void **state)
{
	memset(done, 0, sizeof done);
	assert_int_equal(mem_try(NULL, fail_around_lasting, NULL), -1);
	assert_string_equal(done, "l");
	assert_int_equal(mem_try(NULL, begin_lasting, NULL), 0);
	bool fails = true;
	assert_int_equal(mem_try(NULL, undone, &fails), -1);
	assert_string_equal(done, "lca");
	mem_undo_end(&lasting);
}

static void allocate_much(void *context)
{
	struct arena a = {0};
	for (int i = 0; i < 2000; i++) {
		arena_alloc(&a, 3000);
		mem_free(mem_realloc(NEW_ARRAY(10, char), 1000, 1));
	}
	arena_release(&a);
	*(char **)context = NEW_ARRAY(BIG, char);
}

/* Whichever allocation it is, be it one that notes a block. */
static void each_allocation_may_fail(void **state)
{
	struct mem_pool pool = {0};
	char *p = NULL;
	failing_begin(NEVER, false);
	assert_int_equal(mem_try(&pool, allocate_much, &p), 0);
	unsigned long n = failing_end();
	mem_pool_release(&pool);
	size_t before = failing_held;
	for (unsigned long at = 1; at <= n; at += 1 + n / 400)
		for (int on = 0; on < 2; on++) {
			failing_begin(at, on);
			int rc = mem_try(&pool, allocate_much, &p);
			failing_end();
			mem_pool_release(&pool);
			if (rc != -1 || failing_held != before)
				fail_msg("allocation %lu of %lu: %d, %zd bytes more", at, n, rc, (ssize_t)(failing_held - before));
		}
}

static void *work(void *arg)
{
	bool *good = arg;
	for (int i = 0; i < 60; i++) {
		struct mem_pool pool = {0};
		char *p = NULL;
		bool came = false;
		*good &= mem_try(&pool, fail_after_blocks, &came) == -1 && came;
		mem_pool_release(&pool);
		*good &= mem_try(&pool, allocate_much, &p) == 0;
		mem_free(p);
		*good &= !pool.newest;
	}
	return NULL;
}

static void threads_do_not_meet(void **state)
{
	enum { THREADS = 4 };
	pthread_t thread[THREADS];
	bool good[THREADS];
	for (int i = 0; i < THREADS; i++) {
		good[i] = true;
		assert_int_equal(pthread_create(&thread[i], NULL, work, &good[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		assert_true(good[i]);
	}
}

static void *free_it(void *p)
{
	mem_free(p);
	return NULL;
}

static void another_thread_may_free(void **state)
{
	struct mem_pool pool = {0};
	pthread_t thread;
	char *p = NULL;
	assert_int_equal(mem_try(&pool, succeed, &p), 0);
	assert_int_equal(pthread_create(&thread, NULL, free_it, p), 0);
	pthread_join(thread, NULL);
	assert_null(pool.newest);
}

/* Without a mem_try the process ends with status 1, and says why. */
static void without_a_call_the_process_ends(void **state)
{
	int pipe_ends[2], status;
	char text[100] = "";
	assert_int_equal(pipe(pipe_ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(pipe_ends[1], STDERR_FILENO);
		failing_begin(1, true);
		mem_alloc(1234, 1);
		_exit(0);
	}
	close(pipe_ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_true(read(pipe_ends[0], text, sizeof text - 1) > 0);
	assert_string_equal(text, "opscope: out of memory (1234 bytes more were needed)\n");
	close(pipe_ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_succeeds_leaves_its_blocks_in_the_pool),
		cmocka_unit_test(what_is_freed_leaves_the_pool),
		cmocka_unit_test(an_abandoned_call_gives_all_back),
		cmocka_unit_test(an_older_block_stays_its_owner_s),
		cmocka_unit_test(a_resized_block_is_given_back),
		cmocka_unit_test(the_innermost_call_is_abandoned),
		cmocka_unit_test(a_disowned_block_outlives_the_pool),
		cmocka_unit_test(what_is_kept_outlives_the_call),
		cmocka_unit_test(things_are_undone_newest_first),
		cmocka_unit_test(what_is_left_open_is_the_outer_call_s),
		cmocka_unit_test(each_allocation_may_fail),
		cmocka_unit_test(threads_do_not_meet),
		cmocka_unit_test(another_thread_may_free),
		cmocka_unit_test(without_a_call_the_process_ends),
	};
	return RUN_TESTS(tests);
}
