#include "query/curve.h"

#include "analysis/timeline/lttb.h"
#include "base/mem.h"
#include "base/saturate.h"

static bool is_measure(const struct table *t, unsigned c)
{
	return c && t->data[c].col.type == CELL_I64;
}

static void keep_peaks(const struct table *t, uint8_t *keep)
{
	for (unsigned c = 0; c < t->n_columns; c++) {
		size_t best = t->n_rows;
		for (size_t r = 0; is_measure(t, c) && r < t->n_rows; r++)
			if (t->data[c].set[r] && (best == t->n_rows || t->data[c].cell[r].i > t->data[c].cell[best].i))
				best = r;
		if (best < t->n_rows)
			keep[best] = 1;
	}
}

void curve_thin(struct table *t, size_t n)
{
	unsigned measures = 0;
	for (unsigned c = 0; c < t->n_columns; c++)
		measures += is_measure(t, c);
	if (!measures || n < measures + 3 || t->n_rows <= n || t->n_rows > UINT32_MAX)
		return;
	size_t rows = t->n_rows, kept = 0;
	int64_t *x = NEW_ARRAY(rows, int64_t), *y = NEW_ARRAY(rows, int64_t);
	uint32_t *chosen = NEW_ARRAY(rows, uint32_t);
	uint8_t *keep = NEW_ARRAY(rows, uint8_t);
	for (size_t r = 0; r < rows; r++) {
		x[r] = table_i64(t, r, 0);
		for (unsigned c = 0; c < t->n_columns; c++)
			if (is_measure(t, c) && t->data[c].set[r])
				add_saturated(&y[r], t->data[c].cell[r].i);
	}
	uint32_t points = lttb_select(x, y, (uint32_t)rows, (uint32_t)n - measures, chosen);
	for (uint32_t i = 0; i < points; i++)
		keep[chosen[i]] = 1;
	keep_peaks(t, keep);
	for (size_t r = 0; r < rows; r++)
		kept += keep[r];
	table_keep(t, keep);
	t->hidden_rows += rows - kept;
	t->thinned = true;
	table_note(t, "%zu of %zu points are shown: they keep the shape of the curve and the peak of each column (--limit=0 shows all)", kept, rows);
	mem_free(x);
	mem_free(y);
	mem_free(chosen);
	mem_free(keep);
}
