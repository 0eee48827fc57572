#include "open/ncu.h"

#include "base/mem.h"
#include "io/source.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { NCU_MOST_BYTES = 1 << 30, NCU_MOST_COLUMNS = 1 << 16, NCU_NUMBER_BYTES = 64 };

/* ---- units ---- */

static bool ncu_is_lower(char c) { return c >= 'a' && c <= 'z'; }

/* As ncu_unit, for a unit without '/', or for the part before the '/'. */
static double ncu_unit_above(struct str u, struct buf *base)
{
	static const struct { const char *name; double ns; } times[] = {
		{"ns", 1}, {"nsecond", 1}, {"us", 1e3}, {"usecond", 1e3}, {"ms", 1e6}, {"msecond", 1e6}, {"s", 1e9}, {"second", 1e9},
	};
	static const char prefixes[] = "KMGTPE";
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		if (str_eqc(u, times[i].name)) {
			buf_cstr(base, "ns");
			return times[i].ns;
		}
	const char *at = u.n > 1 && ncu_is_lower(u.p[1]) ? memchr(prefixes, u.p[0], sizeof prefixes - 1) : NULL;
	buf_str(base, at ? (struct str){u.p + 1, u.n - 1} : u);
	return at ? pow(1000, (double)(at - prefixes + 1)) : 1;
}

double ncu_unit(struct str unit, struct buf *base)
{
	static const struct { const char *name; double second; } per[] = {
		{"s", 1}, {"second", 1}, {"ms", 1e3}, {"msecond", 1e3}, {"us", 1e6}, {"usecond", 1e6}, {"ns", 1e9}, {"nsecond", 1e9},
	};
	const char *bar = unit.n ? memchr(unit.p, '/', unit.n) : NULL;
	if (!bar)
		return ncu_unit_above(unit, base);
	const struct str below = {bar + 1, unit.n - (size_t)(bar + 1 - unit.p)};
	double scale = ncu_unit_above((struct str){unit.p, (size_t)(bar - unit.p)}, base);
	buf_char(base, '/');
	for (size_t i = 0; i < sizeof per / sizeof per[0]; i++)
		if (str_eqc(below, per[i].name)) {
			buf_cstr(base, "second");
			return scale * per[i].second;
		}
	buf_str(base, below);
	return scale;
}

/* ---- numbers ---- */

enum ncu_number { NCU_NO_NUMBER, NCU_NUMBER, NCU_OTHER_LOCALE };

/* "1,317,339.5": before the point, commas may stand between groups of three digits. */
static enum ncu_number ncu_number(struct str s, double *v)
{
	char plain[NCU_NUMBER_BYTES], *end;
	size_t n = 0, group = 0;
	bool grouped = false, point = false, sound = true;
	const char *instances = s.n ? memchr(s.p, ' ', s.n) : NULL; /* "12 (1; 2; 9)" */
	if (instances && instances + 1 < s.p + s.n && instances[1] == '(')
		s.n = (size_t)(instances - s.p);
	if (!s.n || s.n >= sizeof plain || (!is_digit(s.p[0]) && s.p[0] != '-' && s.p[0] != '.'))
		return NCU_NO_NUMBER;
	for (size_t i = 0; i < s.n; i++) {
		const char c = s.p[i];
		if (c == ',' || c == '.') {
			sound &= !point && !(grouped && group != 3) && !(c == ',' && (group == 0 || group > 3));
			grouped |= c == ',';
			point |= c == '.';
			group = 0;
		} else if (!is_digit(c) && !(c == '-' && i == 0) && !memchr("eE+-", c, 4)) {
			return NCU_NO_NUMBER;
		} else {
			group += is_digit(c);
		}
		if (c != ',')
			plain[n++] = c;
	}
	sound &= point || !grouped || group == 3;
	plain[n] = 0;
	*v = strtod(plain, &end);
	if (!sound)
		return NCU_OTHER_LOCALE;
	return *end || !isfinite(*v) ? NCU_NO_NUMBER : NCU_NUMBER;
}

/* "(2304, 1, 1)" */
static bool ncu_triple(struct str s, int32_t v[3])
{
	struct str piece;
	unsigned n = 0;
	if (s.n < 2 || s.p[0] != '(' || s.p[s.n - 1] != ')')
		return false;
	s = (struct str){s.p + 1, s.n - 2};
	while (str_split(&s, ',', &piece)) {
		int64_t x;
		if (n == 3 || !str_to_i64(str_trim(piece), &x) || x < 0 || x > INT32_MAX)
			return false;
		v[n++] = (int32_t)x;
	}
	return n == 3;
}

