/* What memory was used for, over time (analysis/memory/memory_categories.h has the rules; `export memory-timeline` is the same for torch's readers). */
#include "analysis/memory/memory.h"
#include "analysis/memory/memory_categories.h"
#include "analysis/recording.h"
#include "analysis/timeline/lttb.h"
#include "base/mem.h"
#include "query/window.h"

#include <stdio.h>

/* Points of the curve, besides those of the peaks. */
enum { CURVE_POINTS = 4000 };

struct memory_categories_held {
	int64_t of[MEMORY_CATEGORIES];
};

static int64_t memory_categories_sum_of(const struct memory_categories_held *h)
{
	int64_t sum = 0; /* memory_timeline_new has made sure that it fits */
	for (int k = 0; k < MEMORY_CATEGORIES; k++)
		sum += h->of[k];
	return sum;
}

/* The moments of the window at which something changes, each once; the first is the beginning of the window. */
struct moments {
	int64_t *time_ns, *sum;
	struct memory_categories_held *held;
	uint32_t n;
	uint32_t peak, peak_of[MEMORY_CATEGORIES]; /* where the sum, and each category by itself, is first at its highest */
	uint64_t blocks[MEMORY_CATEGORIES], unknown[MEMORY_WHYS]; /* allocated in the window */
	int64_t unknown_bytes[MEMORY_WHYS];
};

static void add_moment(struct moments *m, int64_t time_ns, const struct memory_categories_held *now)
{
	uint32_t at = m->n && m->time_ns[m->n - 1] == time_ns ? m->n - 1 : m->n++;
	m->time_ns[at] = time_ns;
	m->held[at] = *now;
	m->sum[at] = memory_categories_sum_of(now);
}

static void find_peaks(struct moments *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->sum[i] > m->sum[m->peak])
			m->peak = i;
		for (int k = 0; k < MEMORY_CATEGORIES; k++)
			if (m->held[i].of[k] > m->held[m->peak_of[k]].of[k])
				m->peak_of[k] = i;
	}
}

static void count_block(struct moments *m, const struct memory_change *c)
{
	m->blocks[c->category]++;
	if (c->category != MEMORY_UNKNOWN)
		return;
	m->unknown[c->why]++;
	if (__builtin_add_overflow(m->unknown_bytes[c->why], c->bytes, &m->unknown_bytes[c->why]))
		m->unknown_bytes[c->why] = INT64_MAX;
}

static void moments_init(struct moments *m, const struct memory_timeline *t, const struct window *w, int64_t zero_ns)
{
	struct memory_categories_held now = {0};
	uint32_t i = 0;
	*m = (struct moments){.time_ns = NEW_ARRAY_RAW(t->n + 1, int64_t), .sum = NEW_ARRAY_RAW(t->n + 1, int64_t), .held = NEW_ARRAY_RAW(t->n + 1, struct memory_categories_held)};
	for (; i < t->n && (i < t->n_before || (!w->all && t->change[i].time_ns < w->start_ns)); i++)
		now.of[t->change[i].category] += t->change[i].bytes;
	add_moment(m, w->all ? zero_ns : w->start_ns, &now);
	for (; i < t->n && window_has(w, t->change[i].time_ns); i++) {
		now.of[t->change[i].category] += t->change[i].bytes;
		add_moment(m, t->change[i].time_ns, &now);
		if (t->change[i].action == MEMORY_CREATE)
			count_block(m, &t->change[i]);
	}
	find_peaks(m);
}

static void moments_release(struct moments *m)
{
	mem_free(m->time_ns);
	mem_free(m->sum);
	mem_free(m->held);
}

enum { CATEGORIES_NAME, CATEGORIES_AT_PEAK, CATEGORIES_SHARE, CATEGORIES_PEAK, CATEGORIES_END, CATEGORIES_BLOCKS };

