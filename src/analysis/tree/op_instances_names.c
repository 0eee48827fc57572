#include "analysis/costs/tc_used.h"
#include "analysis/names/names.h"
#include "analysis/tree/op_instances_work.h"

#include "base/sort.h"
#include "op/dtype.h"
#include "store/torch_names.h"

#include <ctype.h>
#include <stdlib.h>

static uint32_t op_instances_names_arg_of(const struct ops_work *w, uint32_t span, enum arg_key key)
{
	return profile_arg_id(w->p, w->p->span.args[span], key);
}

static struct str op_instances_names_text_of(const struct ops_work *w, uint32_t span, enum arg_key key)
{
	return profile_str(w->p, op_instances_names_arg_of(w, span, key));
}

static struct str kept(struct ops_work *w, const struct buf *b)
{
	return intern_get(&w->texts, intern_str(&w->texts, buf_view(b)));
}

/* --- paths ------------------------------------------------------------------------------------------------------ */

/* DLProf writes "<module>" as "module" and "<lambda>" as "lambda". */
static void put_without_angles(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != '<' && s.p[i] != '>')
			buf_char(b, s.p[i]);
}

/* A layer's own part of its name; a module that prints its whole sub-tree is called by its class. */
static struct str layer_part(const struct layers *l, uint32_t layer)
{
	struct str name = intern_get(&l->names, l->v[layer].name);
	if (l->v[layer].parent != LAYER_NONE) {
		size_t skip = intern_get(&l->names, l->v[l->v[layer].parent].name).n + 1;
		if (skip < name.n)
			name = (struct str){name.p + skip, name.n - skip};
	}
	return memchr(name.p, '\n', name.n) && l->v[layer].type ? intern_get(&l->names, l->v[layer].type) : name;
}

static uint32_t path_of_layer(struct ops_work *w, uint32_t layer)
{
	struct layers *l = w->layers;
	if (!w->layer_path)
		w->layer_path = NEW_ARRAY(l->n, uint32_t);
	/* A parent stands before its children. */
	for (; w->n_layer_paths <= layer; w->n_layer_paths++) {
		uint32_t i = w->n_layer_paths;
		buf_clear(&w->text);
		if (l->v[i].parent != LAYER_NONE)
			buf_str(&w->text, intern_get(&w->texts, w->layer_path[l->v[i].parent]));
		buf_char(&w->text, '/');
		buf_str(&w->text, layer_part(l, i));
		w->layer_path[i] = intern_str(&w->texts, buf_view(&w->text));
	}
	return w->layer_path[layer];
}

/* --- types ------------------------------------------------------------------------------------------------------ */

static bool op_instances_names_in_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '/' || c == ':' || c == '-';
}

/* "/blocks.0/conv1/Conv" is "Conv", "fusion.12" is "fusion", "Conv2D_1" is "Conv2D". */
static struct str word_type(struct str s)
{
	size_t slash = s.n;
	while (slash && s.p[slash - 1] != '/')
		slash--;
	if (slash < s.n)
		s = (struct str){s.p + slash, s.n - slash};
	size_t n = s.n;
	while (n && isdigit((unsigned char)s.p[n - 1]))
		n--;
	return n > 1 && n < s.n && (s.p[n - 1] == '_' || s.p[n - 1] == '.') ? (struct str){s.p, n - 1} : s;
}

/* The type of a node or layer of a library: each word without its path and number; of a copy for another layer what it is alone. */
static struct str library_type(struct ops_work *w, struct str name)
{
	struct buf b = {0};
	ptrdiff_t cut = str_find(name, STR(" for "));
	if (cut > 0)
		name.n = (size_t)cut;
	for (size_t i = 0, k; i < name.n; i = k) {
		for (k = i; k < name.n && op_instances_names_in_word(name.p[k]); k++)
			;
		if (k == i)
			buf_char(&b, name.p[k++]);
		else
			buf_str(&b, word_type((struct str){name.p + i, k - i}));
	}
	struct str out = kept(w, &b);
	buf_release(&b);
	return out;
}

