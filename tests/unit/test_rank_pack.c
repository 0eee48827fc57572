/* A rank as bytes (analysis/ranks/rank_pack.h, base/pack.h): the same rank comes back, and no bytes harm who takes them. */
#include "profile_builder.h"

#include "failing_malloc.h"

#include "analysis/ranks/job.h"
#include "analysis/ranks/job_blame.h"
#include "analysis/ranks/rank_pack.h"
#include "base/mem.h"
#include "base/pack.h"

static const char info[] = "{\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8, \"pg_config\": [{\"pg_name\": \"7\", \"pg_desc\": \"tensor\", \"ranks\": [2, 3], \"pg_size\": 2}]}";

/* Two steps with kernels, copies, collectives of two groups, a data loader and garbage collection. */
static struct rank *make_rank(void)
{
	struct builder m;
	builder_begin(&m);
	build_meta(&m.b, builder_text(&m, "distributedInfo"), builder_text(&m, info), false);
	build_meta(&m.b, builder_text(&m, "baseTimeNanoseconds"), builder_text(&m, "1700000000000000000"), false);
	build_meta(&m.b, builder_text(&m, "with_stack"), builder_text(&m, "1"), false);
	builder_device(&m, 3, 1 << 30);
	uint32_t thread = builder_track(&m, "1", "1");
	for (int i = 0; i < 2; i++) {
		int64_t at = 10000 * i;
		builder_span(&m, thread, SPAN_USER, i ? "ProfilerStep#8" : "ProfilerStep#7", at, at + 9000);
		builder_span(&m, thread, SPAN_USER, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 100, at + 300);
		builder_launch(&m, thread, at + 400, at + 420, 3, "gemm", at + 1000, at + 3000);
		for (int k = 0; k < 3; k++) {
			struct gpu_row r = builder_gpu_row(&m, 3, GPU_KERNEL, k ? "ncclDevKernel_AllReduce_Sum_f16_RING_LL(args)" : "ncclDevKernel_Broadcast_RING_LL(args)", at + 2000 + 1500 * k, at + 3300 + 1500 * k);
			r.args = builder_text_args(&m, (const char *const[]){"Collective name", k ? "allreduce" : "broadcast", "Process Group Name", k == 2 ? "7" : "default_pg", "Group size",
			                                                     k == 2 ? "2" : "8", "Seq", k ? "12" : "11", "In msg nelems", "1000", "Out msg nelems", "1000", "dtype", "Half", NULL});
			build_gpu(&m.b, &r);
		}
		builder_gpu(&m, 3, GPU_MEMCPY, "Memcpy HtoD (Pinned -> Device)", at + 6500, at + 6900);
	}
	builder_finish(&m, PASS_NEST | PASS_CORRELATE | PASS_STEPS);
	struct rank *r = rank_new(m.p, 0);
	profile_free(m.p);
	return r;
}

static struct buf packed(const struct rank *r)
{
	struct buf b = {0};
	rank_pack(r, &b);
	return b;
}

static void the_same_rank_comes_back(void **state)
{
	struct rank *r = make_rank();
	struct buf b = packed(r);
	struct err e;
	struct rank *q = rank_unpack(buf_view(&b), &e);
	assert_non_null(q);
	assert_int_equal(q->number, 3);
	assert_int_equal(q->world, 8);
	assert_int_equal(q->device, 3);
	assert_true(q->recording.stacks);
	assert_false(q->recording.memory);
	assert_int_equal(q->epoch_ns, 1700000000000000000);
	assert_int_equal(q->n_steps, 2);
	assert_int_equal(q->step[1].number, 8);
	assert_memory_equal(q->step, r->step, r->n_steps * sizeof *r->step);
	assert_int_equal(q->n_groups, 2);
	assert_str_equal(q->group[1].name, "7");
	assert_str_equal(q->group[1].about, "tensor");
	assert_int_equal(q->group[1].n, 2);
	assert_int_equal(q->group[1].member[1], 3);
	assert_int_equal(q->n_calls, 6);
	for (uint32_t i = 0; i < q->n_calls; i++) {
		assert_memory_equal(&q->call[i].before, &r->call[i].before, sizeof(struct rank_past));
		assert_int_equal(q->call[i].seq, r->call[i].seq);
		assert_int_equal(q->call[i].kind, r->call[i].kind);
		assert_int_equal(q->call[i].bytes, r->call[i].bytes);
		assert_int_equal(q->call[i].wait_ns, -1);
	}
	assert_int_equal(q->call[1].bytes, 2000);
	assert_str_equal(intern_get(&q->texts, q->call[1].kernel), "ncclDevKernel_AllReduce_Sum_f16_RING_LL");
	assert_true(q->n_pieces > 0);
	assert_memory_equal(q->piece, r->piece, r->n_pieces * sizeof *r->piece);
	struct buf again = packed(q);
	assert_int_equal(again.n, b.n);
	assert_memory_equal(again.p, b.p, b.n);
	buf_release(&b);
	buf_release(&again);
	rank_free(q);
	rank_free(r);
}

