#include "analysis/steps.h"

#include "analysis/analysis.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"

/* What is known of a step while it is being placed. */
struct draft {
	struct step step;
	int64_t latest_host_end;          /* of this and all earlier steps */
	int64_t device_first, device_last; /* of the device work it launched; first > last: none */
};

struct drafts {
	struct draft *v;
	unsigned n, cap;
};

static void draft_add(struct drafts *d, struct str name, int64_t start, int64_t end, uint32_t span)
{
	MEM_GROW(d->v, d->cap, d->n + 1);
	d->v[d->n++] = (struct draft){
		.step = {.name = name, .host_start_ns = start, .host_end_ns = end, .start_ns = start, .end_ns = end, .span = span},
		.device_first = INT64_MAX, .device_last = INT64_MIN,
	};
}

static void collect_annotations(const struct profile *p, struct drafts *d)
{
	struct str prefix = STR("ProfilerStep#");
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_USER && p->span.kind[i] != SPAN_OP)
			continue;
		struct str name = profile_str(p, p->span.name[i]);
		if (!str_starts(name, prefix))
			continue;
		name = (struct str){name.p + prefix.n, name.n - prefix.n};
		draft_add(d, name, p->span.start_ns[i], span_end(p, i), i);
	}
}

static void sort_by_time(struct drafts *d)
{
	struct sort_item *item = NEW_ARRAY(d->n, struct sort_item);
	struct draft *sorted = NEW_ARRAY(d->n, struct draft);
	for (unsigned i = 0; i < d->n; i++)
		item[i] = (struct sort_item){sort_key_i64(d->v[i].step.start_ns), i, 0};
	sort_items(item, d->n);
	int64_t latest = INT64_MIN;
	for (unsigned i = 0; i < d->n; i++) {
		sorted[i] = d->v[item[i].row];
		if (sorted[i].step.host_end_ns > latest)
			latest = sorted[i].step.host_end_ns;
		sorted[i].latest_host_end = latest;
		if (!str_to_i64(sorted[i].step.name, &sorted[i].step.number))
			sorted[i].step.number = i;
	}
	mem_free(item);
	mem_free(d->v);
	d->v = sorted;
	d->cap = d->n;
}

struct extent {
	int64_t first, last;
};

static void extend(struct extent *x, int64_t start, int64_t end)
{
	if (start < x->first)
		x->first = start;
	if (end > x->last)
		x->last = end;
}

/* From the first to the last op; of whatever else there is when there are no ops. */
static struct extent whole_trace(const struct profile *p)
{
	struct extent ops = {INT64_MAX, INT64_MIN}, host = ops, device = ops;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		bool op = p->span.kind[i] == SPAN_OP ||
		          (p->span.kind[i] == SPAN_PYTHON && str_eq(profile_cat(p, p->span.cat[i]), STR("python")));
		if (op)
			extend(&ops, p->span.start_ns[i], span_end(p, i));
		if (p->span.kind[i] != SPAN_TRACE)
			extend(&host, p->span.start_ns[i], span_end(p, i));
	}
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++)
		extend(&device, p->gpu_op.start_ns[i], gpu_end(p, i));
	return ops.first <= ops.last ? ops : host.first <= host.last ? host : device;
}

/* The step that wholly contains the API call; NULL when it stands outside or crosses a border. */
static struct draft *step_around(const struct drafts *d, int64_t start, int64_t end)
{
	unsigned lo = 0, hi = d->n;
	while (lo < hi) { /* the first step that has not ended when the call starts */
		unsigned mid = lo + (hi - lo) / 2;
		if (d->v[mid].latest_host_end <= start)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == d->n || d->v[lo].step.host_start_ns > start || d->v[lo].step.host_end_ns < end)
		return NULL;
	return &d->v[lo];
}

static struct draft *step_of_gpu_op(const struct profile *p, const struct drafts *d, uint32_t g)
{
	uint32_t call = p->gpu_op.call[g];
	return call == ROW_NONE ? NULL : step_around(d, p->span.start_ns[call], span_end(p, call));
}

/* Device work launched in each step. Returns whether there is any. */
static bool match_device_work(const struct profile *p, struct drafts *d)
{
	bool any = false;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		struct draft *s = step_of_gpu_op(p, d, g);
		if (!s)
			continue;
		any = true;
		s->step.device_ops++;
		if (p->gpu_op.start_ns[g] < s->device_first)
			s->device_first = p->gpu_op.start_ns[g];
		if (gpu_end(p, g) > s->device_last)
			s->device_last = gpu_end(p, g);
	}
	return any;
}

