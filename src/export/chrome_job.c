/* The ranks of a job in one file. They are read twice: for their collectives, which tell the clocks and what belongs together, and for their events. Memory holds one
 * recording at a time. */
#include "analysis/analysis.h"
#include "analysis/ranks/rank_place.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "export/chrome.h"
#include "export/chrome_merge.h"
#include "io/json_valid.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHROME_JOB_NEEDS = PASS_NEST | PASS_CORRELATE | PASS_STEPS };

/* The arrow of a collective of a rank: which instance, and which end of it this rank is. */
struct chrome_job_end {
	uint32_t instance;
	char phase;              /* 0 = none */
};

/* A fact beside the events. */
struct chrome_job_fact {
	struct str key, value;
	bool is_string, differs;
};

struct chrome_job {
	const struct export_ranks *x;
	struct job *job;
	struct chrome_job_end **end; /* by rank, then by call */
	struct chrome_job_fact *fact;
	uint32_t n_facts;
	bool has_facts;
	uint32_t *first, *next;  /* ranks of an input, in order: UINT32_MAX ends */
	struct buf ranks, devices; /* what the file says of them */
	int64_t base_ns;
	unsigned failed, unknown;
	struct err why;          /* of the first that failed */
	struct arena arena;
};

static void chrome_job_fail(struct chrome_job *w, unsigned i, const struct err *e)
{
	const struct job_inputs *in = w->x->look;
	char kind[32];
	snprintf(kind, sizeof kind, "rank-left-out-%u", i);
	if (!w->failed++)
		w->why = *e;
	diag_add(w->x->notes, arena_str(&w->x->notes->arena, str_from(kind)).p, DIAG_LOSS, -1, "%s is left out: %s", in->path(in->context, i), e->msg);
}

/* Recording i, or the part that the options choose; *whole is to be freed. */
static const struct profile *chrome_job_open(struct chrome_job *w, const struct job_inputs *in, unsigned i, struct profile **whole, struct err *e)
{
	struct report_args args;
	struct profile *p = *whole = in->open(in->context, i, e);
	if (!p || analysis_run(p, CHROME_JOB_NEEDS, e) < 0 || report_args_chosen(p, w->x->args, &args, e) < 0)
		return NULL;
	if (p->durations_only) {
		err_set(e, ERR_DATA, "it holds durations but no times");
		return NULL;
	}
	return report_part(p, &args, CHROME_JOB_NEEDS, e);
}

/* ---- the first reading ---- */

static bool chrome_job_is_own(struct str key)
{
	static const char *const own[] = {"traceEvents", "distributedInfo", "deviceProperties", "baseTimeNanoseconds", "traceName", "opscope_job", "schemaVersion"};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (str_eqc(key, own[i]))
			return true;
	return false;
}

/* A fact that all ranks state alike is one of the job. */
static void chrome_job_add_facts(struct chrome_job *w, const struct profile *p)
{
	struct str value;
	if (w->has_facts) {
		for (uint32_t i = 0; i < w->n_facts; i++)
			w->fact[i].differs |= !profile_meta(p, w->fact[i].key.p, &value) || !str_eq(value, w->fact[i].value);
		return;
	}
	w->has_facts = true;
	w->fact = NEW_ARRAY(p->meta.rows.n, struct chrome_job_fact);
	for (uint32_t i = 0; i < p->meta.rows.n; i++) {
		struct str key = profile_str(p, p->meta.key[i]);
		if (!chrome_job_is_own(key))
			w->fact[w->n_facts++] = (struct chrome_job_fact){arena_str(&w->arena, key), arena_str(&w->arena, profile_str(p, p->meta.value[i])), p->meta.is_string[i], false};
	}
}

static void chrome_job_look(struct chrome_job *w, unsigned i)
{
	const struct job_inputs *in = w->x->look;
	struct err e;
	struct profile *whole;
	const struct profile *p = chrome_job_open(w, in, i, &whole, &e);
	if (p) {
		struct rank_place place = rank_place_of(whole);
		uint32_t before = w->job->n;
		job_add_profile(w->job, p, place.is_rank ? place.rank : in->rank(in->context, i));
		for (uint32_t r = before; r < w->job->n; r++)
			w->job->rank[r]->input = i;
		chrome_job_add_facts(w, whole);
	} else {
		chrome_job_fail(w, i, &e);
	}
	profile_free(whole);
}

/* ---- what belongs together ---- */

static int chrome_job_by_start(const void *a, const void *b)
{
	const struct job_part *x = a, *y = b;
	return x->start_ns != y->start_ns ? (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns) : (x->rank > y->rank) - (x->rank < y->rank);
}

