/* GPU time per layer of the model: forward, backward, optimizer; of a run without a GPU, time on the host. */
#include "analysis/costs/costs.h"
#include "analysis/names/names.h"
#include "analysis/names/stacks.h"
#include "analysis/recording.h"
#include "analysis/tree/fwdbwd.h"
#include "analysis/tree/layers.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/window.h"
#include "report/parts/compile_regions.h"

#include <math.h>

enum layers_grouping { LAYERS_BY_LAYER, LAYERS_BY_TYPE, LAYERS_BY_LINE };

/* Why work has no layer. */
enum special { NOT_SPECIAL, OPTIMIZER, COLLECTIVES, OUTSIDE, UNATTRIBUTED };
static const char *const special_name[] = {
	[OPTIMIZER] = "(optimizer)", [COLLECTIVES] = "(gradient collectives)", [OUTSIDE] = "(outside layers)",
	[UNATTRIBUTED] = "(unattributed)",
};

struct layers_row {
	uint32_t layer;     /* one of the row's layers; LAYER_NONE: a row in parentheses */
	uint64_t calls;
	int64_t ns[DIRECTIONS], total;
	int64_t with_inner; /* layers only */
	int64_t host[DIRECTIONS]; /* rows in parentheses have host time only where the input has no device work */
	int64_t flops, flops_ns; /* of the work whose FLOPs are known */
};

struct layers_rows_of {
	const struct profile *p;
	const struct layers *l;
	struct stacks *stacks;
	struct costs *costs;
	const struct window *w;
	enum layers_grouping by;
	struct intern keys; /* 's' (a row in parentheses) or 'l', and the row's name; row i has id i + 1 */
	struct layers_row *v;
	uint32_t n, cap;
	uint32_t *of_layer; /* layer -> row */
	int64_t all, part[DIRECTIONS], special[UNATTRIBUTED + 1], flops_ns;
};

static uint32_t layers_row_at(struct layers_rows_of *r, char kind, struct str name, uint32_t layer)
{
	struct buf key = {0};
	buf_char(&key, kind);
	buf_str(&key, name);
	uint32_t at = intern_put(&r->keys, key.p, key.n) - 1;
	buf_release(&key);
	if (at == r->n)
		MEM_PUSH(r->v, r->n, r->cap, (struct layers_row){.layer = layer});
	return at;
}

static void make_layer_rows(struct layers_rows_of *r)
{
	r->of_layer = NEW_ARRAY_RAW(r->l->n, uint32_t);
	for (uint32_t i = 0; i < r->l->n; i++) {
		const struct layer *x = &r->l->v[i];
		bool by_type = r->by == LAYERS_BY_TYPE && x->type;
		r->of_layer[i] = layers_row_at(r, 'l', intern_get(&r->l->names, by_type ? x->type : x->name), i);
	}
}

static struct layers_row *layer_row(struct layers_rows_of *r, uint32_t layer) { return &r->v[r->of_layer[layer]]; }

/* --- devices ---------------------------------------------------------------------------------------------------- */

static enum special special_of(const struct layers_rows_of *r, uint32_t gpu)
{
	const struct gpu_ops *g = &r->p->gpu_op;
	enum direction d = r->l->dir->gpu[gpu];
	if (g->op[gpu] == ROW_NONE && g->call[gpu] == ROW_NONE)
		return UNATTRIBUTED;
	if (d == DIR_OPTIMIZER)
		return OPTIMIZER;
	/* A hook on a gradient launched it, for a bucket of parameters of many layers. */
	if (d == DIR_BACKWARD && r->l->dir->forward[gpu] == ROW_NONE && name_is(r->p, g->name[gpu], NAME_COMM_KERNEL))
		return COLLECTIVES;
	return OUTSIDE;
}

static uint32_t line_row(struct layers_rows_of *r, uint32_t gpu)
{
	uint32_t from = r->p->gpu_op.op[gpu] != ROW_NONE ? r->p->gpu_op.op[gpu] : r->p->gpu_op.call[gpu];
	struct str line = from == ROW_NONE ? (struct str){"", 0} : stacks_user_line(r->stacks, stacks_of(r->stacks, from));
	return line.n ? layers_row_at(r, 'l', line, LAYER_NONE) : UINT32_MAX;
}

