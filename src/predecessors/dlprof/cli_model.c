/* --dump_model_data: which op is what, its calls, and the API calls and device work of each, as one JSON object of arrays. Ops and
 * instances are named by their places in their arrays. */
#include "analysis/analysis.h"
#include "analysis/tree/op_instances.h"
#include "base/json_text.h"
#include "io/atomic.h"
#include "op/kernels.h"
#include "predecessors/dlprof/cli_dlprof.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"

enum { PIECE_BYTES = 1 << 20 };

struct dump {
	const struct profile *p;
	int64_t zero_ns;         /* times are told from here */
	struct atomic_file f;
	struct buf b;
	bool failed;
	struct err *e;
};

static void row(struct dump *d, bool first)
{
	if (!d->failed && d->b.n >= PIECE_BYTES) {
		d->failed = atomic_write(&d->f, buf_view(&d->b), d->e) < 0;
		buf_clear(&d->b);
	}
	buf_cstr(&d->b, first ? "\n{" : ",\n{");
}

static void cli_model_put_text(struct dump *d, const char *key, struct str s)
{
	buf_printf(&d->b, "\"%s\": ", key);
	json_put_string(&d->b, s);
	buf_cstr(&d->b, ", ");
}

static void cli_model_put_number(struct dump *d, const char *key, int64_t v, bool known)
{
	buf_printf(&d->b, "\"%s\": ", key);
	if (known)
		buf_i64(&d->b, v);
	else
		buf_cstr(&d->b, "null");
	buf_cstr(&d->b, ", ");
}

static void cli_model_put_time(struct dump *d, const char *key, int64_t v, bool known)
{
	cli_model_put_number(d, key, v - d->zero_ns, known);
}

static void put_truth(struct dump *d, const char *key, bool v)
{
	buf_printf(&d->b, "\"%s\": %s}", key, v ? "true" : "false");
}

static void cli_model_put_ops(struct dump *d)
{
	const struct ops *o = d->p->ops;
	struct arena a = {0};
	buf_cstr(&d->b, "{\"ops\": [");
	for (uint32_t i = 0; i < o->n_ops; i++) {
		struct dlprof_op_names names;
		dlprof_op_names(o, d->p, i, &a, &names);
		row(d, i == 0);
		cli_model_put_text(d, "op_id", names.id);
		cli_model_put_text(d, "op_name", names.name);
		cli_model_put_text(d, "op_type", names.type);
		cli_model_put_text(d, "direction", dlprof_direction(&o->op[i]));
		cli_model_put_text(d, "data_type", o->op[i].data_type);
		cli_model_put_text(d, "stack_trace", o->op[i].stack);
		cli_model_put_number(d, "calls", o->op[i].instances, true);
		put_truth(d, "tc_eligible", o->op[i].tc_eligible);
	}
	arena_release(&a);
}

static void put_instances(struct dump *d)
{
	const struct profile *p = d->p;
	buf_cstr(&d->b, "],\n\"op_instances\": [");
	for (uint32_t k = 0; k < p->ops->n_instances; k++) {
		const struct op_instance *x = &p->ops->instance[k];
		struct arena a = {0};
		struct op_shapes s;
		op_instance_shapes(p->ops, p, k, &a, &s);
		row(d, k == 0);
		cli_model_put_number(d, "op", x->op, true);
		cli_model_put_number(d, "thread", x->span == ROW_NONE ? 0 : p->track.tid[p->span.track[x->span]], x->span != ROW_NONE);
		cli_model_put_time(d, "cpu_start", x->start_ns, x->span != ROW_NONE);
		cli_model_put_time(d, "cpu_stop", x->end_ns, x->span != ROW_NONE);
		cli_model_put_number(d, "gpu_ns", x->gpu_ns, true);
		cli_model_put_number(d, "overhead_ns", x->overhead_ns, true);
		cli_model_put_number(d, "gpu_idle_ns", x->idle_ns, true);
		cli_model_put_text(d, "data_types", s.data_types);
		cli_model_put_text(d, "input_shapes", s.inputs);
		cli_model_put_text(d, "parameters", s.parameters);
		cli_model_put_text(d, "output_shapes", s.outputs);
		put_truth(d, "range", x->span != ROW_NONE);
		arena_release(&a);
	}
}

