/* Inputs of the server: which are in memory, and for whom. */
#include "serve/library_own.h"

#include "base/mem.h"
#include "input/discover.h"
#include "io/memory_limit.h"
#include "open/trace_open.h"
#include "serve/problems.h"
#include "store/reuse.h"

#include <errno.h>
#include <stdio.h>
#include <sys/param.h>

enum { WAITERS_MAX = 300, REREADS_MAX = 3 };

const char *const entry_state_name[] = {[ENTRY_FOUND] = "found", [ENTRY_QUEUED] = "queued", [ENTRY_LOADING] = "loading",
                                        [ENTRY_READY] = "ready", [ENTRY_FAILED] = "failed", [ENTRY_GONE] = "gone"};

/* What was let go, to be freed with nothing locked: of a long trace that takes a while. */
struct waste {
	struct waste *next;
	struct profile *profile;
	struct timeline *timeline;
};

void library_let_go(struct library *l, struct library_entry *x)
{
	struct waste *w = x->own->waste;
	if (x->profile) {
		*w = (struct waste){l->waste, x->profile, x->own->timeline};
		l->waste = w;
		x->own->waste = NULL;
	}
	x->state = x->own->waiters || x->own->again ? ENTRY_QUEUED : ENTRY_FOUND;
	x->own->timeline = NULL;
	x->profile = NULL;
	x->own->bytes = 0;
	x->own->stale = x->own->again = false;
	l->version++;
	if (x->state == ENTRY_QUEUED)
		pthread_cond_broadcast(&l->work);
}

void library_unlock(struct library *l)
{
	struct waste *w = l->waste;
	l->waste = NULL;
	pthread_mutex_unlock(&l->lock);
	while (w) {
		struct waste *next = w->next;
		timeline_free(w->timeline);
		profile_free(w->profile);
		mem_free(w);
		w = next;
	}
}

/* Lets go of what was not used for longest until what is left fits. The one that was used last stays, however large it is: the next request is likely to be for it,
 * and of a large one most lies in a file (base/spill.h). Locked. */
static void serve_library_make_room(struct library *l)
{
	for (;;) {
		uint64_t held = 0, last = 0;
		struct library_entry *oldest = NULL;
		for (unsigned i = 0; i < l->n; i++) {
			struct library_entry *x = l->entry[i];
			held += x->own->bytes;
			if (x->state != ENTRY_READY)
				continue;
			last = MAX(last, x->own->used);
			if (!x->own->holds && (!oldest || x->own->used < oldest->own->used))
				oldest = x;
		}
		if (held <= l->memory_bytes || !oldest || oldest->own->used == last)
			return;
		library_let_go(l, oldest);
	}
}

static void serve_library_on_progress(void *context, uint64_t done, uint64_t total)
{
	struct library_entry *x = context;
	struct library *l = x->own->library;
	pthread_mutex_lock(&l->lock);
	x->done_bytes = done;
	x->total_bytes = total;
	l->version++;
	pthread_mutex_unlock(&l->lock);
}

/* The waiters, whom the caller must tell with nothing locked; each has a hold if the entry is ready. Locked. */
static struct library_waiter *take_waiters(struct library *l, struct library_entry *x)
{
	struct library_waiter *w = x->own->waiters;
	x->own->waiters = NULL;
	for (struct library_waiter *k = w; k; k = k->next) {
		x->own->holds += x->state == ENTRY_READY;
		l->n_waiters--;
	}
	return w;
}

static void serve_library_tell(struct library_waiter *w, struct library_entry *x, bool held)
{
	while (w) {
		struct library_waiter *next = w->next;
		w->ready(w, x, held);
		w = next;
	}
}

struct reading {
	struct library_entry *x;
	bool apart;                   /* for one who asks (library_read_apart): nobody is told how far it is */
	struct stamp stamp;           /* of the file before */
	bool was_file;                /* and it was a regular one at some time */
	struct profile *p;
	unsigned marks;
	struct buf met;               /* the profile owns its text */
	struct waste *waste;
	struct err e;
};

