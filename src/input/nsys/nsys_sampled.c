/* Which samples of a GPU lie in a kernel. A sample is the mean over an interval that ends at about its timestamp. nsys says neither when exactly, nor how well
 * the clocks of the sampler and of the tracer agree. So a sample counts for a kernel if the kernel ran alone from the sample before to the sample behind: then
 * the interval lies in the kernel either way. */
#include "input/nsys/nsys_metrics.h"

#include "base/search.h"
#include "base/sort.h"

#include <math.h>

/* Calls of one kernel that follow one another must take up so much of the time around a sample. */
enum { NSYS_SAMPLED_COVERED_PCT = 95 };

/* A piece of time in which the same work ran. */
struct nsys_sampled_piece {
	int64_t from_ns, to_ns;
	uint32_t row;            /* of gpu_op; ROW_NONE = several pieces of work ran at once */
};

struct nsys_sampled {
	struct nsys *n;
	const struct nsys_metrics *m;
	int32_t device;
	const struct nsys_metrics_series *x;
	const struct nsys_metrics_track **track; /* the metrics of series `x` */
	uint32_t n_tracks;
	struct nsys_sampled_piece *piece; /* of the device, in order of time */
	uint32_t n_pieces, cap_pieces;
};

/* What ran from the sample before a sample to the sample behind it. */
struct nsys_sampled_around {
	/* Where calls of one kernel, grid and block take up NSYS_SAMPLED_COVERED_PCT of this time, and no other work ran: the last of these calls that began by the sample's
	 * timestamp, else the first. ROW_NONE = anything else ran, or less. */
	uint32_t row;
	bool whole;              /* this one call ran all the time */
	bool idle;               /* nothing ran, nor for an interval before and behind; but work ran earlier and later in the recording */
};

static void nsys_sampled_add_work(struct sort_item *v, uint32_t *n, int64_t at_ns, uint32_t row, uint32_t begins)
{
	v[(*n)++] = (struct sort_item){sort_key_i64(at_ns), row, begins};
}

/* While one piece of work runs, the sum of the running rows is its row. */
static void nsys_sampled_find_pieces(struct nsys_sampled *d)
{
	const struct profile *p = d->n->p;
	const struct gpu_ops *g = &p->gpu_op;
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->rows.n; i++)
		n += p->launch.device[g->launch[i]] == d->device && g->dur_ns[i] > 0;
	if (n >= UINT32_MAX / 2)
		return;
	struct sort_item *v = NEW_ARRAY_RAW(2 * n, struct sort_item);
	n = 0;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (p->launch.device[g->launch[i]] != d->device || g->dur_ns[i] <= 0)
			continue;
		nsys_sampled_add_work(v, &n, g->start_ns[i], i, 1);
		nsys_sampled_add_work(v, &n, g->start_ns[i] + g->dur_ns[i], i, 0);
	}
	sort_items(v, n);
	uint64_t running = 0, rows = 0;
	for (uint32_t i = 0; i < n; i++) {
		running += v[i].tie ? 1 : (uint64_t)-1;
		rows += v[i].tie ? v[i].row : (uint64_t)0 - v[i].row;
		if (running && i + 1 < n && v[i + 1].key != v[i].key)
			MEM_PUSH(d->piece, d->n_pieces, d->cap_pieces,
			         ((struct nsys_sampled_piece){(int64_t)(v[i].key ^ 1ull << 63), (int64_t)(v[i + 1].key ^ 1ull << 63), running == 1 ? (uint32_t)rows : ROW_NONE}));
	}
	mem_free(v);
}

static bool nsys_sampled_is_kernel(const struct profile *p, uint32_t row)
{
	return row != ROW_NONE && p->gpu_op.kind[row] == GPU_KERNEL && !gpu_is_graph(p, row);
}

