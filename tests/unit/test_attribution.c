/* Who is around whom and who launched what, against a look at every pair, by the rules that analysis/tree/nest.c and correlate.c state. */
#include "profile_builder.h"

#include "base/mem.h"

enum { ROUNDS = 4000, MOST_SPANS = 48, MOST_GPU = 16 };

static uint32_t random_below(uint32_t *x, uint32_t n)
{
	*x = *x * 1664525 + 1013904223;
	return (*x >> 8) % n;
}

struct maker {
	struct builder b;
	uint32_t seed, track[4], launch[3];
};

static void make_begin(struct maker *m, uint32_t seed)
{
	*m = (struct maker){.seed = seed};
	builder_begin(&m->b);
	for (int i = 0; i < 4; i++)
		m->track[i] = builder_track(&m->b, i < 2 ? "1" : "2", i % 2 ? "11" : "12");
	for (int i = 0; i < 3; i++) {
		struct launch_row l = launch_none();
		l.pid = i ? i : ID_NONE;
		m->launch[i] = build_launch(&m->b.b, &l);
	}
}

static struct profile *make_end(struct maker *m)
{
	return builder_finish(&m->b, PASS_NEST | PASS_CORRELATE);
}

/* Few distinct ids, so that several share one; 0 and "none" among them. */
static int64_t random_id(uint32_t *seed, uint32_t n)
{
	uint32_t id = random_below(seed, n + 1);
	return id == n ? ID_NONE : id;
}

static void make_span(struct maker *m, uint32_t track, int64_t start, int64_t dur, uint8_t kind)
{
	struct span_row r = builder_span_row(&m->b, track, kind, "x", start, start + dur);
	r.ext_id = random_id(&m->seed, 8);
	r.link_id = random_id(&m->seed, 8);
	build_span(&m->b.b, &r);
}

/* Ranges cross as they please; all kinds, also those that do not nest; empty ones; several that begin together. */
static struct profile *crossing(uint32_t seed)
{
	struct maker m;
	make_begin(&m, seed);
	uint32_t n = random_below(&m.seed, MOST_SPANS), time = 10 + random_below(&m.seed, 90);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t track = m.track[random_below(&m.seed, 4)], start = random_below(&m.seed, time);
		uint32_t dur = random_below(&m.seed, random_below(&m.seed, 3) ? 8 : time);
		make_span(&m, track, start, dur, (uint8_t)(random_below(&m.seed, 2) ? random_below(&m.seed, 4) : random_below(&m.seed, SPAN_KINDS)));
	}
	for (uint32_t i = random_below(&m.seed, MOST_GPU); i--;) {
		uint32_t at = random_below(&m.seed, 2 * time);
		struct gpu_row r = builder_gpu_row(&m.b, 0, GPU_KERNEL, "kernel", at, at + 1);
		r.ext_id = random_id(&m.seed, 8);
		r.corr_id = random_id(&m.seed, 8);
		r.launch = m.launch[random_below(&m.seed, 3)];
		build_gpu(&m.b.b, &r);
	}
	return make_end(&m);
}

/* Ranges well inside one another: each splits what is around it. */
static void split(struct maker *m, uint32_t track, int64_t start, int64_t end, int depth)
{
	static const uint8_t kinds[] = {SPAN_OP, SPAN_USER, SPAN_PYTHON, SPAN_MARKER};
	while (start < end) {
		int64_t from = start + 1 + random_below(&m->seed, 8), to = from + 1 + random_below(&m->seed, 60);
		if (to >= end)
			return;
		make_span(m, track, from, to - from, kinds[random_below(&m->seed, 4)]);
		if (depth < 6)
			split(m, track, from, to, depth + 1);
		start = to + 1;
	}
}

