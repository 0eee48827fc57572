/* GPU time per layer of the model: forward, backward, optimizer. */
#include "analysis/costs.h"
#include "analysis/fwdbwd.h"
#include "analysis/layers.h"
#include "analysis/recording.h"
#include "analysis/stacks.h"
#include "base/buf.h"
#include "base/mem.h"
#include "op/kernels.h"
#include "report/window.h"

#include <math.h>

enum grouping { BY_LAYER, BY_TYPE, BY_LINE };

/* What has no layer, by why. */
enum special { NOT_SPECIAL, OPTIMIZER, COLLECTIVES, OUTSIDE, UNATTRIBUTED };
static const char *const special_name[] = {
	[OPTIMIZER] = "(optimizer)", [COLLECTIVES] = "(gradient collectives)", [OUTSIDE] = "(outside layers)",
	[UNATTRIBUTED] = "(unattributed)",
};

struct row {
	uint32_t layer;     /* one of its layers; LAYER_NONE */
	uint64_t calls;
	int64_t ns[DIRECTIONS], total;
	int64_t with_inner; /* layers only */
	int64_t host_forward, host_backward;
	int64_t flops, flops_ns; /* of work whose model knows the FLOPs */
};

struct rows_of {
	const struct profile *p;
	const struct layers *l;
	struct stacks *stacks;
	struct costs *costs;
	const struct window *w;
	enum grouping by;
	struct intern keys; /* a character that tells special rows from others, and the name; row i has id i + 1 */
	struct row *v;
	uint32_t n, cap;
	uint32_t *of_layer; /* layer -> row */
	int64_t all, part[DIRECTIONS], special[UNATTRIBUTED + 1], flops_ns;
};

static uint32_t row_at(struct rows_of *r, char kind, struct str name, uint32_t layer)
{
	struct buf key = {0};
	buf_char(&key, kind);
	buf_str(&key, name);
	uint32_t at = intern_put(&r->keys, key.p, key.n) - 1;
	buf_release(&key);
	if (at >= r->n) {
		MEM_GROW(r->v, r->cap, at + 1);
		r->v[at] = (struct row){.layer = layer};
		r->n = at + 1;
	}
	return at;
}

static void make_layer_rows(struct rows_of *r)
{
	r->of_layer = NEW_ARRAY_RAW(r->l->n, uint32_t);
	for (uint32_t i = 0; i < r->l->n; i++) {
		const struct layer *x = &r->l->v[i];
		bool by_type = r->by == BY_TYPE && x->type;
		r->of_layer[i] = row_at(r, 'l', intern_get(&r->l->names, by_type ? x->type : x->name), i);
	}
}

static struct row *layer_row(struct rows_of *r, uint32_t layer) { return &r->v[r->of_layer[layer]]; }

/* --- devices ---------------------------------------------------------------------------------------------------- */

static enum special special_of(const struct rows_of *r, uint32_t gpu)
{
	const struct gpu_ops *g = &r->p->gpu_op;
	enum direction d = r->l->dir->gpu[gpu];
	if (g->op[gpu] == ROW_NONE && g->call[gpu] == ROW_NONE)
		return UNATTRIBUTED;
	if (d == DIR_OPTIMIZER)
		return OPTIMIZER;
	/* By a hook on a gradient, for a bucket of parameters of many layers. */
	if (d == DIR_BACKWARD && r->l->dir->forward[gpu] == ROW_NONE && kernel_is_comm(profile_str(r->p, g->name[gpu])))
		return COLLECTIVES;
	return OUTSIDE;
}

static uint32_t line_row(struct rows_of *r, uint32_t gpu)
{
	uint32_t from = r->p->gpu_op.op[gpu] != ROW_NONE ? r->p->gpu_op.op[gpu] : r->p->gpu_op.call[gpu];
	struct str line = from == ROW_NONE ? (struct str){"", 0} : stacks_user_line(r->stacks, stacks_of(r->stacks, from));
	return line.n ? row_at(r, 'l', line, LAYER_NONE) : UINT32_MAX;
}

static void add_flops(struct rows_of *r, struct row *x, uint32_t gpu)
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

