#include "input/kineto/kineto_reader.h"

#include "base/mem.h"
#include "base/threads.h"
#include "store/build_join.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

/* Before an event, or behind all of them: where, and the window there. */
struct kineto_place {
	int64_t start, begin, end; /* start: where json_element goes on, with `first` */
	bool first, final, done;   /* done: behind ']' */
};

struct kineto_part {
	struct kineto_parts *all;
	struct source *source;
	struct kineto_reader *r;
	struct profile *p;
	struct mem_pool blocks;    /* all that it holds */
	int64_t border;            /* where its first event stands */
	pthread_t thread;
	bool started;
	bool cancelled;            /* atomic: nobody wants it any more */
	bool finished;             /* under lock */
	bool good;                 /* when finished: it can be joined, if the border is right */
	struct kineto_place end;
	unsigned next;             /* not end.done: of which part it is the border */
	struct build_map map;      /* from its numbers to those of the whole */
};

struct kineto_parts {
	struct kineto_part *part;
	unsigned n;
	struct kineto_reader *whole;
	kineto_read_part_fn *read;
	struct build *chain[THREADS_MOST]; /* joined, but for the rows of events; of part `of_chain` */
	unsigned of_chain[THREADS_MOST], n_chain;
	uint64_t rows[STORE_N_TABLES]; /* of the whole, with those of `chain` */
	unsigned n_joined;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	struct mem_undo undo;
};

/* ---- one part ---- */

/* Of the part's source, for each block. */
static void kineto_part_look(void *context, uint64_t done, uint64_t total)
{
	struct kineto_part *x = context;
	if (x->r && __atomic_load_n(&x->cancelled, __ATOMIC_RELAXED))
		kineto_cannot_join(&x->r->k);
}

static void kineto_part_read(void *context)
{
	struct kineto_part *x = context;
	struct kineto_reader *whole = x->all->whole;
	x->source = source_from(whole->source, x->border);
	source_set_progress(x->source, kineto_part_look, x);
	x->p = profile_new();
	x->p->keeps_function_ids = whole->k.p->keeps_function_ids;
	x->p->left_out = whole->k.p->left_out;
	struct kineto_reader *r = x->r = NEW(struct kineto_reader);
	r->k.is_part = true;
	r->begin_offset = r->first_offset = x->border;
	r->at_border = -1;
	r->parts = x->all;
	r->next = (unsigned)(x - x->all->part) + 1;
	r->k.stop_at = r->next < x->all->n ? x->all->part[r->next].border : INT64_MAX;
	r->source = x->source;
	r->k.p = x->p;
	const char *p = x->all->read(r);
	const bool ends = p || r->at_border >= 0;
	x->end = (struct kineto_place){
		.start = p ? kineto_offset_of(r, p) : r->at_border, .begin = r->begin_offset, .end = kineto_offset_of(r, r->k.j.end),
		.first = r->at_first, .final = r->final, .done = p != NULL,
	};
	x->next = r->next;
	x->good = ends && !r->k.cannot_join && !source_error(x->source);
}

/* Frees what it read. Allocates nothing. */
static void kineto_part_release(struct kineto_part *x)
{
	build_map_release(&x->map);
	if (x->r) {
		kineto_event_release(&x->r->k);
		build_release(&x->r->k.b);
	}
	mem_free(x->r);
	profile_free(x->p);
	source_close(x->source);
	x->r = NULL;
	x->p = NULL;
	x->source = NULL;
}

static void *kineto_part_run(void *context)
{
	struct kineto_part *x = context;
	if (mem_try(&x->blocks, kineto_part_read, x) < 0) {
		/* There may be memory enough for one reader. */
		x->good = false;
		x->r = NULL;
		x->p = NULL;
		x->source = NULL;
		mem_pool_release(&x->blocks);
	}
	pthread_mutex_lock(&x->all->lock);
	x->finished = true;
	pthread_cond_signal(&x->all->finished);
	pthread_mutex_unlock(&x->all->lock);
	return NULL;
}

/* Waits for it, and says meanwhile how far all have come. */
static void kineto_part_wait(struct kineto_part *x)
{
	enum { TELL_NS = 50000000 };
	struct kineto_parts *all = x->all;
	for (bool finished = !x->started; !finished;) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += (until.tv_nsec + TELL_NS) / 1000000000;
		until.tv_nsec = (until.tv_nsec + TELL_NS) % 1000000000;
		pthread_mutex_lock(&all->lock);
		if (!x->finished)
			pthread_cond_timedwait(&all->finished, &all->lock, &until);
		finished = x->finished;
		pthread_mutex_unlock(&all->lock);
		source_tell_progress(all->whole->source);
	}
}

