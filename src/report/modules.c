/* Time by nn.Module, forward and backward. */
#include "analysis/tree/modules.h"

#include "analysis/recording.h"
#include "base/buf.h"
#include "base/mem.h"
#include "query/window.h"

enum modules_grouping { MODULES_BY_TREE, MODULES_FLAT };

enum {
	MODULES_DEPTH, MODULES_MODULE, MODULES_DEV_EXCLUSIVE, MODULES_HOST_EXCLUSIVE, MODULES_EXCLUSIVE_PCT, MODULES_DEV_TOTAL, MODULES_DEV_SELF, MODULES_BWD_DEV_TOTAL,
	MODULES_PCT, MODULES_HOST_ALL, MODULES_HOST_PCT, MODULES_HOST_TOTAL, MODULES_BWD_HOST, MODULES_PATH, MODULES_CALLS, MODULES_HOST_SELF, MODULES_BWD_DEV_SELF,
	MODULES_RECOMPUTE_DEV, MODULES_RECOMPUTED, MODULES_OPERATORS, MODULES_TYPE, MODULES_ID, MODULES_COLUMNS
};

static const struct section modules_section = {COLUMNS(
	[MODULES_DEPTH] = {COLUMN(NUMBER, "depth", "Depth", "0 = root; rows stand in pre-order", .flags = COLUMN_TREE), .by = BY(MODULES_BY_TREE)},
	[MODULES_MODULE] = {COLUMN(TEXT, "module", "Module Name", "class and number of the module")},
	[MODULES_DEV_EXCLUSIVE] = {COLUMN(NS, "device_exclusive_ns", "Own Device", "device self, forward and backward together"), .when = WHEN_DEVICE},
	[MODULES_HOST_EXCLUSIVE] = {COLUMN(NS, "host_exclusive_ns", "Own Host", "forward and backward host time less that of the modules inside (never below 0, where "
	                                   "these ran on other threads at the same time)")},
	[MODULES_EXCLUSIVE_PCT] = {COLUMN(PERCENT, "device_exclusive_pct", "Own Device %", "device self, forward and backward together / all device time"),
	                                  .by = BY(MODULES_FLAT), .when = WHEN_DEVICE},
	[MODULES_DEV_TOTAL] = {COLUMN(NS, "device_total_ns", "Forward Device", "device time launched by it and the modules inside, forward"), .when = WHEN_DEVICE},
	[MODULES_DEV_SELF] = {COLUMN(NS, "device_self_ns", "Device Self", "forward device time less that of the modules inside"), .when = WHEN_DEVICE},
	[MODULES_BWD_DEV_TOTAL] = {COLUMN(NS, "backward_device_total_ns", "Backward Device", "device time launched by the backward ops of its ops, and by recomputing it "
	                                  "in the backward pass, modules inside included"), .when = WHEN_DEVICE | WHEN_RECORDED},
	[MODULES_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "forward and backward device time / all device time"), .when = WHEN_DEVICE},
	[MODULES_HOST_ALL] = {COLUMN(NS, "forward_backward_host_ns", "Host Total", "forward and backward host time"), .when = WHEN_NO_DEVICE},
	[MODULES_HOST_PCT] = {COLUMN(PERCENT, "host_pct", "Host %", "forward and backward host time / that of all modules"), .when = WHEN_NO_DEVICE},
	[MODULES_HOST_TOTAL] = {COLUMN(NS, "host_total_ns", "Forward Host", "host time of its calls")},
	[MODULES_BWD_HOST] = {COLUMN(NS, "backward_host_ns", "Backward Host", "host time of the backward ops of its ops, modules inside included"),
	                             .when = WHEN_RECORDED},
	[MODULES_PATH] = {COLUMN(TEXT, "path", "Path", "the modules around it, outermost first, and itself", .flags = COLUMN_WIDE), .by = BY(MODULES_FLAT)},
	[MODULES_CALLS] = {COLUMN(COUNT, "calls", "Occurrences", "how often it was called, recomputation left out")},
	[MODULES_HOST_SELF] = {COLUMN(NS, "host_self_ns", "Host Self", "forward host time less the modules, ops and API calls directly inside")},
	[MODULES_BWD_DEV_SELF] = {COLUMN(NS, "backward_device_self_ns", "Backward Device Self", "backward device time less that of the modules inside",
	                                 .flags = COLUMN_DETAIL), .when = WHEN_DEVICE | WHEN_RECORDED},
	[MODULES_RECOMPUTE_DEV] = {COLUMN(NS, "recompute_device_ns", "Recompute Device", "the part of backward device time that is recomputation"),
	                                  .when = WHEN_DEVICE | WHEN_RECORDED},
	[MODULES_RECOMPUTED] = {COLUMN(COUNT, "recompute_calls", "Recomputed", "calls within the backward pass (activation checkpointing)", .flags = COLUMN_DETAIL),
	                               .when = WHEN_RECORDED},
	[MODULES_OPERATORS] = {COLUMN(COUNT, "operators", "Operators", "ops called directly by it, all calls together", .flags = COLUMN_DETAIL)},
	[MODULES_TYPE] = {COLUMN(TEXT, "type", "Type", "class of the module"), .when = WHEN_RECORDED},
	[MODULES_ID] = {COLUMN(NUMBER, "module_id", "Module Id", "Python module id as recorded", .flags = COLUMN_DETAIL), .when = WHEN_RECORDED},
)};