/* Where the work of the time before the first step ends on the device: the first step cannot have begun earlier. */
static int64_t end_before_first(const struct profile *p, const struct drafts *d)
{
	int64_t end = d->v[0].step.host_start_ns;
	if (!d->v[0].step.device_ops)
		return end;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (gpu_end(p, g) < d->v[0].device_first && gpu_end(p, g) > end && !step_of_gpu_op(p, d, g))
			end = gpu_end(p, g);
	return end;
}

static void stretch_to_device(const struct profile *p, struct drafts *d)
{
	int64_t previous = end_before_first(p, d);
	for (unsigned i = 0; i < d->n; i++) {
		struct step *s = &d->v[i].step;
		if (previous > s->start_ns)
			s->start_ns = previous;
		if (s->device_ops && d->v[i].device_last > s->end_ns)
			s->end_ns = d->v[i].device_last;
		if (s->end_ns < s->start_ns)
			s->end_ns = s->start_ns;
		previous = s->end_ns;
	}
}

/* For each name, how many calls have it, and how many of these have device work with their correlation id. */
struct launchers {
	uint32_t *calls, *with_work;
	struct idmap work; /* correlation ids of device work */
};

static void launchers_init(struct launchers *l, const struct profile *p)
{
	const struct gpu_ops *g = &p->gpu_op;
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->corr_id[i] == ID_NONE)
			continue;
		min = g->corr_id[i] < min ? g->corr_id[i] : min;
		max = g->corr_id[i] > max ? g->corr_id[i] : max;
	}
	idmap_init(&l->work, min, max, g->rows.n);
	for (uint32_t i = 0; i < g->rows.n; i++)
		if (g->corr_id[i] != ID_NONE)
			idmap_put(&l->work, g->corr_id[i], i);
	l->calls = NEW_ARRAY(p->strings.n, uint32_t);
	l->with_work = NEW_ARRAY(p->strings.n, uint32_t);
}

static void launchers_release(struct launchers *l)
{
	idmap_release(&l->work);
	mem_free(l->calls);
	mem_free(l->with_work);
}

static bool has_work(const struct launchers *l, const struct profile *p, uint32_t call)
{
	return p->span.link_id[call] != ID_NONE && idmap_get(&l->work, p->span.link_id[call]) != IDMAP_NONE;
}

static bool launches(const struct launchers *l, uint32_t name)
{
	return l->with_work[name] && l->with_work[name] >= l->calls[name] / 4;
}

static void count_launches(const struct profile *p, struct drafts *d)
{
	const struct spans *s = &p->span;
	struct launchers l;
	launchers_init(&l, p);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL)
			continue;
		l.calls[s->name[i]]++;
		l.with_work[s->name[i]] += has_work(&l, p, i);
	}
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL || !launches(&l, s->name[i]))
			continue;
		struct draft *step = step_around(d, s->start_ns[i], span_end(p, i));
		if (!step)
			continue;
		step->step.launches++;
		step->step.launches_lost += !has_work(&l, p, i);
	}
	launchers_release(&l);
}

/* How many steps there are up to the last one with device work; all when none has. */
static unsigned count_with_work(const struct drafts *d)
{
	unsigned last = d->n;
	while (last > 0 && !d->v[last - 1].step.device_ops)
		last--;
	return last ? last : d->n;
}

/* When every step lacks work, the end of the recording is not the reason, and no step is left out for it. */
static unsigned count_kept(const struct drafts *d)
{
	unsigned with_work = count_with_work(d), last = with_work;
	while (last > 0 && d->v[last - 1].step.launches_lost > d->v[last - 1].step.launches / 5.0)
		last--;
	return last ? last : with_work;
}

static unsigned count_kept_by_plugin(const struct drafts *d)
{
	unsigned last = count_with_work(d);
	if (last > 1 && d->v[last - 2].step.device_ops * 0.8 > d->v[last - 1].step.device_ops)
		last--;
	return last;
}

int pass_steps(struct profile *p, struct err *e)
{
	(void)e;
	struct drafts d = {0};
	collect_annotations(p, &d);
	struct steps *s = ARENA_ARRAY(&p->arena, 1, struct steps);
	s->seen = d.n;
	s->whole_trace = d.n == 0;
	if (s->whole_trace) {
		struct extent x = whole_trace(p);
		if (x.first <= x.last)
			draft_add(&d, STR("0"), x.first, x.last, ROW_NONE);
	}
	sort_by_time(&d);
	s->n = s->n_plugin = s->total = d.n;
	if (d.n && match_device_work(p, &d)) {
		stretch_to_device(p, &d);
		count_launches(p, &d);
		s->n = count_kept(&d);
		s->n_plugin = count_kept_by_plugin(&d);
	}
	s->v = ARENA_ARRAY(&p->arena, d.n, struct step);
	for (unsigned i = 0; i < d.n; i++)
		s->v[i] = d.v[i].step;
	mem_free(d.v);
	p->steps = s;
	return 0;
}