static void serve_library_read_file(void *reading)
{
	struct reading *r = reading;
	struct input_options o = {.progress = r->apart ? NULL : serve_library_on_progress, .progress_context = r->x, .root = r->x->own->root, .found = r->was_file};
	if (r->was_file && !r->stamp.absent && !r->stamp.is_file) {
		err_set(&r->e, ERR_IO, "%s: no longer a regular file, a trace was expected", r->x->path.p);
		return;
	}
	const struct library_entry *x = r->x;
	if (x->own->root.n && !r->stamp.absent && !discover_lies_in(x->path.p, x->own->root)) {
		err_set(&r->e, ERR_IO, "%s: leads out of " STR_FMT ", a trace in there was expected; --follow-links reads it all the same", x->path.p,
		        STR_ARG(x->own->root));
		return;
	}
	struct profile *p = trace_open(r->x->path.p, &o, &r->e);
	r->p = r->apart ? p : NULL;
	if (!p || r->apart)
		return;
	r->marks = r->x->own->library->look ? r->x->own->library->look(p) : 0;
	problems_put(&p->diags, DIAG_NOTE, &r->met);
	r->waste = NEW(struct waste);
	r->p = p;
	mem_disown(r->waste);
}

static void read_entry(struct reading *r)
{
	struct mem_pool blocks = {0};
	if (mem_try(&blocks, serve_library_read_file, r) < 0) {
		mem_pool_release(&blocks);
		err_nomem(&r->e);
		err_prefix(&r->e, "%s", r->x->path.p);
	}
	if (r->p)
		mem_pool_move(&r->p->blocks, &blocks);
	else
		mem_pool_drop(&blocks);
}

struct profile *library_read_apart(struct library *l, struct library_entry *x, struct err *e)
{
	struct reading r = {.x = x, .apart = true, .stamp = stamp_of(x)};
	pthread_mutex_lock(&l->lock);
	r.was_file = x->own->was_file;
	pthread_mutex_unlock(&l->lock);
	serve_library_read_file(&r);
	*e = r.e;
	return r.p;
}

uint64_t library_content(struct library *l, const struct library_entry *x)
{
	pthread_mutex_lock(&l->lock);
	uint64_t content = x->content;
	pthread_mutex_unlock(&l->lock);
	return content;
}

const char *const *library_paths(const struct library *l, unsigned *n)
{
	*n = l->n_paths;
	return (const char *const *)l->path;
}

bool library_is_wanted(struct library *l, const struct library_entry *x)
{
	pthread_mutex_lock(&l->lock);
	bool wanted = x->state == ENTRY_READY || x->state == ENTRY_LOADING || x->state == ENTRY_QUEUED;
	pthread_mutex_unlock(&l->lock);
	return wanted;
}

void library_note_put(struct library *l, struct library_entry *x, enum library_note which, uint64_t contents, struct str text)
{
	char *own = mem_alloc(text.n + 1, 1);
	memcpy(own, text.p, text.n);
	mem_disown(own);
	pthread_mutex_lock(&l->lock);
	char *old = x->own->note[which].text;
	x->own->note[which] = (struct library_kept){own, text.n, contents};
	pthread_mutex_unlock(&l->lock);
	mem_free(old);
}

bool library_note_get(struct library *l, struct library_entry *x, enum library_note which, uint64_t contents, struct buf *out)
{
	struct mem_undo undo;
	pthread_mutex_lock(&l->lock);
	mem_undo_begin(&undo, library_undo_lock, &l->lock);
	const struct library_kept *k = &x->own->note[which];
	bool known = k->text && k->contents == contents;
	if (known)
		buf_put(out, k->text, k->n);
	mem_undo_end(&undo);
	pthread_mutex_unlock(&l->lock);
	return known;
}

/* Lets go of every profile that nobody holds, where memory has run out. The library is locked. */
static void let_all_go(struct library *l)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->entry[i]->state == ENTRY_READY && !l->entry[i]->own->holds)
			library_let_go(l, l->entry[i]);
}

/* Told to those who wait, and to whoever asks next without waiting; then it is tried again. Locked. */
static void fail_for_memory(struct library *l, struct library_entry *x)
{
	x->own->no_memory = true;
	x->own->again = false;
	x->state = x->own->waiters ? ENTRY_FOUND : ENTRY_FAILED;
	let_all_go(l);
}

