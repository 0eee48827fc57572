/* Calls of a key op, and the borders that they make. */
#include "analysis/steps/iterations.h"

#include "analysis/analysis.h"
#include "analysis/steps/iterations_names.h"
#include "analysis/tree/op_instances.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

enum { NO_GPU = UINT32_MAX };

void key_calls_release(struct key_calls *k)
{
	mem_free(k->start_ns);
	mem_free(k->end_ns);
	mem_free(k->span);
	mem_free(k->gpu);
	*k = (struct key_calls){0};
}

static void iterations_key_add_call(struct key_calls *k, int64_t start, int64_t end, uint32_t span)
{
	uint32_t caps[3] = {k->cap, k->cap, k->cap};
	MEM_GROW(k->start_ns, caps[0], k->n + 1);
	MEM_GROW(k->end_ns, caps[1], k->n + 1);
	MEM_GROW(k->span, caps[2], k->n + 1);
	MEM_GROW(k->gpu, k->cap, k->n + 1);
	k->start_ns[k->n] = start;
	k->end_ns[k->n] = end;
	k->span[k->n] = span;
	k->gpu[k->n++] = NO_GPU;
}

/* Of most of what it was shown, if there is such a one (Boyer and Moore). */
struct majority {
	int32_t device;
	uint32_t lead;
};

static void iterations_key_vote(struct majority *m, int32_t device)
{
	if (!m->lead)
		m->device = device;
	m->lead += m->device == device ? 1 : UINT32_MAX;
}

/* The last call in [lo, hi) that begins at or before `time`; hi when there is none. Calls of one thread, in order of start. */
static uint32_t call_at(const struct key_calls *k, uint32_t lo, uint32_t hi, int64_t time)
{
	uint32_t behind = FIRST_WHERE(i, lo, hi, k->start_ns[i] > time);
	return behind > lo ? behind - 1 : hi;
}

struct gpu_finder {
	uint32_t *first;              /* track -> its first call; one more at the end */
	struct majority *of_track, *of_process;
	uint32_t *process;            /* track -> row of of_process */
};

static void iterations_key_number_processes(const struct profile *p, struct gpu_finder *f)
{
	struct idmap row;
	uint32_t n = p->track.rows.n;
	f->process = NEW_ARRAY(n, uint32_t);
	idmap_init(&row, INT64_MIN, INT64_MAX, n);
	for (uint32_t t = 0; t < n; t++) {
		uint32_t at = idmap_get(&row, p->track.pid[t]);
		f->process[t] = at == IDMAP_NONE ? t : at;
		if (at == IDMAP_NONE)
			idmap_put(&row, p->track.pid[t], t);
	}
	idmap_release(&row);
}

/* The device on which the call's work ran, into k->gpu as it is; calls stand in order of (track, start). */
static void devices_by_launch(const struct profile *p, struct key_calls *k, struct gpu_finder *f)
{
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		int32_t device = p->launch.device[p->gpu_op.launch[g]];
		uint32_t call = p->gpu_op.call[g];
		if (call == ROW_NONE || device == INT32_MIN)
			continue;
		uint32_t track = p->span.track[call];
		iterations_key_vote(&f->of_track[track], device);
		iterations_key_vote(&f->of_process[f->process[track]], device);
		uint32_t end = f->first[track + 1], at = call_at(k, f->first[track], end, p->span.start_ns[call]);
		if (at != end && p->span.start_ns[call] < k->end_ns[at] && k->gpu[at] == NO_GPU)
			k->gpu[at] = (uint32_t)device;
	}
}

static void devices_by_thread(const struct profile *p, struct key_calls *k, const struct gpu_finder *f)
{
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t track = k->span[i] == ROW_NONE ? ROW_NONE : p->span.track[k->span[i]];
		if (k->gpu[i] != NO_GPU || track == ROW_NONE)
			continue;
		const struct majority *m = f->of_track[track].lead ? &f->of_track[track] : &f->of_process[f->process[track]];
		if (m->lead)
			k->gpu[i] = (uint32_t)m->device;
	}
}

/* Devices become 0, 1, ...; calls without one are another. */
static void number_gpus(struct key_calls *k)
{
	struct idmap row;
	idmap_init(&row, 0, UINT32_MAX, k->n);
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t at = idmap_get(&row, k->gpu[i]);
		if (at == IDMAP_NONE)
			idmap_put(&row, k->gpu[i], at = k->gpus++);
		k->gpu[i] = at;
	}
	idmap_release(&row);
}

