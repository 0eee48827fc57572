#include "input/nsys/nsys_metrics.h"

#include "base/search.h"
#include "base/sort.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

/* All curves together have about so many points: more samples are thinned. */
enum { NSYS_METRICS_POINTS = 1 << 19, NSYS_METRICS_TRACKS = 1 << 12 };

static struct nsys_metrics *nsys_metrics_of(struct nsys *n)
{
	if (!n->metrics) {
		n->metrics = NEW(struct nsys_metrics);
		intern_init(&n->metrics->keys);
	}
	return n->metrics;
}

/* Values of "[Throughput %]" are in percent. Those of clocks are in Hz, though the names say MHz. Names of 2021 have no unit: their values are shares. Values of "[Avg]" and
 * "[Cycles Active]" have scales that nsys does not state. */
static enum nsys_metrics_scale nsys_metrics_scale_of(struct str name)
{
	static const char *const share[] = {" Active", " Issue", " Bandwidth", " Throughput", " User Data", " Protocol Data", " in Flight", " In Flight", " Active SMs"};
	if (str_ends(name, STR("[Throughput %]")))
		return NSYS_METRICS_PERCENT;
	if (str_has(name, STR("Clock Frequency")))
		return NSYS_METRICS_HERTZ;
	for (size_t i = 0; i < sizeof share / sizeof *share; i++)
		if (str_ends(name, str_from(share[i])))
			return NSYS_METRICS_PERCENT;
	return NSYS_METRICS_UNKNOWN;
}

static uint32_t nsys_metrics_new_series(struct nsys_metrics *m, int32_t device)
{
	MEM_PUSH(m->series, m->n_series, m->cap_series, (struct nsys_metrics_series){.device = device});
	return m->n_series - 1;
}

enum { NAME_TYPE, NAME_ID, NAME_TEXT };
static const char *const name_columns[] = {"typeId", "metricId", "metricName", NULL};

/* The lowest byte of typeId is the GPU's id in TARGET_INFO_GPU. */
static void nsys_metrics_name_row(struct nsys *n, const struct sqlscan *s)
{
	struct nsys_metrics *m = nsys_metrics_of(n);
	int64_t key[2];
	if (!sqlscan_i64(s, NAME_TYPE, &key[0]) || !sqlscan_i64(s, NAME_ID, &key[1]) || sqlscan_is_null(s, NAME_TEXT))
		return;
	if (m->n_tracks == NSYS_METRICS_TRACKS) {
		NSYS_DIAG(n, "gpu-metrics-limit", DIAG_LOSS, " is beyond the first %d metrics of GPUs, more than are read: its samples are left out", NSYS_METRICS_TRACKS);
		return;
	}
	const uint32_t before = m->keys.n, name = nsys_intern_cell(n, s, NAME_TEXT);
	const int32_t device = (int32_t)(key[0] & 0xff);
	enum nsys_metrics_scale scale = nsys_metrics_scale_of(profile_str(n->p, name));
	intern_put(&m->keys, (const char *)key, sizeof key);
	if (m->keys.n == before)
		return;
	if (scale != NSYS_METRICS_UNKNOWN && ANY_WHERE(i, 0, m->n_tracks, m->track[i].name == name && m->track[i].device == device)) {
		NSYS_DIAG(n, "gpu-metric-twice", DIAG_LOSS, " names a metric that its GPU has already: the samples of this row's metric are left out");
		scale = NSYS_METRICS_UNKNOWN;
	}
	/* The metrics of a GPU are sampled together, until a row shows that one is not (nsys_metrics_split). */
	uint32_t series = 0;
	while (series < m->n_series && m->series[series].device != device)
		series++;
	if (series == m->n_series)
		nsys_metrics_new_series(m, device);
	MEM_PUSH(m->track, m->n_tracks, m->cap_tracks, ((struct nsys_metrics_track){.name = name, .scale = scale, .device = device, .series = series}));
}

