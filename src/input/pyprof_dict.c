/* What PyProf's parse stage prints: one Python dict a line, one kernel each, with what it found around the launch (PyProf's
 * parse.py). Durations are stated, times are not: kernels are placed one after the other in the order of the lines, and
 * profile->durations_only is set.
 *
 * Around each kernel ranges are made up again from the texts that PyProf kept: layers, call stack, modules, arguments, sequence
 * numbers, outermost first, and a call that launches it. Lines of one op (the same texts, subSeqId counting up or not used) share their
 * ranges, so that the op counts once. The fields themselves stay as arguments "pyprof.KEY" of the kernel, as written. */
#include "input/input.h"

#include "base/buf.h"
#include "base/mem.h"
#include "input/marker.h"
#include "io/pyliteral.h"
#include "store/build.h"

#include <stdio.h>

/* Fields that are kept, as PyProf prints them; the first ones say whether two lines are of one op. */
static const char *const kept_keys[] = {"layer", "trace", "reprMarkers", "marker", "seqMarker", "tid", "dir", "mod", "op", "seqId",
                                        "altSeqId", "subSeqId", "kShortName"};
enum { KEPT = sizeof kept_keys / sizeof kept_keys[0], SAME = 9 };

struct dict {
	struct profile *p;
	struct build b;
	struct markers *markers;
	uint16_t kernel_cat, range_cat, call_cat;
	uint32_t key[KEPT], call_name;
	int64_t line, offset;       /* of the current line; offset in bytes */
	int64_t now_ns;             /* where the next kernel begins */
	uint32_t last[SAME];        /* texts of the line before */
	int64_t last_sub;
	uint32_t *open;             /* its ranges, still growing */
	uint32_t n_open, cap_open, open_track;
	int64_t correlation;
};

static void pyprof_dict_damaged(struct dict *d, const char *why)
{
	diag_add(&d->p->diags, "damaged-line", DIAG_LOSS, d->offset, "line %lld %s: it is left out", (long long)d->line, why);
}

/* What PyProf writes into each record. Of what is missing or of another type nothing is made up: it is not stated. */
static void check_fields(struct dict *d, const struct py *record)
{
	static const struct { const char *key; enum py_type type; unsigned n; } want[] = {
		{"kShortName", PY_STR, 0}, {"layer", PY_LIST, 0}, {"trace", PY_LIST, 0}, {"reprMarkers", PY_LIST, 0}, {"marker", PY_LIST, 0},
		{"seqMarker", PY_LIST, 0}, {"seqId", PY_LIST, 0}, {"subSeqId", PY_INT, 0}, {"altSeqId", PY_LIST, 0}, {"dir", PY_STR, 0},
		{"mod", PY_LIST, 0}, {"op", PY_LIST, 0}, {"tid", PY_INT, 0}, {"device", PY_INT, 0}, {"stream", PY_INT, 0},
		{"grid", PY_TUPLE, 3}, {"block", PY_TUPLE, 3}, {"kLongName", PY_STR, 0},
	};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		const struct py *v = py_get(record, want[i].key);
		bool list = v && (v->type == PY_LIST || v->type == PY_TUPLE) && (want[i].type == PY_LIST || want[i].type == PY_TUPLE);
		if (!v)
			diag_add(&d->p->diags, "missing-field", DIAG_REPAIR, d->offset, "line %lld has no '%s': it counts as not stated",
			         (long long)d->line, want[i].key);
		else if ((v->type != want[i].type && !list) || (want[i].n && v->n != want[i].n))
			diag_add(&d->p->diags, "damaged-field", DIAG_REPAIR, d->offset, "line %lld: '%s' is not what PyProf writes: it counts as not stated",
			         (long long)d->line, want[i].key);
	}
}

static int64_t int_of(const struct py *record, const char *key, int64_t absent)
{
	const struct py *v = py_get(record, key);
	return v && v->type == PY_INT ? v->i : absent;
}

static bool is_list(const struct py *v) { return v && (v->type == PY_LIST || v->type == PY_TUPLE); }

static int32_t pyprof_dict_in_i32(int64_t v) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : INT32_MIN; }

static void set_size(const struct py *v, int32_t *x, int32_t *y, int32_t *z)
{
	int32_t *const to[] = {x, y, z};
	const struct py *k = is_list(v) && v->n == 3 ? v->first : NULL;
	for (int i = 0; k; k = k->next, i++)
		*to[i] = k->type == PY_INT ? pyprof_dict_in_i32(k->i) : INT32_MIN;
}

