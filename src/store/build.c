#include "store/build.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/spill.h"
#include "store/written.h"

#include <math.h>

/* Pushes a row of `table` and copies the named field of *r into each column. */
#define SET_(type, column, semantic, group, help) SET_##group(column, semantic)
#define SET_LOADED(column, semantic) t->column[i] = r->column;
#define SET_DERIVED(column, semantic)
#define ABSENT_ST_ID ID_NONE
#define ABSENT_ST_I32_MINUS (-1)
#define ABSENT_ST_EVIDENCE 0
#define ABSENT_ST_ARGS 0
#define ABSENT_ST_I64 0
#define ABSENT_ST_STR 0
#define SET_SPARSE(column, semantic)                                                                   \
	if (r->column != ABSENT_##semantic && !t->column)                                              \
		t->column = rows_materialize(t, table, (size_t)((char *)&t->column - (char *)t));      \
	if (t->column)                                                                                 \
		t->column[i] = r->column;
#define PUSH_ROW(tablename, COLUMNS, also)                                                             \
	do {                                                                                           \
		const struct store_table *table = &store_tables[TABLE_##tablename];                    \
		uint32_t i = rows_push(t, table);                                                      \
		if (i != ROW_NONE) {                                                                   \
			COLUMNS(SET_)                                                                  \
			also;                                                                          \
		}                                                                                      \
		return i;                                                                              \
	} while (0)

/* The event that is being read becomes number n of those kept as written. */
static void note_place(struct build *b, void *table)
{
	if (b->p->written)
		rows_note_place(table, b->p->written->n);
}

/* Adds `amount` (its size counts) to *sum unless that would go beyond what a profile may hold. */
static bool within_sum(struct build *b, uint64_t *sum, int64_t amount, const char *what)
{
	uint64_t size = amount < 0 ? 0 - (uint64_t)amount : (uint64_t)amount;
	if (size <= (1ull << BUILD_SUM_BITS) - *sum) {
		*sum += size;
		return true;
	}
	diag_add(&b->p->diags, "sum-too-large", DIAG_LOSS, -1, "the %s add up to more than 2^%d: an event with %lld was left out", what,
	         BUILD_SUM_BITS, (long long)amount);
	return false;
}

/* Makes room in a full table for all rows that are expected. What is reserved and never filled takes addresses, not memory, unless it is reserved in the
 * file of base/spill. */
static void build_make_room(struct profile *p, enum store_table_id id, uint32_t expected)
{
	const struct store_table *desc = &store_tables[id];
	struct rows *r = profile_table(p, id);
	size_t row = 0;
	for (unsigned c = 0; c < desc->n_columns; c++)
		row += desc->columns[c].size;
	if (expected > (uint64_t)r->cap + r->cap / 2 && !spill_is_due(0, expected * row))
		rows_reserve(r, desc, expected);
}

bool build_admit_span(struct build *b, const struct span_row *r)
{
	return within_sum(b, &b->span_ns, r->dur_ns, "durations (ns) of host events");
}

uint32_t build_put_span(struct build *b, const struct span_row *r)
{
	struct spans *t = &b->p->span;
	struct span_row without;
	if (b->p->left_out & LEFT_AUX_IDS) {
		without = *r;
		without.aux_id = -1;
		r = &without;
	}
	if (t->rows.n == t->rows.cap)
		build_make_room(b->p, TABLE_span, b->expected_spans);
	PUSH_ROW(span, SPAN_COLUMNS, note_place(b, t));
}

uint32_t build_span(struct build *b, const struct span_row *r)
{
	return build_admit_span(b, r) ? build_put_span(b, r) : ROW_NONE;
}

void build_span_dur(struct build *b, uint32_t span, int64_t dur_ns)
{
	if ((uint64_t)dur_ns > (1ull << BUILD_SUM_BITS) - b->span_ns) {
		diag_add(&b->p->diags, "sum-too-large", DIAG_LOSS, -1, "the durations (ns) of host events add up to more than 2^%d: that of a range is left out",
		         BUILD_SUM_BITS);
		return;
	}
	b->p->span.dur_ns[span] = dur_ns;
	b->span_ns += (uint64_t)dur_ns;
}

uint32_t build_gpu(struct build *b, const struct gpu_row *r)
{
	struct gpu_ops *t = &b->p->gpu_op;
	if (!within_sum(b, &b->gpu_ns, r->dur_ns, "durations (ns) of device events"))
		return ROW_NONE;
	if (t->rows.n == t->rows.cap)
		build_make_room(b->p, TABLE_gpu_op, b->expected_gpu_ops);
	PUSH_ROW(gpu_op, GPU_COLUMNS, note_place(b, t));
}

uint32_t build_memory(struct build *b, const struct memory_row *r)
{
	struct memories *t = &b->p->memory;
	if (!within_sum(b, &b->memory_bytes, r->bytes, "bytes of allocations") || b->p->left_out & LEFT_MEMORY)
		return ROW_NONE;
	PUSH_ROW(memory, MEMORY_COLUMNS, note_place(b, t));
}

uint32_t build_memory_segment(struct build *b, const struct memory_segment_row *r)
{
	struct memory_segments *t = &b->p->memory_segment;
	if (!within_sum(b, &b->segment_bytes, r->total_bytes, "bytes of segments"))
		return ROW_NONE;
	PUSH_ROW(memory_segment, SEGMENT_COLUMNS, (void)0);
}

uint32_t build_memory_block(struct build *b, const struct memory_block_row *r)
{
	struct memory_blocks *t = &b->p->memory_block;
	if (!within_sum(b, &b->block_bytes, r->bytes, "bytes of blocks"))
		return ROW_NONE;
	PUSH_ROW(memory_block, BLOCK_COLUMNS, (void)0);
}

static uint32_t push_launch(struct launches *t, const struct launch_row *r)
{
	PUSH_ROW(launch, LAUNCH_COLUMNS, (void)0);
}

uint32_t build_flow(struct build *b, int64_t time_ns, int64_t id, uint32_t track, uint16_t cat, uint8_t phase)
{
	struct flows *t = &b->p->flow;
	if (b->p->left_out & LEFT_FLOWS)
		return ROW_NONE;
	uint32_t i = rows_push(t, &store_tables[TABLE_flow]);
	if (i == ROW_NONE)
		return i;
	t->time_ns[i] = time_ns;
	t->id[i] = id;
	t->track[i] = track;
	t->cat[i] = cat;
	t->phase[i] = phase;
	note_place(b, t);
	return i;
}

uint32_t build_mark(struct build *b, int64_t time_ns, uint32_t name, uint32_t track, uint32_t args, uint16_t cat,
                    uint8_t phase)
{
	struct marks *t = &b->p->mark;
	if (b->p->left_out & LEFT_MARKS)
		return ROW_NONE;
	uint32_t i = rows_push(t, &store_tables[TABLE_mark]);
	if (i == ROW_NONE)
		return i;
	t->time_ns[i] = time_ns;
	t->name[i] = name;
	t->track[i] = track;
	t->args[i] = args;
	t->cat[i] = cat;
	t->phase[i] = phase;
	note_place(b, t);
	return i;
}

struct launch_row launch_none(void)
{
	return (struct launch_row){
		.bytes = ID_NONE, .context = ID_NONE, .pid = ID_NONE, .stream = ID_NONE, .graph_id = ID_NONE, .graph_node_id = ID_NONE,
		.blocks_per_sm = NAN, .warps_per_sm = NAN, .occupancy_pct = NAN, .device = INT32_MIN,
		.grid_x = INT32_MIN, .grid_y = INT32_MIN, .grid_z = INT32_MIN,
		.block_x = INT32_MIN, .block_y = INT32_MIN, .block_z = INT32_MIN,
		.registers = INT32_MIN, .shared_bytes = INT32_MIN,
	};
}

uint32_t build_launch(struct build *b, const struct launch_row *r)
{
	struct launch_row unstated;
	if (r->bytes < 0 && r->bytes != ID_NONE) {
		diag_add(&b->p->diags, "negative-size", DIAG_REPAIR, -1, "device work of %lld bytes: its size is taken as not stated", (long long)r->bytes);
		memcpy(&unstated, r, sizeof unstated); /* with its padding: rows are compared as bytes */
		unstated.bytes = ID_NONE;
		r = &unstated;
	}
	uint32_t before = b->launch_keys.n;
	uint32_t id = intern_put(&b->launch_keys, (const char *)r, sizeof *r);
	if (b->launch_keys.n > before)
		push_launch(&b->p->launch, r);
	return id - 1; /* id 0 of an interner is the empty string, which no row is */
}

uint32_t build_args(struct build *b, const struct arg_pair *pairs, unsigned n)
{
	if (!n)
		return 0;
	uint32_t before = b->arg_set_keys.n;
	uint32_t id = intern_put(&b->arg_set_keys, (const char *)pairs, n * sizeof *pairs);
	if (b->arg_set_keys.n == before)
		return id;
	struct profile *p = b->p;
	uint32_t set = rows_push(&p->arg_set, &store_tables[TABLE_arg_set]);
	p->arg_set.first[set] = p->arg.rows.n;
	for (unsigned k = 0; k < n; k++) {
		uint32_t i = rows_push(&p->arg, &store_tables[TABLE_arg]);
		p->arg.key[i] = pairs[k].key;
		p->arg.value[i] = pairs[k].value;
		p->arg.is_string[i] = pairs[k].is_string != 0;
	}
	return id;
}

uint32_t build_track(struct build *b, struct str pid, struct str tid)
{
	struct profile *p = b->p;
	uint32_t pair[2] = {intern_str(&p->strings, pid), intern_str(&p->strings, tid)};
	uint32_t before = b->track_keys.n;
	uint32_t id = intern_put(&b->track_keys, (const char *)pair, sizeof pair);
	if (b->track_keys.n > before) {
		uint32_t i = rows_push(&p->track, &store_tables[TABLE_track]);
		int64_t v;
		p->track.pid[i] = str_to_i64(pid, &v) ? v : ID_NONE;
		p->track.tid[i] = str_to_i64(tid, &v) ? v : ID_NONE;
		if (p->track.tid[i] == ID_NONE && str_starts(tid, STR("stream ")) &&
		    str_to_i64((struct str){tid.p + 7, tid.n - 7}, &v))
			p->track.tid[i] = v; /* the 2021 format writes streams so */
		p->track.pid_text[i] = pair[0];
		p->track.tid_text[i] = pair[1];
		p->track.process_name[i] = p->track.process_labels[i] = p->track.thread_name[i] = 0;
	}
	return id - 1;
}

uint32_t build_find_track(const struct build *b, struct str pid, struct str tid)
{
	const uint32_t pair[2] = {intern_find(&b->p->strings, pid), intern_find(&b->p->strings, tid)};
	const uint32_t id = pair[0] == INTERN_NONE || pair[1] == INTERN_NONE ? INTERN_NONE : intern_find(&b->track_keys, (struct str){(const char *)pair, sizeof pair});
	return id == INTERN_NONE ? ROW_NONE : id - 1;
}

uint16_t build_cat(struct build *b, uint32_t name)
{
	if (b->p->cat.rows.n && b->cat_cache_name == name)
		return b->cat_cache_row;
	struct cats *t = &b->p->cat;
	uint32_t i = idmap_get(&b->cat_rows, name);
	if (i == IDMAP_NONE && t->rows.n >= UINT16_MAX) {
		diag_add(&b->p->diags, "too-many-categories", DIAG_LOSS, -1,
		         "more than %d categories: the rest is filed under the last one", UINT16_MAX);
		i = UINT16_MAX - 1;
	} else if (i == IDMAP_NONE) {
		i = rows_push(t, &store_tables[TABLE_cat]);
		t->name[i] = name;
		t->events[i] = 0;
		idmap_put(&b->cat_rows, name, i);
	}
	b->cat_cache_name = name;
	b->cat_cache_row = (uint16_t)i;
	return (uint16_t)i;
}

void build_meta(struct build *b, uint32_t key, uint32_t value, bool is_string)
{
	struct metas *t = &b->p->meta;
	uint32_t i = rows_push(t, &store_tables[TABLE_meta]);
	t->key[i] = key;
	t->value[i] = value;
	t->is_string[i] = is_string;
}

void build_count(struct build *b, uint16_t cat, uint8_t phase, uint64_t n)
{
	struct counts *t = &b->p->count;
	int64_t key = (int64_t)cat << 8 | phase;
	b->p->cat.events[cat] += n;
	struct build_counted *last = &b->counted[(cat * 5u ^ phase) % BUILD_COUNTED];
	if (last->behind && last->key == key) {
		t->events[last->behind - 1] += n;
		return;
	}
	uint32_t i = idmap_get(&b->count_rows, key);
	if (i == IDMAP_NONE) {
		i = rows_push(t, &store_tables[TABLE_count]);
		t->cat[i] = cat;
		t->phase[i] = phase;
		t->events[i] = 0;
		idmap_put(&b->count_rows, key, i);
	}
	*last = (struct build_counted){key, i + 1};
	t->events[i] += n;
}

void build_init(struct build *b, struct profile *p)
{
	*b = (struct build){.p = p};
	intern_init(&b->launch_keys);
	intern_init(&b->arg_set_keys);
	intern_init(&b->track_keys);
	idmap_init(&b->cat_rows, 1, 0, 64);
	idmap_init(&b->count_rows, 1, 0, 64);
	uint32_t empty = rows_push(&p->arg_set, &store_tables[TABLE_arg_set]);
	p->arg_set.first[empty] = 0;
}

/* Sorts `items` (whose keys are times) by track as well, track first: one counting pass, stable. */
static void build_group_by_track(struct sort_item *items, uint32_t n, uint32_t n_tracks, uint32_t *order)
{
	uint32_t *at = NEW_ARRAY(n_tracks + 1, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		at[items[i].tie + 1]++;
	for (uint32_t t = 0; t < n_tracks; t++)
		at[t + 1] += at[t];
	for (uint32_t i = 0; i < n; i++)
		order[at[items[i].tie]++] = items[i].row;
	mem_free(at);
}

/* Within runs of equal start on one track, longer ranges first, so that parents precede children; equal ones keep the order
 * of the input. Runs are short, except in hostile input, which the radix sort then takes. */
static void longest_first(const struct spans *s, uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i + 1 < n;) {
		uint32_t end = i + 1;
		bool bad = false;
		while (end < n && s->track[order[end]] == s->track[order[i]] &&
		       s->start_ns[order[end]] == s->start_ns[order[i]]) {
			bad |= s->dur_ns[order[end - 1]] < s->dur_ns[order[end]];
			end++;
		}
		if (bad) {
			struct sort_item *run = NEW_ARRAY_RAW(end - i, struct sort_item);
			for (uint32_t k = i; k < end; k++)
				run[k - i] = (struct sort_item){~sort_key_i64(s->dur_ns[order[k]]), order[k], 0};
			sort_items(run, end - i);
			for (uint32_t k = i; k < end; k++)
				order[k] = run[k - i].row;
			mem_free(run);
		}
		i = end;
	}
}

static void build_reorder(struct profile *p, enum store_table_id id, uint32_t *order)
{
	const uint32_t n = ((struct rows *)profile_table(p, id))->n;
	if (id == TABLE_span)
		longest_first(&p->span, order, n);
	if (ANY_WHERE(i, 0, n, order[i] != i))
		rows_permute(profile_table(p, id), &store_tables[id], order);
	mem_free(order);
}

/* Rows by track, as they come: *begin[t] is the first of track t, an array for the caller to free. */
static void build_by_track(const uint32_t *track, uint32_t n, uint32_t n_tracks, uint32_t *order, uint32_t **begin)
{
	uint32_t *at = *begin = NEW_ARRAY(n_tracks + 2, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		at[track[i] + 2]++;
	for (uint32_t t = 0; t < n_tracks; t++)
		at[t + 2] += at[t + 1];
	for (uint32_t i = 0; i < n; i++)
		order[at[track[i] + 1]++] = i; /* which leaves the begin of the next track where it belongs */
}

/* Inputs mostly write a track's rows in a few stretches, each in order of time: then merging these is enough. False, with *order of no use, when they are out of order
 * so far that sorting is cheaper. track: NULL = all rows are of one. */
static bool build_order_in_runs(const int64_t *time, const uint32_t *track, uint32_t n, uint32_t n_tracks, uint32_t *order)
{
	if (!track) {
		for (uint32_t i = 0; i < n; i++)
			order[i] = i;
		return sort_runs(order, n, time);
	}
	uint32_t *begin;
	bool sorted = true;
	build_by_track(track, n, n_tracks, order, &begin);
	for (uint32_t t = 0; t < n_tracks && sorted; t++)
		sorted = sort_runs(order + begin[t], begin[t + 1] - begin[t], time);
	mem_free(begin);
	return sorted;
}

static void sort_table(struct profile *p, enum store_table_id id, const int64_t *time, const uint32_t *track)
{
	void *table = profile_table(p, id);
	uint32_t n = ((struct rows *)table)->n;
	uint32_t *order = NEW_ARRAY_RAW(n, uint32_t);
	if (build_order_in_runs(time, track, n, p->track.rows.n, order)) {
		build_reorder(p, id, order);
		return;
	}
	struct sort_item *items = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 0; i < n; i++)
		items[i] = (struct sort_item){sort_key_i64(time[i]), i, track ? track[i] : 0};
	sort_items(items, n);
	if (track)
		build_group_by_track(items, n, p->track.rows.n, order);
	else
		for (uint32_t i = 0; i < n; i++)
			order[i] = items[i].row;
	mem_free(items);
	build_reorder(p, id, order);
}

/* Takes the ranges of Python out, if nothing needs them. */
static void build_leave_out_frames(struct profile *p)
{
	if (!(p->left_out & LEFT_FRAMES) || !ANY_WHERE(i, 0u, p->span.rows.n, p->span.kind[i] == SPAN_PYTHON))
		return;
	if (p->needs_frames(p)) {
		p->left_out &= ~(unsigned)LEFT_FRAMES;
		return;
	}
	uint32_t *kept = NEW_ARRAY_RAW(p->span.rows.n, uint32_t), n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		kept[n] = i;
		n += p->span.kind[i] != SPAN_PYTHON;
	}
	rows_keep(&p->span, &store_tables[TABLE_span], kept, n);
	mem_free(kept);
}

void build_release(struct build *b)
{
	intern_release(&b->launch_keys);
	intern_release(&b->arg_set_keys);
	intern_release(&b->track_keys);
	idmap_release(&b->cat_rows);
	idmap_release(&b->count_rows);
}

int build_finish(struct build *b, struct err *e)
{
	struct profile *p = b->p;
	build_release(b);
	build_leave_out_frames(p);
	for (int t = 0; t < STORE_N_TABLES; t++)
		rows_trim(profile_table(p, t), &store_tables[t]);
	sort_table(p, TABLE_span, p->span.start_ns, p->span.track);
	sort_table(p, TABLE_gpu_op, p->gpu_op.start_ns, p->gpu_op.track);
	sort_table(p, TABLE_memory, p->memory.time_ns, NULL);
	profile_find_arg_keys(p);
	profile_join_devices(p);
	if (p->device_joined)
		diag_add(&p->diags, "device-joined", DIAG_NOTE, -1, "the only device that is described is device %d, and all work is on device %d: taken for the same one, "
		         "as HIP_VISIBLE_DEVICES and its kin let a process number devices anew", p->device.id[0], p->joined_device);
	if (p->strings.dropped)
		diag_add_n(&p->diags, "too-many-strings", DIAG_LOSS, p->strings.dropped, -1,
		           "more than 2^32 different strings: the rest reads as empty");
	return 0;
}
