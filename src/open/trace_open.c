#include "open/trace_open.h"

#include "analysis/graph/graph_join.h"
#include "analysis/ranks/rank_place.h"
#include "base/mem.h"
#include "open/captures.h"
#include "open/execution_trace.h"

#include <string.h>

struct trace_captures {
	struct profile **v;
	unsigned n;
};

/* -1 where one that was asked for cannot be read. */
static int trace_read_captures(struct trace_captures *c, struct profile *p, const char *path, const struct input_options *o, struct err *e)
{
	const bool given = o && o->capture;
	struct input_options how = o ? *o : (struct input_options){0};
	struct arena a = {0};
	struct capture_files files;
	int64_t *batch;
	int rc = 0;
	const int n_batches = graph_join_batches(p, &batch, e);
	if (n_batches < 0)
		return -1;
	const struct rank_place place = rank_place_of(p);
	if (!given && strcmp(path, "-") == 0)
		files = (struct capture_files){0};
	else
		rc = captures_find(&files, &a, path, given ? o->capture : NULL, place.world > 0 ? place.rank : -1, batch, (unsigned)n_batches, e);
	how.as_written = false;
	how.progress = NULL;
	how.format = NULL;
	how.execution_trace = NULL;
	how.found = true;
	c->v = NEW_ARRAY(files.n, struct profile *);
	for (unsigned i = 0; i < files.n && rc == 0; i++) {
		struct err why;
		struct profile *x = input_open(files.path[i].p, &how, given ? e : &why);
		if (x)
			c->v[c->n++] = x;
		else if (given)
			rc = -1;
		else
			diag_add(&p->diags, "capture-unread", DIAG_LOSS, -1, "a recording of the capture of graphs cannot be read: %s", why.msg);
	}
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
	for (unsigned i = 0; i < c.n; i++)
		profile_free(c.v[i]);
	mem_free(c.v);
	return rc;
}

struct profile *trace_open(const char *path, const struct input_options *o, struct err *e)
{
	struct profile *p = input_open(path, o, e);
	if (p && o && o->execution_trace && execution_trace_join(p, o->execution_trace, e) < 0) {
		profile_free(p);
		return NULL;
	}
	if (!p || !graph_join_is_due(p))
		return p;
	if (trace_join(p, path, o, e) == 0)
		return p;
	profile_free(p);
	return NULL;
}
