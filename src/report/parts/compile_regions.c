#include "report/parts/compile_regions.h"

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/tree/fwdbwd.h"
#include "detect/parts/compiled.h"
#include "detect/parts/compiler_runs.h"
#include "op/inductor_name.h"

enum range_class { RANGE_OTHER, RANGE_FRAME, RANGE_BACKWARD, RANGE_FUNCTION, RANGE_GRAPH, RANGE_CODE, RANGE_GUARD, RANGE_OWN };

/* How far inside a region a range is. */
enum range_depth { IN_REGION, IN_FUNCTION, IN_CODE };

static uint8_t range_class_of(struct str name)
{
	if (compiled_is_frame(name))
		return RANGE_FRAME;
	if (str_eqc(name, "CompiledFunctionBackward"))
		return RANGE_BACKWARD;
	if (str_eqc(name, "CompiledFunction"))
		return RANGE_FUNCTION;
	if (inductor_is_graph_range(name))
		return RANGE_GRAPH;
	if (str_has(name, STR("/torchinductor_")) && str_ends(name, STR("): call")))
		return RANGE_CODE;
	if (str_eqc(name, "TorchDynamo Cache Lookup"))
		return RANGE_GUARD;
	return str_eqc(name, "Pregraph bytecode") || str_starts(name, STR("AOTDispatcher ")) ? RANGE_OWN : RANGE_OTHER;
}

/* A call of a region. */
struct region_call {
	uint32_t span, graph, code, graphs, region;
	uint8_t shown;           /* enum range_depth: the deepest of its ranges */
	bool guarded;
	int64_t guards_ns;
};

struct region_finder {
	const struct profile *p;
	struct compile_regions *out;
	struct name_memo classes;
	uint8_t *compiler;       /* by span: inside the compiler; NULL = there are no calls */
	uint8_t *depth;          /* by span: enum range_depth */
	uint32_t *call;          /* by span: place in v; ROW_NONE */
	struct region_call *v;
	uint32_t n, cap;
};

static uint8_t class_at(const struct region_finder *f, uint32_t span)
{
	const struct profile *p = f->p;
	return span_nests(p->span.kind[span]) ? name_memo_of(&f->classes, p->span.name[span]) : RANGE_OTHER;
}

static bool begins_region(uint8_t class, bool inside)
{
	return class == RANGE_FRAME || class == RANGE_BACKWARD || (!inside && (class == RANGE_FUNCTION || class == RANGE_GRAPH || class == RANGE_CODE));
}

static uint8_t depth_of(uint8_t class)
{
	return class == RANGE_GRAPH || class == RANGE_CODE ? IN_CODE : class == RANGE_FUNCTION || class == RANGE_BACKWARD ? IN_FUNCTION : IN_REGION;
}

/* Parents stand before what is inside them. Guards are in no region. */
static void find_calls(struct region_finder *f)
{
	const struct profile *p = f->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = span_nests(p->span.kind[i]) ? p->span.parent[i] : ROW_NONE;
		uint8_t class = class_at(f, i), depth = depth_of(class);
		bool in_guard = class == RANGE_GUARD || (up != ROW_NONE && f->out->part[up] == COMPILE_GUARD);
		f->out->part[i] = in_guard ? COMPILE_GUARD : COMPILE_OUTSIDE;
		f->call[i] = up == ROW_NONE || in_guard ? ROW_NONE : f->call[up];
		if (in_guard)
			continue;
		if (begins_region(class, f->call[i] != ROW_NONE)) {
			f->call[i] = f->n;
			MEM_PUSH(f->v, f->n, f->cap, (struct region_call){.span = i});
		} else if (up != ROW_NONE && f->depth[up] > depth) {
			depth = f->depth[up];
		}
		if (f->call[i] == ROW_NONE)
			continue;
		struct region_call *c = &f->v[f->call[i]];
		f->depth[i] = depth;
		c->shown = depth > c->shown ? depth : c->shown;
		c->graphs += class == RANGE_GRAPH;
		if (class == RANGE_GRAPH && !c->graph)
			c->graph = p->span.name[i];
		if (class == RANGE_CODE && !c->code)
			c->code = p->span.name[i];
	}
}

bool compile_regions_any(const struct profile *p)
{
	struct region_finder f = {.p = p, .classes = name_memo_new(p, range_class_of)};
	bool any = false;
	for (uint32_t i = 0; i < p->span.rows.n && !any; i++)
		any = begins_region(class_at(&f, i), false);
	name_memo_release(&f.classes);
	return any;
}

/* The call that begins behind these guards, before the next ones and within what is around them; ROW_NONE. */
static uint32_t call_behind(const struct region_finder *f, uint32_t guard)
{
	const struct profile *p = f->p;
	uint32_t up = p->span.parent[guard];
	for (uint32_t i = guard + 1; i < p->span.rows.n && p->span.track[i] == p->span.track[guard]; i++) {
		if (p->span.start_ns[i] < span_end(p, guard))
			continue;
		if ((up != ROW_NONE && p->span.start_ns[i] >= span_end(p, up)) || class_at(f, i) == RANGE_GUARD)
			return ROW_NONE;
		if (f->call[i] != ROW_NONE && f->v[f->call[i]].span == i)
			return f->call[i];
	}
	return ROW_NONE;
}

static void find_guards(struct region_finder *f)
{
	const struct profile *p = f->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i];
		if (f->out->part[i] != COMPILE_GUARD || (up != ROW_NONE && f->out->part[up] == COMPILE_GUARD))
			continue;
		uint32_t c = call_behind(f, i);
		if (c == ROW_NONE) {
			f->out->lost_guards++;
			f->out->lost_guards_ns += span_host_ns(p, i);
			continue;
		}
		f->v[c].guarded = true;
		f->v[c].guards_ns += span_host_ns(p, i);
	}
}

