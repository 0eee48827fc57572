#include "open/provenance_join.h"

#include "analysis/analysis.h"
#include "analysis/tree/generated.h"
#include "analysis/tree/sources.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

#include <stdlib.h>

#define GRAPH_RANGE "## Call CompiledFxGraph"
#define FRAME_RANGE "Torch-Compiled Region: "

bool provenance_is_due(const struct profile *p)
{
	if (p->reopened || p->durations_only || intern_find(&p->strings, str_from(arg_key_text[ARG_SOURCE_MATCH])) != INTERN_NONE)
		return false;
	return ANY_WHERE(i, 0u, p->strings.n, str_starts(profile_str(p, i), STR(GRAPH_RANGE)) || str_starts(profile_str(p, i), STR(FRAME_RANGE)) || str_starts(profile_str(p, i), STR("triton_")));
}

/* A call of the compiler's code. */
struct join_call {
	uint32_t kernel, graph, call; /* kernel: its id in join.kernels */
	int64_t number;
};

/* A launch of a generated kernel, or an op that compiled code called. */
struct join_launch {
	uint32_t kernel;
	uint32_t range;          /* span of the run of its graph; ROW_NONE */
	uint32_t row;            /* span by which launches of a range are in order */
	uint32_t work;           /* row of gpu_op; of an op ROW_NONE */
	uint32_t place, of;      /* which of how many launches of the kernel in the range it is */
	uint32_t frame, hash;    /* string ids: compiled frame around it, hash of its code; 0 = not known */
	uint32_t told;           /* in join.told; 0 = nothing */
};

struct join_told {
	const struct provenance_call *stack_of; /* NULL = not known */
	uint32_t arg[4];         /* string ids: ops, nodes, lines, match */
};

struct join {
	struct profile *p;
	const struct provenance *v;
	struct intern kernels, defined, keys, told_keys, set_keys;
	struct join_call *call;  /* by kernel, graph and number */
	uint32_t *group;         /* first calls of a kernel in a graph; one more at the end */
	uint32_t *first;         /* kernel -> its first group; one more at the end */
	struct intern counts;    /* pairs of a kernel and how often a graph calls it */
	uint32_t *range, *frame, *root; /* by span: that of the run of a graph around it; name of the compiled frame around it; outermost op within the run. ROW_NONE, 0, ROW_NONE */
	struct join_launch *launch;
	uint32_t *told_of_key;
	struct join_told *told;
	uint32_t *set_of_key;
	uint32_t *told_of_root;  /* by span that got it */
	uint32_t n_calls, cap_calls, n_groups, cap_groups, n, cap, cap_keys, n_told, cap_told, cap_sets;
	uint64_t told_launches;
};

static int calls_in_order(const void *a, const void *b)
{
	const struct join_call *x = a, *y = b;
	return COMPARE(x->kernel, y->kernel) ?: COMPARE(x->graph, y->graph) ?: COMPARE(x->number, y->number) ?: COMPARE(x->call, y->call);
}

/* The key of a kernel that a graph defines; hash "" = of any. */
static uint32_t join_define(struct join *j, uint32_t graph, struct str kernel, struct str hash, bool look)
{
	struct buf b = {0};
	buf_printf(&b, "%u ", graph);
	buf_str(&b, kernel);
	buf_char(&b, ' ');
	buf_str(&b, hash);
	const uint32_t id = look ? intern_find(&j->defined, buf_view(&b)) : intern_str(&j->defined, buf_view(&b));
	buf_release(&b);
	return id;
}

static void join_index(struct join *j)
{
	for (uint32_t g = 0; g < j->v->n; g++) {
		const struct provenance_graph *x = &j->v->graph[g];
		for (uint32_t i = 0; i < x->n_calls; i++)
			MEM_PUSH(j->call, j->n_calls, j->cap_calls, (struct join_call){intern_str(&j->kernels, x->call[i].kernel), g, i, x->call[i].number});
		for (uint32_t i = 0; i < x->n_kernels; i++)
			if (x->kernel[i].hash.n) {
				(void)join_define(j, g, x->kernel[i].kernel, x->kernel[i].hash, false);
				(void)join_define(j, g, x->kernel[i].kernel, STR(""), false);
			}
	}
	if (j->n_calls)
		qsort(j->call, j->n_calls, sizeof *j->call, calls_in_order);
	j->first = NEW_ARRAY(j->kernels.n + 1, uint32_t);
	for (uint32_t i = 0, end; i < j->n_calls; i = end) {
		for (end = i; end < j->n_calls && j->call[end].kernel == j->call[i].kernel && j->call[end].graph == j->call[i].graph; end++)
			;
		const uint32_t count[] = {j->call[i].kernel, end - i};
		(void)intern_put(&j->counts, (const char *)count, sizeof count);
		MEM_PUSH(j->group, j->n_groups, j->cap_groups, i);
		j->first[j->call[i].kernel + 1] = j->n_groups;
	}
	MEM_GROW(j->group, j->cap_groups, j->n_groups + 1);
	j->group[j->n_groups] = j->n_calls;
	for (uint32_t i = 1; i <= j->kernels.n; i++)
		j->first[i] = j->first[i] > j->first[i - 1] ? j->first[i] : j->first[i - 1];
}