/* False: the value is impossible. Clocks are unsigned 32-bit numbers in a signed column. */
static bool nsys_metrics_value(enum nsys_metrics_scale scale, double v, float *out)
{
	enum { PERCENT_MOST = 127 }; /* a share may pass 100: the peak is of a clock that the GPU may exceed a little */
	const double wraps = 4294967296.0, hertz_per_mhz = 1e6, mhz_most = 1e5;
	if (scale == NSYS_METRICS_HERTZ) {
		v += v < 0 && v >= -wraps / 2 ? wraps : 0;
		*out = (float)(v > mhz_most ? v / hertz_per_mhz : v);
		return v >= 0 && v < wraps;
	}
	*out = (float)v;
	return v >= 0 && v <= PERCENT_MOST;
}

/* Gives the track a series of its own: it lacks a sample at a time at which other tracks of its series have one. */
static void nsys_metrics_split(struct nsys_metrics *m, struct nsys_metrics_track *t)
{
	const uint32_t from = t->series;
	t->series = nsys_metrics_new_series(m, t->device);
	struct nsys_metrics_series *to = &m->series[t->series];
	MEM_GROW(to->time_ns, to->cap, t->n);
	if (t->n)
		memcpy(to->time_ns, m->series[from].time_ns, t->n * sizeof *to->time_ns);
	to->n = t->n;
	to->disordered = m->series[from].disordered;
}

enum { METRIC_TIME, METRIC_TYPE, METRIC_ID, METRIC_VALUE };
static const char *const metric_columns[] = {"timestamp", "typeId", "metricId", "value", NULL};

static void nsys_metrics_row(struct nsys *n, const struct sqlscan *s)
{
	enum { TOO_FAR = 60 };
	struct nsys_metrics *m = nsys_metrics_of(n);
	int64_t at, key[2];
	double v;
	float value;
	if (!sqlscan_i64(s, METRIC_TIME, &at) || at > 1ll << TOO_FAR || at < -(1ll << TOO_FAR)) {
		NSYS_DIAG(n, "bad-time", DIAG_LOSS, ": timestamp is no time in ns: the row is left out");
		return;
	}
	const uint32_t id = sqlscan_i64(s, METRIC_TYPE, &key[0]) && sqlscan_i64(s, METRIC_ID, &key[1]) ? intern_find(&m->keys, (struct str){(const char *)key, sizeof key}) : INTERN_NONE;
	struct nsys_metrics_track *t = id == INTERN_NONE ? NULL : &m->track[id - 1];
	m->unnamed += !t;
	m->unscaled += t && t->scale == NSYS_METRICS_UNKNOWN;
	if (!t || t->scale == NSYS_METRICS_UNKNOWN || t->n >= UINT32_MAX / 2)
		return;
	if (!sqlscan_f64(s, METRIC_VALUE, &v) || !nsys_metrics_value(t->scale, v, &value)) {
		t->unsound++;
		return;
	}
	struct nsys_metrics_series *x = &m->series[t->series];
	if (t->n < x->n && x->time_ns[t->n] != at) {
		nsys_metrics_split(m, t);
		x = &m->series[t->series];
	}
	if (t->n == x->n) {
		x->disordered |= x->n && at < x->time_ns[x->n - 1];
		MEM_PUSH(x->time_ns, x->n, x->cap, at);
	}
	MEM_PUSH(t->value, t->n, t->cap, value);
}

/* ---- when all rows are read ---- */

static void nsys_metrics_sort(struct nsys_metrics *m, uint32_t series)
{
	for (uint32_t i = 0; i < m->n_tracks; i++)
		if (m->track[i].series == series && m->track[i].n && m->track[i].n < m->series[series].n)
			nsys_metrics_split(m, &m->track[i]);
	struct nsys_metrics_series *x = &m->series[series];
	struct sort_item *v = NEW_ARRAY_RAW(x->n, struct sort_item);
	float *sorted = NEW_ARRAY_RAW(x->n, float);
	for (uint32_t i = 0; i < x->n; i++)
		v[i] = (struct sort_item){sort_key_i64(x->time_ns[i]), i, 0};
	sort_items(v, x->n);
	for (uint32_t i = 0; i < m->n_tracks; i++) {
		struct nsys_metrics_track *t = &m->track[i];
		if (t->series != series || !t->n)
			continue;
		assert(t->n == x->n);
		for (uint32_t k = 0; k < x->n; k++)
			sorted[k] = t->value[v[k].row];
		memcpy(t->value, sorted, x->n * sizeof *sorted);
	}
	for (uint32_t k = 0; k < x->n; k++)
		x->time_ns[k] = (int64_t)(v[k].key ^ 1ull << 63);
	mem_free(sorted);
	mem_free(v);
}

