/* Tables through the Arrow C data interface. Built twice: with the library, and with so low a limit that text needs wide offsets. */
#include "test.h"

#include <opscope/arrow.h>
#include <stdlib.h>

#ifdef ARROW_TEXT_MAX
static const char text_format[] = "U";
#else
static const char text_format[] = "u";
#endif

static struct opscope_table *make_table(const char *columns)
{
	const char *root = getenv("OPSCOPE_ROOT");
	char path[4096], error[256];
	snprintf(path, sizeof path, "%s/tests/data/synthetic/costs_gpu.json", root ? root : ".");
	struct opscope_profile *p = opscope_open(path, NULL, error, sizeof error);
	struct opscope_options *o = opscope_options_new();
	if (columns)
		assert_int_equal(opscope_options_set(o, "columns", columns, error, sizeof error), 0);
	struct opscope_table *t = p ? opscope_report(p, "operators", o, error, sizeof error) : NULL;
	if (!t)
		fail_msg("%s", error);
	opscope_options_free(o);
	opscope_close(p);
	return t;
}

static void check_text(const struct opscope_table *t, unsigned c, const struct ArrowArray *a, bool large)
{
	const char *text = a->buffers[2];
	for (size_t r = 0; r < opscope_table_rows(t); r++) {
		int64_t from = large ? ((const int64_t *)a->buffers[1])[r] : ((const int32_t *)a->buffers[1])[r];
		int64_t to = large ? ((const int64_t *)a->buffers[1])[r + 1] : ((const int32_t *)a->buffers[1])[r + 1];
		assert_int_equal(to - from, opscope_table_text_size(t, r, c));
		assert_memory_equal(text + from, opscope_table_text(t, r, c), (size_t)(to - from));
	}
}

static void check_column(const struct opscope_table *t, unsigned c, const struct ArrowSchema *s, const struct ArrowArray *a)
{
	static const char *const formats[] = {[OPSCOPE_INTEGER] = "l", [OPSCOPE_REAL] = "g", [OPSCOPE_BOOLEAN] = "b"};
	enum opscope_type type = opscope_column_type(t, c);
	assert_string_equal(s->name, opscope_column_id(t, c));
	assert_int_equal(a->length, opscope_table_rows(t));
	if (type == OPSCOPE_TEXT) {
		check_text(t, c, a, *s->format == 'U');
		return;
	}
	assert_string_equal(s->format, formats[type]);
	for (size_t r = 0; r < opscope_table_rows(t); r++) {
		const uint8_t *valid = a->buffers[0];
		assert_int_equal(valid ? !(valid[r / 8] >> r % 8 & 1) : 0, opscope_table_is_null(t, r, c));
		if (type == OPSCOPE_INTEGER)
			assert_int_equal(((const int64_t *)a->buffers[1])[r], opscope_table_integer(t, r, c));
	}
}

static void every_column(void **state)
{
	struct opscope_table *t = make_table(NULL);
	struct ArrowSchema s;
	struct ArrowArray a;
	unsigned texts = 0;
	assert_int_equal(opscope_table_arrow(t, &s, &a, NULL, 0), 0);
	assert_int_equal(s.n_children, opscope_table_columns(t));
	assert_true(opscope_table_rows(t) > 2);
	for (unsigned c = 0; c < opscope_table_columns(t); c++) {
		check_column(t, c, s.children[c], a.children[c]);
		texts += strcmp(s.children[c]->format, text_format) == 0;
	}
	assert_true(texts > 0);
	s.release(&s);
	a.release(&a);
	assert_null(s.release);
	assert_null(a.release);
	opscope_table_free(t);
}

/* Children that were moved out outlive the table, their parents and the stream. */
static void moved_out(void **state)
{
	struct opscope_table *t = make_table("name,calls");
	struct ArrowArrayStream stream;
	struct ArrowSchema s, name;
	struct ArrowArray a, names;
	assert_int_equal(opscope_table_arrow_stream(t, &stream, NULL, 0), 0);
	assert_int_equal(stream.get_schema(&stream, &s), 0);
	assert_int_equal(stream.get_next(&stream, &a), 0);
	stream.release(&stream);
	name = *s.children[0];
	names = *a.children[0];
	s.children[0]->release = NULL;
	a.children[0]->release = NULL;
	s.release(&s);
	a.release(&a);
	assert_string_equal(name.name, "name");
	check_text(t, 0, &names, *name.format == 'U');
	opscope_table_free(t);
	name.release(&name);
	names.release(&names);
}

static void never_asked_for(void **state)
{
	struct opscope_table *t = make_table(NULL);
	struct ArrowArrayStream stream;
	assert_int_equal(opscope_table_arrow_stream(t, &stream, NULL, 0), 0);
	stream.release(&stream);
	assert_int_equal(opscope_table_arrow(t, NULL, NULL, NULL, 0), 0);
	opscope_table_free(t);
}

static void null_is_an_error(void **state)
{
	char error[256] = "";
	struct ArrowSchema s;
	assert_int_equal(opscope_table_arrow(NULL, &s, NULL, error, sizeof error), -1);
	assert_non_null(strstr(error, "NULL"));
	assert_int_equal(opscope_table_arrow_stream(NULL, NULL, NULL, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_column),
		cmocka_unit_test(moved_out),
		cmocka_unit_test(never_asked_for),
		cmocka_unit_test(null_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