static bool nsys_sampled_same(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct launches *l = &p->launch;
	const uint32_t x = p->gpu_op.launch[a], y = p->gpu_op.launch[b];
	return a == b || (p->gpu_op.name[a] == p->gpu_op.name[b] && l->grid_x[x] == l->grid_x[y] && l->grid_y[x] == l->grid_y[y] && l->grid_z[x] == l->grid_z[y] && l->block_x[x] == l->block_x[y] &&
	                  l->block_y[x] == l->block_y[y] && l->block_z[x] == l->block_z[y]);
}

/* *at: the first piece that ends behind sample i - 1; moved on, so that samples are to be asked for in order of time. */
static struct nsys_sampled_around nsys_sampled_look(const struct nsys_sampled *d, uint32_t i, uint32_t *at)
{
	const struct profile *p = d->n->p;
	const int64_t from = d->x->time_ns[i - 1], to = d->x->time_ns[i + 1], near = d->x->interval_ns;
	struct nsys_sampled_around a = {.row = ROW_NONE};
	int64_t covered = 0;
	while (*at < d->n_pieces && d->piece[*at].to_ns <= from)
		++*at;
	uint32_t first = ROW_NONE, k = *at;
	for (; k < d->n_pieces && d->piece[k].from_ns < to; k++) {
		const struct nsys_sampled_piece *c = &d->piece[k];
		if (!nsys_sampled_is_kernel(p, c->row) || (first != ROW_NONE && !nsys_sampled_same(p, first, c->row)))
			return (struct nsys_sampled_around){.row = ROW_NONE};
		first = first == ROW_NONE ? c->row : first;
		a.row = a.row == ROW_NONE || c->from_ns <= d->x->time_ns[i] ? c->row : a.row;
		covered += (c->to_ns < to ? c->to_ns : to) - (c->from_ns > from ? c->from_ns : from);
	}
	a.idle = first == ROW_NONE && k && k < d->n_pieces && d->piece[k - 1].to_ns < from - near && d->piece[k].from_ns > to + near;
	a.whole = first != ROW_NONE && k == *at + 1 && covered == to - from;
	if ((double)covered * 100 < (double)(to - from) * NSYS_SAMPLED_COVERED_PCT)
		a.row = ROW_NONE;
	return a;
}

/* ---- whether others use the GPU ---- */

/* The mean share of SMs that were active while no recorded work ran; NaN = too few samples to tell. */
static double nsys_sampled_idle_pct(const struct nsys_sampled *d)
{
	enum { IDLE_LEAST = 10 };
	uint32_t at = 0, n = 0;
	double sum = 0;
	const struct nsys_metrics_track *t = NULL;
	for (uint32_t k = 0; k < d->n_tracks && !t; k++)
		if (sampled_metric_of(profile_str(d->n->p, d->track[k]->name)) == SAMPLED_SM_ACTIVE)
			t = d->track[k];
	for (uint32_t i = 1; t && i + 1 < t->n; i++) {
		if (!nsys_metrics_sound(d->x, i) || !nsys_sampled_look(d, i, &at).idle)
			continue;
		sum += t->value[i];
		n++;
	}
	return n >= IDLE_LEAST ? sum / n : NAN;
}

/* ---- what kernels get ---- */

enum { NSYS_SAMPLED_PAIRS = 512 };

static unsigned nsys_sampled_put(struct nsys *n, struct arg_pair *pair, unsigned k, uint32_t key, double v)
{
	struct buf b = {0};
	if (k == NSYS_SAMPLED_PAIRS) {
		diag_add(&n->p->diags, "too-many-args", DIAG_LOSS, -1, "a kernel has more than %d arguments with the means of its samples: the rest is left out", NSYS_SAMPLED_PAIRS);
		return k;
	}
	buf_printf(&b, "%.15g", round(v * 100) / 100);
	pair[k] = (struct arg_pair){key, intern_put(&n->p->strings, b.p, b.n), 0};
	buf_release(&b);
	return k + 1;
}

