#include "predecessors/pyprof/op/class.h"

#include "base/search.h"
#include "op/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t pyprof_mul(struct pyprof_model *out, int64_t a, int64_t b)
{
	int64_t v;
	if (__builtin_mul_overflow(a, b, &v)) {
		out->overflow = true;
		return 0;
	}
	return v;
}

int64_t pyprof_add(struct pyprof_model *out, int64_t a, int64_t b)
{
	int64_t v;
	if (__builtin_add_overflow(a, b, &v)) {
		out->overflow = true;
		return 0;
	}
	return v;
}

int64_t pyprof_product(struct pyprof_model *out, const int64_t *v, unsigned n)
{
	int64_t p = 1;
	for (unsigned i = 0; i < n; i++)
		p = pyprof_mul(out, p, v[i]);
	return p;
}

bool pyprof_broadcast(const struct pyprof_arg *const *a, unsigned n, int64_t *out, unsigned *rank)
{
	*rank = 0;
	for (unsigned t = 0; t < n; t++)
		*rank = a[t]->rank > *rank ? a[t]->rank : *rank;
	if (*rank > PYPROF_RANK)
		return false;
	for (unsigned d = 0; d < *rank; d++) { /* from the last dimension */
		int64_t size = 1;
		for (unsigned t = 0; t < n; t++) {
			int64_t own = d < a[t]->rank ? a[t]->shape[a[t]->rank - 1 - d] : 1;
			if (own != 1 && size != 1 && own != size)
				return false;
			size = size == 1 ? own : size;
		}
		out[*rank - 1 - d] = size;
	}
	return true;
}

const struct pyprof_arg *pyprof_positional(const struct pyprof_marker *m, unsigned i)
{
	for (unsigned k = 0; k < m->n; k++)
		if (!m->arg[k].name.n && i-- == 0)
			return &m->arg[k];
	return NULL;
}

unsigned pyprof_n_positional(const struct pyprof_marker *m)
{
	unsigned n = 0;
	for (unsigned k = 0; k < m->n; k++)
		n += !m->arg[k].name.n;
	return n;
}

const struct pyprof_arg *pyprof_named(const struct pyprof_marker *m, const char *name)
{
	return ELEMENT_WHERE(k, m->arg, m->n, str_eqc(m->arg[k].name, name));
}

const struct pyprof_arg *pyprof_at_or_named(const struct pyprof_marker *m, unsigned i, const char *name)
{
	return i < m->n && !m->arg[i].name.n ? &m->arg[i] : pyprof_named(m, name);
}

/* (PyProf's utility.py and dtype.py) */
static const struct pyprof_class_dtype_row {
	const char *name;
	int size;
	const char *in_dict;   /* NULL = not known there */
	const char *in_tensor;
} dtype_rows[] = {
	{"uint8", 1, "uint8", "uint8"},  {"byte", 1, "uint8", "byte"},    {"char", 1, "uint8", "char"},   {"int8", 1, "int8", "int8"},
	{"bool", 1, NULL, "bool"},       {"float16", 2, "fp16", "fp16"},  {"half", 2, "fp16", "fp16"},    {"int16", 2, "int16", "int16"},
	{"short", 2, "int16", "int16"},  {"float32", 4, "fp32", "fp32"},  {"float", 4, "fp32", "fp32"},   {"int32", 4, "int32", "int32"},
	{"int", 4, "int32", "int32"},    {"int64", 8, "int64", "int64"},  {"long", 8, "int64", "int64"},  {"float64", 8, "fp64", "fp64"},
	{"double", 8, "fp64", "fp64"},
};

static const struct pyprof_class_dtype_row *dtype_row_of(struct str name)
{
	return ELEMENT_WHERE(i, dtype_rows, sizeof dtype_rows / sizeof dtype_rows[0], str_eqc(name, dtype_rows[i].name));
}

int pyprof_size(struct str dtype)
{
	const struct pyprof_class_dtype_row *r = dtype_row_of(dtype);
	return r && r->in_dict ? r->size : 0;
}

int pyprof_tensor_size(struct str dtype)
{
	const struct pyprof_class_dtype_row *r = dtype_row_of(dtype);
	return r ? r->size : 0;
}

void pyprof_put_int(struct pyprof_model *out, const char *key, int64_t v)
{
	buf_printf(&out->params, "%s=%lld,", key, (long long)v);
}

void pyprof_put_text(struct pyprof_model *out, const char *key, struct str v)
{
	buf_printf(&out->params, "%s=" STR_FMT ",", key, STR_ARG(v));
}

void pyprof_put_dims(struct pyprof_model *out, const int64_t *v, unsigned n, bool list)
{
	buf_char(&out->params, list ? '[' : '(');
	for (unsigned i = 0; i < n; i++) {
		if (i)
			buf_char(&out->params, ',');
		buf_i64(&out->params, v[i]);
	}
	if (!list && n == 1)
		buf_char(&out->params, ',');
	buf_char(&out->params, list ? ']' : ')');
}

