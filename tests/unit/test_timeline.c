/* The timeline: lanes never overlap, levels of detail lose nothing, windows fit together. */
#include "profile_builder.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/timeline/timeline_levels.h"
#include "analysis/timeline/timeline_sums.h"
#include "base/mem.h"

struct maker {
	struct builder b;
	struct profile *p;
	uint32_t thread, stream, launch;
};

static void make_begin(struct maker *m)
{
	builder_begin(&m->b);
	m->p = m->b.p;
	m->thread = builder_track(&m->b, "100", "1");
	m->stream = builder_stream(&m->b, 0);
	m->launch = builder_launch_on(&m->b, 0);
}

static void make_span(struct maker *m, int64_t start, int64_t dur, uint8_t kind)
{
	builder_span(&m->b, m->thread, kind, "x", start, start + dur);
}

static void make_gpu(struct maker *m, int64_t start, int64_t dur)
{
	struct gpu_row r = builder_gpu_row(&m->b, 0, GPU_KERNEL, "x", start, start + dur);
	r.track = m->stream;
	r.launch = m->launch;
	build_gpu(&m->b.b, &r);
}

static struct timeline *make_end(struct maker *m)
{
	return timeline_new(builder_finish(&m->b, PASS_NEST));
}

static void release(struct maker *m, struct timeline *t)
{
	timeline_free(t);
	profile_free(m->p);
}

static int64_t start_of(const struct timeline *t, const struct timeline_lane *l, uint32_t i)
{
	uint32_t row = t->row[l->first + i];
	return t->tracks[l->track].device ? t->p->gpu_op.start_ns[row] : t->p->span.start_ns[row];
}

static int64_t end_of(const struct timeline *t, const struct timeline_lane *l, uint32_t i)
{
	uint32_t row = t->row[l->first + i];
	int64_t end = t->tracks[l->track].device ? gpu_end(t->p, row) : span_end(t->p, row);
	return i + 1 < l->n && start_of(t, l, i + 1) < end ? start_of(t, l, i + 1) : end;
}

/* The definition, slice by slice, without levels. */
static void expected_items(const struct timeline *t, uint32_t lane, int64_t from, int64_t to, unsigned zoom, struct timeline_items *out)
{
	const struct timeline_lane *l = &t->lanes[lane];
	int64_t pixel_ns = (int64_t)1 << zoom, longest = 0;
	struct timeline_item x = {0};
	out->n = 0;
	for (uint32_t i = 0; i <= l->n; i++) {
		int64_t start = i < l->n ? start_of(t, l, i) : 0, end = i < l->n ? end_of(t, l, i) : 0;
		bool join = x.count && i < l->n && end - start < pixel_ns && x.busy_ns >= 0 && longest < pixel_ns &&
		            (uint64_t)(start - t->first_ns) >> zoom == (uint64_t)(x.start_ns - t->first_ns) >> zoom;
		if (join) {
			x.end_ns = end;
			x.busy_ns += end - start;
			x.count++;
			if (end - start > longest) {
				longest = end - start;
				x.row = t->row[l->first + i];
			}
			continue;
		}
		if (x.count && x.start_ns < to && (x.end_ns > from || x.start_ns >= from)) {
			MEM_GROW(out->v, out->cap, out->n + 1);
			out->v[out->n++] = x;
		}
		longest = end - start;
		x = (struct timeline_item){start, end, end - start, 1, i < l->n ? t->row[l->first + i] : 0};
	}
}

static int64_t random_ns(unsigned *seed, unsigned bits)
{
	return (int64_t)(((uint64_t)rand_r(seed) << 20 ^ (uint64_t)rand_r(seed)) & (((uint64_t)1 << (rand_r(seed) % bits)) - 1));
}

static void check_lane(const struct timeline *t, uint32_t lane, unsigned shift, unsigned *seed)
{
	struct timeline_items got = {0}, want = {0};
	int64_t range = t->last_ns - t->first_ns;
	for (int k = 0; k < 60; k++) {
		unsigned zoom = (unsigned)rand_r(seed) % (40 + shift);
		int64_t from = t->first_ns - 10 + (random_ns(seed, 40) << shift) % (range + 20), to = k % 5 ? from + (random_ns(seed, 38) << shift) : INT64_MAX;
		if (k % 7 == 0)
			from = INT64_MIN;
		got.n = 0;
		timeline_items_of(t, lane, from, to, zoom, &got);
		expected_items(t, lane, from, to, zoom, &want);
		assert_int_equal(got.n, want.n);
		if (got.n)
			assert_memory_equal(got.v, want.v, got.n * sizeof *got.v);
	}
	timeline_items_release(&got);
	timeline_items_release(&want);
}

