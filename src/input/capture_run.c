/* Several processes make a run: a segment each, in one directory. Those of one rank of a job, or of no rank, are read together, as what a profiler
 * of the whole machine would have seen of them; each rank is a trace of its own, as it is with other profilers. */
#include "input/capture.h"

#include <dirent.h>
#include <stdlib.h>

struct segment {
	char *path;
	int64_t start_ns;
};

struct list {
	struct segment *v;
	unsigned n, cap;
};

/* "<host>-<pid>-<start ns>.seg": the last number. */
static bool start_in_name(struct str name, int64_t *start)
{
	size_t end = name.n, first;
	if (!str_ends(name, STR(".seg")))
		return false;
	end -= 4;
	for (first = end; first && name.p[first - 1] >= '0' && name.p[first - 1] <= '9'; first--)
		;
	return first && name.p[first - 1] == '-' && str_to_i64((struct str){name.p + first, end - first}, start);
}

static int by_start(const void *x, const void *y)
{
	const struct segment *a = x, *b = y;
	return a->start_ns != b->start_ns ? (a->start_ns < b->start_ns ? -1 : 1) : strcmp(a->path, b->path);
}

static size_t directory_length(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) + 1 : 0;
}

static char *join(const char *dir, size_t n, const char *name)
{
	size_t more = strlen(name) + 1;
	char *p = mem_alloc(n + more, 1);
	memcpy(p, dir, n);
	memcpy(p + n, name, more);
	return p;
}

/* By what their names say: opening each of thousands for each of thousands would take long. */
static void list_directory(struct list *l, const char *path)
{
	size_t n = directory_length(path);
	char *dir = n ? join(path, n, "") : join(".", 1, "");
	DIR *d = opendir(dir);
	mem_free(dir);
	for (struct dirent *e; d && (e = readdir(d));) {
		int64_t start;
		if (!start_in_name(str_from(e->d_name), &start))
			continue;
		MEM_GROW(l->v, l->cap, l->n + 1);
		l->v[l->n++] = (struct segment){join(path, n, e->d_name), start};
	}
	if (d)
		closedir(d);
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, by_start);
}

static void release_list(struct list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		mem_free(l->v[i].path);
	mem_free(l->v);
}

static bool header_of(const char *path, struct wire_header *h, struct err *e)
{
	struct capture_file f;
	if (capture_file_open(&f, path, false, e) < 0)
		return false;
	*h = f.h;
	capture_file_close(&f);
	return true;
}

static bool is_of_rank(const char *path, int64_t rank)
{
	struct wire_header h;
	return header_of(path, &h, NULL) && (h.rank < 0 ? -1 : h.rank) == rank;
}

/* The first of its rank; `path` itself where it is not in the list (by another name, or a link). */
static bool leads(const struct list *l, const char *path, int64_t rank)
{
	for (unsigned i = 0; i < l->n; i++)
		if (strcmp(l->v[i].path, path) == 0)
			return true;
		else if (is_of_rank(l->v[i].path, rank))
			return false;
	return false;
}

static void add(struct capture_run *r, const char *path)
{
	MEM_GROW(r->path, r->cap, r->n + 1);
	r->path[r->n++] = join(path, 0, path);
}

int capture_run_find(struct capture_run *r, const char *path, struct err *e)
{
	struct list l = {0};
	struct wire_header h, first;
	*r = (struct capture_run){0};
	if (!header_of(path, &h, e))
		return -1;
	r->rank = h.rank < 0 ? -1 : h.rank;
	r->world = h.world < 0 ? -1 : h.world;
	r->base_ns = h.start_ns;
	list_directory(&l, path);
	for (unsigned i = 0; i < l.n; i++)
		if (header_of(l.v[i].path, &first, NULL)) {
			r->base_ns = first.start_ns < r->base_ns ? first.start_ns : r->base_ns;
			break;
		}
	if (leads(&l, path, r->rank)) {
		for (unsigned i = 0; i < l.n; i++)
			if (strcmp(l.v[i].path, path) == 0 || is_of_rank(l.v[i].path, r->rank))
				add(r, l.v[i].path);
	} else {
		add(r, path);
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

bool capture_run_leads(const char *path)
{
	struct list l = {0};
	struct wire_header h;
	bool yes = true;
	list_directory(&l, path);
	for (unsigned i = 0; i < l.n; i++)
		if (strcmp(l.v[i].path, path) == 0) /* others stand alone */
			yes = header_of(path, &h, NULL) && leads(&l, path, h.rank < 0 ? -1 : h.rank);
	release_list(&l);
	return yes;
}

bool capture_run_rank(const char *path, int64_t *rank)
{
	struct wire_header h;
	if (!header_of(path, &h, NULL) || h.rank < 0)
		return false;
	*rank = h.rank;
	return true;
}
