#include "store/load.h"

#include "store/build.h"

/* The loops below have no early exit, so that they become vector code and run at the speed of memory. GCC does that only
 * when asked. */
#ifdef __clang__
#define VECTOR
#else
#define VECTOR __attribute__((optimize("O3")))
#endif

VECTOR static bool all_below_u32(const uint32_t *v, uint32_t n, uint32_t limit, bool none_allowed)
{
	uint32_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= (v[i] >= limit) & !(none_allowed & (v[i] == ROW_NONE));
	return !bad;
}

VECTOR static bool all_below_u16(const uint16_t *v, uint32_t n, uint32_t limit)
{
	uint32_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= v[i] >= limit;
	return !bad;
}

VECTOR static bool all_below_u8(const uint8_t *v, uint32_t n, uint8_t limit)
{
	uint8_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= v[i] >= limit;
	return !bad;
}

/* Half the range, -2^62 to 2^62 - 1, so that times can be subtracted: the sign bit shows what is outside. */
VECTOR static bool all_times(const int64_t *v, uint32_t n)
{
	uint64_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= (uint64_t)v[i] + (1ull << 62);
	return !(bad >> 63);
}

VECTOR static bool all_durations(const int64_t *v, uint32_t n)
{
	uint64_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= (uint64_t)v[i];
	return !(bad >> 63);
}

/* Ends can be computed: start + duration does not overflow. */
VECTOR static bool all_ends(const int64_t *start, const int64_t *dur, uint32_t n)
{
	uint64_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= ~(uint64_t)start[i] & ((uint64_t)start[i] + (uint64_t)dur[i]);
	return !(bad >> 63);
}

static bool column_in_range(const struct profile *p, const struct store_column *c, const void *data, uint32_t n)
{
	bool none = c->group == DERIVED;
	switch (c->type) {
	case ST_TIME: return all_times(data, n);
	case ST_DUR: return all_durations(data, n);
	case ST_STR: return all_below_u32(data, n, p->strings.n, none);
	case ST_TRACK: return all_below_u32(data, n, p->track.rows.n, none);
	case ST_SPAN: return all_below_u32(data, n, p->span.rows.n, none);
	case ST_LAUNCH: return all_below_u32(data, n, p->launch.rows.n, none);
	case ST_ARGS: return all_below_u32(data, n, p->arg_set.rows.n, none);
	case ST_CAT: return all_below_u16(data, n, p->cat.rows.n);
	case ST_SPAN_KIND: return all_below_u8(data, n, SPAN_KINDS);
	case ST_GPU_KIND: return all_below_u8(data, n, GPU_KINDS);
	case ST_EVIDENCE: return all_below_u8(data, n, GPU_EVIDENCES);
	case ST_BOOL: return all_below_u8(data, n, 2);
	case ST_ID: case ST_I64: case ST_I64_NONE: case ST_I32: case ST_I32_NONE: case ST_I32_MINUS: case ST_I16:
	case ST_I16_MINUS: case ST_F64: case ST_PHASE: return true;
	}
	return false;
}

VECTOR static bool in_order(const int64_t *time, uint32_t n)
{
	uint32_t bad = 0;
	for (uint32_t i = 1; i < n; i++)
		bad |= time[i - 1] > time[i];
	return !bad;
}

VECTOR static bool in_order_by_track(const uint32_t *track, const int64_t *start, uint32_t n)
{
	uint32_t bad = 0;
	for (uint32_t i = 1; i < n; i++)
		bad |= (track[i - 1] > track[i]) | ((track[i - 1] == track[i]) & (start[i - 1] > start[i]));
	return !bad;
}

enum { SUM_HALF = BUILD_SUM_BITS / 2 };

/* `all`: the bits that are set in some value; `low`, `high`: sums of the halves of their bits, which cannot overflow. */
static bool halves_fit(uint64_t all, uint64_t low, uint64_t high)
{
	return !(all >> (BUILD_SUM_BITS + 1)) && high + (low >> SUM_HALF) <= 1ull << SUM_HALF && (high << SUM_HALF) + low <= 1ull << BUILD_SUM_BITS;
}

/* sum_fits of values that are not negative. */
VECTOR static bool durations_fit(const int64_t *v, uint32_t n)
{
	uint64_t all = 0, low = 0, high = 0;
	for (uint32_t i = 0; i < n; i++) {
		all |= (uint64_t)v[i];
		low += (uint64_t)v[i] & ((1ull << SUM_HALF) - 1);
		high += (uint64_t)v[i] >> SUM_HALF;
	}
	return halves_fit(all, low, high);
}