static void kineto_part_cancel(struct kineto_part *x)
{
	__atomic_store_n(&x->cancelled, true, __ATOMIC_RELAXED);
}

/* ---- where parts begin ---- */

/* Whether events follow each other from the brace on; the first is short, so that no window cuts it that begins there. */
static bool kineto_is_run(const char *text, const char *brace, const char *end)
{
	enum { LOOK = 4, SHORT = 64 << 10 }; /* a brace within a text hardly begins four events; blocks of a source are far longer than SHORT */
	struct json j = {.end = end};
	bool first = true, done;
	const char *p = brace;
	for (int i = 0; i < LOOK; i++) {
		p = json_element(&j, p, &first, &done);
		if (p && (done || *p != '{' || (i && !kineto_looks_like_event(text, p))))
			return false;
		if (p)
			p = json_skip(&j, p);
		if (!p)
			return i && j.status == JSON_MORE;
		if (!i && p - brace > SHORT)
			return false;
	}
	return true;
}

/* Where an event seems to begin, at `from` or not far behind it; -1 = nowhere. */
static int64_t kineto_find_border(const struct kineto_reader *r, int64_t from, struct str between, char *text, size_t room)
{
	const size_t n = source_read_at(r->source, from, text, room);
	const char *end = text + n;
	memset(text + n, 0, JSON_PADDING);
	for (const char *p = text; p < end && (p = memchr(p, '{', (size_t)(end - p))); p++) {
		const size_t before = (size_t)(p - text);
		if (before > between.n && p[-(ptrdiff_t)between.n - 1] == '}' && memcmp(p - between.n, between.p, between.n) == 0 && kineto_looks_like_event(text, p) &&
		    kineto_is_run(text, p, end))
			return from + (int64_t)before;
	}
	return -1;
}

static void kineto_parts_abandon(void *parts)
{
	struct kineto_parts *all = parts;
	for (unsigned i = 0; i < all->n; i++)
		kineto_part_cancel(&all->part[i]);
	for (unsigned i = 0; i < all->n; i++) {
		if (all->part[i].started)
			pthread_join(all->part[i].thread, NULL);
		mem_pool_release(&all->part[i].blocks);
	}
}

static void kineto_parts_start(struct kineto_parts *all)
{
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->finished, NULL);
	mem_undo_begin(&all->undo, kineto_parts_abandon, all);
	for (unsigned i = 0; i < all->n; i++)
		all->part[i].started = threads_start(&all->part[i].thread, kineto_part_run, &all->part[i]);
}

void kineto_split(struct kineto_reader *r, const char *p, struct str between, kineto_read_part_fn *read)
{
	enum { TEXT = 256 << 10, BETWEEN = 64 }; /* bytes: hundreds of events, among which a border is searched; a comma and an indent */
	const int64_t from = kineto_offset_of(r, p), bytes = (int64_t)source_file_bytes(r->source) - from, most = bytes / r->part_bytes;
	const unsigned n = most < r->threads ? (unsigned)most : r->threads;
	r->splits = false;
	assert(r->threads <= THREADS_MOST); /* all may stand in the chain at once */
	if (n < 2 || between.n > BETWEEN)
		return;
	struct kineto_parts *all = NEW(struct kineto_parts);
	char *text = mem_alloc(TEXT + JSON_PADDING, 1);
	all->whole = r;
	all->read = read;
	all->part = NEW_ARRAY(n, struct kineto_part);
	int64_t last = from;
	for (unsigned i = 1; i < n; i++) {
		const int64_t wanted = from + bytes / n * i, at = wanted > last ? kineto_find_border(r, wanted, between, text, TEXT) : -1;
		if (at <= last)
			continue;
		all->part[all->n++] = (struct kineto_part){.all = all, .border = at};
		last = at;
	}
	mem_free(text);
	r->parts = all;
	r->k.stop_at = all->n ? all->part[0].border : INT64_MAX;
	kineto_parts_start(all);
}

/* ---- joining ---- */

static void *kineto_part_move(void *context)
{
	struct kineto_part *x = context;
	build_join_rows(&x->all->whole->k.b, &x->r->k.b, &x->map);
	kineto_part_release(x);
	return NULL;
}