/* "aten::conv2d" is "conv2d". */
static struct str without_scope(struct str name)
{
	for (size_t i = name.n; i-- > 1;)
		if (name.p[i] == ':' && name.p[i - 1] == ':' && i + 1 < name.n)
			return (struct str){name.p + i + 1, name.n - i - 1};
	return name;
}

static struct str without_engine(struct str name)
{
	str_skip(&name, STR(TORCH_ENGINE));
	return name;
}

static struct str own_type(struct ops_work *w, uint32_t span)
{
	struct str name = profile_str(w->p, w->p->span.name[span]), op = op_instances_names_text_of(w, span, ARG_MARKER_OP);
	if (op_instances_names_arg_of(w, span, ARG_MARKER) && op.n)
		return op;
	if (!ops_is_library(w->p, span))
		return without_scope(without_engine(name));
	struct str stated = op_instances_names_text_of(w, span, ARG_OP_TYPE); /* of a node of TensorFlow */
	return stated.n ? stated : library_type(w, name);
}

/* Could it use Tensor Cores, by its type: convolutions and products of matrices. */
static bool type_is_eligible(struct str type, bool loose)
{
	static const char *const more[] = {"__matmul__", "__rmatmul__", "einsum", "lstm", "gru", "rnn_tanh", "rnn_relu"};
	static const char *const within[] = {"conv", "gemm", "matmul"};
	struct buf b = {0};
	buf_printf(&b, "aten::" STR_FMT, STR_ARG(type));
	bool yes = op_tc_eligible(buf_view(&b)) || op_tc_eligible(type);
	buf_release(&b);
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		yes |= str_eqc(type, more[i]);
	for (size_t i = 0; loose && i < sizeof within / sizeof within[0]; i++)
		yes |= str_has_nocase(type, str_from(within[i]));
	return yes;
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* What an op's name is made of. */
struct op_instances_names_parts {
	uint32_t func_stack, path, call_stack;
};

static struct op_instances_names_parts op_instances_names_parts_of(struct ops_work *w, uint32_t span)
{
	struct context c = {0};
	if (w->context[span])
		memcpy(&c, intern_get(&w->contexts, w->context[span]).p, sizeof c);
	uint32_t layer = w->layers ? w->layers->of_span[span] : LAYER_NONE;
	if (op_instances_names_arg_of(w, span, ARG_MARKER)) { /* opscope.torch says it at the op itself */
		c.func_stack = c.func_stack ? c.func_stack : op_instances_names_arg_of(w, span, ARG_FUNCTION_STACK);
		c.call_stack = c.call_stack ? c.call_stack : op_instances_names_arg_of(w, span, ARG_CALL_STACK);
	}
	if (c.func_stack)
		return (struct op_instances_names_parts){.func_stack = c.func_stack};
	return (struct op_instances_names_parts){.path = layer == LAYER_NONE ? c.path : path_of_layer(w, layer), .call_stack = c.call_stack};
}

/* Called from several lines at one place of the model: the second is "relu(2)". */
static void op_instances_names_put_number(struct ops_work *w, uint32_t call_stack, struct buf *name)
{
	if (!call_stack)
		return;
	uint32_t before = w->numbers.n, base = intern_str(&w->numbers, buf_view(name));
	MEM_GROW(w->count_of, w->cap_count_of, base + 1);
	if (w->numbers.n > before)
		w->count_of[base] = 0;
	struct { uint32_t tag, base, stack; } key = {UINT32_MAX, base, call_stack};
	before = w->numbers.n;
	uint32_t at = intern_put(&w->numbers, (const char *)&key, sizeof key);
	MEM_GROW(w->count_of, w->cap_count_of, at + 1);
	if (w->numbers.n > before)
		w->count_of[at] = ++w->count_of[base];
	if (w->count_of[at] > 1)
		buf_printf(name, "(%u)", w->count_of[at]);
}

/* The name, and how much of it is the path with its last '/'. */
static struct str op_instances_names_name_of(struct ops_work *w, uint32_t span, struct op_instances_names_parts x, struct str type, uint32_t *path_n)
{
	struct buf b = {0};
	if (x.func_stack) {
		put_without_angles(&b, profile_str(w->p, x.func_stack));
		for (*path_n = (uint32_t)b.n; *path_n && b.p[*path_n - 1] != '/';)
			--*path_n;
	} else {
		struct str name = profile_str(w->p, w->p->span.name[span]);
		bool library = ops_is_library(w->p, span) && !op_instances_names_arg_of(w, span, ARG_MARKER);
		buf_str(&b, intern_get(&w->texts, x.path));
		buf_char(&b, '/');
		*path_n = (uint32_t)b.n;
		if (library) {
			/* Names of layers are paths themselves, up to the first that is fused. */
			while (name.n > 1 && name.p[0] == '/')
				name.p++, name.n--;
			for (size_t i = 0; i < name.n && op_instances_names_in_word(name.p[i]); i++)
				if (name.p[i] == '/')
					*path_n = (uint32_t)(b.n + i + 1);
			buf_str(&b, name);
		} else {
			buf_str(&b, type.n ? type : STR("(unnamed)"));
			op_instances_names_put_number(w, x.call_stack, &b);
		}
	}
	struct str out = kept(w, &b);
	buf_release(&b);
	return out;
}

/* --- types of data, stacks -------------------------------------------------------------------------------------- */

/* Adds the types in a list as Kineto writes it, ["float", "Scalar"], that are of tensors and not yet there. */
static struct str join_types(struct ops_work *w, struct str so_far, struct str list)
{
	struct buf b = {0};
	struct str piece;
	buf_str(&b, so_far);
	while (str_split(&list, '"', &piece)) {
		if (!str_split(&list, '"', &piece))
			break;
		enum dtype t = dtype_find(piece);
		if (t == DTYPE_UNKNOWN || str_has(buf_view(&b), str_from(dtype_name(t))))
			continue;
		if (b.n)
			buf_cstr(&b, ", ");
		buf_cstr(&b, dtype_name(t));
	}
	struct str out = kept(w, &b);
	buf_release(&b);
	return out;
}

static struct str op_instances_names_stack_of(struct ops_work *w, uint32_t span)
{
	if (!w->stacks)
		return (struct str){"", 0};
	struct buf frames = {0}, out = {0};
	stacks_text(w->stacks, stacks_of(w->stacks, span), &frames);
	struct str text = buf_view(&frames);
	while (text.n) {
		const char *cut = memrchr(text.p, ';', text.n);
		const char *begin = cut ? cut + 1 : text.p;
		if (out.n)
			buf_char(&out, '\n');
		buf_put(&out, begin, (size_t)(text.p + text.n - begin));
		text.n = cut ? (size_t)(cut - text.p) : 0;
	}
	struct str kept_text = kept(w, &out);
	buf_release(&frames);
	buf_release(&out);
	return kept_text;
}

/* --- ops -------------------------------------------------------------------------------------------------------- */

/* The op of this name, direction and shapes, made at first sight. */
static uint32_t op_instances_names_op_at(struct ops_work *w, const struct op *like, struct str shapes)
{
	struct buf key = {0};
	buf_char(&key, (char)like->direction);
	buf_put(&key, &like->name.n, sizeof like->name.n);
	buf_str(&key, like->name);
	buf_put(&key, &shapes.n, sizeof shapes.n);
	buf_str(&key, shapes);
	uint32_t before = w->names.n, at = intern_str(&w->names, buf_view(&key)) - 1;
	buf_release(&key);
	if (w->names.n > before) {
		MEM_GROW(w->o->op, w->cap_ops, at + 1);
		w->o->op[at] = *like;
		w->o->n_ops = at + 1;
	}
	return at;
}

static uint32_t *slot_of_key(struct ops_work *w, const void *key, size_t n)
{
	uint32_t before = w->keys.n, id = intern_put(&w->keys, key, n);
	MEM_GROW(w->op_of_key, w->cap_op_of_key, id + 1);
	if (w->keys.n > before)
		w->op_of_key[id] = ROW_NONE;
	return &w->op_of_key[id];
}

static uint32_t name_range(struct ops_work *w, const struct draft *d)
{
	struct op_instances_names_parts x = op_instances_names_parts_of(w, d->row);
	struct { uint32_t tag, func, path, stack, name, dims, types, type, dir; } key = {
		'r', x.func_stack, x.path, x.call_stack, w->p->span.name[d->row], op_instances_names_arg_of(w, d->row, ARG_INPUT_DIMS),
		op_instances_names_arg_of(w, d->row, ARG_INPUT_TYPES), op_instances_names_arg_of(w, d->row, ARG_OP_DATA_TYPE), d->direction,
	};
	uint32_t *slot = slot_of_key(w, &key, sizeof key);
	if (*slot != ROW_NONE)
		return *slot;
	struct str type = own_type(w, d->row);
	struct op op = {.type = type, .direction = d->direction, .data_type = {"", 0}, .forward = ROW_NONE};
	op.name = op_instances_names_name_of(w, d->row, x, type, &op.path_n);
	op.stack = op_instances_names_stack_of(w, d->row);
	op.tc_eligible = type_is_eligible(type, ops_is_library(w->p, d->row) || d->direction == DIR_BACKWARD);
	if (d->direction == DIR_BACKWARD)
		op.type = STR("backward");
	*slot = op_instances_names_op_at(w, &op, profile_str(w->p, key.dims));
	struct op *made = &w->o->op[*slot];
	made->data_type = join_types(w, made->data_type, profile_str(w->p, key.types));
	if (!made->data_type.n && key.type && dtype_find(profile_str(w->p, key.type)) != DTYPE_UNKNOWN)
		made->data_type = str_from(dtype_name(dtype_find(profile_str(w->p, key.type))));
	return *slot;
}

/* The finished forward instance of a backward one: of the backward of a backward, that of the first forward op. */
static uint32_t forward_instance(const struct ops_work *w, const struct draft *d)
{
	enum { CHAIN_MAX = 16 };
	uint32_t link = d->link;
	for (int i = 0; i < CHAIN_MAX && link != ROW_NONE; i++) {
		uint32_t k = w->o->of_span[link];
		if (k == ROW_NONE || &w->draft[k] == d || w->draft[k].kind != DRAFT_RANGE)
			return ROW_NONE;
		if (w->o->instance[k].op != ROW_NONE)
			return k;
		link = w->draft[k].link;
	}
	return ROW_NONE;
}

static uint32_t name_backward(struct ops_work *w, const struct draft *d)
{
	uint32_t k = forward_instance(w, d);
	if (k == ROW_NONE)
		return name_range(w, d);
	struct { uint32_t tag, forward; } key = {'b', w->o->instance[k].op};
	uint32_t *slot = slot_of_key(w, &key, sizeof key);
	if (*slot != ROW_NONE)
		return *slot;
	struct op op = w->o->op[key.forward];
	struct str shapes = op_instances_names_text_of(w, w->draft[k].row, ARG_INPUT_DIMS);
	op.direction = DIR_BACKWARD;
	op.forward = key.forward;
	*slot = op_instances_names_op_at(w, &op, shapes);
	return *slot;
}

/* Equal calls behind the same op of their thread are one op. */
static uint32_t name_call(struct ops_work *w, const struct draft *d)
{
	struct str call = profile_str(w->p, w->p->span.name[d->row]);
	struct { uint32_t tag, name, before; } key = {
		'c', w->p->span.name[d->row], d->link == ROW_NONE ? ROW_NONE : w->o->instance[d->link].op,
	};
	uint32_t *slot = slot_of_key(w, &key, sizeof key);
	if (*slot != ROW_NONE)
		return *slot;
	struct buf b = {0};
	buf_printf(&b, "unassociated_" STR_FMT, STR_ARG(call));
	struct op op = {.name = kept(w, &b), .type = call, .direction = DIR_OTHER, .unassociated = true, .forward = ROW_NONE,
	                .data_type = {"", 0}, .stack = {"", 0}};
	*slot = op_instances_names_op_at(w, &op, (struct str){(const char *)&key.before, sizeof key.before});
	buf_release(&b);
	return *slot;
}

static uint32_t name_work(struct ops_work *w)
{
	struct op op = {.name = STR("unattributed"), .type = STR("unattributed"), .direction = DIR_OTHER, .unassociated = true, .forward = ROW_NONE,
	                .data_type = {"", 0}, .stack = {"", 0}};
	return op_instances_names_op_at(w, &op, STR("unattributed"));
}

/* The input says what it is. */
static uint32_t name_stated(struct ops_work *w, const struct draft *d)
{
	struct { uint32_t tag, id; } key = {'s', op_instances_names_arg_of(w, d->row, ARG_OP_ID)};
	uint32_t *slot = slot_of_key(w, &key, sizeof key);
	if (*slot != ROW_NONE)
		return *slot;
	struct str dir = op_instances_names_text_of(w, d->row, ARG_OP_DIRECTION), tc = op_instances_names_text_of(w, d->row, ARG_OP_TENSOR_CORES);
	struct op op = {
		.id = profile_str(w->p, key.id), .name = op_instances_names_text_of(w, d->row, ARG_OP_NAME), .type = op_instances_names_text_of(w, d->row, ARG_OP_TYPE),
		.stack = op_instances_names_text_of(w, d->row, ARG_OP_STACK), .data_type = {"", 0}, .forward = ROW_NONE,
		.direction = str_eqc(dir, "fprop") ? DIR_FORWARD : str_eqc(dir, "bprop") ? DIR_BACKWARD : DIR_OTHER,
		.tc_eligible = str_eqc(tc, "0") || str_eqc(tc, "yes") || str_eqc(tc, "eligible"), /* DLProf's status: 0 = could use them */
	};
	op.unassociated = !op.name.n || str_starts(op.name, STR("unassociated_")); /* nodes of TensorFlow have no '/' before them */
	for (size_t i = op.name.n; i && !op.unassociated && !op.path_n; i--)
		if (op.name.p[i - 1] == '/')
			op.path_n = (uint32_t)i;
	op.data_type = op_instances_names_text_of(w, d->row, ARG_OP_DATA_TYPE);
	if (!op.data_type.n)
		op.data_type = join_types(w, op.data_type, op_instances_names_text_of(w, d->row, ARG_INPUT_TYPES));
	*slot = op_instances_names_op_at(w, &op, op.id);
	return *slot;
}

static uint32_t op_of_draft(struct ops_work *w, const struct draft *d)
{
	if (d->kind == DRAFT_WORK)
		return name_work(w);
	if (d->kind == DRAFT_CALL)
		return name_call(w, d);
	return w->o->origin == OPS_STATED ? name_stated(w, d) : name_backward(w, d);
}

/* --- ids -------------------------------------------------------------------------------------------------------- */

static struct str id_prefix(struct ops_work *w, struct str type)
{
	struct buf b = {0};
	for (size_t i = 0; i < type.n; i++)
		buf_char(&b, (char)toupper((unsigned char)type.p[i]));
	struct str out = kept(w, &b);
	buf_release(&b);
	return out;
}

struct order {
	struct str prefix;
	uint32_t op, first;
};

static int by_prefix(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	return str_cmp(x->prefix, y->prefix) ?: COMPARE(x->first, y->first);
}

/* Numbers ops of one type in order of their first instances, and puts all in order of type and number. */
static void number_ops(struct ops_work *w)
{
	struct ops *o = w->o;
	struct order *v = NEW_ARRAY(o->n_ops, struct order);
	uint32_t *place = NEW_ARRAY(o->n_ops, uint32_t), number = 0;
	struct op *sorted = ARENA_ARRAY(&w->p->arena, o->n_ops, struct op);
	for (uint32_t i = 0; i < o->n_ops; i++)
		v[i] = (struct order){id_prefix(w, o->op[i].type), i, o->op[i].first};
	qsort(v, o->n_ops, sizeof *v, by_prefix);
	for (uint32_t i = 0; i < o->n_ops; i++) {
		struct op *x = &sorted[i];
		*x = o->op[v[i].op];
		place[v[i].op] = i;
		number = i && str_eq(v[i].prefix, v[i - 1].prefix) ? number + 1 : 1;
		if (!x->id.n)
			x->id = arena_printf(&w->p->arena, STR_FMT "_%u", STR_ARG(v[i].prefix), number);
	}
	for (uint32_t k = 0; k < o->n_instances; k++)
		o->instance[k].op = place[o->instance[k].op];
	for (uint32_t i = 0; i < o->n_ops; i++)
		if (sorted[i].forward != ROW_NONE)
			sorted[i].forward = place[sorted[i].forward];
	mem_free(o->op);
	o->op = sorted;
	mem_free(v);
	mem_free(place);
}

/* Ops inside ops that could use Tensor Cores. */
static void look_inside(struct ops_work *w)
{
	const struct spans *s = &w->p->span;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (s->kind[i] != SPAN_OP || w->o->of_span[i] == ROW_NONE)
			continue;
		if (name_is(w->p, s->name[i], NAME_TC_ELIGIBLE))
			w->o->op[w->o->instance[w->o->of_span[i]].op].tc_inside = true;
	}
}

