/* Several processes make a run: a segment each, in one directory. Those of one rank of a job, or of no rank, are read together, as what a profiler
 * of the whole machine would have seen of them; each rank is a trace of its own, as it is with other profilers. */
#include "input/capture/capture.h"

#include "base/folder.h"
#include "base/hash.h"
#include "base/sort.h"
#include "input/discover.h"

#include <stdlib.h>

struct segment {
	char *path;
	int64_t start_ns;
	bool leads;
};

struct capture_run_list {
	struct segment *v;
	unsigned n, cap, absent;
	int error; /* errno of listing the directory; 0 = none */
};

/* "<host>-<pid>-<start ns>.seg": the last number. */
static bool start_in_name(struct str name, struct str suffix, int64_t *start)
{
	size_t end = name.n, first;
	if (!str_ends(name, suffix))
		return false;
	end -= suffix.n;
	for (first = end; first && name.p[first - 1] >= '0' && name.p[first - 1] <= '9'; first--)
		;
	return first && name.p[first - 1] == '-' && str_to_i64((struct str){name.p + first, end - first}, start);
}

static int capture_run_by_start(const void *x, const void *y)
{
	const struct segment *a = x, *b = y;
	return COMPARE(a->start_ns, b->start_ns) ?: strcmp(a->path, b->path);
}

static size_t directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) + 1 : 0;
}

static char *capture_run_join(const char *dir, size_t n, const char *name)
{
	size_t more = strlen(name) + 1;
	char *p = mem_alloc(n + more, 1);
	memcpy(p, dir, n);
	memcpy(p + n, name, more);
	return p;
}

/* By what their names say: opening each of thousands for each of thousands would take long. */
static void list_directory(struct capture_run_list *l, const char *path, struct str root)
{
	size_t n = directory_length(path);
	char *dir = n ? capture_run_join(path, n, "") : capture_run_join(".", 1, "");
	struct folder f;
	folder_open(&f, dir);
	mem_free(dir);
	for (const char *name; (name = folder_next(&f));) {
		int64_t start;
		l->absent += start_in_name(str_from(name), STR(".none"), &start);
		if (!start_in_name(str_from(name), STR(".seg"), &start))
			continue;
		char *segment = capture_run_join(path, n, name);
		if (discover_leads_out(segment, root)) {
			mem_free(segment);
			continue;
		}
		MEM_PUSH(l->v, l->n, l->cap, (struct segment){segment, start, false});
	}
	l->error = f.error && !discover_is_absent(f.error) ? f.error : 0;
	folder_close(&f);
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, capture_run_by_start);
}

static void release_list(struct capture_run_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		mem_free(l->v[i].path);
	mem_free(l->v);
}

enum header { NO_HEADER, HEADER, READ_FAILED };

static enum header look_into(const char *path, struct wire_header *h, struct err *e)
{
	struct capture_file f;
	if (capture_file_open(&f, path, false, e) < 0)
		return f.error ? READ_FAILED : NO_HEADER;
	*h = f.h;
	capture_file_close(&f);
	return HEADER;
}

static bool header_of(const char *path, struct wire_header *h, struct err *e)
{
	return look_into(path, h, e) == HEADER;
}

/* HEADER if it is of that rank. */
static enum header look_for_rank(const char *path, int64_t rank, struct err *e)
{
	struct wire_header h;
	enum header is = look_into(path, &h, e);
	return is == HEADER && (h.rank < 0 ? -1 : h.rank) != rank ? NO_HEADER : is;
}

static void capture_run_add(struct capture_run *r, const char *path)
{
	MEM_PUSH(r->path, r->n, r->cap, capture_run_join(path, 0, path));
}

/* The segments of the rank among those of the directory, and when the first of all began. -1 and *e when one cannot be read. */
static int find_segments(struct capture_run *r, const struct capture_run_list *l, const char *path, struct err *e)
{
	struct wire_header first;
	enum header is = NO_HEADER;
	if (l->error)
		return err_set(e, ERR_IO, "%s: the folder that it lies in cannot be read: %s", path, strerror(l->error));
	for (unsigned i = 0; i < l->n && is == NO_HEADER; i++)
		is = look_into(l->v[i].path, &first, e);
	if (is == HEADER)
		r->base_ns = first.start_ns < r->base_ns ? first.start_ns : r->base_ns;
	for (unsigned i = 0; i < l->n && is != READ_FAILED; i++) {
		is = strcmp(l->v[i].path, path) == 0 ? HEADER : look_for_rank(l->v[i].path, r->rank, e);
		if (is != HEADER)
			continue;
		capture_run_add(r, l->v[i].path);
		if (strcmp(r->path[0], path) != 0)
			break; /* another one leads */
	}
	return is == READ_FAILED ? -1 : 0;
}

