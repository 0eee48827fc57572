#include "query/job_read.h"

#include "analysis/analysis.h"
#include "analysis/ranks/job.h"
#include "analysis/ranks/job_hang.h"
#include "analysis/ranks/rank_pack.h"
#include "analysis/ranks/rank_place.h"
#include "base/mem.h"
#include "base/pack.h"
#include "query/advice.h"
#include "query/diff_side_pack.h"

/* ---- reading ---- */

static int job_read_profile(struct job_read *x, struct profile *p, const struct job_inputs *in, unsigned i, const struct job_ask *ask, struct err *e)
{
	const unsigned needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS | ask->needs;
	const struct profile *of = p;
	if (ask->side)
		x->side = diff_side_new(p, ask->args, &x->side_failed);
	if (analysis_run(p, needs, e) < 0 || (ask->part && !(of = report_part(p, ask->args, needs, e))))
		return -1;
	struct rank_place place = rank_place_of(p);
	x->number = place.is_rank ? place.rank : in->rank(in->context, i);
	x->world = place.world;
	x->ranks = job_new();
	job_add_profile(x->ranks, of, x->number);
	/* Dumps have no time that could be advised about. */
	if (!ask->findings || job_is_hang(x->ranks) || advice_findings(p, ask->args, &x->findings, e) == 0)
		return 0;
	job_free(x->ranks);
	x->ranks = NULL;
	return -1;
}

struct job_read *job_read_here(const struct job_inputs *in, unsigned i, const struct job_ask *ask)
{
	struct job_read *x = NEW(struct job_read);
	struct err e = {0};
	struct profile *p = in->open(in->context, i, &e);
	if (!p || job_read_profile(x, p, in, i, ask, &e) < 0)
		x->failed = e;
	profile_free(p);
	return x;
}

struct job_read *job_read_of(const struct job_inputs *in, unsigned i, const struct job_ask *ask)
{
	return in->read ? in->read(in->context, i, ask) : job_read_here(in, i, ask);
}

void job_read_free(struct job_read *x)
{
	if (!x)
		return;
	job_free(x->ranks);
	findings_release(&x->findings);
	diff_side_free(x->side);
	mem_free(x);
}

void job_read_take_ranks(struct job_read *x, struct job *to)
{
	for (uint32_t i = 0; i < x->ranks->n; i++)
		job_add(to, x->ranks->rank[i]);
	x->ranks->n = 0;
}

/* ---- as bytes ---- */

struct job_read_text { struct str text; };

/* A finding, but for what joining those of the ranks drops (query/job_advice.c): when it was. */
struct job_read_finding {
	struct str detector, part_of, behind; /* "" = NULL */
	int32_t severity;
	struct str problem, evidence, advice, disprove, bound;
	bool has_events, has_time, has_share, has_gain;
	uint64_t events;
	int64_t time_ns, gain_ns_per_step;
	double share_pct;
};

struct job_read_bytes {
	int32_t failed;
	struct str why;
	int64_t number, world;
	bool of_window;
	struct job_read_finding *finding;
	uint32_t n_findings;
	struct job_read_text *rank; /* rank_pack */
	uint32_t n_ranks;
	struct str side;             /* diff_side_pack; "" = none */
	int32_t side_failed;
	struct str side_why;
};

#define JOB_READ_TEXT_FIELDS(F, S) F(S, TEXT, text)
#define JOB_READ_FINDING_FIELDS(F, S)                                                                                                  \
	F(S, TEXT, detector) F(S, TEXT, part_of) F(S, TEXT, behind) F(S, INT, severity, FINDING_INFO, FINDING_HIGH) F(S, TEXT, problem) \
	F(S, TEXT, evidence) F(S, TEXT, advice) F(S, TEXT, disprove) F(S, TEXT, bound) F(S, FLAG, has_events) F(S, FLAG, has_time)      \
	F(S, FLAG, has_share) F(S, FLAG, has_gain) F(S, INT, events, 0, INT64_MAX) F(S, INT, time_ns, INT64_MIN, INT64_MAX)             \
	F(S, INT, gain_ns_per_step, INT64_MIN, INT64_MAX) F(S, REAL, share_pct)
#define JOB_READ_BYTES_FIELDS(F, S)                                                                                                    \
	F(S, INT, failed, ERR_NONE, ERR_NOMEM) F(S, TEXT, why) F(S, INT, number, INT64_MIN, INT64_MAX) F(S, INT, world, INT64_MIN, INT64_MAX) \
	F(S, FLAG, of_window) F(S, ROWS, finding, n_findings, job_read_finding) F(S, ROWS, rank, n_ranks, job_read_text) \
	F(S, TEXT, side) F(S, INT, side_failed, ERR_NONE, ERR_NOMEM) F(S, TEXT, side_why)

PACK_TYPE(job_read_text, JOB_READ_TEXT_FIELDS)
PACK_TYPE(job_read_finding, JOB_READ_FINDING_FIELDS)
PACK_TYPE(job_read_bytes, JOB_READ_BYTES_FIELDS)

static struct job_read_finding job_read_finding_of(const struct finding *f)
{
	return (struct job_read_finding){
		.detector = str_from(f->detector), .part_of = str_from(f->part_of), .behind = str_from(f->behind), .severity = (int32_t)f->severity,
		.problem = f->problem, .evidence = f->evidence, .advice = f->advice, .disprove = f->disprove, .bound = f->bound,
		.has_events = f->has_events, .has_time = f->has_time, .has_share = f->has_share, .has_gain = f->has_gain,
		.events = f->events, .time_ns = f->time_ns, .gain_ns_per_step = f->gain_ns_per_step, .share_pct = f->share_pct,
	};
}