/* ---- launches ---- */

static void join_places(struct join *j)
{
	const struct profile *p = j->p;
	const uint32_t n = p->span.rows.n;
	j->range = mem_filled(n, ROW_NONE);
	j->root = mem_filled(n, ROW_NONE);
	j->frame = NEW_ARRAY(n, uint32_t);
	j->told_of_root = NEW_ARRAY(n, uint32_t);
	for (uint32_t i = 0; i < n; i++) {
		if (!span_nests(p->span.kind[i]))
			continue;
		const uint32_t up = p->span.parent[i];
		const struct str name = profile_str(p, p->span.name[i]);
		const bool runs = p->span.kind[i] == SPAN_USER && str_starts(name, STR(GRAPH_RANGE));
		j->range[i] = runs ? i : up == ROW_NONE ? ROW_NONE : j->range[up];
		j->frame[i] = str_starts(name, STR(FRAME_RANGE)) ? p->span.name[i] : up == ROW_NONE || str_starts(name, STR("CompiledFunctionBackward")) ? 0 : j->frame[up];
		if (runs || j->range[i] == ROW_NONE)
			continue;
		j->root[i] = j->root[up] != ROW_NONE ? j->root[up] : p->span.kind[i] == SPAN_OP ? i : ROW_NONE;
	}
}

/* The span that stands for where the work was launched from. */
static uint32_t join_launcher(const struct profile *p, uint32_t g)
{
	if (gpu_is_replayed(&p->gpu_op, g) && p->gpu_op.op[g] != ROW_NONE)
		return p->gpu_op.op[g];
	return p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
}

/* Ops are of a range, too, where a graph is replayed: what was captured in it has no range of its own. */
static uint32_t join_range(const struct join *j, uint32_t g)
{
	const uint32_t at = join_launcher(j->p, g), call = j->p->gpu_op.call[g];
	const uint32_t range = at == ROW_NONE ? ROW_NONE : j->range[at];
	return range == ROW_NONE && call != ROW_NONE ? j->range[call] : range;
}

static uint32_t join_hash(const struct profile *p, uint32_t op)
{
	const uint32_t set = op == ROW_NONE ? 0 : p->span.args[op];
	return set ? profile_arg_id(p, set, ARG_KERNEL_HASH) : 0;
}

static void join_add_generated(struct join *j, uint32_t g)
{
	const struct profile *p = j->p;
	struct generated_kernel kernel;
	const uint32_t at = join_launcher(p, g);
	if (!generated_kernel_of(p, g, &kernel))
		return;
	const uint32_t id = intern_find(&j->kernels, kernel.name.name);
	if (id != INTERN_NONE)
		MEM_PUSH(j->launch, j->n, j->cap, ((struct join_launch){.kernel = id, .range = join_range(j, g), .row = at, .work = g, .frame = at == ROW_NONE ? 0 : j->frame[at],
		                                                       .hash = join_hash(p, kernel.op)}));
}

/* "cpp_fused_mul_0" of "graph_0_cpp_fused_mul_0", as a kernel of the CPU calls itself (torch._inductor.config.cpp.enable_kernel_profile). */
static struct str join_op_name(struct str name)
{
	struct str rest = name;
	if (!str_skip(&rest, STR("graph_")))
		return name;
	while (rest.n && is_digit(rest.p[0]))
		rest = (struct str){rest.p + 1, rest.n - 1};
	return str_skip(&rest, STR("_")) && str_starts(rest, STR("cpp_")) ? rest : name;
}

static void join_add_launches(struct join *j)
{
	const struct profile *p = j->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		const uint32_t id = j->root[i] == i ? intern_find(&j->kernels, join_op_name(profile_str(p, p->span.name[i]))) : INTERN_NONE;
		if (id != INTERN_NONE && !str_starts(intern_get(&j->kernels, id), STR("triton_")))
			MEM_PUSH(j->launch, j->n, j->cap, ((struct join_launch){.kernel = id, .range = j->range[i], .row = i, .work = ROW_NONE, .frame = j->frame[i]}));
	}
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		join_add_generated(j, g);
}