static void add_flops(struct layers_rows_of *r, struct layers_row *x, uint32_t gpu)
{
	int64_t flops = costs_flops(r->costs, gpu), sum, ns = r->p->gpu_op.dur_ns[gpu];
	if (r->costs->of_gpu[gpu] == ROW_NONE || r->costs->cost[r->costs->of_gpu[gpu]].flops < 0)
		return;
	if (flops < 0 || __builtin_add_overflow(x->flops, flops, &sum))
		return;
	x->flops = sum;
	x->flops_ns += ns;
	r->flops_ns += ns;
}

static void layers_add_gpu(struct layers_rows_of *r, uint32_t gpu)
{
	int64_t ns = r->p->gpu_op.dur_ns[gpu];
	enum special special = special_of(r, gpu);
	enum direction d = r->l->dir->gpu[gpu];
	uint32_t layer = special == OUTSIDE ? layers_of_gpu(r->l, r->p, gpu) : LAYER_NONE, at = UINT32_MAX;
	if (r->by == LAYERS_BY_LINE && special == OUTSIDE)
		at = line_row(r, gpu);
	else if (r->by != LAYERS_BY_LINE && layer != LAYER_NONE)
		at = r->of_layer[layer];
	if (at != UINT32_MAX)
		special = NOT_SPECIAL;
	else
		at = layers_row_at(r, 's', r->by == LAYERS_BY_LINE && special == OUTSIDE ? STR("(no line)") : str_from(special_name[special]), LAYER_NONE);
	if (d == DIR_OTHER && layer != LAYER_NONE)
		d = DIR_FORWARD; /* calls of the runtime right inside a range of the user */
	r->v[at].ns[d] += ns;
	r->v[at].total += ns;
	add_flops(r, &r->v[at], gpu);
	r->part[d] += ns;
	r->special[special] += ns;
	r->all += ns;
	if (r->by != LAYERS_BY_LAYER || special != NOT_SPECIAL)
		return;
	for (uint32_t up = layer; up != LAYER_NONE; up = r->l->v[up].parent)
		layer_row(r, up)->with_inner += ns;
}

/* --- host ------------------------------------------------------------------------------------------------------- */

/* The row and direction that a moment on the host counts for. */
struct owner {
	uint32_t row;            /* ROW_NONE: it counts for no row; UNSEEN */
	uint8_t direction;
};
enum { UNSEEN = ROW_NONE - 1 }; /* a row in parentheses of a table of device work: these rows show no host time */

struct host {
	struct layers_rows_of *r;
	struct owner *owner;     /* by span */
	int64_t *end;            /* by span: its end, no later than the end of the span around it */
	int64_t *done;           /* by span: until when its time is given away: the end of the last span in it that counts for another row; at first its start */
	uint32_t optimizer, outside;
	bool ranges;             /* layers have ranges: work in none of these is outside all layers */
};

static struct owner layer_or_outside(const struct host *h, uint32_t layer, enum direction d)
{
	return (struct owner){layer == LAYER_NONE ? h->outside : h->r->of_layer[layer], d};
}

/* Which row a span counts for: a layer's own range or a backward op for the layer, an optimizer step for the optimizer, an op in none of these for
 * `outside`. A range that only the user marked counts for no row. */
static struct owner layers_owner_of(const struct host *h, uint32_t i, struct owner around)
{
	const struct layers *l = h->r->l;
	uint32_t up = h->r->p->span.parent[i], layer = l->of_span[i];
	enum direction d = l->dir->span[i];
	if (d == DIR_BACKWARD)
		return layer_or_outside(h, layer, d);
	if (l->is_call[i] && layer != LAYER_NONE)
		return layer_or_outside(h, layer, DIR_FORWARD);
	/* A closure runs the layers again inside the optimizer. */
	if (d == DIR_OPTIMIZER && (up == ROW_NONE || l->dir->span[up] != DIR_OPTIMIZER || around.row == ROW_NONE))
		return (struct owner){h->optimizer, d};
	if (around.row != ROW_NONE || h->r->p->span.kind[i] != SPAN_OP || (h->ranges && layer != LAYER_NONE))
		return around;
	return layer_or_outside(h, layer, DIR_FORWARD);
}

static void add_host_ns(struct layers_rows_of *r, struct owner o, int64_t ns)
{
	if (o.row < UNSEEN)
		r->v[o.row].host[o.direction] += ns;
}

/* Cuts a span to the time that no other span of its thread has, and returns the length: a span that ends after the span around it ends with that span,
 * and a span that begins inside the span before it begins where that one ends. */
