/* The memory timeline as a page: a stacked plot by category, what the peak consists of, why what is Unknown is so. */
#include "analysis/memory/memory.h"
#include "base/html_text.h"
#include "base/mem.h"
#include "export/memory_timeline.h"

#include <stdio.h>

/* Of the plot, in tenths of a pixel; a column is a pixel wide. */
enum { LEFT = 900, TOP = 150, COLUMNS = 1060, UNIT = 10, HEIGHT = 4000, WIDTH = COLUMNS * UNIT, BELOW = 500, RIGHT = 150 };

/* Okabe and Ito's colours, which people with any kind of colour vision tell apart. */
static const char *const colour[MEMORY_CATEGORIES] = {"#0072b2", "#56b4e9", "#f0e442", "#cc79a7", "#e69f00", "#009e73", "#d55e00", "#8b949e"};

struct export_memory_timeline_page_state {
	int64_t of[MEMORY_CATEGORIES];
};

static int64_t export_memory_timeline_page_sum_of(const struct export_memory_timeline_page_state *s)
{
	int64_t sum = 0;
	for (int k = 0; k < MEMORY_CATEGORIES; k++)
		sum += s->of[k];
	return sum;
}

struct plot {
	const struct memory_timeline *t;
	int64_t first_ns, span_ns;
	struct export_memory_timeline_page_state *column;             /* the moment of each with the most memory */
	struct export_memory_timeline_page_state peak, highest, last; /* highest: of each category by itself */
	int64_t peak_ns, lowest;
};

static unsigned export_memory_timeline_page_column_of(const struct plot *p, int64_t time_ns)
{
	__int128 at = (__int128)(time_ns - p->first_ns) * COLUMNS / p->span_ns;
	return at >= COLUMNS ? COLUMNS - 1 : (unsigned)at;
}

static void export_memory_timeline_page_see(struct plot *p, const struct export_memory_timeline_page_state *now, int64_t time_ns)
{
	int64_t sum = export_memory_timeline_page_sum_of(now);
	for (int k = 0; k < MEMORY_CATEGORIES; k++)
		p->highest.of[k] = now->of[k] > p->highest.of[k] ? now->of[k] : p->highest.of[k];
	if (sum > export_memory_timeline_page_sum_of(&p->peak)) {
		p->peak = *now;
		p->peak_ns = time_ns;
	}
	p->lowest = sum < p->lowest ? sum : p->lowest;
}

static void plot_init(struct plot *p, const struct memory_timeline *t)
{
	uint32_t from = t->n_before, i = 0;
	struct export_memory_timeline_page_state now = {0};
	*p = (struct plot){.t = t, .first_ns = from < t->n ? t->change[from].time_ns : 0};
	p->span_ns = from < t->n ? t->change[t->n - 1].time_ns - p->first_ns : 0;
	p->span_ns = p->span_ns > 0 ? p->span_ns : 1;
	p->peak_ns = p->first_ns;
	p->column = NEW_ARRAY(COLUMNS, struct export_memory_timeline_page_state);
	for (; i < from; i++)
		now.of[t->change[i].category] += t->change[i].bytes;
	export_memory_timeline_page_see(p, &now, p->first_ns);
	for (unsigned c = 0; c < COLUMNS; c++) {
		p->column[c] = now;
		for (; i < t->n && export_memory_timeline_page_column_of(p, t->change[i].time_ns) == c; i++) {
			now.of[t->change[i].category] += t->change[i].bytes;
			export_memory_timeline_page_see(p, &now, t->change[i].time_ns);
			if (export_memory_timeline_page_sum_of(&now) > export_memory_timeline_page_sum_of(&p->column[c]))
				p->column[c] = now;
		}
	}
	p->last = now;
}