/* However a lane is cut into windows of whole pixels: each slice is in the one where its item begins. */
static void check_cut(const struct timeline *t, uint32_t lane, unsigned zoom, unsigned pixels)
{
	const struct timeline_lane *l = &t->lanes[lane];
	struct timeline_items x = {0};
	int64_t width = (int64_t)pixels << zoom, busy = 0, want = 0, behind = t->first_ns;
	uint64_t count = 0;
	for (int64_t from = t->first_ns; from <= t->last_ns; from += width) {
		x.n = 0;
		timeline_items_of(t, lane, from, from + width, zoom, &x);
		for (size_t i = 0; i < x.n; i++) {
			assert_true(x.v[i].busy_ns >= 0 && x.v[i].busy_ns <= x.v[i].end_ns - x.v[i].start_ns);
			if (x.v[i].start_ns < from)
				continue;
			assert_true(x.v[i].start_ns >= behind);
			behind = x.v[i].end_ns;
			busy += x.v[i].busy_ns;
			count += x.v[i].count;
		}
	}
	for (uint32_t i = 0; i < l->n; i++)
		want += end_of(t, l, i) - start_of(t, l, i);
	assert_int_equal(count, l->n);
	assert_int_equal(busy, want);
	timeline_items_release(&x);
}

/* Nested ops, others that overlap as they like, kernels one behind the other; bursts and pauses. Times are multiples of 2^shift ns. */
static void make_random(struct maker *m, unsigned *seed, unsigned n, unsigned shift)
{
	int64_t now = 1000, gpu = 1000;
	for (unsigned i = 0; i < n; i++) {
		now += rand_r(seed) % 50 ? random_ns(seed, 12) : random_ns(seed, 30);
		int64_t dur = random_ns(seed, rand_r(seed) % 20 ? 12 : 25);
		make_span(m, now << shift, dur << shift, rand_r(seed) % 3 ? SPAN_OP : SPAN_PYTHON);
		make_span(m, (now + dur / 4) << shift, dur / 2 << shift, SPAN_OP);
		if (i % 3 == 0)
			make_span(m, (now + 1) << shift, random_ns(seed, 16) << shift, i % 2 ? SPAN_RANGE : SPAN_OS);
		int64_t kernel = 1 + random_ns(seed, 14);
		make_gpu(m, gpu << shift, kernel << shift);
		gpu += kernel + (rand_r(seed) % 30 ? 2 : random_ns(seed, 28));
	}
}

static void test_levels_equal_the_definition(void **state)
{
	(void)state;
	for (unsigned round = 1; round <= 6; round++) {
		struct maker m;
		unsigned seed = round;
		make_begin(&m);
		unsigned shift = round % 3 == 0 ? 18 : 0; /* beyond 2^32 ns as well */
		make_random(&m, &seed, round == 5 ? 40000 : round * 400, shift); /* lanes of one segment, and of several */
		struct timeline *t = make_end(&m);
		assert_true(t->n_levels > 0);
		for (uint32_t l = 0; l < t->n_lanes; l++)
			check_lane(t, l, shift, &seed);
		release(&m, t);
	}
}

static void test_no_slice_is_lost_between_windows(void **state)
{
	(void)state;
	for (unsigned round = 1; round <= 4; round++) {
		struct maker m;
		unsigned seed = 50 + round, shift = round % 2 * 18;
		make_begin(&m);
		make_random(&m, &seed, round == 4 ? 40000 : 1500, shift);
		struct timeline *t = make_end(&m);
		unsigned all = 63 - (unsigned)__builtin_clzll((uint64_t)(t->last_ns - t->first_ns));
		for (unsigned pixels = 2; pixels <= 14; pixels += 3)
			for (uint32_t l = 0; l < t->n_lanes; l++)
				check_cut(t, l, all - pixels, 1u << (2 * round));
		release(&m, t);
	}
}

/* How many ranges around it stand on its track: Python frames do not count for the others, nor these for them. */
static uint32_t around(const struct timeline *t, uint32_t row)
{
	const struct spans *s = &t->p->span;
	uint32_t n = 0;
	for (uint32_t i = s->parent[row]; i != ROW_NONE; i = s->parent[i])
		n += (s->kind[i] == SPAN_PYTHON) == (s->kind[row] == SPAN_PYTHON);
	return n;
}