static void add_gpu(struct rows_of *r, uint32_t gpu)
{
	int64_t ns = r->p->gpu_op.dur_ns[gpu];
	enum special special = special_of(r, gpu);
	enum direction d = r->l->dir->gpu[gpu];
	uint32_t layer = special == OUTSIDE ? layers_of_gpu(r->l, r->p, gpu) : LAYER_NONE, at = UINT32_MAX;
	if (r->by == BY_LINE && special == OUTSIDE)
		at = line_row(r, gpu);
	else if (r->by != BY_LINE && layer != LAYER_NONE)
		at = r->of_layer[layer];
	if (at != UINT32_MAX)
		special = NOT_SPECIAL;
	else
		at = row_at(r, 's', r->by == BY_LINE && special == OUTSIDE ? STR("(no line)") : str_from(special_name[special]), LAYER_NONE);
	if (d == DIR_OTHER && layer != LAYER_NONE)
		d = DIR_FORWARD; /* a range of the user's around calls of the runtime itself */
	r->v[at].ns[d] += ns;
	r->v[at].total += ns;
	add_flops(r, &r->v[at], gpu);
	r->part[d] += ns;
	r->special[special] += ns;
	r->all += ns;
	if (r->by != BY_LAYER || special != NOT_SPECIAL)
		return;
	for (uint32_t up = layer; up != LAYER_NONE; up = r->l->v[up].parent)
		layer_row(r, up)->with_inner += ns;
}

/* --- host ------------------------------------------------------------------------------------------------------- */

static void add_forward_host(struct rows_of *r, uint32_t i, uint32_t around)
{
	int64_t ns = r->p->span.dur_ns[i];
	struct row *x = layer_row(r, r->l->of_span[i]);
	x->calls++;
	x->host_forward += ns;
	if (around != ROW_NONE && r->l->of_span[around] != LAYER_NONE)
		layer_row(r, r->l->of_span[around])->host_forward -= ns;
}

/* Backward ranges, each moment once: what is inside another counts for its own layer and not for that one's. */
static void add_backward_host(struct rows_of *r, uint32_t i)
{
	uint32_t up = r->p->span.parent[i], layer = r->l->of_span[i];
	bool inside = up != ROW_NONE && r->l->dir->span[up] == DIR_BACKWARD;
	uint32_t outer = inside ? r->l->of_span[up] : LAYER_NONE;
	if (layer == outer)
		return;
	if (layer != LAYER_NONE)
		layer_row(r, layer)->host_backward += r->p->span.dur_ns[i];
	if (outer != LAYER_NONE)
		layer_row(r, outer)->host_backward -= r->p->span.dur_ns[i];
}

static void add_host(struct rows_of *r)
{
	const struct spans *s = &r->p->span;
	uint32_t *around = NEW_ARRAY_RAW(s->rows.n, uint32_t); /* the innermost call of a layer around */
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t up = s->parent[i];
		bool backward = r->l->dir->span[i] == DIR_BACKWARD;
		around[i] = up == ROW_NONE ? ROW_NONE : r->l->is_call[up] ? up : around[up];
		if (!window_has(r->w, s->start_ns[i]))
			continue;
		if (backward)
			add_backward_host(r, i);
		else if (r->l->is_call[i] && r->l->of_span[i] != LAYER_NONE)
			add_forward_host(r, i, around[i]);
	}
	mem_free(around);
}

/* --- table ------------------------------------------------------------------------------------------------------ */

enum { C_LAYER, C_TYPE, C_CALLS, C_HOST, C_HOST_SHARE, C_TOTAL, C_SHARE, C_FORWARD, C_BACKWARD, C_OPTIMIZER, C_OTHER, C_INNER, C_HOST_FORWARD,
       C_HOST_BACKWARD, C_FLOPS, C_TFLOPS, C_MODELLED, N_COLUMNS };