static void open_range(struct dict *d, struct str text)
{
	struct marker m = marker_read(d->markers, text, STR(""), d->offset);
	uint32_t span = build_span(&d->b, &(struct span_row){
		.start_ns = d->now_ns, .ext_id = ID_NONE, .link_id = m.link_id, .aux_id = -1, .name = m.name, .args = m.args, .kind = m.kind,
		.track = d->open_track, .cat = d->range_cat,
	});
	if (span != ROW_NONE)
		MEM_PUSH(d->open, d->n_open, d->cap_open, span);
}

static void open_each(struct dict *d, const struct py *list, const char *prefix)
{
	for (const struct py *v = is_list(list) ? list->first : NULL; v; v = v->next) {
		if (v->type != PY_STR)
			continue;
		struct buf b = {0};
		buf_cstr(&b, prefix);
		buf_str(&b, v->s);
		open_range(d, b.n ? buf_view(&b) : STR(""));
		buf_release(&b);
	}
}

/* PyProf sorts these by text, which says nothing of how they nest. Ops inside a node of the backward pass have no number of their own,
 * 0: the node is around them. */
static void open_sequence(struct dict *d, const struct py *list, bool zero)
{
	for (const struct py *v = is_list(list) ? list->first : NULL; v; v = v->next)
		if (v->type == PY_STR && str_ends(v->s, STR(", seq = 0")) == zero)
			open_range(d, v->s);
}

/* The ranges of a new op. Without a marker or number of its own its name is all there is. */
static void open_ranges(struct dict *d, const struct py *record)
{
	const struct py *trace = py_get(record, "trace"), *marker = py_get(record, "marker"), *seq = py_get(record, "seqMarker");
	char tid[32];
	int n = snprintf(tid, sizeof tid, "%lld", (long long)int_of(record, "tid", 0));
	d->open_track = build_track(&d->b, STR("process"), (struct str){tid, (size_t)n});
	d->p->track.process_labels[d->open_track] = intern_str(&d->p->strings, STR("CPU"));
	d->n_open = 0;
	open_each(d, py_get(record, "layer"), "layer:");
	if (is_list(trace) && trace->n) {
		struct buf b = {0};
		buf_printf(&b, "{'traceMarker': " STR_FMT "}", STR_ARG(trace->raw));
		open_range(d, buf_view(&b));
		buf_release(&b);
	}
	open_each(d, py_get(record, "reprMarkers"), "");
	open_each(d, marker, "");
	for (int zero = 0; zero < 2; zero++)
		open_sequence(d, seq, zero);
	if (!(is_list(marker) && marker->n) && !(is_list(seq) && seq->n))
		open_each(d, py_get(record, "op"), "");
}

/* The kernel's time is part of all ranges that are open, and of nothing else. */
static void grow_ranges(struct dict *d, int64_t ns)
{
	struct spans *s = &d->p->span;
	for (uint32_t i = 0; i < d->n_open; i++) {
		if ((uint64_t)ns > (1ull << BUILD_SUM_BITS) - d->b.span_ns)
			return;
		s->dur_ns[d->open[i]] += ns;
		d->b.span_ns += (uint64_t)ns;
	}
}

static void pyprof_dict_add_call(struct dict *d)
{
	build_span(&d->b, &(struct span_row){
		.start_ns = d->now_ns, .ext_id = ID_NONE, .link_id = d->correlation, .aux_id = -1, .name = d->call_name, .kind = SPAN_CALL,
		.track = d->open_track, .cat = d->call_cat,
	});
}

static uint32_t pyprof_dict_kernel_args(struct dict *d, const struct py *record, uint32_t text[KEPT])
{
	struct arg_pair pair[KEPT];
	unsigned n = 0;
	for (int i = 0; i < KEPT; i++) {
		const struct py *v = py_get(record, kept_keys[i]);
		text[i] = v ? intern_str(&d->p->strings, v->raw) : 0;
		if (v)
			pair[n++] = (struct arg_pair){d->key[i], text[i], 1};
	}
	return build_args(&d->b, pair, n);
}