/* The median time between two samples, of up to LOOKS pairs of samples. */
static int64_t nsys_metrics_interval(const struct nsys_metrics_series *x)
{
	enum { LOOKS = 4096 };
	int64_t gap[LOOKS];
	uint32_t n = 0;
	for (uint32_t i = 1, by = x->n / LOOKS + 1; i < x->n && n < LOOKS; i += by)
		if (x->time_ns[i] > x->time_ns[i - 1])
			gap[n++] = x->time_ns[i] - x->time_ns[i - 1];
	return n ? sort_median_i64(gap, n) : 0;
}

/* Says what was left out. A metric with too many impossible values is left out whole: its values are not what its name says. */
static void nsys_metrics_check(struct nsys *n, struct nsys_metrics *m)
{
	enum { SOUND = 99, PARTS = 100 };
	for (uint32_t i = 0; i < m->n_tracks; i++) {
		struct nsys_metrics_track *t = &m->track[i];
		const bool none = (double)t->n * (PARTS - SOUND) < (double)t->unsound * SOUND;
		if (t->unsound)
			diag_add_n(&n->p->diags, "gpu-metric-value", DIAG_LOSS, t->unsound, -1, "a sample of \"" STR_FMT "\" of GPU %d is no %s: it is left out%s", STR_ARG(profile_str(n->p, t->name)), t->device,
			           t->scale == NSYS_METRICS_HERTZ ? "frequency" : "share of 100", none ? ", and so are all samples of this metric, since many are none" : "");
		t->n = none ? 0 : t->n;
	}
	if (m->unnamed)
		diag_add_n(&n->p->diags, "gpu-metric-unnamed", DIAG_LOSS, m->unnamed, -1, "a row of GPU_METRICS is of a metric that TARGET_INFO_GPU_METRICS does not name: the row is left out");
	if (m->unscaled)
		diag_add_n(&n->p->diags, "gpu-metric-unknown", DIAG_NOTE, m->unscaled, -1, "a row of GPU_METRICS is of a metric that is neither a share of 100 nor a clock: the unit is not known, and the row is left out");
}

static void nsys_metrics_fact(struct nsys *n, const char *fact, int32_t device, int64_t v)
{
	struct buf key = {0}, value = {0};
	buf_printf(&key, "%s%d", fact, device);
	buf_i64(&value, v);
	build_meta(&n->b, intern_put(&n->p->strings, key.p, key.n), intern_put(&n->p->strings, value.p, value.n), false);
	buf_release(&key);
	buf_release(&value);
}

struct nsys_metrics_curve {
	struct nsys *n;
	const struct nsys_metrics_track *t;
	uint32_t track;          /* where the points lie */
	uint16_t cat;
	struct arg_pair device;
	struct buf text;
};

static void nsys_metrics_point(struct nsys_metrics_curve *c, int64_t from_ns, double value)
{
	struct nsys *n = c->n;
	buf_clear(&c->text);
	buf_printf(&c->text, "%.15g", round(value * 100) / 100);
	const struct arg_pair pair[2] = {{intern_str(&n->p->strings, str_from(arg_key_text[ARG_COUNTER_VALUE])), intern_put(&n->p->strings, c->text.p, c->text.n), 0}, c->device};
	build_mark(&n->b, from_ns, c->t->name, c->track, build_args(&n->b, pair, 2), c->cat, 'C');
}

