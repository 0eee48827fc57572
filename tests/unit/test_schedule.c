/* Schedules: every small one, step by step, against a list that is written out cycle by cycle; the lists that PyTorch's own tests
 * expect; all transitions; counters of steps by several requesters; what a profiler does from its start to its end. */
#include "test.h"

#include <opscope/schedule.h>
#include <pthread.h>
#include <string.h>

enum { N = OPSCOPE_NONE, W = OPSCOPE_WARMUP, R = OPSCOPE_RECORD, S = OPSCOPE_RECORD_AND_SAVE, MOST = 64 };

/* The first `n` actions, laid out one after the other. */
static void lay_out(const struct opscope_schedule_spec *s, int *list, int n)
{
	int at = 0;
	memset(list, 0, (size_t)n * sizeof *list); /* NONE */
#define PUT(action, times)                                     \
	for (int64_t put_ = 0; put_ < (times) && at < n; put_++) \
		list[at++] = (action)
	PUT(N, s->skip_first);
	for (int64_t cycle = 0; at < n && (!s->repeat || cycle < s->repeat); cycle++) {
		if (cycle || !s->skip_first_wait)
			PUT(N, s->wait);
		PUT(W, s->warmup);
		PUT(R, s->active - 1);
		PUT(S, 1);
	}
#undef PUT
}

static void test_all_small_schedules(void **state)
{
	unsigned checked = 0;
	for (int code = 0; code < 4 * 4 * 4 * 4 * 4 * 2; code++) {
		struct opscope_schedule_spec s = {
			.wait = code & 3, .warmup = code >> 2 & 3, .active = (code >> 4 & 3) + 1, .repeat = code >> 6 & 3,
			.skip_first = code >> 8 & 3, .skip_first_wait = code >> 10 & 1,
		};
		int want[MOST];
		lay_out(&s, want, MOST);
		for (int step = 0; step < MOST; step++, checked++)
			assert_int_equal(opscope_schedule(&s, step, NULL, 0), want[step]);
	}
	assert_int_equal(checked, 2048 * MOST);
}

struct known {
	struct opscope_schedule_spec s;
	int n, want[32];
};

/* Arguments and actions of the cases in PyTorch's test/profiler/test_profiler.py. */
static const struct known known[] = {
	{{.skip_first = 3, .wait = 2, .warmup = 1, .active = 4, .repeat = 2}, 21,
	 {N, N, N, N, N, W, R, R, R, S, N, N, W, R, R, R, S, N, N, N, N}},
	{{.skip_first = 2, .wait = 1, .warmup = 1, .active = 2, .repeat = 2}, 14, {N, N, N, W, R, S, N, W, R, S, N, N, N, N}},
	{{.skip_first = 1, .wait = 2, .warmup = 1, .active = 2, .repeat = 2, .skip_first_wait = 1}, 13,
	 {N, W, R, S, N, N, W, R, S, N, N, N, N}},
	{{.wait = 1, .warmup = 1, .active = 2}, 8, {N, W, R, S, N, W, R, S}},
};

static void test_pytorchs_lists(void **state)
{
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		for (int step = 0; step < known[k].n; step++)
			assert_int_equal(opscope_schedule(&known[k].s, step, NULL, 0), known[k].want[step]);
}

static void test_bad_arguments(void **state)
{
	static const struct {
		struct opscope_schedule_spec s;
		const char *says;
	} bad[] = {
		{{.wait = -1, .warmup = 1, .active = 1}, "wait=-1: 0 or more"},
		{{.warmup = -2, .active = 1}, "warmup=-2: 0 or more"},
		{{.warmup = 1, .active = 0}, "active=0: 1 or more"},
		{{.warmup = 1, .active = -7}, "active=-7: 1 or more"},
		{{.warmup = 1, .active = 1, .repeat = -1}, "repeat=-1: 0 or more"},
		{{.warmup = 1, .active = 1, .skip_first = -1}, "skip_first=-1: 0 or more"},
		{{.wait = INT64_MAX, .warmup = 1, .active = 1}, "less than 2^63"},
	};
	char text[256];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(opscope_schedule_check(&bad[i].s, text, sizeof text), -1);
		assert_non_null(strstr(text, bad[i].says));
		memset(text, 0, sizeof text);
		assert_int_equal(opscope_schedule(&bad[i].s, 0, text, sizeof text), -1);
		assert_non_null(strstr(text, bad[i].says));
		assert_int_equal(opscope_schedule(&bad[i].s, 0, NULL, 0), -1);
		assert_null(opscope_stepper_new(&bad[i].s, NULL, text, sizeof text));
	}
	assert_int_equal(opscope_schedule(&known[0].s, -1, text, sizeof text), -1);
	assert_non_null(strstr(text, "step=-1"));
	assert_int_equal(opscope_schedule_check(&(struct opscope_schedule_spec){.active = 1}, text, sizeof text), 1);
	assert_non_null(strstr(text, "warmup=0"));
	assert_int_equal(opscope_schedule_check(&known[0].s, text, sizeof text), 0);
	assert_int_equal(*text, 0);
}

