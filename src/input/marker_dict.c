#include "input/marker_dict.h"

#include "base/buf.h"
#include "io/pyliteral.h"

enum { PAIRS_MAX = 12 };

struct marker_dict_pairs {
	struct build *b;
	struct arg_pair v[PAIRS_MAX];
	unsigned n;
};

static void marker_dict_add(struct marker_dict_pairs *p, const char *key, struct str value, bool is_string)
{
	struct intern *t = &p->b->p->strings;
	p->v[p->n++] = (struct arg_pair){intern_str(t, str_from(key)), intern_str(t, value), is_string};
}

struct str marker_kineto_type(struct str dtype)
{
	static const struct { const char *torch, *kineto; } types[] = {
		{"float32", "float"}, {"float", "float"}, {"float16", "c10::Half"}, {"half", "c10::Half"},
		{"bfloat16", "c10::BFloat16"}, {"float64", "double"}, {"double", "double"}, {"int64", "long int"}, {"long", "long int"},
		{"int32", "int"}, {"int", "int"}, {"int16", "short int"}, {"short", "short int"}, {"int8", "signed char"},
		{"char", "signed char"}, {"uint8", "unsigned char"}, {"byte", "unsigned char"}, {"bool", "bool"},
		{"complex64", "c10::complex<float>"}, {"complex128", "c10::complex<double>"}, {"float8_e4m3fn", "c10::Float8_e4m3fn"},
		{"float8_e5m2", "c10::Float8_e5m2"},
	};
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (str_eqc(dtype, types[i].torch))
			return str_from(types[i].kineto);
	return dtype;
}

static void marker_dict_put_json(struct buf *b, struct str s)
{
	buf_char(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20)
			buf_printf(b, "\\u%04x", c);
		else
			buf_char(b, (char)c);
	}
	buf_char(b, '"');
}

/* "[2, 3]"; false when an item is no size. */
static bool put_shape(struct buf *b, const struct py *shape)
{
	buf_char(b, '[');
	for (const struct py *d = shape->first; d; d = d->next) {
		if (d->type != PY_INT || d->i < 0)
			return false;
		buf_printf(b, "%s%lld", d == shape->first ? "" : ", ", (long long)d->i);
	}
	buf_char(b, ']');
	return true;
}

/* A list of values in brackets, as Kineto writes tuples too. */
static void put_items(struct buf *b, const struct py *list)
{
	struct buf text = {0};
	for (const struct py *v = list->first; v; v = v->next)
		buf_printf(&text, "%s" STR_FMT, v == list->first ? "[" : ", ", STR_ARG(v->raw));
	buf_cstr(&text, list->n ? "]" : "[]");
	marker_dict_put_json(b, buf_view(&text));
	buf_release(&text);
}

struct lists {
	struct buf dims, types, concrete, names;
};

static struct str marker_dict_text_of(const struct py *d, const char *key)
{
	const struct py *v = py_get(d, key);
	return v && v->type == PY_STR ? v->s : (struct str){"", 0};
}

/* A list of tensors: {'shapes': [(2,), (3,)], 'dtypes': ['float32', 'float32']}. */
static bool put_tensors(struct lists *l, const struct py *shapes, const struct py *dtypes)
{
	buf_char(&l->dims, '[');
	for (const struct py *s = shapes->first; s; s = s->next) {
		buf_cstr(&l->dims, s == shapes->first ? "" : ", ");
		if ((s->type != PY_TUPLE && s->type != PY_LIST) || !put_shape(&l->dims, s))
			return false;
	}
	buf_char(&l->dims, ']');
	buf_char(&l->types, '[');
	for (const struct py *t = dtypes ? dtypes->first : NULL; t; t = t->next) {
		buf_cstr(&l->types, t == dtypes->first ? "" : ", ");
		marker_dict_put_json(&l->types, t->type == PY_STR ? marker_kineto_type(t->s) : STR(""));
	}
	buf_char(&l->types, ']');
	return true;
}