static int launches_in_order(const void *a, const void *b)
{
	const struct join_launch *x = a, *y = b;
	return COMPARE(x->range, y->range) ?: COMPARE(x->kernel, y->kernel) ?: COMPARE(x->row, y->row) ?: COMPARE(x->work, y->work);
}

static void join_number_launches(struct join *j)
{
	if (j->n)
		qsort(j->launch, j->n, sizeof *j->launch, launches_in_order);
	for (uint32_t i = 0, end; i < j->n; i = end) {
		for (end = i; end < j->n && j->launch[end].range == j->launch[i].range && j->launch[end].kernel == j->launch[i].kernel; end++)
			;
		for (uint32_t k = i; k < end && j->launch[i].range != ROW_NONE; k++) {
			j->launch[k].place = k - i;
			j->launch[k].of = end - i;
		}
	}
}

/* ---- which calls they are of ---- */

/* "fabc" of "## Call CompiledFxGraph fabc ##". */
static struct str join_graph_key(struct str range)
{
	(void)str_skip(&range, STR(GRAPH_RANGE));
	if (str_ends(range, STR("##")))
		range.n -= 2;
	return str_trim(range);
}

/* "0/1" of "Torch-Compiled Region: 0/1"; "" = it is of another form. */
static struct str join_compile_id(struct str frame)
{
	size_t n = 0;
	if (!str_skip(&frame, STR(FRAME_RANGE)))
		return (struct str){0};
	while (n < frame.n && (is_digit(frame.p[n]) || frame.p[n] == '/' || frame.p[n] == '!'))
		n++;
	return (struct str){frame.p, n};
}

/* How well a graph fits a launch; 0 = it does not. */
static enum source_match join_fits(struct join *j, const struct join_launch *l, uint32_t graph, struct str key)
{
	const struct provenance_graph *x = &j->v->graph[graph];
	const struct str kernel = intern_get(&j->kernels, l->kernel), hash = profile_str(j->p, l->hash);
	const struct str frame = join_compile_id(profile_str(j->p, l->frame));
	const bool same_code = hash.n && join_define(j, graph, kernel, hash, true) != INTERN_NONE;
	if (hash.n && !same_code && x->has_code && join_define(j, graph, kernel, STR(""), true) != INTERN_NONE)
		return SOURCE_NONE;
	if (key.n && x->key.n)
		return str_eq(key, x->key) ? SOURCE_BY_GRAPH : SOURCE_NONE;
	if (frame.n && x->compile_id.n && !str_eq(frame, x->compile_id))
		return SOURCE_NONE;
	if (same_code)
		return SOURCE_BY_CODE;
	return SOURCE_BY_NAME;
}

struct join_choice {
	struct str ops, nodes, lines;
	const struct provenance_call *stack_of;
	bool any, differs, all_calls;
};

static void choice_agree(struct str *have, struct str other, bool *differs)
{
	if (str_eq(*have, other))
		return;
	*have = (struct str){"", 0};
	*differs = true;
}

static void choice_add(struct join_choice *c, const struct provenance_call *call)
{
	c->all_calls |= call->number < 0;
	if (!c->any) {
		*c = (struct join_choice){call->ops, call->nodes, call->lines, call, true, false, c->all_calls};
		return;
	}
	choice_agree(&c->ops, call->ops, &c->differs);
	choice_agree(&c->nodes, call->nodes, &c->differs);
	choice_agree(&c->lines, call->lines, &c->differs);
	if (c->stack_of && !str_eq(c->stack_of->stack, call->stack))
		c->stack_of = NULL;
}

/* Calls first .. end - 1 are those of the kernel in one graph. */
static void choice_add_graph(const struct join *j, struct join_choice *c, const struct join_launch *l, uint32_t first, uint32_t end)
{
	const struct provenance_graph *x = &j->v->graph[j->call[first].graph];
	const bool by_order = end - first > 1 && l->of == end - first && j->call[first].number >= 0;
	for (uint32_t i = by_order ? first + l->place : first; i < (by_order ? first + l->place + 1 : end); i++)
		choice_add(c, &x->call[j->call[i].call]);
}

