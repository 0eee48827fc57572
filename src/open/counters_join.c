#include "open/counters_join.h"

#include "analysis/costs/counters.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sort.h"

#include <inttypes.h>
#include <math.h>

/* So many measured rows that begin alike are compared to the end. */
enum { COUNTERS_TRIES = 16 };

struct counters_key {
	uint32_t name;           /* in counters_work.names */
	int32_t grid[3], block[3], device;
};

struct counters_work {
	struct profile *p;
	const struct ncu *n;
	struct intern names, keys, windows;
	bool devices;            /* the trace and the counters both tell of several devices */
	uint32_t *measured;      /* key of each launch of ncu */
	/* The launches of the trace whose key was measured, in order. told: the launch of ncu whose counters it has; ROW_NONE = none. */
	uint32_t *work, *key, *told; /* row of gpu_op; key; launch of ncu */
	uint32_t n_work;
	/* A window: COUNTERS_ROW keys that follow one another in `measured`. ROW_NONE = none. */
	uint32_t *window, *next; /* by window: the first launch of ncu at which it begins; by launch: the next one at which the same window begins */
	uint32_t n_windows, cap_windows;
	struct intern sets;      /* (launch of ncu, argument set before) */
	uint32_t *row_of_set, cap_sets; /* by id in `sets`: the argument set with the counters */
	uint32_t *metric_key, *value; /* string ids of the profile for each metric and each value of ncu; 0 = not made yet */
	enum counter_match match;
};

struct str counters_base_name(struct str k)
{
	size_t from = 0, end = 0;
	unsigned depth = 0;
	bool word = false;
	for (size_t i = 0; i < k.n; i++) {
		const char c = k.p[i];
		if (depth == 0 && str_starts((struct str){k.p + i, k.n - i}, STR("(anonymous namespace)"))) {
			i += sizeof "(anonymous namespace)" - 2;
			word = false;
		} else if (c == '<') {
			depth++;
		} else if (c == '>' && depth) {
			depth -= k.p[i - 1] != '-';
		} else if (depth == 0 && (c == '(' || c == '[')) {
			break;
		} else if (depth == 0 && (c == ' ' || c == ':')) {
			word = false;
		} else if (depth == 0) {
			from = word ? from : i;
			end = i + 1;
			word = true;
		}
	}
	return end > from ? (struct str){k.p + from, end - from} : k;
}

/* ---- keys ---- */

static uint32_t counters_key_id(struct counters_work *w, struct str name, const int32_t grid[3], const int32_t block[3], int64_t device, bool look)
{
	const struct str base = counters_base_name(name);
	struct counters_key k = {.name = look ? intern_find(&w->names, base) : intern_str(&w->names, base), .device = w->devices ? (int32_t)device : 0};
	memcpy(k.grid, grid, sizeof k.grid);
	memcpy(k.block, block, sizeof k.block);
	if (k.name == INTERN_NONE)
		return INTERN_NONE;
	const struct str bytes = {(const char *)&k, sizeof k};
	return look ? intern_find(&w->keys, bytes) : intern_str(&w->keys, bytes);
}

static bool counters_several_devices(const struct counters_work *w)
{
	const struct profile *p = w->p;
	bool measured = false, traced = false;
	for (uint32_t i = 1; i < w->n->n && !measured; i++)
		measured = w->n->launch[i].device != w->n->launch[0].device;
	for (uint32_t i = 1; i < p->launch.rows.n && !traced; i++)
		traced = p->launch.device[i] != p->launch.device[0];
	return measured && traced;
}

/* Correlation ids count up in the order of launches, whatever the stream. */
static void counters_list_work(struct counters_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	const struct launches *l = &w->p->launch;
	struct sort_item *v = NEW_ARRAY_RAW(g->rows.n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		const uint32_t at = g->launch[i];
		if (g->kind[i] != GPU_KERNEL || at == ROW_NONE || l->grid_x[at] == INT32_MIN)
			continue;
		const int32_t grid[] = {l->grid_x[at], l->grid_y[at], l->grid_z[at]}, block[] = {l->block_x[at], l->block_y[at], l->block_z[at]};
		const uint32_t key = counters_key_id(w, profile_str(w->p, g->name[i]), grid, block, l->device[at], true);
		if (key != INTERN_NONE)
			v[n++] = (struct sort_item){sort_key_i64(g->start_ns[i]), i, key};
	}
	sort_items(v, n);
	for (uint32_t i = 0; i < n; i++)
		v[i].key = sort_key_i64(g->corr_id[v[i].row]);
	sort_items(v, n);
	w->work = NEW_ARRAY_RAW(n, uint32_t);
	w->key = NEW_ARRAY_RAW(n, uint32_t);
	w->told = mem_filled(n, ROW_NONE);
	w->n_work = n;
	for (uint32_t i = 0; i < n; i++) {
		w->work[i] = v[i].row;
		w->key[i] = v[i].tie;
	}
	mem_free(v);
}