/* One of the marker's arguments, as Kineto lists it; false when it is not in the form of A-05. */
static bool put_arg(struct lists *l, const struct py *arg)
{
	const struct py *shape = py_get(arg, "shape"), *value = py_get(arg, "value");
	struct str type = marker_dict_text_of(arg, "type"), kineto = {"", 0}, concrete = {"", 0};
	const struct py *shapes = py_get(arg, "shapes"), *dtypes = py_get(arg, "dtypes");
	if (arg->type != PY_DICT || !type.n)
		return false;
	if (shapes && shapes->type == PY_LIST) {
		if ((dtypes && dtypes->type != PY_LIST) || !put_tensors(l, shapes, dtypes))
			return false;
		marker_dict_put_json(&l->concrete, concrete);
		marker_dict_put_json(&l->names, marker_dict_text_of(arg, "name"));
		return true;
	}
	bool tensor = shape && (shape->type == PY_TUPLE || shape->type == PY_LIST);
	bool list = !tensor && value && (value->type == PY_LIST || value->type == PY_TUPLE);
	if (tensor) {
		if (!put_shape(&l->dims, shape))
			return false;
		kineto = str_eq(type, STR("tensor")) ? marker_kineto_type(marker_dict_text_of(arg, "dtype")) : type;
	} else {
		buf_cstr(&l->dims, "[]");
		bool none = str_eq(type, STR("NoneType")) || !value;
		kineto = none ? kineto : list ? STR("ScalarList") : STR("Scalar");
		concrete = none ? concrete : value->type == PY_STR ? value->s : value->raw;
	}
	marker_dict_put_json(&l->types, kineto);
	if (list)
		put_items(&l->concrete, value);
	else
		marker_dict_put_json(&l->concrete, concrete);
	marker_dict_put_json(&l->names, marker_dict_text_of(arg, "name"));
	return true;
}

static bool marker_dict_put_args(struct lists *l, const struct py *args)
{
	struct buf *all[] = {&l->dims, &l->types, &l->concrete, &l->names};
	for (int i = 0; i < 4; i++)
		buf_char(all[i], '[');
	for (const struct py *a = args->first; a; a = a->next) {
		for (int i = 0; i < 4 && a != args->first; i++)
			buf_cstr(all[i], ", ");
		if (!put_arg(l, a))
			return false;
	}
	for (int i = 0; i < 4; i++)
		buf_char(all[i], ']');
	return true;
}

/* {'mod': M, 'op': O, 'args': [...]} */
static bool argument_marker(struct marker_dict_pairs *p, const struct py *d, struct str raw, struct marker *out)
{
	struct str mod = marker_dict_text_of(d, "mod"), op = marker_dict_text_of(d, "op");
	const struct py *args = py_get(d, "args"), *id;
	struct lists l = {0};
	bool ok = op.n && args->type == PY_LIST && marker_dict_put_args(&l, args);
	if (ok) {
		struct buf name = {0};
		buf_printf(&name, STR_FMT "%s" STR_FMT, STR_ARG(mod), mod.n ? "." : "", STR_ARG(op));
		/* PyProf marks the look-up of a module's attributes too; a failed one is never closed and has all that follows inside. */
		out->kind = str_eq(op, STR("__getattr__")) ? SPAN_MARKER : SPAN_OP;
		out->name = intern_str(&p->b->p->strings, buf_view(&name));
		buf_release(&name);
		marker_dict_add(p, arg_key_text[ARG_INPUT_DIMS], buf_view(&l.dims), false);
		marker_dict_add(p, arg_key_text[ARG_INPUT_TYPES], buf_view(&l.types), false);
		marker_dict_add(p, arg_key_text[ARG_INPUT_VALUES], buf_view(&l.concrete), false);
		marker_dict_add(p, arg_key_text[ARG_INPUT_NAMES], buf_view(&l.names), false);
		marker_dict_add(p, arg_key_text[ARG_MARKER_MODULE], mod, true);
		marker_dict_add(p, arg_key_text[ARG_MARKER_OP], op, true);
		marker_dict_add(p, arg_key_text[ARG_MARKER], raw, true);
		if ((id = py_get(d, "callid")))
			marker_dict_add(p, arg_key_text[ARG_CALL_ID], id->raw, false);
		if ((id = py_get(d, "input_callids")))
			marker_dict_add(p, arg_key_text[ARG_INPUT_CALLS], id->raw, false);
	}
	buf_release(&l.dims);
	buf_release(&l.types);
	buf_release(&l.concrete);
	buf_release(&l.names);
	return ok;
}