static void pyprof_dict_add_kernel(struct dict *d, const struct py *record, int64_t dur_ns, uint32_t args)
{
	const struct py *name = py_get(record, "kLongName");
	struct launch_row l = launch_none();
	l.device = pyprof_dict_in_i32(int_of(record, "device", -1));
	l.stream = int_of(record, "stream", ID_NONE);
	set_size(py_get(record, "grid"), &l.grid_x, &l.grid_y, &l.grid_z);
	set_size(py_get(record, "block"), &l.block_x, &l.block_y, &l.block_z);
	if (!name || name->type != PY_STR)
		name = py_get(record, "kShortName");
	char device[16], stream[32], label[32];
	int nd = snprintf(device, sizeof device, "%d", l.device == INT32_MIN ? -1 : l.device);
	int ns = snprintf(stream, sizeof stream, "%lld", (long long)(l.stream == ID_NONE ? -1 : l.stream));
	uint32_t track = build_track(&d->b, (struct str){device, (size_t)nd}, (struct str){stream, (size_t)ns});
	int nl = snprintf(label, sizeof label, "GPU %s", device);
	d->p->track.process_labels[track] = intern_put(&d->p->strings, label, (size_t)nl);
	nl = snprintf(label, sizeof label, "stream %.*s", (int)sizeof label - 8, stream);
	d->p->track.thread_name[track] = intern_put(&d->p->strings, label, nl < (int)sizeof label ? (size_t)nl : sizeof label - 1);
	build_gpu(&d->b, &(struct gpu_row){
		.start_ns = d->now_ns, .dur_ns = dur_ns, .ext_id = ID_NONE, .corr_id = d->correlation, .track = track, .args = args, .cat = d->kernel_cat,
		.name = intern_str(&d->p->strings, name && name->type == PY_STR ? name->s : STR("?")),
		.launch = build_launch(&d->b, &l), .kind = GPU_KERNEL,
	});
}

/* PyProf numbers the kernels of an op only where autograd has numbered the op; elsewhere all lines have 0, and equal ones in a row are
 * more likely kernels of one call than calls. */
static bool same_op(struct dict *d, const struct py *record, const uint32_t text[KEPT], int64_t sub)
{
	const struct py *seq = py_get(record, "seqId"), *marker = py_get(record, "marker");
	bool equal = memcmp(text, d->last, sizeof d->last) == 0;
	bool unnumbered = sub == 0 && d->last_sub == 0 && is_list(seq) && !seq->n && is_list(marker) && marker->n;
	if (equal && unnumbered)
		diag_add(&d->p->diags, "calls-not-told", DIAG_NOTE, d->offset, "line %lld says the same as the one before, and has no number: taken "
		         "for a kernel of the same call", (long long)d->line);
	return equal && (unnumbered || (sub > 0 && sub == d->last_sub + 1));
}

/* A kernel of 0 ns takes 1 ns of the time that is made up, so that the ranges around it hold it. */
static void pyprof_dict_read_record(struct dict *d, const struct py *record)
{
	int64_t dur_ns = int_of(record, "kDuration", -1), sub = int_of(record, "subSeqId", 0);
	uint32_t text[KEPT];
	if (dur_ns < 0) {
		pyprof_dict_damaged(d, "states no duration ('kDuration')");
		return;
	}
	int64_t taken_ns = dur_ns ? dur_ns : 1;
	if (taken_ns > (1ll << BUILD_SUM_BITS) - d->now_ns) {
		pyprof_dict_damaged(d, "states a duration beyond what all kernels of a run can take");
		return;
	}
	check_fields(d, record);
	build_count(&d->b, d->kernel_cat, 'X', 1);
	uint32_t args = pyprof_dict_kernel_args(d, record, text);
	if (!same_op(d, record, text, sub))
		open_ranges(d, record);
	memcpy(d->last, text, sizeof d->last);
	d->last_sub = sub;
	d->correlation++;
	pyprof_dict_add_call(d);
	pyprof_dict_add_kernel(d, record, dur_ns, args);
	grow_ranges(d, taken_ns);
	d->now_ns += taken_ns;
}

static void read_line(struct dict *d, struct str line)
{
	while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
		line.n--;
	if (!line.n)
		return;
	struct arena a = {0};
	size_t at;
	const struct py *record = py_parse(line, &a, &at);
	if (record && record->type == PY_DICT)
		pyprof_dict_read_record(d, record);
	else
		diag_add(&d->p->diags, "damaged-line", DIAG_LOSS, d->offset + (int64_t)at, "line %lld is no Python dict from character %zu on: it is left out",
		         (long long)d->line, at + 1);
	arena_release(&a);
}

/* Lines of more than this are no kernel's. */
enum { LINE_MAX_BYTES = 4 << 20 };