/* ---- rows ---- */

enum ncu_field { NCU_ID, NCU_PROCESS, NCU_NAME, NCU_BLOCK, NCU_GRID, NCU_DEVICE, NCU_SECTION, NCU_METRIC, NCU_UNIT, NCU_VALUE, NCU_FIELDS };

static const char *const ncu_field_name[NCU_FIELDS] = {
	[NCU_ID] = "ID", [NCU_PROCESS] = "Process ID", [NCU_NAME] = "Kernel Name", [NCU_BLOCK] = "Block Size", [NCU_GRID] = "Grid Size", [NCU_DEVICE] = "Device",
	[NCU_SECTION] = "Section Name", [NCU_METRIC] = "Metric Name", [NCU_UNIT] = "Metric Unit", [NCU_VALUE] = "Metric Value",
};

struct ncu_reader {
	struct ncu *out;
	const char *path;
	uint64_t line;           /* of the file, from 1 */
	struct arena arena;      /* fields with doubled quotes */
	struct str *field;       /* of the row */
	unsigned n, cap;
	int at[NCU_FIELDS];      /* columns; -1 = there is none */
	unsigned columns, last;  /* how many columns the header has; the last column that ncu_field() asks for */
	bool header, long_form, units_read;
	uint32_t *metric;        /* raw page, by column: string id of the metric; 0 = the column is not kept */
	double *scale;           /* raw page, by column: as ncu_unit returns it */
	uint32_t *seen, cap_seen; /* by metric: the last launch that has it, + 1 */
	int64_t id, process;     /* of the last launch; INT64_MIN = none yet */
};

/* Cuts the line into fields, of which it keeps the first `most`. False: the line ends within a quote. */
static bool ncu_cut(struct ncu_reader *r, struct str line, unsigned most)
{
	const char *p = line.p, *end = line.p + line.n;
	bool closed = true;
	r->n = 0;
	while (r->n < most) {
		struct str f;
		if (p < end && *p == '"') {
			const char *from = ++p;
			bool doubled = false;
			for (; p < end && (*p != '"' || (p + 1 < end && p[1] == '"')); p++)
				if (*p == '"') {
					doubled = true;
					p++;
				}
			f = (struct str){from, (size_t)(p - from)};
			if (doubled) {
				char *to = arena_bytes(&r->arena, f.n);
				size_t n = 0;
				for (size_t i = 0; i < f.n; i++) {
					to[n++] = f.p[i];
					i += f.p[i] == '"';
				}
				f = (struct str){to, n};
			}
			closed = p < end;
			p += closed;
		} else {
			const char *comma = memchr(p, ',', (size_t)(end - p));
			f = (struct str){p, (size_t)((comma ? comma : end) - p)};
		}
		MEM_PUSH(r->field, r->n, r->cap, f);
		const char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
		if (!comma)
			break;
		p = comma + 1;
	}
	return closed;
}

static struct str ncu_field(const struct ncu_reader *r, enum ncu_field f)
{
	return r->at[f] >= 0 && (unsigned)r->at[f] < r->n ? r->field[r->at[f]] : (struct str){"", 0};
}

/* Whether a column is a measurement, as "dram__bytes.sum" is. Properties of the device or the launch are none. */
static bool ncu_is_metric(struct str name)
{
	static const char *const not[] = {"device__attribute_", "launch__", "profiler__", "numa__", "nvlink__", "c2clink__"};
	const ptrdiff_t bars = str_find(name, STR("__"));
	for (size_t i = 0; i < sizeof not / sizeof not[0]; i++)
		if (str_starts(name, str_from(not[i])))
			return false;
	return bars > 0 && ncu_is_lower(name.p[0]);
}

static void ncu_take_header(struct ncu_reader *r)
{
	for (unsigned f = 0; f < NCU_FIELDS; f++) {
		r->at[f] = -1;
		for (unsigned i = 0; i < r->n && r->at[f] < 0; i++)
			if (str_eqc(r->field[i], ncu_field_name[f]))
				r->at[f] = (int)i;
		r->last = r->at[f] > (int)r->last ? (unsigned)r->at[f] : r->last;
	}
	r->header = r->at[NCU_ID] == 0 && r->at[NCU_NAME] >= 0;
	r->long_form = r->at[NCU_METRIC] >= 0 && r->at[NCU_VALUE] >= 0;
	r->columns = r->n;
	if (!r->header || r->long_form)
		return;
	r->metric = NEW_ARRAY(r->n, uint32_t);
	r->scale = NEW_ARRAY(r->n, double);
	for (unsigned i = 0; i < r->n; i++) {
		r->metric[i] = ncu_is_metric(r->field[i]) ? intern_str(&r->out->strings, r->field[i]) : 0;
		r->scale[i] = 1;
	}
}