/* The sum of all sizes, signs aside, as build_span and its like keep it: no sum in a report can overflow. Each half of the
 * bits is added up by itself, so that this sum cannot either. */
VECTOR static bool sum_fits(const int64_t *v, uint32_t n)
{
	uint64_t all = 0, low = 0, high = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t size = v[i] < 0 ? 0 - (uint64_t)v[i] : (uint64_t)v[i];
		all |= size;
		low += size & ((1ull << SUM_HALF) - 1);
		high += size >> SUM_HALF;
	}
	return halves_fit(all, low, high);
}

static bool sums_fit(const struct profile *p)
{
	return durations_fit(p->span.dur_ns, p->span.rows.n) && durations_fit(p->gpu_op.dur_ns, p->gpu_op.rows.n) &&
	       sum_fits(p->memory.bytes, p->memory.rows.n);
}

/* Sets follow each other and end where the pairs end. */
VECTOR static bool args_fit(const struct profile *p)
{
	uint32_t n = p->arg_set.rows.n, bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= (p->arg_set.first[i] > p->arg.rows.n) | (i > 0 && p->arg_set.first[i - 1] > p->arg_set.first[i]);
	return !bad && (n == 0 ? p->arg.rows.n == 0 : p->arg_set.first[0] == 0) && (n < 2 || p->arg_set.first[1] == 0);
}

VECTOR static bool all_within(const int64_t *v, const int64_t *limit, uint32_t n, bool none_allowed)
{
	uint32_t bad = 0;
	for (uint32_t i = 0; i < n; i++)
		bad |= ((v[i] < 0) | (v[i] > limit[i])) & !(none_allowed & (v[i] == ID_NONE));
	return !bad;
}

/* What build_memory_segment and build_memory_block promise. */
static bool segments_fit(const struct profile *p)
{
	const struct memory_segments *s = &p->memory_segment;
	const struct memory_blocks *b = &p->memory_block;
	uint32_t bad = 0;
	for (uint32_t i = 0; i < b->rows.n; i++)
		bad |= (b->segment[i] < (i ? b->segment[i - 1] : 0)) | (b->segment[i] >= (int64_t)s->rows.n);
	return !bad && all_durations(s->total_bytes, s->rows.n) && all_durations(b->bytes, b->rows.n) && sum_fits(s->total_bytes, s->rows.n) && sum_fits(b->bytes, b->rows.n) &&
	       all_within(s->allocated_bytes, s->total_bytes, s->rows.n, false) && all_within(s->active_bytes, s->total_bytes, s->rows.n, false) &&
	       all_within(s->requested_bytes, s->total_bytes, s->rows.n, false) && all_within(b->requested_bytes, b->bytes, b->rows.n, true);
}

int load_check(const struct profile *p, struct err *e)
{
	for (int t = 0; t < STORE_N_TABLES; t++) {
		const struct store_table *desc = &store_tables[t];
		const void *table = profile_table(p, t);
		uint32_t n = ((const struct rows *)table)->n;
		for (unsigned c = 0; c < desc->n_columns; c++) {
			const void *data = *rows_column(table, &desc->columns[c]);
			if (data && !column_in_range(p, &desc->columns[c], data, n))
				return err_set(e, ERR_FORMAT, "column %s.%s holds a value out of range", desc->name,
				               desc->columns[c].name);
		}
	}
	if (!all_ends(p->span.start_ns, p->span.dur_ns, p->span.rows.n) ||
	    !all_ends(p->gpu_op.start_ns, p->gpu_op.dur_ns, p->gpu_op.rows.n))
		return err_set(e, ERR_FORMAT, "an event ends beyond all time");
	if (!sums_fit(p))
		return err_set(e, ERR_FORMAT, "times or sizes add up to more than a profile may hold");
	if (!in_order_by_track(p->gpu_op.track, p->gpu_op.start_ns, p->gpu_op.rows.n))
		return err_set(e, ERR_FORMAT, "table gpu_op is not in order of stream and start");
	if (!in_order(p->memory.time_ns, p->memory.rows.n))
		return err_set(e, ERR_FORMAT, "table memory is not in order of time");
	if (!segments_fit(p))
		return err_set(e, ERR_FORMAT, "segments and blocks of memory do not fit each other");
	if (!args_fit(p))
		return err_set(e, ERR_FORMAT, "argument sets do not fit their pairs");
	return load_check_events(p, e);
}