static const char *const source_text[] = {
	[MODULES_ANNOTATED] = "modules by the ranges of opscope.torch",
	[MODULES_LIGHTNING] = "modules by PyTorch Lightning's ranges ([pl][module])",
	[MODULES_PYTHON] = "modules by Python frames (with_stack)",
	[MODULES_TORCHSCRIPT] = "modules by the ops' TorchScript hierarchy (with_modules): calls and their own time are not recorded",
};

/* Which figures the trace has. */
struct modules_shown {
	bool flat, device, backward, recompute;
	int64_t all_device;
	int64_t all_host;       /* of the roots, forward and backward */
	int64_t *host_exclusive; /* per node */
};

static void modules_look(const struct profile *p, const struct modules *m, struct modules_shown *s)
{
	s->device = p->gpu_op.rows.n > 0;
	s->backward = m->links->by_sequence || m->links->by_flow;
	for (uint32_t i = 0; i < m->tree.n; i++)
		s->recompute |= m->tree.v[i].recompute_calls > 0;
	s->backward |= s->recompute;
	s->all_device = m->dev_forward + m->dev_backward + m->dev_gradient_comm + m->dev_optimizer + m->dev_outside +
	                m->dev_unattributed;
	s->host_exclusive = NEW_ARRAY(m->tree.n, int64_t);
	for (uint32_t k = 0; k < m->tree.n_order; k++) {
		const struct module_node *n = &m->tree.v[m->tree.order[k]];
		int64_t host = n->host_total + n->bwd_host_total;
		s->host_exclusive[m->tree.order[k]] += host;
		if (n->parent == MODULE_NONE)
			s->all_host += host;
		else
			s->host_exclusive[n->parent] -= host;
	}
}

static void modules_start(struct table *t, const struct modules *m, const struct modules_shown *s, const struct report_args *args)
{
	bool dotted = modules_are_dotted(m->source);
	const bool lacks[MODULES_COLUMNS] = {
		[MODULES_TYPE] = !dotted, [MODULES_ID] = m->source != MODULES_PYTHON, [MODULES_RECOMPUTED] = !s->recompute, [MODULES_RECOMPUTE_DEV] = !s->recompute,
		[MODULES_BWD_HOST] = !s->backward, [MODULES_BWD_DEV_TOTAL] = !s->backward, [MODULES_BWD_DEV_SELF] = !s->backward,
	};
	/* Text has no room for all columns: the list shows own times, by which it is sorted, the tree shows totals. */
	const bool detail[MODULES_COLUMNS] = {
		[MODULES_PATH] = dotted, [MODULES_DEV_EXCLUSIVE] = !s->flat, [MODULES_HOST_EXCLUSIVE] = !s->flat || s->device,
		[MODULES_DEV_SELF] = s->flat, [MODULES_HOST_SELF] = s->flat,
	};
	section_start(&modules_section, args, (s->device ? WHEN_DEVICE : WHEN_NO_DEVICE) | WHEN_RECORDED, t);
	for (unsigned c = 0; c < MODULES_COLUMNS; c++) {
		if (lacks[c])
			section_leave_out(&modules_section, c, t);
		if (detail[c])
			t->data[c].col.flags |= COLUMN_DETAIL;
	}
}