/* A point is the mean over up to `each` samples that follow one another without a gap. */
static void nsys_metrics_put_curve(struct nsys_metrics_curve *c, const struct nsys_metrics_series *x, uint32_t each)
{
	int64_t from = 0, ns = 0;
	double sum = 0;
	uint32_t n = 0;
	assert(c->t->n <= x->n);
	for (uint32_t i = 0; i < c->t->n; i++) {
		const int64_t gap = i ? x->time_ns[i] - x->time_ns[i - 1] : INT64_MAX, length = gap <= 2 * x->interval_ns ? gap : x->interval_ns;
		if (n && (n == each || gap > 2 * x->interval_ns)) {
			nsys_metrics_point(c, from, sum / (double)ns);
			n = 0;
		}
		if (!n) {
			from = x->time_ns[i] - length;
			sum = 0;
			ns = 0;
		}
		const int64_t weight = length > 0 ? length : 1;
		sum += c->t->value[i] * (double)weight;
		ns += weight;
		n++;
	}
	if (n)
		nsys_metrics_point(c, from, sum / (double)ns);
}

static void nsys_metrics_put_curves(struct nsys *n, const struct nsys_metrics *m)
{
	uint64_t values = 0;
	for (uint32_t i = 0; i < m->n_tracks; i++)
		values += m->track[i].n;
	const uint32_t each = (uint32_t)(values / NSYS_METRICS_POINTS) + 1;
	struct nsys_metrics_curve c = {.n = n, .cat = nsys_cat(n, SAMPLED_CATEGORY)};
	bool told[256] = {false};
	for (uint32_t i = 0; i < m->n_tracks; i++) {
		const struct nsys_metrics_track *t = c.t = &m->track[i];
		const struct nsys_metrics_series *x = &m->series[t->series];
		char device[16], label[32];
		int64_t point_ns;
		if (!t->n)
			continue;
		snprintf(device, sizeof device, "%d", t->device);
		snprintf(label, sizeof label, "GPU %d", t->device);
		c.track = build_track(&n->b, str_from(device), STR("GPU metrics"));
		n->p->track.process_labels[c.track] = intern_str(&n->p->strings, str_from(label));
		c.device = (struct arg_pair){intern_str(&n->p->strings, str_from(arg_key_text[ARG_COUNTER_DEVICE])), intern_str(&n->p->strings, str_from(device)), 0};
		nsys_metrics_put_curve(&c, x, each);
		if (!told[t->device]) {
			nsys_metrics_fact(n, SAMPLED_INTERVAL_NS, t->device, x->interval_ns);
			nsys_metrics_fact(n, SAMPLED_POINT_NS, t->device, __builtin_mul_overflow(x->interval_ns, (int64_t)each, &point_ns) ? INT64_MAX : point_ns);
		}
		told[t->device] = true;
	}
	buf_release(&c.text);
}

void nsys_metrics_finish(struct nsys *n)
{
	struct nsys_metrics *m = n->metrics;
	if (!m)
		return;
	nsys_metrics_check(n, m);
	for (uint32_t i = 0; i < m->n_series; i++)
		if (m->series[i].disordered)
			nsys_metrics_sort(m, i);
	for (uint32_t i = 0; i < m->n_series; i++)
		m->series[i].interval_ns = nsys_metrics_interval(&m->series[i]);
	nsys_sampled_join(n, m);
	nsys_metrics_put_curves(n, m);
	for (uint32_t i = 0; i < m->n_series; i++)
		mem_free(m->series[i].time_ns);
	for (uint32_t i = 0; i < m->n_tracks; i++)
		mem_free(m->track[i].value);
	intern_release(&m->keys);
	mem_free(m->series);
	mem_free(m->track);
	mem_free(m);
	n->metrics = NULL;
}

const struct nsys_table nsys_metric_tables[] = {
	{"TARGET_INFO_GPU_METRICS", name_columns, nsys_metrics_name_row, NULL, 'M'},
	{"GPU_METRICS", metric_columns, nsys_metrics_row, NULL, 'C'},
	{0},
};