/* The frames, innermost first: the marker lists them from the outside in. */
static void add_stack(struct marker_dict_pairs *p, const struct py *frames)
{
	struct buf b = {0};
	const struct py **order = NULL;
	unsigned n = 0;
	struct arena a = {0};
	order = (const struct py **)arena_zalloc_array(&a, frames->n ? frames->n : 1, sizeof *order);
	for (const struct py *f = frames->first; f; f = f->next)
		if (f->type == PY_STR)
			order[n++] = f;
	for (unsigned i = n; i-- > 0;)
		buf_printf(&b, "%s" STR_FMT, i + 1 < n ? ";" : "", STR_ARG(order[i]->s));
	marker_dict_add(p, arg_key_text[ARG_CALL_STACK], buf_view(&b), true);
	arena_release(&a);
	buf_release(&b);
}

static void add_value(struct marker_dict_pairs *p, const char *key, const struct py *v)
{
	if (v && v->type == PY_STR)
		marker_dict_add(p, key, v->s, true);
	else if (v)
		marker_dict_add(p, key, v->raw, false);
}

static bool marker_dict_describe(struct marker_dict_pairs *p, const struct py *d, struct str raw, struct marker *out)
{
	const struct py *v;
	out->kind = SPAN_MARKER;
	if (py_get(d, "args") && py_get(d, "op"))
		return argument_marker(p, d, raw, out);
	if ((v = py_get(d, "traceMarker"))) {
		if (v->type != PY_LIST && v->type != PY_TUPLE)
			return false;
		add_stack(p, v);
		add_value(p, arg_key_text[ARG_FUNCTION_STACK], py_get(d, "funcStack"));
		return true;
	}
	if ((v = py_get(d, "strRepr"))) {
		marker_dict_add(p, arg_key_text[ARG_MARKER_MODULE], marker_dict_text_of(d, "mod"), true);
		add_value(p, arg_key_text[ARG_MARKER_REPR], v);
		return true;
	}
	if ((v = py_get(d, "model_config"))) {
		add_value(p, arg_key_text[ARG_MODEL_CONFIG], v);
		return true;
	}
	return false;
}

/* Words that only markers have; without one, a text in braces is somebody's own. */
static bool wants_to_be(struct str raw)
{
	return str_has(raw, STR("traceMarker")) || str_has(raw, STR("strRepr")) || str_has(raw, STR("model_config")) ||
	       (str_has(raw, STR("'op'")) && str_has(raw, STR("'args'")));
}

bool marker_read_dict(struct build *b, struct arena *a, uint32_t raw, struct marker *out, bool *damaged)
{
	struct str text = profile_str(b->p, raw);
	struct marker_dict_pairs p = {.b = b};
	size_t at;
	const struct py *d = py_parse(text, a, &at);
	*out = (struct marker){.link_id = ID_NONE, .name = raw, .kind = SPAN_USER};
	bool ok = d && d->type == PY_DICT && marker_dict_describe(&p, d, text, out);
	*damaged = !ok && wants_to_be(text);
	if (!ok)
		out->kind = SPAN_USER;
	out->args = ok ? build_args(b, p.v, p.n) : 0;
	return ok;
}
