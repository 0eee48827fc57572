#include "question.h"

#include "base/hash.h"
#include "detect/detect.h"
#include "export/export.h"
#include "query/sql.h"
#include "render/render.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MARK = sizeof QUESTION_MARK - 1, PARTS_BYTES = 80 };

size_t question_take(const uint8_t *data, size_t size, struct question *q)
{
	if (size >= QUESTION_BYTES && memcmp(data + size - QUESTION_BYTES, QUESTION_MARK, MARK) == 0) {
		memcpy(q->ask, data + size - sizeof q->ask, sizeof q->ask);
		return size - QUESTION_BYTES;
	}
	uint64_t hash = hash_bytes(size ? data : (const uint8_t *)"", size);
	memcpy(q->ask, &hash, sizeof q->ask);
	return size;
}

void question_put(uint8_t *at, const struct question *q)
{
	memcpy(at, QUESTION_MARK, MARK);
	memcpy(at + MARK, q->ask, sizeof q->ask);
}

enum asked { ASKED_REPORT, ASKED_ADVICE, ASKED_SQL, ASKED_EXPORT };

/* What three bytes ask. */
struct ask {
	enum asked what;
	const struct report *report;
	struct report_args args;
	char parts[PARTS_BYTES];            /* args.group_by, where that is made of parts */
	const struct renderer *form;
	const struct export_format *format;
	const char *value[EXPORT_OPTIONS_MAX];
	const char *experts;                /* of a predecessor; NULL: opscope's own */
	struct str query;
};

static const char *const queries[] = {
	"SELECT * FROM ops ORDER BY 1 LIMIT 20",
	"SELECT * FROM kernels_raw LIMIT 20",
	"SELECT name, count(*), sum(dur_ns) FROM span GROUP BY name ORDER BY 1",
	"SELECT arg(args, 'Input Dims'), args FROM span LIMIT 20",
	"SELECT * FROM gpu_op AS g LEFT JOIN span AS s ON s.rowid = g.call LIMIT 20",
	"SELECT * FROM findings",
};
enum { QUERIES = sizeof queries / sizeof queries[0] };

static unsigned length(const char *const *list)
{
	unsigned n = 0;
	while (list && list[n])
		n++;
	return n;
}

/* How many words of report_grouping or report_compat there are. */
static unsigned words(const struct report *r, const char *(*word)(const struct report *r, unsigned i))
{
	unsigned n = 0;
	while (word(r, n))
		n++;
	return n;
}

/* A part as it is typed: "stack:3" of "stack:N". */
static void put_part(char *to, size_t room, const char *part, unsigned depth)
{
	size_t n = strlen(to), stem = report_part_name(str_from(part)).n;
	if (n + stem + 4 > room)
		return;
	if (n)
		to[n++] = ',';
	memcpy(to + n, part, stem);
	n += stem;
	if (part[stem] && depth) {
		to[n++] = ':';
		to[n++] = (char)('0' + depth % 10);
	}
	to[n] = 0;
}

static void choose_grouping(struct ask *a, unsigned choice, unsigned more)
{
	const struct report *r = a->report;
	unsigned groups = words(r, report_grouping), compats = words(r, report_compat), n = choice % (1 + groups + compats);
	if (n > groups) {
		a->args.compat = report_compat(r, n - groups - 1);
	} else if (n) {
		put_part(a->parts, sizeof a->parts, report_grouping(r, n - 1), more);
		if (report_combines(r) && more % 3 == 0 && more % groups != n - 1)
			put_part(a->parts, sizeof a->parts, report_grouping(r, more % groups), more);
		a->args.group_by = a->parts;
	}
}

static void choose_report(struct ask *a, const uint8_t ask[ASK_BYTES])
{
	static const char *const steps[] = {NULL, NULL, NULL, NULL, "all", "0..", "1..2", "outside"};
	struct err e;
	choose_grouping(a, ask[1], ask[1] / 8u);
	if (steps[ask[2] % 8])
		report_args_population(&a->args, str_from(steps[ask[2] % 8]), &e);
	if (ask[2] / 8 % 4 == 1 && (a->report->takes & REPORT_DEVICE))
		a->args.device = "0";
	if (ask[2] / 8 % 4 == 2 && (a->report->takes & REPORT_TOP_LEVEL))
		a->args.top_level = true;
	if (ask[2] / 32 % 2)
		a->args.row_limit = 3;
	a->form = renderer_registry[ask[2] / 64u];
}

static void choose_export(struct ask *a, unsigned choice)
{
	const struct export_option *o = a->format->options;
	for (unsigned i = 0; o && o[i].name; i++) {
		unsigned n = length(o[i].values);
		a->value[i] = n && choice % (n + 1) ? o[i].values[choice % (n + 1) - 1] : NULL;
		choice /= n + 1;
	}
}