static const struct column columns[N_COLUMNS] = {
	[C_LAYER] = {"layer", "Layer", "path of the layer; in parentheses what belongs to none", CELL_STR, UNIT_NONE, COLUMN_WIDE | COLUMN_PATH},
	[C_TYPE] = {"type", "Type", "class of the module", CELL_STR, UNIT_NONE, COLUMN_MINOR},
	[C_CALLS] = {"calls", "Calls", "forward passes", CELL_I64, UNIT_COUNT},
	[C_HOST] = {"total_host_ns", "Host total", "time on the host, forward and backward; of layers inside it not", CELL_I64, UNIT_NS, COLUMN_KEY},
	[C_HOST_SHARE] = {"total_host_pct", "Total %", "host total / that of all layers", CELL_F64, UNIT_PERCENT, COLUMN_KEY},
	[C_TOTAL] = {"total_gpu_ns", "GPU total", "device work of all directions; of layers inside it not", CELL_I64, UNIT_NS, COLUMN_KEY},
	[C_SHARE] = {"total_pct", "Total %", "total / all device work", CELL_F64, UNIT_PERCENT, COLUMN_KEY},
	[C_FORWARD] = {"forward_gpu_ns", "Forward", "device work launched by its forward pass", CELL_I64, UNIT_NS, COLUMN_KEY},
	[C_BACKWARD] = {"backward_gpu_ns", "Backward", "device work launched by the backward of its ops", CELL_I64, UNIT_NS, COLUMN_KEY},
	[C_OPTIMIZER] = {"optimizer_gpu_ns", "Optimizer", "device work launched by the optimizer", CELL_I64, UNIT_NS},
	[C_OTHER] = {"other_gpu_ns", "Other", "device work that no op launched: of no direction", CELL_I64, UNIT_NS, COLUMN_DETAIL},
	[C_INNER] = {"with_inner_gpu_ns", "With inner", "total with the layers inside it", CELL_I64, UNIT_NS},
	[C_HOST_FORWARD] = {"forward_host_ns", "Fwd host", "time on the host in the layer's own range, without layers inside it", CELL_I64, UNIT_NS},
	[C_HOST_BACKWARD] = {"backward_host_ns", "Bwd host", "time on the host in the backward of its ops", CELL_I64, UNIT_NS, COLUMN_MINOR},
	[C_FLOPS] = {"flops", "FLOPs", "of the work whose op has a model; empty = of none", CELL_I64, UNIT_FLOPS},
	[C_TFLOPS] = {"tflops_per_s", "TFLOP/s", "FLOPs / time of the work whose op has a model", CELL_F64, UNIT_NONE, COLUMN_KEY, 3},
	[C_MODELLED] = {"modelled_pct", "Model %", "share of its device work whose op has a model that knows the FLOPs", CELL_F64, UNIT_PERCENT, COLUMN_DETAIL},
};

struct shown {
	unsigned at[N_COLUMNS];
	bool device, calls, types, host, inner, flops;
	int64_t all_host;
};

/* Nested ranges of several threads can leave less than nothing. */
static int64_t host_of(const struct row *x)
{
	return (x->host_forward > 0 ? x->host_forward : 0) + (x->host_backward > 0 ? x->host_backward : 0);
}

static void look(const struct rows_of *r, struct shown *s)
{
	s->device = r->p->gpu_op.rows.n > 0;
	for (uint32_t i = 0; i < r->n; i++) {
		s->calls |= r->v[i].calls > 0;
		s->host |= r->v[i].host_backward > 0;
		s->all_host += host_of(&r->v[i]);
		s->flops |= r->v[i].flops_ns > 0;
		s->inner |= r->by == BY_LAYER && r->v[i].with_inner > r->v[i].total;
	}
	for (uint32_t i = 0; i < r->l->n; i++)
		s->types |= r->by == BY_LAYER && r->l->v[i].type;
}

static void add_columns(struct table *t, const struct rows_of *r, struct shown *s)
{
	static const char *const first[][2] = {[BY_LAYER] = {"layer", "Layer"}, [BY_TYPE] = {"type", "Type"}, [BY_LINE] = {"line", "Line"}};
	for (unsigned c = 0; c < N_COLUMNS; c++) {
		struct column col = columns[c];
		bool skip = ((c == C_HOST || c == C_HOST_SHARE) && s->device) || (c == C_TYPE && !s->types) || (c == C_CALLS && !s->calls) ||
		            (c == C_INNER && !s->inner) || (c == C_HOST_BACKWARD && !s->host) || (c == C_HOST_FORWARD && !s->calls) || (c >= C_FLOPS && !s->flops);
		if (c == C_LAYER) {
			col.id = first[r->by][0];
			col.title = first[r->by][1];
		}
		s->at[c] = skip ? UINT32_MAX : table_column(t, &col);
	}
}

