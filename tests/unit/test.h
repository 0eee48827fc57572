/* What every unit test includes: cmocka with the headers it wants before it. */
#ifndef OPSCOPE_TESTS_UNIT_TEST_H
#define OPSCOPE_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/str.h"

static inline void assert_str_equal(struct str got, const char *want)
{
	assert_int_equal(got.n, strlen(want));
	assert_memory_equal(got.n ? got.p : "", want, got.n);
}

/* Ends the test as skipped. In place of cmocka's skip(), which gives no reason, and which is a failure where its output is read as TAP (tap.c). */
void skip_because(const char *why);

#define RUN_TESTS(list) cmocka_run_group_tests(list, NULL, NULL)

#endif
