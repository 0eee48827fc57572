/* Inputs of the server: what there is at its paths, and whether it has changed. */
#include "serve/library_own.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/utf8.h"
#include "input/discover.h"
#include "input/input.h"
#include "io/remote/remote.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

enum { LOOK_SECONDS = 3, LOOK_REMOTE_SECONDS = 60 }; /* a store takes money for each list */

struct stamp stamp_of(const struct library_entry *x)
{
	struct stat st;
	struct remote_state state = {0};
	if (remote_is(x->path.p)) {
		remote_state(x->path.p, &state);
		return (struct stamp){.size = state.bytes, .changed_ns = (int64_t)state.version, .is_file = true};
	}
	if (stat(x->path.p, &st) < 0)
		return (struct stamp){.absent = true};
	return (struct stamp){st.st_dev, st.st_ino, (uint64_t)st.st_size, st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
	                      .progress = S_ISREG(st.st_mode) ? input_progress(x->path.p, x->own->root) : 0, .is_file = S_ISREG(st.st_mode)};
}

static struct str library_names_text(const struct library *l, const struct library_names *names, const struct library_entry *x)
{
	return names == &l->paths ? x->path : x->key;
}

/* The slot of the entry that has this text, or the free one where it belongs. */
static struct library_entry **library_names_slot(const struct library *l, const struct library_names *names, struct str text)
{
	uint32_t at = hash_bytes32(text.p, text.n) & (names->n_slots - 1);
	while (names->slot[at] && !str_eq(library_names_text(l, names, names->slot[at]), text))
		at = (at + 1) & (names->n_slots - 1);
	return &names->slot[at];
}

/* NULL = none has it. */
static struct library_entry *entry_named(const struct library *l, const struct library_names *names, struct str text)
{
	return names->n_slots && text.n ? *library_names_slot(l, names, text) : NULL;
}

/* Room for one more. Where there is no memory for it, everything is as it was. */
static void library_names_reserve(const struct library *l, struct library_names *names)
{
	enum { FIRST = 64 };
	struct library_names more = {.n_slots = names->n_slots ? names->n_slots * 2 : FIRST};
	if (2 * (l->n + 1) <= names->n_slots)
		return;
	more.slot = NEW_ARRAY(more.n_slots, struct library_entry *);
	struct library_entry **old = names->slot;
	*names = more;
	for (unsigned i = 0; i < l->n; i++)
		*library_names_slot(l, names, library_names_text(l, names, l->entry[i])) = l->entry[i];
	mem_free(old);
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
	for (unsigned k = 1; k == 1 || entry_named(l, &l->keys, buf_view(&b)); k++) {
		buf_clear(&b);
		buf_printf(&b, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(f->run), STR_ARG(f->worker), STR_ARG(f->span));
		if (k > 1)
			buf_printf(&b, "~%u", k);
	}
	struct str key = arena_str(&l->arena, buf_view(&b));
	buf_release(&b);
	return key;
}

static int serve_library_look_by_place(const struct library_entry *a, const struct library_entry *b)
{
	return str_cmp_natural(a->run, b->run) ?: str_cmp_natural(a->worker, b->worker) ?: str_cmp_natural(a->span, b->span) ?: str_cmp(a->key, b->key);
}

/* Where *x belongs among the entries. */
static unsigned library_look_place(const struct library *l, const struct library_entry *x)
{
	return FIRST_WHERE(i, 0U, l->n, serve_library_look_by_place(l->entry[i], x) > 0);
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
	x->own->root = arena_str(&l->arena, f->root);
	x->own->was_file = f->found;
	x->own->remote = f->remote;
	pthread_mutex_init(&x->ask, NULL);
	pthread_mutex_init(&x->own->make, NULL);
	MEM_GROW(l->entry, l->cap, l->n + 1);
	library_names_reserve(l, &l->paths);
	library_names_reserve(l, &l->keys);
	unsigned i = library_look_place(l, x);
	memmove(l->entry + i + 1, l->entry + i, (l->n - i) * sizeof *l->entry);
	l->entry[i] = x;
	l->n++;
	*library_names_slot(l, &l->paths, x->path) = x;
	*library_names_slot(l, &l->keys, x->key) = x;
	l->version++;
	return x;
}

void library_note_content(struct library *l, struct library_entry *x, struct stamp now)
{
	x->own->was_file |= now.is_file;
	if (stamp_eq(x->own->last, now))
		return;
	x->own->last = now;
	x->bytes = now.size;
	x->changed_ns = x->own->remote ? 0 : now.changed_ns;
	x->content++;
	l->version++;
}

/* The file of *x has been seen as `now`. Locked. */
static void note_stamp(struct library *l, struct library_entry *x, struct stamp now)
{
	bool read = stamp_eq(x->own->read, now);
	library_note_content(l, x, now);
	if (x->state == ENTRY_GONE || (x->state == ENTRY_FAILED && !read)) {
		x->state = ENTRY_FOUND;
		l->version++;
	}
	if (x->state != ENTRY_READY || read)
		return;
	if (x->own->holds)
		x->own->stale = true;
	else
		library_let_go(l, x);
}

static void note_absence(struct library *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		struct library_entry *x = l->entry[i];
		bool seen = x->own->seen;
		x->own->seen = false;
		l->version += x->absent == seen;
		x->absent = !seen;
		/* What is in memory can still be shown. */
		if (seen || x->state == ENTRY_GONE || x->state == ENTRY_READY || x->state == ENTRY_LOADING || x->state == ENTRY_QUEUED)
			continue;
		x->state = ENTRY_GONE;
		l->version++;
	}
}