int capture_run_find(struct capture_run *r, const char *path, struct str root, struct err *e)
{
	struct capture_run_list l = {0};
	struct wire_header h;
	*r = (struct capture_run){0};
	if (!header_of(path, &h, e))
		return -1;
	r->rank = h.rank < 0 ? -1 : h.rank;
	r->world = h.world < 0 ? -1 : h.world;
	r->base_ns = h.start_ns;
	list_directory(&l, path, root);
	if (find_segments(r, &l, path, e) < 0) {
		capture_run_release(r);
		release_list(&l);
		return -1;
	}
	if (!r->n || strcmp(r->path[0], path) != 0) { /* it stands alone, also by another name or a link */
		capture_run_release(r);
		r->path = NULL;
		r->n = r->cap = 0;
		capture_run_add(r, path);
	} else {
		r->absent = l.absent;
	}
	release_list(&l);
	return 0;
}

void capture_run_release(struct capture_run *r)
{
	for (unsigned i = 0; i < r->n; i++)
		mem_free(r->path[i]);
	mem_free(r->path);
}

/* The segments of a directory, those first that begin first. One that cannot be read leads: reading it says why. */
static struct capture_run_list *capture_run_look(const char *path, struct str root)
{
	struct capture_run_list *l = mem_alloc(1, sizeof *l);
	struct idmap seen;
	struct wire_header h;
	*l = (struct capture_run_list){0};
	list_directory(l, path, root);
	idmap_init(&seen, 1, 0, 64);
	for (unsigned i = 0; i < l->n; i++) {
		enum header is = look_into(l->v[i].path, &h, NULL);
		int64_t rank = is == HEADER && h.rank >= 0 ? h.rank : -1;
		l->v[i].leads = is == READ_FAILED || (is == HEADER && idmap_get(&seen, rank) == IDMAP_NONE);
		if (is == HEADER && l->v[i].leads)
			idmap_put(&seen, rank, 1);
	}
	idmap_release(&seen);
	return l;
}

bool capture_run_leads(const char *path, struct str root, void **known)
{
	struct segment key = {(char *)(uintptr_t)path, 0, false};
	if (!start_in_name(str_from(path), STR(".seg"), &key.start_ns))
		return true; /* stands alone */
	if (!*known)
		*known = capture_run_look(path, root);
	const struct capture_run_list *l = *known;
	const struct segment *s = l->n ? bsearch(&key, l->v, l->n, sizeof *l->v, capture_run_by_start) : NULL;
	return l->error || (s && s->leads);
}

void capture_run_forget(void *known)
{
	if (known)
		release_list(known);
	mem_free(known);
}

bool capture_run_lives(const char *path)
{
	struct wire_header h;
	return header_of(path, &h, NULL) && capture_file_lives(&h);
}

uint64_t capture_run_progress(const char *path, struct str root)
{
	struct capture_run r;
	struct wire_header h;
	uint64_t sum = 0;
	if (capture_run_find(&r, path, root, NULL) < 0)
		return 0;
	for (unsigned i = 0; i < r.n; i++)
		if (header_of(r.path[i], &h, NULL)) {
			const uint64_t state[] = {h.state, h.used_bytes, h.sequence, h.calls, (uint64_t)h.last.realtime_ns};
			for (size_t k = 0; k < sizeof state / sizeof state[0]; k++)
				sum = hash_u64(sum ^ state[k]);
		}
	capture_run_release(&r);
	return sum ? sum : 1;
}

bool capture_run_rank(const char *path, int64_t *rank)
{
	struct wire_header h;
	if (!header_of(path, &h, NULL) || h.rank < 0)
		return false;
	*rank = h.rank;
	return true;
}