/* From the rank that came first over the others to the one that came last. */
static void chrome_job_tie(struct chrome_job *w)
{
	const struct job *j = w->job;
	struct job_part *part = NEW_ARRAY(j->n, struct job_part);
	w->end = NEW_ARRAY(j->n, struct chrome_job_end *);
	for (uint32_t r = 0; r < j->n; r++)
		w->end[r] = NEW_ARRAY(j->rank[r]->n_calls, struct chrome_job_end);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		if (x->n < 2)
			continue;
		memcpy(part, x->part, x->n * sizeof *part);
		qsort(part, x->n, sizeof *part, chrome_job_by_start);
		for (uint32_t k = 0; k < x->n; k++)
			w->end[part[k].rank][part[k].call] = (struct chrome_job_end){i, k == 0 ? 's' : k + 1 == x->n ? 'f' : 't'};
	}
	mem_free(part);
}

static void chrome_job_list_inputs(struct chrome_job *w)
{
	const struct job *j = w->job;
	unsigned n = w->x->look->n;
	w->first = NEW_ARRAY(n, uint32_t);
	w->next = NEW_ARRAY(j->n, uint32_t);
	memset(w->first, 0xff, n * sizeof *w->first);
	for (uint32_t r = j->n; r-- > 0;) {
		w->next[r] = w->first[j->rank[r]->input];
		w->first[j->rank[r]->input] = r;
	}
}

/* ---- the second reading ---- */

static void chrome_job_put_clock(const struct job *j, uint32_t r, struct buf *b)
{
	static const char *const words[] = {[JOB_CLOCK_RAW] = "as recorded", [JOB_CLOCK_ENDS] = "by ends", [JOB_CLOCK_FILE] = "by file", [JOB_CLOCK_UNKNOWN] = "unknown"};
	const struct job_clocks *c = &j->clock[r];
	buf_printf(b, ",\"clock\":\"%s\"", words[c->how]);
	if (c->how != JOB_CLOCK_UNKNOWN)
		buf_printf(b, ",\"offset_ns\":%lld,\"drift_ppm\":%.6f", (long long)c->offset_ns, c->drift * 1e6);
	if (c->ends)
		buf_printf(b, ",\"residual_ns\":%lld", (long long)c->residual_ns);
}

static void chrome_job_put_devices(struct chrome_job *w, const struct chrome_merge *m, const struct profile *p)
{
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		uint32_t number = idmap_get(&m->devices, p->device.id[i]);
		if (number == IDMAP_NONE)
			continue;
		buf_cstr(&w->devices, w->devices.n ? ",\n" : "\n");
		chrome_put_device(&w->devices, p, i, number);
	}
}

static struct str chrome_job_base_name(struct str path)
{
	for (size_t i = path.n; i > 0; i--)
		if (path.p[i - 1] == '/')
			return (struct str){path.p + i, path.n - i};
	return path;
}

static void chrome_job_put_rank(struct chrome_job *w, uint32_t r, const struct buf *pids)
{
	const struct rank *rank = w->job->rank[r];
	struct buf *b = &w->ranks;
	buf_printf(b, "%s\n{\"rank\":%lld,\"file\":", b->n ? "," : "", (long long)job_rank_number(w->job, r));
	json_put_string(b, chrome_job_base_name(rank->path));
	buf_printf(b, ",\"pids\":[" STR_FMT "]", STR_ARG(buf_view(pids)));
	if (rank->device != INT32_MIN)
		buf_printf(b, ",\"device\":%d", rank->device);
	chrome_job_put_clock(w->job, r, b);
	buf_char(b, '}');
}

static const char *chrome_job_kind(uint8_t kind)
{
	const char *name = comm_kind_name(kind);
	return *name ? name : "collective";
}

static void chrome_job_put_arrows(struct chrome_job *w, struct chrome_merge *m, const struct profile *p, uint32_t r)
{
	const struct rank *rank = w->job->rank[r];
	for (uint32_t i = 0; i < rank->n_calls && sink_room(w->x->out) == 0; i++) {
		const struct chrome_job_end *end = &w->end[r][i];
		if (end->phase && rank->call[i].row < p->gpu_op.rows.n) /* the file may be another by now */
			chrome_merge_arrow(m, p, rank->call[i].row, end->phase, chrome_job_kind(w->job->instance[end->instance].kind), (int64_t)end->instance + 1);
	}
}

/* The recording of rank r, and of others that are in it. */
static int chrome_job_write(struct chrome_job *w, struct chrome_merge *m, uint32_t r, struct err *e)
{
	unsigned i = w->job->rank[r]->input;
	struct err why;
	struct profile *whole;
	struct buf pids = {0};
	int rc = 0;
	const struct profile *p = chrome_job_open(w, w->x->in, i, &whole, &why);
	if (p) {
		const struct export_run run = {(struct profile *)(uintptr_t)p, w->x->args, NULL, &m->in, w->x->notes};
		chrome_merge_begin(m, p, r);
		rc = chrome_put_events(&run, e);
		chrome_job_put_devices(w, m, p);
		for (uint32_t k = r; k != UINT32_MAX; k = w->next[k])
			chrome_job_put_arrows(w, m, p, k);
		chrome_merge_end(m, &pids);
		for (uint32_t k = r; k != UINT32_MAX; k = w->next[k])
			chrome_job_put_rank(w, k, &pids);
	} else {
		chrome_job_fail(w, i, &why);
	}
	buf_release(&pids);
	profile_free(whole);
	return rc;
}

