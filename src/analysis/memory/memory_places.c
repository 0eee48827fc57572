#include "analysis/memory/memory_places.h"

#include "analysis/analysis.h"
#include "analysis/names/autograd_names.h"
#include "analysis/names/names.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "op/op_args.h"

#include <stdlib.h>

/* What the name of a range makes of it. */
enum place_bits {
	PLACE_ENGINE = 1,      /* autograd runs a node: the engine's range, or the node's where engines did not record theirs */
	PLACE_CALL = 2,        /* an op with a schema, or a node of autograd */
	PLACE_OPTIMIZER = 4,   /* Optimizer.step */
	PLACE_LOADER = 8,
	PLACE_ACCUMULATE = 16, /* AccumulateGrad itself */
};

static unsigned bits_at(const struct profile *p, uint32_t i)
{
	uint32_t name = p->span.name[i];
	enum span_kind kind = (enum span_kind)p->span.kind[i];
	if (kind != SPAN_OP && kind != SPAN_USER)
		return 0;
	unsigned bits = (name_is(p, name, NAME_OPTIMIZER_STEP) ? PLACE_OPTIMIZER : 0) | (name_is_dataloader(p, name) ? PLACE_LOADER : 0);
	if (kind == SPAN_USER)
		return bits;
	if (name_is(p, name, NAME_ENGINE))
		return bits | PLACE_ENGINE;
	enum autograd_name a = name_autograd(p, name);
	if (a == AUTOGRAD_NODE || a == AUTOGRAD_ACCUMULATE)
		bits |= PLACE_ENGINE | PLACE_CALL | (a == AUTOGRAD_ACCUMULATE ? PLACE_ACCUMULATE : 0);
	return bits | (name_is(p, name, NAME_SCOPED) ? PLACE_CALL : 0);
}

/* Rows of a parent come before those of its children. */
static void places_of_spans(struct memory_places *m, const struct profile *p)
{
	m->of_span = NEW_ARRAY_RAW(p->span.rows.n, struct memory_place);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i];
		unsigned b = bits_at(p, i);
		struct memory_place *w = &m->of_span[i];
		*w = up == ROW_NONE ? (struct memory_place){ROW_NONE, ROW_NONE, ROW_NONE, ROW_NONE} : m->of_span[up];
		if (b & PLACE_CALL && w->call == ROW_NONE)
			w->call = i;
		if (b & PLACE_ENGINE && w->engine == ROW_NONE)
			w->engine = i;
		if (b & PLACE_OPTIMIZER)
			w->optimizer = i;
		if (b & PLACE_LOADER)
			w->loader = i;
	}
}

/* The outermost ranges of autograd, and the outermost ops outside of it, of all threads by time: an op outside ends a pass. */
static void find_passes(struct memory_places *m, const struct profile *p)
{
	struct sort_item *v = NEW_ARRAY_RAW(p->span.rows.n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (m->of_span[i].engine == i || (m->of_span[i].call == i && m->of_span[i].engine == ROW_NONE))
			v[n++] = (struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0};
	sort_items(v, n);
	m->pass = NEW_ARRAY(p->span.rows.n, uint32_t);
	uint32_t cap = 0;
	bool between = true;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = v[k].row;
		if (m->of_span[i].engine != i) {
			between = true;
			continue;
		}
		if (between) {
			MEM_PUSH(m->pass_end_ns, m->n_passes, cap, INT64_MIN);
			between = false;
		}
		m->pass[i] = m->n_passes - 1;
		int64_t *end = &m->pass_end_ns[m->n_passes - 1];
		*end = span_end(p, i) > *end ? span_end(p, i) : *end;
	}
	mem_free(v);
}

static int64_t tensor_bytes(const struct op_arg *x, const struct op_tensor *t)
{
	int64_t bits;
	if (t->elements < 0 || !dtype_bits(x->dtype) || __builtin_mul_overflow(t->elements, dtype_bits(x->dtype), &bits))
		return -1;
	return bits / 8 + (bits % 8 != 0);
}

/* Kineto writes [] for what is no tensor and for a tensor of one element alike; the type tells them apart. */
static bool memory_places_is_tensor(const struct op_arg *x, const struct op_tensor *t)
{
	return x->dtype != DTYPE_UNKNOWN || t->rank;
}

