#include "analysis/tree/flame.h"

#include "analysis/analysis.h"
#include "analysis/names/stacks.h"
#include "base/mem.h"
#include "store/torch_names.h"

struct flame_work {
	const struct profile *p;
	struct flame *f;
	struct stacks *stacks;
	enum flame_by by;
	uint32_t *of_stack;  /* stack -> node */
	uint32_t *of_span;   /* span -> node */
};

struct flame_key {
	uint32_t parent, name, kind;
};

static uint32_t child(struct flame *f, uint32_t parent, struct str name, enum flame_kind kind)
{
	if (f->node[parent].depth == FLAME_DEPTH) {
		f->too_deep++;
		return parent;
	}
	struct flame_key k = {parent, intern_str(&f->names, name), kind};
	uint32_t before = f->keys.n, id = intern_put_key(&f->keys, &k, sizeof k);
	if (f->keys.n > before) {
		MEM_GROW(f->node, f->cap, id + 1);
		f->node[id] = (struct flame_node){.name = k.name, .parent = parent, .depth = (uint16_t)(f->node[parent].depth + 1), .kind = (uint8_t)kind};
		f->n = id + 1;
	}
	return id;
}

/* A stack's node comes after those of the stacks around it, which have smaller numbers. */
static void nodes_of_stacks(struct flame_work *w)
{
	uint32_t n = stacks_count(w->stacks);
	w->of_stack = NEW_ARRAY(n, uint32_t);
	for (uint32_t i = 1; w->by != FLAME_OP && i < n; i++) {
		struct str frame;
		uint32_t stack = i;
		stacks_pop(w->stacks, &stack, &frame);
		uint32_t around = w->of_stack[stack];
		bool module = str_starts(frame, STR(TORCH_MODULE));
		if (w->by == FLAME_STACK || module)
			w->of_stack[i] = child(w->f, around, frame, module ? FLAME_NN_MODULE : FLAME_PYTHON);
		else
			w->of_stack[i] = around;
	}
}

static struct str flame_without_number(struct str name)
{
	return str_starts(name, STR(TORCH_STEP)) ? STR(TORCH_ANY_STEP) : name;
}

/* The op around an op, or for FLAME_OP what of ops and annotations is nearest around a range. */
static uint32_t shown_around(const struct flame_work *w, uint32_t i)
{
	const struct spans *s = &w->p->span;
	if (w->by != FLAME_OP) {
		uint32_t up = s->parent[i];
		return up == ROW_NONE ? ROW_NONE : s->kind[up] == SPAN_OP ? up : s->op[up];
	}
	return s->parent[i];
}

/* Rows of a parent come before those of its children. */
static void nodes_of_spans(struct flame_work *w)
{
	const struct spans *s = &w->p->span;
	w->of_span = NEW_ARRAY(s->rows.n, uint32_t);
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t up = shown_around(w, i);
		uint32_t stack = stacks_of(w->stacks, i);
		bool own = w->by != FLAME_OP && up != ROW_NONE && stacks_restarts(w->stacks, i) && stack != stacks_of(w->stacks, up);
		uint32_t around = up != ROW_NONE && !own ? w->of_span[up] : w->of_stack[stack];
		if (s->kind[i] == SPAN_OP)
			w->of_span[i] = child(w->f, around, profile_str(w->p, s->name[i]), FLAME_FRAMEWORK);
		else if (s->kind[i] == SPAN_USER && w->by == FLAME_OP)
			w->of_span[i] = child(w->f, around, flame_without_number(profile_str(w->p, s->name[i])), FLAME_USER);
		else
			w->of_span[i] = around;
	}
}

static void flame_add(struct flame_work *w, uint32_t node, int64_t ns)
{
	w->f->node[node].self_ns += ns;
}

static void flame_add_device(struct flame_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t from = g->op[i] != ROW_NONE ? g->op[i] : g->call[i];
		uint32_t at = from == ROW_NONE ? 0 : w->of_span[from];
		if (!at)
			at = child(w->f, 0, STR("(launched by no recorded op or frame)"), FLAME_NONE);
		at = child(w->f, at, profile_str(w->p, g->name[i]), FLAME_WORK);
		flame_add(w, at, g->dur_ns[i]);
		w->f->node[at].count++;
	}
}

static bool flame_counts(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_USER || kind == SPAN_PYTHON;
}

struct flame_open {
	int64_t end_ns;
	uint32_t node;
	bool python;
};

/* The ranges of one thread that are open; each moment belongs to the innermost. */
struct flame_sweep {
	struct flame_open *v;
	size_t n, cap;
	int64_t cursor;
};

static void go_to(struct flame_work *w, struct flame_sweep *t, int64_t ns)
{
	while (t->n && t->v[t->n - 1].end_ns <= ns) {
		struct flame_open *top = &t->v[--t->n];
		flame_add(w, top->node, top->end_ns - t->cursor);
		t->cursor = top->end_ns;
	}
	if (t->n)
		flame_add(w, t->v[t->n - 1].node, ns - t->cursor);
	t->cursor = ns;
}

static void flame_add_host(struct flame_work *w)
{
	const struct spans *s = &w->p->span;
	struct flame_sweep t = {0};
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			go_to(w, &t, INT64_MAX);
		if (!flame_counts(s->kind[i]))
			continue;
		go_to(w, &t, s->start_ns[i]);
		uint32_t at = w->of_span[i];
		if (!at)
			at = child(w->f, 0, w->by == FLAME_MODULE ? STR("(in no module)") : STR("(in no recorded op)"), FLAME_NONE);
		int64_t end = span_end(w->p, i);
		bool python = s->kind[i] == SPAN_PYTHON;
		while (!python && t.n && t.v[t.n - 1].python && end > t.v[t.n - 1].end_ns)
			t.n--; /* the frame that opens an annotation is left while that goes on (nest.c) */
		if (t.n && end > t.v[t.n - 1].end_ns)
			end = t.v[t.n - 1].end_ns;
		w->f->node[at].count++;
		MEM_PUSH(t.v, t.n, t.cap, (struct flame_open){end, at, python});
	}
	go_to(w, &t, INT64_MAX);
	mem_free(t.v);
}

struct flame *flame_new(const struct profile *p, enum flame_by by, enum flame_metric metric)
{
	struct flame *f = NEW(struct flame);
	struct flame_work w = {.p = p, .f = f, .by = by};
	intern_init(&f->names);
	intern_init(&f->keys); /* key 0, the empty string, is the root */
	MEM_GROW(f->node, f->cap, 1);
	f->node[0] = (struct flame_node){0};
	f->n = 1;
	w.stacks = stacks_new(p);
	f->has_stacks = stacks_any(w.stacks);
	nodes_of_stacks(&w);
	nodes_of_spans(&w);
	if (metric == FLAME_DEVICE)
		flame_add_device(&w);
	else
		flame_add_host(&w);
	for (uint32_t i = 0; i < f->n; i++)
		f->node[i].total_ns = f->node[i].self_ns;
	for (uint32_t i = f->n - 1; i > 0; i--) {
		f->node[f->node[i].parent].total_ns += f->node[i].total_ns;
		f->node[f->node[i].parent].count += f->node[i].count;
	}
	stacks_free(w.stacks);
	mem_free(w.of_stack);
	mem_free(w.of_span);
	return f;
}

void flame_free(struct flame *f)
{
	if (!f)
		return;
	intern_release(&f->names);
	intern_release(&f->keys);
	mem_free(f->node);
	mem_free(f);
}