/* What uses Tensor Cores could use them. */
static void look_at_kernels(struct ops_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		struct op *op = &w->o->op[w->o->instance[w->o->of_gpu[i]].op];
		if (g->kind[i] != GPU_KERNEL || op->unassociated || op->tc_inside)
			continue;
		op->tc_inside = gpu_tensor_core(w->p, i) == TRI_YES;
	}
}

/* Texts live as long as the profile, not as long as w. */
static void keep_texts(struct ops_work *w)
{
	struct arena *a = &w->p->arena;
	for (uint32_t i = 0; i < w->o->n_ops; i++) {
		struct op *x = &w->o->op[i];
		struct str *texts[] = {&x->name, &x->type, &x->data_type, &x->stack};
		for (int k = 0; k < 4; k++)
			*texts[k] = arena_str(a, *texts[k]);
	}
}

void ops_name(struct ops_work *w)
{
	struct ops *o = w->o;
	o->n_instances = w->n_drafts;
	o->instance = ARENA_ARRAY(&w->p->arena, o->n_instances, struct op_instance);
	for (uint32_t k = 0; k < o->n_instances; k++) {
		const struct draft *d = &w->draft[k];
		o->instance[k] = (struct op_instance){.op = ROW_NONE, .span = d->kind == DRAFT_WORK ? ROW_NONE : d->row,
		                                      .start_ns = d->start_ns, .end_ns = d->end_ns};
	}
	/* A backward op is called as its forward op, and a call is told apart by the op before it. */
	for (int pass = 0; pass < 3; pass++)
		for (uint32_t k = 0; k < o->n_instances; k++) {
			const struct draft *d = &w->draft[k];
			int when = d->kind != DRAFT_RANGE ? 2 : d->link != ROW_NONE;
			if (when == pass)
				o->instance[k].op = op_of_draft(w, d);
		}
	for (uint32_t i = 0; i < o->n_ops; i++)
		o->op[i].instances = 0;
	for (uint32_t k = 0; k < o->n_instances; k++) {
		struct op *x = &o->op[o->instance[k].op];
		if (!x->instances++)
			x->first = k;
	}
	look_inside(w);
	look_at_kernels(w);
	number_ops(w);
	keep_texts(w);
}

/* Ranges of a library's domain are ops of that library; those of PyTorch's profilers have these categories. */
bool ops_is_library(const struct profile *p, uint32_t span)
{
	struct str cat = profile_cat(p, p->span.cat[span]);
	return !str_eqc(cat, "nvtx") && !str_eqc(cat, "cpu_op") && !str_eqc(cat, "Operator") && !str_eqc(cat, "operator");
}
