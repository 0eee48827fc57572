#include "input/discover.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/search.h"
#include "input/input.h"
#include "io/remote/remote.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directories nested deeper than this are left out and counted. */
enum { MAX_DEPTH = 64 };

struct discover_walk {
	struct trace_list *list;
	struct str root; /* real path that is not to be left; n == 0: links lead anywhere */
	struct seen {
		dev_t dev;
		ino_t ino;
	} *seen; /* directories entered: a link back to one ends there */
	unsigned n_seen, cap_seen;
	int failed;                /* errno of the first failure below the directory; 0 = none */
	const char *failed_at;
	const struct input *knows; /* whose is `known`, of the directory that is being walked */
	void *known;
};

static bool cut_suffix(struct str *s, struct str suffix)
{
	if (!str_ends(*s, suffix))
		return false;
	s->n -= suffix.n;
	return true;
}

bool discover_parse_name(struct str name, struct str *worker, struct str *stamp)
{
	cut_suffix(&name, STR(".gz"));
	if (!cut_suffix(&name, STR(".pt.trace.json")))
		return false;
	size_t digits = 0;
	while (digits < name.n && isdigit((unsigned char)name.p[name.n - 1 - digits]))
		digits++;
	*stamp = STR("");
	if (digits && digits < name.n && name.p[name.n - 1 - digits] == '.') {
		*stamp = (struct str){name.p + name.n - digits, digits};
		name.n -= digits + 1;
	}
	*worker = name;
	return true;
}

static struct str base_name(struct str path)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	for (size_t i = path.n; i-- > 0;)
		if (path.p[i] == '/' && i + 1 < path.n)
			return (struct str){path.p + i + 1, path.n - i - 1};
	return path;
}

/* Files whose content decides whether they are traces. */
static const char *const candidates[] = {".json", ".opscope", ".sqlite", ".sql", ".nvvp", ".dict", ".seg", ".pickle", ".pkl"};
enum { CANDIDATES = sizeof candidates / sizeof candidates[0] };

void discover_put_names(struct buf *out)
{
	buf_cstr(out, "*.json.gz");
	for (int i = 0; i < CANDIDATES; i++)
		buf_printf(out, ", *%s", candidates[i]);
}

/* w == NULL: it was named. */
static void add_file(struct trace_list *l, const struct discover_walk *w, struct str run, struct str name, struct str path)
{
	struct str worker = name, stamp = STR("");
	if (!discover_parse_name(name, &worker, &stamp)) {
		cut_suffix(&worker, STR(".gz"));
		for (int i = 0; i < CANDIDATES; i++)
			if (cut_suffix(&worker, str_from(candidates[i])))
				break;
	}
	MEM_PUSH(l->v, l->n, l->cap, (struct trace_file){
		.run = arena_str(&l->arena, run),
		.worker = arena_str(&l->arena, worker),
		.span = STR("default"),
		.path = arena_str(&l->arena, path),
		.stamp = arena_str(&l->arena, stamp),
		.root = w ? w->root : STR(""),
		.found = w != NULL,
	});
}

static void discover_forget(struct discover_walk *w)
{
	if (w->knows && w->knows->forget)
		w->knows->forget(w->known);
	w->knows = NULL;
	w->known = NULL;
}

/* Of a trace of several files only the first counts. A link out is never one of them: it is left out by its own name. */
static bool is_whole(struct discover_walk *w, const struct input *i, const char *path, bool out)
{
	if (!i->is_whole || out)
		return true;
	if (i != w->knows)
		discover_forget(w);
	w->knows = i;
	return i->is_whole(path, w->root, &w->known);
}

static bool discover_is_candidate(struct str name)
{
	/* Flight recorders end the name of a dump in the rank's number, and have no suffix. */
	bool is = str_ends(name, STR(".json.gz")) || (name.n && is_digit(name.p[name.n - 1]) && !memchr(name.p, '.', name.n));
	for (int i = 0; i < CANDIDATES && !is; i++)
		is = str_ends(name, str_from(candidates[i]));
	return is;
}

bool discover_is_empty(const char *path)
{
	enum { PACKED_MOST = 1024, MAGIC = 2, LENGTH = 4 }; /* gzip: how long the contents are stands at its end */
	char bytes[PACKED_MOST];
	struct stat st;
	struct err e;
	int fd = file_open_regular(path, 0, &st, &e); /* a pipe that took its place would hold up whoever opens it otherwise */
	if (fd < 0)
		return false;
	ssize_t n = st.st_size > 0 && st.st_size <= PACKED_MOST ? read(fd, bytes, sizeof bytes) : 0;
	close(fd);
	return !st.st_size || (n > MAGIC + LENGTH && !memcmp(bytes, "\x1f\x8b", MAGIC) && !memcmp(bytes + n - LENGTH, "\0\0\0\0", LENGTH));
}