static const char *const unit_name[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

static int export_memory_timeline_page_unit_of(int64_t bytes)
{
	int u = 0;
	while (u < 5 && bytes >> (10 * (u + 1)))
		u++;
	return u;
}

/* Two decimals, the rest cut. */
static void export_memory_timeline_page_put_bytes(struct buf *b, int64_t bytes)
{
	int64_t size = bytes < 0 ? -bytes : bytes;
	int u = export_memory_timeline_page_unit_of(size);
	long long hundredths = (long long)((__int128)size * 100 >> (10 * u));
	if (u)
		buf_printf(b, "%s%lld.%02lld %s", bytes < 0 ? "-" : "", hundredths / 100, hundredths % 100, unit_name[u]);
	else
		buf_printf(b, "%lld B", (long long)bytes);
}

/* The least of 1, 2, 5, 10, ... that goes into `all` at most `most` times. */
static int64_t nice_step(int64_t all, int most)
{
	int64_t step = 1;
	for (int k = 0; all / step > most; k++)
		step = k % 3 == 1 ? step / 2 * 5 : step * 2;
	return step;
}

static void put_decimals(struct buf *b, int64_t value, int64_t scale)
{
	buf_i64(b, value / scale);
	int64_t rest = value % scale;
	if (!rest)
		return;
	for (buf_char(b, '.'); rest && scale > 1; rest %= scale) {
		scale /= 10;
		buf_char(b, (char)('0' + rest / scale));
	}
}

static int64_t y_of(int64_t bytes, int64_t top)
{
	return TOP + HEIGHT - (bytes <= 0 ? 0 : (int64_t)((__int128)bytes * HEIGHT / top));
}

static void put_axes(struct buf *b, const struct plot *p, int64_t top)
{
	int u = export_memory_timeline_page_unit_of(top);
	int64_t all = (int64_t)((__int128)top * 100 >> (10 * u)), step = nice_step(all, 6);
	for (int64_t v = 0; v <= all; v += step) {
		long long y = y_of((int64_t)(((__int128)v << (10 * u)) / 100), top);
		buf_printf(b, "<path class=grid d=\"M%d %lldh%d\"/><text class=y x=%d y=%lld>", LEFT, y, WIDTH, LEFT - 80, y + 40);
		put_decimals(b, v, 100);
		buf_printf(b, " %s</text>\n", unit_name[u]);
	}
	step = nice_step(p->span_ns, 10);
	for (int64_t v = 0; v <= p->span_ns; v += step) {
		long long x = LEFT + (long long)((__int128)v * WIDTH / p->span_ns);
		buf_printf(b, "<path class=tick d=\"M%lld %dv50\"/><text class=x x=%lld y=%d>", x, TOP + HEIGHT, x, TOP + HEIGHT + 200);
		put_decimals(b, v, 1000000);
		buf_cstr(b, "</text>\n");
	}
	buf_printf(b, "<text class=x x=%d y=%d>ms since the first event</text>\n", LEFT + WIDTH / 2, TOP + HEIGHT + 400);
}

/* One band: the upper edge from left to right, the lower one back. */
static void put_band(struct buf *b, const struct plot *p, int category, int64_t *below, int64_t top)
{
	buf_printf(b, "<path class=\"band c%d\" d=\"M%d %lld", category, LEFT, (long long)y_of(below[0], top));
	for (int c = 0; c < COLUMNS; c++) {
		long long y = y_of(below[c] + p->column[c].of[category], top);
		if (!c || y != y_of(below[c - 1] + p->column[c - 1].of[category], top))
			buf_printf(b, "H%dV%lld", LEFT + c * UNIT, y);
	}
	buf_printf(b, "H%d", LEFT + WIDTH);
	for (int c = COLUMNS - 1; c >= 0; c--) {
		long long y = y_of(below[c], top);
		if (c == COLUMNS - 1 || y != y_of(below[c + 1], top))
			buf_printf(b, "V%lld", y);
		if (c && y != y_of(below[c - 1], top))
			buf_printf(b, "H%d", LEFT + c * UNIT);
	}
	buf_printf(b, "Z\"><title>%s: at most ", memory_category_name[category]);
	export_memory_timeline_page_put_bytes(b, p->highest.of[category]);
	buf_cstr(b, "</title></path>\n");
	for (int c = 0; c < COLUMNS; c++)
		below[c] += p->column[c].of[category];
}

static void put_plot(struct buf *b, const struct plot *p)
{
	int64_t peak = export_memory_timeline_page_sum_of(&p->peak), top = peak > 0 ? peak : 1;
	int64_t *below = NEW_ARRAY(COLUMNS, int64_t);
	buf_printf(b, "<div class=plot><svg viewBox=\"0 0 %d %d\" role=img aria-label=\"memory by category over time; the tables below say the same\">\n",
	           LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW);
	put_axes(b, p, top);
	for (int k = 0; k < MEMORY_CATEGORIES; k++)
		if (p->highest.of[k] > 0)
			put_band(b, p, k, below, top);
	long long x = LEFT + (long long)((__int128)(p->peak_ns - p->first_ns) * WIDTH / p->span_ns);
	buf_printf(b, "<path class=peak d=\"M%lld %dV%d\"/>\n</svg></div>\n", x, TOP, TOP + HEIGHT);
	mem_free(below);
}

static void export_memory_timeline_page_put_cell(struct buf *b, int64_t bytes)
{
	buf_cstr(b, "<td class=n>");
	export_memory_timeline_page_put_bytes(b, bytes);
	buf_cstr(b, "</td>");
}

static void put_tables(struct buf *b, const struct plot *p)
{
	const struct memory_timeline *t = p->t;
	buf_cstr(b, "<table><thead><tr><th>Category<th class=n>At the peak<th class=n>Most<th class=n>At the end<th class=n>Blocks allocated</thead>\n");
	for (int k = MEMORY_CATEGORIES - 1; k >= 0; k--) {
		if (!p->highest.of[k] && !t->blocks[k])
			continue;
		buf_printf(b, "<tr><td><i class=c%d></i>%s</td>", k, memory_category_name[k]);
		export_memory_timeline_page_put_cell(b, p->peak.of[k]);
		export_memory_timeline_page_put_cell(b, p->highest.of[k]);
		export_memory_timeline_page_put_cell(b, p->last.of[k]);
		buf_printf(b, "<td class=n>%llu</td>\n", (unsigned long long)t->blocks[k]);
	}
	buf_cstr(b, "</table>\n<table><thead><tr><th>Why a block is Unknown<th class=n>Blocks<th class=n>Bytes, one after the other</thead>\n");
	for (int k = 1; k < MEMORY_WHYS; k++) {
		if (!t->unknown_blocks[k])
			continue;
		buf_printf(b, "<tr><td>%s</td><td class=n>%llu</td>", memory_why_text[k], (unsigned long long)t->unknown_blocks[k]);
		export_memory_timeline_page_put_cell(b, t->unknown_bytes[k]);
		buf_cstr(b, "\n");
	}
	buf_cstr(b, "</table>\n");
}

static void export_memory_timeline_page_put_total(struct buf *b, const char *what, const int64_t *total, uint32_t row)
{
	buf_printf(b, "<li>%s: ", what);
	if (row == ROW_NONE)
		buf_cstr(b, "not stated in the trace");
	else
		export_memory_timeline_page_put_bytes(b, total[row]);
	buf_cstr(b, "</li>\n");
}

static void export_memory_timeline_page_put_notes(struct buf *b, const struct profile *prof, const struct plot *p)
{
	const struct memory_timeline *t = p->t;
	buf_cstr(b, "<ul>\n<li>Peak of the plot: ");
	export_memory_timeline_page_put_bytes(b, export_memory_timeline_page_sum_of(&p->peak));
	buf_cstr(b, ", at the dashed line</li>\n");
	if (t->device != MEMORY_CPU) {
		struct memory_peak *peak;
		size_t n = memory_peaks(prof, INT64_MIN, INT64_MAX, &peak), d = (size_t)(t->device - MEMORY_CPU);
		export_memory_timeline_page_put_total(b, "Most memory allocated, by the allocator's own count", prof->memory.total_allocated, d < n ? peak[d].allocated : ROW_NONE);
		export_memory_timeline_page_put_total(b, "Most memory reserved", prof->memory.total_reserved, d < n ? peak[d].reserved : ROW_NONE);
		mem_free(peak);
	}
	if (!t->before_is_whole && t->held_stated)
		buf_cstr(b, "<li>What was held before the recording is what tensors of Python held when it began. What C++ alone held then is not in the plot.</li>\n");
	else if (!t->before_is_whole)
		buf_cstr(b, "<li>The trace does not say how much was held before the recording. The plot begins with what is known to have been there, and "
		            "is too low by the rest.</li>\n");
	if (p->lowest < 0)
		buf_cstr(b, "<li>More is freed than was allocated: what the records add up to goes below zero, and is drawn as zero.</li>\n");
	buf_printf(b, "<li>Each of the plot's %d columns shows the moment in it at which most was held. %s</li>\n</ul>\n", COLUMNS,
	           t->held_stated ? "Parameters, gradients, optimizer state and arguments of modules are what the program said; categories of others follow from where in a step they were "
	                            "allocated and freed."
	                          : "A trace does not say which tensor a block is: categories follow from where in a step it was allocated and freed.");
}

static const char head[] =
	"<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
	"<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
	"<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<style>\n"
	":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#5b6570;--line:#d8dee4}\n"
	"@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e8ec;--dim:#98a2ad;--line:#30363d}}\n"
	"body{margin:0 auto;padding:.8rem 1rem 2rem;max-width:80rem;background:var(--bg);color:var(--fg);font:14px/1.4 system-ui,sans-serif}\n"
	"h1{font-size:1.2rem;margin:0}.dim{color:var(--dim);overflow-wrap:anywhere;margin:0}svg{display:block;width:100%;height:auto;min-width:50rem}"
	".plot{overflow-x:auto}\n"
	"text{font:130px system-ui,sans-serif;fill:var(--fg)}.y{text-anchor:end}.x{text-anchor:middle}\n"
	".grid,.tick{stroke:var(--line);stroke-width:10;fill:none}.peak{stroke:var(--fg);stroke-width:14;stroke-dasharray:60 60;fill:none}\n"
	".band{stroke:var(--bg);stroke-width:3}table{display:inline-table;border-collapse:collapse;margin:.4rem 2rem .6rem 0;vertical-align:top}\n"
	"th,td{text-align:left;padding:.15rem .7rem .15rem 0;border-bottom:1px solid var(--line)}.n{text-align:right;font-variant-numeric:tabular-nums}\n"
	"td i{display:inline-block;width:.9rem;height:.9rem;border-radius:2px;margin-right:.4rem;vertical-align:-.1rem}ul{padding-left:1.2rem;color:var(--dim)}\n";

void memory_timeline_page(const struct profile *prof, const struct memory_timeline *t, struct buf *b)
{
	struct plot p;
	char device[24] = "CPU";
	plot_init(&p, t);
	if (t->device != MEMORY_CPU)
		snprintf(device, sizeof device, "GPU %d", t->device);
	buf_cstr(b, head);
	for (int k = 0; k < MEMORY_CATEGORIES; k++)
		buf_printf(b, ".c%d{fill:%s;background:%s}", k, colour[k], colour[k]);
	buf_printf(b, "\n</style><title>Memory of %s by category</title></head><body>\n<h1>Memory of %s by category</h1>\n<p class=dim>", device, device);
	html_put_text(b, prof->input_path);
	buf_cstr(b, "</p>\n");
	put_plot(b, &p);
	put_tables(b, &p);
	export_memory_timeline_page_put_notes(b, prof, &p);
	buf_cstr(b, "</body></html>\n");
	mem_free(p.column);
}