static struct profile *nested(uint32_t seed)
{
	struct maker m;
	make_begin(&m, seed);
	for (int i = 0; i < 4; i++)
		split(&m, m.track[i], 0, 10 + random_below(&m.seed, 150), 0);
	return make_end(&m);
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

static bool nests(const struct profile *p, uint32_t i)
{
	uint8_t k = p->span.kind[i];
	return k == SPAN_OP || k == SPAN_USER || k == SPAN_PYTHON || k == SPAN_CALL || k == SPAN_MARKER;
}

/* The last range of the thread that began before (in row order) and is still open; `end` has where each counts as over. */
static uint32_t innermost_open(const struct profile *p, uint32_t i, const int64_t *end)
{
	uint32_t found = ROW_NONE;
	for (uint32_t k = 0; k < i; k++)
		if (p->span.track[k] == p->span.track[i] && nests(p, k) && p->span.kind[k] != SPAN_CALL && end[k] > p->span.start_ns[i])
			found = k;
	return found;
}

static void expect_parents(const struct profile *p, uint32_t *parent)
{
	const struct spans *s = &p->span;
	int64_t end[MOST_SPANS];
	for (uint32_t i = 0; i < s->rows.n; i++) {
		parent[i] = ROW_NONE;
		end[i] = span_end(p, i);
		if (!nests(p, i))
			continue;
		uint32_t up = innermost_open(p, i, end);
		/* A frame that opens an annotation or op and is left before it ends: over when that one begins. */
		for (; up != ROW_NONE && (s->kind[i] == SPAN_OP || s->kind[i] == SPAN_USER) && s->kind[up] == SPAN_PYTHON && end[i] > end[up];
		     up = innermost_open(p, i, end))
			end[up] = s->start_ns[i];
		parent[i] = up;
		/* Any other overlap: as if it ended with its parent. */
		if (up != ROW_NONE && end[i] > end[up])
			end[i] = end[up];
	}
}

static uint32_t op_around(const struct profile *p, uint32_t i, const uint32_t *parent)
{
	for (uint32_t up = parent[i]; up != ROW_NONE; up = parent[up])
		if (p->span.kind[up] == SPAN_OP)
			return up;
	return ROW_NONE;
}

static bool is_id(int64_t id) { return id != ID_NONE && id != 0; }

static int64_t pid_of(const struct profile *p, uint32_t span) { return p->track.pid[p->span.track[span]]; }

/* All calls with an external id, two at least, have their correlation id as that: it is no op's. */
static bool ext_means_nothing(const struct profile *p)
{
	uint32_t n = 0, alike = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		bool counts = p->span.kind[i] == SPAN_CALL && is_id(span_ext_id(&p->span, i));
		n += counts;
		alike += counts && span_ext_id(&p->span, i) == p->span.link_id[i];
	}
	return n > 1 && alike == n;
}

static bool owns(const struct profile *p, uint32_t i, int64_t ext)
{
	return (p->span.kind[i] == SPAN_OP || p->span.kind[i] == SPAN_USER) && is_id(ext) && span_ext_id(&p->span, i) == ext;
}

/* The call's op: of its process with its external id, else around it. */
static uint32_t expect_op_of_call(const struct profile *p, uint32_t call, const uint32_t *parent)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (owns(p, i, span_ext_id(&p->span, call)) && pid_of(p, i) == pid_of(p, call) && !ext_means_nothing(p))
			return i;
	return op_around(p, call, parent);
}

struct candidates {
	uint32_t any, of_process, last, last_with_ext, only;
	bool two_processes;
};

