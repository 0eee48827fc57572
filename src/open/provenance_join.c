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

#define FRAME_RANGE "Torch-Compiled Region: "

static bool join_is_inductors(struct str name)
{
	return inductor_is_graph_range(name) || str_starts(name, STR(FRAME_RANGE)) || str_starts(name, STR("triton_"));
}

bool provenance_is_due(const struct profile *p)
{
	if (p->reopened || p->durations_only || intern_find(&p->strings, str_from(arg_key_text[ARG_SOURCE_MATCH])) != INTERN_NONE)
		return false;
	return ANY_WHERE(i, 0u, p->strings.n, join_is_inductors(profile_str(p, i)));
}

/* A call of the compiler's code. */
struct join_call {
	uint32_t kernel;         /* id in join.kernels */
	uint32_t graph, call;    /* of provenance.graph, and of its calls */
	int64_t number;          /* provenance_call.number */
};

/* A launch of a generated kernel, or an op that compiled code called. */
struct join_launch {
	uint32_t kernel;         /* id in join.kernels */
	uint32_t range;          /* span: the run of its graph; ROW_NONE = not known */
	uint32_t row;            /* span: the launching call or op, which orders the launches of a range */
	uint32_t work;           /* row of gpu_op; ROW_NONE = this is an op */
	uint32_t place, of;      /* it is launch `place` of `of` of the kernel in the range; of 0 = not known */
	uint32_t frame, hash;    /* string ids: compiled frame around it, hash of its code; 0 = not known */
	uint32_t told;           /* in join.told; 0 = nothing */
};

/* What is told of a launch. */
struct join_told {
	const struct provenance_call *stack_of; /* the call whose stack it is; NULL = not known */
	uint32_t arg[4];         /* string ids: ops, nodes, lines, match; 0 = not known */
};

struct join {
	struct profile *p;
	const struct provenance *v;
	struct intern kernels;   /* names of the kernels that are called */
	struct intern ids;       /* hashes of graphs and kernels, compile ids; 0 = not stated */
	struct join_graph {
		uint32_t key, compile_id; /* in ids */
	} *graph;                /* of provenance.graph */
	struct intern defined;   /* join_define */
	uint32_t *only_hash, cap_only; /* by id in `defined` of a kernel with any hash: its hash, in ids; INTERN_NONE = several */
	struct join_call *call;  /* by kernel, graph and number */
	struct join_group {
		uint32_t first;  /* its first call; the last group has none, and ends the one before */
		uint32_t hash;   /* join_hash_of_kernel */
	} *group;                /* of each pair of a kernel and a graph that calls it; one more at the end */
	uint32_t *first;         /* by kernel: its first group; one more at the end */
	struct intern counts;    /* pairs of a kernel and how often a graph calls it */
	uint32_t *range;         /* by span: the span of the run of a graph around it; ROW_NONE */
	uint32_t *frame;         /* by span: string id of the compiled frame around it; 0 = none */
	uint32_t *root;          /* by span: the outermost op around it within the run; ROW_NONE */
	struct join_launch *launch;
	struct intern keys;      /* launches of which the same is told */
	uint32_t *told_of_key;   /* by id in keys: in told */
	struct join_told *told;
	struct intern told_keys; /* id = place in told */
	uint32_t *set_of_key;    /* by id in set_keys: argument set; 0 = not yet made */
	struct intern set_keys;
	uint32_t *told_of_root;  /* by span: what the op got; 0 = nothing */
	uint32_t n_calls, cap_calls, n_groups, cap_groups, n, cap, cap_keys, n_told, cap_told, cap_sets;
	uint64_t told_launches;  /* launches of which something is told */
};

static int calls_in_order(const void *a, const void *b)
{
	const struct join_call *x = a, *y = b;
	return COMPARE(x->kernel, y->kernel) ?: COMPARE(x->graph, y->graph) ?: COMPARE(x->number, y->number) ?: COMPARE(x->call, y->call);
}

/* Whether a graph defines a kernel (in kernels) with this hash (in ids). */
static bool join_defines(const struct join *j, uint32_t graph, uint32_t kernel, uint32_t hash)
{
	const uint32_t key[] = {graph, kernel, hash};
	return intern_find(&j->defined, (struct str){(const char *)key, sizeof key}) != INTERN_NONE;
}

static void join_define(struct join *j, uint32_t graph, uint32_t kernel, uint32_t hash)
{
	const uint32_t key[] = {graph, kernel, hash}, any[] = {graph, kernel, 0};
	(void)intern_put(&j->defined, (const char *)key, sizeof key);
	const uint32_t id = intern_put(&j->defined, (const char *)any, sizeof any);
	MEM_GROW_ZERO(j->only_hash, j->cap_only, id + 1);
	j->only_hash[id] = j->only_hash[id] && j->only_hash[id] != hash ? INTERN_NONE : hash;
}

