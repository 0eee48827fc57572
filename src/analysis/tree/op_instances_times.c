#include "analysis/tree/op_instances_work.h"
#include "base/saturate.h"
#include "base/search.h"
#include "base/sort.h"

static int32_t op_instances_times_device_of(const struct profile *p, uint32_t gpu)
{
	uint32_t launch = p->gpu_op.launch[gpu];
	return launch == ROW_NONE ? INT32_MIN : p->launch.device[launch];
}

/* o->gpu: device work by instance, by start within each. */
static void group_work(const struct profile *p, struct ops *o)
{
	uint32_t n = p->gpu_op.rows.n, sum = 0;
	struct sort_item *v = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t g = 0; g < n; g++) {
		v[g] = (struct sort_item){.key = sort_key_i64(p->gpu_op.start_ns[g]), .row = g};
		o->instance[o->of_gpu[g]].gpu_n++;
	}
	sort_items(v, n);
	for (uint32_t k = 0; k < o->n_instances; k++) {
		o->instance[k].gpu_first = sum;
		sum += o->instance[k].gpu_n;
		o->instance[k].gpu_n = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct op_instance *x = &o->instance[o->of_gpu[v[i].row]];
		o->gpu[x->gpu_first + x->gpu_n++] = v[i].row;
	}
	mem_free(v);
}

/* Busy and idle time of work on one device, by start. */
static void add_busy(const struct profile *p, const uint32_t *gpu, uint32_t n, struct op_instance *x)
{
	int64_t first = p->gpu_op.start_ns[gpu[0]], end = first, busy = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t from = p->gpu_op.start_ns[gpu[i]], to = gpu_end(p, gpu[i]);
		from = from > end ? from : end;
		if (to > from) {
			busy += to - from;
			end = to;
		}
	}
	add_saturated(&x->gpu_ns, busy);
	add_saturated(&x->idle_ns, end - first - busy);
}

/* GPUs work at the same time: each has its own union, and they add up. */
static void add_busy_of_devices(const struct profile *p, const struct ops *o, struct op_instance *x)
{
	struct sort_item *v = NEW_ARRAY_RAW(x->gpu_n, struct sort_item);
	uint32_t *row = NEW_ARRAY_RAW(x->gpu_n, uint32_t);
	for (uint32_t i = 0; i < x->gpu_n; i++)
		v[i] = (struct sort_item){.key = sort_key_i64(op_instances_times_device_of(p, o->gpu[x->gpu_first + i])), .row = o->gpu[x->gpu_first + i]};
	sort_items(v, x->gpu_n);
	for (uint32_t i = 0; i < x->gpu_n; i++)
		row[i] = v[i].row;
	for (uint32_t i = 0, k; i < x->gpu_n; i = k) {
		for (k = i + 1; k < x->gpu_n && v[k].key == v[i].key; k++)
			;
		add_busy(p, row + i, k - i, x);
	}
	mem_free(v);
	mem_free(row);
}

static bool one_device(const struct profile *p, const struct ops *o, const struct op_instance *x)
{
	return !ANY_WHERE(i, 1, x->gpu_n,
	                  op_instances_times_device_of(p, o->gpu[x->gpu_first + i]) != op_instances_times_device_of(p, o->gpu[x->gpu_first]));
}

/* Calls are sorted by thread and start: of calls within calls the outer one comes first. */
static void add_calls(const struct profile *p, struct ops *o)
{
	const struct spans *s = &p->span;
	int64_t *covered = NEW_ARRAY_RAW(o->n_instances, int64_t);
	uint32_t *track = mem_filled(o->n_instances, ROW_NONE);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t k = s->kind[i] == SPAN_CALL ? o->of_span[i] : ROW_NONE;
		if (k == ROW_NONE)
			continue;
		int64_t from = s->start_ns[i], to = span_end(p, i);
		if (track[k] == s->track[i] && covered[k] > from)
			from = covered[k];
		if (to > from)
			add_saturated(&o->instance[k].api_ns, to - from);
		if (track[k] != s->track[i] || to > covered[k])
			covered[k] = to;
		track[k] = s->track[i];
	}
	mem_free(covered);
	mem_free(track);
}

void ops_measure(struct profile *p, struct ops *o)
{
	o->gpu = ARENA_ARRAY(&p->arena, p->gpu_op.rows.n, uint32_t);
	group_work(p, o);
	add_calls(p, o);
	for (uint32_t k = 0; k < o->n_instances; k++) {
		struct op_instance *x = &o->instance[k];
		if (x->gpu_n && one_device(p, o, x))
			add_busy(p, o->gpu + x->gpu_first, x->gpu_n, x);
		else if (x->gpu_n)
			add_busy_of_devices(p, o, x);
		if (x->span != ROW_NONE && span_is_replay(p, x->span))
			x->end_ns = x->start_ns;
		int64_t rest = x->end_ns - x->start_ns - x->api_ns;
		x->overhead_ns = rest > 0 ? rest : 0;
	}
}