static void test_far_steps(void **state)
{
	struct opscope_schedule_spec s = {.wait = INT64_MAX - 2, .warmup = 1, .active = 1, .skip_first_wait = 1};
	assert_int_equal(opscope_schedule(&s, 0, NULL, 0), W);
	assert_int_equal(opscope_schedule(&s, 1, NULL, 0), S);
	assert_int_equal(opscope_schedule(&s, 2, NULL, 0), N);
	assert_int_equal(opscope_schedule(&s, INT64_MAX, NULL, 0), W); /* 2 + wait steps behind the first cycle's two */
	s = (struct opscope_schedule_spec){.wait = 1, .warmup = 1, .active = 2, .repeat = INT64_MAX};
	assert_int_equal(opscope_schedule(&s, INT64_MAX, NULL, 0), S); /* 2^63 - 1 = 3 mod 4 */
	assert_int_equal(opscope_schedule(NULL, INT64_MAX, NULL, 0), R);
	assert_int_equal(opscope_schedule_check(NULL, NULL, 0), 0);
}

/* What each pair must do, said once more: a letter an operation, '!' a warning. */
static const char *const want_moves[4][5] = {
	{"", "p", "ps", "ps", ""},
	{"st!", "", "s", "s", "st"},
	{"t!", "t!", "", "", "tr"},
	{"tr", "trp", "trps", "trps", "tr"},
};
static const char letters[] = {0, 'p', 's', 't', 'r', ')', '(', 'k'};

static void test_all_transitions(void **state)
{
	for (int from = -1; from <= 5; from++)
		for (int to = -1; to <= 5; to++) {
			enum opscope_operation op[4];
			const char *warning = "untouched";
			int n = opscope_transition(from, to, op, &warning);
			if (from < 0 || from > 3 || to < 0 || to > 4) {
				assert_int_equal(n, -1);
				assert_null(warning);
				continue;
			}
			char got[8] = "";
			for (int i = 0; i < n; i++)
				got[i] = letters[op[i]];
			if (warning)
				got[n] = '!';
			assert_string_equal(got, want_moves[from][to]);
			if (warning) {
				assert_non_null(strstr(warning, opscope_action_name(from)));
				assert_non_null(strstr(warning, opscope_action_name(to)));
			}
			assert_int_equal(opscope_transition(from, to, op, NULL), n);
		}
}

static void test_names(void **state)
{
	assert_string_equal(opscope_action_name(R), "RECORD");
	assert_null(opscope_action_name(-1));
	assert_null(opscope_action_name(5));
	assert_string_equal(opscope_operation_name(OPSCOPE_OP_READY), "ready");
	assert_null(opscope_operation_name(0));
	assert_null(opscope_operation_name(8));
}

