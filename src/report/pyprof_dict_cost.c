#include "report/pyprof_dict_cost.h"

#include "base/intern.h"
#include "base/mem.h"

struct pyprof_dict_costs {
	struct intern keys; /* direction and marker -> index into cost */
	struct cost *cost;
	uint32_t n, cap;
	const struct pyprof_marker *last;
	struct arena arena;
};

struct pyprof_dict_costs *pyprof_dict_costs_new(void)
{
	struct pyprof_dict_costs *c = NEW(struct pyprof_dict_costs);
	intern_init(&c->keys);
	return c;
}

void pyprof_dict_costs_free(struct pyprof_dict_costs *c)
{
	if (!c)
		return;
	intern_release(&c->keys);
	mem_free(c->cost);
	arena_release(&c->arena);
	mem_free(c);
}

static void put_json(struct buf *b, struct str s)
{
	buf_char(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"' || s.p[i] == '\\')
			buf_char(b, '\\');
		buf_char(b, (unsigned char)s.p[i] < 0x20 ? ' ' : s.p[i]);
	}
	buf_char(b, '"');
}

static void put_list(struct buf *b, const int64_t *v, unsigned n)
{
	buf_char(b, '[');
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buf_cstr(b, ", ");
		buf_i64(b, v[i]);
	}
	buf_char(b, ']');
}

static void put_value(struct buf *b, const struct pyprof_arg *a)
{
	struct buf text = {0};
	if (a->kind == PYPROF_INT)
		buf_i64(&text, a->i);
	else if (a->kind == PYPROF_FLOAT)
		buf_printf(&text, "%.17g", a->f);
	else if (a->kind == PYPROF_BOOL)
		buf_cstr(&text, a->i ? "True" : "False");
	else if (a->kind == PYPROF_STR)
		buf_str(&text, a->s);
	else if (a->kind == PYPROF_SEQ && a->seq_of_ints)
		put_list(&text, a->seq, a->n_seq);
	put_json(b, text.n ? buf_view(&text) : STR(""));
	buf_release(&text);
}

static struct str keep(struct arena *a, struct buf *b)
{
	buf_char(b, ']');
	struct str s = arena_str(a, buf_view(b));
	buf_release(b);
	return s;
}

/* The marker's arguments as a Kineto trace has those of an op. */
static struct op_facts facts_of(struct arena *a, const struct pyprof_marker *m)
{
	struct buf dims = {0}, types = {0}, values = {0}, names = {0};
	struct buf *const all[] = {&dims, &types, &values, &names};
	for (unsigned i = 0; i < m->n; i++) {
		const struct pyprof_arg *x = &m->arg[i];
		for (int k = 0; k < 4; k++)
			buf_char(all[k], i ? ',' : '[');
		put_list(&dims, x->shape, x->has_shape ? x->rank : 0);
		put_json(&types, x->dtype.p ? x->dtype : x->kind == PYPROF_SEQ ? STR("ScalarList") : x->kind == PYPROF_NONE ? STR("") : STR("Scalar"));
		put_value(&values, x);
		put_json(&names, x->name);
	}
	for (int k = 0; k < 4 && !m->n; k++)
		buf_char(all[k], '[');
	return (struct op_facts){
		.name = arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(m->mod), STR_ARG(m->op)), .dims = keep(a, &dims), .types = keep(a, &types),
		.concrete = keep(a, &values), .names = keep(a, &names), .in_elements = -1, .out_elements = -1, .group_size = -1};
}

/* Equal markers are asked about once for each direction. */
static const struct cost *cost_of_marker(struct pyprof_dict_costs *c, const struct pyprof_marker *m, struct str text, bool backward)
{
	struct buf key = {0};
	buf_char(&key, backward ? 'b' : 'f');
	buf_str(&key, text);
	uint32_t at = intern_str(&c->keys, buf_view(&key)) - 1; /* id 0 is the empty string */
	buf_release(&key);
	while (c->n <= at) {
		MEM_GROW(c->cost, c->cap, c->n + 1);
		struct op_facts f = facts_of(&c->arena, m);
		cost_of(&f, COST_DEFAULT, backward ? COST_BACKWARD : COST_FORWARD, &c->arena, &c->cost[c->n++]);
	}
	return &c->cost[at];
}

const struct cost *pyprof_dict_cost_of(struct pyprof_dict_costs *c, struct pyprof_rows *rows, const struct pyprof_row *row,
                                       struct pyprof_dict_cost *out)
{
	*out = (struct pyprof_dict_cost){COST_UNKNOWN, COST_UNKNOWN};
	c->last = NULL;
	for (unsigned i = row->r.marker.n; i-- > 0;) {
		const struct pyprof_marker *marker = pyprof_rows_marker(rows, row->r.marker.v[i]);
		const struct cost *m = marker ? cost_of_marker(c, marker, row->r.marker.v[i], row->r.backward) : NULL;
		if (!m || (m->flops < 0 && m->bytes < 0) || m->class == OP_VIEW)
			continue;
		int parts = m->parts > 1 ? m->parts : 1;
		bool counted = row->r.sub < parts;
		out->flops = m->flops < 0 ? COST_UNKNOWN : counted ? m->flops / parts : 0;
		out->bytes = m->bytes < 0 ? COST_UNKNOWN : counted ? m->bytes / parts : 0;
		c->last = marker;
		return m;
	}
	return NULL;
}

const struct pyprof_marker *pyprof_dict_cost_marker(const struct pyprof_dict_costs *c)
{
	return c->last;
}
