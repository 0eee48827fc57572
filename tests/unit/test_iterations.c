/* Iterations: what marks a step, what repeats, how borders cut, what a part of a profile holds. */
#include "profile_builder.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "analysis/steps/iterations.h"
#include "analysis/steps/iterations_names.h"
#include "analysis/steps/slice.h"
#include "base/mem.h"
#include "input/input.h"

/* A profile in the making: ops and calls on one thread per process, kernels on one stream per GPU. */
struct maker {
	struct builder b;
	uint32_t thread[4], seed;
	int64_t now;
};

static void make_begin(struct maker *m)
{
	*m = (struct maker){.seed = 7, .now = 1000};
	builder_begin(&m->b);
	for (int i = 0; i < 4; i++)
		m->thread[i] = builder_track(&m->b, i == 0 ? "100" : i == 1 ? "101" : "102", i < 3 ? "1" : "2");
}

static struct profile *make_end(struct maker *m, unsigned passes)
{
	return builder_finish(&m->b, passes);
}

static void make_span(struct maker *m, int track, const char *name, int64_t start, int64_t dur, uint8_t kind)
{
	builder_span(&m->b, m->thread[track], kind, name, start, start + dur);
}

/* One call and its kernel, 10 ns behind each other. */
static void make_kernel(struct maker *m, int gpu, const char *name, enum gpu_kind kind)
{
	struct gpu_row r = builder_gpu_row(&m->b, gpu, kind, name, m->now + 5, m->now + 13);
	r.corr_id = ++m->b.correlation;
	builder_call(&m->b, m->thread[gpu], "cudaLaunchKernel", m->now, m->now + 4, r.corr_id);
	build_gpu(&m->b.b, &r);
	m->now += 10;
}

static uint32_t random_below(struct maker *m, uint32_t n)
{
	m->seed = m->seed * 1664525 + 1013904223;
	return (m->seed >> 8) % n;
}

/* A step: copy in, layers, loss, copy out. `noise`: now and then a kernel more. */
static void make_step(struct maker *m, int layers, bool noise, bool marked)
{
	make_kernel(m, 0, "Memcpy HtoD (Pageable -> Device)", GPU_MEMCPY);
	make_kernel(m, 0, "embed", GPU_KERNEL);
	for (int l = 0; l < layers; l++) {
		make_kernel(m, 0, "gemm", GPU_KERNEL);
		make_kernel(m, 0, "norm", GPU_KERNEL);
		make_kernel(m, 0, "attention", GPU_KERNEL);
		make_kernel(m, 0, "gemm", GPU_KERNEL);
		if (noise && random_below(m, 12) == 0)
			make_kernel(m, 0, "noise", GPU_KERNEL);
	}
	make_kernel(m, 0, "head", GPU_KERNEL);
	if (marked)
		make_kernel(m, 0, "Memcpy DtoH (Device -> Pageable)", GPU_MEMCPY);
	m->now += 50;
}

static struct profile *make_steps(int steps, int layers, bool noise, bool marked, int before, int behind)
{
	struct maker m;
	make_begin(&m);
	for (int i = 0; i < before; i++)
		make_kernel(&m, 0, i % 2 ? "setup" : "fill", GPU_KERNEL);
	for (int i = 0; i < steps; i++)
		make_step(&m, layers, noise, marked);
	for (int i = 0; i < behind; i++)
		make_kernel(&m, 0, "teardown", GPU_KERNEL);
	return make_end(&m, PASS_NEST | PASS_CORRELATE);
}

static unsigned whole_ones(const struct iterations *it)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < it->n; i++) {
		n += !it->v[i].partial;
		assert_true(it->v[i].end_ns > it->v[i].start_ns);
		if (i)
			assert_int_equal(it->v[i].start_ns, it->v[i - 1].end_ns);
	}
	return n;
}

/* How many steps are found; 0 = abstained. */
static unsigned period_of(struct profile *p, double *certainty)
{
	struct arena a = {0};
	struct iterations it = {0};
	bool found = iterations_period(p, &a, &it);
	unsigned n = found ? whole_ones(&it) : 0;
	if (certainty)
		*certainty = it.certainty;
	iterations_release(&it);
	arena_release(&a);
	profile_free(p);
	return n;
}

