/* Prints the five operators with the largest device time of their own; on a run without a GPU, host time.
 *
 *	cc top_operators.c $(pkg-config --cflags --libs opscope) -o top_operators
 *	./top_operators trace.json.gz
 */
#include <inttypes.h>
#include <opscope/opscope.h>
#include <stdio.h>

/* An integer, or "-" where the value is not known. */
static void print_number(const struct opscope_table *t, size_t row, unsigned column, int width)
{
	if (opscope_table_is_null(t, row, column))
		printf(" %*s", width, "-");
	else
		printf(" %*" PRId64, width, opscope_table_integer(t, row, column));
}

int main(int argc, char **argv)
{
	char error[512];
	if (argc != 2) {
		fprintf(stderr, "usage: %s TRACE\n", argv[0]);
		return 2;
	}
	struct opscope_profile *profile = opscope_open(argv[1], NULL, error, sizeof error);
	if (!profile) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	struct opscope_table *t = opscope_report(profile, "operators", NULL, error, sizeof error);
	const char *time = t && opscope_column_find(t, "device_self_ns") >= 0 ? "device_self_ns" : "host_self_ns";
	if (!t || opscope_table_sort(t, time, 1, error, sizeof error) < 0) {
		fprintf(stderr, "%s\n", error);
		opscope_table_free(t);
		opscope_close(profile);
		return 1;
	}
	unsigned name = (unsigned)opscope_column_find(t, "name");
	unsigned calls = (unsigned)opscope_column_find(t, "calls");
	unsigned self = (unsigned)opscope_column_find(t, time);
	for (size_t row = 0; row < opscope_table_rows(t) && row < 5; row++) {
		printf("%-48s", opscope_table_text(t, row, name));
		print_number(t, row, calls, 8);
		printf(" calls");
		print_number(t, row, self, 14);
		printf(" ns\n");
	}
	for (unsigned i = 0; i < opscope_table_notes(t); i++)
		printf("%s\n", opscope_table_note(t, i));
	opscope_table_free(t);
	opscope_close(profile);
	return 0;
}