void pyprof_put_shape(struct pyprof_model *out, const char *key, const struct pyprof_arg *a)
{
	buf_printf(&out->params, "%s=", key);
	pyprof_put_dims(out, a->shape, a->rank, a->shape_is_list);
	buf_char(&out->params, ',');
}

void pyprof_put_type(struct pyprof_model *out, struct str dtype)
{
	const struct pyprof_class_dtype_row *r = dtype_row_of(dtype);
	buf_printf(&out->params, "%s,", r && r->in_dict ? r->in_dict : "?");
}

void pyprof_put_tensor(struct pyprof_model *out, const int64_t *shape, unsigned rank, struct str dtype)
{
	const struct pyprof_class_dtype_row *r = dtype_row_of(dtype);
	pyprof_put_dims(out, shape, rank, true);
	buf_cstr(&out->params, r ? r->in_tensor : "?");
}

void pyprof_put_input(struct pyprof_model *out, const struct pyprof_call *c, const struct pyprof_arg *a)
{
	if (c->rules == PYPROF_2) {
		pyprof_put_shape(out, "T", a);
		pyprof_put_type(out, a->dtype);
	} else {
		pyprof_put_tensor(out, a->shape, a->rank, a->dtype);
	}
}

char pyprof_tensor_core(const struct pyprof_call *c, const char *word2, const char *other_word2, char otherwise)
{
	bool used = c->rules == PYPROF_3
	                    ? kernel_uses_tc_listed(c->kernel)
	                    : str_has(c->kernel, str_from(word2)) || (other_word2 && str_has(c->kernel, str_from(other_word2)));
	return used ? '1' : otherwise;
}

static const struct pyprof_class *pyprof_class_of(const struct pyprof_call *c)
{
	const struct pyprof_class *const *k = pyprof_class_registry;
	for (; *k; k++) {
		bool named = !(*k)->ops || pyprof_word_in(c->op, (*k)->ops);
		if (named && !((*k)->not_in_2 && c->rules == PYPROF_2) && (!(*k)->takes || (*k)->takes(c)))
			return *k;
	}
	return NULL;
}

int pyprof_model_of(const struct pyprof_call *c, struct pyprof_model *out)
{
	struct buf keep = out->params;
	*out = (struct pyprof_model){.params = keep, .op = c->marker->op, .tc = '-'};
	buf_clear(&out->params);
	const struct pyprof_class *k = pyprof_class_of(c);
	if (!k || k->model(c, out) < 0 || out->overflow) {
		if (!out->why)
			out->why = k ? "numbers within 64 bits" : "an op";
		out->flops = out->bytes = (struct pyprof_num){0};
		return -1;
	}
	return 0;
}

/* The shortest digits that read back as the same number, as Python chooses them. */
static void put_float(struct buf *out, double v)
{
	char digits[40];
	int precision = 0;
	do
		snprintf(digits, sizeof digits, "%.*e", precision, v);
	while (strtod(digits, NULL) != v && ++precision < 17);
	int exponent = atoi(strchr(digits, 'e') + 1);
	if (exponent >= 16 || exponent < -4) { /* "1e+16" */
		buf_cstr(out, digits);
		return;
	}
	int decimals = precision - exponent;
	buf_printf(out, "%.*f", decimals > 0 ? decimals : 1, v);
}

void pyprof_num_put(struct buf *out, struct pyprof_num v)
{
	if (!v.is_float)
		buf_i64(out, v.i);
	else if (!isfinite(v.f))
		buf_cstr(out, isnan(v.f) ? "nan" : v.f > 0 ? "inf" : "-inf");
	else
		put_float(out, v.f);
}

int64_t pyprof_num_int(struct pyprof_num v)
{
	if (!v.is_float)
		return v.i;
	return v.f >= 9223372036854775808.0 ? INT64_MAX : v.f <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v.f;
}

void pyprof_short_name(struct buf *out, struct str name)
{
	static const char *const dropped[] = {"void ", "at::", "cuda::", "native::", "(anonymous namespace)::"};
	struct buf b[2] = {{0}, {0}};
	const char *cut = memchr(name.p, '<', name.n);
	struct buf *from = &b[0], *to = &b[1];
	buf_put(from, name.p, cut ? (size_t)(cut - name.p) : name.n);
	for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++) { /* one after the other, as str.replace does */
		struct str rest = buf_view(from), word = str_from(dropped[i]);
		buf_clear(to);
		for (ptrdiff_t at; rest.n && (at = str_find(rest, word)) >= 0;) {
			buf_put(to, rest.p, (size_t)at);
			rest = (struct str){rest.p + at + word.n, rest.n - (size_t)at - word.n};
		}
		buf_str(to, rest);
		struct buf *x = from;
		from = to;
		to = x;
	}
	const char *paren = from->n ? memchr(from->p, '(', from->n) : NULL;
	buf_put(out, from->p, paren ? (size_t)(paren - from->p) : from->n);
	buf_release(&b[0]);
	buf_release(&b[1]);
}
