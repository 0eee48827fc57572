#include "input/marker_node.h"

#include "base/buf.h"
#include "base/json_text.h"
#include "io/pyliteral.h"

enum { PAIRS_MAX = 4 };

struct marker_node_parts {
	struct str op, name, args, type; /* args: the list as written */
};

/* What stands between `before` and the next `after`, which are taken off *s. */
static bool take_between(struct str *s, struct str before, struct str after, struct str *part)
{
	struct str rest = *s;
	if (!str_skip(&rest, before))
		return false;
	ptrdiff_t at = str_find(rest, after);
	if (at <= 0)
		return false;
	*part = (struct str){rest.p, (size_t)at};
	*s = (struct str){rest.p + at + after.n, rest.n - (size_t)at - after.n};
	return true;
}

/* By its frame: attributes hold texts whose quotes TensorFlow does not escape, so that the whole may be no JSON. */
static bool take_detailed(struct str s, struct marker_node_parts *x)
{
	if (!take_between(&s, STR("{\"op\":\""), STR("\""), &x->op) || !take_between(&s, STR(",\"name\":\""), STR("\""), &x->name))
		return false;
	if (str_starts(s, STR(",\"args\":[],")) || !take_between(&s, STR(",\"args\":"), STR(",\"attrs\":{"), &x->args))
		x->args = (struct str){"", 0};
	ptrdiff_t at = str_find(s, STR("\"T\":\""));
	if (at >= 0) {
		struct str rest = {s.p + at, s.n - (size_t)at};
		take_between(&rest, STR("\"T\":\""), STR("\""), &x->type);
	}
	return true;
}

static bool is_in_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '>'; }

static bool take_basic(struct str s, struct marker_node_parts *x)
{
	ptrdiff_t at = str_find(s, STR(": "));
	if (at <= 0 || (size_t)at + 2 == s.n)
		return false;
	for (ptrdiff_t i = 0; i < at; i++)
		if (!is_in_word(s.p[i]))
			return false;
	x->op = (struct str){s.p, (size_t)at};
	x->name = (struct str){s.p + at + 2, s.n - (size_t)at - 2};
	return true;
}

/* "[2, 3]"; of an unknown shape "[]", as Kineto writes what is no tensor. */
static void marker_node_put_shape(struct buf *b, const struct py *shape)
{
	buf_char(b, '[');
	for (const struct py *d = shape && shape->type == PY_LIST ? shape->first : NULL; d; d = d->next)
		if (d->type == PY_INT)
			buf_printf(b, "%s%lld", d == shape->first ? "" : ", ", (long long)d->i);
	buf_char(b, ']');
}

/* Behind the tenth argument TensorFlow writes null: the list ends there. */
static unsigned marker_node_put_args(struct build *b, struct str list, struct arg_pair *pair)
{
	struct arena a = {0};
	struct buf dims = {0}, names = {0};
	size_t bad;
	const struct py *args = py_parse(list, &a, &bad);
	unsigned n = 0;
	for (const struct py *v = args && args->type == PY_LIST ? args->first : NULL; v && v->type == PY_DICT; v = v->next, n++) {
		const struct py *name = py_get(v, "name");
		buf_cstr(&dims, n ? ", " : "[");
		buf_cstr(&names, n ? ", " : "[");
		marker_node_put_shape(&dims, py_get(v, "shape"));
		json_put_string(&names, name && name->type == PY_STR ? name->s : STR(""));
	}
	if (n) {
		struct intern *t = &b->p->strings;
		buf_char(&dims, ']');
		buf_char(&names, ']');
		pair[0] = (struct arg_pair){intern_str(t, str_from(arg_key_text[ARG_INPUT_DIMS])), intern_str(t, buf_view(&dims)), 0};
		pair[1] = (struct arg_pair){intern_str(t, str_from(arg_key_text[ARG_INPUT_NAMES])), intern_str(t, buf_view(&names)), 0};
	}
	buf_release(&dims);
	buf_release(&names);
	arena_release(&a);
	return n ? 2 : 0;
}

/* TensorFlow says bfloat32 of bfloat16, and "float32&" of a reference. */
static struct str marker_node_type(struct str s)
{
	s.n -= s.n && s.p[s.n - 1] == '&';
	return str_eqc(s, "bfloat32") ? STR("bfloat16") : s;
}

struct marker marker_read_node(struct build *b, struct str text)
{
	struct marker_node_parts x = {0};
	struct arg_pair pair[PAIRS_MAX];
	struct intern *t = &b->p->strings;
	unsigned n = 0;
	if (!take_detailed(text, &x) && !take_basic(text, &x))
		return (struct marker){.link_id = ID_NONE, .name = intern_str(t, text), .kind = SPAN_OP, .is_node = true};
	if (x.args.n)
		n = marker_node_put_args(b, x.args, pair);
	pair[n++] = (struct arg_pair){intern_str(t, str_from(arg_key_text[ARG_OP_TYPE])), intern_str(t, x.op), 1};
	struct str type = marker_node_type(x.type);
	if (type.n)
		pair[n++] = (struct arg_pair){intern_str(t, str_from(arg_key_text[ARG_OP_DATA_TYPE])), intern_str(t, type), 1};
	return (struct marker){.link_id = ID_NONE, .name = intern_str(t, x.name), .args = build_args(b, pair, n), .kind = SPAN_OP, .is_node = true};
}
