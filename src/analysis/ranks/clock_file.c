#include "analysis/ranks/clock_file.h"

#include "base/mem.h"
#include "base/sort.h"
#include "op/rule_file.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCK_FILE_RANK, CLOCK_FILE_OFFSET, CLOCK_FILE_DRIFT, CLOCK_FILE_COLUMNS };
static const char *const clock_file_columns[CLOCK_FILE_COLUMNS] = {"rank", "offset_ns", "drift_ppm"};

static const int64_t CLOCK_FILE_OFFSET_NS = 31622400LL * 1000000000; /* a year: no clock is farther off */
static const double CLOCK_FILE_DRIFT_PPM = 100000;

struct clock_file_reader {
	bool has_head;
	unsigned at[CLOCK_FILE_COLUMNS]; /* places of the columns in a line; UINT_MAX = not there */
	struct clock_of_rank *v;
	uint32_t n, cap;
};

/* Cuts the first cell off *line: a quote in a cell begins and ends a part in which commas count as text. False at the end of the line. */
static bool clock_file_cell(struct str *line, struct str *cell)
{
	if (!line->p)
		return false;
	bool quoted = false;
	size_t n = 0;
	for (; n < line->n && (quoted || line->p[n] != ','); n++)
		quoted ^= line->p[n] == '"';
	*cell = str_trim((struct str){line->p, n});
	if (cell->n > 1 && cell->p[0] == '"' && cell->p[cell->n - 1] == '"')
		*cell = (struct str){cell->p + 1, cell->n - 2};
	*line = n < line->n ? (struct str){line->p + n + 1, line->n - n - 1} : (struct str){0};
	return true;
}

static int clock_file_head(struct clock_file_reader *r, struct str line, struct err *e)
{
	struct str cell;
	for (unsigned c = 0; c < CLOCK_FILE_COLUMNS; c++)
		r->at[c] = UINT_MAX;
	for (unsigned i = 0; clock_file_cell(&line, &cell); i++)
		for (unsigned c = 0; c < CLOCK_FILE_COLUMNS; c++)
			if (str_eq(cell, str_from(clock_file_columns[c])) && r->at[c] == UINT_MAX)
				r->at[c] = i;
	r->has_head = true;
	if (r->at[CLOCK_FILE_RANK] == UINT_MAX || r->at[CLOCK_FILE_OFFSET] == UINT_MAX)
		return err_set(e, ERR_FORMAT, "the first line must name the columns, rank and offset_ns among them, with commas between");
	return 0;
}

static bool clock_file_ppm(struct str cell, double *drift)
{
	char text[64], *end;
	if (cell.n >= sizeof text || strspn(cell.p, "0123456789+-.eE") < cell.n)
		return false;
	memcpy(text, cell.p, cell.n);
	text[cell.n] = 0;
	double ppm = strtod(text, &end);
	*drift = ppm / 1e6;
	return end > text && !*end && fabs(ppm) <= CLOCK_FILE_DRIFT_PPM;
}

static int clock_file_values(struct clock_of_rank *c, const struct str *cell, struct err *e)
{
	struct str rank = cell[CLOCK_FILE_RANK], offset = cell[CLOCK_FILE_OFFSET], drift = cell[CLOCK_FILE_DRIFT];
	if (!str_to_i64(rank, &c->rank) || c->rank < 0)
		return err_set(e, ERR_FORMAT, "rank \"%.*s\": a whole number from 0 on was expected", (int)(rank.n < 40 ? rank.n : 40), rank.n ? rank.p : "");
	c->is_known = offset.n > 0;
	if (c->is_known && (!str_to_i64(offset, &c->offset_ns) || c->offset_ns < -CLOCK_FILE_OFFSET_NS || c->offset_ns > CLOCK_FILE_OFFSET_NS))
		return err_set(e, ERR_FORMAT, "offset_ns \"%.*s\": a whole number of nanoseconds, a year at most, was expected", (int)(offset.n < 40 ? offset.n : 40), offset.p);
	if (drift.n && !clock_file_ppm(drift, &c->drift))
		return err_set(e, ERR_FORMAT, "drift_ppm \"%.*s\": a number from %g to %g was expected", (int)(drift.n < 40 ? drift.n : 40), drift.p,
		               -CLOCK_FILE_DRIFT_PPM, CLOCK_FILE_DRIFT_PPM);
	return 0;
}

static int clock_file_row(void *context, const char *text, struct err *e)
{
	struct clock_file_reader *r = context;
	struct str line = str_from(text), cell, wanted[CLOCK_FILE_COLUMNS] = {{0}};
	while (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!r->has_head)
		return clock_file_head(r, line, e);
	for (unsigned i = 0; clock_file_cell(&line, &cell); i++)
		for (unsigned c = 0; c < CLOCK_FILE_COLUMNS; c++)
			if (r->at[c] == i)
				wanted[c] = cell;
	struct clock_of_rank clock = {0};
	if (clock_file_values(&clock, wanted, e) < 0)
		return -1;
	MEM_PUSH(r->v, r->n, r->cap, clock);
	return 0;
}

static int clock_file_by_rank(const void *a, const void *b)
{
	const struct clock_of_rank *x = a, *y = b;
	return COMPARE(x->rank, y->rank);
}

/* Sorts what was read into the arena. */
static struct clock_file *clock_file_keep(const struct clock_file_reader *r, const char *path, struct arena *a, struct err *e)
{
	struct clock_file *f = arena_alloc(a, sizeof *f);
	*f = (struct clock_file){arena_str(a, str_from(path)).p, arena_alloc(a, r->n * sizeof *f->v), r->n};
	memcpy(f->v, r->v, r->n * sizeof *f->v);
	qsort(f->v, f->n, sizeof *f->v, clock_file_by_rank);
	for (uint32_t i = 1; i < f->n; i++)
		if (f->v[i].rank == f->v[i - 1].rank)
			return err_set(e, ERR_FORMAT, "%s: rank %lld stands there twice", path, (long long)f->v[i].rank), NULL;
	return f;
}

struct clock_file *clock_file_read(const char *path, struct arena *a, struct err *e)
{
	struct clock_file_reader r = {0};
	struct clock_file *f = NULL;
	if (rule_file_read(path, clock_file_row, &r, e) == 0) {
		if (!r.n)
			err_set(e, ERR_FORMAT, "%s: no rank; lines below one that names the columns rank and offset_ns were expected", path);
		else
			f = clock_file_keep(&r, path, a, e);
	}
	mem_free(r.v);
	return f;
}

const struct clock_of_rank *clock_file_find(const struct clock_file *f, int64_t rank)
{
	const struct clock_of_rank key = {.rank = rank};
	return bsearch(&key, f->v, f->n, sizeof *f->v, clock_file_by_rank);
}