/* The hash of a kernel's code in a graph, in ids; 0 = not stated, INTERN_NONE = the graph states several. */
static uint32_t join_hash_of_kernel(const struct join *j, uint32_t graph, uint32_t kernel)
{
	const uint32_t any[] = {graph, kernel, 0}, id = intern_find(&j->defined, (struct str){(const char *)any, sizeof any});
	return id == INTERN_NONE ? 0 : j->only_hash[id];
}

static void join_index_graphs(struct join *j)
{
	j->graph = NEW_ARRAY(j->v->n, struct join_graph);
	for (uint32_t g = 0; g < j->v->n; g++) {
		const struct provenance_graph *x = &j->v->graph[g];
		j->graph[g] = (struct join_graph){intern_str(&j->ids, x->key), intern_str(&j->ids, x->compile_id)};
		for (uint32_t i = 0; i < x->n_calls; i++)
			MEM_PUSH(j->call, j->n_calls, j->cap_calls, (struct join_call){intern_str(&j->kernels, x->call[i].kernel), g, i, x->call[i].number});
	}
	for (uint32_t g = 0; g < j->v->n; g++) {
		const struct provenance_graph *x = &j->v->graph[g];
		for (uint32_t i = 0; i < x->n_kernels; i++) {
			const uint32_t kernel = intern_find(&j->kernels, x->kernel[i].kernel), hash = intern_str(&j->ids, x->kernel[i].hash);
			if (kernel != INTERN_NONE && hash)
				join_define(j, g, kernel, hash);
		}
	}
}

static void join_index(struct join *j)
{
	join_index_graphs(j);
	if (j->n_calls)
		qsort(j->call, j->n_calls, sizeof *j->call, calls_in_order);
	j->first = NEW_ARRAY(j->kernels.n + 1, uint32_t);
	for (uint32_t i = 0, end; i < j->n_calls; i = end) {
		for (end = i; end < j->n_calls && j->call[end].kernel == j->call[i].kernel && j->call[end].graph == j->call[i].graph; end++)
			;
		const uint32_t count[] = {j->call[i].kernel, end - i};
		(void)intern_put(&j->counts, (const char *)count, sizeof count);
		MEM_PUSH(j->group, j->n_groups, j->cap_groups, (struct join_group){i, join_hash_of_kernel(j, j->call[i].graph, j->call[i].kernel)});
		j->first[j->call[i].kernel + 1] = j->n_groups;
	}
	MEM_GROW(j->group, j->cap_groups, j->n_groups + 1);
	j->group[j->n_groups] = (struct join_group){j->n_calls, 0};
	for (uint32_t i = 1; i <= j->kernels.n; i++)
		j->first[i] = j->first[i] > j->first[i - 1] ? j->first[i] : j->first[i - 1];
}

/* ---- launches ---- */

/* Fills range, frame and root. A parent stands before its children. */
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
		const bool runs = p->span.kind[i] == SPAN_USER && inductor_is_graph_range(name);
		j->range[i] = runs ? i : up == ROW_NONE ? ROW_NONE : j->range[up];
		j->frame[i] = str_starts(name, STR(FRAME_RANGE)) ? p->span.name[i] : up == ROW_NONE || str_starts(name, STR("CompiledFunctionBackward")) ? 0 : j->frame[up];
		if (runs || j->range[i] == ROW_NONE)
			continue;
		j->root[i] = j->root[up] != ROW_NONE ? j->root[up] : p->span.kind[i] == SPAN_OP ? i : ROW_NONE;
	}
}

/* The span that launched the work: of a graph's replay the op at its capture, if known; else the API call, else the op. ROW_NONE. */
static uint32_t join_launcher(const struct profile *p, uint32_t g)
{
	if (gpu_is_replayed(&p->gpu_op, g) && p->gpu_op.op[g] != ROW_NONE)
		return p->gpu_op.op[g];
	return p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
}

/* The run of the graph that the work belongs to. Of a CUDA graph whose capture shows no range, the range around the launch of the CUDA graph. */
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

/* ---- calls of launches ---- */

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

/* What tells the graph of a launch, in join.ids; 0 = not known, INTERN_NONE = none of provenance. */
struct join_facts {
	uint32_t kernel;         /* in join.kernels */
	uint32_t key, compile_id, hash;
};

static struct join_facts join_facts_of(const struct join *j, const struct join_launch *l)
{
	const struct profile *p = j->p;
	const struct str key = l->range == ROW_NONE ? STR("") : inductor_graph_key(profile_str(p, p->span.name[l->range]));
	return (struct join_facts){l->kernel, intern_find(&j->ids, key), intern_find(&j->ids, join_compile_id(profile_str(p, l->frame))), intern_find(&j->ids, profile_str(p, l->hash))};
}

