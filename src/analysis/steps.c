#include "analysis/steps.h"

#include "analysis/analysis.h"
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

/* How many steps count: those behind the last one with device work do not, nor does that one when the recording seems to
 * have cut its device work off (under 0.8 times that of the step before). */
static unsigned count_kept(const struct drafts *d)
{
	unsigned last = d->n;
	while (last > 0 && !d->v[last - 1].step.device_ops)
		last--;
	if (last < 1 || d->n < 2)
		return d->n;
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
	unsigned kept = d.n;
	if (d.n && match_device_work(p, &d)) {
		stretch_to_device(p, &d);
		kept = count_kept(&d);
	}
	s->dropped_tail = d.n - kept;
	s->n = kept;
	s->v = ARENA_ARRAY(&p->arena, kept, struct step);
	for (unsigned i = 0; i < kept; i++)
		s->v[i] = d.v[i].step;
	mem_free(d.v);
	p->steps = s;
	return 0;
}