void discover_drop_empty(struct trace_list *l, unsigned i)
{
	MEM_PUSH(l->empty, l->n_empty, l->cap_empty, l->v[i].path);
	memmove(&l->v[i], &l->v[i + 1], (--l->n - i) * sizeof *l->v);
}

/* Other JSON lies beside traces, so a name that says nothing is not enough. */
static bool is_trace(struct discover_walk *w, struct str name, const char *path, bool out)
{
	struct str worker, stamp;
	if (discover_parse_name(name, &worker, &stamp))
		return true;
	struct err e = {0};
	const struct input *i = discover_is_candidate(name) ? input_recognise(path, &e) : NULL;
	if (e.code)
		return access(path, R_OK) == 0 || !discover_is_absent(errno); /* reading it says why it could not be looked into */
	return i && is_whole(w, i, path, out);
}

bool discover_is_absent(int why)
{
	return why == ENOENT || why == ENOTDIR || why == ELOOP || why == EACCES || why == EPERM || why == ENAMETOOLONG;
}

static void remember_failure(struct discover_walk *w, const char *path, int why)
{
	if (w->failed || discover_is_absent(why))
		return;
	w->failed = why;
	w->failed_at = path;
}

static bool enter_once(struct discover_walk *w, const struct stat *st)
{
	for (unsigned i = 0; i < w->n_seen; i++)
		if (w->seen[i].dev == st->st_dev && w->seen[i].ino == st->st_ino)
			return false;
	MEM_PUSH(w->seen, w->n_seen, w->cap_seen, (struct seen){st->st_dev, st->st_ino});
	return true;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int discover_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* realpath, to be given to free; NULL and errno. */
static char *real_path(const char *path)
{
	char *real = realpath(path, NULL);
	if (!real && errno == ENOMEM)
		mem_fail(0);
	return real;
}

bool discover_lies_in(const char *path, struct str root)
{
	char *real = real_path(path);
	struct str rest = str_from(real);
	bool lies = real && str_starts(rest, root);
	rest = lies ? (struct str){rest.p + root.n, rest.n - root.n} : rest;
	lies = lies && (!rest.n || *rest.p == '/' || root.p[root.n - 1] == '/');
	free(real);
	return lies;
}

/* Nothing but a link leads out of the directory in which it stands. */
bool discover_leads_out(const char *path, struct str root)
{
	struct stat st;
	return root.n && lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && !discover_lies_in(path, root);
}

static void discover_leave_out(struct trace_list *l, struct str path)
{
	MEM_PUSH(l->left_out, l->n_left_out, l->cap_left_out, path);
}

/* What is in a folder, by scandir's malloc. */
struct discover_names {
	struct dirent **entry;
	int n;
	struct mem_undo undo;
};

static void free_names(void *list)
{
	struct discover_names *l = list;
	mem_undo_end(&l->undo);
	for (int i = 0; i < l->n; i++)
		free(l->entry[i]);
	free(l->entry);
}

static int list_names(struct discover_names *l, const char *path)
{
	l->n = scandir(path, &l->entry, visible, discover_by_name);
	if (l->n < 0 && errno == ENOMEM)
		mem_fail(0);
	if (l->n < 0)
		return -1;
	mem_undo_begin(&l->undo, free_names, l);
	return 0;
}

static bool named_rank(struct str worker, int64_t *rank);

/* What is named like a rank's trace and is none: a job says so, if it has no other trace of this rank. */
static void discover_keep_odd(struct trace_list *l, struct str name, struct str path)
{
	int64_t rank;
	if (discover_is_candidate(name) && named_rank(name, &rank))
		MEM_PUSH(l->odd, l->n_odd, l->cap_odd, ((struct trace_odd){path, rank}));
}

static int walk_directory(struct discover_walk *w, struct str path, struct str relative, struct str run, unsigned depth);

static void walk_entry(struct discover_walk *w, struct str dir, struct str relative, struct str run, const char *name, unsigned depth)
{
	struct arena *a = &w->list->arena;
	bool slash = dir.n && dir.p[dir.n - 1] == '/';
	struct str path = arena_printf(a, STR_FMT "%s%s", STR_ARG(dir), slash ? "" : "/", name);
	struct stat st;
	if (stat(path.p, &st) < 0) {
		/* A broken link is left out. A name that may be a trace is kept: reading it will say why it cannot be read. */
		if (!discover_is_absent(errno) && discover_is_candidate(str_from(name))) {
			add_file(w->list, w, run, str_from(name), path);
		} else {
			remember_failure(w, path.p, errno);
			discover_keep_odd(w->list, str_from(name), path);
		}
		return;
	}
	bool out = discover_leads_out(path.p, w->root);
	bool empty = S_ISREG(st.st_mode) && !out && discover_is_candidate(str_from(name)) && discover_is_empty(path.p);
	if (S_ISREG(st.st_mode) && ((empty && w->list->keeps_empty) || is_trace(w, str_from(name), path.p, out))) {
		if (out)
			discover_leave_out(w->list, path);
		else
			add_file(w->list, w, run, str_from(name), path);
	} else if (empty) {
		MEM_PUSH(w->list->empty, w->list->n_empty, w->list->cap_empty, path);
	} else if (S_ISREG(st.st_mode) && !out) {
		discover_keep_odd(w->list, str_from(name), path);
	} else if (S_ISDIR(st.st_mode) && out) {
		discover_leave_out(w->list, path);
	} else if (S_ISDIR(st.st_mode) && strcmp(name, DISCOVER_CAPTURES) != 0 && strcmp(name, DISCOVER_PROVENANCE) != 0 && enter_once(w, &st)) {
		struct str below = arena_printf(a, STR_FMT "%s%s", STR_ARG(relative), relative.n ? "/" : "", name);
		bool deep = depth >= MAX_DEPTH;
		if (deep || walk_directory(w, path, below, below, depth + 1) < 0) {
			remember_failure(w, path.p, deep ? ENOENT : errno);
			w->list->unreadable++;
		}
	}
}

static int walk_directory(struct discover_walk *w, struct str path, struct str relative, struct str run, unsigned depth)
{
	struct discover_names names;
	struct discover_walk outer = *w;
	if (list_names(&names, path.p) < 0)
		return -1;
	w->knows = NULL;
	w->known = NULL;
	for (int i = 0; i < names.n; i++)
		walk_entry(w, path, relative, run, names.entry[i]->d_name, depth);
	free_names(&names);
	discover_forget(w);
	w->knows = outer.knows;
	w->known = outer.known;
	return 0;
}

static void discover_free_path(void *real)
{
	free(real);
}

/* Keeps `name`, which lies in `real`, and frees `real`, which is the C library's. */
static struct str discover_keep_name(struct trace_list *l, char *real, struct str name)
{
	struct mem_undo undo = {0};
	mem_undo_begin(&undo, discover_free_path, real);
	name = arena_str(&l->arena, name);
	mem_undo_end(&undo);
	free(real);
	return name;
}

/* "." and ".." have no name of their own. */
static struct str directory_name(struct trace_list *l, const char *path)
{
	char *real = real_path(path);
	struct str name = base_name(str_from(real ? real : path));
	return real ? discover_keep_name(l, real, name) : arena_str(&l->arena, name);
}

/* One address, whose files are being listed. */
struct discover_remote {
	struct discover_walk walk;
	struct str folder;         /* its own name: the run of the files right in it */
	struct str segment;        /* the first file of a capture; n == 0: there is none */
};

static bool is_hidden(struct str below, unsigned *depth)
{
	struct str part;
	bool hidden = false;
	for (*depth = 0; str_split(&below, '/', &part); ++*depth)
		hidden |= (part.n && part.p[0] == '.') || str_eq(part, STR(DISCOVER_CAPTURES));
	return hidden;
}

/* Files made by opscope are asked much by their paths: their copy is listed. */
static struct str discover_remote_path(struct trace_list *l, const char *name)
{
	struct err unread;
	struct source *s = str_ends(str_from(name), STR(".opscope")) ? source_open_regular(name, &unread) : NULL;
	struct str path = arena_str(&l->arena, str_from(s ? source_path(s) : name));
	if (s)
		source_close(s);
	return path;
}

static void discover_remote_file(void *context, const char *name, struct str below, uint64_t bytes)
{
	struct discover_remote *r = context;
	struct trace_list *l = r->walk.list;
	const char *slash = memrchr(below.p, '/', below.n);
	struct str run = {below.p, slash ? (size_t)(slash - below.p) : 0}, file = slash ? (struct str){slash + 1, below.n - run.n - 1} : below;
	struct str worker, stamp;
	struct err e = {0};
	unsigned depth;
	if (is_hidden(below, &depth))
		return;
	if (depth > MAX_DEPTH) {
		l->unreadable++;
		return;
	}
	const struct str path = arena_str(&l->arena, str_from(name));
	if (str_ends(file, STR(".seg")) && !r->segment.n)
		r->segment = path;
	const bool named = discover_parse_name(file, &worker, &stamp);
	if (str_ends(file, STR(".seg")) || (!named && !discover_is_candidate(file)))
		return;
	if (!bytes && !l->keeps_empty)
		MEM_PUSH(l->empty, l->n_empty, l->cap_empty, path);
	else if (named || !bytes || input_recognise(name, &e) || e.code) /* of one that cannot be looked into, reading it says why */
		add_file(l, &r->walk, run.n ? run : r->folder, file, discover_remote_path(l, name));
	else
		discover_keep_odd(l, file, path);
}

static int discover_add_remote(struct trace_list *l, const char *path, struct err *e)
{
	const char *name = remote_name(path);
	struct discover_remote r = {.walk = {.list = l}, .folder = base_name(str_from(name))};
	const unsigned before = l->n;
	int rc = remote_is_folder(name, e);
	if (rc == 0)
		add_file(l, NULL, STR(""), base_name(str_from(name)), discover_remote_path(l, name));
	else if (rc > 0)
		rc = remote_list(name, discover_remote_file, &r, e);
	for (unsigned i = before; i < l->n; i++)
		l->v[i].remote = true;
	if (rc == 0 && r.segment.n)
		rc = err_set(e, ERR_DATA, "%s: a capture of opscope record is read from a folder of this machine: copy it, or import it where it was made", r.segment.p);
	return rc;
}

int discover_add(struct trace_list *l, const char *path, struct err *e)
{
	struct stat st;
	if (remote_is(path))
		return discover_add_remote(l, path, e);
	bool from_stdin = strcmp(path, "-") == 0;
	if (!from_stdin && stat(path, &st) < 0)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (from_stdin || !S_ISDIR(st.st_mode)) {
		add_file(l, NULL, STR(""), base_name(str_from(path)), str_from(path));
		return 0;
	}
	struct discover_walk w = {.list = l};
	char *real = l->stays ? real_path(path) : NULL;
	if (l->stays && !real)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (real)
		w.root = discover_keep_name(l, real, str_from(real));
	enter_once(&w, &st);
	int rc = walk_directory(&w, arena_str(&l->arena, str_from(path)), STR(""), directory_name(l, path), 0);
	int why = errno;
	mem_free(w.seen);
	if (rc < 0)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(why));
	return w.failed ? err_set(e, ERR_IO, "%s: %s", w.failed_at, strerror(w.failed)) : 0;
}