/* How well a graph fits a launch; SOURCE_NONE = it does not. The cheap questions come first: a kernel may be in very many graphs. */
static enum source_match join_fits(const struct join *j, const struct join_facts *l, const struct join_group *of)
{
	const uint32_t graph = j->call[of->first].graph;
	const struct join_graph *x = &j->graph[graph];
	const bool by_key = l->key && x->key;
	if (by_key ? l->key != x->key : l->compile_id && x->compile_id && l->compile_id != x->compile_id)
		return SOURCE_NONE;
	const bool same_code = l->hash && (of->hash == INTERN_NONE ? join_defines(j, graph, l->kernel, l->hash) : of->hash == l->hash);
	if (l->hash && of->hash && !same_code && j->v->graph[graph].has_code)
		return SOURCE_NONE;
	return by_key ? SOURCE_BY_GRAPH : same_code ? SOURCE_BY_CODE : SOURCE_BY_NAME;
}

/* What the calls have in common that a launch may be of. */
struct join_choice {
	struct str ops, nodes, lines;
	const struct provenance_call *stack_of;
	bool any;                /* there is one at least */
	bool differs;            /* in ops, nodes or lines */
	bool all_calls;          /* one stands for all calls of its kernel (number -1) */
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

/* Adds the calls [first, end) of the kernel in one graph; only the launch's own, if the order tells which it is. */
static void choice_add_graph(const struct join *j, struct join_choice *c, const struct join_launch *l, uint32_t first, uint32_t end)
{
	const struct provenance_graph *x = &j->v->graph[j->call[first].graph];
	const bool by_order = end - first > 1 && l->of == end - first && j->call[first].number >= 0;
	for (uint32_t i = by_order ? first + l->place : first; i < (by_order ? first + l->place + 1 : end); i++)
		choice_add(c, &x->call[j->call[i].call]);
}

/* Puts a choice into join.told. */
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

/* What is told of a launch, in join.told: what the calls have in common that fit best. */
static uint32_t join_tell(struct join *j, const struct join_launch *l)
{
	const struct join_facts facts = join_facts_of(j, l);
	struct join_choice c = {0};
	enum source_match best = SOURCE_NONE;
	for (uint32_t i = j->first[l->kernel]; i < j->first[l->kernel + 1]; i++) {
		const enum source_match fits = join_fits(j, &facts, &j->group[i]);
		if (fits == SOURCE_NONE || fits < best)
			continue;
		if (fits > best)
			c = (struct join_choice){0};
		best = fits;
		choice_add_graph(j, &c, l, j->group[i].first, j->group[i + 1].first);
	}
	return best == SOURCE_NONE ? 0 : join_keep(j, &c, best);
}

static void join_tell_launches(struct join *j)
{
	for (uint32_t i = 0; i < j->n; i++) {
		struct join_launch *l = &j->launch[i];
		const uint32_t count[] = {l->kernel, l->of};
		if (intern_find(&j->counts, (struct str){(const char *)count, sizeof count}) == INTERN_NONE)
			l->place = l->of = 0; /* no graph calls it so often: its place tells nothing */
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

/* ---- arguments of work and ops ---- */

static void join_put_arg(struct profile *p, uint32_t key, uint32_t value, bool is_string)
{
	const uint32_t a = rows_push(&p->arg, &store_tables[TABLE_arg]);
	if (a == ROW_NONE)
		return;
	p->arg.key[a] = key;
	p->arg.value[a] = value;
	p->arg.is_string[a] = is_string;
}

/* The argument set of a row that has `set` and gets `told`. stack: string id of its new call stack; 0 = it keeps the one it has. */
static uint32_t join_args(struct join *j, uint32_t set, uint32_t told, uint32_t stack)
{
	static const enum arg_key keys[] = {ARG_SOURCE_OPS, ARG_SOURCE_NODES, ARG_SOURCE_LINES, ARG_SOURCE_MATCH};
	struct profile *p = j->p;
	const uint32_t key[] = {set, told, stack}, id = intern_put(&j->set_keys, (const char *)key, sizeof key);
	MEM_GROW_ZERO(j->set_of_key, j->cap_sets, id + 1);
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

/* The call stack of an op of compiled code: that of its call, then the Python frames around the op. String id; 0 = not known. */
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
	intern_release(&j->ids);
	intern_release(&j->counts);
	intern_release(&j->defined);
	mem_free(j->only_hash);
	intern_release(&j->keys);
	intern_release(&j->told_keys);
	intern_release(&j->set_keys);
	mem_free(j->graph);
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
	intern_init(&j.ids);
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