/* Takes what the bytes give through all that takes ranks. Returns whether they are a rank. */
static bool try_bytes(struct str bytes)
{
	struct err e = {0};
	struct rank *q = rank_unpack(bytes, &e);
	if (!q) {
		assert_int_equal(e.code, ERR_FORMAT);
		return false;
	}
	struct buf again = packed(q);
	assert_int_equal(again.n, bytes.n);
	assert_memory_equal(again.p, bytes.p, bytes.n);
	buf_release(&again);
	struct rank *other = make_rank();
	struct job *j = job_new();
	other->number = q->number == 4 ? 5 : 4;
	job_add(j, other);
	job_add(j, q);
	assert_int_equal(job_finish(j, JOB_ALIGN_ENDS, NULL, &e), 0);
	for (uint32_t r = 0; r < j->n; r++)
		job_times_of(j, r, INT64_MIN, INT64_MAX);
	mem_free(job_blame_find(j));
	job_free(j);
	return true;
}

static void cut_bytes_are_refused(void **state)
{
	struct rank *r = make_rank();
	struct buf b = packed(r);
	rank_free(r);
	for (size_t n = 0; n < b.n; n++) {
		char *cut = NEW_ARRAY_RAW(n, char); /* of its own: reading beyond it is seen */
		memcpy(cut, b.p, n);
		assert_false(try_bytes((struct str){cut, n}));
		mem_free(cut);
	}
	buf_char(&b, 0);
	assert_false(try_bytes(buf_view(&b)));
	buf_release(&b);
}

static void changed_bytes_are_refused_or_sound(void **state)
{
	struct rank *r = make_rank();
	struct buf b = packed(r);
	size_t sound = 0;
	rank_free(r);
	for (size_t i = 0; i < b.n; i++)
		for (unsigned x = 1; x < 256; x = x < 128 ? 2 * x : x + 127) {
			b.p[i] = (char)(b.p[i] ^ x);
			sound += try_bytes(buf_view(&b));
			b.p[i] = (char)(b.p[i] ^ x);
		}
	assert_true(sound > 0);
	buf_release(&b);
}

/* What a rank cannot be is refused, one by one. */
static void what_no_rank_is_is_refused(void **state)
{
	enum { CASES = 15 };
	for (int i = 0; i <= CASES; i++) {
		struct rank *r = make_rank();
		switch (i) {
		case 0: r->call[1].start_ns = r->call[0].start_ns - 1; break;
		case 1: r->call[2].end_ns = r->call[2].start_ns - 1; break;
		case 2: r->call[2].group = r->n_groups; break;
		case 3: r->call[2].kernel = r->texts.n; break;
		case 4: r->call[2].exposed_ns++; break;
		case 5: r->call[2].piece++; break;
		case 6: r->call[5].n_pieces = 0; break;
		case 7: r->piece[1].end = r->piece[1].start; break;
		case 8: r->group[1].member[1] = 2; break;
		case 9: r->group[1].size = 3; break;
		case 10: r->step[1].end_ns = r->step[1].start_ns - 1; break;
		case 11: r->call[0].kind = COMM_UNKNOWN + 1; break;
		case 12: r->step[1].phase_ns[RANK_PHASE_OTHER]++; break;
		case 13: /* a task of no worker */
		case 14: /* a task in no step */
			r->task = NEW(struct rank_task);
			r->task->step = 9;
			r->n_tasks = 1;
			r->is_worker = i == 14;
			break;
		default: break;
		}
		struct buf b = packed(r);
		if (try_bytes(buf_view(&b)) != (i == CASES))
			fail_msg("case %d", i);
		buf_release(&b);
		rank_free(r);
	}
}