static struct candidates find_calls(const struct profile *p, uint32_t g)
{
	struct candidates c = {.last = ROW_NONE, .last_with_ext = ROW_NONE, .only = ROW_NONE};
	int64_t pid = p->launch.pid[p->gpu_op.launch[g]], corr = p->gpu_op.corr_id[g], ext = gpu_ext_id(&p->gpu_op, g);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (corr == ID_NONE || p->span.kind[i] != SPAN_CALL || p->span.link_id[i] != corr)
			continue;
		c.any++;
		if (pid != ID_NONE && pid_of(p, i) != pid)
			continue;
		c.two_processes |= c.only != ROW_NONE && pid_of(p, i) != pid_of(p, c.only);
		c.only = c.of_process++ ? c.only : i;
		if (p->span.start_ns[i] > p->gpu_op.start_ns[g])
			continue;
		if (c.last == ROW_NONE || p->span.start_ns[i] >= p->span.start_ns[c.last])
			c.last = i;
		if (is_id(ext) && span_ext_id(&p->span, i) == ext &&
		    (c.last_with_ext == ROW_NONE || p->span.start_ns[i] >= p->span.start_ns[c.last_with_ext]))
			c.last_with_ext = i;
	}
	return c;
}

static uint32_t expect_call(const struct profile *p, uint32_t g, bool *unclear)
{
	struct candidates c = find_calls(p, g);
	*unclear = false;
	if (c.any == 1 || !c.of_process)
		return c.only;
	if (c.last_with_ext != ROW_NONE)
		return c.last_with_ext;
	*unclear = c.two_processes || c.last == ROW_NONE;
	return *unclear ? ROW_NONE : c.last;
}

static uint32_t expect_op_of_gpu(const struct profile *p, uint32_t g, uint32_t call, bool unclear, const uint32_t *parent)
{
	uint32_t op = call == ROW_NONE ? ROW_NONE : expect_op_of_call(p, call, parent), owners = 0, owner = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (owns(p, i, gpu_ext_id(&p->gpu_op, g))) {
			owner = i;
			owners++;
		}
	return op == ROW_NONE && !unclear && owners == 1 && !ext_means_nothing(p) ? owner : op;
}

/* --- tests ------------------------------------------------------------------------------------------------------ */

static void test_crossing(void **state)
{
	uint32_t parents = 0, by_call = 0, ambiguous = 0, lone = 0;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct profile *p = crossing(round);
		uint32_t parent[MOST_SPANS];
		expect_parents(p, parent);
		for (uint32_t i = 0; i < p->span.rows.n; i++) {
			assert_int_equal(p->span.parent[i], parent[i]);
			bool call = p->span.kind[i] == SPAN_CALL;
			assert_int_equal(p->span.op[i], call ? expect_op_of_call(p, i, parent) : op_around(p, i, parent));
			parents += parent[i] != ROW_NONE;
		}
		for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
			bool unclear;
			uint32_t call = expect_call(p, g, &unclear);
			assert_int_equal(p->gpu_op.call[g], call);
			assert_int_equal(p->gpu_op.op[g], expect_op_of_gpu(p, g, call, unclear, parent));
			by_call += call != ROW_NONE;
			ambiguous += unclear;
			lone += call == ROW_NONE && p->gpu_op.op[g] != ROW_NONE;
		}
		profile_free(p);
	}
	/* The cases came up. */
	assert_true(parents > ROUNDS && by_call > ROUNDS && ambiguous > ROUNDS / 10 && lone > ROUNDS / 10);
}

/* The shortest range around it, without any rule of repair. */
static void test_nested(void **state)
{
	uint32_t parents = 0;
	for (uint32_t round = 0; round < ROUNDS / 4; round++) {
		struct profile *p = nested(round);
		const struct spans *s = &p->span;
		for (uint32_t i = 0; i < s->rows.n; i++) {
			uint32_t best = ROW_NONE;
			for (uint32_t k = 0; k < s->rows.n; k++)
				if (k != i && s->track[k] == s->track[i] && s->start_ns[k] <= s->start_ns[i] && span_end(p, k) >= span_end(p, i) &&
				    (best == ROW_NONE || s->dur_ns[k] < s->dur_ns[best]))
					best = k;
			assert_int_equal(s->parent[i], best);
			parents += best != ROW_NONE;
		}
		profile_free(p);
	}
	assert_true(parents > ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crossing),
		cmocka_unit_test(test_nested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