static double ncu_set_unit(struct ncu_reader *r, uint32_t metric, struct str unit)
{
	struct ncu *o = r->out;
	struct buf base = {0};
	const double scale = ncu_unit(unit, &base);
	const uint32_t id = intern_str(&o->strings, buf_view(&base));
	MEM_GROW_ZERO(o->unit, o->cap_units, metric + 1);
	o->unit[metric] = id;
	buf_release(&base);
	return scale;
}

static void ncu_take_units(struct ncu_reader *r)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->metric[i])
			r->scale[i] = ncu_set_unit(r, r->metric[i], r->field[i]);
	r->units_read = true;
}

/* Whether the current launch has the metric already: several sections of the details page may state one metric. */
static bool ncu_has(struct ncu_reader *r, uint32_t metric)
{
	MEM_GROW_ZERO(r->seen, r->cap_seen, metric + 1);
	const bool has = r->seen[metric] == r->out->n;
	r->seen[metric] = r->out->n;
	return has;
}

static int ncu_put(struct ncu_reader *r, uint32_t metric, struct str text, double scale, struct err *e)
{
	struct ncu *o = r->out;
	double v;
	switch (ncu_number(text, &v)) {
	case NCU_OTHER_LOCALE:
		return err_set(e, ERR_FORMAT, "%s: the number '" STR_FMT "' of " STR_FMT " is of another locale: commas between thousands and a point before the fraction were expected; run ncu with LC_ALL=C", r->path,
		               STR_ARG(text), STR_ARG(intern_get(&o->strings, metric)));
	case NCU_NO_NUMBER:
		return 0;
	case NCU_NUMBER:
		break;
	}
	if (!(fabs(v * scale) < 1e18) || ncu_has(r, metric))
		return 0;
	MEM_PUSH(o->value, o->n_values, o->cap_values, (struct ncu_value){metric, v * scale});
	o->launch[o->n - 1].n++;
	return 0;
}

/* The row begins another launch. A row without a name, grid or block is counted in `odd`. -1: the row is of another process. */
static int ncu_begin(struct ncu_reader *r, int64_t id, struct err *e)
{
	struct ncu *o = r->out;
	struct ncu_launch l = {.name = intern_str(&o->strings, ncu_field(r, NCU_NAME)), .device = -1, .first = o->n_values};
	int64_t process = 0;
	if (!ncu_triple(ncu_field(r, NCU_GRID), l.grid) || !ncu_triple(ncu_field(r, NCU_BLOCK), l.block) || !l.name) {
		o->odd++;
		return 0;
	}
	(void)str_to_i64(ncu_field(r, NCU_DEVICE), &l.device);
	if (str_to_i64(ncu_field(r, NCU_PROCESS), &process) && r->process != INT64_MIN && process != r->process)
		return err_set(e, ERR_FORMAT, "%s: kernels of several processes (%lld and %lld): one process was expected; run ncu --target-processes application-only, or write a file for each process", r->path, (long long)r->process,
		               (long long)process);
	r->process = process;
	r->id = id;
	MEM_PUSH(o->launch, o->n, o->cap, l);
	return 0;
}