/* ---- by order ---- */

/* Pairs the k-th launch of each kernel with its k-th measurement. False, and nothing is paired: a kernel was launched another number of times than it was measured. */
static bool counters_tell_by_order(struct counters_work *w)
{
	uint32_t *measured = NEW_ARRAY(w->keys.n, uint32_t), *launched = NEW_ARRAY(w->keys.n, uint32_t), *at = NEW_ARRAY(w->keys.n + 1, uint32_t), *order = NEW_ARRAY_RAW(w->n->n, uint32_t);
	bool same = true;
	for (uint32_t i = 0; i < w->n->n; i++)
		measured[w->measured[i]]++;
	for (uint32_t i = 0; i < w->n_work; i++)
		launched[w->key[i]]++;
	for (uint32_t k = 0; k < w->keys.n; k++) {
		same &= measured[k] == launched[k];
		at[k + 1] = at[k] + measured[k];
	}
	if (same) {
		uint32_t *next = mem_filled(w->keys.n, 0);
		for (uint32_t i = 0; i < w->n->n; i++)
			order[at[w->measured[i]] + next[w->measured[i]]++] = i;
		memset(next, 0, w->keys.n * sizeof *next);
		for (uint32_t i = 0; i < w->n_work; i++)
			w->told[i] = order[at[w->key[i]] + next[w->key[i]]++];
		mem_free(next);
	}
	mem_free(measured);
	mem_free(launched);
	mem_free(at);
	mem_free(order);
	return same;
}

/* ---- by rows of launches ---- */

static struct str counters_window(const uint32_t *keys) { return (struct str){(const char *)keys, COUNTERS_ROW * sizeof *keys}; }

static void counters_index_windows(struct counters_work *w)
{
	const uint32_t n = w->n->n;
	w->next = mem_filled(n, ROW_NONE);
	for (uint32_t i = n >= COUNTERS_ROW ? n - COUNTERS_ROW + 1 : 0; i-- > 0;) {
		const uint32_t id = intern_str(&w->windows, counters_window(w->measured + i)), before = w->cap_windows;
		MEM_GROW(w->window, w->cap_windows, id + 1);
		for (uint32_t k = before; k < w->cap_windows; k++)
			w->window[k] = ROW_NONE;
		w->next[i] = w->window[id];
		w->window[id] = i;
	}
}

static uint32_t counters_alike(const struct counters_work *w, uint32_t work, uint32_t measured)
{
	uint32_t n = 0;
	while (work + n < w->n_work && measured + n < w->n->n && w->key[work + n] == w->measured[measured + n])
		n++;
	return n;
}

static bool counters_tell_kernels(const uint32_t *key, uint32_t n)
{
	uint32_t seen[COUNTERS_KERNELS], n_seen = 0;
	for (uint32_t i = 0; i < n && n_seen < COUNTERS_KERNELS; i++) {
		bool known = false;
		for (uint32_t k = 0; k < n_seen; k++)
			known |= seen[k] == key[i];
		if (!known)
			seen[n_seen++] = key[i];
	}
	return n_seen == COUNTERS_KERNELS;
}

/* The length of the longest measured row that is alike from launch `work` of the trace on, 0 = none; *first: where it begins. Of equally long rows the first one
 * at or behind launch `after` of ncu. */
static uint32_t counters_longest(const struct counters_work *w, uint32_t work, uint32_t after, uint32_t *first)
{
	const uint32_t id = intern_find(&w->windows, counters_window(w->key + work));
	uint32_t longest = 0, tries = 0;
	bool later = false;
	for (uint32_t c = id == INTERN_NONE ? ROW_NONE : w->window[id]; c != ROW_NONE && tries < COUNTERS_TRIES; c = w->next[c], tries++) {
		const uint32_t n = counters_alike(w, work, c);
		if (n > longest || (n == longest && !later && c >= after)) {
			longest = n;
			*first = c;
			later = c >= after;
		}
	}
	return longest;
}

