#include "analysis/memory/memory.h"

#include "analysis/analysis.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/saturate.h"

#include <string.h>

/* The ops of one thread that are open at the moment; the innermost is on top. */
struct open_ops {
	uint32_t *span;
	uint32_t n, cap;
};

static void memory_close_until(const struct profile *p, struct open_ops *o, int64_t time)
{
	while (o->n && span_end(p, o->span[o->n - 1]) <= time)
		o->n--;
}

/* Memory rows grouped by thread, each group in order of time. */
static uint32_t *memory_group_by_track(const struct profile *p, uint32_t *first)
{
	const struct memories *m = &p->memory;
	uint32_t n_tracks = p->track.rows.n;
	uint32_t *row = NEW_ARRAY_RAW(m->rows.n, uint32_t);
	for (uint32_t i = 0; i < m->rows.n; i++)
		first[m->track[i] + 1]++;
	for (uint32_t t = 0; t < n_tracks; t++)
		first[t + 1] += first[t];
	uint32_t *next = NEW_ARRAY(n_tracks, uint32_t);
	for (uint32_t i = 0; i < m->rows.n; i++) {
		uint32_t t = m->track[i];
		row[first[t] + next[t]++] = i;
	}
	mem_free(next);
	return row;
}

/* The innermost range of these kinds (bits of enum span_kind) with start <= time < end on the thread of each row. One sweep over
 * spans and memory rows, both in order of (track, time). */
static void find_around(const struct profile *p, unsigned kinds, uint32_t *around)
{
	const struct memories *m = &p->memory;
	const struct spans *s = &p->span;
	uint32_t *first = NEW_ARRAY((size_t)p->track.rows.n + 1, uint32_t);
	uint32_t *row = memory_group_by_track(p, first);
	struct open_ops open = {0};
	uint32_t i = 0;
	for (uint32_t t = 0; t < p->track.rows.n; t++) {
		open.n = 0;
		while (i < s->rows.n && s->track[i] < t)
			i++;
		for (uint32_t k = first[t]; k < first[t + 1]; k++) {
			int64_t time = m->time_ns[row[k]];
			for (; i < s->rows.n && s->track[i] == t && s->start_ns[i] <= time; i++) {
				if (!(kinds & 1u << s->kind[i]))
					continue;
				memory_close_until(p, &open, s->start_ns[i]);
				MEM_PUSH(open.span, open.n, open.cap, i);
			}
			memory_close_until(p, &open, time);
			around[row[k]] = open.n ? open.span[open.n - 1] : ROW_NONE;
		}
	}
	mem_free(open.span);
	mem_free(row);
	mem_free(first);
}

int pass_memory(struct profile *p, struct err *e)
{
	rows_derive(&p->memory, &store_tables[TABLE_memory], offsetof(struct memories, span));
	if (p->memory.rows.n)
		find_around(p, 1u << SPAN_OP, p->memory.span);
	return 0;
}

uint32_t *memory_around(const struct profile *p)
{
	profile_assert_kept(p, LEFT_MEMORY);
	uint32_t *around = NEW_ARRAY_RAW(p->memory.rows.n, uint32_t);
	if (p->memory.rows.n)
		find_around(p, 1u << SPAN_OP | 1u << SPAN_USER | 1u << SPAN_PYTHON, around);
	return around;
}

/* c10 device types whose memory is the host's (torch/autograd/profiler.py). */
enum { C10_CPU = 0, C10_MKLDNN = 2, C10_IDEEP = 5 };

int64_t memory_zero_ns(const struct profile *p)
{
	profile_assert_kept(p, LEFT_MEMORY);
	int64_t first = INT64_MAX;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		first = p->span.start_ns[i] < first ? p->span.start_ns[i] : first;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		first = p->gpu_op.start_ns[i] < first ? p->gpu_op.start_ns[i] : first;
	if (p->memory.rows.n && p->memory.time_ns[0] < first)
		first = p->memory.time_ns[0];
	return first == INT64_MAX ? 0 : first;
}

