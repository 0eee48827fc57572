#include "predecessors/pyprof/op/marker.h"

#include "io/pyliteral.h"

static bool is_sequence(const struct py *v)
{
	return v && (v->type == PY_LIST || v->type == PY_TUPLE);
}

/* The integers of a list or tuple; 0 for what is none, and *all says whether there was such. */
static const int64_t *integers(const struct py *list, struct arena *a, unsigned *n, bool *all)
{
	int64_t *v = ARENA_ARRAY(a, list->n, int64_t);
	*n = 0;
	*all = true;
	for (const struct py *x = list->first; x; x = x->next) {
		bool is = x->type == PY_INT;
		*all &= is;
		v[(*n)++] = is ? x->i : 0;
	}
	return v;
}

static struct str pyprof_marker_string_of(const struct py *dict, const char *key, struct str otherwise)
{
	const struct py *v = py_get(dict, key);
	return v && v->type == PY_STR ? v->s : otherwise;
}

static void read_value(const struct py *v, struct arena *a, struct pyprof_arg *out)
{
	static const enum pyprof_value kinds[] = {
		[PY_NONE] = PYPROF_NONE, [PY_BOOL] = PYPROF_BOOL, [PY_INT] = PYPROF_INT, [PY_FLOAT] = PYPROF_FLOAT, [PY_STR] = PYPROF_STR,
		[PY_LIST] = PYPROF_SEQ, [PY_TUPLE] = PYPROF_SEQ, [PY_DICT] = PYPROF_OTHER};
	out->kind = kinds[v->type];
	if (v->type == PY_INT || v->type == PY_BOOL)
		out->i = v->i;
	if (v->type == PY_STR)
		out->s = v->s;
	if (is_sequence(v)) {
		out->seq_is_list = v->type == PY_LIST;
		out->seq = integers(v, a, &out->n_seq, &out->seq_of_ints);
	}
}

static int read_arg(const struct py *dict, struct arena *a, struct pyprof_arg *out)
{
	const struct py *shape = py_get(dict, "shape"), *value = py_get(dict, "value");
	bool ints = true;
	if (dict->type != PY_DICT || (shape && !is_sequence(shape)))
		return -1;
	*out = (struct pyprof_arg){.name = pyprof_marker_string_of(dict, "name", STR("")), .type = pyprof_marker_string_of(dict, "type", STR("")),
	                           .dtype = pyprof_marker_string_of(dict, "dtype", (struct str){0}), .has_shape = shape != NULL};
	if (shape) {
		out->shape_is_list = shape->type == PY_LIST;
		out->shape = integers(shape, a, &out->rank, &ints);
	}
	if (value)
		read_value(value, a, out);
	return ints ? 0 : -1;
}

int pyprof_marker_parse(struct str text, struct arena *a, struct pyprof_marker *out)
{
	size_t at;
	const struct py *d = py_parse(text, a, &at), *args = py_get(d, "args");
	*out = (struct pyprof_marker){.mod = pyprof_marker_string_of(d, "mod", (struct str){0}), .op = pyprof_marker_string_of(d, "op", (struct str){0})};
	if (!out->mod.p || !out->op.p || !is_sequence(args))
		return -1;
	out->arg = ARENA_ARRAY(a, args->n, struct pyprof_arg);
	for (const struct py *x = args->first; x; x = x->next)
		if (read_arg(x, a, &out->arg[out->n++]) < 0)
			return -1;
	return 0;
}

int pyprof_strings_parse(struct str text, const char *key, struct arena *a, struct str **v, unsigned *n)
{
	size_t at;
	const struct py *list = py_parse(text, a, &at);
	if (key)
		list = py_get(list, key);
	*n = 0;
	if (!list || list->type != PY_LIST)
		return -1;
	*v = ARENA_ARRAY(a, list->n, struct str);
	for (const struct py *x = list->first; x; x = x->next)
		if (x->type == PY_STR)
			(*v)[(*n)++] = x->s;
	return 0;
}

int pyprof_ints_parse(struct str text, struct arena *a, const int64_t **v, unsigned *n)
{
	size_t at;
	bool all;
	const struct py *list = py_parse(text, a, &at);
	*n = 0;
	if (!is_sequence(list))
		return -1;
	*v = integers(list, a, n, &all);
	return all ? 0 : -1;
}

struct str pyprof_string_parse(struct str text, struct arena *a)
{
	size_t at;
	const struct py *s = py_parse(text, a, &at);
	return s && s->type == PY_STR ? s->s : text;
}