/* `args` points into *a. */
static void read_ask(struct ask *a, const uint8_t ask[ASK_BYTES])
{
	static unsigned reports, exports, detectors;
	while (report_registry[reports])
		reports++;
	while (export_registry[exports])
		exports++;
	while (detector_registry[detectors])
		detectors++;
	*a = (struct ask){.form = renderer_registry[ask[2] % 4]};
	unsigned n = ask[0] % (reports + ASKED_EXPORT - 1 + exports);
	a->what = n < reports ? ASKED_REPORT : n < reports + ASKED_EXPORT - 1 ? n - reports + 1 : ASKED_EXPORT;
	if (a->what == ASKED_REPORT) {
		a->report = report_registry[n];
		choose_report(a, ask);
	} else if (a->what == ASKED_EXPORT) {
		a->format = export_registry[n - reports - ASKED_EXPORT + 1];
		choose_export(a, ask[1]);
	}
	const struct expert_system *experts = detector_registry[ask[1] % detectors]->experts;
	a->experts = experts ? experts->name : NULL;
	a->query = str_from(queries[ask[1] % QUERIES]);
}

static int put_table(const struct ask *a, struct table *t, struct buf *out, struct err *e)
{
	int rc = a->form->render(t, &(struct render_options){.width = 100}, out, e);
	table_release(t);
	return rc;
}

static int answer_report(const struct ask *a, struct profile *p, struct buf *out, struct err *e)
{
	struct table t;
	return report_run(a->report, p, &a->args, &t, e) < 0 ? -1 : put_table(a, &t, out, e);
}

static int answer_advice(const struct ask *a, struct profile *p, struct buf *out, struct err *e)
{
	struct table t;
	struct findings f = {0};
	int rc = detect_run(p, &(struct detect_args){.experts = a->experts, .whole = p, .last = INT64_MAX}, &f, e);
	if (rc == 0) {
		findings_table(&f, &t);
		rc = put_table(a, &t, out, e);
	}
	findings_release(&f);
	return rc;
}

static int answer_sql(const struct ask *a, struct profile *p, struct buf *out, struct err *e)
{
	struct table t;
	struct sql *s = sql_open(p, &a->args, e);
	if (!s)
		return -1;
	int rc = sql_run(s, a->query, &t, e);
	if (rc == 0)
		rc = put_table(a, &t, out, e);
	sql_close(s);
	return rc;
}

static void read_back(int fd, struct buf *out)
{
	char block[4096];
	for (ssize_t n, at = 0; (n = pread(fd, block, sizeof block, at)) > 0; at += n)
		buf_put(out, block, (size_t)n);
}

static int answer_export(const struct ask *a, struct profile *p, struct buf *out, struct err *e)
{
	struct sink s;
	struct diags notes = {0};
	int fd = memfd_create("export", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	sink_init(&s, fd, false);
	int rc = export_run(a->format, p, &(struct report_args){0}, a->value, &s, &notes, e);
	sink_finish(&s);
	diags_release(&notes);
	read_back(fd, out);
	close(fd);
	return rc;
}

void question_answer(struct profile *p, const uint8_t ask[ASK_BYTES], struct buf *out)
{
	static int (*const answer[])(const struct ask *, struct profile *, struct buf *, struct err *) = {
		[ASKED_REPORT] = answer_report, [ASKED_ADVICE] = answer_advice, [ASKED_SQL] = answer_sql, [ASKED_EXPORT] = answer_export,
	};
	struct err e = {0};
	struct ask a;
	read_ask(&a, ask);
	if (answer[a.what](&a, p, out, &e) == 0)
		return;
	if (!e.code || !e.msg[0])
		abort();
	buf_printf(out, "error %d: %s", e.code, e.msg);
}

void question_name(const uint8_t ask[ASK_BYTES], struct buf *out)
{
	struct ask a;
	read_ask(&a, ask);
	if (a.what == ASKED_EXPORT) {
		buf_printf(out, "export %s", a.format->name);
	} else if (a.what == ASKED_REPORT) {
		buf_printf(out, "report %s", a.report->name);
		if (a.args.group_by)
			buf_printf(out, " --group-by=%s", a.parts);
		if (a.args.compat)
			buf_printf(out, " --compat=%s", a.args.compat);
		if (a.args.all_steps || a.args.has_steps)
			buf_printf(out, " --steps=%s", a.args.all_steps ? "all" : a.args.outside ? "outside" : a.args.step_first ? "1..2" : "0..");
		buf_printf(out, "%s%s%s --format=%s", a.args.device ? " --device=0" : "", a.args.top_level ? " --top-level" : "",
		           a.args.row_limit ? " --limit=3" : "", a.form->name);
	} else {
		if (a.what == ASKED_SQL)
			buf_printf(out, "SQL " STR_FMT, STR_ARG(a.query));
		else
			buf_printf(out, "advice%s%s", a.experts ? " --compat=" : "", a.experts ? a.experts : "");
	}
}

bool question_is_of_file(const uint8_t ask[ASK_BYTES])
{
	struct ask a;
	read_ask(&a, ask);
	return a.what == ASKED_REPORT && (a.report->takes & REPORT_FILE);
}