/* Whatever the schedule: no warning, prepare before start before stop before ready, and each save is handed out. */
static void test_no_schedule_is_illegal(void **state)
{
	for (int code = 0; code < 2048; code++) {
		struct opscope_schedule_spec s = {
			.wait = code & 3, .warmup = code >> 2 & 3, .active = (code >> 4 & 3) + 1, .repeat = code >> 6 & 3,
			.skip_first = code >> 8 & 3, .skip_first_wait = code >> 10 & 1,
		};
		for (int steps = 0; steps < 24; steps += 5) {
			struct opscope_stepper *p = opscope_stepper_new(&s, NULL, NULL, 0);
			struct opscope_todo todo;
			int saves = 0, ready = 0, phase = 0; /* 0 idle, 1 prepared, 2 recording, 3 stopped */
			for (int step = -1; step <= steps; step++) {
				assert_int_equal(step < 0 ? opscope_stepper_start(p, &todo) :
				                 step < steps ? opscope_stepper_step(p, &todo) : opscope_stepper_stop(p, &todo), 0);
				assert_null(todo.warning);
				for (unsigned i = 0; i < todo.n; i++) {
					int op = todo.operation[i];
					if (op > OPSCOPE_OP_READY)
						continue;
					if (op == OPSCOPE_OP_PREPARE)
						assert_true(phase == 0);
					else if (op == OPSCOPE_OP_READY)
						assert_true(phase == 3);
					else
						assert_true(phase == op - 1);
					phase = op == OPSCOPE_OP_READY ? 0 : op;
					ready += op == OPSCOPE_OP_READY;
				}
			}
			for (int step = 0; step < steps; step++)
				saves += opscope_schedule(&s, step, NULL, 0) == S;
			int last = opscope_schedule(&s, steps, NULL, 0);
			assert_int_equal(ready, saves + (last == R || last == S));
			opscope_stepper_free(p);
		}
	}
}

static void run(const struct opscope_schedule_spec *s, int steps, char *out)
{
	struct opscope_stepper *p = opscope_stepper_new(s, NULL, NULL, 0);
	struct opscope_todo todo;
	for (int step = -1; step <= steps; step++) {
		assert_int_equal(step < 0 ? opscope_stepper_start(p, &todo) : step < steps ? opscope_stepper_step(p, &todo) : opscope_stepper_stop(p, &todo), 0);
		for (unsigned i = 0; i < todo.n; i++) {
			int op = todo.operation[i];
			*out++ = letters[op];
			if (op == OPSCOPE_OP_OPEN_STEP || op == OPSCOPE_OP_CLOSE_STEP)
				*out++ = (char)('0' + (op == OPSCOPE_OP_OPEN_STEP ? todo.step : todo.closes));
			if (op == OPSCOPE_OP_KINETO_STEP)
				assert_int_equal(todo.kineto_steps, 1);
		}
		*out++ = ' ';
	}
	*out = 0;
	assert_int_equal(opscope_stepper_stop(p, &todo), -1);
	assert_int_equal(opscope_stepper_step(p, &todo), -1);
	assert_int_equal(todo.n, 0);
	opscope_stepper_free(p);
}

static void test_a_run(void **state)
{
	char got[256];
	run(&(struct opscope_schedule_spec){.wait = 1, .warmup = 1, .active = 2, .repeat = 1}, 5, got);
	assert_string_equal(got, "(0 )0pk(1 )1sk(2 )2k(3 )3trk(4 )4k(5 )5 ");
	run(&(struct opscope_schedule_spec){.active = 1}, 2, got);
	assert_string_equal(got, "ps(0 )0trpsk(1 )1trpsk(2 )2tr ");
	run(&(struct opscope_schedule_spec){.warmup = 2, .active = 1}, 1, got); /* ends while it warms up */
	assert_string_equal(got, "p(0 )0k(1 )1st ");
	run(NULL, 2, got); /* no schedule: no ranges */
	assert_string_equal(got, "ps k k tr ");
}

