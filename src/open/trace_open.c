#include "open/trace_open.h"

#include "analysis/graph/graph_join.h"
#include "analysis/ranks/rank_place.h"
#include "base/mem.h"
#include "open/captures.h"

#include <string.h>

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

struct profile *trace_open(const char *path, const struct input_options *o, struct err *e)
{
	struct profile *p = input_open(path, o, e);
	if (!p)
		return p;
	if (!graph_join_is_due(p)) {
		if (o && o->capture && !p->reopened)
			diag_add(&p->diags, "capture-unused", DIAG_NOTE, -1, "no graph was launched, and so --capture was not read");
		return p;
	}
	if (trace_join(p, path, o, e) == 0)
		return p;
	profile_free(p);
	return NULL;
}
