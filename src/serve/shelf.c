#include "serve/shelf.h"

#include "analysis/ranks/rank_place.h"
#include "base/mem.h"
#include "input/discover.h"
#include "query/job_file.h"
#include "query/job_read.h"
#include "query/report.h"
#include "store/load_job.h"

enum { SHELF_LINES_MAX = 3000000, SHELF_KEPT = 4, SHELF_NEEDS = PASS_NEST | PASS_CORRELATE | PASS_STEPS };

struct shelf_kept {
	struct shelf_job it;     /* first: a hold knows only this */
	struct shelf_kept *next; /* those asked for last come first */
	unsigned users;
	uint64_t content;
	struct job *job;
	struct library_entry **entry;
	uint32_t n_entries, cap_entries;
	struct shelf_left_out *left_out;
	uint32_t cap_left_out;
	struct str run;
	struct job_lines *lines; /* NULL = not asked for */
	struct str ranks;        /* of which ranks, as asked for; p NULL = all */
	const struct rank_range *range;
	unsigned n_ranges;
	struct arena texts;
	struct mem_pool blocks;  /* all of it but itself */
};

struct shelf {
	pthread_mutex_t make;    /* of who reads recordings: one job at a time */
	pthread_mutex_t lock;    /* of the list */
	struct shelf_kept *first;
};

