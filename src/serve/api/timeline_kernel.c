/* What is known of a kernel beyond its row: op, module, shapes, work and rate, occupancy, launch. */
#include "analysis/costs/tc_used.h"
#include "analysis/time/bounds.h"
#include "analysis/tree/modules.h"
#include "gpu/occupancy.h"
#include "query/report.h"
#include "report/parts/launch_limit.h"
#include "serve/api/timeline_times.h"

struct kernel {
	const struct profile *p;
	struct costs *costs;
	struct bounds *bounds;
	uint32_t g;              /* row of gpu_op */
	struct buf *b;
};

static void put_word(struct kernel *x, const char *name, struct str v)
{
	if (!v.n)
		return;
	buf_char(x->b, ',');
	json_put_text(x->b, name, v);
}

static void serve_timeline_kernel_put_whole(struct kernel *x, const char *name, int64_t v)
{
	buf_char(x->b, ',');
	json_put_number(x->b, name, v);
}

static void put_real(struct kernel *x, const char *name, double v)
{
	if (isfinite(v))
		buf_printf(x->b, ",\"%s\":%.6g", name, v);
}

/* The modules around the op, or around the forward op of a backward one. */
static void put_module(struct kernel *x, uint32_t op)
{
	struct modules *m = modules_new(x->p, &modules_own, NULL);
	uint32_t node = m->place ? module_tree_live(&m->tree, m->place[op]) : MODULE_NONE;
	struct buf path = {0};
	if (node != MODULE_NONE)
		module_tree_path(&m->tree, node, &path);
	put_word(x, "module", buf_view(&path));
	buf_release(&path);
	modules_free(m);
}

/* FLOPs and bytes that are counted at it, and their rates; of a GPU that is known in percent of its peaks. */
static void put_work(struct kernel *x, const struct cost *m)
{
	int64_t flops = costs_flops(x->costs, x->g), bytes = costs_bytes(x->costs, x->g);
	double ns = (double)x->p->gpu_op.dur_ns[x->g];
	struct bound k = bounds_of(x->bounds, m, flops, bytes, x->g, BOUND_AS_RUN);
	if (!x->costs->parts[x->g]) {
		buf_cstr(x->b, ",\"counted\":false");
		return;
	}
	if (flops > 0) {
		serve_timeline_kernel_put_whole(x, "flops", flops);
		put_real(x, "tflops_per_s", (double)flops / ns / 1e3);
		put_real(x, "peak_pct", k.peak_flops > 0 ? 100 * (double)flops / ns * 1e9 / k.peak_flops : NAN);
		put_real(x, "peak_tflops_per_s", k.peak_flops > 0 ? k.peak_flops / 1e12 : NAN);
		put_word(x, "peak", str_from(k.peak_flops > 0 ? k.peak_name : ""));
	}
	if (bytes > 0) {
		serve_timeline_kernel_put_whole(x, "bytes", bytes);
		put_real(x, "gb_per_s", (double)bytes / ns);
		put_real(x, "bandwidth_pct", gpu_peak_bytes(k.gpu) > 0 ? 100 * (double)bytes / ns * 1e9 / gpu_peak_bytes(k.gpu) : NAN);
	}
	put_word(x, "gpu", str_from(k.gpu ? k.gpu->name : ""));
}

static void put_model(struct kernel *x)
{
	uint32_t at = x->costs->of_gpu[x->g], op = x->costs->op[x->g];
	if (op != ROW_NONE) {
		put_word(x, "op", profile_str(x->p, x->p->span.name[op]));
		put_module(x, op);
	}
	if (at == ROW_NONE)
		return;
	const struct cost *m = &x->costs->cost[at];
	enum cost_direction d;
	struct op_facts f = costs_facts(x->costs, x->p, at, &d);
	put_word(x, "model", f.name);
	put_word(x, "direction", d == COST_BACKWARD ? STR("backward") : STR("forward"));
	put_word(x, "shapes", f.dims);
	put_word(x, "types", f.types);
	put_word(x, "parameters", m->params);
	put_word(x, "why", m->why);
	put_work(x, m);
}

static void put_occupancy(struct kernel *x)
{
	uint32_t launch = x->p->gpu_op.launch[x->g];
	struct occupancy o;
	char text[LAUNCH_LIMIT_TEXT];
	if (launch == ROW_NONE)
		return;
	double blocks = x->p->launch.blocks_per_sm[launch], achieved = x->p->launch.occupancy_pct[launch];
	/* Kineto states whole percents, and 0 where it did not compute them. */
	put_real(x, "achieved_occupancy_pct", achieved > 0 ? achieved : occupancy_estimate_pct(x->p, launch, blocks));
	put_real(x, "blocks_per_sm", blocks);
	if (occupancy_of_launch(x->p, launch, &o) != OCCUPANCY_KNOWN)
		return;
	put_real(x, "occupancy_pct", o.pct);
	serve_timeline_kernel_put_whole(x, "blocks_fit_per_sm", o.blocks);
	put_word(x, "limited_by", (struct str){text, launch_limit_text(&o, text)});
}

static void serve_timeline_kernel_put(struct kernel *x)
{
	const struct gpu_ops *v = &x->p->gpu_op;
	bool kernel = v->kind[x->g] == GPU_KERNEL;
	buf_char(x->b, '{');
	json_put_text(x->b, "class", str_from(kernel ? kernel_class_name[gpu_kernel(x->p, x->g)->class] : gpu_kind_name[v->kind[x->g]]));
	if (kernel)
		put_word(x, "tensor_cores", str_from(tri_name[gpu_tensor_core_or_listed(x->p, x->g)]));
	put_model(x);
	if (kernel)
		put_occupancy(x);
	buf_cstr(x->b, "}\n");
}

static int serve_timeline_kernel_run(const struct request *r, struct response *out, struct err *e)
{
	struct library_turn turn;
	int64_t row;
	const struct profile *p = r->entry->profile;
	uint32_t n = p->gpu_op.rows.n;
	if (request_number(r, "row", 0, (int64_t)n - 1, 0, &row, e) < 0)
		return -1;
	if (!n)
		return err_set(e, ERR_DATA, "this input has no device work");
	if (library_turn_begin(&turn, r->entry, e) < 0)
		return -1;
	int rc = report_part(r->entry->profile, &(struct report_args){0}, PASS_NEST | PASS_CORRELATE, e) ? 0 : -1;
	if (rc == 0) {
		struct kernel x = {.p = p, .costs = costs_new(p, &cost_own), .bounds = bounds_new(p), .g = (uint32_t)row, .b = &out->body};
		serve_timeline_kernel_put(&x);
		bounds_free(x.bounds);
		costs_free(x.costs);
	}
	library_turn_end(&turn);
	return rc;
}

static const struct endpoint_param params[] = {{"row", "which, as tiles give it", NULL, true}, {0}};

const struct endpoint endpoint_timeline_kernel = {
	.path = "/api/timeline/kernel",
	.help = "what is known of a piece of device work: class, Tensor Cores, op, module, shapes, FLOPs and bytes with their rates in percent of the peak, occupancy and what limits it; what is unknown is left out",
	.flags = ENDPOINT_INPUT,
	.params = params,
	.run = serve_timeline_kernel_run,
};
