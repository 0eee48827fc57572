/* LSTMCell and GRUCell (PyProf's recurrentCell.py): which of the kernels this is follows from its number in the forward pass,
 * from tile and grid in the backward pass. */
#include "predecessors/pyprof/op/class.h"

static const char *const ops[] = {"forward", NULL};
static const char *const cells[] = {"LSTMCell", "GRUCell", NULL};
static const char *const tiled[] = {"sgemm", "884gemm", "hgemm", NULL};

static bool takes(const struct pyprof_call *c)
{
	return pyprof_word_in(c->mod, cells);
}

struct cell {
	int64_t x, h, b, gates;
	const char *gemm; /* "layer", "recur"; NULL = no product */
	int64_t m, n, k;
	int64_t elements; /* of the pointwise part */
};

static void set_gemm(struct cell *s, const char *what, int64_t m, int64_t n, int64_t k)
{
	s->gemm = what;
	s->m = m;
	s->n = n;
	s->k = k;
}

static void forward(const struct pyprof_call *c, struct pyprof_model *out, struct cell *s)
{
	int64_t gates_h = pyprof_mul(out, s->gates, s->h), hb = pyprof_mul(out, s->h, s->b);
	if (c->sub % 3 == 0)
		set_gemm(s, "layer", gates_h, s->b, s->x);
	else if (c->sub % 3 == 1)
		set_gemm(s, "recur", gates_h, s->b, s->h);
	else
		s->elements = pyprof_mul(out, 2 * s->gates + 3, hb);
}

/* The tile in "volta_sgemm_128x64_nt": the one word with an 'x' that is no "sliced1x4". */
static bool find_tile(struct str name, int64_t *x, int64_t *y)
{
	struct str rest = name, word, found = {0};
	while (str_split(&rest, '_', &word)) {
		if (!str_has(word, STR("x")) || str_has(word, STR("slice")))
			continue;
		if (found.p)
			return false;
		found = word;
	}
	const char *at = found.n ? memchr(found.p, 'x', found.n) : NULL;
	return at && str_to_i64((struct str){found.p, (size_t)(at - found.p)}, x) &&
	       str_to_i64((struct str){at + 1, (size_t)(found.p + found.n - at - 1)}, y);
}

static int backward(const struct pyprof_call *c, struct pyprof_model *out, struct cell *s)
{
	int64_t tile_x, tile_y, gates_h = pyprof_mul(out, s->gates, s->h);
	if (!str_has(c->kernel, STR("gemm")) || !pyprof_contains(c->kernel, tiled))
		return 0;
	REQUIRE(out, find_tile(c->kernel, &tile_x, &tile_y), "recurrent cell: a tile in the kernel's name");
	int64_t m = pyprof_mul(out, tile_x, c->grid[0]), n = pyprof_mul(out, tile_y, c->grid[1]);
	const char *what = m == s->h ? "recur" : m == s->x ? "layer" : NULL;
	if (!what)
		return 0;
	if (str_ends(c->kernel, STR("_nn"))) { /* gradient of the input */
		set_gemm(s, what, m, m == s->h ? s->b : n, gates_h);
	} else if (str_ends(c->kernel, STR("_nt"))) { /* of the weight */
		REQUIRE(out, n == gates_h, "recurrent cell: a weight gradient as wide as the gates");
		set_gemm(s, what, m, n, s->b);
	}
	return 0;
}

static int pyprof_rnn_cell_model(const struct pyprof_call *c, struct pyprof_model *out)
{
	const struct pyprof_marker *mk = c->marker;
	bool known = pyprof_word_in(mk->mod, cells) || str_eqc(mk->mod, "RNNCell");
	REQUIRE(out, known && str_eqc(mk->op, "forward"), "the forward of a recurrent cell");
	REQUIRE(out, mk->n == 2 || mk->n == 3, "recurrent cell with 2 or 3 arguments");
	const struct pyprof_arg *x = &mk->arg[0], *h = &mk->arg[1];
	REQUIRE(out, pyprof_is_tensor(x) && pyprof_is_tensor(h) && x->rank == 2 && h->rank == 2, "recurrent cell: two matrices");
	REQUIRE(out, x->shape[0] == h->shape[0] && str_eq(x->dtype, h->dtype), "recurrent cell: equal batch and type");
	int size = pyprof_size(x->dtype);
	REQUIRE(out, size, "recurrent cell: a known type");
	struct cell s = {.x = x->shape[1], .h = h->shape[1], .b = x->shape[0],
	                 .gates = str_eqc(mk->mod, "LSTMCell") ? 4 : str_eqc(mk->mod, "GRUCell") ? 3 : 1};
	if (!c->backward)
		forward(c, out, &s);
	else if (backward(c, out, &s) < 0)
		return -1;
	int64_t elements = s.elements;
	if (s.gemm) {
		int64_t mn = pyprof_mul(out, s.m, s.n), mk_ = pyprof_mul(out, s.m, s.k), kn = pyprof_mul(out, s.k, s.n);
		out->flops = pyprof_int(pyprof_mul(out, 2, pyprof_mul(out, mn, s.k)));
		elements = pyprof_add(out, pyprof_add(out, mk_, kn), mn);
		buf_printf(&out->params, "gemm=%s,", s.gemm);
		pyprof_put_int(out, "M", s.m);
		pyprof_put_int(out, "N", s.n);
		pyprof_put_int(out, "K", s.k);
	} else {
		pyprof_put_text(out, "cell", mk->mod);
		pyprof_put_int(out, "X", s.x);
		pyprof_put_int(out, "H", s.h);
		pyprof_put_int(out, "B", s.b);
	}
	pyprof_put_type(out, x->dtype);
	out->bytes = pyprof_int(pyprof_mul(out, elements, size));
	if (str_has(c->kernel, STR("gemm")))
		out->tc = pyprof_tensor_core(c, "884gemm", NULL, '0');
	return 0;
}

const struct pyprof_class pyprof_class_rnn_cell = {.ops = ops, .takes = takes, .model = pyprof_rnn_cell_model};
