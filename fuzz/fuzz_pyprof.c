/* PyProf's formulas on any marker: a line with the kernel's name, then the text of an argument marker. It ends, and numbers are finite or
 * refused, whatever the marker says; what a marker's strings and integers are read with takes any text. */
#include "predecessors/pyprof/op/pyprof.h"
#include "predecessors/pyprof/op/repr.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void model(const struct pyprof_marker *m, struct str kernel, enum pyprof_rules rules, bool backward, int64_t sub)
{
	struct pyprof_model out = {0};
	const struct pyprof_call c = {.rules = rules, .marker = m, .mod = m->mod, .op = m->op, .kernel = kernel, .backward = backward,
	                              .sub = sub, .grid = {2, 4, 1}};
	struct buf text = {0};
	if (pyprof_model_of(&c, &out) == 0) {
		check(!out.overflow && !out.why && strchr("10-", out.tc));
		check(!isnan(out.flops.f) && !isnan(out.bytes.f));
		pyprof_num_put(&text, out.flops);
		pyprof_num_put(&text, out.bytes);
		check(text.n > 1);
	} else {
		check(out.why && !out.flops.i && !out.bytes.i);
	}
	buf_release(&text);
	buf_release(&out.params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1);
	if (size)
		memcpy(copy, data, size);
	struct str text = {copy, size}, kernel = {0};
	struct arena a = {0};
	struct pyprof_marker m;
	struct buf out = {0};
	struct str *v;
	const int64_t *ids;
	unsigned n;
	if (!str_split(&text, '\n', &kernel))
		kernel = STR("");
	if (!text.p)
		text = STR("");
	if (pyprof_marker_parse(text, &a, &m) == 0)
		for (int way = 0; way < 16; way++)
			model(&m, kernel, way & 1 ? PYPROF_2 : PYPROF_3, way & 2, way >> 2);
	pyprof_strings_parse(text, "traceMarker", &a, &v, &n);
	if (pyprof_strings_parse(text, NULL, &a, &v, &n) == 0) { /* what is written is read again */
		struct str *again;
		unsigned k;
		pyprof_put_repr_list(&out, v, n);
		check(pyprof_strings_parse(buf_view(&out), NULL, &a, &again, &k) == 0 && k == n);
	}
	pyprof_ints_parse(text, &a, &ids, &n);
	pyprof_string_parse(text, &a);
	pyprof_short_name(&out, kernel);
	buf_release(&out);
	arena_release(&a);
	free(copy);
	return 0;
}