static void periods_are_found(void **state)
{
	double certainty;
	assert_int_equal(period_of(make_steps(10, 4, false, true, 0, 0), &certainty), 10);
	assert_true(certainty > 0.99);
	assert_int_equal(period_of(make_steps(3, 4, false, true, 0, 0), NULL), 3);
	assert_int_equal(period_of(make_steps(10, 4, false, true, 9, 0), NULL), 10); /* what is before */
	assert_int_equal(period_of(make_steps(50, 4, true, true, 9, 9), &certainty), 50); /* and behind, and noise */
	assert_true(certainty > 0.7 && certainty < 1);
}

static void periods_that_are_none(void **state)
{
	assert_int_equal(period_of(make_steps(1, 4, false, true, 0, 0), NULL), 0);
	assert_int_equal(period_of(make_steps(2, 4, false, true, 0, 0), NULL), 0); /* two are too few to know */
	assert_int_equal(period_of(make_steps(0, 0, false, true, 0, 0), NULL), 0);
	assert_int_equal(period_of(make_steps(10, 4, false, false, 0, 0), NULL), 0); /* nothing tells it from layers */
	assert_int_equal(period_of(make_steps(4, 4, false, true, 300, 300), NULL), 0); /* most of the work is something else */
	struct maker m;
	make_begin(&m);
	static const char *const names[] = {"a", "b", "c", "d", "e", "Memcpy DtoH"};
	for (int i = 0; i < 600; i++) {
		uint32_t name = random_below(&m, 6);
		make_kernel(&m, 0, names[name], name == 5 ? GPU_MEMCPY : GPU_KERNEL);
	}
	assert_int_equal(period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL), 0); /* chance */
}

/* Twelve equal layers are not twelve steps. */
static void layers_are_no_steps(void **state)
{
	assert_int_equal(period_of(make_steps(1, 12, false, true, 0, 0), NULL), 0);
	assert_int_equal(period_of(make_steps(3, 12, false, true, 0, 0), NULL), 3);
	assert_int_equal(period_of(make_steps(7, 96, false, true, 0, 0), NULL), 7);
	assert_int_equal(period_of(make_steps(7, 96, true, true, 0, 0), NULL), 7);
	/* one step whose layers each fetch something: their numbers say what they are */
	struct maker m;
	make_begin(&m);
	for (int l = 0; l < 12; l++) {
		char name[32];
		int64_t start = m.now;
		snprintf(name, sizeof name, "model.layers.%d.mlp", l);
		make_step(&m, 2, false, true);
		make_span(&m, 0, name, start, m.now - start - 1, SPAN_USER);
	}
	assert_int_equal(period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL), 0);
}

/* A step that is logged each tenth time, and one that takes two forms in turn. */
static void longer_patterns_are_several_steps(void **state)
{
	struct maker m;
	make_begin(&m);
	for (int i = 0; i < 40; i++) {
		make_step(&m, 6, false, true);
		if (i % 10 == 9)
			make_kernel(&m, 0, "log", GPU_KERNEL);
	}
	assert_int_equal(period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL), 40);
	make_begin(&m);
	for (int i = 0; i < 20; i++) {
		make_kernel(&m, 0, i % 2 ? "sweep_x" : "sweep_y", GPU_KERNEL);
		make_step(&m, 6, false, true);
	}
	assert_int_equal(period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL), 20);
}

/* Gradients of four parts are summed up: each part has a loss, the step has the optimizer. */
static void parts_of_a_step_are_none(void **state)
{
	struct maker m;
	make_begin(&m);
	for (int i = 0; i < 5; i++) {
		for (int part = 0; part < 4; part++)
			make_step(&m, 3, false, true);
		for (int k = 0; k < 3; k++)
			make_kernel(&m, 0, "multi_tensor_apply_kernel<AdamFunctor>", GPU_KERNEL);
		m.now += 200;
	}
	assert_int_equal(period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL), 5);
}