static void put(struct table *t, const struct shown *s, unsigned c, int64_t v)
{
	if (s->at[c] != UINT32_MAX)
		table_set_i64(t, s->at[c], v);
}

static void put_flops(struct table *t, const struct shown *s, const struct row *x)
{
	if (!s->flops)
		return;
	if (x->total)
		table_set_f64(t, s->at[C_MODELLED], 100.0 * (double)x->flops_ns / (double)x->total);
	if (!x->flops_ns)
		return;
	table_set_i64(t, s->at[C_FLOPS], x->flops);
	table_set_f64(t, s->at[C_TFLOPS], (double)x->flops / (double)x->flops_ns / 1e3);
}

static void put_row(struct table *t, const struct rows_of *r, const struct shown *s, uint32_t i)
{
	const struct row *x = &r->v[i];
	struct str key = intern_get(&r->keys, i + 1);
	bool special = key.p[0] == 's';
	table_row(t);
	table_set_str_copy(t, s->at[C_LAYER], (struct str){key.p + 1, key.n - 1});
	if (!s->device && s->all_host && !special) {
		put(t, s, C_HOST, host_of(x));
		table_set_f64(t, s->at[C_HOST_SHARE], 100.0 * (double)host_of(x) / (double)s->all_host);
	}
	put(t, s, C_TOTAL, x->total);
	if (r->all)
		table_set_f64(t, s->at[C_SHARE], 100.0 * (double)x->total / (double)r->all);
	put(t, s, C_FORWARD, x->ns[DIR_FORWARD]);
	put(t, s, C_BACKWARD, x->ns[DIR_BACKWARD]);
	put(t, s, C_OPTIMIZER, x->ns[DIR_OPTIMIZER]);
	put(t, s, C_OTHER, x->ns[DIR_OTHER]);
	put_flops(t, s, x);
	if (special)
		return;
	put(t, s, C_CALLS, (int64_t)x->calls);
	put(t, s, C_INNER, x->with_inner);
	put(t, s, C_HOST_FORWARD, x->host_forward > 0 ? x->host_forward : 0);
	put(t, s, C_HOST_BACKWARD, x->host_backward > 0 ? x->host_backward : 0);
	if (s->types && r->l->v[x->layer].type)
		table_set_str_copy(t, s->at[C_TYPE], intern_get(&r->l->names, r->l->v[x->layer].type));
}

static void put_notes(struct table *t, const struct rows_of *r)
{
	static const char *const source[] = {
		[LAYERS_NONE] = NULL, [LAYERS_RANGES] = "layers are the ranges layer:NAME", [LAYERS_MODULES] = "layers are the nn.Modules",
		[LAYERS_MARKERS] = "layers are PyProf's module markers", [LAYERS_STACKS] = "layers are the modules in DLProf's function stacks",
	};
	table_note(t, "device work %lld ns = forward %lld + backward %lld + optimizer %lld + of no op %lld", (long long)r->all,
	           (long long)r->part[DIR_FORWARD], (long long)r->part[DIR_BACKWARD], (long long)r->part[DIR_OPTIMIZER],
	           (long long)r->part[DIR_OTHER]);
	if (r->part[DIR_BACKWARD] && !r->part[DIR_OPTIMIZER])
		table_note(t, "the input marks no optimizer step: what one did, if any ran, counts as forward");
	table_note(t, "device work %lld ns = in %s %lld + optimizer %lld + gradient collectives %lld + outside %lld + unattributed %lld",
	           (long long)r->all, r->by == BY_LINE ? "lines" : "layers", (long long)r->special[NOT_SPECIAL],
	           (long long)r->special[OPTIMIZER], (long long)r->special[COLLECTIVES], (long long)r->special[OUTSIDE],
	           (long long)r->special[UNATTRIBUTED]);
	if (r->by != BY_LINE)
		table_note(t, "%s; each moment of device work counts for the innermost", source[r->l->source]);
	if (r->all)
		table_note(t, "FLOPs are known of %.2f %% of the device work", 100.0 * (double)r->flops_ns / (double)r->all);
	const struct fwdbwd *k = r->l->dir->links;
	if (k->by_sequence || k->by_flow || k->unlinked)
		table_note(t, "backward ops linked to their forward op: %llu by sequence number, %llu by a flow alone; not linked %llu (%llu of them "
		           "fit several threads)", (unsigned long long)k->by_sequence, (unsigned long long)k->by_flow,
		           (unsigned long long)k->unlinked, (unsigned long long)k->ambiguous);
	if (!r->p->gpu_op.rows.n)
		table_note(t, "the trace holds no device work: times are of the host");
}