static const struct str bom = {"\xef\xbb\xbf", 3};

static void pyprof_dict_end_line(struct dict *d, struct str line, int64_t skipped)
{
	struct str text = line;
	d->line++;
	if (d->line == 1 && str_starts(text, bom))
		text = (struct str){text.p + bom.n, text.n - bom.n};
	if (skipped || line.n > LINE_MAX_BYTES)
		pyprof_dict_damaged(d, "is longer than 4 MiB");
	else
		read_line(d, text);
	d->offset += skipped + (int64_t)line.n;
}

static void read_lines(struct dict *d, struct source *s)
{
	bool end = false;
	struct str rest = {0};
	int64_t skipped = 0; /* bytes of a line that is too long, let go already */
	while (!end) {
		struct str block = source_next(s, rest, &end);
		const char *nl;
		size_t from = rest.n; /* what was kept holds no newline */
		while (block.n && (nl = memchr(block.p + from, '\n', block.n - from))) {
			struct str line = {block.p, (size_t)(nl - block.p)};
			pyprof_dict_end_line(d, line, skipped);
			d->offset++;
			skipped = 0;
			block = (struct str){nl + 1, block.n - line.n - 1};
			from = 0;
		}
		rest = block;
		if (skipped || rest.n > LINE_MAX_BYTES) {
			skipped += (int64_t)rest.n;
			rest = (struct str){0};
		}
	}
	if (rest.n || skipped)
		pyprof_dict_end_line(d, rest, skipped);
}

static void pyprof_dict_init(struct dict *d, struct profile *p)
{
	*d = (struct dict){.p = p, .last_sub = -1};
	struct intern *t = &p->strings;
	build_init(&d->b, p);
	d->markers = markers_new(&d->b);
	d->kernel_cat = build_cat(&d->b, intern_str(t, STR("kernel")));
	d->range_cat = build_cat(&d->b, intern_str(t, STR("nvtx")));
	d->call_cat = build_cat(&d->b, intern_str(t, STR("launch")));
	d->call_name = intern_str(t, STR("(launch, not recorded)"));
	for (int i = 0; i < KEPT; i++) {
		char key[64];
		int n = snprintf(key, sizeof key, "pyprof.%s", kept_keys[i]);
		d->key[i] = intern_put(t, key, (size_t)n);
	}
	p->durations_only = true;
	p->recorder = RECORDER_PYPROF;
}

static int pyprof_dict_read_file(struct source *s, struct profile *p, struct err *e)
{
	struct dict *d = NEW(struct dict);
	pyprof_dict_init(d, p);
	read_lines(d, s);
	if (source_error(s))
		diag_add(&p->diags, "truncated-file", DIAG_LOSS, d->offset, "%s", source_error(s));
	diag_add(&p->diags, "durations-only", DIAG_NOTE, -1,
	         "PyProf's files state how long kernels ran, not when: idle time, overlap and steps are unknown, and ranges last as long as their kernels");
	p->input_bytes = (uint64_t)d->offset;
	markers_free(d->markers);
	int rc = build_finish(&d->b, e);
	mem_free(d->open);
	mem_free(d);
	if (rc == 0 && !p->gpu_op.rows.n && !diag_count(&p->diags, "damaged-line"))
		return err_set(e, ERR_FORMAT, "%s: %s, PyProf's records of kernels were expected, one a line", source_path(s),
		               source_error(s) ? source_error(s) : "the file is empty");
	return rc;
}

/* A dict whose first line has PyProf's keys; a file may begin with blank lines. */
static int pyprof_dict_sniff(struct str head, const char *path, struct err *e)
{
	if (str_starts(head, bom))
		head = (struct str){head.p + bom.n, head.n - bom.n};
	while (head.n && (*head.p == '\n' || *head.p == '\r' || *head.p == ' ')) {
		head.p++;
		head.n--;
	}
	bool dict = head.n && *head.p == '{' && (str_has(head, STR("'kShortName'")) || str_has(head, STR("\"kShortName\"")));
	return dict && str_has(head, STR("kDuration")) ? 95 : 0;
}

const struct input input_pyprof_dict = {
	.name = "pyprof-dict",
	.help = "What PyProf's parse stage prints (`python -m pyprof.parse net.sql > net.dict`), and `opscope`'s own pyprof-parse",
	.sniff = pyprof_dict_sniff,
	.read = pyprof_dict_read_file,
};
