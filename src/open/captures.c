#include "open/captures.h"

#include "base/buf.h"
#include "base/folder.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "input/discover.h"
#include "io/source.h"

#include <errno.h>
#include <inttypes.h>
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

/* What a folder holds that is of no use, for the message. */
struct captures_seen {
	unsigned no_traces;      /* files that are named like traces, and are none */
	struct str no_trace;     /* name of the last of these */
	unsigned other_ranks;    /* files of other ranks */
	int64_t other_rank;      /* of the last of these */
};

static bool capture_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether a file is empty, or damaged before its format can be told. */
static bool capture_is_damaged(const char *path)
{
	struct err why = {0};
	struct source *s = source_open_regular(path, &why);
	const bool damaged = s && (!source_peek(s).n || source_error(s));
	if (s)
		source_close(s);
	return damaged;
}

/* Whether it is none of the formats that are read. */
static bool capture_is_no_trace(const char *path)
{
	struct err why = {0};
	/* What cannot be looked into is read, which says why. */
	return !input_recognise(path, &why) && !why.code && !capture_is_damaged(path);
}

/* Of one name in the folder. */
static void capture_look(struct capture_files *out, struct captures_seen *seen, struct arena *a, const char *dir, const char *name, int64_t rank, const struct stat *trace)
{
	const int64_t of = capture_number(str_from(name), STR("rank"));
	if (name[0] == '.' || !capture_is_named_like_a_trace(str_from(name)))
		return;
	if (rank >= 0 && of >= 0 && of != rank) {
		seen->other_ranks++;
		seen->other_rank = of;
		return;
	}
	const struct str path = arena_printf(a, "%s/%s", dir, name);
	struct stat st;
	if (stat(path.p, &st) == 0 && capture_is_same(&st, trace)) {
		out->itself = true;
	} else if (!capture_is_no_trace(path.p)) {
		MEM_PUSH(out->path, out->n, out->cap, path);
	} else {
		/* As servers' lists of their traces. */
		seen->no_traces++;
		seen->no_trace = arena_str(a, str_from(name));
	}
}

/* 0, or the errno of reading the folder. */
static int captures_list(struct capture_files *out, struct captures_seen *seen, struct arena *a, const char *dir, int64_t rank, const struct stat *trace)
{
	struct folder f;
	const char *name;
	folder_open(&f, dir);
	while ((name = folder_next(&f)))
		capture_look(out, seen, a, dir, name, rank, trace);
	const int error = f.error;
	folder_close(&f);
	if (out->n)
		qsort(out->path, out->n, sizeof *out->path, capture_by_name);
	return error;
}

/* The error that a folder which was asked for has no trace of use. */
static int captures_none(const char *given, const struct captures_seen *seen, int64_t rank, struct err *e)
{
	struct buf b = {0};
	if (seen->no_traces)
		buf_printf(&b, "; " STR_FMT "%s no trace", STR_ARG(seen->no_trace), seen->no_traces == 1 ? " is" : " and others are");
	if (seen->other_ranks)
		buf_printf(&b, "; %u trace%s of other ranks (%" PRId64 "), and this is rank %" PRId64, seen->other_ranks, seen->other_ranks == 1 ? " is" : "s are",
		           seen->other_rank, rank);
	err_set(e, ERR_IO, "--capture=%s: no trace of the capture of graphs (*.json, *.json.gz) in this folder" STR_FMT, given, STR_ARG(buf_view(&b)));
	buf_release(&b);
	return -1;
}

static int64_t capture_batch(struct str path)
{
	const struct str name = capture_file_name(path);
	return str_starts(name, STR("bs_")) ? capture_number(name, STR("bs")) : -1;
}

/* Of files whose name states a batch, keeps those that a wanted batch pads to (captures.h). O(files log files + wanted log files). */
static void captures_keep_batches(struct capture_files *f, const int64_t *want, unsigned n)
{
	int64_t *batch = NEW_ARRAY_RAW(f->n, int64_t), *known = NEW_ARRAY_RAW(f->n, int64_t);
	bool *wanted = NEW_ARRAY(f->n, bool); /* by place in `known` */
	unsigned n_known = 0, kept = 0;
	for (unsigned i = 0; i < f->n; i++) {
		batch[i] = capture_batch(f->path[i]);
		if (batch[i] >= 0)
			known[n_known++] = batch[i];
	}
	sort_i64(known, n_known);
	for (unsigned k = 0; k < n; k++) {
		const unsigned at = FIRST_WHERE(i, 0u, n_known, known[i] >= want[k]);
		if (at < n_known)
			wanted[at] = true;
	}
	for (unsigned i = 0; i < f->n; i++)
		if (batch[i] < 0 || wanted[FIRST_WHERE(k, 0u, n_known, known[k] >= batch[i])])
			f->path[kept++] = f->path[i];
	f->n = kept;
	mem_free(batch);
	mem_free(known);
	mem_free(wanted);
}

static int captures_find_given(struct capture_files *out, struct arena *a, const char *given, int64_t rank, const struct stat *trace, struct err *e)
{
	struct stat st;
	struct captures_seen seen = {0};
	static const char expected[] = "a trace of the capture of graphs, or a folder of such, was expected";
	if (stat(given, &st) < 0)
		return err_set(e, ERR_IO, "--capture=%s: %s; %s", given, strerror(errno), expected);
	if (!S_ISDIR(st.st_mode)) {
		out->itself = capture_is_same(&st, trace);
		if (!out->itself && S_ISREG(st.st_mode) && capture_is_no_trace(given))
			return err_set(e, ERR_FORMAT, "--capture=%s: no trace is recognised by its content; %s", given, expected);
		if (!out->itself)
			MEM_PUSH(out->path, out->n, out->cap, arena_str(a, str_from(given)));
		return 0;
	}
	const int error = captures_list(out, &seen, a, given, rank, trace);
	if (error)
		return err_set(e, ERR_IO, "--capture=%s: the folder cannot be read: %s", given, strerror(error));
	return out->n || out->itself ? 0 : captures_none(given, &seen, rank, e);
}

int captures_find(struct capture_files *out, struct arena *a, const char *path, const char *given, int64_t rank, const int64_t *batch, unsigned n_batches, struct err *e)
{
	struct stat trace;
	const char *slash = strrchr(path, '/');
	*out = (struct capture_files){0};
	if (stat(path, &trace) < 0)
		trace = (struct stat){0};
	if (given && captures_find_given(out, a, given, rank, &trace, e) < 0)
		return -1;
	if (!given) {
		struct captures_seen seen = {0};
		const struct str dir = arena_printf(a, "%.*s" DISCOVER_CAPTURES, slash ? (int)(slash + 1 - path) : 0, path);
		const int error = captures_list(out, &seen, a, dir.p, rank, &trace);
		if (error && error != ENOENT && error != ENOTDIR)
			return err_set(e, ERR_IO, "%s: the folder cannot be read: %s", dir.p, strerror(error));
	}
	if (n_batches && out->n)
		captures_keep_batches(out, batch, n_batches);
	return 0;
}