static void iterations_key_find_gpus(const struct profile *p, struct key_calls *k)
{
	uint32_t n = p->track.rows.n;
	struct gpu_finder f = {NEW_ARRAY((size_t)n + 1, uint32_t), NEW_ARRAY(n, struct majority), NEW_ARRAY(n, struct majority), NULL};
	iterations_key_number_processes(p, &f);
	for (uint32_t i = 0; i < k->n; i++)
		if (k->span[i] != ROW_NONE)
			f.first[p->span.track[k->span[i]] + 1]++;
	for (uint32_t t = 0; t < n; t++)
		f.first[t + 1] += f.first[t];
	devices_by_launch(p, k, &f);
	devices_by_thread(p, k, &f);
	number_gpus(k);
	mem_free(f.first);
	mem_free(f.of_track);
	mem_free(f.of_process);
	mem_free(f.process);
}

static void iterations_key_sort_by_start(struct key_calls *k)
{
	struct sort_item *item = NEW_ARRAY(k->n, struct sort_item);
	struct key_calls old = *k;
	for (uint32_t i = 0; i < k->n; i++)
		item[i] = (struct sort_item){sort_key_i64(k->start_ns[i]), i, 0};
	sort_items(item, k->n);
	k->start_ns = NEW_ARRAY(k->n, int64_t);
	k->end_ns = NEW_ARRAY(k->n, int64_t);
	k->span = NEW_ARRAY(k->n, uint32_t);
	k->gpu = NEW_ARRAY(k->n, uint32_t);
	k->cap = k->n;
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t row = item[i].row;
		k->start_ns[i] = old.start_ns[row];
		k->end_ns[i] = old.end_ns[row];
		k->span[i] = old.span[row];
		k->gpu[i] = old.gpu[row];
	}
	key_calls_release(&(struct key_calls){old.start_ns, old.end_ns, old.span, old.gpu, 0, 0, 0, {0}});
	mem_free(item);
}

/* Only the outermost of ranges in one another; spans stand in order of (track, start). */
static void add_outermost(const struct profile *p, struct key_calls *k, uint32_t span, int64_t *open_until, uint32_t *track)
{
	if (*track != p->span.track[span]) {
		*track = p->span.track[span];
		*open_until = INT64_MIN;
	}
	if (p->span.start_ns[span] < *open_until)
		return;
	*open_until = span_end(p, span);
	iterations_key_add_call(k, p->span.start_ns[span], span_end(p, span), span);
}

static void finish_calls(const struct profile *p, struct key_calls *k)
{
	iterations_key_find_gpus(p, k);
	iterations_key_sort_by_start(k);
}

void key_calls_of_names(const struct profile *p, const uint8_t *wanted, struct str name, struct key_calls *out)
{
	*out = (struct key_calls){.name = name};
	int64_t open_until = INT64_MIN;
	uint32_t track = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (wanted[p->span.name[i]] && key_kind(p->span.kind[i]))
			add_outermost(p, out, i, &open_until, &track);
	finish_calls(p, out);
}

static bool calls_of_ops(const struct profile *p, const uint8_t *wanted, struct str name, struct key_calls *out)
{
	const struct ops *o = p->ops;
	uint8_t *span = NEW_ARRAY(p->span.rows.n, uint8_t);
	int64_t open_until = INT64_MIN;
	uint32_t track = ROW_NONE;
	*out = (struct key_calls){.name = name};
	for (uint32_t i = 0; i < o->n_instances; i++)
		if (wanted[o->instance[i].op] && o->instance[i].span != ROW_NONE)
			span[o->instance[i].span] = 1;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (span[i])
			add_outermost(p, out, i, &open_until, &track);
	mem_free(span);
	finish_calls(p, out);
	return out->n > 0;
}

/* Device work stands for the call that launched it. */
static bool calls_of_kernel(const struct profile *p, uint32_t name, struct key_calls *out)
{
	uint8_t *span = NEW_ARRAY(p->span.rows.n, uint8_t);
	*out = (struct key_calls){.name = profile_str(p, name)};
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.name[g] == name && p->gpu_op.call[g] != ROW_NONE)
			span[p->gpu_op.call[g]] = 1;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (span[i])
			iterations_key_add_call(out, p->span.start_ns[i], span_end(p, i), i);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.name[g] == name && p->gpu_op.call[g] == ROW_NONE)
			iterations_key_add_call(out, p->gpu_op.start_ns[g], gpu_end(p, g), ROW_NONE);
	mem_free(span);
	finish_calls(p, out);
	return out->n > 0;
}

/* Names of ranges and of device work, by string id. */
enum { USED_SPAN = 1, USED_KERNEL = 2 };

static uint8_t *used_names(const struct profile *p)
{
	uint8_t *used = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (key_kind(p->span.kind[i]))
			used[p->span.name[i]] |= USED_SPAN;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		used[p->gpu_op.name[g]] |= USED_KERNEL;
	return used;
}

static bool ends_in(struct str name, struct str key)
{
	return name.n > key.n && str_ends(name, key) && strchr("/.:#;_ (", name.p[name.n - key.n - 1]);
}