static void test_every_row_has_a_place(void **state)
{
	(void)state;
	struct maker m;
	unsigned seed = 99;
	make_begin(&m);
	make_random(&m, &seed, 2000, 0);
	struct timeline *t = make_end(&m);
	uint32_t slices = 0, python = 0;
	for (uint32_t l = 0; l < t->n_lanes; l++) {
		const struct timeline_lane *x = &t->lanes[l];
		const struct timeline_track *k = &t->tracks[x->track];
		bool nested = l - k->first_lane < k->n_nested;
		python += k->python;
		assert_in_range(l, k->first_lane, k->first_lane + k->n_lanes - 1);
		for (uint32_t i = 0; i < x->n; i++) {
			uint32_t row = t->row[x->first + i];
			if (!k->device)
				assert_int_equal(k->python, t->p->span.kind[row] == SPAN_PYTHON);
			assert_int_equal((k->device ? t->gpu_lane : t->span_lane)[row], l);
			if (nested)
				assert_int_equal(l - k->first_lane, around(t, row));
			if (!nested && i)
				assert_true(start_of(t, x, i) >= end_of(t, x, i - 1));
		}
		slices += x->n;
	}
	assert_int_equal(slices, t->p->span.rows.n + t->p->gpu_op.rows.n);
	assert_int_equal(t->n_tracks, 3);
	assert_in_range(python, 1, t->n_lanes - 2);
	assert_true(t->n_entries < slices);
	assert_int_equal(t->too_deep, 0);
	release(&m, t);
}

/* However many slices: about two items for each pixel. */
static void test_a_window_has_few_items(void **state)
{
	(void)state;
	struct maker m;
	make_begin(&m);
	for (int64_t i = 0; i < 200000; i++)
		make_gpu(&m, i * 100, 60 + i % 40);
	struct timeline *t = make_end(&m);
	struct timeline_items x = {0};
	timeline_items_of(t, 0, 0, INT64_MAX, 14, &x);
	int64_t busy = 0, count = 0;
	for (size_t i = 0; i < x.n; i++)
		busy += x.v[i].busy_ns, count += x.v[i].count;
	assert_in_range(x.n, 1, 2 * (200000 * 100 / 16384 + 1));
	assert_int_equal(count, 200000);
	assert_int_equal(busy, 200000 * 60 + 5000 * (39 * 40 / 2));
	timeline_items_release(&x);
	release(&m, t);
}

/* However sparse the rest of the lane is: what is read for a dense stretch is about what is drawn of it. */
static void test_a_dense_stretch_has_levels_of_its_own(void **state)
{
	(void)state;
	enum { NEAR = 60000, APART = 140000, ZOOM = 13 };
	struct maker m;
	make_begin(&m);
	for (int64_t i = 0; i < NEAR; i++)
		make_gpu(&m, i * 100, 60);
	for (int64_t i = 1; i <= APART; i++)
		make_gpu(&m, NEAR * 100 + i * 1000000, 60);
	struct timeline *t = make_end(&m);
	for (uint32_t k = 0; k < NEAR >> TIMELINE_SEGMENT_BITS; k++) {
		const struct timeline_segment *g = &t->segments[t->lanes[0].first_segment + k];
		uint32_t read = 1u << TIMELINE_SEGMENT_BITS, pixels = (100u << TIMELINE_SEGMENT_BITS) >> ZOOM;
		for (uint32_t i = 0; i < g->n_levels && t->levels[g->first_level + i].zoom <= ZOOM; i++)
			read = t->levels[g->first_level + i].n;
		assert_in_range(read, pixels, 2 * pixels + 2);
	}
	release(&m, t);
}

static void test_too_deep_shares_a_lane(void **state)
{
	(void)state;
	struct maker m;
	make_begin(&m);
	for (int i = 0; i < 1000; i++)
		make_span(&m, i, 10000 - 2 * i, SPAN_OP);
	for (int i = 0; i < 1000; i++)
		make_span(&m, i, 100000, SPAN_RANGE);
	struct timeline *t = make_end(&m);
	uint64_t count = 0;
	struct timeline_items x = {0};
	assert_int_equal(t->n_lanes, TIMELINE_LANES_MAX);
	assert_int_equal(t->too_deep, 2 * (1000 - TIMELINE_LANES_MAX / 2));
	for (uint32_t l = 0; l < t->n_lanes; l++) {
		x.n = 0;
		timeline_items_of(t, l, INT64_MIN, INT64_MAX, 62, &x);
		for (size_t i = 0; i < x.n; i++)
			count += x.v[i].count;
		for (int64_t from = 0; from < 10000; from += 97) {
			const struct timeline_lane *lane = &t->lanes[l];
			uint32_t end, begin = timeline_slices(t, l, from, from + 50, &end);
			for (uint32_t i = 0; i < lane->n; i++) {
				uint32_t row = t->row[lane->first + i];
				if (t->p->span.start_ns[row] < from + 50 && span_end(t->p, row) > from)
					assert_in_range(lane->first + i, begin, end - 1);
			}
		}
	}
	assert_int_equal(count, 2000);
	timeline_items_release(&x);
	release(&m, t);
}

static void test_nothing(void **state)
{
	(void)state;
	struct maker m;
	make_begin(&m);
	struct timeline *t = make_end(&m);
	assert_int_equal(t->n_tracks, 0);
	assert_int_equal(t->first_ns, 0);
	assert_int_equal(t->last_ns, 0);
	release(&m, t);
}