static bool is_idle(const struct row *x)
{
	return !x->total && !x->with_inner && !x->calls && x->host_forward <= 0 && x->host_backward <= 0;
}

static int build(struct rows_of *r, struct table *out, struct err *e)
{
	struct shown s = {0};
	if (r->by == BY_LINE && !stacks_any(r->stacks))
		return err_set(e, ERR_DATA, "the input holds no call stacks; to record them: %s", recording_how(r->p, RECORD_STACKS));
	if (r->by != BY_LINE && r->l->source == LAYERS_NONE) {
		struct stacks *stacks = stacks_new(r->p);
		bool lines = stacks_any(stacks);
		stacks_free(stacks);
		return err_set(e, ERR_DATA, "the input does not say which layers there are. Mark them: torch.profiler with with_stack=True (nn.Module "
		               "frames), or record_function(\"layer:NAME\"), or torch.cuda.nvtx.range_push(\"layer:NAME\") inside "
		               "torch.autograd.profiler.emit_nvtx(), or PyProf's or DLProf's markers%s",
		               lines ? ". This input has call stacks: --group-by=line divides by line of your program" : "");
	}
	if (r->by != BY_LINE) {
		make_layer_rows(r);
		add_host(r);
	}
	for (uint32_t g = 0; g < r->p->gpu_op.rows.n; g++)
		if (window_has_gpu(r->w, r->p, g))
			add_gpu(r, g);
	look(r, &s);
	add_columns(out, r, &s);
	for (uint32_t i = 0; i < r->n; i++)
		if (!is_idle(&r->v[i]))
			put_row(out, r, &s, i);
	put_notes(out, r);
	return table_sort(out, str_from(s.device ? "total_gpu_ns" : "total_host_ns"), true, e);
}

static const char *const groupings[] = {[BY_LAYER] = "layer", [BY_TYPE] = "type", [BY_LINE] = "line", NULL};

static int layers_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	struct rows_of r = {.p = p, .w = &w};
	if (window_of(p, args, &w, e) < 0)
		return -1;
	for (int i = 0; args->group_by && groupings[i]; i++)
		if (strcmp(args->group_by, groupings[i]) == 0)
			r.by = (enum grouping)i;
	struct layers *l = layers_new(p);
	r.l = l;
	r.costs = costs_new(p, COST_DEFAULT);
	if (r.by == BY_LINE)
		r.stacks = stacks_new(p);
	intern_init(&r.keys);
	int rc = build(&r, out, e);
	intern_release(&r.keys);
	stacks_free(r.stacks);
	costs_free(r.costs);
	layers_free(l);
	mem_free(r.v);
	mem_free(r.of_layer);
	return rc;
}

const struct report report_layers = {
	.name = "layers",
	.title = "GPU time by layer",
	.help = "What each layer of the model costs on the device: its forward pass, its backward pass (each backward op counts for the layer "
	        "of its forward op), and the optimizer, which works on the parameters of all layers at once and has a row of its own. A "
	        "moment counts for the innermost layer only, so that the rows add up to all device work; what no layer launched is shown in "
	        "rows in parentheses. Layers are ranges layer:NAME, else nn.Modules, else PyProf's or DLProf's markers. --group-by=type adds "
	        "up modules of one class, --group-by=line goes by the line of your Python code (needs with_stack=True).",
	.group_by = groupings,
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS,
	.run = layers_run,
};