static bool same_texts(const struct str *a, unsigned n, const struct str *b, unsigned m)
{
	unsigned same = 0;
	while (same < n && same < m && str_eq(a[same], b[same]))
		same++;
	return same == n && same == m;
}

static void serve_library_look_note_left_out(struct library *l, const struct trace_list *found)
{
	if (same_texts(l->left_out, l->n_left_out, found->left_out, found->n_left_out))
		return;
	mem_free(l->left_out);
	arena_release(&l->left_arena);
	l->left_out = NULL;
	l->n_left_out = 0;
	l->left_out = NEW_ARRAY(found->n_left_out, struct str);
	for (unsigned i = 0; i < found->n_left_out; i++)
		l->left_out[i] = arena_str(&l->left_arena, found->left_out[i]);
	l->n_left_out = found->n_left_out;
	l->version++;
}

struct looking {
	struct library *l;
	struct trace_list found;
	const struct trace_file *file;
	bool remote;                  /* addresses are looked at, too */
	struct library_entry *added;
	int rc;
	struct err *e;
};

static void find_files(void *looking)
{
	struct looking *k = looking;
	for (unsigned i = 0; i < k->l->n_paths; i++)
		if ((k->remote || !remote_is(k->l->path[i])) && discover_add(&k->found, k->l->path[i], k->e) < 0)
			k->rc = -1;
	discover_finish(&k->found);
}

static void add_found(void *looking)
{
	struct looking *k = looking;
	k->added = add_entry(k->l, k->file);
}

static void serve_library_look_note_links(void *looking)
{
	struct looking *k = looking;
	serve_library_look_note_left_out(k->l, &k->found);
}

/* One for which there is no memory is left for the next look. Locked. */
static void note_files(struct looking *k)
{
	for (unsigned i = 0; i < k->found.n; i++) {
		struct library_entry *x = entry_named(k->l, &k->l->paths, k->found.v[i].path);
		k->file = &k->found.v[i];
		if (!x && mem_try(NULL, add_found, k) == 0)
			x = k->added;
		if (!x) {
			k->rc = err_nomem(k->e);
			continue;
		}
		x->own->seen = true;
		note_stamp(k->l, x, stamp_of(x));
	}
	for (unsigned i = 0; i < k->l->n && !k->remote; i++)
		k->l->entry[i]->own->seen |= k->l->entry[i]->own->remote;
	note_absence(k->l);
	if (mem_try(NULL, serve_library_look_note_links, k) < 0)
		k->rc = err_nomem(k->e);
}

int library_look_again(struct library *l, struct err *e)
{
	struct looking k = {.l = l, .found = {.stays = !l->follow_links, .keeps_empty = true}, .e = e};
	struct mem_pool blocks = {0};
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&l->lock);
	k.remote = !l->looked_at_s || now.tv_sec - l->looked_at_s >= LOOK_REMOTE_SECONDS;
	if (k.remote)
		l->looked_at_s = now.tv_sec;
	pthread_mutex_unlock(&l->lock);
	if (mem_try(&blocks, find_files, &k) < 0) {
		mem_pool_release(&blocks);
		return err_nomem(e);
	}
	pthread_mutex_lock(&l->lock);
	note_files(&k);
	library_unlock(l);
	discover_release(&k.found);
	mem_pool_drop(&blocks);
	return k.rc;
}

void library_renew(struct library *l, struct library_entry *x)
{
	struct stamp now = stamp_of(x);
	pthread_mutex_lock(&l->lock);
	note_stamp(l, x, now);
	if (x->state == ENTRY_LOADING && !stamp_same_file(x->own->loading, now))
		x->own->again = true;
	library_unlock(l);
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

void *library_watch(void *context)
{
	struct library *l = context;
	pthread_mutex_lock(&l->lock);
	while (wait_seconds(l, LOOK_SECONDS)) {
		struct err e;
		pthread_mutex_unlock(&l->lock);
		library_look_again(l, &e);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

void library_look(struct library *l, void (*see)(void *context, const struct library_entry *x), void *context)
{
	struct mem_undo undo;
	pthread_mutex_lock(&l->lock);
	mem_undo_begin(&undo, library_undo_lock, &l->lock);
	for (unsigned i = 0; i < l->n; i++)
		see(context, l->entry[i]);
	mem_undo_end(&undo);
	pthread_mutex_unlock(&l->lock);
}

void library_left_out(struct library *l, void (*see)(void *context, struct str path), void *context)
{
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n_left_out; i++)
		see(context, l->left_out[i]);
	pthread_mutex_unlock(&l->lock);
}

struct library_entry *library_find(struct library *l, struct str key)
{
	pthread_mutex_lock(&l->lock);
	struct library_entry *x = !key.n && l->n == 1 ? l->entry[0] : entry_named(l, &l->keys, key);
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
		if (!x->absent && str_eq(x->run, run) && !(unread && (x->generation || (x->state == ENTRY_FAILED && !x->own->no_memory))))
			found = x;
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

bool library_has_run(struct library *l, struct str run)
{
	return find_in_run(l, run, false) != NULL;
}

uint64_t library_run_content(struct library *l, struct str run)
{
	uint64_t all = 0;
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n; i++) {
		const struct library_entry *x = l->entry[i];
		const uint64_t one[] = {all, i, x->content};
		if (!x->absent && str_eq(x->run, run))
			all = hash_bytes(one, sizeof one);
	}
	pthread_mutex_unlock(&l->lock);
	return all;
}

struct library_entry *library_unread(struct library *l, struct str run)
{
	return find_in_run(l, run, true);
}