static void counters_tell_by_run(struct counters_work *w)
{
	uint32_t first = 0, after = 0;
	counters_index_windows(w);
	for (uint32_t i = 0; i + COUNTERS_ROW <= w->n_work;) {
		const uint32_t n = counters_longest(w, i, after, &first);
		if (n == 0) {
			i++;
			continue;
		}
		if (!counters_tell_kernels(w->key + i, n)) {
			/* The row has too few kernels. Its last launches may begin a row that has enough. */
			i += n >= COUNTERS_ROW + 1 ? n - COUNTERS_ROW + 1 : 1;
			continue;
		}
		for (uint32_t k = 0; k < n; k++)
			w->told[i + k] = first + k;
		i += n;
		after = first + n;
	}
}

/* ---- what kernels get ---- */

static void counters_put_arg(struct profile *p, uint32_t key, uint32_t value, bool is_string)
{
	const uint32_t a = rows_push(&p->arg, &store_tables[TABLE_arg]);
	if (a == ROW_NONE)
		return;
	p->arg.key[a] = key;
	p->arg.value[a] = value;
	p->arg.is_string[a] = is_string;
}

static uint32_t counters_number(struct profile *p, double v)
{
	struct buf b = {0};
	if (v == floor(v) && fabs(v) < 9e15)
		buf_i64(&b, (int64_t)v);
	else
		buf_printf(&b, "%.15g", v);
	const uint32_t id = intern_str(&p->strings, buf_view(&b));
	buf_release(&b);
	return id;
}

static uint32_t counters_metric(struct counters_work *w, uint32_t metric)
{
	if (!w->metric_key[metric])
		w->metric_key[metric] = intern_str(&w->p->strings, intern_get(&w->n->strings, metric));
	return w->metric_key[metric];
}

/* The argument set `set` with the counters of launch `measured` of ncu; ROW_NONE = there is no room. */
static uint32_t counters_make_set(struct counters_work *w, uint32_t set, uint32_t measured)
{
	struct profile *p = w->p;
	const struct ncu_launch *l = &w->n->launch[measured];
	const uint32_t first = p->arg_set.first[set], end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	const uint32_t to = rows_push(&p->arg_set, &store_tables[TABLE_arg_set]);
	if (to == ROW_NONE)
		return ROW_NONE;
	p->arg_set.first[to] = p->arg.rows.n;
	for (uint32_t i = set ? first : end; i < end; i++)
		counters_put_arg(p, p->arg.key[i], p->arg.value[i], p->arg.is_string[i]);
	counters_put_arg(p, intern_str(&p->strings, str_from(arg_key_text[ARG_COUNTERS])), intern_str(&p->strings, str_from(counter_match_name[w->match])), true);
	for (uint32_t i = l->first; i < l->first + l->n; i++) {
		if (!w->value[i])
			w->value[i] = counters_number(p, w->n->value[i].value);
		counters_put_arg(p, counters_metric(w, w->n->value[i].metric), w->value[i], false);
	}
	return to;
}

/* Many launches may have the counters of one measured launch: these share a set, since a set can have thousands of metrics. */
static void counters_give_work(struct counters_work *w, uint32_t gpu_op, uint32_t measured)
{
	uint32_t *args = &w->p->gpu_op.args[gpu_op];
	const uint32_t key[] = {measured, *args}, before = w->sets.n, id = intern_put(&w->sets, (const char *)key, sizeof key);
	if (w->sets.n != before) {
		MEM_GROW(w->row_of_set, w->cap_sets, id + 1);
		w->row_of_set[id] = counters_make_set(w, *args, measured);
	}
	if (w->row_of_set[id] != ROW_NONE)
		*args = w->row_of_set[id];
}

static void counters_put_units(struct counters_work *w)
{
	struct profile *p = w->p;
	struct buf b = {0};
	for (uint32_t m = 1; m < w->n->strings.n && m < w->n->cap_units; m++) {
		if (!w->metric_key[m] || !w->n->unit[m])
			continue;
		const uint32_t row = rows_push(&p->meta, &store_tables[TABLE_meta]);
		if (row == ROW_NONE)
			break;
		buf_clear(&b);
		buf_cstr(&b, COUNTER_UNIT);
		buf_str(&b, intern_get(&w->n->strings, m));
		p->meta.key[row] = intern_str(&p->strings, buf_view(&b));
		p->meta.value[row] = intern_str(&p->strings, intern_get(&w->n->strings, w->n->unit[m]));
		p->meta.is_string[row] = 1;
	}
	buf_release(&b);
}