static void put_calls(struct dump *d)
{
	const struct spans *s = &d->p->span;
	bool first = true;
	buf_cstr(&d->b, "],\n\"cuda_calls\": [");
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_CALL)
			continue;
		row(d, first);
		first = false;
		uint32_t in = d->p->ops->of_span[i];
		cli_model_put_text(d, "name", profile_str(d->p, s->name[i]));
		cli_model_put_number(d, "op_instance", in, in != ROW_NONE);
		cli_model_put_number(d, "thread", d->p->track.tid[s->track[i]], true);
		cli_model_put_number(d, "correlation", s->link_id[i], s->link_id[i] != ID_NONE);
		cli_model_put_time(d, "start", s->start_ns[i], true);
		cli_model_put_time(d, "stop", span_end(d->p, i), true);
		put_truth(d, "unassociated", in != ROW_NONE && d->p->ops->op[d->p->ops->instance[in].op].unassociated);
	}
}

static void cli_model_put_sizes(struct dump *d, const char *key, int32_t x, int32_t y, int32_t z)
{
	if (x != INT32_MIN)
		buf_printf(&d->b, "\"%s\": [%d, %d, %d], ", key, x, y, z);
}

static void put_work(struct dump *d)
{
	const struct gpu_ops *g = &d->p->gpu_op;
	const struct launches *l = &d->p->launch;
	struct op_tc *tc = op_tc_new(d->p, true);
	buf_cstr(&d->b, "],\n\"gpu_work\": [");
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t at = g->launch[i], call = g->call[i];
		row(d, i == 0);
		cli_model_put_text(d, "kind", str_from(gpu_kind_name[g->kind[i]]));
		cli_model_put_text(d, "name", profile_str(d->p, g->name[i]));
		cli_model_put_number(d, "op_instance", d->p->ops->of_gpu[i], true);
		cli_model_put_number(d, "device", l->device[at], l->device[at] != INT32_MIN);
		cli_model_put_number(d, "stream", l->stream[at], l->stream[at] != ID_NONE);
		cli_model_put_number(d, "correlation", g->corr_id[i], g->corr_id[i] != ID_NONE);
		cli_model_put_time(d, "gpu_start", g->start_ns[i], true);
		cli_model_put_time(d, "gpu_stop", gpu_end(d->p, i), true);
		cli_model_put_time(d, "api_start", call == ROW_NONE ? 0 : d->p->span.start_ns[call], call != ROW_NONE);
		cli_model_put_time(d, "api_stop", call == ROW_NONE ? 0 : span_end(d->p, call), call != ROW_NONE);
		cli_model_put_number(d, "bytes", l->bytes[at], l->bytes[at] != ID_NONE);
		cli_model_put_sizes(d, "grid", l->grid_x[at], l->grid_y[at], l->grid_z[at]);
		cli_model_put_sizes(d, "block", l->block_x[at], l->block_y[at], l->block_z[at]);
		put_truth(d, "uses_tc", op_tc_of(tc, i) == TRI_YES);
	}
	buf_cstr(&d->b, "]}\n");
	op_tc_free(tc);
}

int dlprof_dump_model(const struct profile *p, const char *path, struct err *e)
{
	struct dump d = {.p = p, .zero_ns = dlprof_zero_ns(p), .e = e};
	if (atomic_begin(&d.f, path, e))
		return -1;
	cli_model_put_ops(&d);
	put_instances(&d);
	put_calls(&d);
	put_work(&d);
	d.failed = d.failed || atomic_write(&d.f, buf_view(&d.b), e) < 0;
	buf_release(&d.b);
	return d.failed ? atomic_abort(&d.f) : atomic_commit(&d.f, e);
}