static int discover_compare(const void *x, const void *y)
{
	const struct trace_file *a = x, *b = y;
	return str_cmp(a->run, b->run) ?: str_cmp_natural(a->worker, b->worker) ?: str_cmp(a->stamp, b->stamp) ?: str_cmp(a->path, b->path);
}

void discover_finish(struct trace_list *l)
{
	if (!l->n)
		return;
	qsort(l->v, l->n, sizeof *l->v, discover_compare);
	unsigned number = 0;
	for (unsigned i = 0; i < l->n; i++) {
		struct trace_file *f = &l->v[i];
		if (i == 0 || !str_eq(f->run, f[-1].run) || !str_eq(f->worker, f[-1].worker))
			number = 0;
		if (f->stamp.n)
			f->span = arena_printf(&l->arena, "%u", ++number);
	}
}

static bool discover_matches(struct str s, const char *wanted)
{
	return !wanted || str_eqc(s, wanted);
}

void discover_select(struct trace_list *l, const char *run, const char *worker, const char *span)
{
	unsigned n = 0;
	for (unsigned i = 0; i < l->n; i++) {
		const struct trace_file *f = &l->v[i];
		if (discover_matches(f->run, run) && discover_matches(f->worker, worker) && discover_matches(f->span, span))
			l->v[n++] = *f;
	}
	l->n = n;
}