void job_read_pack(const struct job_read *x, struct buf *out)
{
	const uint32_t n_ranks = x->ranks ? x->ranks->n : 0;
	struct job_read_bytes b = {.failed = (int32_t)x->failed.code, .why = x->failed.code ? str_from(x->failed.msg) : STR(""), .number = x->number, .world = x->world,
	                           .of_window = x->findings.of_window, .finding = NEW_ARRAY(x->findings.n, struct job_read_finding), .n_findings = x->findings.n,
	                           .rank = NEW_ARRAY(n_ranks, struct job_read_text), .n_ranks = n_ranks, .side_failed = (int32_t)x->side_failed.code,
	                           .side_why = x->side_failed.code ? str_from(x->side_failed.msg) : STR("")};
	struct buf *ranks = NEW_ARRAY(n_ranks, struct buf), side = {0};
	for (uint32_t i = 0; i < n_ranks; i++) {
		rank_pack(x->ranks->rank[i], &ranks[i]);
		b.rank[i].text = buf_view(&ranks[i]);
	}
	for (unsigned i = 0; i < x->findings.n; i++)
		b.finding[i] = job_read_finding_of(&x->findings.v[i]);
	if (x->side)
		diff_side_pack(x->side, &side);
	b.side = buf_view(&side);
	const uint64_t version = pack_version(&job_read_bytes_layout);
	buf_put(out, &version, sizeof version);
	pack_put(&job_read_bytes_layout, &b, out);
	for (uint32_t i = 0; i < n_ranks; i++)
		buf_release(&ranks[i]);
	buf_release(&side);
	mem_free(ranks);
	mem_free(b.finding);
	mem_free(b.rank);
}

/* NULL = none is called so. */
static const struct detector *job_read_detector(struct str id)
{
	for (const struct detector *const *d = detector_registry; *d; d++)
		if (str_eqc(id, (*d)->id))
			return *d;
	return NULL;
}

static bool job_read_take_findings(struct job_read *x, const struct job_read_bytes *b)
{
	struct findings *f = &x->findings;
	f->v = NEW_ARRAY(b->n_findings, struct finding);
	f->cap = b->n_findings;
	f->of_window = b->of_window;
	for (; f->n < b->n_findings; f->n++) {
		const struct job_read_finding *from = &b->finding[f->n];
		const struct detector *detector = job_read_detector(from->detector), *part_of = from->part_of.n ? job_read_detector(from->part_of) : NULL,
		                      *behind = from->behind.n ? job_read_detector(from->behind) : NULL;
		if (!detector || (from->part_of.n && !part_of) || (from->behind.n && !behind))
			return false;
		f->v[f->n] = (struct finding){
			.detector = detector->id, .report = detector->report, .part_of = part_of ? part_of->id : NULL, .behind = behind ? behind->id : NULL, .severity = (enum finding_severity)from->severity,
			.problem = arena_str(&f->arena, from->problem), .evidence = arena_str(&f->arena, from->evidence), .advice = arena_str(&f->arena, from->advice),
			.disprove = arena_str(&f->arena, from->disprove), .bound = arena_str(&f->arena, from->bound),
			.has_events = from->has_events, .has_time = from->has_time, .has_share = from->has_share, .has_gain = from->has_gain,
			.events = from->events, .time_ns = from->time_ns, .gain_ns_per_step = from->gain_ns_per_step, .share_pct = from->share_pct,
		};
	}
	return true;
}

static int job_read_take_bytes(struct job_read *x, const struct job_read_bytes *b, struct err *e)
{
	x->number = b->number;
	x->world = b->world;
	if (b->failed)
		return err_set(&x->failed, (enum err_code)b->failed, STR_FMT, STR_ARG(b->why)), 0;
	x->ranks = job_new();
	for (uint32_t i = 0; i < b->n_ranks; i++) {
		struct rank *r = rank_unpack(b->rank[i].text, e);
		if (!r)
			return -1;
		job_add(x->ranks, r);
	}
	if (b->side_failed)
		err_set(&x->side_failed, (enum err_code)b->side_failed, STR_FMT, STR_ARG(b->side_why));
	else if (b->side.n && !(x->side = diff_side_unpack(b->side, e)))
		return -1;
	if (!b->n_ranks || !job_read_take_findings(x, b))
		return err_set(e, ERR_FORMAT, "what was read of a recording is damaged, or of another version of opscope");
	return 0;
}

struct job_read *job_read_unpack(struct str bytes, struct err *e)
{
	struct job_read_bytes b = {0};
	struct arena a = {0};
	struct job_read *x = NEW(struct job_read);
	const uint64_t want = pack_version(&job_read_bytes_layout);
	uint64_t version;
	const char *why;
	int rc = 0;
	if (bytes.n < sizeof version || (memcpy(&version, bytes.p, sizeof version), version != want))
		rc = err_set(e, ERR_FORMAT, "what was read of a recording was written by another version of opscope");
	else if (!pack_take(&job_read_bytes_layout, (struct str){bytes.p + sizeof version, bytes.n - sizeof version}, &a, &b, &why))
		rc = err_set(e, ERR_FORMAT, "what was read of a recording is damaged: %s", why);
	else
		rc = job_read_take_bytes(x, &b, e);
	mem_free(b.finding);
	mem_free(b.rank);
	arena_release(&a);
	if (rc == 0)
		return x;
	job_read_free(x);
	return NULL;
}