static const struct section memory_categories_section = {COLUMNS(
	[CATEGORIES_NAME] = {COLUMN(TEXT, "category", "Category", "what the memory is for, in torch's words; what was held before the recording and never freed in it is "
	                            "told apart from Unknown")},
	[CATEGORIES_AT_PEAK] = {COLUMN(BYTES, "at_peak_bytes", "At the peak", "held by this category when all categories together hold most")},
	[CATEGORIES_SHARE] = {COLUMN(PERCENT, "at_peak_pct", "Share", "share of all that is held then")},
	[CATEGORIES_PEAK] = {COLUMN(BYTES, "peak_bytes", "Its own peak", "most that this category held at a time")},
	[CATEGORIES_END] = {COLUMN(BYTES, "end_bytes", "At the end", "held by this category at the end")},
	[CATEGORIES_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "allocated meanwhile; 0 of a file of export_memory_timeline that has sums alone")},
)};

/* Memory that is held all the time is in the Unknown of every moment: a row of its own says what it most likely is. */
static void put_kept(const struct memory_timeline *m, int64_t whole, struct table *t)
{
	if (!m->kept_bytes)
		return;
	table_row(t);
	table_set_str(t, CATEGORIES_NAME, str_from(memory_kept_text(m)));
	table_set_i64(t, CATEGORIES_AT_PEAK, m->kept_bytes);
	if (whole > 0)
		table_set_f64(t, CATEGORIES_SHARE, 100.0 * (double)m->kept_bytes / (double)whole);
	table_set_i64(t, CATEGORIES_PEAK, m->kept_bytes);
	table_set_i64(t, CATEGORIES_END, m->kept_bytes);
	table_set_i64(t, CATEGORIES_BLOCKS, 0);
}

/* One row a category, in torch's order; those that the window does not have are left out. */
static void memory_categories_put_categories(const struct memory_timeline *timeline, const struct moments *m, struct table *t)
{
	for (int k = 0; k < MEMORY_CATEGORIES; k++) {
		int64_t apart = k == MEMORY_UNKNOWN ? timeline->kept_bytes : 0;
		int64_t peak = m->held[m->peak_of[k]].of[k] - apart, at_peak = m->held[m->peak].of[k] - apart, whole = m->sum[m->peak];
		if (!peak && !at_peak && !m->blocks[k])
			continue;
		table_row(t);
		table_set_fmt(t, CATEGORIES_NAME, "%s", memory_category_name[k]);
		table_set_i64(t, CATEGORIES_AT_PEAK, at_peak);
		if (whole > 0)
			table_set_f64(t, CATEGORIES_SHARE, 100.0 * (double)at_peak / (double)whole);
		table_set_i64(t, CATEGORIES_PEAK, peak);
		table_set_i64(t, CATEGORIES_END, m->held[m->n - 1].of[k] - apart);
		table_set_i64(t, CATEGORIES_BLOCKS, (int64_t)m->blocks[k]);
	}
	put_kept(timeline, m->sum[m->peak], t);
}

enum { CATEGORIES_TIME, CATEGORIES_HELD};

#define CATEGORIES_BYTES(id_, title_) COLUMN(BYTES, id_, title_, "held from then on")

static const struct section memory_categories_curve_section = {.name = "curve", .title = "Memory by category over time", COLUMNS(
	[CATEGORIES_TIME] = {COLUMN(NS, "time_ns", "Time", "since the start of the trace")},
	[CATEGORIES_HELD + MEMORY_PARAMETER] = {CATEGORIES_BYTES("parameter_bytes", "PARAMETER")},
	[CATEGORIES_HELD + MEMORY_OPTIMIZER_STATE] = {CATEGORIES_BYTES("optimizer_state_bytes", "OPTIMIZER_STATE")},
	[CATEGORIES_HELD + MEMORY_INPUT] = {CATEGORIES_BYTES("input_bytes", "INPUT")},
	[CATEGORIES_HELD + MEMORY_TEMPORARY] = {CATEGORIES_BYTES("temporary_bytes", "TEMPORARY")},
	[CATEGORIES_HELD + MEMORY_ACTIVATION] = {CATEGORIES_BYTES("activation_bytes", "ACTIVATION")},
	[CATEGORIES_HELD + MEMORY_GRADIENT] = {CATEGORIES_BYTES("gradient_bytes", "GRADIENT")},
	[CATEGORIES_HELD + MEMORY_AUTOGRAD_DETAIL] = {CATEGORIES_BYTES("autograd_detail_bytes", "AUTOGRAD_DETAIL")},
	[CATEGORIES_HELD + MEMORY_UNKNOWN] = {CATEGORIES_BYTES("unknown_bytes", "Unknown")},
)};