static int64_t layers_place_span(struct host *h, uint32_t i)
{
	const struct spans *s = &h->r->p->span;
	uint32_t up = s->parent[i];
	int64_t start = s->start_ns[i], end = start + span_host_ns(h->r->p, i);
	if (up != ROW_NONE) {
		start = start < h->done[up] ? h->done[up] : start;
		end = end > h->end[up] ? h->end[up] : end;
		end = end < start ? start : end;
	}
	h->done[i] = start;
	h->end[i] = end;
	return end - start;
}

/* Counts each moment of a thread once: the time of a span that counts for another row than the span around it is subtracted from that span's row. */
static void add_span_host(struct host *h, uint32_t i)
{
	const struct layers *l = h->r->l;
	uint32_t up = h->r->p->span.parent[i];
	struct owner none = {ROW_NONE, DIR_OTHER}, around = up == ROW_NONE ? none : h->owner[up];
	int64_t ns = layers_place_span(h, i);
	h->owner[i] = none;
	if (!window_has(h->r->w, h->r->p->span.start_ns[i]))
		return;
	struct owner o = h->owner[i] = layers_owner_of(h, i, around);
	if (l->is_call[i] && l->of_span[i] != LAYER_NONE && l->dir->span[i] != DIR_BACKWARD)
		layer_row(h->r, l->of_span[i])->calls++;
	if (o.row == around.row && o.direction == around.direction)
		return;
	if (up != ROW_NONE)
		h->done[up] = h->end[i];
	add_host_ns(h->r, o, ns);
	add_host_ns(h->r, around, -ns);
}

static void layers_add_host(struct layers_rows_of *r)
{
	uint32_t n = r->p->span.rows.n;
	bool device = r->p->gpu_op.rows.n > 0;
	struct host h = {.r = r, .owner = NEW_ARRAY_RAW(n, struct owner), .end = NEW_ARRAY_RAW(n, int64_t), .done = NEW_ARRAY_RAW(n, int64_t)};
	h.optimizer = device ? UNSEEN : layers_row_at(r, 's', str_from(special_name[OPTIMIZER]), LAYER_NONE);
	h.outside = device ? UNSEEN : layers_row_at(r, 's', str_from(special_name[OUTSIDE]), LAYER_NONE);
	for (uint32_t i = 0; i < n; i++)
		h.ranges |= r->l->is_call[i];
	for (uint32_t i = 0; i < n; i++)
		add_span_host(&h, i);
	mem_free(h.owner);
	mem_free(h.end);
	mem_free(h.done);
}

/* --- table ------------------------------------------------------------------------------------------------------ */

enum {
	LAYERS_LAYER, LAYERS_TYPE, LAYERS_CLASS, LAYERS_LINE, LAYERS_CALLS, LAYERS_HOST, LAYERS_HOST_SHARE, LAYERS_TOTAL, LAYERS_SHARE, LAYERS_FORWARD, LAYERS_BACKWARD,
	LAYERS_OPTIMIZER, LAYERS_OTHER, LAYERS_INNER, LAYERS_HOST_FORWARD, LAYERS_HOST_BACKWARD, LAYERS_HOST_OPTIMIZER, LAYERS_FLOPS, LAYERS_TFLOPS, LAYERS_MODELLED,
	LAYERS_COLUMNS
};

#define LAYERS_HEAD(id, title, help) COLUMN(TEXT, id, title, help, .flags = COLUMN_WIDE | COLUMN_PATH)