/* 200 000 kernels with as many regular names as there is room for; and with one name alone. */
static void hostile_sequences_take_little_time(void **state)
{
	struct maker m;
	clock_t begin = clock();
	make_begin(&m);
	for (int i = 0; i < 200000; i++) {
		char name[16];
		snprintf(name, sizeof name, "k%d", i % 997 < 500 ? i % 997 : i % (i % 13 + 2));
		make_kernel(&m, 0, name, GPU_KERNEL);
	}
	period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL);
	make_begin(&m);
	for (int i = 0; i < 200000; i++)
		make_kernel(&m, 0, "k", GPU_KERNEL);
	assert_int_equal(period_of(make_end(&m, PASS_NEST | PASS_CORRELATE), NULL), 0);
	assert_true(clock() - begin < 20 * CLOCKS_PER_SEC); /* two seconds, ten under sanitizers */
}

static void names_that_mean_a_step(void **state)
{
	static const char *const yes[] = {"step", "Step 12", "train_step", "TrainStep 3", "iteration 5/100", "step[DECODE bs=32]", "Step 0 to 10",
	                                  "[pl][profile]run_training_batch", "batch_7", "ITER 9"};
	static const char *const no[] = {"optimizer_step", "batch_norm", "aten::step", "forward", "", "12", "lr_scheduler.step", "stepper",
	                                 "epoch 3", "time_step_embedding", "all_iterations_done"};
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		assert_true(name_means_step(str_from(yes[i])));
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		assert_false(name_means_step(str_from(no[i])));
	assert_true(name_matches_numbers(STR("Step 10 to 200"), STR("Step # to #")));
	assert_false(name_matches_numbers(STR("Step 10 to 200x"), STR("Step # to #")));
	assert_false(name_matches_numbers(STR("Step to 200"), STR("Step # to #")));
	assert_true(step_key_of(STR("Optimizer.step#SGD.step")) < n_step_keys);
	assert_true(step_key_of(STR("train/global_step/AssignAdd")) < n_step_keys);
	assert_int_equal(step_key_of(STR("Optimizer.zero_grad#SGD.zero_grad")), n_step_keys);
	char *stars = calloc(1, 1 << 16);
	memset(stars, '*', (1 << 16) - 1);
	assert_int_equal(step_key_of(str_from(stars)), n_step_keys);
	free(stars);
}

/* Four rounds: data, forward, optimizer. */
static struct profile *make_rounds(const char *around)
{
	struct maker m;
	make_begin(&m);
	make_span(&m, 0, "import", 0, 500, SPAN_USER);
	for (int i = 0; i < 4; i++) {
		char name[64];
		int64_t start = m.now;
		make_span(&m, 0, "next", m.now, 5, SPAN_USER);
		m.now += 10;
		make_kernel(&m, 0, "forward", GPU_KERNEL);
		make_span(&m, 0, "Optimizer.step#SGD.step", m.now, 8, SPAN_USER);
		m.now += 10;
		snprintf(name, sizeof name, "%s %d", around ? around : "", 10 + i);
		if (around)
			make_span(&m, 0, name, start, m.now - start, SPAN_USER);
		m.now += 30;
	}
	make_span(&m, 0, "save", m.now, 100, SPAN_USER);
	return make_end(&m, PASS_STEPS);
}

static void steps_of_an_optimizer(void **state)
{
	struct profile *p = make_rounds(NULL);
	const struct steps *s = p->steps;
	assert_int_equal(s->source, STEPS_OPTIMIZER);
	assert_int_equal(s->n, 3);
	assert_int_equal(s->calls, 4);
	assert_int_equal(s->edges, 2);
	assert_int_equal(s->v[0].number, 1);
	assert_int_equal(s->v[0].host_start_ns, 1000 + 20 + 8); /* the first optimizer's end */
	assert_int_equal(s->v[0].host_end_ns, s->v[1].host_start_ns);
	assert_int_equal(s->edge[0].number, 0);
	assert_int_equal(s->edge[0].host_start_ns, 0);
	assert_int_equal(s->edge[1].number, 4);
	const struct steps *marked = steps_of_profiler(p, 0, &p->arena);
	assert_true(marked->whole_trace);
	assert_int_equal(marked->total, 1);
	profile_free(p);
}