/* Of lanes whose slices do not overlap, a window's slices are those that overlap the window or begin in it, and no others. */
static void test_slices_of_a_window(void **state)
{
	struct maker m;
	make_begin(&m);
	int64_t at = 0;
	srand(7);
	for (int i = 0; i < 300; i++) {
		int64_t dur = rand() % 4 ? rand() % 30 : 0;
		make_gpu(&m, at, dur);
		make_span(&m, at, dur, SPAN_CALL);
		at += (dur ? dur : 1) + rand() % 20;
	}
	struct timeline *t = make_end(&m);
	for (uint32_t lane = 0; lane < t->n_lanes; lane++)
		for (int k = 0; k < 500; k++) {
			const struct timeline_lane *l = &t->lanes[lane];
			int64_t from = rand() % (int)at, to = from + 1 + rand() % 200;
			uint32_t end, begin = timeline_slices(t, lane, from, to, &end);
			for (uint32_t i = 0; i < l->n; i++) {
				bool wanted = start_of(t, l, i) < to && (start_of(t, l, i) >= from || end_of(t, l, i) > from);
				assert_int_equal(l->first + i >= begin && l->first + i < end, wanted);
			}
		}
	release(&m, t);
}

/* In a window of 10 to 90: of a range from 0 to 100 what its child leaves, of that one what the frame in it leaves, or all of it where frames are left out. */
static void test_self_time_of_a_window(void **state)
{
	(void)state;
	struct maker m;
	make_begin(&m);
	builder_span(&m.b, m.thread, SPAN_OP, "outer", 0, 100);
	builder_span(&m.b, m.thread, SPAN_PYTHON, "frame", 20, 60);
	builder_span(&m.b, m.thread, SPAN_OP, "inner", 30, 50);
	make_gpu(&m, 40, 100);
	struct timeline *t = make_end(&m);
	for (int frames = 0; frames < 2; frames++) {
		struct timeline_sum *v;
		uint8_t take[3] = {1, (uint8_t)frames, 1};
		assert_true(t->n_tracks == 3 && t->tracks[1].python && t->tracks[2].device);
		uint32_t n = timeline_sums(t, take, 10, 90, &v);
		assert_int_equal(n, 3 + frames);
		for (uint32_t i = 0; i < n; i++) {
			struct str name = profile_str(t->p, v[i].name);
			int64_t total = str_eqc(name, "outer") ? 80 : str_eqc(name, "frame") ? 40 : str_eqc(name, "inner") ? 20 : 50;
			int64_t self = str_eqc(name, "outer") ? 60 - 20 * frames : str_eqc(name, "frame") ? 20 : total;
			assert_int_equal(v[i].count, 1);
			assert_int_equal(v[i].total_ns, total);
			assert_int_equal(v[i].self_ns, self);
		}
		mem_free(v);
	}
	release(&m, t);
}

/* Three devices, met in another order than theirs, each with two streams: half of the window is busy on one stream, an overlapping half on the other. */
static void test_use_of_devices(void **state)
{
	static const int32_t met[] = {2, 0, 1};
	struct maker m;
	struct timeline_use *u;
	make_begin(&m);
	for (int stream = 0; stream < 2; stream++)
		for (int i = 0; i < 3; i++) {
			char place[2] = {(char)('0' + met[i]), 0};
			m.launch = builder_launch_on(&m.b, met[i]);
			m.stream = builder_track(&m.b, place, stream ? "9" : "8");
			make_gpu(&m, 1000 + 100 * met[i] + 250 * stream, 500);
		}
	struct timeline *t = make_end(&m);
	assert_int_equal(timeline_use(t, 1000, 2000, 2, &u), 3);
	for (int d = 0; d < 3; d++) {
		int64_t busy_from = 100 * d, busy_to = busy_from + 750;
		assert_int_equal(u[d].device, d);
		assert_true(u[d].utilization[0] == (double)(500 - busy_from) / 500);
		assert_true(u[d].utilization[1] == (double)(busy_to - 500) / 500);
		assert_true(isnan(u[d].sm_efficiency[0]) && isnan(u[d].sm_efficiency[1]));
	}
	timeline_use_release(u, 3);
	release(&m, t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels_equal_the_definition),
		cmocka_unit_test(test_no_slice_is_lost_between_windows),
		cmocka_unit_test(test_every_row_has_a_place),
		cmocka_unit_test(test_a_window_has_few_items),
		cmocka_unit_test(test_a_dense_stretch_has_levels_of_its_own),
		cmocka_unit_test(test_too_deep_shares_a_lane),
		cmocka_unit_test(test_slices_of_a_window),
		cmocka_unit_test(test_self_time_of_a_window),
		cmocka_unit_test(test_use_of_devices),
		cmocka_unit_test(test_nothing),
	};
	return RUN_TESTS(tests);
}
