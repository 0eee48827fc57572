/* A trace read in parts by several threads beside the same trace read by one: every table, string and diagnostic is compared. For the unit test and the fuzzer. */
#ifndef OPSCOPE_TESTS_PARTS_SAME_H
#define OPSCOPE_TESTS_PARTS_SAME_H

#include "input/kineto/kineto_reader.h"

#include <stdio.h>

/* What differs; NULL = nothing. */
static inline const char *parts_same_table(const void *a, const void *b, const struct store_table *t)
{
	const struct rows *x = a, *y = b;
	if (x->n != y->n)
		return "the number of rows";
	for (unsigned c = 0; c < t->n_columns; c++) {
		const void *p = *rows_column(a, &t->columns[c]), *q = *rows_column(b, &t->columns[c]);
		if (t->columns[c].group == DERIVED)
			continue;
		if ((p == NULL) != (q == NULL) || (p && memcmp(p, q, (size_t)x->n * t->columns[c].size)))
			return t->columns[c].name;
	}
	return NULL;
}

static inline const char *parts_same_diags(const struct diags *a, const struct diags *b)
{
	if (a->n != b->n)
		return "how many";
	for (unsigned i = 0; i < a->n; i++) {
		const struct diag_entry *x = &a->entry[i], *y = &b->entry[i];
		if (strcmp(x->kind, y->kind) || x->level != y->level || x->count != y->count || x->first_offset != y->first_offset || !str_eq(x->message, y->message)) {
			fprintf(stderr, "# %s: %lld from %lld: " STR_FMT "\n# %s: %lld from %lld: " STR_FMT "\n", x->kind, (long long)x->count, (long long)x->first_offset, STR_ARG(x->message), y->kind,
			        (long long)y->count, (long long)y->first_offset, STR_ARG(y->message));
			return x->kind;
		}
	}
	return NULL;
}

static inline bool parts_same_profile(const struct profile *a, const struct profile *b)
{
	const char *what = NULL, *where = "the profile";
	if (a->strings.n != b->strings.n || a->input_bytes != b->input_bytes || a->zero_is_start != b->zero_is_start || a->strings.dropped != b->strings.dropped)
		what = "itself";
	for (uint32_t i = 0; !what && i < a->strings.n; i++)
		if (!str_eq(profile_str(a, i), profile_str(b, i)))
			what = "strings";
	for (enum store_table_id id = 0; !what && id < STORE_N_TABLES; id++) {
		where = store_tables[id].name;
		what = parts_same_table(profile_table(a, id), profile_table(b, id), &store_tables[id]);
	}
	if (!what) {
		where = "the diagnostics";
		what = parts_same_diags(&a->diags, &b->diags);
	}
	if (what)
		fprintf(stderr, "# %s: %s differ\n", where, what);
	return !what;
}

static inline int parts_same_read(const char *path, unsigned threads, int64_t part_bytes, struct profile *p, unsigned *joined, struct err *e)
{
	struct source *s = source_open(path, e);
	if (!s)
		return -1;
	int rc = kineto_read_by(s, p, threads, part_bytes, joined, e);
	source_close(s);
	return rc;
}

/* Whether the file reads the same by so many threads, in parts of so many bytes, as by one. Adds to *joined how many parts were joined. */
static inline bool parts_same_file(const char *path, unsigned threads, int64_t part_bytes, unsigned *joined)
{
	struct err e[2] = {{0}, {0}};
	struct profile *p[2] = {profile_new(), profile_new()};
	unsigned n = 0;
	const int alone = parts_same_read(path, 1, part_bytes, p[0], NULL, &e[0]), together = parts_same_read(path, threads, part_bytes, p[1], &n, &e[1]);
	bool same = alone == together && (alone == 0 || (e[0].code == e[1].code && strcmp(e[0].msg, e[1].msg) == 0)) && parts_same_profile(p[0], p[1]);
	if (!same)
		fprintf(stderr, "# %s, %u threads: %s / %s\n", path, threads, alone < 0 ? e[0].msg : "read", together < 0 ? e[1].msg : "read");
	profile_free(p[0]);
	profile_free(p[1]);
	*joined += n;
	return same;
}

#endif
