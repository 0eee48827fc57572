#include "open/captures.h"

#include "base/buf.h"
#include "base/folder.h"
#include "base/mem.h"
#include "input/discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool capture_is_named_like_a_trace(struct str name)
{
	return str_ends(name, STR(".json")) || str_ends(name, STR(".json.gz"));
}

/* The number behind `word` in the name; -1 = there is none. An underscore may stand between. */
static int64_t capture_number(struct str name, struct str word)
{
	const char *at = memmem(name.p, name.n, word.p, word.n), *end = name.p + name.n;
	int64_t n = -1;
	if (!at)
		return -1;
	at += word.n;
	at += at < end && *at == '_';
	for (; at < end && *at >= '0' && *at <= '9' && n < INT32_MAX; at++)
		n = (n < 0 ? 0 : n) * 10 + (*at - '0');
	return n;
}

static int capture_by_name(const void *a, const void *b)
{
	return strcmp(((const struct str *)a)->p, ((const struct str *)b)->p);
}

static struct str capture_file_name(struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);
	return slash ? (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)} : path;
}

static void captures_list(struct capture_files *out, struct arena *a, const char *dir, int64_t rank)
{
	struct folder f;
	const char *name;
	folder_open(&f, dir);
	while ((name = folder_next(&f))) {
		const int64_t of = capture_number(str_from(name), STR("rank"));
		if (name[0] == '.' || !capture_is_named_like_a_trace(str_from(name)) || (rank >= 0 && of >= 0 && of != rank))
			continue;
		const struct str path = arena_printf(a, "%s/%s", dir, name);
		struct err why = {0};
		/* Lists of the traces lie there, too. What cannot be looked into is read, which says why. */
		if (input_recognise(path.p, &why) || why.code)
			MEM_PUSH(out->path, out->n, out->cap, path);
	}
	folder_close(&f);
	if (out->n)
		qsort(out->path, out->n, sizeof *out->path, capture_by_name);
}

static int64_t capture_batch(struct str path)
{
	const struct str name = capture_file_name(path);
	return str_starts(name, STR("bs_")) ? capture_number(name, STR("bs")) : -1;
}

/* The least batch among the files that holds `want`; -1 = none does. */
static int64_t captures_padded(const struct capture_files *f, int64_t want)
{
	int64_t best = -1;
	for (unsigned i = 0; i < f->n; i++) {
		const int64_t batch = capture_batch(f->path[i]);
		if (batch >= want && (best < 0 || batch < best))
			best = batch;
	}
	return best;
}

static void captures_keep_batches(struct capture_files *f, const int64_t *batch, unsigned n)
{
	unsigned kept = 0;
	bool *wanted = NEW_ARRAY(f->n, bool);
	for (unsigned k = 0; k < n; k++) {
		const int64_t padded = captures_padded(f, batch[k]);
		for (unsigned i = 0; i < f->n; i++)
			wanted[i] |= padded >= 0 && capture_batch(f->path[i]) == padded;
	}
	for (unsigned i = 0; i < f->n; i++)
		if (wanted[i] || capture_batch(f->path[i]) < 0)
			f->path[kept++] = f->path[i];
	f->n = kept;
	mem_free(wanted);
}

int captures_find(struct capture_files *out, struct arena *a, const char *path, const char *given, int64_t rank, const int64_t *batch, unsigned n_batches, struct err *e)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	*out = (struct capture_files){0};
	if (given && stat(given, &st) < 0)
		return err_set(e, ERR_IO, "--capture=%s: %s; a trace of the capture of graphs, or a folder of such, was expected", given, strerror(errno));
	if (given && !S_ISDIR(st.st_mode)) {
		MEM_PUSH(out->path, out->n, out->cap, arena_str(a, str_from(given)));
		return 0;
	}
	const struct str dir = given ? arena_str(a, str_from(given)) : arena_printf(a, "%.*s" DISCOVER_CAPTURES, slash ? (int)(slash + 1 - path) : 0, path);
	captures_list(out, a, dir.p, rank);
	if (given && !out->n)
		return err_set(e, ERR_IO, "--capture=%s: no trace of the capture of graphs (*.json, *.json.gz)%s in this folder", given, rank < 0 ? "" : " of this rank");
	if (n_batches)
		captures_keep_batches(out, batch, n_batches);
	return 0;
}
