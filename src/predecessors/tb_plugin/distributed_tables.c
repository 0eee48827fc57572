#include "predecessors/tb_plugin/distributed_tables.h"

#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "predecessors/tb_plugin/rules.h"

#include <stdlib.h>

void tb_workers_free(struct tb_workers *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; i < w->n; i++)
		tb_worker_free(w->v[i]);
	mem_free(w->v);
	mem_free(w);
}

static double tb_us(int64_t ns)
{
	return (double)ns / 1000;
}

/* ---- by step ---- */

/* A row of a table by step: up to four numbers. */
struct by_step_row {
	uint32_t key, worker;    /* key: in order of first appearance */
	int64_t ns[TB_PARTS];
};

struct by_step {
	struct intern keys;
	struct by_step_row *v;
	size_t n, cap;
};

static int distributed_tables_row_by_key(const void *a, const void *b)
{
	const struct by_step_row *x = a, *y = b;
	return COMPARE(x->key, y->key) ?: COMPARE(x->worker, y->worker);
}

static bool distributed_tables_is_chosen(const struct tb_workers *w, const struct tb_worker_step *s)
{
	return s->number >= w->first && s->number <= w->last;
}

static void distributed_tables_add(struct by_step *x, struct str step, uint32_t worker, const int64_t *ns, unsigned numbers)
{
	struct by_step_row row = {.key = intern_str(&x->keys, step), .worker = worker};
	memcpy(row.ns, ns, numbers * sizeof *ns);
	MEM_PUSH(x->v, x->n, x->cap, row);
}

static void distributed_tables_put_keys(struct table *t, struct str step, const struct tb_worker *w)
{
	table_row(t);
	table_set_str_copy(t, 0, step);
	table_set_str_copy(t, 1, w->name);
	table_set_i64(t, 2, w->rank);
}

/* The means over the steps of each worker, cut to whole us, and then the steps. */
static void distributed_tables_put(const struct tb_workers *w, struct by_step *x, unsigned numbers, struct table *t)
{
	int64_t (*sum)[TB_PARTS] = (int64_t(*)[TB_PARTS])NEW_ARRAY((size_t)w->n * TB_PARTS, int64_t);
	uint32_t *steps = NEW_ARRAY(w->n, uint32_t);
	for (size_t i = 0; i < x->n; i++) {
		steps[x->v[i].worker]++;
		for (unsigned k = 0; k < numbers; k++)
			sum[x->v[i].worker][k] += x->v[i].ns[k];
	}
	for (uint32_t i = 0; i < w->n; i++) {
		distributed_tables_put_keys(t, STR("all"), w->v[i]);
		for (unsigned k = 0; k < numbers; k++)
			table_set_f64(t, TB_KEYS + k, (double)(sum[i][k] / 1000 / (steps[i] ? steps[i] : 1)));
	}
	if (x->n)
		qsort(x->v, x->n, sizeof *x->v, distributed_tables_row_by_key);
	for (size_t i = 0; i < x->n; i++) {
		distributed_tables_put_keys(t, intern_get(&x->keys, x->v[i].key), w->v[x->v[i].worker]);
		for (unsigned k = 0; k < numbers; k++)
			table_set_f64(t, TB_KEYS + k, tb_us(x->v[i].ns[k]));
	}
	mem_free(sum);
	mem_free(steps);
	mem_free(x->v);
	intern_release(&x->keys);
}

#define STEP_COLUMNS                                                                                                                             \
	{.id = "step", .title = "Step", .help = "number of the ProfilerStep; all = mean over the steps, cut to whole us", .type = CELL_STR},        \
	{.id = "worker", .title = "Worker", .help = "name of the file up to the first dot", .type = CELL_STR},                                      \
	{.id = "rank", .title = "Rank", .help = "number in the job; without one, the place in the list", .type = CELL_I64}
#define STEP_US(id_, title_, help_) {.id = id_ "_us", .title = title_, .help = help_, .type = CELL_F64, .unit = UNIT_US}

static const struct column overlap_columns[] = {
	STEP_COLUMNS,
	STEP_US("computation", "Computation", "kernels, or without any the host's ops, without communication beside them"),
	STEP_US("overlapping", "Overlapping", "both beside each other"),
	STEP_US("communication", "Communication", "communication ops and their kernels, without computation beside them"),
	STEP_US("other", "Other", "what is left of the step"),
};

