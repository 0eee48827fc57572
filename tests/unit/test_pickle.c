/* Pickles are read as data: what plain data is made of is there, the rest ends the reading, and what a pickle repeats is neither copied without end nor, in a graph, copied at all. */
#include "test.h"

#include "base/buf.h"
#include "io/pickle.h"

typedef const struct py *parse_fn(struct str bytes, struct arena *a, size_t *at, const char **why);

static parse_fn *const parsers[] = {pickle_parse, pickle_parse_graph};

struct case_read {
	struct arena a;
	const struct py *v;
	const char *why;
	size_t at;
};

static void case_of(struct case_read *c, parse_fn *parse, const char *bytes, size_t n)
{
	*c = (struct case_read){0};
	c->v = parse((struct str){bytes, n}, &c->a, &c->at, &c->why);
}
#define CASE(c, parse, bytes) case_of(c, parse, bytes, sizeof bytes - 1)

static const struct py *item(const struct py *list, unsigned i)
{
	if (list->item)
		return list->item[i];
	const struct py *x = list->first;
	while (i--)
		x = x->next;
	return x;
}

static void test_plain_data(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct case_read c;
		CASE(&c, parsers[i], "\x80\x04}\x94(\x8c\x01" "a\x94]\x94(K\x01M\0\x02J\xff\xff\xff\xff\x8a\x06\0\0\0\0\0\x01N\x88\x89" "e\x8c\x01" "bh\x01\x8c\x01z\x86\x8c\x01" "cG\0\0\0\0\0\0\0\0u.");
		assert_null(c.why);
		const struct py *a = py_get(c.v, "a"), *b = py_get(c.v, "b");
		assert_int_equal(c.v->n, 3);
		assert_int_equal(a->n, 7);
		assert_int_equal(item(a, 0)->i, 1);
		assert_int_equal(item(a, 1)->i, 512);
		assert_int_equal(item(a, 2)->i, -1);
		assert_true(item(a, 3)->i == 1ll << 40);
		assert_int_equal(item(a, 4)->type, PY_NONE);
		assert_int_equal(item(a, 5)->i, 1);
		assert_int_equal(item(a, 6)->i, 0);
		assert_int_equal(b->type, PY_TUPLE);
		assert_true(str_eq(item(b, 0)->s, STR("a")) && str_eq(item(b, 1)->s, STR("z")));
		assert_int_equal(py_get(c.v, "c")->type, PY_FLOAT);
		arena_release(&c.a);
	}
}

/* Whatever would import, call, or build: GLOBAL, STACK_GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, NEWOBJ_EX, PERSID, BINPERSID, EXT1, EXT2, EXT4. */
static void test_nothing_is_run(void **state)
{
	static const char ops[] = {'c', '\x93', 'R', 'b', 'i', 'o', '\x81', '\x92', 'P', 'Q', '\x82', '\x83', '\x84'};
	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof ops; k++) {
			char bytes[] = "](K\x01K\x02?os\nsystem\n.";
			struct case_read c;
			bytes[6] = ops[k];
			CASE(&c, parsers[i], bytes);
			assert_non_null(c.why);
			assert_non_null(strstr(c.why, "nothing in a pickle is run"));
			assert_int_equal(c.at, 6);
			assert_int_equal(c.v->n, 2); /* what came before */
			arena_release(&c.a);
		}
}

static void test_cut_and_damaged(void **state)
{
	static const struct { const char *bytes; size_t n; } cases[] = {
#define BYTES(s) {s, sizeof(s) - 1}
		BYTES(""), BYTES("."), BYTES("]"), BYTES("]]."), BYTES("a"), BYTES("e"), BYTES("(e"), BYTES("K\x01" "a."), BYTES("}K\x01" "s."), BYTES("}(K\x01u."), BYTES("h\x05."), BYTES("j\xff\xff\xff\xff."),
		BYTES("]r\xff\xff\xff\x7f."), BYTES("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f" "a."), BYTES("X\xff\xff\xff\xff" "a."), BYTES("\x8b\xff\xff\xff\xff."), BYTES("\x80\x09N."), BYTES("q\0."), BYTES("(((("),
		BYTES("gx\n."), BYTES("p-1\n."), BYTES("1."), BYTES("0."), BYTES("2."), BYTES("\x87."), BYTES("\x95\x01\0."),
	};
	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
			struct case_read c;
			case_of(&c, parsers[i], cases[k].bytes, cases[k].n);
			assert_non_null(c.why);
			assert_true(c.at <= cases[k].n);
			arena_release(&c.a);
		}
}