static void chrome_job_put_facts(struct chrome_job *w)
{
	struct buf *b = &w->x->out->buf;
	buf_cstr(b, "{\n\"schemaVersion\":1,\n");
	for (uint32_t i = 0; i < w->n_facts; i++) {
		if (w->fact[i].differs)
			continue;
		json_put_string(b, w->fact[i].key);
		buf_char(b, ':');
		if (w->fact[i].is_string)
			json_put_string(b, w->fact[i].value);
		else
			json_put_valid_text(b, w->fact[i].value);
		buf_cstr(b, ",\n");
	}
	if (w->base_ns)
		buf_printf(b, "\"baseTimeNanoseconds\":%lld,\n", (long long)w->base_ns);
}

static void chrome_job_note(struct chrome_job *w, const struct chrome_merge *m)
{
	const struct job *j = w->job;
	struct diags *notes = w->x->notes;
	for (uint32_t r = 0; r < j->n; r++)
		if (j->clock[r].how == JOB_CLOCK_UNKNOWN)
			diag_add(notes, "clock-unknown", DIAG_NOTE, -1, "the clock of rank %lld, and of others that \"opscope_job\" names in the file, could not be compared with those of the other ranks: "
			         "its times stand as recorded", (long long)job_rank_number(j, r));
	if (j->repeated)
		diag_add(notes, "repeated-ranks", DIAG_LOSS, -1, "%u recording%s of a rank that another recording is of, too: the first by name is written", j->repeated, j->repeated == 1 ? "" : "s");
	if (j->missing)
		diag_add(notes, "missing-ranks", DIAG_NOTE, -1, "%u of %lld ranks are here and written", j->n, (long long)j->world);
	if (m->lost)
		diag_add(notes, "lost-events", DIAG_LOSS, -1, "%lld events could not be renumbered and are left out", (long long)m->lost);
}

static int64_t chrome_job_second_devices(const struct job *j)
{
	int64_t most = j->n;
	for (uint32_t r = 0; r < j->n; r++)
		most = job_rank_number(j, r) >= most ? job_rank_number(j, r) + 1 : most;
	return most > j->world ? most : j->world;
}

static int chrome_job_put(struct chrome_job *w, struct err *e)
{
	const struct job *j = w->job;
	struct buf *b = &w->x->out->buf;
	struct chrome_merge m;
	int rc = 0;
	w->base_ns = j->rank[0]->epoch_ns;
	chrome_job_tie(w);
	chrome_job_list_inputs(w);
	chrome_merge_init(&m, w->x->out, j, w->base_ns, j->n_instances, chrome_job_second_devices(j));
	chrome_job_put_facts(w);
	buf_cstr(b, "\"traceEvents\":[");
	for (uint32_t r = 0; r < j->n && rc == 0 && !w->x->out->error; r++)
		if (w->first[j->rank[r]->input] == r)
			rc = chrome_job_write(w, &m, r, e);
	buf_printf(b, "\n],\n\"deviceProperties\":[" STR_FMT "],\n\"opscope_job\":{\"world_size\":%lld,\"ranks\":[" STR_FMT "]}}\n", STR_ARG(buf_view(&w->devices)), (long long)j->world,
	           STR_ARG(buf_view(&w->ranks)));
	chrome_job_note(w, &m);
	chrome_merge_release(&m);
	return rc;
}

static void chrome_job_release(struct chrome_job *w)
{
	for (uint32_t r = 0; w->end && r < w->job->n; r++)
		mem_free(w->end[r]);
	mem_free(w->end);
	mem_free(w->fact);
	mem_free(w->first);
	mem_free(w->next);
	buf_release(&w->ranks);
	buf_release(&w->devices);
	arena_release(&w->arena);
	job_free(w->job);
}

int chrome_write_job(const struct export_ranks *x, struct err *e)
{
	struct chrome_job w = {.x = x, .job = job_new()};
	for (unsigned i = 0; i < x->look->n; i++)
		chrome_job_look(&w, i);
	int rc = w.job->n ? job_finish(w.job, (enum job_align)x->args->align, x->args->clocks, e) : (*e = w.why, -1);
	rc = rc < 0 ? rc : chrome_job_put(&w, e);
	chrome_job_release(&w);
	return rc;
}
