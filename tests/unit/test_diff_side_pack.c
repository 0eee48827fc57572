/* A side of a comparison as bytes (query/diff_side_pack.h): the same side comes back, and no bytes harm who takes them. */
#include "profile_builder.h"

#include "analysis/ranks/job.h"
#include "base/mem.h"
#include "query/diff_side_pack.h"
#include "query/diff_wait.h"

#include "test.h"

enum { DEVICE = 3 };

/* A rank of two, that computes for compute_ns before the collective. */
static struct profile *make_profile(struct builder *m, const char *info, int64_t compute_ns)
{
	builder_begin(m);
	build_meta(&m->b, builder_text(m, "distributedInfo"), builder_text(m, info), false);
	builder_device(m, DEVICE, 1 << 30);
	uint32_t thread = builder_track(m, "1", "1");
	for (int i = 0; i < 3; i++) {
		int64_t at = 10000 * i;
		builder_span(m, thread, SPAN_USER, i ? "ProfilerStep#8" : "ProfilerStep#7", at, at + 9000);
		builder_launch(m, thread, at + 400, at + 420, DEVICE, "gemm", at + 1000, at + 1000 + compute_ns);
		struct gpu_row r = builder_gpu_row(m, DEVICE, GPU_KERNEL, "ncclDevKernel_AllReduce_Sum_f16_RING_LL(args)", at + 1000 + compute_ns, at + 6000);
		r.args = builder_text_args(m, (const char *const[]){"Collective name", "allreduce", "Process Group Name", "0", "Group size", "2", "In msg nelems", "1000", "dtype", "Half", NULL});
		build_gpu(&m->b, &r);
		builder_gpu(m, DEVICE, GPU_MEMCPY, "Memcpy HtoD (Pinned -> Device)", at + 6500, at + 6900);
	}
	builder_finish(m, PASS_NEST | PASS_CORRELATE | PASS_STEPS);
	return m->p;
}

static const char *const info[] = {"{\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 2}", "{\"backend\": \"nccl\", \"rank\": 1, \"world_size\": 2}"};

static struct diff_side *make_side(unsigned rank, struct job *job)
{
	struct builder m;
	struct err e;
	const struct report_args args = {0};
	struct profile *p = make_profile(&m, info[rank], rank ? 4000 : 2000);
	struct diff_side *s = diff_side_new(p, &args, &e);
	assert_non_null(s);
	if (job) {
		job_add_profile(job, p, rank);
		job->rank[job->n - 1]->input = rank;
	}
	profile_free(p);
	return s;
}

static struct buf packed(const struct diff_side *s)
{
	struct buf b = {0};
	diff_side_pack(s, &b);
	return b;
}

/* Waiting of 2000 ns in each step of rank 0, as a mean over both. */
static void check_waits(struct diff_side *s, struct job *job)
{
	int64_t wait_ns = 0, sum_ns = 0;
	diff_wait_tell(s, job);
	for (uint32_t i = 0; i < s->n_parts; i++) {
		wait_ns += s->part[i].key.kind == DIFF_WAIT ? s->part[i].ns : 0;
		sum_ns += s->part[i].ns;
	}
	assert_int_equal(wait_ns, 2000 * s->n_steps);
	assert_int_equal(sum_ns, s->total_ns);
}

static void the_same_side_comes_back(void **state)
{
	struct err e;
	struct job *job = job_new();
	struct diff_side *s = make_side(0, job), *other = make_side(1, job);
	struct buf b = packed(s);
	struct diff_side *q = diff_side_unpack(buf_view(&b), &e);
	assert_non_null(q);
	assert_int_equal(q->n_parts, s->n_parts);
	assert_int_equal(q->total_ns, s->total_ns);
	assert_int_equal(q->n_steps, s->n_steps);
	assert_int_equal(q->n_exposed, s->n_exposed);
	assert_int_equal(q->n_facts, s->n_facts);
	assert_string_equal(q->fact[DIFF_FACT_RANKS].value.p, "2");
	struct buf again = packed(q);
	assert_int_equal(again.n, b.n);
	assert_memory_equal(again.p, b.p, b.n);
	assert_int_equal(job_finish(job, JOB_ALIGN_AUTO, NULL, &e), 0);
	assert_int_equal(diff_side_join(q, other, &e), 0);
	diff_side_join_end(q);
	check_waits(q, job);
	buf_release(&b);
	buf_release(&again);
	job_free(job);
	diff_side_free(q);
	diff_side_free(s);
	diff_side_free(other);
}

/* Takes what the bytes give through all that takes sides. Returns whether they are a side. */
static bool try_bytes(struct str bytes, const struct diff_side *other, const struct job *job)
{
	struct err e = {0};
	struct diff_side *s = diff_side_unpack(bytes, &e);
	struct table t;
	if (!s) {
		assert_int_equal(e.code, ERR_FORMAT);
		return false;
	}
	if (diff_side_join(s, other, &e) == 0) {
		diff_side_join_end(s);
		diff_wait_tell(s, job);
	}
	if (diff_table(s, other, &(struct diff_ask){.force = true}, &t, &e) == 0)
		table_release(&t);
	diff_side_free(s);
	return true;
}

static void damaged_bytes_are_refused_or_sound(void **state)
{
	struct err e;
	struct job *job = job_new();
	struct diff_side *s = make_side(0, job), *other = make_side(1, job);
	struct buf b = packed(s);
	size_t sound = 0;
	assert_int_equal(job_finish(job, JOB_ALIGN_AUTO, NULL, &e), 0);
	for (size_t n = 0; n < b.n; n++) {
		char *cut = NEW_ARRAY_RAW(n, char); /* of its own: reading beyond it is seen */
		memcpy(cut, b.p, n);
		assert_false(try_bytes((struct str){cut, n}, other, job));
		mem_free(cut);
	}
	for (size_t i = 0; i < b.n; i++)
		for (unsigned x = 1; x < 256; x = x < 128 ? 2 * x : x + 127) {
			b.p[i] = (char)(b.p[i] ^ x);
			sound += try_bytes(buf_view(&b), other, job);
			b.p[i] = (char)(b.p[i] ^ x);
		}
	assert_true(sound > 0);
	buf_release(&b);
	job_free(job);
	diff_side_free(s);
	diff_side_free(other);
}

/* Times of single steps that are more than the side's. */
static void cells_that_do_not_add_up_are_refused(void **state)
{
	struct err e;
	struct diff_side *s = make_side(0, NULL);
	assert_true(s->n_steps > 1);
	assert_int_equal(s->n_part_steps, s->n_parts * s->n_steps);
	const int64_t had_ns = s->part_step_ns[0], wrong_ns[] = {(int64_t)1 << 62, -((int64_t)1 << 62), s->total_ns + 1};
	for (size_t i = 0; i < sizeof wrong_ns / sizeof *wrong_ns; i++) {
		s->part_step_ns[0] = wrong_ns[i];
		struct buf b = packed(s);
		assert_null(diff_side_unpack(buf_view(&b), &e));
		assert_int_equal(e.code, ERR_FORMAT);
		buf_release(&b);
	}
	s->part_step_ns[0] = had_ns;
	diff_side_free(s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_side_comes_back), cmocka_unit_test(damaged_bytes_are_refused_or_sound), cmocka_unit_test(cells_that_do_not_add_up_are_refused)};
	return RUN_TESTS(tests);
}