static uint32_t join_keep(struct join *j, const struct join_choice *c, enum source_match match)
{
	struct profile *p = j->p;
	if (c->differs)
		match = SOURCE_AMBIGUOUS;
	else if (c->all_calls && match != SOURCE_BY_NAME)
		match = SOURCE_ALL_CALLS;
	struct join_told t = {.stack_of = c->lines.n ? c->stack_of : NULL, .arg = {intern_str(&p->strings, c->ops), intern_str(&p->strings, c->nodes),
	                                                          intern_str(&p->strings, c->lines), intern_str(&p->strings, str_from(source_match_name[match]))}};
	struct buf b = {0};
	buf_put(&b, t.arg, sizeof t.arg);
	if (t.stack_of)
		buf_str(&b, t.stack_of->stack);
	const uint32_t id = intern_str(&j->told_keys, buf_view(&b));
	buf_release(&b);
	if (id == j->n_told)
		MEM_PUSH(j->told, j->n_told, j->cap_told, t);
	return id;
}

static uint32_t join_tell(struct join *j, const struct join_launch *l)
{
	const struct str key = l->range == ROW_NONE ? (struct str){0} : join_graph_key(profile_str(j->p, j->p->span.name[l->range]));
	struct join_choice c = {0};
	enum source_match best = SOURCE_NONE;
	for (uint32_t i = j->first[l->kernel]; i < j->first[l->kernel + 1]; i++) {
		const enum source_match fits = join_fits(j, l, j->call[j->group[i]].graph, key);
		if (fits == SOURCE_NONE || fits < best)
			continue;
		if (fits > best)
			c = (struct join_choice){0};
		best = fits;
		choice_add_graph(j, &c, l, j->group[i], j->group[i + 1]);
	}
	return best == SOURCE_NONE ? 0 : join_keep(j, &c, best);
}

static void join_tell_launches(struct join *j)
{
	for (uint32_t i = 0; i < j->n; i++) {
		struct join_launch *l = &j->launch[i];
		const uint32_t count[] = {l->kernel, l->of};
		if (intern_find(&j->counts, (struct str){(const char *)count, sizeof count}) == INTERN_NONE)
			l->place = l->of = 0; /* its order tells nothing */
		const uint32_t key[] = {l->kernel, l->range == ROW_NONE ? 0 : j->p->span.name[l->range], l->frame, l->hash, l->place, l->of};
		const uint32_t id = intern_put(&j->keys, (const char *)key, sizeof key), before = j->cap_keys;
		MEM_GROW(j->told_of_key, j->cap_keys, id + 1);
		memset(j->told_of_key + before, 0xff, (j->cap_keys - before) * sizeof *j->told_of_key);
		if (j->told_of_key[id] == UINT32_MAX)
			j->told_of_key[id] = join_tell(j, l);
		l->told = j->told_of_key[id];
		j->told_launches += l->told != 0;
	}
}

/* ---- what they get ---- */

static void join_put_arg(struct profile *p, uint32_t key, uint32_t value, bool is_string)
{
	const uint32_t a = rows_push(&p->arg, &store_tables[TABLE_arg]);
	if (a == ROW_NONE)
		return;
	p->arg.key[a] = key;
	p->arg.value[a] = value;
	p->arg.is_string[a] = is_string;
}

/* The arguments of a row with those of `told`; stack: string id, 0 = it keeps what it has. */
static uint32_t join_args(struct join *j, uint32_t set, uint32_t told, uint32_t stack)
{
	static const enum arg_key keys[] = {ARG_SOURCE_OPS, ARG_SOURCE_NODES, ARG_SOURCE_LINES, ARG_SOURCE_MATCH};
	struct profile *p = j->p;
	const uint32_t key[] = {set, told, stack}, id = intern_put(&j->set_keys, (const char *)key, sizeof key), before = j->cap_sets;
	MEM_GROW(j->set_of_key, j->cap_sets, id + 1);
	memset(j->set_of_key + before, 0, (j->cap_sets - before) * sizeof *j->set_of_key);
	if (j->set_of_key[id])
		return j->set_of_key[id];
	const uint32_t first = p->arg_set.first[set], end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	const uint32_t to = rows_push(&p->arg_set, &store_tables[TABLE_arg_set]);
	if (to == ROW_NONE)
		return set;
	p->arg_set.first[to] = p->arg.rows.n;
	for (uint32_t i = set ? first : end; i < end; i++)
		if (!stack || !profile_is_arg(p, p->arg.key[i], ARG_CALL_STACK))
			join_put_arg(p, p->arg.key[i], p->arg.value[i], p->arg.is_string[i]);
	for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (j->told[told].arg[i])
			join_put_arg(p, intern_str(&p->strings, str_from(arg_key_text[keys[i]])), j->told[told].arg[i], true);
	if (stack)
		join_put_arg(p, intern_str(&p->strings, str_from(arg_key_text[ARG_CALL_STACK])), stack, true);
	return j->set_of_key[id] = to;
}