static void other_versions_are_named(void **state)
{
	struct rank *r = make_rank();
	struct buf b = packed(r);
	struct err e;
	b.p[5] ^= 1;
	assert_null(rank_unpack(buf_view(&b), &e));
	assert_string_equal(e.msg, "the rank was written by another version of opscope, which keeps other fields");
	buf_release(&b);
	rank_free(r);
}

/* ---- base/pack.h by itself: each kind of field at the ends of its range ---- */

struct small {
	int8_t a;
	uint16_t b;
	int32_t c;
	uint64_t d;
	double real;
	uint32_t index, n_words;
	int64_t *list;
	uint32_t n;
};
#define SMALL_FIELDS(F, S)                                                                                                                              \
	F(S, INT, a, -5, 5) F(S, INT, b, 0, INT64_MAX) F(S, INT, c, INT64_MIN, INT64_MAX) F(S, INT, d, 0, INT64_MAX) F(S, REAL, real) F(S, REF, index, struct small, n_words) \
	F(S, INT, n_words, 0, 9) F(S, LIST, list, n, INT64_MIN, INT64_MAX)
PACK_TYPE(small, SMALL_FIELDS)

static bool back_and_forth(struct small s)
{
	struct buf b = {0}, again = {0};
	struct small t = {0};
	struct arena a = {0};
	const char *why;
	pack_put(&small_layout, &s, &b);
	bool good = pack_take(&small_layout, buf_view(&b), &a, &t, &why);
	if (good) {
		pack_put(&small_layout, &t, &again);
		assert_int_equal(b.n, again.n);
		assert_memory_equal(b.p, again.p, b.n);
		assert_int_equal(t.a, s.a);
		assert_int_equal(t.b, s.b);
		assert_int_equal(t.c, s.c);
		assert_int_equal(t.d, s.d);
	}
	mem_free(t.list);
	buf_release(&b);
	buf_release(&again);
	arena_release(&a);
	return good;
}

static void fields_keep_to_their_ranges(void **state)
{
	int64_t list[] = {INT64_MIN, INT64_MAX, 0, -1};
	assert_true(back_and_forth((struct small){.n_words = 1}));
	assert_true(back_and_forth((struct small){-5, UINT16_MAX, INT32_MIN, INT64_MAX, -0.0, 8, 9, list, 4}));
	assert_true(back_and_forth((struct small){5, 0, INT32_MAX, 0, 1e300, 0, 1, list, 1}));
	assert_false(back_and_forth((struct small){.a = 6, .n_words = 1}));
	assert_false(back_and_forth((struct small){.a = -6, .n_words = 1}));
	assert_false(back_and_forth((struct small){.d = UINT64_MAX, .n_words = 1}));
	assert_false(back_and_forth((struct small){.n_words = 0}));
	assert_false(back_and_forth((struct small){.index = 2, .n_words = 2}));
	assert_false(back_and_forth((struct small){.n_words = 10}));
}

static void unpack_much(void *context)
{
	const struct buf *b = context;
	struct err e;
	rank_free(rank_unpack(buf_view(b), &e));
	struct buf again = {0};
	buf_str(&again, buf_view(b));
	buf_release(&again);
}

static void each_allocation_may_fail(void **state)
{
	enum { NEVER = 1000000000 };
	struct rank *r = make_rank();
	struct buf b = packed(r);
	struct mem_pool pool = {0};
	rank_free(r);
	failing_begin(NEVER, false);
	assert_int_equal(mem_try(&pool, unpack_much, &b), 0);
	unsigned long n = failing_end();
	mem_pool_release(&pool);
	size_t before = failing_held;
	assert_true(n > 5);
	for (unsigned long at = 1; at <= n; at++) {
		failing_begin(at, true);
		int rc = mem_try(&pool, unpack_much, &b);
		failing_end();
		mem_pool_release(&pool);
		if (rc != -1 || failing_held != before)
			fail_msg("allocation %lu of %lu: %d", at, n, rc);
	}
	buf_release(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_rank_comes_back), cmocka_unit_test(cut_bytes_are_refused), cmocka_unit_test(changed_bytes_are_refused_or_sound),
		cmocka_unit_test(what_no_rank_is_is_refused), cmocka_unit_test(other_versions_are_named), cmocka_unit_test(fields_keep_to_their_ranges),
		cmocka_unit_test(each_allocation_may_fail),
	};
	return RUN_TESTS(tests);
}
