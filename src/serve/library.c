/* Inputs of the server: which there are, and which are in memory. */
#include "serve/library.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "input/discover.h"
#include "input/input.h"
#include "serve/plugin_views.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_SECONDS = 3, WAITERS_MAX = 300, REREADS_MAX = 3 };

const char *const entry_state_name[] = {[ENTRY_FOUND] = "found", [ENTRY_QUEUED] = "queued", [ENTRY_LOADING] = "loading",
                                        [ENTRY_READY] = "ready", [ENTRY_FAILED] = "failed", [ENTRY_GONE] = "gone"};

/* What a file was when it was looked at: other values mean other content. */
struct stamp {
	uint64_t device, inode, size;
	int64_t changed_ns;
	bool absent, is_file;
};

struct library_private {
	struct library *library;
	struct stamp loading, read;   /* of the file: when the reading in progress began, and the last that was finished */
	struct stamp last;            /* as it was seen last */
	struct timeline *timeline;
	pthread_mutex_t make;         /* held while the timeline is made */
	unsigned holds;
	uint64_t used;                /* library.clock at the last hold */
	uint64_t bytes;               /* of profile and timeline */
	bool stale;                   /* to be let go as soon as nobody holds it; nobody new gets it */
	bool was_file;                /* a regular one: what else is there later may keep a reader waiting for ever */
	unsigned rereads;             /* one after the other, since the file changed meanwhile */
	bool again;                   /* and then, or after the reading in progress, to be read at once */
	bool seen;                    /* by the look in progress */
	struct library_waiter *waiters;
};

/* What was let go, to be freed with nothing locked: of a long trace that takes a while. */
struct waste {
	struct waste *next;
	struct profile *profile;
	struct timeline *timeline;
};

struct library {
	pthread_mutex_t lock;         /* everything below, and the entries but `ask` and what it guards */
	pthread_cond_t work;
	pthread_t loader, watcher;
	struct library_entry **entry; /* in order */
	unsigned n, cap;
	char **path;
	unsigned n_paths, n_waiters;
	struct waste *waste;
	uint64_t version, clock, generation, memory_bytes;
	bool closing;
	struct arena arena;           /* owns the strings */
};

static struct stamp stamp_of(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return (struct stamp){.absent = true};
	return (struct stamp){st.st_dev, st.st_ino, (uint64_t)st.st_size, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
	                      .is_file = S_ISREG(st.st_mode)};
}

static bool stamp_eq(struct stamp a, struct stamp b)
{
	return a.absent == b.absent && a.device == b.device && a.inode == b.inode && a.size == b.size && a.changed_ns == b.changed_ns;
}

/* Locked; unlock() frees it. Whoever waits for other content gets it. */
static void let_go(struct library *l, struct library_entry *x)
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

static void unlock(struct library *l)
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
		let_go(l, oldest);
	}
}

static struct library_entry *entry_of_path(const struct library *l, struct str path)
{
	for (unsigned i = 0; i < l->n; i++)
		if (str_eq(l->entry[i]->path, path))
			return l->entry[i];
	return NULL;
}

static struct library_entry *entry_of_key(const struct library *l, struct str key)
{
	for (unsigned i = 0; i < l->n; i++)
		if (str_eq(l->entry[i]->key, key))
			return l->entry[i];
	return NULL;
}

/* Names of files may be any bytes; what is shown, and asked by, is UTF-8. */
static struct str valid_text(struct library *l, struct str s)
{
	struct buf b = {0};
	utf8_put_valid(&b, s);
	struct str text = arena_str(&l->arena, buf_view(&b));
	buf_release(&b);
	return text;
}

/* "run/worker/span"; where another file has it, with "~2", ... */
static struct str new_key(struct library *l, const struct library_entry *f)
{
	struct buf b = {0};
	for (unsigned k = 1; k == 1 || entry_of_key(l, buf_view(&b)); k++) {
		buf_clear(&b);
		buf_printf(&b, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(f->run), STR_ARG(f->worker), STR_ARG(f->span));
		if (k > 1)
			buf_printf(&b, "~%u", k);
	}
	struct str key = arena_str(&l->arena, buf_view(&b));
	buf_release(&b);
	return key;
}

static int by_place(const struct library_entry *a, const struct library_entry *b)
{
	int c = str_cmp_natural(a->run, b->run);
	c = c ? c : str_cmp_natural(a->worker, b->worker);
	c = c ? c : str_cmp_natural(a->span, b->span);
	return c ? c : str_cmp(a->key, b->key);
}

static struct library_entry *add_entry(struct library *l, const struct trace_file *f)
{
	struct library_entry *x = NEW(struct library_entry);
	x->own = NEW(struct library_private);
	x->own->library = l;
	x->run = valid_text(l, f->run);
	x->worker = valid_text(l, f->worker);
	x->span = valid_text(l, f->span);
	x->key = new_key(l, x);
	x->path = arena_str(&l->arena, f->path);
	pthread_mutex_init(&x->ask, NULL);
	pthread_mutex_init(&x->own->make, NULL);
	MEM_GROW(l->entry, l->cap, l->n + 1);
	unsigned i = l->n++;
	for (; i > 0 && by_place(l->entry[i - 1], x) > 0; i--)
		l->entry[i] = l->entry[i - 1];
	l->entry[i] = x;
	l->version++;
	return x;
}