/* Sums over samples. */
struct nsys_sampled_sums {
	uint32_t n;
	int64_t ns;
	double *weighted;        /* by track: value x ns; NaN where the track lacks a sample */
};

/* The call that samples are now added to. */
struct nsys_sampled_run {
	uint32_t row;            /* ROW_NONE = none yet */
	struct nsys_sampled_sums call, all; /* samples that lie in this call alone; these, and samples that lie in its neighbours, too */
};

static void nsys_sampled_add(const struct nsys_sampled *d, struct nsys_sampled_sums *s, uint32_t i)
{
	const int64_t ns = d->x->time_ns[i] - d->x->time_ns[i - 1];
	s->n++;
	s->ns += ns;
	for (uint32_t k = 0; k < d->n_tracks; k++)
		s->weighted[k] += i < d->track[k]->n ? d->track[k]->value[i] * (double)ns : NAN;
}

static void nsys_sampled_clear(const struct nsys_sampled *d, struct nsys_sampled_sums *s)
{
	memset(s->weighted, 0, d->n_tracks * sizeof *s->weighted);
	s->n = 0;
	s->ns = 0;
}

static unsigned nsys_sampled_put_first(struct nsys *n, struct arg_pair *pair, unsigned k, const struct nsys_sampled_sums *s, struct str of)
{
	struct intern *strings = &n->p->strings;
	k = nsys_sampled_put(n, pair, k, intern_str(strings, str_from(arg_key_text[ARG_SAMPLES])), s->n);
	k = nsys_sampled_put(n, pair, k, intern_str(strings, str_from(arg_key_text[ARG_SAMPLED_NS])), (double)s->ns);
	pair[k] = (struct arg_pair){intern_str(strings, str_from(arg_key_text[ARG_SAMPLES_OF])), intern_str(strings, of), 1};
	return k + 1;
}

/* Gives the call its means. It may have means of another series already: then these are added if both are of the call alone, or both of several calls. */
static void nsys_sampled_give(const struct nsys_sampled *d, struct nsys_sampled_run *r)
{
	struct nsys *n = d->n;
	struct profile *p = n->p;
	struct arg_pair pair[NSYS_SAMPLED_PAIRS];
	const bool call = r->call.n >= SAMPLED_CALL_LEAST;
	const struct nsys_sampled_sums *s = call ? &r->call : &r->all;
	const struct str of = call ? STR(SAMPLED_CALL) : STR(SAMPLED_NAME);
	const uint32_t row = r->row, set = row == ROW_NONE ? 0 : p->gpu_op.args[row], end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	struct str before;
	unsigned k = 0;
	r->row = ROW_NONE;
	if (row == ROW_NONE || !s->n)
		return;
	const uint32_t first = set ? p->arg_set.first[set] : end, most = end - first < NSYS_SAMPLED_PAIRS / 2 ? end : first + NSYS_SAMPLED_PAIRS / 2;
	if (most < end)
		diag_add_n(&p->diags, "too-many-args", DIAG_LOSS, end - most, -1, "an argument of a kernel is beyond the first %d, and is left out for the means of its samples", NSYS_SAMPLED_PAIRS / 2);
	for (uint32_t a = first; a < most; a++)
		pair[k++] = (struct arg_pair){p->arg.key[a], p->arg.value[a], p->arg.is_string[a]};
	if (!profile_arg_named(p, set, str_from(arg_key_text[ARG_SAMPLES_OF]), &before))
		k = nsys_sampled_put_first(n, pair, k, s, of);
	else if (!str_eq(before, of))
		return;
	for (uint32_t i = 0; i < d->n_tracks; i++)
		if (!isnan(s->weighted[i]))
			k = nsys_sampled_put(n, pair, k, d->track[i]->name, s->weighted[i] / (double)s->ns);
	p->gpu_op.args[row] = build_args(&n->b, pair, k);
}