static const struct column wait_columns[] = {
	STEP_COLUMNS,
	STEP_US("data_transfer", "Data Transfer Time", "the shortest of the workers for each op and kernel, laid at the end of the worker's own"),
	STEP_US("synchronizing", "Synchronizing Time", "what else its communication ops and kernels cover"),
};

void tb_overlap_table(const struct tb_workers *w, struct table *t)
{
	struct by_step x = {0};
	intern_init(&x.keys);
	table_columns(t, overlap_columns, sizeof overlap_columns / sizeof *overlap_columns);
	for (uint32_t i = 0; i < w->n; i++)
		for (uint32_t s = 0; s < w->v[i]->n_steps; s++)
			if (distributed_tables_is_chosen(w, &w->v[i]->step[s]))
				distributed_tables_add(&x, w->v[i]->step[s].name, i, w->v[i]->step[s].ns, TB_PARTS);
	distributed_tables_put(w, &x, TB_PARTS, t);
}

static void distributed_tables_add_waits(const struct tb_workers *w, uint32_t i, struct by_step *x)
{
	const struct tb_worker *r = w->v[i];
	struct tb_wait *wait = NEW_ARRAY((size_t)r->n_steps + 1, struct tb_wait);
	bool all = w->first == INT64_MIN && w->last == INT64_MAX;
	tb_worker_waits_by_step(r, wait);
	for (uint32_t s = 0; s <= r->n_steps; s++) {
		bool in = s < r->n_steps ? distributed_tables_is_chosen(w, &r->step[s]) : all;
		if (in && wait[s].calls)
			distributed_tables_add(x, s < r->n_steps ? r->step[s].name : STR("null"), i, (int64_t[]){wait[s].transfer_ns, wait[s].total_ns - wait[s].transfer_ns},
			                       TB_WAIT_NUMBERS);
	}
	mem_free(wait);
}

void tb_wait_table(const struct tb_workers *w, struct table *t)
{
	struct by_step x = {0};
	intern_init(&x.keys);
	table_columns(t, wait_columns, sizeof wait_columns / sizeof *wait_columns);
	for (uint32_t i = 0; i < w->n; i++)
		distributed_tables_add_waits(w, i, &x);
	if (intern_find(&x.keys, STR("null")) != INTERN_NONE)
		table_note(t, "Step null: communication ops that lie whole in none. It counts as a step in the mean, as in the plugin.");
	distributed_tables_put(w, &x, TB_WAIT_NUMBERS, t);
}

/* ---- by op ---- */

static const struct column comm_columns[] = {
	{.id = "worker", .title = "Worker", .help = "name of the file up to the first dot", .type = CELL_STR},
	{.id = "rank", .title = "Rank", .help = "number in the job; without one, the place in the list", .type = CELL_I64},
	{.id = "name", .title = "Name", .help = "of the op", .type = CELL_STR},
	{.id = "calls", .title = "Calls", .help = "how many there are", .type = CELL_I64},
	{.id = "total_bytes", .title = "Total Size (bytes)", .help = "of the inputs, as their shapes and types say", .type = CELL_I64},
	{.id = "avg_bytes", .title = "Avg Size (bytes)", .help = "per call", .type = CELL_I64},
	STEP_US("total_latency", "Total Latency (us)", "what the ops and their kernels cover"),
	STEP_US("avg_latency", "Avg Latency (us)", "per call"),
	STEP_US("data_transfer", "Data Transfer Time (us)", "the shortest of the workers for each op and kernel, laid at the end of the worker's own"),
	STEP_US("avg_data_transfer", "Avg Data Transfer Time (us)", "per call"),
};

static void distributed_tables_put_comm(const struct tb_worker *r, unsigned op, const struct tb_wait *wait, struct table *t)
{
	double calls = (double)wait->calls, total_us = tb_us(wait->total_ns), transfer_us = tb_us(wait->transfer_ns);
	unsigned c = TB_KEYS;
	table_row(t);
	table_set_str_copy(t, 0, r->name);
	table_set_i64(t, 1, r->rank);
	table_set_str(t, 2, str_from(tb_comm_name[op]));
	table_set_i64(t, c++, (int64_t)wait->calls);
	table_set_i64(t, c++, wait->bytes);
	table_set_i64(t, c++, round_even((double)wait->bytes / calls));
	table_set_f64(t, c++, total_us);
	table_set_f64(t, c++, (double)round_even(total_us / calls));
	table_set_f64(t, c++, transfer_us);
	table_set_f64(t, c++, (double)round_even(transfer_us / calls));
}