static void steps_by_name(void **state)
{
	struct profile *p = make_rounds("train_step");
	assert_int_equal(p->steps->source, STEPS_NAMED);
	assert_str_equal(p->steps->key, "train_step #");
	assert_int_equal(p->steps->n, 4);
	assert_int_equal(p->steps->edges, 0);
	assert_int_equal(p->steps->v[2].number, 12);
	assert_str_equal(p->steps->v[2].name, "12");
	profile_free(p);
}

static void steps_of_a_given_key(void **state)
{
	struct profile *p = make_rounds("train_step");
	struct err e = {0};
	assert_int_equal(steps_choose(p, "next", &e), 0);
	assert_int_equal(p->steps->source, STEPS_GIVEN);
	assert_int_equal(p->steps->n, 3);
	assert_int_equal(p->steps->v[0].host_start_ns, 1000); /* what is called early in a step begins it */
	assert_int_equal(steps_choose(p, "SGD.step", &e), 0); /* the end of a name; what ends a step ends it */
	assert_int_equal(p->steps->v[0].host_start_ns, 1028);
	assert_int_equal(steps_choose(p, "train_step #", &e), 0);
	assert_int_equal(p->steps->n, 4);
	assert_int_equal(steps_choose(p, "train_step 11", &e), 0); /* one call that is no whole step */
	assert_true(p->steps->whole_trace);
	assert_int_equal(steps_choose(p, "forward", &e), 0); /* a kernel: the calls that launch it */
	assert_int_equal(p->steps->n, 3);
	assert_int_equal(steps_choose(p, "no such op", &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
	assert_true(strstr(e.msg, "next") != NULL);
	assert_int_equal(steps_choose(p, NULL, &e), 0);
	assert_int_equal(p->steps->source, STEPS_NAMED);
	profile_free(p);
}

/* Each process has a GPU; key ranges of GPU 1 are 3 ns later and 2 ns longer. */
static struct profile *make_gpus(int on_first, int on_second)
{
	struct maker m;
	make_begin(&m);
	for (int i = 0; i < 5; i++)
		for (int gpu = 0; gpu < 2; gpu++) {
			m.now = 1000 + 100 * i + 3 * gpu;
			if (i < (gpu ? on_second : on_first))
				make_span(&m, gpu, "key", m.now, 40 + 2 * gpu, SPAN_OP);
			make_kernel(&m, gpu, "work", GPU_KERNEL);
		}
	return make_end(&m, PASS_NEST | PASS_CORRELATE);
}

static void several_gpus(void **state)
{
	struct profile *p = make_gpus(4, 4);
	struct key_calls k;
	uint32_t n;
	assert_true(key_calls_find(p, STR("key"), &k));
	assert_int_equal(k.n, 8);
	assert_int_equal(k.gpus, 2);
	int64_t *border = key_borders(&k, true, &n);
	assert_int_equal(n, 4);
	assert_int_equal(border[0], 1045); /* the later of both */
	mem_free(border);
	border = key_borders(&k, false, &n);
	assert_int_equal(n, 4);
	assert_int_equal(border[3], 1300); /* the earlier of both */
	mem_free(border);
	key_calls_release(&k);
	profile_free(p);
	p = make_gpus(4, 3); /* each call is a border */
	assert_true(key_calls_find(p, STR("key"), &k));
	border = key_borders(&k, true, &n);
	assert_int_equal(n, 7);
	assert_int_equal(border[0], 1040);
	assert_int_equal(border[1], 1045);
	mem_free(border);
	key_calls_release(&k);
	profile_free(p);
}

static void only_the_outermost_call_counts(void **state)
{
	struct maker m;
	struct key_calls k;
	make_begin(&m);
	for (int i = 0; i < 3; i++) {
		make_span(&m, 0, "key", 100 * i, 50, SPAN_OP);
		make_span(&m, 0, "key", 100 * i + 10, 20, SPAN_OP);
	}
	struct profile *p = make_end(&m, PASS_NEST | PASS_CORRELATE);
	assert_true(key_calls_find(p, STR("key"), &k));
	assert_int_equal(k.n, 3);
	assert_false(key_calls_find(p, STR("ey"), &(struct key_calls){0})); /* no whole word */
	key_calls_release(&k);
	profile_free(p);
}

static void candidates_come_in_order(void **state)
{
	struct profile *p = make_rounds(NULL);
	struct arena a = {0};
	struct key_candidate *c;
	assert_int_equal(key_candidates(p, 0, true, 9, &a, &c), 2);
	assert_str_equal(c[0].name, "next");
	assert_int_equal(c[0].calls, 4);
	assert_int_equal(c[0].first_ns, 1000);
	assert_str_equal(c[1].name, "Optimizer.step#SGD.step");
	assert_int_equal(key_candidates(p, 0, true, 1, &a, &c), 1);
	arena_release(&a);
	profile_free(p);
}

static void parts_hold_what_starts_in_them(void **state)
{
	struct profile *p = make_rounds("train_step");
	struct err e = {0};
	struct profile *part = slice_of_steps(p, 11, 12, &e);
	assert_non_null(part);
	assert_int_equal(part->gpu_op.rows.n, 2);
	assert_int_equal(part->span.rows.n, 2 * 4); /* the step, next, the launch, the optimizer */
	assert_int_equal(part->steps->n, 2);
	assert_int_equal(part->steps->v[0].number, 11);
	assert_str_equal(profile_str(part, part->span.name[part->steps->v[0].span]), "train_step 11");
	assert_int_equal(part->gpu_op.call[1] == ROW_NONE, 0);
	assert_null(slice_of_steps(p, 90, 91, &e));
	assert_int_equal(e.code, ERR_DATA);
	part = slice_of_steps(p, INT64_MIN, INT64_MAX, &e); /* what is in no step is in no part */
	assert_int_equal(part->span.rows.n, p->span.rows.n - 2);
	assert_int_equal(part->gpu_op.rows.n, p->gpu_op.rows.n);
	profile_free(p);
}

/* Work that several real traces hold, found without the ProfilerSteps that they also hold. */
static void real_steps_are_found_again(void **state)
{
	static const struct { const char *path; unsigned steps; } traces[] = {
		{"tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz", 6},
		{"tb_plugin/resnet50_num_workers_0/worker0.1623143566756.pt.trace.json.gz", 6},
		{"hta/nccl_parser_config/nccl_data.json.gz", 3},
		{"hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 5},
		{"multirank/megatron_a100_tp8/megatron_kineto_0.json.gz", 0}, /* one step of 40 layers */
		{"tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 0},
		{"tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz", 0},
	};
	const char *data = getenv("OPSCOPE_DATA");
	struct stat st;
	if (!data || stat(data, &st) < 0)
		skip_because("no real traces (they are not part of the repository)");
	for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
		char path[4096];
		struct err e = {0};
		snprintf(path, sizeof path, "%s/%s", data, traces[i].path);
		struct profile *p = input_open(path, NULL, &e);
		assert_non_null(p);
		assert_int_equal(analysis_run(p, PASS_CORRELATE, &e), 0);
		assert_int_equal(period_of(p, NULL), traces[i].steps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periods_are_found),
		cmocka_unit_test(periods_that_are_none),
		cmocka_unit_test(layers_are_no_steps),
		cmocka_unit_test(longer_patterns_are_several_steps),
		cmocka_unit_test(parts_of_a_step_are_none),
		cmocka_unit_test(hostile_sequences_take_little_time),
		cmocka_unit_test(names_that_mean_a_step),
		cmocka_unit_test(steps_of_an_optimizer),
		cmocka_unit_test(steps_by_name),
		cmocka_unit_test(steps_of_a_given_key),
		cmocka_unit_test(several_gpus),
		cmocka_unit_test(only_the_outermost_call_counts),
		cmocka_unit_test(candidates_come_in_order),
		cmocka_unit_test(parts_hold_what_starts_in_them),
		cmocka_unit_test(real_steps_are_found_again),
	};
	return RUN_TESTS(tests);
}