/* The lines, called from the Python frames around the op. */
static uint32_t join_stack(struct join *j, uint32_t span, uint32_t told)
{
	struct profile *p = j->p;
	struct buf b = {0};
	if (!j->told[told].stack_of)
		return 0;
	buf_str(&b, j->told[told].stack_of->stack);
	for (uint32_t i = p->span.parent[span]; i != ROW_NONE; i = p->span.parent[i])
		if (p->span.kind[i] == SPAN_PYTHON) {
			buf_char(&b, ';');
			buf_str(&b, profile_str(p, p->span.name[i]));
		}
	const uint32_t id = intern_str(&p->strings, buf_view(&b));
	buf_release(&b);
	return id;
}

static void join_give_span(struct join *j, uint32_t span, uint32_t told)
{
	j->p->span.args[span] = join_args(j, j->p->span.args[span], told, join_stack(j, span, told));
}

static void join_give(struct join *j)
{
	struct profile *p = j->p;
	struct generated_kernel kernel;
	for (uint32_t i = 0; i < j->n; i++)
		if (j->launch[i].work == ROW_NONE)
			j->told_of_root[j->launch[i].row] = j->launch[i].told;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		const uint32_t at = join_launcher(p, g), root = at == ROW_NONE ? ROW_NONE : j->root[at];
		if (root != ROW_NONE && j->told_of_root[root] && !generated_kernel_of(p, g, &kernel))
			p->gpu_op.args[g] = join_args(j, p->gpu_op.args[g], j->told_of_root[root], 0);
	}
	for (uint32_t i = 0; i < j->n; i++) {
		const struct join_launch *l = &j->launch[i];
		if (!l->told)
			continue;
		if (l->work == ROW_NONE) {
			join_give_span(j, l->row, l->told);
			continue;
		}
		const bool has_op = generated_kernel_of(p, l->work, &kernel) && kernel.op != ROW_NONE;
		p->gpu_op.args[l->work] = join_args(j, p->gpu_op.args[l->work], l->told, 0);
		if (has_op && !j->told_of_root[kernel.op]) {
			j->told_of_root[kernel.op] = l->told;
			join_give_span(j, kernel.op, l->told);
		}
	}
}

static void join_put_said(struct profile *p, const struct provenance *v)
{
	struct buf b = {0};
	for (uint32_t i = 0; i < v->n_said; i++) {
		const struct provenance_said *x = &v->said[i];
		const uint32_t row = rows_push(&p->meta, &store_tables[TABLE_meta]);
		if (row == ROW_NONE)
			break;
		buf_clear(&b);
		buf_printf(&b, STR_FMT "\t" STR_FMT "\t" STR_FMT, STR_ARG(x->frame), STR_ARG(x->place), STR_ARG(x->reason));
		p->meta.key[row] = intern_str(&p->strings, str_from(x->recompiles ? SOURCE_RECOMPILE : SOURCE_BREAK));
		p->meta.value[row] = intern_str(&p->strings, buf_view(&b));
		p->meta.is_string[row] = 1;
	}
	buf_release(&b);
}

static void join_release(struct join *j)
{
	intern_release(&j->kernels);
	intern_release(&j->counts);
	intern_release(&j->defined);
	intern_release(&j->keys);
	intern_release(&j->told_keys);
	intern_release(&j->set_keys);
	mem_free(j->call);
	mem_free(j->group);
	mem_free(j->first);
	mem_free(j->range);
	mem_free(j->frame);
	mem_free(j->root);
	mem_free(j->launch);
	mem_free(j->told_of_key);
	mem_free(j->told);
	mem_free(j->set_of_key);
	mem_free(j->told_of_root);
}

int provenance_join(struct profile *p, const struct provenance *v, struct err *e)
{
	struct join j = {.p = p, .v = v};
	if (analysis_run(p, PASS_NEST | PASS_CORRELATE, e) < 0)
		return -1;
	intern_init(&j.kernels);
	intern_init(&j.counts);
	intern_init(&j.defined);
	intern_init(&j.keys);
	intern_init(&j.told_keys);
	intern_init(&j.set_keys);
	MEM_PUSH(j.told, j.n_told, j.cap_told, (struct join_told){0}); /* 0 = nothing */
	join_index(&j);
	join_places(&j);
	join_add_launches(&j);
	join_number_launches(&j);
	join_tell_launches(&j);
	join_give(&j);
	join_put_said(p, v);
	if (v->n && !j.told_launches)
		diag_add(&p->diags, "provenance-of-other-code", DIAG_LOSS, -1, "no kernel of the recording is one that the compiler's provenance tells of");
	join_release(&j);
	analysis_forget(p);
	return 0;
}