int memory_device(const struct profile *p, uint32_t i)
{
	int type = p->memory.device_type[i];
	if (type == C10_CPU || type == C10_MKLDNN || type == C10_IDEEP)
		return MEMORY_CPU;
	return p->memory.device_id[i] < 0 ? 0 : p->memory.device_id[i];
}

bool memory_is_event(const struct profile *p, uint32_t i)
{
	return !str_eq(profile_str(p, p->memory.name[i]), STR("[OutOfMemory]"));
}

static int first_gpu(const struct profile *p)
{
	int first = MEMORY_CPU;
	for (uint32_t i = 0; i < p->memory.rows.n; i++) {
		int d = memory_device(p, i);
		if (d != MEMORY_CPU && (first == MEMORY_CPU || d < first))
			first = d;
	}
	for (uint32_t i = 0; i < p->memory_segment.rows.n; i++)
		first = first == MEMORY_CPU || p->memory_segment.device[i] < first ? p->memory_segment.device[i] : first;
	return first;
}

int memory_device_choose(const struct profile *p, const char *wanted, int *device, struct err *e)
{
	profile_assert_kept(p, LEFT_MEMORY);
	*device = first_gpu(p);
	if (!wanted)
		return 0;
	const char *colon = strchr(wanted, ':');
	int64_t ordinal = 0;
	if (strcmp(wanted, "cpu") == 0)
		*device = MEMORY_CPU;
	else if (str_to_i64(str_from(colon ? colon + 1 : wanted), &ordinal) && ordinal >= 0 && ordinal <= INT16_MAX)
		*device = (int)ordinal;
	else
		return err_set(e, ERR_USAGE, "--device=%s: expected cpu, the ordinal of a GPU, or as torch says it: cuda:0", wanted);
	for (uint32_t i = 0; i < p->memory.rows.n; i++)
		if (memory_device(p, i) == *device)
			return 0;
	for (uint32_t i = 0; i < p->memory_segment.rows.n; i++)
		if (p->memory_segment.device[i] == *device)
			return 0;
	return err_set(e, ERR_DATA, "the trace has no memory events of device '%s'", wanted);
}

static bool higher(const int64_t *total, uint32_t row, uint32_t best)
{
	return total[row] != ID_NONE && (best == ROW_NONE || total[row] > total[best]);
}

static void add_to_peak(struct memory_peak *k, const struct profile *p, uint32_t i)
{
	const struct memories *m = &p->memory;
	if (!memory_is_event(p, i)) { /* what was asked for, not what was got */
		k->out_of_memory++;
		return;
	}
	k->events++;
	add_saturated(&k->sum, m->bytes[i]);
	k->net = k->sum > k->net ? k->sum : k->net;
	k->lowest = k->sum < k->lowest ? k->sum : k->lowest;
	if (higher(m->total_allocated, i, k->allocated))
		k->allocated = i;
	if (higher(m->total_reserved, i, k->reserved))
		k->reserved = i;
}

size_t memory_peaks(const struct profile *p, int64_t first_ns, int64_t last_ns, struct memory_peak **out)
{
	profile_assert_kept(p, LEFT_MEMORY);
	size_t n = 0, cap = 0;
	struct memory_peak *peak = NULL;
	for (uint32_t i = 0; i < p->memory.rows.n; i++) {
		size_t d = (size_t)(memory_device(p, i) - MEMORY_CPU);
		if (p->memory.time_ns[i] < first_ns || p->memory.time_ns[i] > last_ns)
			continue;
		MEM_GROW(peak, cap, d + 1);
		for (; n <= d; n++)
			peak[n] = (struct memory_peak){.allocated = ROW_NONE, .reserved = ROW_NONE};
		add_to_peak(&peak[d], p, i);
	}
	for (size_t d = 0; d < n; d++)
		if (__builtin_sub_overflow(peak[d].net, peak[d].lowest, &peak[d].net))
			peak[d].net = INT64_MAX;
	*out = peak;
	return n;
}