static void test_tracker(void **state)
{
	struct opscope_tracker *t = opscope_tracker_new();
	int64_t by;
	char text[128];
	assert_int_equal(opscope_tracker_current(t), 0);
	assert_int_equal(opscope_tracker_erase(t, "a"), 0);
	assert_int_equal(opscope_tracker_count(t, "a"), -1);
	opscope_tracker_init(t, "a");
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(opscope_tracker_increment(t, "a", &by, text, sizeof text), i);
		assert_int_equal(by, 1);
		assert_int_equal(*text, 0);
	}
	/* unknown: starts at the global step, so its first step is the fourth */
	assert_int_equal(opscope_tracker_increment(t, "b", &by, text, sizeof text), 4);
	assert_int_equal(by, 1);
	assert_int_equal(opscope_tracker_count(t, "b"), 4);
	assert_int_equal(opscope_tracker_increment(t, "a", &by, text, sizeof text), 4); /* catches up */
	assert_int_equal(by, 0);
	assert_int_equal(opscope_tracker_erase(t, "a"), 1);
	assert_int_equal(opscope_tracker_erase(t, "b"), 1);
	assert_int_equal(opscope_tracker_erase(t, "b"), 0);
	assert_int_equal(opscope_tracker_current(t), 4); /* nobody counts, the step stays */
	opscope_tracker_init(t, "c");
	assert_int_equal(opscope_tracker_count(t, "c"), 4);
	opscope_tracker_set(t, "c", 1); /* behind: it has to catch up */
	assert_int_equal(opscope_tracker_increment(t, "c", &by, NULL, 0), 4);
	assert_int_equal(by, 0);
	opscope_tracker_set(t, "d", 9);
	assert_int_equal(opscope_tracker_current(t), 4);
	assert_int_equal(opscope_tracker_increment(t, "c", &by, text, sizeof text), 9); /* another's leap is seen */
	assert_int_equal(by, 5);
	assert_non_null(strstr(text, "from 4 to 9"));
	opscope_tracker_set(t, "d", INT64_MAX);
	assert_int_equal(opscope_tracker_increment(t, "d", &by, text, sizeof text), -1);
	assert_int_equal(by, 0);
	assert_int_equal(opscope_tracker_current(t), 9);
	assert_int_equal(opscope_tracker_increment(t, "c", NULL, NULL, 0), INT64_MAX);
	opscope_tracker_free(t);
	opscope_tracker_free(NULL);
}

/* As in PyTorch's test of several steppers: the profiler and an optimizer's hook both count, each step counts once; the profiler
 * that ends leaves the count to the optimizer. */
static void test_profiler_and_optimizer(void **state)
{
	struct opscope_tracker *t = opscope_tracker_new();
	struct opscope_todo todo;
	int64_t by, told = 0;
	struct opscope_stepper *p = opscope_stepper_new(&known[3].s, t, NULL, 0);
	opscope_stepper_start(p, &todo);
	for (int i = 0; i < 8; i++) {
		opscope_tracker_increment(t, "optimizer", &by, NULL, 0);
		told += by;
		opscope_stepper_step(p, &todo);
		told += todo.kineto_steps;
	}
	assert_int_equal(opscope_tracker_current(t), 8);
	assert_int_equal(told, 8);
	opscope_stepper_stop(p, &todo);
	opscope_stepper_free(p);
	assert_int_equal(opscope_tracker_count(t, "ProfilerStep"), -1);
	assert_int_equal(opscope_tracker_erase(t, "optimizer"), 1);
	p = opscope_stepper_new(NULL, t, NULL, 0); /* a second profiler goes on from there */
	opscope_stepper_start(p, &todo);
	opscope_stepper_step(p, &todo);
	assert_int_equal(opscope_tracker_current(t), 9);
	opscope_tracker_set(t, "other", 12);
	opscope_stepper_step(p, &todo);
	assert_int_equal(todo.kineto_steps, 3);
	assert_non_null(todo.warning);
	opscope_stepper_free(p);
	opscope_tracker_free(t);
}

enum { THREADS = 4, ROUNDS = 5000 };

static void *count(void *arg)
{
	struct opscope_tracker *t = *(struct opscope_tracker **)arg;
	int64_t by, *told = (int64_t *)((char *)arg + sizeof t);
	char name[24];
	snprintf(name, sizeof name, "thread %p", arg);
	for (int i = 0; i < ROUNDS; i++) {
		opscope_tracker_increment(t, name, &by, NULL, 0);
		*told += by;
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct { struct opscope_tracker *t; int64_t told; } job[THREADS];
	pthread_t thread[THREADS];
	struct opscope_tracker *t = opscope_tracker_new();
	int64_t told = 0;
	for (int i = 0; i < THREADS; i++) {
		job[i].t = t;
		job[i].told = 0;
		pthread_create(&thread[i], NULL, count, &job[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		told += job[i].told;
	}
	assert_int_equal(told, opscope_tracker_current(t)); /* each global step was told once */
	assert_true(told >= ROUNDS && told <= THREADS * ROUNDS);
	opscope_tracker_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_small_schedules), cmocka_unit_test(test_pytorchs_lists), cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_far_steps), cmocka_unit_test(test_all_transitions), cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_schedule_is_illegal), cmocka_unit_test(test_a_run), cmocka_unit_test(test_tracker),
		cmocka_unit_test(test_profiler_and_optimizer), cmocka_unit_test(test_threads),
	};
	return RUN_TESTS(tests);
}