static void modules_put_share(struct table *t, unsigned c, int64_t part, int64_t all)
{
	if (all > 0)
		table_set_f64(t, c, 100.0 * (double)part / (double)all);
}

/* Names from the root to the module; of a module nested absurdly deep, the innermost names alone. */
static struct str node_path(const struct modules *m, uint32_t node, struct buf *path)
{
	enum { MOST = 100 };
	uint32_t up[MOST];
	unsigned n = 0;
	for (; n < MOST && node != MODULE_NONE; node = m->tree.v[node].parent)
		up[n++] = m->tree.v[node].name;
	buf_clear(path);
	if (node != MODULE_NONE)
		buf_cstr(path, ".../");
	while (n-- > 0) {
		buf_str(path, intern_get(&m->tree.names, up[n]));
		if (n)
			buf_char(path, modules_are_dotted(m->source) ? '.' : '/');
	}
	return buf_view(path);
}

static void modules_put_node(struct table *t, const struct modules *m, const struct modules_shown *s, uint32_t node, struct buf *path)
{
	const struct module_node *n = &m->tree.v[node];
	table_row(t);
	struct str name = intern_get(&m->tree.names, n->name);
	if (s->flat) {
		struct str whole = node_path(m, node, path);
		table_set_str_copy(t, MODULES_PATH, whole);
		if (modules_are_dotted(m->source)) /* the name alone is "0" */
			name = whole;
	}
	table_set_str_copy(t, MODULES_MODULE, name);
	table_set_i64(t, MODULES_DEPTH, n->depth);
	if (n->type)
		table_set_str_copy(t, MODULES_TYPE, intern_get(&m->tree.names, n->type));
	if (n->module_id >= 0)
		table_set_i64(t, MODULES_ID, n->module_id);
	table_set_i64(t, MODULES_OPERATORS, (int64_t)n->operators);
	table_set_i64(t, MODULES_HOST_TOTAL, n->host_total);
	if (m->source != MODULES_TORCHSCRIPT) {
		table_set_i64(t, MODULES_CALLS, (int64_t)n->calls);
		table_set_i64(t, MODULES_HOST_SELF, n->host_self);
		table_set_i64(t, MODULES_RECOMPUTED, (int64_t)n->recompute_calls);
	}
	table_set_i64(t, MODULES_DEV_TOTAL, n->dev_total);
	table_set_i64(t, MODULES_DEV_SELF, n->dev_self);
	table_set_i64(t, MODULES_HOST_ALL, n->host_total + n->bwd_host_total);
	table_set_i64(t, MODULES_BWD_HOST, n->bwd_host_total);
	table_set_i64(t, MODULES_BWD_DEV_TOTAL, n->bwd_dev_total);
	table_set_i64(t, MODULES_BWD_DEV_SELF, n->bwd_dev_self);
	table_set_i64(t, MODULES_RECOMPUTE_DEV, n->recompute_dev_total);
	table_set_i64(t, MODULES_DEV_EXCLUSIVE, n->dev_self + n->bwd_dev_self);
	table_set_i64(t, MODULES_HOST_EXCLUSIVE, s->host_exclusive[node] > 0 ? s->host_exclusive[node] : 0);
	modules_put_share(t, MODULES_PCT, n->dev_total + n->bwd_dev_total, s->all_device);
	modules_put_share(t, MODULES_EXCLUSIVE_PCT, n->dev_self + n->bwd_dev_self, s->all_device);
	modules_put_share(t, MODULES_HOST_PCT, n->host_total + n->bwd_host_total, s->all_host);
}

/* With --steps, modules that did not run in these steps are left out. */
static bool modules_is_idle(const struct module_node *n)
{
	return !n->calls && !n->recompute_calls && !n->host_total && !n->dev_total && !n->bwd_dev_total && !n->bwd_host_total;
}