static void sizes_of_args(struct memory_places *m, const struct profile *p)
{
	uint32_t n = 0, cap = 0;
	m->first = NEW_ARRAY((size_t)p->arg_set.rows.n + 1, uint32_t);
	for (uint32_t set = 0; set < p->arg_set.rows.n; set++) {
		struct op_facts f = {0};
		struct op_args a = {0};
		char why[160];
		m->first[set] = n;
		if (!profile_arg(p, set, ARG_INPUT_DIMS, &f.dims))
			continue;
		profile_arg(p, set, ARG_INPUT_TYPES, &f.types);
		if (op_args_parse(&a, &f, why) == 0)
			for (unsigned i = 0; i < a.n; i++)
				for (uint32_t k = 0; k < a.arg[i].n_tensors; k++) {
					const struct op_tensor *t = &a.tensor[a.arg[i].tensor + k];
					if (!memory_places_is_tensor(&a.arg[i], t))
						continue;
					MEM_PUSH(m->bytes, n, cap, tensor_bytes(&a.arg[i], t));
				}
		op_args_release(&a);
	}
	m->first[p->arg_set.rows.n] = n;
}

static int by_pass_and_bytes(const void *a, const void *b)
{
	const struct memory_gradient *x = a, *y = b;
	return COMPARE(x->pass, y->pass) ?: COMPARE(x->bytes, y->bytes);
}

/* The first op inside AccumulateGrad (detach, add_, clone) has the gradient as its first argument. */
static void find_gradients(struct memory_places *m, const struct profile *p)
{
	uint32_t cap = 0;
	m->gradients_sized = true;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!(bits_at(p, i) & PLACE_ACCUMULATE))
			continue;
		uint32_t child = i + 1;
		bool has = child < p->span.rows.n && p->span.parent[child] == i && p->span.kind[child] == SPAN_OP;
		uint32_t set = has ? p->span.args[child] : 0;
		if (m->first[set] == m->first[set + 1] || m->bytes[m->first[set]] < 0) {
			m->gradients_sized = false;
			continue;
		}
		MEM_PUSH(m->gradient, m->n_gradients, cap, (struct memory_gradient){m->pass[m->of_span[i].engine], m->bytes[m->first[set]]});
	}
	if (m->n_gradients)
		qsort(m->gradient, m->n_gradients, sizeof *m->gradient, by_pass_and_bytes);
}

static void find_copies(struct memory_places *m, const struct profile *p)
{
	m->from_host = NEW_ARRAY(p->span.rows.n, uint8_t);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t op = p->gpu_op.op[g];
		if (p->gpu_op.kind[g] != GPU_MEMCPY || op == ROW_NONE || m->of_span[op].call == ROW_NONE)
			continue;
		struct str name = profile_str(p, p->gpu_op.name[g]);
		if (str_has_nocase(name, STR("HtoD")) || str_has_nocase(name, STR("HostToDevice")))
			m->from_host[m->of_span[op].call] = 1;
	}
}

void memory_places_init(struct memory_places *m, const struct profile *p)
{
	*m = (struct memory_places){0};
	places_of_spans(m, p);
	find_passes(m, p);
	sizes_of_args(m, p);
	find_gradients(m, p);
	find_copies(m, p);
}

void memory_places_release(struct memory_places *m)
{
	mem_free(m->of_span);
	mem_free(m->pass);
	mem_free(m->pass_end_ns);
	mem_free(m->gradient);
	mem_free(m->from_host);
	mem_free(m->bytes);
	mem_free(m->first);
}

/* The gradients of a pass that are at most `bytes` large and nearest to it stand before where `bytes` + 1 would. */
bool memory_places_has_gradient(const struct memory_places *m, uint32_t pass, int64_t bytes)
{
	const struct memory_gradient *g = m->gradient;
	uint32_t behind = FIRST_WHERE(i, 0, m->n_gradients, g[i].pass > pass || (g[i].pass == pass && g[i].bytes > bytes));
	return behind && g[behind - 1].pass == pass && memory_fits(bytes, g[behind - 1].bytes);
}
