/* Inputs of the server: which are in memory, and for whom. */
#include "serve/library_own.h"

#include "base/mem.h"
#include "input/discover.h"
#include "input/input.h"
#include "io/memory_limit.h"
#include "serve/plugin_views.h"

#include <errno.h>
#include <stdio.h>

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
	struct waste *w = NEW(struct waste);
	*w = (struct waste){l->waste, x->profile, x->own->timeline};
	l->waste = w;
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

/* Lets go of what was not used for longest until what is left fits. Locked. */
static void make_room(struct library *l)
{
	for (;;) {
		uint64_t held = 0;
		struct library_entry *oldest = NULL;
		for (unsigned i = 0; i < l->n; i++) {
			struct library_entry *x = l->entry[i];
			held += x->own->bytes;
			if (x->state == ENTRY_READY && !x->own->holds && (!oldest || x->own->used < oldest->own->used))
				oldest = x;
		}
		if (held <= l->memory_bytes || !oldest)
			return;
		library_let_go(l, oldest);
	}
}

static void on_progress(void *context, uint64_t done, uint64_t total)
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

static void tell(struct library_waiter *w, struct library_entry *x, bool held)
{
	while (w) {
		struct library_waiter *next = w->next;
		w->ready(w, x, held);
		w = next;
	}
}

/* Of a file that was `stamp` before; `was_file`: and a regular one at some time. */
static struct profile *read_entry(struct library_entry *x, struct stamp stamp, bool was_file, struct err *e)
{
	struct input_options o = {.progress = on_progress, .progress_context = x};
	if (was_file && !stamp.absent && !stamp.is_file) {
		err_set(e, ERR_IO, "%s: no longer a regular file, a trace was expected", x->path.p);
		return NULL;
	}
	if (x->own->root.n && !stamp.absent && !discover_lies_in(x->path.p, x->own->root)) {
		err_set(e, ERR_IO, "%s: leads out of " STR_FMT ", a trace in there was expected; --follow-links reads it all the same", x->path.p,
		        STR_ARG(x->own->root));
		return NULL;
	}
	return input_open(x->path.p, &o, e);
}

static void load(struct library *l, struct library_entry *x)
{
	struct err e = {0};
	struct stamp stamp = stamp_of(x->path.p);
	pthread_mutex_lock(&l->lock);
	x->own->loading = stamp;
	bool was_file = x->own->was_file;
	pthread_mutex_unlock(&l->lock);
	struct profile *p = read_entry(x, stamp, was_file, &e);
	unsigned views = p ? plugin_views_of(p) : 0;
	struct stamp after = stamp_of(x->path.p);
	pthread_mutex_lock(&l->lock);
	/* What was read while it was written may be half of one file and half of another. One that never rests is shown all the same; its
	 * problems say so (input_open). */
	if (!after.absent && !stamp_same_file(stamp, after) && !l->closing && x->own->rereads < REREADS_MAX) {
		x->own->rereads++;
		x->own->again = true;
	}
	if (x->own->again) {
		x->profile = p;
		library_let_go(l, x);
		library_unlock(l);
		return;
	}
	x->own->rereads = 0;
	if (!x->generation || !stamp_eq(x->own->read, stamp))
		x->generation = ++l->generation;
	x->own->read = stamp;
	x->own->used = ++l->clock;
	if (p) {
		x->profile = p;
		x->own->bytes = profile_bytes(p);
		x->problems = p->diags.n;
		x->views = views;
		x->state = ENTRY_READY;
	} else {
		snprintf(x->error, sizeof x->error, "%s", e.msg);
		x->state = ENTRY_FAILED;
	}
	l->version++;
	struct library_waiter *w = take_waiters(l, x);
	make_room(l);
	library_unlock(l);
	tell(w, x, p != NULL);
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
		load(l, x);
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
		tell(w, x, false);
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
	if (l->closing || x->state == ENTRY_FAILED) {
		is = HOLD_FAILED;
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
		if (x->state == ENTRY_FOUND || x->state == ENTRY_GONE) {
			x->state = ENTRY_QUEUED;
			l->version++;
			pthread_cond_broadcast(&l->work);
		}
	}
	pthread_mutex_unlock(&l->lock);
	return is;
}

void library_release(struct library *l, struct library_entry *x)
{
	pthread_mutex_lock(&l->lock);
	if (--x->own->holds == 0) {
		/* Passes and parts have added to it. */
		x->own->bytes = profile_bytes(x->profile) + (x->own->timeline ? timeline_bytes(x->own->timeline) : 0);
		if (x->own->stale)
			library_let_go(l, x);
		make_room(l);
	}
	library_unlock(l);
}

void library_news(struct library *l, struct library_entry *x, struct library_news *out)
{
	pthread_mutex_lock(&l->lock);
	*out = (struct library_news){.state = x->state, .done_bytes = x->done_bytes, .total_bytes = x->total_bytes};
	if (x->state == ENTRY_FAILED)
		memcpy(out->error, x->error, sizeof out->error);
	pthread_mutex_unlock(&l->lock);
}

const struct timeline *library_timeline(struct library *l, struct library_entry *x, struct err *e)
{
	pthread_mutex_lock(&x->own->make);
	if (!x->own->timeline) {
		pthread_mutex_lock(&x->ask);
		int rc = analysis_run(x->profile, PASS_NEST | PASS_CORRELATE, e);
		pthread_mutex_unlock(&x->ask);
		struct timeline *t = rc < 0 ? NULL : timeline_new(x->profile);
		pthread_mutex_lock(&l->lock);
		x->own->timeline = t;
		pthread_mutex_unlock(&l->lock);
	}
	pthread_mutex_unlock(&x->own->make);
	return x->own->timeline;
}

void library_changed(struct library *l, struct library_entry *x)
{
	struct stamp now = stamp_of(x->path.p);
	pthread_mutex_lock(&l->lock);
	x->own->stale = x->own->again = true;
	library_note_content(l, x, now);
	pthread_mutex_unlock(&l->lock);
}