static void serve_library_load(struct library *l, struct library_entry *x)
{
	struct reading r = {.x = x, .stamp = stamp_of(x)};
	struct stamp stamp = r.stamp;
	pthread_mutex_lock(&l->lock);
	x->own->loading = stamp;
	x->own->no_memory = false;
	r.was_file = x->own->was_file;
	pthread_mutex_unlock(&l->lock);
	read_entry(&r);
	struct profile *p = r.p;
	struct stamp after = stamp_of(x);
	pthread_mutex_lock(&l->lock);
	if (p)
		x->own->waste = r.waste;
	/* What was read while it was written may be half of one file and half of another. One that never rests is shown all the same; its
	 * problems say so (input_open). */
	bool no_memory = r.e.code == ERR_NOMEM;
	if (!no_memory && !after.absent && !stamp_same_file(stamp, after) && !l->closing && x->own->rereads < REREADS_MAX) {
		x->own->rereads++;
		x->own->again = true;
	}
	if (x->own->again && !no_memory) {
		x->profile = p;
		library_let_go(l, x);
		library_unlock(l);
		return;
	}
	x->own->rereads = 0;
	if (!no_memory && (!x->generation || !stamp_eq(x->own->read, stamp)))
		x->generation = ++l->generation;
	x->own->read = stamp;
	x->own->used = ++l->clock;
	if (p) {
		x->profile = p;
		x->own->bytes = profile_bytes(p);
		x->problems = p->diags.n;
		x->met = buf_view(&r.met);
		x->marks = r.marks;
		x->state = ENTRY_READY;
	} else {
		snprintf(x->error, sizeof x->error, "%s", r.e.msg);
		x->state = ENTRY_FAILED;
	}
	if (no_memory)
		fail_for_memory(l, x);
	l->version++;
	struct library_waiter *w = take_waiters(l, x);
	serve_library_make_room(l);
	library_unlock(l);
	serve_library_tell(w, x, p != NULL);
}

static struct library_entry *next_queued(struct library *l)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->entry[i]->state == ENTRY_QUEUED)
			return l->entry[i];
	return NULL;
}