static void note_content(struct library *l, struct library_entry *x, struct stamp now)
{
	x->own->was_file |= now.is_file;
	if (stamp_eq(x->own->last, now))
		return;
	x->own->last = now;
	x->content++;
	l->version++;
}

/* The file of *x has been seen as `now`. Locked. */
static void note_stamp(struct library *l, struct library_entry *x, struct stamp now)
{
	bool read = stamp_eq(x->own->read, now);
	note_content(l, x, now);
	if (x->state == ENTRY_GONE || (x->state == ENTRY_FAILED && !read)) {
		x->state = ENTRY_FOUND;
		l->version++;
	}
	if (x->state != ENTRY_READY || read)
		return;
	if (x->own->holds)
		x->own->stale = true;
	else
		let_go(l, x);
}

static void note_absence(struct library *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		struct library_entry *x = l->entry[i];
		bool seen = x->own->seen;
		x->own->seen = false;
		/* What is in memory can still be shown. */
		if (seen || x->state == ENTRY_GONE || x->state == ENTRY_READY || x->state == ENTRY_LOADING || x->state == ENTRY_QUEUED)
			continue;
		x->state = ENTRY_GONE;
		l->version++;
	}
}

/* What stands at the paths now. */
static int look(struct library *l, struct err *e)
{
	struct trace_list found = {0};
	int rc = 0;
	for (unsigned i = 0; i < l->n_paths; i++)
		if (discover_add(&found, l->path[i], e) < 0)
			rc = -1;
	discover_finish(&found);
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < found.n; i++) {
		struct library_entry *x = entry_of_path(l, found.v[i].path);
		if (!x)
			x = add_entry(l, &found.v[i]);
		x->own->seen = true;
		note_stamp(l, x, stamp_of(x->path.p));
	}
	note_absence(l);
	unlock(l);
	discover_release(&found);
	return rc;
}

void library_renew(struct library *l, struct library_entry *x)
{
	struct stamp now = stamp_of(x->path.p);
	pthread_mutex_lock(&l->lock);
	note_stamp(l, x, now);
	if (x->state == ENTRY_LOADING && !stamp_eq(x->own->loading, now))
		x->own->again = true;
	unlock(l);
}

/* Waits for `seconds`, or until the library is being closed. Locked. */
static bool wait_seconds(struct library *l, int seconds)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	while (!l->closing && pthread_cond_timedwait(&l->work, &l->lock, &until) != ETIMEDOUT)
		;
	return !l->closing;
}

static void *watch(void *context)
{
	struct library *l = context;
	pthread_mutex_lock(&l->lock);
	while (wait_seconds(l, LOOK_SECONDS)) {
		struct err e;
		pthread_mutex_unlock(&l->lock);
		look(l, &e);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
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
	if (!after.absent && !stamp_eq(stamp, after) && !l->closing && x->own->rereads < REREADS_MAX) {
		x->own->rereads++;
		x->own->again = true;
	}
	if (x->own->again) {
		x->profile = p;
		let_go(l, x);
		unlock(l);
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
	unlock(l);
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
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : UINT64_C(4) << 30;
}

struct library *library_open(const struct library_options *o, struct err *e)
{
	struct library *l = NEW(struct library);
	l->memory_bytes = o->memory_bytes ? o->memory_bytes : half_of_memory();
	l->n_paths = o->n_paths;
	l->path = NEW_ARRAY(o->n_paths, char *);
	for (unsigned i = 0; i < o->n_paths; i++)
		l->path[i] = (char *)(uintptr_t)arena_str(&l->arena, str_from(o->paths[i])).p;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->work, NULL);
	int rc = look(l, e);
	if (rc == 0 && (pthread_create(&l->loader, NULL, load_all, l) || pthread_create(&l->watcher, NULL, watch, l)))
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

void library_look(struct library *l, void (*see)(void *context, const struct library_entry *x), void *context)
{
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n; i++)
		see(context, l->entry[i]);
	pthread_mutex_unlock(&l->lock);
}

struct library_entry *library_find(struct library *l, struct str key)
{
	pthread_mutex_lock(&l->lock);
	struct library_entry *x = !key.n && l->n == 1 ? l->entry[0] : entry_of_key(l, key);
	pthread_mutex_unlock(&l->lock);
	return x;
}

struct library_entry *library_find_span(struct library *l, struct str run, struct str worker, struct str span)
{
	struct library_entry *found = NULL;
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n && !found; i++) {
		struct library_entry *x = l->entry[i];
		if (x->state != ENTRY_GONE && str_eq(x->run, run) && str_eq(x->worker, worker) && str_eq(x->span, span))
			found = x;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

/* Of the run, and there; only such as may be read and was not, if `unread`. */
static struct library_entry *find_in_run(struct library *l, struct str run, bool unread)
{
	struct library_entry *found = NULL;
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n && !found; i++) {
		struct library_entry *x = l->entry[i];
		if (x->state != ENTRY_GONE && str_eq(x->run, run) && !(unread && (x->generation || x->state == ENTRY_FAILED)))
			found = x;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

bool library_has_run(struct library *l, struct str run)
{
	return find_in_run(l, run, false) != NULL;
}

struct library_entry *library_unread(struct library *l, struct str run)
{
	return find_in_run(l, run, true);
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
			let_go(l, x);
		make_room(l);
	}
	unlock(l);
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
	note_content(l, x, now);
	pthread_mutex_unlock(&l->lock);
}