static void group_calls(struct region_finder *f)
{
	struct intern keys;
	uint32_t cap = 0;
	intern_init(&keys);
	for (uint32_t i = 0; i < f->n; i++) {
		struct region_call *c = &f->v[i];
		uint32_t key[] = {f->p->span.name[c->span], c->graph, c->graph ? 0 : c->code, c->shown == IN_CODE};
		c->region = intern_put_key(&keys, key, sizeof key) - 1;
		if (c->region == f->out->n)
			MEM_PUSH(f->out->v, f->out->n, cap, (struct compile_region){.name = key[0], .graph = c->graph, .code = c->code, .shows_wrapper = key[3], .forward = ROW_NONE});
		struct compile_region *r = &f->out->v[c->region];
		r->calls++;
		r->guarded += c->guarded;
		r->graphs = c->graphs > r->graphs ? c->graphs : r->graphs;
		r->part_ns[COMPILE_GUARD] += c->guards_ns;
	}
	intern_release(&keys);
}

static bool is_own_op(uint8_t class) { return class != RANGE_OTHER; }

static uint8_t region_part_of(const struct region_finder *f, uint32_t i)
{
	const struct profile *p = f->p;
	const struct region_call *c = &f->v[f->call[i]];
	bool in_graph = f->out->in_graph[i];
	if (f->compiler[i])
		return COMPILE_COMPILER;
	if (p->span.kind[i] == SPAN_CALL)
		return in_graph ? COMPILE_CALL : COMPILE_EAGER;
	if (f->out->root[i] != ROW_NONE)
		return in_graph ? COMPILE_OP : COMPILE_EAGER;
	return in_graph && c->shown == IN_CODE ? COMPILE_WRAPPER : COMPILE_OWN;
}

static void find_parts(struct region_finder *f)
{
	const struct profile *p = f->p;
	struct compile_regions *out = f->out;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = span_nests(p->span.kind[i]) ? p->span.parent[i] : ROW_NONE, c = f->call[i];
		bool same = up != ROW_NONE && f->call[up] == c;
		out->root[i] = same ? out->root[up] : ROW_NONE;
		if (out->root[i] == ROW_NONE && p->span.kind[i] == SPAN_OP && !is_own_op(class_at(f, i)))
			out->root[i] = i;
		out->of_span[i] = c == ROW_NONE ? ROW_NONE : f->v[c].region;
		if (c == ROW_NONE)
			continue;
		out->in_graph[i] = f->depth[i] >= f->v[c].shown;
		out->part[i] = region_part_of(f, i);
	}
}

/* Each range's time counts for its part, and not for that of the range around it. */
static void sum_parts(struct region_finder *f)
{
	const struct profile *p = f->p;
	int64_t *own_ns = NEW_ARRAY(p->span.rows.n, int64_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!span_nests(p->span.kind[i]))
			continue;
		own_ns[i] += span_host_ns(p, i);
		if (p->span.parent[i] != ROW_NONE)
			own_ns[p->span.parent[i]] -= span_host_ns(p, i);
	}
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (f->call[i] != ROW_NONE)
			f->out->v[f->out->of_span[i]].part_ns[f->out->part[i]] += own_ns[i];
	mem_free(own_ns);
}

static void link_backward(struct region_finder *f)
{
	struct fwdbwd *links = NULL;
	for (uint32_t i = 0; i < f->n; i++) {
		struct compile_region *r = &f->out->v[f->v[i].region];
		if (class_at(f, f->v[i].span) != RANGE_BACKWARD || r->forward != ROW_NONE)
			continue;
		links = links ? links : fwdbwd_new(f->p);
		uint32_t forward = fwdbwd_forward(links, f->v[i].span);
		r->forward = forward == ROW_NONE ? ROW_NONE : f->out->of_span[forward];
	}
	if (links)
		fwdbwd_free(links);
}

void compile_regions_find(const struct profile *p, struct compile_regions *out)
{
	uint32_t n = p->span.rows.n;
	*out = (struct compile_regions){
		.of_span = NEW_ARRAY(n, uint32_t), .part = NEW_ARRAY(n, uint8_t), .in_graph = NEW_ARRAY(n, uint8_t), .root = NEW_ARRAY(n, uint32_t),
	};
	struct region_finder f = {
		.p = p, .out = out, .classes = name_memo_new(p, range_class_of), .depth = NEW_ARRAY(n, uint8_t), .call = NEW_ARRAY(n, uint32_t),
	};
	find_calls(&f);
	find_guards(&f);
	if (f.n)
		f.compiler = compiler_runs_new(p);
	group_calls(&f);
	find_parts(&f);
	if (f.n)
		sum_parts(&f);
	link_backward(&f);
	name_memo_release(&f.classes);
	mem_free(f.compiler);
	mem_free(f.depth);
	mem_free(f.call);
	mem_free(f.v);
}

void compile_regions_release(struct compile_regions *r)
{
	mem_free(r->v);
	mem_free(r->of_span);
	mem_free(r->part);
	mem_free(r->in_graph);
	mem_free(r->root);
}

int64_t compile_region_host_ns(const struct compile_region *r)
{
	int64_t ns = 0;
	for (unsigned k = COMPILE_OWN; k < COMPILE_GUARD; k++)
		ns += r->part_ns[k];
	return ns;
}