static void memory_categories_put_curve(const struct moments *m, int64_t zero_ns, struct table *t)
{
	bool *keep = NEW_ARRAY(m->n, bool);
	uint32_t *chosen = NEW_ARRAY_RAW(m->n, uint32_t), kept = 0;
	uint32_t n = lttb_select(m->time_ns, m->sum, m->n, CURVE_POINTS, chosen);
	for (uint32_t i = 0; i < n; i++)
		keep[chosen[i]] = true;
	keep[m->peak] = true;
	for (int k = 0; k < MEMORY_CATEGORIES; k++)
		keep[m->peak_of[k]] = true;
	for (uint32_t i = 0; i < m->n; i++) {
		if (!keep[i])
			continue;
		kept++;
		table_row(t);
		table_set_i64(t, CATEGORIES_TIME, m->time_ns[i] - zero_ns);
		for (unsigned k = 0; k < MEMORY_CATEGORIES; k++)
			table_set_i64(t, CATEGORIES_HELD + k, m->held[i].of[k]);
	}
	if (kept < m->n)
		table_note(t, "%u of %u points shown, chosen by Largest-Triangle-Three-Buckets on the sum; all peaks are among them", kept, m->n);
	mem_free(chosen);
	mem_free(keep);
}

enum { CATEGORIES_UNKNOWN_WHY, CATEGORIES_UNKNOWN_BLOCKS, CATEGORIES_UNKNOWN_SIZE };

static const struct section memory_categories_unknown_section = {.name = "unknown", .title = "Why blocks are Unknown", COLUMNS(
	[CATEGORIES_UNKNOWN_WHY] = {COLUMN(TEXT, "why", "Why", "what keeps a block from having a category")},
	[CATEGORIES_UNKNOWN_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "allocated meanwhile; 0 of a file of export_memory_timeline that has sums alone")},
	[CATEGORIES_UNKNOWN_SIZE] = {COLUMN(BYTES, "size_bytes", "Size", "sum of their sizes")},
)};

static void put_unknown(const struct moments *m, struct table *t)
{
	for (int y = 0; y < MEMORY_WHYS; y++) {
		if (!m->unknown[y])
			continue;
		table_row(t);
		table_set_fmt(t, CATEGORIES_UNKNOWN_WHY, "%s", memory_why_text[y]);
		table_set_i64(t, CATEGORIES_UNKNOWN_BLOCKS, (int64_t)m->unknown[y]);
		table_set_i64(t, CATEGORIES_UNKNOWN_SIZE, m->unknown_bytes[y]);
	}
}

/* Why some of what was held before has no category, where the program said what it knows. */
static void note_unknown_before(const struct memory_timeline *t, struct table *out)
{
	int64_t bytes[MEMORY_WHYS] = {0};
	for (uint32_t i = 0; i < t->n_before; i++) /* memory_timeline_new has made sure that sums fit */
		bytes[t->change[i].why] += t->change[i].bytes;
	for (int y = MEMORY_KNOWN + 1; t->held_stated && y < MEMORY_WHYS; y++)
		if (bytes[y])
			table_note(out, "%lld bytes that were held before have no category: %s", (long long)bytes[y], memory_why_text[y]);
}