/* The number behind the last "rank" of the name. */
static bool named_rank(struct str worker, int64_t *rank)
{
	ptrdiff_t after = -1;
	for (size_t i = 0; i + 4 <= worker.n; i++)
		if (strncasecmp(worker.p + i, "rank", 4) == 0)
			after = (ptrdiff_t)i + 4;
	if (after < 0)
		return false;
	struct str rest = {worker.p + after, worker.n - (size_t)after};
	while (rest.n && strchr("-_:= .", *rest.p))
		rest.p++, rest.n--;
	size_t digits = 0;
	while (digits < rest.n && isdigit((unsigned char)rest.p[digits]))
		digits++;
	return digits && str_to_i64((struct str){rest.p, digits}, rank);
}

/* More digits than a rank has: a time, or the number of a process with one behind it. */
enum { DISCOVER_RANK_DIGITS = 7 };

bool discover_rank_in_name(struct str worker, int64_t *rank)
{
	if (named_rank(worker, rank))
		return true;
	size_t end = worker.n;
	while (end && !isdigit((unsigned char)worker.p[end - 1]))
		end--;
	size_t start = end;
	while (start && isdigit((unsigned char)worker.p[start - 1]))
		start--;
	return end > start && end - start <= DISCOVER_RANK_DIGITS && str_to_i64((struct str){worker.p + start, end - start}, rank);
}

