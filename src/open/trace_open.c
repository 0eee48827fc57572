#include "open/trace_open.h"

#include "analysis/graph/graph_join.h"
#include "analysis/ranks/rank_place.h"
#include "base/mem.h"
#include "input/discover.h"
#include "open/captures.h"
#include "open/counters_join.h"
#include "open/provenance_join.h"
#include "open/provenance_read.h"

#include <string.h>
#include <sys/stat.h>

struct trace_captures {
	struct profile **v;
	unsigned n, cap;
};

static void trace_captures_release(struct trace_captures *c, const struct profile *trace)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->v[i] != trace)
			profile_free(c->v[i]);
	mem_free(c->v);
}

/* What was lost of the recording of a capture is lost of what it tells. */
static void trace_pass_losses(struct profile *p, const struct profile *capture, const char *path)
{
	for (unsigned i = 0; i < capture->diags.n; i++)
		if (capture->diags.entry[i].level == DIAG_LOSS)
			diag_add(&p->diags, "capture-damaged", DIAG_LOSS, -1, "of a recording of the capture of graphs not all could be read: %s: " STR_FMT, path, STR_ARG(capture->diags.entry[i].message));
}

/* One that cannot be read costs itself alone. */
static void trace_read_capture(struct trace_captures *c, struct profile *p, const char *path, const struct input_options *how, struct err *why)
{
	struct profile *x = input_open(path, how, why);
	if (!x) {
		diag_add(&p->diags, "capture-unread", DIAG_LOSS, -1, "a recording of the capture of graphs cannot be read: %s", why->msg);
		return;
	}
	trace_pass_losses(p, x, path);
	MEM_PUSH(c->v, c->n, c->cap, x);
}

/* -1 where none of those that were asked for can be read. */
static int trace_read_captures(struct trace_captures *c, struct profile *p, const char *path, const struct input_options *o, struct err *e)
{
	const bool given = o && o->capture;
	struct input_options how = o ? *o : (struct input_options){0};
	struct arena a = {0};
	struct capture_files files = {0};
	struct err why = {0};
	int64_t *batch;
	int rc = 0;
	const int n_batches = graph_join_batches(p, &batch, e);
	if (n_batches < 0)
		return -1;
	const struct rank_place place = rank_place_of(p);
	if (given || strcmp(path, "-") != 0)
		rc = captures_find(&files, &a, path, given ? o->capture : NULL, place.world > 0 ? place.rank : -1, batch, (unsigned)n_batches, &why);
	if (rc < 0 && !given)
		diag_add(&p->diags, "capture-unread", DIAG_LOSS, -1, "recordings of the capture of graphs cannot be read: %s", why.msg);
	how.as_written = false;
	how.progress = NULL;
	how.format = NULL;
	how.found = true;
	for (unsigned i = 0; i < files.n && rc == 0; i++)
		trace_read_capture(c, p, files.path[i].p, &how, &why);
	/* Its captures count anyway; what it ran without graphs then does, too. */
	if (files.itself)
		MEM_PUSH(c->v, c->n, c->cap, p);
	rc = given && (rc < 0 || (files.n && !c->n)) ? -1 : 0;
	if (rc < 0)
		err_set(e, why.code, "%s%s", strncmp(why.msg, "--capture", 9) == 0 ? "" : "--capture: ", why.msg);
	mem_free(batch);
	mem_free(files.path);
	arena_release(&a);
	return rc;
}

static int trace_join(struct profile *p, const char *path, const struct input_options *o, struct err *e)
{
	struct trace_captures c = {0};
	int rc = trace_read_captures(&c, p, path, o, e);
	rc = rc < 0 ? rc : graph_join(p, c.v, c.n, e);
	trace_captures_release(&c, p);
	return rc;
}

/* The folder beside the trace; NULL = there is none. */
static const char *trace_provenance_beside(struct arena *a, const char *path)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	const struct str dir = arena_printf(a, "%.*s" DISCOVER_PROVENANCE, slash ? (int)(slash + 1 - path) : 0, path);
	return strcmp(path, "-") != 0 && stat(dir.p, &st) == 0 && S_ISDIR(st.st_mode) ? dir.p : NULL;
}

static int trace_read_provenance(struct profile *p, const char *from, bool given, struct err *e)
{
	struct provenance v = {0};
	struct err why = {0};
	const struct rank_place place = rank_place_of(p);
	int rc = provenance_read(&v, from, place.world > 0 ? place.rank : -1, &why);
	if (rc == 0 && !v.n && !v.n_said)
		rc = err_set(&why, ERR_DATA, "%s: nothing in it tells of kernels that torch.compile generated, of graph breaks or of recompilations; a log of TORCH_TRACE, a folder of tlparse or of TORCH_COMPILE_DEBUG was expected", from);
	if (rc == 0)
		rc = provenance_join(p, &v, &why);
	if (v.damaged)
		diag_add_n(&p->diags, "provenance-damaged", DIAG_LOSS, v.damaged, -1, "a part of the compiler's provenance cannot be read: %s", from);
	provenance_release(&v);
	if (rc < 0 && given)
		return err_set(e, why.code, "--provenance=%s", why.msg);
	if (rc < 0)
		diag_add(&p->diags, "provenance-unread", DIAG_LOSS, -1, "%s", why.msg);
	return 0;
}

static int trace_tell_sources(struct profile *p, const char *path, const struct input_options *o, struct err *e)
{
	struct arena a = {0};
	const bool given = o && o->provenance;
	int rc = 0;
	if (provenance_is_due(p)) {
		const char *from = given ? o->provenance : trace_provenance_beside(&a, path);
		rc = from ? trace_read_provenance(p, from, given, e) : 0;
	} else if (given && p->reopened) {
		rc = err_set(e, ERR_USAGE, "--provenance=%s: %s was imported; give it to opscope import", o->provenance, path);
	}
	arena_release(&a);
	return rc;
}

static int trace_tell_counters(struct profile *p, const char *path, const struct input_options *o, struct err *e)
{
	struct ncu n = {0};
	struct err why = {0};
	if (!o || !o->counters)
		return 0;
	if (p->reopened)
		return err_set(e, ERR_USAGE, "--counters=%s: %s was imported; give it to opscope import", o->counters, path);
	int rc = ncu_read(&n, o->counters, &why);
	if (rc == 0 && n.odd)
		diag_add_n(&p->diags, "counters-damaged", DIAG_LOSS, n.odd, -1, "a row of the counters cannot be read: %s", o->counters);
	if (rc == 0)
		rc = counters_join(p, &n, o->counters, &why);
	ncu_release(&n);
	return rc < 0 ? err_set(e, why.code, "--counters=%s", why.msg) : 0;
}

struct profile *trace_open(const char *path, const struct input_options *o, struct err *e)
{
	struct profile *p = input_open(path, o, e);
	if (!p)
		return NULL;
	const bool due = graph_join_is_due(p);
	if (!due && o && o->capture && !p->reopened)
		diag_add(&p->diags, "capture-unused", DIAG_NOTE, -1, "no graph was launched, and so --capture was not read");
	if ((!due || trace_join(p, path, o, e) == 0) && trace_tell_sources(p, path, o, e) == 0 && trace_tell_counters(p, path, o, e) == 0)
		return p;
	profile_free(p);
	return NULL;
}