static bool is_exactly(struct str name, struct str key)
{
	return str_eq(name, key);
}

static bool has_pattern(struct str name, struct str key)
{
	return name_matches_numbers(name, key);
}

/* The names that `match` the key; with `one`, only if all calls have the same name. */
static bool iterations_key_find_spans(const struct profile *p, const uint8_t *used, struct str key, bool (*match)(struct str, struct str), bool one,
                                      struct key_calls *out)
{
	uint8_t *wanted = NEW_ARRAY(p->strings.n, uint8_t);
	uint32_t n = 0, last = 0;
	for (uint32_t s = 0; s < p->strings.n; s++)
		if ((used[s] & USED_SPAN) && match(profile_str(p, s), key)) {
			wanted[s] = 1;
			last = s;
			n++;
		}
	bool found = n == 1 || (n && !one);
	if (found)
		key_calls_of_names(p, wanted, n == 1 ? profile_str(p, last) : key, out);
	mem_free(wanted);
	return found;
}

static bool iterations_key_find_ops(const struct profile *p, struct str key, bool (*match)(struct str, struct str), struct key_calls *out)
{
	const struct ops *o = p->ops;
	if (!o)
		return false;
	uint8_t *wanted = NEW_ARRAY(o->n_ops, uint8_t);
	struct str name = {0};
	bool one = true;
	for (uint32_t i = 0; i < o->n_ops; i++) {
		bool id = o->op[i].id.n == key.n && str_has_nocase(o->op[i].id, key);
		if (!id && !match(o->op[i].name, key))
			continue;
		one = one && (!name.p || str_eq(name, o->op[i].name));
		name = o->op[i].name;
		wanted[i] = 1;
		if (!id)
			continue;
		memset(wanted, 0, i); /* an id is of one op */
		one = true;
		break;
	}
	bool found = name.p && one && calls_of_ops(p, wanted, name, out);
	mem_free(wanted);
	return found;
}

static bool find_kernel(const struct profile *p, const uint8_t *used, struct str key, struct key_calls *out)
{
	uint32_t exact = intern_find(&p->strings, key), n = 0, last = 0;
	if (exact != INTERN_NONE && (used[exact] & USED_KERNEL))
		return calls_of_kernel(p, exact, out);
	for (uint32_t s = 0; s < p->strings.n; s++)
		if ((used[s] & USED_KERNEL) && ends_in(profile_str(p, s), key)) {
			last = s;
			n++;
		}
	return n == 1 && calls_of_kernel(p, last, out);
}

bool key_calls_find(const struct profile *p, struct str key, struct key_calls *out)
{
	uint8_t *used = used_names(p);
	*out = (struct key_calls){0};
	bool found = key.n && (iterations_key_find_spans(p, used, key, is_exactly, true, out) ||
	                       (str_has(key, STR("#")) && iterations_key_find_spans(p, used, key, has_pattern, false, out)) ||
	                       iterations_key_find_ops(p, key, is_exactly, out) || iterations_key_find_spans(p, used, key, ends_in, true, out) ||
	                       iterations_key_find_ops(p, key, ends_in, out) || find_kernel(p, used, key, out));
	mem_free(used);
	return found;
}

bool key_calls_even(const struct key_calls *k)
{
	uint32_t *count = NEW_ARRAY(k->gpus, uint32_t);
	for (uint32_t i = 0; i < k->n; i++)
		count[k->gpu[i]]++;
	bool same = true;
	for (uint32_t g = 1; g < k->gpus; g++)
		same = same && count[g] == count[0];
	mem_free(count);
	return same;
}

int64_t *key_borders(const struct key_calls *k, bool ends, uint32_t *n)
{
	int64_t *border = NEW_ARRAY(k->n, int64_t);
	uint32_t *place = NEW_ARRAY(k->gpus, uint32_t); /* how many calls of this GPU came before */
	struct sort_item *item = NEW_ARRAY(k->n, struct sort_item);
	bool same = key_calls_even(k);
	for (uint32_t i = 0; i < k->n; i++)
		item[i] = (struct sort_item){sort_key_i64(ends ? k->end_ns[i] : k->start_ns[i]), i, 0};
	sort_items(item, k->n);
	*n = 0;
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t row = item[i].row;
		int64_t time = ends ? k->end_ns[row] : k->start_ns[row];
		if (!same) {
			border[(*n)++] = time;
			continue;
		}
		uint32_t at = place[k->gpu[row]]++;
		if (at == *n)
			border[(*n)++] = time;
		else if (ends)
			border[at] = time; /* they come in order of time: the last is the latest */
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < *n; i++)
		if (!kept || border[i] > border[kept - 1])
			border[kept++] = border[i];
	*n = kept;
	mem_free(item);
	mem_free(place);
	return border;
}