/* Counts the measured launches that are no launch of the trace, and the launches of measured kernels that have no counters. */
static void counters_say(struct counters_work *w, const char *path, uint32_t told)
{
	bool *used = NEW_ARRAY(w->n->n, bool);
	uint32_t unused = 0, one = 0;
	for (uint32_t i = 0; i < w->n_work; i++)
		if (w->told[i] != ROW_NONE)
			used[w->told[i]] = true;
	for (uint32_t i = w->n->n; i-- > 0;) {
		unused += !used[i];
		one = used[i] ? one : i;
	}
	if (unused)
		diag_add_n(&w->p->diags, "counters-unused", DIAG_NOTE, unused, -1, "a measured launch is no launch of the trace, by the kernel's name, grid and block and by the launches around it: the first is " STR_FMT " in %s",
		           STR_ARG(counters_base_name(intern_get(&w->n->strings, w->n->launch[one].name))), path);
	if (told < w->n_work)
		diag_add_n(&w->p->diags, "counters-unknown", DIAG_NOTE, w->n_work - told, -1, "a launch of a measured kernel has no counters: the kernel was launched another number of times than it was measured, and the launches around this one "
		           "are not those around a measured launch");
	if (told && 2 * unused > w->n->n && 2 * (uint64_t)told < w->n_work)
		diag_add(&w->p->diags, "counters-of-other-program", DIAG_LOSS, -1, "%" PRIu32 " of %" PRIu32 " measured launches are launches of the trace, and %" PRIu32 " of the trace's %" PRIu32
		         " launches of these kernels have counters: the counters may be of another program: %s", w->n->n - unused, w->n->n, told, w->n_work, path);
	mem_free(used);
}

static void counters_release(struct counters_work *w)
{
	intern_release(&w->names);
	intern_release(&w->keys);
	intern_release(&w->windows);
	intern_release(&w->sets);
	mem_free(w->measured);
	mem_free(w->work);
	mem_free(w->key);
	mem_free(w->told);
	mem_free(w->window);
	mem_free(w->next);
	mem_free(w->row_of_set);
	mem_free(w->metric_key);
	mem_free(w->value);
}

int counters_join(struct profile *p, const struct ncu *n, const char *path, struct err *e)
{
	struct counters_work w = {.p = p, .n = n, .match = COUNTER_BY_ORDER};
	uint32_t told = 0;
	int rc = 0;
	intern_init(&w.names);
	intern_init(&w.keys);
	intern_init(&w.windows);
	intern_init(&w.sets);
	w.devices = counters_several_devices(&w);
	w.measured = NEW_ARRAY_RAW(n->n, uint32_t);
	for (uint32_t i = 0; i < n->n; i++)
		w.measured[i] = counters_key_id(&w, intern_get(&n->strings, n->launch[i].name), n->launch[i].grid, n->launch[i].block, n->launch[i].device, false);
	w.metric_key = NEW_ARRAY(n->strings.n, uint32_t);
	w.value = NEW_ARRAY(n->n_values, uint32_t);
	counters_list_work(&w);
	if (!counters_tell_by_order(&w)) {
		w.match = COUNTER_BY_RUN;
		counters_tell_by_run(&w);
	}
	for (uint32_t i = 0; i < w.n_work; i++)
		if (w.told[i] != ROW_NONE) {
			counters_give_work(&w, w.work[i], w.told[i]);
			told++;
		}
	p->adds_args |= told > 0;
	counters_put_units(&w);
	counters_say(&w, path, told);
	if (!told && !w.n_work)
		rc = err_set(e, ERR_DATA, "%s: no measured launch, of %" PRIu32 ", has its kernel's name, grid and block in the trace: counters of the same program were expected", path, n->n);
	else if (!told)
		rc = err_set(e, ERR_DATA, "%s: none of %" PRIu32 " measured launches can be told to be one of the %" PRIu32 " launches of these kernels in the trace: kernels were measured another number of times than they were launched, and no rows of %d launches are alike",
		             path, n->n, w.n_work, COUNTERS_ROW);
	counters_release(&w);
	profile_find_arg_keys(p);
	return rc;
}