static void test_graph_shares(void **state)
{
	struct case_read c;
	CASE(&c, pickle_parse_graph, "]\x94(](K\x01K\x02" "e\x94h\x01h\x01}\x94(\x8c\x01kh\x01uh\x02" "e.");
	assert_null(c.why);
	assert_int_equal(c.v->n, 5);
	assert_ptr_equal(item(c.v, 0), item(c.v, 1));
	assert_ptr_equal(item(c.v, 1), item(c.v, 2));
	assert_ptr_equal(item(c.v, 3), item(c.v, 4));
	assert_ptr_equal(py_get(item(c.v, 3), "k")->item, item(c.v, 0)->item);
	arena_release(&c.a);
}

/* A list in itself, and a dict: a graph is what python makes, and nothing else has a circle. */
static void test_circles(void **state)
{
	struct case_read c;
	CASE(&c, pickle_parse_graph, "]\x94(h\0h\0e.");
	assert_null(c.why);
	assert_int_equal(c.v->n, 2);
	assert_ptr_equal(item(c.v, 0), c.v);
	arena_release(&c.a);
	CASE(&c, pickle_parse_graph, "}\x94\x8c\x01kh\0s.");
	assert_null(c.why);
	assert_int_equal(py_get(c.v, "k")->type, PY_DICT);
	arena_release(&c.a);
	CASE(&c, pickle_parse, "]\x94(h\0h\0e.");
	assert_int_equal(item(c.v, 0)->n, 0);
	arena_release(&c.a);
}

/* Each list holds the one before twice. */
static void test_doubling(void **state)
{
	struct buf b = {0};
	struct case_read c;
	buf_cstr(&b, "K\x01q");
	buf_char(&b, 0);
	for (int i = 0; i < 200; i++) {
		buf_cstr(&b, "0](h");
		buf_char(&b, (char)i);
		buf_char(&b, 'h');
		buf_char(&b, (char)i);
		buf_cstr(&b, "eq");
		buf_char(&b, (char)(i + 1));
	}
	buf_char(&b, '.');
	case_of(&c, pickle_parse, b.p, b.n);
	assert_non_null(c.why);
	arena_release(&c.a);
	case_of(&c, pickle_parse_graph, b.p, b.n);
	assert_null(c.why);
	assert_int_equal(c.v->n, 2);
	assert_ptr_equal(item(c.v, 0), item(c.v, 1));
	arena_release(&c.a);
	buf_release(&b);
}

/* Appended one by one, in batches, and after it was referred to. */
static void test_lists_grow(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct buf b = {0};
		struct case_read c;
		buf_cstr(&b, "]q\x01");
		for (int k = 0; k < 1000; k++) {
			buf_cstr(&b, "K");
			buf_char(&b, (char)(k % 256));
			buf_char(&b, 'a');
		}
		buf_char(&b, '(');
		for (int k = 0; k < 1000; k++)
			buf_cstr(&b, "K\x07");
		buf_cstr(&b, "e.");
		case_of(&c, parsers[i], b.p, b.n);
		assert_null(c.why);
		assert_int_equal(c.v->n, 2000);
		assert_int_equal(item(c.v, 999)->i, 999 % 256);
		assert_int_equal(item(c.v, 1999)->i, 7);
		arena_release(&c.a);
		buf_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_data), cmocka_unit_test(test_nothing_is_run), cmocka_unit_test(test_cut_and_damaged), cmocka_unit_test(test_graph_shares),
		cmocka_unit_test(test_circles), cmocka_unit_test(test_doubling), cmocka_unit_test(test_lists_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