static void *load_all(void *context)
{
	struct library *l = context;
	pthread_mutex_lock(&l->lock);
	while (!l->closing) {
		struct library_entry *x = next_queued(l);
		if (!x) {
			pthread_cond_wait(&l->work, &l->lock);
			continue;
		}
		x->state = ENTRY_LOADING;
		x->done_bytes = x->total_bytes = 0;
		l->version++;
		pthread_mutex_unlock(&l->lock);
		serve_library_load(l, x);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static uint64_t half_of_memory(void)
{
	uint64_t bytes = memory_limit("");
	return bytes ? bytes / 2 : UINT64_C(4) << 30;
}

struct library *library_open(const struct library_options *o, struct err *e)
{
	struct library *l = NEW(struct library);
	l->memory_bytes = o->memory_bytes ? o->memory_bytes : half_of_memory();
	l->follow_links = o->follow_links;
	l->look = o->look;
	l->n_paths = o->n_paths;
	l->path = NEW_ARRAY(o->n_paths, char *);
	for (unsigned i = 0; i < o->n_paths; i++)
		l->path[i] = (char *)(uintptr_t)arena_str(&l->arena, str_from(o->paths[i])).p;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->work, NULL);
	int rc = library_look_again(l, e);
	if (rc == 0 && (pthread_create(&l->loader, NULL, load_all, l) || pthread_create(&l->watcher, NULL, library_watch, l)))
		rc = err_set(e, ERR_LIMIT, "no thread could be started: %s", strerror(errno));
	if (rc == 0)
		return l;
	library_close(l, NULL);
	return NULL;
}

static void entry_free(struct library_entry *x)
{
	timeline_free(x->own->timeline);
	profile_free(x->profile);
	pthread_mutex_destroy(&x->ask);
	pthread_mutex_destroy(&x->own->make);
	mem_free(x->own->waste);
	for (unsigned i = 0; i < LIBRARY_NOTES; i++)
		mem_free(x->own->note[i].text);
	mem_free(x->own);
	mem_free(x);
}

void library_refuse(struct library *l)
{
	pthread_mutex_lock(&l->lock);
	l->closing = true;
	pthread_cond_broadcast(&l->work);
	for (unsigned i = 0; i < l->n; i++) {
		struct library_entry *x = l->entry[i];
		struct library_waiter *w = x->own->waiters;
		x->own->waiters = NULL;
		pthread_mutex_unlock(&l->lock);
		serve_library_tell(w, x, false);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

bool library_ends(struct library *l)
{
	pthread_mutex_lock(&l->lock);
	bool ends = l->closing;
	pthread_mutex_unlock(&l->lock);
	return ends;
}

bool library_close(struct library *l, const struct timespec *until)
{
	if (!l)
		return true;
	library_refuse(l);
	if (l->loader && (until ? pthread_timedjoin_np(l->loader, NULL, until) : pthread_join(l->loader, NULL)))
		return false;
	if (l->watcher)
		pthread_join(l->watcher, NULL);
	for (unsigned i = 0; i < l->n; i++)
		entry_free(l->entry[i]);
	mem_free(l->entry);
	mem_free(l->paths.slot);
	mem_free(l->keys.slot);
	mem_free(l->path);
	mem_free(l->left_out);
	arena_release(&l->left_arena);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->work);
	arena_release(&l->arena);
	mem_free(l);
	return true;
}

uint64_t library_version(struct library *l)
{
	pthread_mutex_lock(&l->lock);
	uint64_t v = l->version;
	pthread_mutex_unlock(&l->lock);
	return v;
}

enum library_hold library_hold(struct library *l, struct library_entry *x, struct library_waiter *w, bool waits)
{
	enum library_hold is = HOLD_WAITS;
	pthread_mutex_lock(&l->lock);
	if (l->closing || (x->state == ENTRY_FAILED && !(waits && x->own->no_memory))) {
		is = HOLD_FAILED;
		if (x->state == ENTRY_FAILED && x->own->no_memory)
			l->version++, x->state = ENTRY_FOUND;
	} else if (x->state == ENTRY_READY && !x->own->stale) {
		x->own->holds++;
		x->own->used = ++l->clock;
		is = HOLD_READY;
	} else if (waits && l->n_waiters >= WAITERS_MAX) {
		is = HOLD_FULL;
	} else {
		if (waits) {
			w->next = x->own->waiters;
			x->own->waiters = w;
			l->n_waiters++;
		}
		if (x->state == ENTRY_FOUND || x->state == ENTRY_GONE || x->state == ENTRY_FAILED) {
			x->state = ENTRY_QUEUED;
			l->version++;
			pthread_cond_broadcast(&l->work);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return is;
}

struct library_pause {
	struct library_waiter waiter;
	pthread_mutex_t lock;
	pthread_cond_t told;
	bool done, held;
};

static void library_pause_end(struct library_waiter *w, struct library_entry *x, bool held)
{
	struct library_pause *p = (struct library_pause *)(void *)((char *)w - offsetof(struct library_pause, waiter));
	pthread_mutex_lock(&p->lock);
	p->done = true;
	p->held = held;
	pthread_cond_signal(&p->told);
	pthread_mutex_unlock(&p->lock);
}

int library_hold_here(struct library *l, struct library_entry *x, struct err *e)
{
	struct library_pause p = {.waiter.ready = library_pause_end, .lock = PTHREAD_MUTEX_INITIALIZER, .told = PTHREAD_COND_INITIALIZER};
	struct library_news news;
	enum library_hold is = library_hold(l, x, &p.waiter, true);
	if (is == HOLD_WAITS) {
		pthread_mutex_lock(&p.lock);
		while (!p.done)
			pthread_cond_wait(&p.told, &p.lock);
		pthread_mutex_unlock(&p.lock);
	}
	pthread_mutex_destroy(&p.lock);
	pthread_cond_destroy(&p.told);
	if (is == HOLD_READY || p.held)
		return 0;
	if (is == HOLD_FULL)
		return err_set(e, ERR_LIMIT, "too many requests are waiting for inputs; ask again in a second");
	library_news(l, x, &news);
	if (news.no_memory)
		return err_nomem(e);
	return news.error[0] ? err_set(e, ERR_DATA, "%s", news.error) : err_set(e, ERR_LIMIT, "the server is about to end");
}

static void library_visit_undo(void *visit)
{
	struct library_visit *v = visit;
	library_release(v->l, v->x);
}

int library_visit_begin(struct library_visit *v, struct library *l, struct library_entry *x, struct err *e)
{
	v->l = l;
	v->x = x;
	if (library_hold_here(l, x, e) < 0)
		return -1;
	mem_undo_begin(&v->undo, library_visit_undo, v);
	return 0;
}

void library_visit_end(struct library_visit *v)
{
	mem_undo_end(&v->undo);
	library_release(v->l, v->x);
}

void library_release(struct library *l, struct library_entry *x)
{
	pthread_mutex_lock(&l->lock);
	if (--x->own->holds == 0) {
		/* Passes and parts have added to it. */
		if (!x->profile->broken)
			x->own->bytes = profile_bytes(x->profile) + (x->own->timeline ? timeline_bytes(x->own->timeline) : 0);
		if (x->own->stale)
			library_let_go(l, x);
		serve_library_make_room(l);
	}
	library_unlock(l);
}

void library_news(struct library *l, struct library_entry *x, struct library_news *out)
{
	pthread_mutex_lock(&l->lock);
	*out = (struct library_news){.state = x->state, .done_bytes = x->done_bytes, .total_bytes = x->total_bytes};
	out->no_memory = x->own->no_memory;
	if (x->state == ENTRY_FAILED || out->no_memory)
		memcpy(out->error, x->error, sizeof out->error);
	pthread_mutex_unlock(&l->lock);
}

const struct timeline *library_timeline(struct library *l, struct library_entry *x, struct err *e)
{
	struct library_turn turn;
	struct mem_undo undo;
	pthread_mutex_lock(&x->own->make);
	mem_undo_begin(&undo, library_undo_lock, &x->own->make);
	if (!x->own->timeline && library_turn_begin(&turn, x, e) == 0) {
		int rc = analysis_run(x->profile, PASS_NEST | PASS_CORRELATE, e);
		library_turn_end(&turn);
		struct timeline *t = rc < 0 ? NULL : timeline_new(x->profile);
		mem_keep(&x->profile->blocks);
		pthread_mutex_lock(&l->lock);
		x->own->timeline = t;
		pthread_mutex_unlock(&l->lock);
	}
	mem_undo_end(&undo);
	pthread_mutex_unlock(&x->own->make);
	return x->own->timeline;
}

/* Others may be reading what was made in this turn, so that it is freed with the rest. */
static void break_turn(void *turn)
{
	struct library_entry *x = ((struct library_turn *)turn)->x;
	struct library *l = x->own->library;
	mem_keep(&x->profile->blocks);
	profile_break(x->profile);
	atomic_fetch_sub(&x->own->turns, 1);
	pthread_mutex_lock(&l->lock);
	x->own->stale = true;
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_unlock(&x->ask);
}

int library_turn_begin(struct library_turn *t, struct library_entry *x, struct err *e)
{
	t->x = x;
	atomic_fetch_add(&x->own->turns, 1);
	pthread_mutex_lock(&x->ask);
	mem_undo_begin(&t->undo, break_turn, t);
	if (!x->profile->broken) {
		if (!reuse_begin(x->profile))
			reuse_take(x->profile);
		return 0;
	}
	mem_undo_end(&t->undo);
	atomic_fetch_sub(&x->own->turns, 1);
	pthread_mutex_unlock(&x->ask);
	return err_nomem(e);
}

void library_turn_end(struct library_turn *t)
{
	if (atomic_fetch_sub(&t->x->own->turns, 1) > 1)
		reuse_drop(t->x->profile);
	else
		reuse_end(t->x->profile);
	mem_keep(&t->x->profile->blocks);
	mem_undo_end(&t->undo);
	pthread_mutex_unlock(&t->x->ask);
}

void library_changed(struct library *l, struct library_entry *x)
{
	struct stamp now = stamp_of(x);
	pthread_mutex_lock(&l->lock);
	x->own->stale = x->own->again = true;
	library_note_content(l, x, now);
	pthread_mutex_unlock(&l->lock);
}