static bool has_address(const struct profile *p, uint32_t i, int device)
{
	const struct memories *m = &p->memory;
	return m->addr[i] != ID_NONE && m->bytes[i] && memory_device(p, i) == device && memory_is_event(p, i);
}

/* Marks an address whose block has been freed: idmap has no removal. */
enum { NO_BLOCK = IDMAP_NONE - 1 };

uint32_t memory_pairs(const struct profile *p, int device, struct memory_pair **out)
{
	profile_assert_kept(p, LEFT_MEMORY);
	const struct memories *m = &p->memory;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (!has_address(p, i, device))
			continue;
		min = m->addr[i] < min ? m->addr[i] : min;
		max = m->addr[i] > max ? m->addr[i] : max;
		n++;
	}
	struct memory_pair *pair = NEW_ARRAY_RAW(n, struct memory_pair);
	struct idmap open;
	idmap_init(&open, min, max, n);
	uint32_t n_pairs = 0;
	for (uint32_t i = 0; i < m->rows.n; i++) {
		if (!has_address(p, i, device))
			continue;
		uint32_t at = idmap_get(&open, m->addr[i]);
		if (m->bytes[i] > 0) {
			idmap_put(&open, m->addr[i], n_pairs);
			pair[n_pairs++] = (struct memory_pair){i, ROW_NONE};
		} else if (at != IDMAP_NONE && at != NO_BLOCK) {
			pair[at].release = i;
			idmap_put(&open, m->addr[i], NO_BLOCK);
		} else {
			pair[n_pairs++] = (struct memory_pair){ROW_NONE, i};
		}
	}
	idmap_release(&open);
	*out = pair;
	return n_pairs;
}

/* The rows that allocated what is not freed, by address. */
static void memory_open_rows(const struct profile *p, int device, struct idmap *rows)
{
	struct memory_pair *pair;
	uint32_t n = memory_pairs(p, device, &pair);
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < n; i++)
		if (pair[i].alloc != ROW_NONE && pair[i].release == ROW_NONE) {
			min = p->memory.addr[pair[i].alloc] < min ? p->memory.addr[pair[i].alloc] : min;
			max = p->memory.addr[pair[i].alloc] > max ? p->memory.addr[pair[i].alloc] : max;
		}
	idmap_init(rows, min, max, n);
	for (uint32_t i = 0; i < n; i++)
		if (pair[i].alloc != ROW_NONE && pair[i].release == ROW_NONE)
			idmap_put(rows, p->memory.addr[pair[i].alloc], pair[i].alloc);
	mem_free(pair);
}

uint32_t memory_live(const struct profile *p, int device, struct memory_live **out)
{
	profile_assert_kept(p, LEFT_MEMORY);
	const struct memory_blocks *b = &p->memory_block;
	struct memory_live *v = NEW_ARRAY_RAW(b->rows.n, struct memory_live);
	struct idmap rows;
	uint32_t n = 0;
	memory_open_rows(p, device, &rows);
	for (uint32_t i = 0; i < b->rows.n; i++) {
		if (p->memory_segment.device[b->segment[i]] != device || !str_starts(profile_str(p, b->state[i]), STR("active")))
			continue;
		uint32_t row = b->addr[i] == ID_NONE ? IDMAP_NONE : idmap_get(&rows, b->addr[i]);
		v[n++] = (struct memory_live){i, row == IDMAP_NONE ? ROW_NONE : row};
	}
	idmap_release(&rows);
	*out = v;
	return n;
}

bool memory_block_waits(const struct profile *p, uint32_t block) { return !str_eq(profile_str(p, p->memory_block.state[block]), STR("active_allocated")); }