/* Gives the whole the rows of the parts that were joined, each by a thread. */
static void kineto_move_rows(struct kineto_parts *all)
{
	pthread_t thread[THREADS_MOST];
	bool started[THREADS_MOST] = {0};
	if (!all->n_chain)
		return;
	build_join_reserve(&all->whole->k.b, all->rows, all->chain, all->n_chain);
	for (unsigned i = 1; i < all->n_chain; i++)
		started[i] = threads_start(&thread[i], kineto_part_move, &all->part[all->of_chain[i]]);
	for (unsigned i = 0; i < all->n_chain; i++)
		if (!started[i])
			kineto_part_move(&all->part[all->of_chain[i]]);
	for (unsigned i = 1; i < all->n_chain; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
	all->n_chain = 0;
}

/* Joins it to the whole, but for its rows. False: that would not give what one reader gives. */
static bool kineto_part_join(struct kineto_parts *all, struct kineto_part *x)
{
	struct kineto *to = &all->whole->k, *from = &x->r->k;
	uint64_t rows[STORE_N_TABLES];
	if (from->n_ends)
		kineto_move_rows(all); /* the ranges that these events end */
	if (!all->n_chain)
		for (enum store_table_id id = 0; id < STORE_N_TABLES; id++)
			all->rows[id] = ((struct rows *)profile_table(to->p, id))->n;
	memcpy(rows, all->rows, sizeof rows);
	if (!build_can_join(&to->b, &from->b, rows) || !kineto_event_can_join(to, from))
		return false;
	build_join_names(&to->b, &from->b, all->rows, &x->map);
	kineto_event_join(to, from, &x->map);
	memcpy(all->rows, rows, sizeof rows);
	all->of_chain[all->n_chain] = (unsigned)(x - all->part);
	all->chain[all->n_chain++] = &from->b;
	all->n_joined++;
	return true;
}

/* The window of that place, and the place in it. */
static const char *kineto_go(struct kineto_reader *r, const struct kineto_place *to)
{
	source_seek(r->source, to->begin);
	struct str w = source_next(r->source, (struct str){NULL, 0}, &r->final);
	while (!r->final && (to->final || to->begin + (int64_t)w.n < to->end))
		w = source_next(r->source, w, &r->final);
	r->begin = w.p;
	r->begin_offset = to->begin;
	r->k.j.end = w.p + w.n;
	return to->start - to->begin < (int64_t)w.n ? w.p + (to->start - to->begin) : r->k.j.end; /* a file that became shorter */
}

/* The reader goes on until the next border behind `offset`. */
static void kineto_next_border(struct kineto_reader *r, int64_t offset)
{
	for (; r->next < r->parts->n && r->parts->part[r->next].border <= offset; r->next++)
		if (!r->k.is_part)
			kineto_part_cancel(&r->parts->part[r->next]);
	r->k.stop_at = r->next < r->parts->n ? r->parts->part[r->next].border : INT64_MAX;
}

/* The reader of the whole stands behind an event, at the border of part `i`. */
static const char *kineto_join_from(struct kineto_reader *r, unsigned i, const char *start, bool *first, bool *done)
{
	struct kineto_parts *all = r->parts;
	struct kineto_place place = {.start = -1};
	while (!place.done) {
		struct kineto_part *x = &all->part[i];
		kineto_part_wait(x);
		if (!x->good || !kineto_part_join(all, x))
			break;
		place = x->end;
		i = x->next;
	}
	kineto_move_rows(all);
	kineto_next_border(r, place.done ? place.start : all->part[i].border);
	if (place.start < 0)
		return start;
	*first = place.first;
	*done = place.done;
	return kineto_go(r, &place);
}

const char *kineto_at_border(struct kineto_reader *r, const char *start, const char *p, bool *first, bool *done)
{
	const int64_t offset = kineto_offset_of(r, p);
	const struct kineto_parts *all = r->parts;
	if (r->k.cannot_join)
		return NULL;
	/* Windows must end at the same byte, or one reader may see an event cut that the other sees whole. */
	const bool is_clean = !r->k.j.repairs && !r->final && kineto_offset_of(r, r->k.j.end) == source_block_end(r->source, offset);
	for (unsigned i = r->next; is_clean && i < all->n && all->part[i].border <= offset; i++) {
		if (all->part[i].border != offset)
			continue;
		if (r->k.is_part) {
			r->next = i;
			r->at_border = kineto_offset_of(r, start);
			r->at_first = *first;
			return NULL;
		}
		return kineto_join_from(r, i, start, first, done);
	}
	kineto_next_border(r, offset);
	return start;
}

unsigned kineto_parts_end(struct kineto_reader *r)
{
	struct kineto_parts *all = r->parts;
	if (!all)
		return 0;
	const unsigned n_joined = all->n_joined;
	mem_undo_end(&all->undo);
	kineto_parts_abandon(all);
	pthread_cond_destroy(&all->finished);
	pthread_mutex_destroy(&all->lock);
	mem_free(all->part);
	mem_free(all);
	r->parts = NULL;
	return n_joined;
}