bool discover_rank_in_head(struct str head, int64_t *rank)
{
	ptrdiff_t at = str_find(head, STR("\"distributedInfo\""));
	if (at < 0)
		return false;
	struct str rest = {head.p + at, head.n - (size_t)at};
	at = str_find(rest, STR("\"rank\""));
	if (at < 0)
		return false;
	size_t i = (size_t)at + STR("\"rank\"").n;
	while (i < rest.n && (isspace((unsigned char)rest.p[i]) || rest.p[i] == ':'))
		i++;
	size_t digits = 0;
	while (i + digits < rest.n && isdigit((unsigned char)rest.p[i + digits]))
		digits++;
	return digits && str_to_i64((struct str){rest.p + i, digits}, rank);
}

/* What the contents say. *readable: whether the file could be looked into; *has_own: its format tells ranks, so that a number in the name is none. */
static bool stated_rank(const struct trace_file *f, bool *readable, bool *has_own, int64_t *rank)
{
	struct err e;
	const struct input *i = input_recognise(f->path.p, &e);
	*readable = !e.code;
	*has_own = *readable && i && i->rank;
	if (*has_own)
		return i->rank(f->path.p, rank);
	struct source *s = *readable ? source_open_regular(f->path.p, NULL) : NULL;
	bool found = s && discover_rank_in_head(source_peek(s), rank);
	if (s)
		source_close(s);
	return found;
}

static bool find_rank(const struct trace_file *f, bool *readable, int64_t *rank)
{
	bool has_own;
	if (stated_rank(f, readable, &has_own, rank))
		return true;
	return has_own ? named_rank(f->worker, rank) : discover_rank_in_name(f->worker, rank);
}

bool discover_rank(const struct trace_file *f, int64_t *rank)
{
	bool readable;
	return find_rank(f, &readable, rank);
}

bool discover_rank_for_certain(const struct trace_file *f, int64_t *rank)
{
	bool readable, has_own;
	return stated_rank(f, &readable, &has_own, rank) || named_rank(f->worker, rank);
}

bool discover_is_among(int64_t rank, const struct rank_range *v, unsigned n)
{
	return ANY_WHERE(i, 0, n, rank >= v[i].first && rank <= v[i].last);
}

static bool may_be_of_ranks(const struct trace_file *f, const struct rank_range *v, unsigned n)
{
	bool readable;
	int64_t own;
	if (!find_rank(f, &readable, &own))
		return !readable;
	return discover_is_among(own, v, n);
}

void discover_select_ranks(struct trace_list *l, const struct rank_range *v, unsigned n)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < l->n; i++)
		if (may_be_of_ranks(&l->v[i], v, n))
			l->v[kept++] = l->v[i];
	l->n = kept;
}

void discover_select_rank(struct trace_list *l, int64_t rank)
{
	discover_select_ranks(l, &(struct rank_range){rank, rank}, 1);
}

static bool discover_read_range(struct str text, struct rank_range *out)
{
	ptrdiff_t dots = str_find(text, STR(".."));
	if (dots < 0)
		return str_to_i64(text, &out->first) && (out->last = out->first) >= 0;
	struct str first = {text.p, (size_t)dots}, last = {text.p + dots + 2, text.n - (size_t)dots - 2};
	return str_to_i64(first, &out->first) && str_to_i64(last, &out->last) && out->first >= 0 && out->last >= out->first;
}

struct rank_range *discover_read_ranks(struct str text, struct arena *a, unsigned *n)
{
	size_t most = 1;
	for (size_t i = 0; i < text.n; i++)
		most += text.p[i] == ',';
	struct rank_range *v = ARENA_ARRAY(a, most, struct rank_range);
	struct str rest = text, one;
	for (*n = 0; str_split(&rest, ',', &one); ++*n)
		if (!discover_read_range(one, &v[*n]))
			return NULL;
	return *n ? v : NULL;
}

void discover_release(struct trace_list *l)
{
	mem_free(l->v);
	mem_free(l->left_out);
	mem_free(l->empty);
	mem_free(l->odd);
	arena_release(&l->arena);
	*l = (struct trace_list){0};
}