/* Which ops the worker has, by their first call. */
static unsigned distributed_tables_order(const struct tb_worker *r, unsigned *order)
{
	bool seen[TB_COMMS] = {false};
	unsigned n = 0;
	for (uint32_t i = 0; i < r->n_comms && n < TB_COMMS; i++) {
		if (!seen[r->comm[i].op])
			order[n++] = r->comm[i].op;
		seen[r->comm[i].op] = true;
	}
	return n;
}

void tb_comm_table(const struct tb_workers *w, struct table *t)
{
	table_columns(t, comm_columns, sizeof comm_columns / sizeof *comm_columns);
	for (uint32_t i = 0; i < w->n; i++) {
		struct tb_wait wait[TB_COMMS];
		unsigned order[TB_COMMS], n = distributed_tables_order(w->v[i], order);
		tb_worker_waits_by_op(w->v[i], w->first, w->last, wait);
		for (unsigned k = 0; k < n; k++)
			if (wait[order[k]].calls)
				distributed_tables_put_comm(w->v[i], order[k], &wait[order[k]], t);
	}
}

/* ---- reports ---- */

static void *distributed_tables_start(const struct report_args *args)
{
	struct tb_workers *w = NEW(struct tb_workers);
	w->first = args->has_steps ? args->step_first : INT64_MIN;
	w->last = args->has_steps ? args->step_last : INT64_MAX;
	return w;
}

/* Of "runs/worker0.17.pt.trace.json.gz": "worker0". */
static struct str distributed_tables_name(struct str path)
{
	for (size_t i = path.n; i-- > 0;)
		if (path.p[i] == '/') {
			path = (struct str){path.p + i + 1, path.n - i - 1};
			break;
		}
	ptrdiff_t dot = str_find(path, STR("."));
	return dot > 0 ? (struct str){path.p, (size_t)dot} : path;
}

static void distributed_tables_take(void *workers, const struct profile *p, int64_t rank)
{
	struct tb_workers *w = workers;
	MEM_PUSH(w->v, w->n, w->cap, tb_worker_new(p, distributed_tables_name(p->input_path), rank));
}

/* The numbers mean little where kernels do not name the op that launched them. */
static void distributed_tables_note(const struct tb_workers *w, struct table *t)
{
	uint64_t ops = 0, bare = 0;
	for (uint32_t i = 0; i < w->n; i++)
		for (uint32_t k = 0; k < w->v[i]->n_comms; k++) {
			ops++;
			bare += w->v[i]->comm[k].n_ranges == 1 && w->v[i]->comm[k].op < TB_COMMS_OF_NCCL;
		}
	table_note(t, "as the plugin: communication is an op nccl: or gloo: and the kernels with its external id; the i-th of one worker is the i-th of every other");
	if (bare)
		table_warn(t, "%llu of %llu communication ops have no kernel with their external id: their time is what enqueuing took; without --compat it is that of the device",
		           (unsigned long long)bare, (unsigned long long)ops);
}

static int distributed_tables_finish(const struct tb_workers *w, void (*put)(const struct tb_workers *w, struct table *t), struct table *t, struct err *e)
{
	if (tb_distributed_match(w->v, w->n, e) < 0)
		return -1;
	put(w, t);
	distributed_tables_note(w, t);
	return t->n_rows ? 0 : err_set(e, ERR_DATA, "no worker has such a step");
}

static int distributed_tables_overlap(void *workers, struct table *t, struct err *e)
{
	return distributed_tables_finish(workers, tb_overlap_table, t, e);
}

static int distributed_tables_wait(void *workers, struct table *t, struct err *e)
{
	return distributed_tables_finish(workers, tb_wait_table, t, e);
}

static int distributed_tables_comm(void *workers, struct table *t, struct err *e)
{
	return distributed_tables_finish(workers, tb_comm_table, t, e);
}

static void distributed_tables_end(void *workers)
{
	tb_workers_free(workers);
}

#define GATHER(finish_) {.start = distributed_tables_start, .add = distributed_tables_take, .finish = finish_, .end = distributed_tables_end}
const struct report_gather tb_gather_overlap = GATHER(distributed_tables_overlap);
const struct report_gather tb_gather_wait = GATHER(distributed_tables_wait);
const struct report_gather tb_gather_comm = GATHER(distributed_tables_comm);