static void memory_categories_put_notes(const struct memory_timeline *t, const struct moments *m, int64_t zero_ns, struct table *out)
{
	char device[24] = "CPU";
	if (t->device != MEMORY_CPU)
		snprintf(device, sizeof device, "GPU%d", t->device);
	table_note(out, "%s: the categories add up to %lld bytes at the peak, %lld ns after the start of the trace", device, (long long)m->sum[m->peak],
	           (long long)(m->time_ns[m->peak] - zero_ns));
	int64_t before = 0;
	for (uint32_t i = 0; i < t->n_before; i++)
		before += t->change[i].bytes;
	if (before && !t->before_is_whole)
		table_warn(out, "%lld bytes are known to be held since before the recording (without blocks of their own): the report memory, which goes by "
		           "the recording's own events, does not count them", (long long)before);
	note_unknown_before(t, out);
	if (t->held_damaged)
		table_warn(out, "what the program said of its tensors (opscope_held_memory) is damaged: it is not used");
	if (t->held_left_out > 0)
		table_warn(out, "the program held more tensors than the recording has room for: nothing is said of %lld blocks", (long long)t->held_left_out);
	if (!t->before_is_whole && t->held_stated)
		table_note(out, "what was held before the recording is what tensors of Python held when it began: what C++ alone held, as what is saved for a backward pass that was "
		           "under way, is not in the sums");
	else if (!t->before_is_whole)
		table_warn(out, "the trace does not say how much was held before the recording: all sums lack the unknown part of it");
	table_note(out, t->held_stated ? "parameters, gradients, optimizer state and arguments of modules are what the program said; others have a category where their place in the "
	                                 "step tells it"
	                               : "a trace does not say which tensor a block is: it has a category where its place in the step tells it");
}

static int categories_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	int device;
	struct window w;
	if (!p->memory.rows.n)
		return err_set(e, ERR_DATA, "the input holds no memory events; to record them: %s", recording_how(p, RECORD_MEMORY));
	if (p->memory_block.rows.n)
		return err_set(e, ERR_DATA, "a memory snapshot records no ops, by whose place in the step the use of a block is told: the reports memory and leaks tell who allocated it");
	if (memory_device_choose(p, args->device, &device, e) < 0 || window_of(p, args, &w, e) < 0)
		return -1;
	struct memory_timeline *t = memory_timeline_new(p, device, e);
	if (!t)
		return -1;
	struct moments m;
	int64_t zero_ns = memory_zero_ns(p);
	moments_init(&m, t, &w, zero_ns);
	section_start(&memory_categories_section, args, 0, out);
	memory_categories_put_categories(t, &m, out);
	memory_categories_put_notes(t, &m, zero_ns, out);
	struct table *curve = section_add(&memory_categories_curve_section, args, 0, out);
	curve->curve = true;
	memory_categories_put_curve(&m, zero_ns, curve);
	put_unknown(&m, section_add(&memory_categories_unknown_section, args, 0, out));
	moments_release(&m);
	memory_timeline_free(t);
	return 0;
}

const struct report report_memory_categories = {
	.name = "memory-categories",
	.title = "Memory by what it is used for",
	.asks = ASKS_MEMORY,
	.help = "Parameters, optimizer state, inputs, temporary memory, activations, gradients and details of autograd on one device (--device=cpu or a GPU "
	        "ordinal; default: the first GPU that has memory events): how much of each is held at the peak. Categories and rules are those of "
	        "`opscope export memory-timeline`; a recording of opscope.profile says itself what is a parameter, a gradient, optimizer state or an input, and what was held before. Sections: 'curve' (bytes of each over time, each value from its time to the next), 'unknown' (why blocks have "
	        "no category). Needs profile_memory=True; record_shapes=True tells more.",
	.sections = (const struct section *const[]){&memory_categories_section, &memory_categories_curve_section, &memory_categories_unknown_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_MEMORY,
	.takes = REPORT_STEPS | REPORT_DEVICE,
	.run = categories_run,
};