static void modules_note_links(struct table *t, const struct modules *m)
{
	const struct fwdbwd *l = m->links;
	if (!l->by_sequence && !l->by_flow && !l->unlinked)
		return;
	table_note(t, "backward ops linked to their forward op: %llu by sequence number (%llu confirmed by a flow, %llu contradicted), "
	           "%llu by a flow alone; not linked: %llu (%llu of them fit several threads); AccumulateGrad given to the op before: %llu",
	           (unsigned long long)l->by_sequence, (unsigned long long)l->agree, (unsigned long long)l->differ,
	           (unsigned long long)l->by_flow, (unsigned long long)l->unlinked, (unsigned long long)l->ambiguous,
	           (unsigned long long)m->accumulated);
}

static void modules_put_notes(struct table *t, const struct modules *m, const struct modules_shown *s)
{
	if (s->device)
		table_note(t, "device work %lld ns = forward of modules %lld + backward of modules %lld + collectives of gradients %lld + "
		           "optimizer %lld + outside any module %lld (%lld of it in backward ops without one) + unattributed %lld",
		           (long long)s->all_device, (long long)m->dev_forward, (long long)m->dev_backward,
		           (long long)m->dev_gradient_comm, (long long)m->dev_optimizer, (long long)m->dev_outside,
		           (long long)m->dev_backward_unlinked, (long long)m->dev_unattributed);
	else
		table_warn(t, "the trace holds no device work: times are of the host");
	table_note(t, "%s", source_text[m->source]);
	modules_note_links(t, m);
	if (m->joined)
		table_note(t, "%llu calls within the backward pass recompute activations: they count as backward of their module",
		           (unsigned long long)m->joined);
	if (m->lent_tracks)
		table_note(t, "%llu thread(s) hold module frames but no ops: each is taken for the one thread whose ops lie within its modules",
		           (unsigned long long)m->lent_tracks);
	if (m->unlent_tracks)
		table_warn(t, "%llu thread(s) hold module frames but no ops, and fit no other thread or several: their modules have no ops",
		           (unsigned long long)m->unlent_tracks);
}

static int modules_put(const struct profile *p, const struct modules *m, const struct window *w, const struct report_args *args, struct table *t, struct err *e)
{
	struct modules_shown s = {.flat = args->variant->by == MODULES_FLAT};
	struct buf path = {0};
	modules_look(p, m, &s);
	modules_start(t, m, &s, args);
	for (uint32_t k = 0; k < m->tree.n_order; k++)
		if (w->all || !modules_is_idle(&m->tree.v[m->tree.order[k]]))
			modules_put_node(t, m, &s, m->tree.order[k], &path);
	int rc = s.flat ? table_sort(t, s.device ? STR("device_exclusive_ns") : STR("host_exclusive_ns"), true, e) : 0;
	modules_put_notes(t, m, &s);
	buf_release(&path);
	mem_free(s.host_exclusive);
	return rc;
}

static int modules_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct window w;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct modules *m = modules_new(p, &modules_own, w.all ? NULL : &w.in);
	int rc = 0;
	if (m->source == MODULES_NONE)
		rc = err_set(e, ERR_DATA, "the input holds no modules; to record them: %s", recording_how(p, RECORD_MODULES));
	else
		rc = modules_put(p, m, &w, args, out, e);
	modules_free(m);
	return rc;
}

static const struct report_variant modules_variants[] = {
	{.group_by = "tree", .by = MODULES_BY_TREE},
	{.group_by = "flat", .by = MODULES_FLAT},
	{0},
};

const struct report report_modules = {
	.name = "modules",
	.title = "Time by module",
	.asks = ASKS_PART,
	.also = "module nn",
	.help = "The tree of nn.Modules with the time of each, so that time is seen by layer: on the host, on the device in the forward "
	        "pass, and in the backward pass (each backward op counts for the module of its forward op, found by sequence number or "
	        "by flow). Calls of one module at one place are one row. The first note says where all device time went, the optimizer "
	        "and work outside modules included. --group-by=flat lists all modules without the hierarchy, by the time that each took without the modules inside. "
	        "Needs Python frames (with_stack=True).",
	.variants = modules_variants,
	.sections = (const struct section *const[]){&modules_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.run = modules_run,
};
