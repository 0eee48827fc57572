/* Notes as people read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "render/notes.h"

static const char *const notes[][2] = {
	{"kernels 45432698 ns = with Tensor Cores 16645386 + without 28787312 + unknown 0", "kernels 45.433 ms = with Tensor Cores 16.645 + without 28.787 + unknown 0"},
	{"device work 1738039000 ns = attributed to operators 603558000 + unattributed 0 (12345 device events outside any op)",
	 "device work 1,738.039 ms = attributed to operators 603.558 + unattributed 0 (12,345 device events outside any op)"},
	{"all: computation 621408000 + exposed copy 21862000 = busy 643270000; busy + idle 737426000 = total 1380696000 ns (22290 device events).",
	 "all: computation 621.408 + exposed copy 21.862 = busy 643.270; busy + idle 737.426 = total 1,380.696 ms (22,290 device events)."},
	{"kernels 900 ns = in ops 812 (with 800, without 12, unknown 0) + in all others 88; 99.5 % have a model 7777777",
	 "kernels 900 ns = in ops 812 (with 800, without 12, unknown 0) + in all others 88; 99.5 % have a model 7,777,777"},
	{"(13672640 of 45432698 ns); they count 0", "(13.673 ms of 45.433 ms); they count 0"},
	{"GPU0: 3 allocations and frees, net 3145728 bytes = in operators 5242880 + outside any operator -2097152 (1234 events)",
	 "GPU0: 3 allocations and frees, net 3.0 MiB = in operators 5.0 MiB + outside any operator -2.0 MiB (1,234 events)"},
	{"net 2088508416 bytes at the peak, 46588000 ns after", "net 1.9 GiB at the peak, 46.588 ms after"},
	{"1204 events, sm80, x12345, 12345x, --steps=6..12345, RTX 4090: data sheet, 3.14159265, ProfilerStep#12345",
	 "1,204 events, sm80, x12345, 12345x, --steps=6..12345, RTX 4090: data sheet, 3.14159265, ProfilerStep#12345"},
	{"net 0 = in operators 47436198912 + outside -47436198912, 3-12345", "net 0 = in operators 47,436,198,912 + outside -47,436,198,912, 3-12345"},
	{"99999999999999999999999 ns", "99999999999999999999999 ns"},
	{"", ""},
};

static void test_notes(void **state)
{
	struct table t;
	table_init(&t, "t", "T");
	for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
		struct buf b = {0};
		note_put(&b, &t, str_from(notes[i][0]));
		buf_char(&b, 0);
		assert_string_equal(b.p, notes[i][1]);
		buf_release(&b);
	}
	table_release(&t);
}

static void expect_brief(const struct table *t, const char *text)
{
	struct buf b = {0};
	note_put_brief(&b, t);
	buf_char(&b, 0);
	assert_string_equal(b.p, text);
	buf_release(&b);
}

/* What changes the reader's mind comes first: a warning, else a sum that leaves much open, else the first. */
static void test_brief(void **state)
{
	struct table t;
	table_init(&t, "t", "T");
	TABLE_COLUMN(&t, .id = "ns", .title = "Time", .type = CELL_I64, .unit = UNIT_NS, .shown_in = "us");
	table_note(&t, "plain");
	expect_brief(&t, "plain");
	table_note(&t, "work 1000 ns = in ops 901 + unattributed 99");
	expect_brief(&t, "plain (1 more note: --notes=full)");
	table_note(&t, "work 1000 ns = in ops 899 + unattributed 101");
	expect_brief(&t, "work 1.000 us = in ops 0.899 + unattributed 0.101 (2 more notes: --notes=full)");
	table_warn(&t, "first %s", "warning");
	table_warn(&t, "second warning");
	expect_brief(&t, "first warning (4 more notes: --notes=full)");
	assert_string_equal(t.notes[0].p, "plain"); /* CSV and JSON keep the order */
	assert_int_equal(note_at(&t, 0), 3);
	assert_int_equal(note_at(&t, 1), 0);
	assert_int_equal(note_at(&t, 3), 2);
	assert_int_equal(note_at(&t, 4), 4);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_notes), cmocka_unit_test(test_brief)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
