#include "render/render.h"

#include "render/layout.h"
#include "render/number.h"

#include <math.h>

const struct renderer *renderer_find(struct str name)
{
	for (const struct renderer *const *r = renderer_registry; *r; r++)
		if (str_eqc(name, (*r)->name))
			return *r;
	return NULL;
}

const char *renderer_suffix(const struct renderer *r)
{
	return r->suffix ? r->suffix : r->name;
}

const struct renderer *renderer_of_suffix(struct str suffix)
{
	for (const struct renderer *const *r = renderer_registry; *r; r++)
		if (str_eqc(suffix, renderer_suffix(*r)))
			return *r;
	return NULL;
}

size_t render_rows(const struct renderer *r, const struct table *t)
{
	const struct layout *l = r->layouts ? layout_of(t) : NULL;
	return l ? l->rows : r->rows;
}

const struct layout *layout_of(const struct table *t)
{
	const char *name = t->layout, *dash = name ? strchr(name, '-') : NULL;
	for (const struct layout *const *l = layout_registry; name && *l; l++)
		if (str_eqc((struct str){name, dash ? (size_t)(dash - name) : strlen(name)}, (*l)->name) && (!(*l)->knows || (*l)->knows(name)))
			return *l;
	return NULL;
}

/* A ladder of units, smallest first. */
struct rung {
	const char *name;
	double scale;
	int digits;
};

static const struct rung time_rungs[] = {{"ns", 1, 0}, {"us", 1e3, 3}, {"ms", 1e6, 3}, {"s", 1e9, 3}};
static const struct rung byte_rungs[] = {{"B", 1, 0}, {"KiB", 0x1p10, 1}, {"MiB", 0x1p20, 1},
                                         {"GiB", 0x1p30, 1}, {"TiB", 0x1p40, 1}, {"PiB", 0x1p50, 1}};
static const struct rung flop_rungs[] = {{"FLOP", 1, 0}, {"KFLOP", 1e3, 3}, {"MFLOP", 1e6, 3}, {"GFLOP", 1e9, 3},
                                         {"TFLOP", 1e12, 3}, {"PFLOP", 1e15, 3}, {"EFLOP", 1e18, 3}};

/* v in the largest unit that keeps it below `step` of itself, rounded: 999999 ns is 1.000 ms, not 1000.000 us. The doubles
 * are exact enough here: at most 7 significant digits are shown. */
static void put_ladder(struct buf *out, double v, const struct rung *rung, unsigned n, double step, int digits)
{
	unsigned i = 0;
	int d = 0;
	for (;; i++) {
		d = digits ? digits : rung[i].digits;
		if (i == 0 && !digits && v != floor(v))
			d = 1; /* a mean below one whole unit step */
		double half = 0.5 * pow(10, -d);
		if (i + 1 == n || fabs(v) / rung[i].scale + half < step)
			break;
	}
	if (i == 0 && v == floor(v))
		d = 0;
	number_fixed(out, v / rung[i].scale, d, true);
	buf_char(out, ' ');
	buf_cstr(out, rung[i].name);
}
#define PUT_LADDER(out, v, rungs, step, digits) \
	put_ladder(out, v, rungs, sizeof(rungs) / sizeof(rungs)[0], step, digits)

/* A duration in the unit asked for; false when none is. */
static bool put_asked_time(struct buf *out, const struct column *c, double ns)
{
	if (!c->shown_in)
		return false;
	for (size_t i = 0; i < sizeof time_rungs / sizeof *time_rungs; i++)
		if (strcmp(c->shown_in, time_rungs[i].name) == 0) {
			number_fixed(out, ns / time_rungs[i].scale, c->digits ? c->digits : i || ns == floor(ns) ? time_rungs[i].digits : 1, true);
			buf_printf(out, " %s", time_rungs[i].name);
			return true;
		}
	return false;
}

static void put_time_point(struct buf *out, int64_t ns)
{
	uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	buf_printf(out, "%s%llu.%09llu s", ns < 0 ? "-" : "", (unsigned long long)(u / 1000000000u),
	           (unsigned long long)(u % 1000000000u));
}

static void put_plain(struct buf *out, double v, int digits)
{
	if (digits)
		number_fixed(out, v, digits, false);
	else if (v == floor(v) && fabs(v) < 1e15)
		number_fixed(out, v, 0, false);
	else if (fabs(v) >= 1e-3 && fabs(v) < 1e15)
		number_fixed(out, v, 3, false);
	else
		number_shortest(out, v);
}

static void render_put_number(struct buf *out, const struct column *c, union cell v)
{
	bool whole = c->type == CELL_I64;
	double f = whole ? (double)v.i : v.f;
	switch (c->unit) {
	case UNIT_NS:
		if (put_asked_time(out, c, f))
			return;
		PUT_LADDER(out, f, time_rungs, 1000, c->digits);
		return;
	case UNIT_BYTES:
		PUT_LADDER(out, f, byte_rungs, 1024, c->digits);
		return;
	case UNIT_FLOPS:
		PUT_LADDER(out, f, flop_rungs, 1000, c->digits);
		return;
	case UNIT_PERCENT:
		number_fixed(out, f, c->digits ? c->digits : 2, true);
		buf_cstr(out, " %");
		return;
	case UNIT_RATIO:
		number_fixed(out, f, c->digits ? c->digits : 4, false);
		return;
	case UNIT_TIME_NS:
		if (whole) {
			put_time_point(out, v.i);
			return;
		}
		break;
	case UNIT_COUNT:
		if (whole)
			number_grouped(out, v.i);
		else
			number_fixed(out, f, c->digits ? c->digits : f == floor(f) ? 0 : 2, true);
		return;
	case UNIT_US:
	case UNIT_NONE:
		break;
	}
	if (whole && !c->digits)
		buf_i64(out, v.i);
	else
		put_plain(out, f, c->digits);
}

void format_cell(const struct table *t, size_t row, unsigned col, struct buf *out)
{
	const struct column_data *d = &t->data[t->data[col].col.type == CELL_STR ? table_shown_column(t, col) : col];
	if (!d->set[row])
		buf_char(out, '-');
	else if (d->col.type == CELL_STR)
		buf_str(out, d->cell[row].s);
	else if (d->col.type == CELL_BOOL)
		buf_cstr(out, d->cell[row].i ? "yes" : "no");
	else
		render_put_number(out, &d->col, d->cell[row]);
}