/* Between two samples of a call there may be samples during which other work ran, too: they are passed over, and the call goes on. */
static void nsys_sampled_join_series(struct nsys_sampled *d)
{
	struct nsys_sampled_run r = {ROW_NONE, {.weighted = NEW_ARRAY(d->n_tracks, double)}, {.weighted = NEW_ARRAY(d->n_tracks, double)}};
	uint32_t at = 0;
	for (uint32_t i = 1; i + 1 < d->x->n; i++) {
		const struct nsys_sampled_around a = nsys_metrics_sound(d->x, i) ? nsys_sampled_look(d, i, &at) : (struct nsys_sampled_around){.row = ROW_NONE};
		if (a.row == ROW_NONE)
			continue;
		if (a.row != r.row) {
			nsys_sampled_give(d, &r);
			nsys_sampled_clear(d, &r.call);
			nsys_sampled_clear(d, &r.all);
			r.row = a.row;
		}
		nsys_sampled_add(d, &r.all, i);
		if (a.whole)
			nsys_sampled_add(d, &r.call, i);
	}
	nsys_sampled_give(d, &r);
	mem_free(r.call.weighted);
	mem_free(r.all.weighted);
}

static void nsys_sampled_why_not(struct nsys *n, int32_t device, struct str why)
{
	struct buf key = {0};
	buf_printf(&key, "%s%d", SAMPLED_WHY_NOT, device);
	const uint32_t id = intern_put(&n->p->strings, key.p, key.n);
	buf_release(&key);
	if (ANY_WHERE(i, 0, n->p->meta.rows.n, n->p->meta.key[i] == id))
		return;
	build_meta(&n->b, id, intern_str(&n->p->strings, why), true);
	diag_add(&n->p->diags, "gpu-metrics-of-no-kernel", DIAG_NOTE, -1, "no kernel of GPU %d gets the samples of the GPU: " STR_FMT, device, STR_ARG(why));
}

static void nsys_sampled_series(struct nsys_sampled *d, uint32_t series)
{
	enum { FOREIGN_PCT = 5 };
	struct nsys *n = d->n;
	d->x = &d->m->series[series];
	d->n_tracks = 0;
	for (uint32_t i = 0; i < d->m->n_tracks; i++)
		if (d->m->track[i].series == series && d->m->track[i].n)
			d->track[d->n_tracks++] = &d->m->track[i];
	const double idle = nsys_sampled_idle_pct(d);
	if (idle >= FOREIGN_PCT) {
		struct buf why = {0};
		buf_printf(&why, "%.0f %% of the SMs were active while no recorded work ran: another program used the GPU, or work was not recorded", idle);
		nsys_sampled_why_not(n, d->device, buf_view(&why));
		buf_release(&why);
		return;
	}
	nsys_sampled_join_series(d);
}

void nsys_sampled_join(struct nsys *n, const struct nsys_metrics *m)
{
	enum { DEVICES = 256 };
	struct nsys_sampled d = {.n = n, .m = m, .track = NEW_ARRAY_RAW(m->n_tracks, const struct nsys_metrics_track *)};
	for (d.device = 0; d.device < DEVICES; d.device++) {
		uint32_t first = 0;
		while (first < m->n_series && m->series[first].device != d.device)
			first++;
		if (first == m->n_series)
			continue;
		d.n_pieces = 0;
		nsys_sampled_find_pieces(&d);
		if (d.n_pieces && n->unmapped && n->p->device.rows.n != 1) {
			nsys_sampled_why_not(n, d.device, STR("the file does not tell which GPU the program's device 0 is (TARGET_INFO_CUDA_DEVICE, of nsys 2025.1 and later)"));
			continue;
		}
		for (uint32_t i = first; i < m->n_series && d.n_pieces; i++)
			if (m->series[i].device == d.device && m->series[i].n)
				nsys_sampled_series(&d, i);
	}
	mem_free(d.piece);
	mem_free(d.track);
}