struct shelf *shelf_new(void)
{
	struct shelf *s = NEW(struct shelf);
	pthread_mutex_init(&s->make, NULL);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void shelf_drop(struct shelf_kept *k)
{
	mem_pool_release(&k->blocks);
	mem_free(k);
}

void shelf_free(struct shelf *s)
{
	if (!s)
		return;
	for (struct shelf_kept *k = s->first, *next; k; k = next) {
		next = k->next;
		shelf_drop(k);
	}
	pthread_mutex_destroy(&s->make);
	pthread_mutex_destroy(&s->lock);
	mem_free(s);
}

/* ---- making one ---- */

/* A step of the making, in a mem_try of its own, since what a turn allocates is the profile's. */
struct shelf_step {
	struct shelf_kept *k;
	const struct request *r;
	bool lines;              /* are asked for */
	const struct profile *p;
	uint32_t input;
	struct str why;
	struct err *e;
	int rc;
};

static int shelf_do(struct shelf_step *s, void (*run)(void *step), struct err *e)
{
	struct mem_pool blocks = {0};
	s->e = e;
	int rc = mem_try(&blocks, run, s);
	mem_pool_move(&s->k->blocks, &blocks);
	return rc < 0 ? err_nomem(e) : s->rc;
}

static void shelf_see_entry(void *context, const struct library_entry *x)
{
	struct shelf_step *s = context;
	struct shelf_kept *k = s->k;
	if (str_eq(x->run, k->run) && !x->absent)
		MEM_PUSH(k->entry, k->n_entries, k->cap_entries, (struct library_entry *)(uintptr_t)x);
}

/* Spans of one rank follow each other: they are no job. */
static void shelf_list(void *step)
{
	struct shelf_step *s = step;
	struct shelf_kept *k = s->k;
	k->run = arena_str(&k->texts, request_value(s->r, "run"));
	library_look(s->r->library, shelf_see_entry, s);
	k->job = job_new();
	struct str ranks = request_value(s->r, "ranks");
	if (s->lines && ranks.p) {
		k->ranks = arena_str(&k->texts, ranks);
		k->range = discover_read_ranks(k->ranks, &k->texts, &k->n_ranges);
		if (!k->range)
			s->rc = err_set(s->e, ERR_USAGE, "ranks=" STR_FMT ": ranks as in 0,3,8..11 were expected", STR_ARG(ranks));
	}
	if (s->lines)
		k->lines = job_lines_new(SHELF_LINES_MAX);
	for (uint32_t i = 1; i < k->n_entries && s->rc == 0; i++)
		if (str_eq(k->entry[i]->worker, k->entry[i - 1]->worker))
			s->rc = err_set(s->e, ERR_DATA, "This run is no job: it has several recordings of " STR_FMT ", one after the other.", STR_ARG(k->entry[i]->worker));
}

static bool shelf_is_chosen(const struct shelf_kept *k, int64_t rank)
{
	bool is = !k->range;
	for (unsigned i = 0; i < k->n_ranges && !is; i++)
		is = rank >= k->range[i].first && rank <= k->range[i].last;
	return is;
}

static void shelf_see_world(struct shelf_kept *k, int64_t world)
{
	if (world && k->job->world && world != k->job->world)
		k->it.other_world = world < k->job->world ? world : k->job->world;
	k->job->world = world > k->job->world ? world : k->job->world;
}

static void shelf_add(void *step)
{
	struct shelf_step *s = step;
	struct shelf_kept *k = s->k;
	const struct library_entry *x = k->entry[s->input];
	struct rank_place place = rank_place_of(s->p);
	struct trace_file file = {.path = x->path, .run = x->run, .worker = x->worker, .span = x->span};
	int64_t number = RANK_UNKNOWN;
	uint32_t before = k->job->n;
	if (place.is_rank)
		number = place.rank;
	else if (!discover_rank_for_certain(&file, &number))
		number = RANK_UNKNOWN;
	if (number == RANK_UNKNOWN && k->n_entries > 1) {
		s->rc = err_set(s->e, ERR_DATA, "This run is no job: " STR_FMT " does not say which rank it is of.", STR_ARG(x->worker));
		return;
	}
	shelf_see_world(k, place.world);
	job_add_profile(k->job, s->p, number);
	for (uint32_t i = before; i < k->job->n; i++)
		k->job->rank[i]->input = s->input;
	if (k->lines && shelf_is_chosen(k, number))
		job_lines_add(k->lines, s->p, k->job, before);
}

static void shelf_leave_out(void *step)
{
	struct shelf_step *s = step;
	struct shelf_kept *k = s->k;
	MEM_PUSH(k->left_out, k->it.n_left_out, k->cap_left_out, (struct shelf_left_out){
		arena_printf(&k->texts, STR_FMT " is left out: " STR_FMT, STR_ARG(k->entry[s->input]->worker), STR_ARG(s->why))});
}

static void shelf_close_file(void *file) { job_file_close(file); }

/* The ranks that a job's own file keeps (query/job_file.h). */
static void shelf_add_file(void *step)
{
	struct shelf_step *s = step;
	struct shelf_kept *k = s->k;
	const struct report_args args = {0};
	const struct job_ask ask = {.args = &args};
	struct mem_undo undo;
	struct job_file *f = k->lines ? NULL : job_file_open(k->entry[s->input]->path.p, s->e);
	if (k->lines)
		err_set(s->e, ERR_DATA, "The file of a job keeps no recordings, of which the timeline is: give the folder of the ranks.");
	s->rc = f ? 0 : -1;
	if (!f)
		return;
	mem_undo_begin(&undo, shelf_close_file, f);
	const struct job_inputs in = job_file_inputs(f);
	for (unsigned i = 0; i < in.n; i++) {
		struct job_read *x = job_read_of(&in, i, &ask);
		uint32_t before = k->job->n;
		if (x->failed.code) {
			MEM_PUSH(k->left_out, k->it.n_left_out, k->cap_left_out, (struct shelf_left_out){
				arena_printf(&k->texts, "%s is left out: %s", in.path(in.context, i), x->failed.msg)});
		} else {
			shelf_see_world(k, x->world);
			job_read_take_ranks(x, k->job);
		}
		for (; before < k->job->n; before++)
			k->job->rank[before]->input = s->input;
		job_read_free(x);
	}
	mem_undo_end(&undo);
	job_file_close(f);
}

static void shelf_finish(void *step)
{
	struct shelf_step *s = step;
	struct shelf_kept *k = s->k;
	if (k->job->n < 2)
		s->rc = err_set(s->e, ERR_DATA, "This run is no job of several ranks: there is one recording alone that could be read.");
	else
		s->rc = job_finish(k->job, JOB_ALIGN_AUTO, NULL, s->e);
	if (s->rc == 0 && k->lines)
		s->rc = job_lines_finish(k->lines, k->job, s->e);
}

/* One recording. A recording that cannot be read is left out; -1: all is to be given up. */
static int shelf_read(struct shelf_step *s, struct err *e)
{
	struct library *l = s->r->library;
	struct library_entry *x = s->k->entry[s->input];
	struct library_turn turn;
	struct err why;
	int rc = -1;
	if (library_ends(l) || (s->r->gone && s->r->gone(s->r->who)))
		return err_set(e, ERR_LIMIT, "nobody waits for the answer any more");
	if (load_job_is(x->path.p)) /* beside recordings, it is a copy of these */
		return s->k->n_entries > 1 ? 0 : shelf_do(s, shelf_add_file, e);
	bool held = library_hold_here(l, x, &why) == 0;
	if (held) {
		if (library_turn_begin(&turn, x, &why) == 0) {
			s->p = report_part(x->profile, &(struct report_args){0}, SHELF_NEEDS, &why);
			rc = s->p ? shelf_do(s, shelf_add, e) : -1;
			library_turn_end(&turn);
		} else {
			s->p = NULL;
		}
		library_release(l, x);
		if (s->p)
			return rc;
	}
	if (why.code == ERR_NOMEM || why.code == ERR_LIMIT) {
		*e = why;
		return -1;
	}
	s->why = str_from(why.msg);
	return shelf_do(s, shelf_leave_out, e);
}

static int shelf_make(struct shelf_kept *k, const struct request *r, bool lines, struct err *e)
{
	struct shelf_step s = {.k = k, .r = r, .lines = lines};
	int rc = shelf_do(&s, shelf_list, e);
	for (s.input = 0; s.input < k->n_entries && rc == 0; s.input++)
		rc = shelf_read(&s, e);
	rc = rc < 0 ? rc : shelf_do(&s, shelf_finish, e);
	k->it.job = k->job;
	k->it.lines = k->lines;
	k->it.entry = k->entry;
	k->it.left_out = k->left_out;
	return rc;
}

/* ---- the list ---- */

/* Who holds it is counted. NULL = it is not there. */
static struct shelf_kept *shelf_find(struct shelf *s, const struct request *r, bool lines, uint64_t content)
{
	struct str run = request_value(r, "run"), ranks = lines ? request_value(r, "ranks") : (struct str){NULL, 0};
	pthread_mutex_lock(&s->lock);
	struct shelf_kept **at = &s->first, *k;
	while ((k = *at) && !(str_eq(k->run, run) && k->content == content && !k->lines == !lines && str_eq(k->ranks, ranks)))
		at = &k->next;
	if (k) {
		*at = k->next;
		k->next = s->first;
		s->first = k;
		k->users++;
	}
	pthread_mutex_unlock(&s->lock);
	return k;
}

/* Those that nobody holds, beyond the first few. */
static void shelf_tidy(struct shelf *s)
{
	unsigned n = 0;
	for (struct shelf_kept **at = &s->first; *at;) {
		struct shelf_kept *k = *at;
		if (++n <= SHELF_KEPT || k->users) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		shelf_drop(k);
	}
}

static void shelf_put(struct shelf *s, struct shelf_kept *k)
{
	pthread_mutex_lock(&s->lock);
	k->users = 1;
	k->next = s->first;
	s->first = k;
	shelf_tidy(s);
	pthread_mutex_unlock(&s->lock);
}

static void shelf_unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

static struct shelf_kept *shelf_find_or_make(struct shelf *s, const struct request *r, bool lines, struct err *e)
{
	struct str run = request_value(r, "run");
	struct mem_undo undo;
	struct shelf_kept *k = shelf_find(s, r, lines, library_run_content(r->library, run));
	if (k)
		return k;
	pthread_mutex_lock(&s->make);
	mem_undo_begin(&undo, shelf_unlock, &s->make);
	uint64_t content = library_run_content(r->library, run);
	k = shelf_find(s, r, lines, content);
	if (!k) {
		k = NEW(struct shelf_kept);
		mem_disown(k);
		k->content = content;
		if (shelf_make(k, r, lines, e) == 0) {
			shelf_put(s, k);
		} else {
			shelf_drop(k);
			k = NULL;
		}
	}
	mem_undo_end(&undo);
	pthread_mutex_unlock(&s->make);
	return k;
}

static void shelf_give_back(void *hold)
{
	struct shelf_hold *h = hold;
	pthread_mutex_lock(&h->shelf->lock);
	((struct shelf_kept *)(uintptr_t)h->it)->users--;
	shelf_tidy(h->shelf);
	pthread_mutex_unlock(&h->shelf->lock);
}

static int shelf_hold(struct shelf_hold *h, const struct request *r, bool lines, struct err *e)
{
	*h = (struct shelf_hold){.shelf = r->shelf};
	if (!r->shelf)
		return err_set(e, ERR_DATA, "An exported report holds nothing about a job; `opscope serve` shows it.");
	struct shelf_kept *k = shelf_find_or_make(r->shelf, r, lines, e);
	if (!k)
		return -1;
	h->it = &k->it;
	mem_undo_begin(&h->undo, shelf_give_back, h);
	return 0;
}

int shelf_hold_begin(struct shelf_hold *h, const struct request *r, struct err *e) { return shelf_hold(h, r, false, e); }
int shelf_hold_lines(struct shelf_hold *h, const struct request *r, struct err *e) { return shelf_hold(h, r, true, e); }

void shelf_hold_end(struct shelf_hold *h)
{
	mem_undo_end(&h->undo);
	shelf_give_back(h);
}

void shelf_put_notes(const struct shelf_job *k, struct table *t)
{
	for (uint32_t i = 0; i < k->n_left_out; i++)
		table_warn(t, STR_FMT, STR_ARG(k->left_out[i].text));
	if (k->other_world)
		table_warn(t, "recordings state jobs of %lld and of %lld ranks: they are not of one job, and numbers over both mean nothing", (long long)k->other_world,
		           (long long)k->job->world);
}