static const struct section layers_section = {COLUMNS(
	[LAYERS_LAYER] = {LAYERS_HEAD("layer", "Layer", "path of the layer; a name in parentheses: work of no layer"), .by = BY(LAYERS_BY_LAYER)},
	[LAYERS_TYPE] = {COLUMN(TEXT, "type", "Type", "class of the module", .flags = COLUMN_MINOR), .by = BY(LAYERS_BY_LAYER), .when = WHEN_RECORDED},
	[LAYERS_CLASS] = {LAYERS_HEAD("type", "Type", "class of the modules; a name in parentheses: work of no layer"), .by = BY(LAYERS_BY_TYPE)},
	[LAYERS_LINE] = {LAYERS_HEAD("line", "Line", "line of Python that launched the work; a name in parentheses: work of no line"), .by = BY(LAYERS_BY_LINE)},
	[LAYERS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "forward passes"), .not_by = BY(LAYERS_BY_LINE), .when = WHEN_RECORDED},
	[LAYERS_HOST] = {COLUMN(NS, "total_host_ns", "Host total", "time on the host, of all directions; of layers inside it not", .flags = COLUMN_ANSWER),
	                        .not_by = BY(LAYERS_BY_LINE), .when = WHEN_NO_DEVICE},
	[LAYERS_HOST_SHARE] = {COLUMN(PERCENT, "total_host_pct", "Total %", "host total / that of all rows", .flags = COLUMN_ANSWER), .not_by = BY(LAYERS_BY_LINE),
	                              .when = WHEN_NO_DEVICE},
	[LAYERS_TOTAL] = {COLUMN(NS, "total_gpu_ns", "GPU total", "device work of all directions; of layers inside it not", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[LAYERS_SHARE] = {COLUMN(PERCENT, "total_pct", "Total %", "total / all device work", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[LAYERS_FORWARD] = {COLUMN(NS, "forward_gpu_ns", "Forward", "device work launched by its forward pass", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[LAYERS_BACKWARD] = {COLUMN(NS, "backward_gpu_ns", "Backward", "device work launched by the backward of its ops", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[LAYERS_OPTIMIZER] = {COLUMN(NS, "optimizer_gpu_ns", "Optimizer", "device work launched by the optimizer"), .when = WHEN_DEVICE},
	[LAYERS_OTHER] = {COLUMN(NS, "other_gpu_ns", "Other", "device work that no op launched: of no direction", .flags = COLUMN_DETAIL), .when = WHEN_DEVICE},
	[LAYERS_INNER] = {COLUMN(NS, "with_inner_gpu_ns", "With inner", "total with the layers inside it"), .by = BY(LAYERS_BY_LAYER),
	                         .when = WHEN_DEVICE | WHEN_RECORDED},
	[LAYERS_HOST_FORWARD] = {COLUMN(NS, "forward_host_ns", "Fwd host", "time on the host in the layer's own range, without what is of other rows or directions "
	                                "inside it; outside layers, in ops"), .not_by = BY(LAYERS_BY_LINE), .when = WHEN_RECORDED},
	[LAYERS_HOST_BACKWARD] = {COLUMN(NS, "backward_host_ns", "Bwd host", "time on the host in the backward of its ops", .flags = COLUMN_MINOR),
	                                 .not_by = BY(LAYERS_BY_LINE), .when = WHEN_RECORDED},
	[LAYERS_HOST_OPTIMIZER] = {COLUMN(NS, "optimizer_host_ns", "Opt host", "time on the host in ranges of the optimizer, without layers that it runs again",
	                                  .flags = COLUMN_MINOR), .not_by = BY(LAYERS_BY_LINE), .when = WHEN_RECORDED},
	[LAYERS_FLOPS] = {COLUMN(FLOPS, "flops", "FLOPs", "of the work whose op has a model; empty = of none"), .when = WHEN_DEVICE | WHEN_RECORDED},
	[LAYERS_TFLOPS] = {COLUMN(REAL, "tflops_per_s", "TFLOP/s", "FLOPs / time of the work whose op has a model", .flags = COLUMN_ANSWER, .digits = 3),
	                          .when = WHEN_DEVICE | WHEN_RECORDED},
	[LAYERS_MODELLED] = {COLUMN(PERCENT, "modelled_pct", "Model %", "share of its device work whose op has a model that knows the FLOPs", .flags = COLUMN_DETAIL),
	                            .when = WHEN_DEVICE | WHEN_RECORDED},
)};

struct layers_shown {
	bool device, calls, types, host[DIRECTIONS], inner, flops;
	int64_t all_host;
};

static int64_t host_of(const struct layers_row *x) { return x->host[DIR_FORWARD] + x->host[DIR_BACKWARD] + x->host[DIR_OPTIMIZER]; }

static void layers_look(const struct layers_rows_of *r, struct layers_shown *s)
{
	s->device = r->p->gpu_op.rows.n > 0;
	for (uint32_t i = 0; i < r->n; i++) {
		s->calls |= r->v[i].calls > 0;
		for (int d = 0; d < DIRECTIONS; d++)
			s->host[d] |= r->v[i].host[d] > 0;
		s->all_host += host_of(&r->v[i]);
		s->flops |= r->v[i].flops_ns > 0;
		s->inner |= r->by == LAYERS_BY_LAYER && r->v[i].with_inner > r->v[i].total;
	}
	for (uint32_t i = 0; i < r->l->n; i++)
		s->types |= r->by == LAYERS_BY_LAYER && r->l->v[i].type;
}

static void layers_start(struct table *t, const struct layers_shown *s, const struct report_args *args)
{
	const bool lacks[LAYERS_COLUMNS] = {
		[LAYERS_TYPE] = !s->types, [LAYERS_CALLS] = !s->calls, [LAYERS_INNER] = !s->inner, [LAYERS_HOST_FORWARD] = !s->calls && !s->host[DIR_FORWARD],
		[LAYERS_HOST_BACKWARD] = !s->host[DIR_BACKWARD], [LAYERS_HOST_OPTIMIZER] = !s->host[DIR_OPTIMIZER], [LAYERS_FLOPS] = !s->flops,
		[LAYERS_TFLOPS] = !s->flops, [LAYERS_MODELLED] = !s->flops,
	};
	section_start(&layers_section, args, (s->device ? WHEN_DEVICE : WHEN_NO_DEVICE) | WHEN_RECORDED, t);
	for (unsigned c = 0; c < LAYERS_COLUMNS; c++)
		if (lacks[c])
			section_leave_out(&layers_section, c, t);
	for (unsigned c = LAYERS_HOST_FORWARD; c <= LAYERS_HOST_OPTIMIZER && !s->device; c++)
		t->data[c].col.flags = COLUMN_ANSWER;
}

static void put_flops(struct table *t, const struct layers_row *x)
{
	if (x->total)
		table_set_f64(t, LAYERS_MODELLED, 100.0 * (double)x->flops_ns / (double)x->total);
	if (!x->flops_ns)
		return;
	table_set_i64(t, LAYERS_FLOPS, x->flops);
	table_set_f64(t, LAYERS_TFLOPS, (double)x->flops / (double)x->flops_ns / 1e3);
}

static void put_host(struct table *t, const struct layers_shown *s, const struct layers_row *x, bool special)
{
	if (special && s->device)
		return;
	table_set_i64(t, LAYERS_HOST, host_of(x));
	if (s->all_host)
		table_set_f64(t, LAYERS_HOST_SHARE, 100.0 * (double)host_of(x) / (double)s->all_host);
	table_set_i64(t, LAYERS_HOST_FORWARD, x->host[DIR_FORWARD]);
	table_set_i64(t, LAYERS_HOST_BACKWARD, x->host[DIR_BACKWARD]);
	table_set_i64(t, LAYERS_HOST_OPTIMIZER, x->host[DIR_OPTIMIZER]);
}

static void layers_put_row(struct table *t, const struct layers_rows_of *r, const struct layers_shown *s, uint32_t i)
{
	const struct layers_row *x = &r->v[i];
	struct str key = intern_get(&r->keys, i + 1);
	bool special = key.p[0] == 's';
	table_row(t);
	table_set_str_copy(t, r->by == LAYERS_BY_LAYER ? LAYERS_LAYER : r->by == LAYERS_BY_TYPE ? LAYERS_CLASS : LAYERS_LINE, (struct str){key.p + 1, key.n - 1});
	table_set_i64(t, LAYERS_TOTAL, x->total);
	if (r->all)
		table_set_f64(t, LAYERS_SHARE, 100.0 * (double)x->total / (double)r->all);
	table_set_i64(t, LAYERS_FORWARD, x->ns[DIR_FORWARD]);
	table_set_i64(t, LAYERS_BACKWARD, x->ns[DIR_BACKWARD]);
	table_set_i64(t, LAYERS_OPTIMIZER, x->ns[DIR_OPTIMIZER]);
	table_set_i64(t, LAYERS_OTHER, x->ns[DIR_OTHER]);
	put_flops(t, x);
	put_host(t, s, x, special);
	if (special)
		return;
	table_set_i64(t, LAYERS_CALLS, (int64_t)x->calls);
	table_set_i64(t, LAYERS_INNER, x->with_inner);
	if (s->types && r->l->v[x->layer].type)
		table_set_str_copy(t, LAYERS_TYPE, intern_get(&r->l->names, r->l->v[x->layer].type));
}

static void note_device(struct table *t, const struct layers_rows_of *r)
{
	table_note(t, "device work %lld ns = forward %lld + backward %lld + optimizer %lld + of no op %lld", (long long)r->all,
	           (long long)r->part[DIR_FORWARD], (long long)r->part[DIR_BACKWARD], (long long)r->part[DIR_OPTIMIZER],
	           (long long)r->part[DIR_OTHER]);
	if (r->part[DIR_BACKWARD] && !r->part[DIR_OPTIMIZER])
		table_warn(t, "the input marks no optimizer step: what one did, if any ran, counts as forward");
	table_note(t, "device work %lld ns = in %s %lld + optimizer %lld + gradient collectives %lld + outside %lld + unattributed %lld",
	           (long long)r->all, r->by == LAYERS_BY_LINE ? "lines" : "layers", (long long)r->special[NOT_SPECIAL],
	           (long long)r->special[OPTIMIZER], (long long)r->special[COLLECTIVES], (long long)r->special[OUTSIDE],
	           (long long)r->special[UNATTRIBUTED]);
}

static void note_host(struct table *t, const struct layers_rows_of *r)
{
	int64_t part[DIRECTIONS] = {0}, in_layers = 0, all = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		for (int d = 0; d < DIRECTIONS; d++)
			part[d] += r->v[i].host[d];
		all += host_of(&r->v[i]);
		in_layers += r->v[i].layer == LAYER_NONE ? 0 : host_of(&r->v[i]);
	}
	table_warn(t, "the trace holds no device work: times are of the host");
	table_note(t, "host time of layers, ops and optimizers %lld ns = forward %lld + backward %lld + optimizer %lld", (long long)all,
	           (long long)part[DIR_FORWARD], (long long)part[DIR_BACKWARD], (long long)part[DIR_OPTIMIZER]);
	table_note(t, "host time of layers, ops and optimizers %lld ns = in layers %lld + optimizer %lld + outside %lld", (long long)all,
	           (long long)in_layers, (long long)part[DIR_OPTIMIZER], (long long)(all - in_layers - part[DIR_OPTIMIZER]));
	if (part[DIR_BACKWARD] && !part[DIR_OPTIMIZER])
		table_warn(t, "the input marks no optimizer step: what one did, if any ran, counts as forward");
}

/* torch.compile makes one function of all modules in a graph. */
static void layers_note_compiled(struct table *t, const struct layers_rows_of *r)
{
	const struct profile *p = r->p;
	struct compile_regions c;
	int64_t ns = 0;
	if (!compile_regions_any(p))
		return;
	compile_regions_find(p, &c);
	for (uint32_t g = 0; g < p->gpu_op.rows.n && c.n; g++) {
		const uint32_t by = p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
		if (by != ROW_NONE && c.in_graph[by] && window_has_gpu(r->w, p, g))
			ns += p->gpu_op.dur_ns[g];
	}
	compile_regions_release(&c);
	if (ns)
		table_note(t, "%.2f %% of the device work was launched by graphs of torch.compile, in which no module is recorded: it counts for the layer around the graph",
		           percent((double)ns, (double)r->all));
}

static void layers_put_notes(struct table *t, const struct layers_rows_of *r, bool device)
{
	static const char *const source[] = {
		[LAYERS_NONE] = NULL, [LAYERS_RANGES] = "layers are the ranges layer:NAME", [LAYERS_MODULES] = "layers are the nn.Modules",
		[LAYERS_MARKERS] = "layers are PyProf's module markers", [LAYERS_STACKS] = "layers are the modules in DLProf's function stacks",
	};
	if (device)
		note_device(t, r);
	else
		note_host(t, r);
	if (r->by != LAYERS_BY_LINE)
		table_note(t, "%s; each moment of %s counts for the innermost", source[r->l->source], device ? "device work" : "a thread of the host");
	if (r->by != LAYERS_BY_LINE && device)
		layers_note_compiled(t, r);
	if (r->all)
		table_note(t, "FLOPs are known of %.2f %% of the device work", 100.0 * (double)r->flops_ns / (double)r->all);
	const struct fwdbwd *k = r->l->dir->links;
	if (k->by_sequence || k->by_flow || k->unlinked)
		table_note(t, "backward ops linked to their forward op: %llu by sequence number, %llu by a flow alone; not linked %llu (%llu of them "
		           "fit several threads)", (unsigned long long)k->by_sequence, (unsigned long long)k->by_flow,
		           (unsigned long long)k->unlinked, (unsigned long long)k->ambiguous);
}

static bool layers_is_idle(const struct layers_row *x)
{
	return !x->total && !x->with_inner && !x->calls && !host_of(x);
}

/* What the input lacks for this grouping, and how to have it. */
static int layers_check(const struct layers_rows_of *r, struct err *e)
{
	bool device = r->p->gpu_op.rows.n > 0;
	if (r->by == LAYERS_BY_LINE && !stacks_any(r->stacks))
		return err_set(e, ERR_DATA, "the input holds no call stacks; to record them: %s", recording_how(r->p, RECORD_STACKS));
	if (r->by == LAYERS_BY_LINE && !device)
		return err_set(e, ERR_DATA, "the input holds no device work, which layers --group-by=line divides; the host's time by line of Python, forward and backward: "
		               "report operators --group-by=line");
	if (r->by == LAYERS_BY_LINE || r->l->source != LAYERS_NONE)
		return 0;
	struct stacks *stacks = stacks_new(r->p);
	bool lines = stacks_any(stacks);
	stacks_free(stacks);
	return err_set(e, ERR_DATA, "the input does not say which layers there are; to record them: %s%s", recording_how(r->p, RECORD_LAYERS),
	               !lines ? "" : device ? ". This input has call stacks: --group-by=line divides by line of Python"
	                                    : ". This input has call stacks: report operators --group-by=line divides by line of Python");
}

static int layers_build(struct layers_rows_of *r, const struct report_args *args, struct table *out, struct err *e)
{
	static const char *const titles[][2] = {
		[LAYERS_BY_LAYER] = {"Host time by layer", "GPU time by layer"}, [LAYERS_BY_TYPE] = {"Host time by type of layer", "GPU time by type of layer"},
		[LAYERS_BY_LINE] = {"Host time by line of Python", "GPU time by line of Python"},
	};
	struct layers_shown s = {0};
	if (layers_check(r, e) < 0)
		return -1;
	if (r->by != LAYERS_BY_LINE) {
		make_layer_rows(r);
		layers_add_host(r);
	}
	for (uint32_t g = 0; g < r->p->gpu_op.rows.n; g++)
		if (window_has_gpu(r->w, r->p, g))
			layers_add_gpu(r, g);
	layers_look(r, &s);
	out->title = titles[r->by][s.device];
	layers_start(out, &s, args);
	for (uint32_t i = 0; i < r->n; i++)
		if (!layers_is_idle(&r->v[i]))
			layers_put_row(out, r, &s, i);
	layers_put_notes(out, r, s.device);
	return table_sort(out, str_from(s.device ? "total_gpu_ns" : "total_host_ns"), true, e);
}

static int layers_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	struct layers_rows_of r = {.p = p, .w = &w, .by = (enum layers_grouping)args->variant->by};
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct layers *l = layers_new(p);
	r.l = l;
	r.costs = costs_new(p, &cost_own);
	if (r.by == LAYERS_BY_LINE)
		r.stacks = stacks_new(p);
	intern_init(&r.keys);
	int rc = layers_build(&r, args, out, e);
	intern_release(&r.keys);
	stacks_free(r.stacks);
	costs_free(r.costs);
	layers_free(l);
	mem_free(r.v);
	mem_free(r.of_layer);
	return rc;
}

static const struct report_variant layers_variants[] = {
	{.group_by = "layer", .by = LAYERS_BY_LAYER},
	{.group_by = "type", .by = LAYERS_BY_TYPE},
	{.group_by = "line", .by = LAYERS_BY_LINE},
	{0},
};

const struct report report_layers = {
	.name = "layers",
	.title = "Time by layer",
	.asks = ASKS_PART,
	.also = "layer slowest-layer",
	.help = "What each layer of the model costs on the device: its forward pass, its backward pass (each backward op counts for the layer "
	        "of its forward op), and the optimizer, which works on the parameters of all layers at once and has a row of its own. A "
	        "moment counts for the innermost layer only, so that the rows add up to all device work; what no layer launched is shown in "
	        "rows in parentheses. Of a run without device work, the same of the host's time in layers, ops and the optimizer. "
	        "Layers are ranges layer:NAME, else nn.Modules, else PyProf's or DLProf's markers. --group-by=type adds "
	        "up modules of one class, --group-by=line goes by the line of your Python code (needs call stacks and device work; for the host's time, report "
	        "operators --group-by=line).",
	.variants = layers_variants,
	.sections = (const struct section *const[]){&layers_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = layers_run,
};