/* The metric that a label of the details page stands for; the label itself where none is known. */
static struct str ncu_metric_of_label(struct str label, struct str unit)
{
	static const struct { const char *label, *unit, *metric; } known[] = {
		{"Duration", NULL, "gpu__time_duration.sum"},
		{"Achieved Occupancy", "%", "sm__warps_active.avg.pct_of_peak_sustained_active"},
		{"DRAM Throughput", "%", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
		{"Compute (SM) Throughput", "%", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
		{"Memory Throughput", "%", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (str_eqc(label, known[i].label) && (!known[i].unit || str_eqc(unit, known[i].unit)))
			return str_from(known[i].metric);
	return label;
}

static int ncu_take_metric(struct ncu_reader *r, struct err *e)
{
	const struct str unit = ncu_field(r, NCU_UNIT), name = ncu_metric_of_label(ncu_field(r, NCU_METRIC), unit);
	static const char *const of_launch[] = {"Launch Statistics", "Occupancy"};
	const bool measured = ncu_is_metric(name) || (str_find(name, STR("__")) < 0 && !STR_IN(ncu_field(r, NCU_SECTION), of_launch));
	if (!name.n || !measured) /* rows of rules have no metric */
		return 0;
	const uint32_t metric = intern_str(&r->out->strings, name);
	return ncu_put(r, metric, ncu_field(r, NCU_VALUE), ncu_set_unit(r, metric, unit), e);
}

static int ncu_take_row(struct ncu_reader *r, struct err *e)
{
	struct ncu *o = r->out;
	int64_t id;
	if (!str_to_i64(ncu_field(r, NCU_ID), &id)) {
		if (!r->long_form && !r->units_read && !ncu_field(r, NCU_ID).n && r->n == r->columns)
			ncu_take_units(r);
		return 0; /* the program printed this line */
	}
	if (r->long_form ? r->n <= r->last : r->n != r->columns) { /* on the details page, only rows of rules fill the last columns */
		o->odd++;
		return 0;
	}
	if (!r->long_form || id != r->id) {
		const uint32_t before = o->n;
		if (ncu_begin(r, id, e) < 0)
			return -1;
		if (o->n == before)
			return 0;
	}
	if (r->long_form)
		return ncu_take_metric(r, e);
	for (unsigned i = 0; i < r->n; i++)
		if (r->metric[i] && ncu_put(r, r->metric[i], r->field[i], r->scale[i], e) < 0)
			return -1;
	return 0;
}

/* The measured program may print a table of its own whose first column is called ID. */
static bool ncu_is_header(struct str line)
{
	return (str_starts(line, STR("\"ID\",")) || str_starts(line, STR("ID,"))) && str_has(line, str_from(ncu_field_name[NCU_NAME]));
}

static int ncu_fail_line(const struct ncu_reader *r, const char *what, struct err *e)
{
	return err_set(e, ERR_FORMAT, "%s: line %" PRIu64 ": %s", r->path, r->line, what);
}

static int ncu_take_line(struct ncu_reader *r, struct str line, struct err *e)
{
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (!line.n || str_starts(line, STR("==")))
		return 0;
	if (!ncu_is_header(line)) {
		if (!r->header)
			return 0;
		(void)ncu_cut(r, line, r->columns + 1);
		return ncu_take_row(r, e);
	}
	/* Columns, units and the numbers of launches of another run may differ, and its kernels are no launches of the first run. */
	if (r->header)
		return ncu_fail_line(r, "a second header of Nsight Compute: the output of one run was expected; write each run to a file of its own", e);
	if (!ncu_cut(r, line, NCU_MOST_COLUMNS + 1))
		return ncu_fail_line(r, "the header of Nsight Compute has a quote without an end", e);
	if (r->n > NCU_MOST_COLUMNS)
		return ncu_fail_line(r, "the header of Nsight Compute has more than 65,536 columns", e);
	ncu_take_header(r);
	return 0;
}

int ncu_read_text(struct ncu *out, struct str text, const char *path, struct err *e)
{
	struct ncu_reader r = {.out = out, .path = path, .id = INT64_MIN, .process = INT64_MIN};
	struct str line;
	int rc = 0;
	*out = (struct ncu){0};
	intern_init(&out->strings);
	if (str_starts(text, STR("\xff\xfe")) || str_starts(text, STR("\xfe\xff")))
		return err_set(e, ERR_FORMAT, "%s: the text is UTF-16, as PowerShell's > writes it: the output of `ncu --csv --page raw` was expected as UTF-8 (| Out-File -Encoding utf8)", path);
	(void)str_skip(&text, STR("\xef\xbb\xbf"));
	while (rc == 0 && str_split(&text, '\n', &line)) {
		r.line++;
		rc = ncu_take_line(&r, line, e);
	}
	if (rc == 0 && !r.header)
		rc = err_set(e, ERR_FORMAT, "%s: no header of Nsight Compute (\"ID\", ..., \"Kernel Name\", ...): the output of `ncu --csv --page raw` was expected", path);
	if (rc == 0 && !out->n)
		rc = err_set(e, ERR_DATA, "%s: no kernel in it", path);
	arena_release(&r.arena);
	mem_free(r.field);
	mem_free(r.metric);
	mem_free(r.scale);
	mem_free(r.seen);
	return rc;
}

int ncu_read(struct ncu *out, const char *path, struct err *e)
{
	struct buf b = {0};
	*out = (struct ncu){0};
	int rc = source_read_whole(path, NCU_MOST_BYTES, "of counters", &b, e);
	if (rc == 0)
		rc = ncu_read_text(out, b.n ? buf_view(&b) : STR(""), path, e);
	buf_release(&b);
	return rc;
}

void ncu_release(struct ncu *n)
{
	intern_release(&n->strings);
	mem_free(n->launch);
	mem_free(n->value);
	mem_free(n->unit);
	*n = (struct ncu){0};
}
