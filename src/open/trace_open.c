#include "open/trace_open.h"

#include "analysis/graph/graph_join.h"
#include "analysis/graph/graphs.h"
#include "analysis/ranks/rank_place.h"
#include "analysis/steps/serving.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "input/discover.h"
#include "op/cost.h"
#include "open/captures.h"
#include "open/execution_trace.h"
#include "open/counters_join.h"
#include "open/provenance_join.h"
#include "open/provenance_read.h"
#include "store/torch_names.h"

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

/* Repeats the losses of a capture's recording at the trace. */
static void trace_pass_losses(struct profile *p, const struct profile *capture, const char *path)
{
	for (unsigned i = 0; i < capture->diags.n; i++)
		if (capture->diags.entry[i].level == DIAG_LOSS)
			diag_add(&p->diags, "capture-damaged", DIAG_LOSS, -1, "a recording of the capture of graphs could not be read wholly: %s: " STR_FMT, path,
			         STR_ARG(capture->diags.entry[i].message));
}

/* A capture that cannot be read is left out; *why says why. */
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

/* Reads the captures of the trace. -1: a pass failed, or none of those that were asked for can be read. */
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
	how.ignores = 0; /* all of it may tell what was captured */
	how.progress = NULL;
	how.format = NULL;
	how.execution_trace = NULL;
	how.found = true;
	for (unsigned i = 0; i < files.n && rc == 0; i++)
		trace_read_capture(c, p, files.path[i].p, &how, &why);
	/* Then what the trace ran without graphs counts, too (graph_join). */
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

/* The folder of this name beside the trace; NULL = there is none. */
static const char *trace_folder_beside(struct arena *a, const char *path, const char *name)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	const struct str dir = arena_printf(a, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
	return strcmp(path, "-") != 0 && stat(dir.p, &st) == 0 && S_ISDIR(st.st_mode) ? dir.p : NULL;
}

enum { TRACE_NAME_SHOWN = 80 };

static void trace_put_piece(struct buf *b, struct str name)
{
	if (name.n)
		buf_printf(b, "`%.*s%s`", (int)(name.n < TRACE_NAME_SHOWN ? name.n : TRACE_NAME_SHOWN), name.p, name.n > TRACE_NAME_SHOWN ? "..." : "");
	else
		buf_cstr(b, "nothing more");
}

/* That recordings of captures were read in vain. One that was asked for is a mistake, which the user should see. */
static void trace_tell_tried(struct profile *p, const char *path, const char *given, const struct graph_tried *tried)
{
	struct arena a = {0};
	struct buf b = {0};
	const char *beside = trace_folder_beside(&a, path, DISCOVER_CAPTURES);
	if (given)
		buf_printf(&b, "--capture=%s was read", given);
	else
		buf_cstr(&b, DISCOVER_CAPTURES "/ beside the trace was read");
	if (!tried->graphs)
		buf_cstr(&b, " and not used: no launch of a graph has work that was recorded piece by piece");
	else if (!tried->untold)
		buf_cstr(&b, " and not needed: the trace itself tells the ops of its graphs");
	else if (tried->captures)
		buf_printf(&b, ": %u capture%s, none fits", tried->captures, tried->captures == 1 ? "" : "s");
	else
		buf_cstr(&b, ": no capture of a graph, and what ran there without graphs is not what the graphs replay; a recording of the same program, compiled or not as the trace was, tells");
	if (tried->untold && tried->differs) {
		buf_printf(&b, "; the nearest differs at piece %u: ", tried->differs);
		trace_put_piece(&b, tried->captured);
		buf_cstr(&b, " was captured, ");
		trace_put_piece(&b, tried->replayed);
		buf_cstr(&b, " was replayed");
	}
	if (given && beside && tried->untold)
		buf_cstr(&b, "; " DISCOVER_CAPTURES "/ beside the trace was not read, since --capture takes its place");
	diag_add(&p->diags, DIAG_CAPTURE_IN_VAIN, given ? DIAG_REPAIR : DIAG_NOTE, -1, STR_FMT, STR_ARG(buf_view(&b)));
	buf_release(&b);
	arena_release(&a);
}

static int trace_join(struct profile *p, const char *path, const struct input_options *o, struct err *e)
{
	struct trace_captures c = {0};
	struct graph_tried tried;
	int rc = trace_read_captures(&c, p, path, o, e);
	rc = rc < 0 ? rc : graph_join(p, c.v, c.n, &tried, e);
	if (rc == 0 && c.n && !tried.told && !tried.ambiguous && !(c.n == 1 && c.v[0] == p))
		trace_tell_tried(p, path, o ? o->capture : NULL, &tried);
	trace_captures_release(&c, p);
	return rc;
}

static int trace_read_provenance(struct profile *p, const char *from, bool given, struct err *e)
{
	struct provenance v = {0};
	struct err why = {0};
	const struct rank_place place = rank_place_of(p);
	int rc = provenance_read(&v, from, place.world > 0 ? place.rank : -1, &why);
	if (rc == 0 && !v.n && !v.n_said)
		rc = err_set(&why, ERR_DATA, "%s: nothing in it tells of kernels that torch.compile generated, of graph breaks or of recompilations; a log of TORCH_TRACE, a "
		             "folder of tlparse or of TORCH_COMPILE_DEBUG was expected", from);
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
		const char *from = given ? o->provenance : trace_folder_beside(&a, path, DISCOVER_PROVENANCE);
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

/* Python frames matter to reports that do not show them if no ProfilerStep# marks steps (the search for steps looks at all ranges), a graph is
 * launched (so does what tells its ops), a frame could be an iteration of a server, or a marker exists (what it overlaps moves its end). */
static bool trace_needs_frames(const struct profile *p)
{
	struct serving x;
	bool steps = false;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] == SPAN_MARKER)
			return true;
		steps = steps || ((p->span.kind[i] == SPAN_USER || p->span.kind[i] == SPAN_OP) && str_starts(profile_str(p, p->span.name[i]), STR(TORCH_STEP)));
	}
	return !steps || ANY_WHERE(i, 0u, p->strings.n, graph_is_launch(profile_str(p, i)) || serving_parse(profile_str(p, i), &x));
}

/* Ranges in which nothing was launched matter where a graph is launched (captures are searched for among them), where a server states its iterations, which
 * have threads of their own, and to the model of an op that asks for ops inside. */
static bool trace_needs_quiet(struct str name)
{
	struct serving x;
	return graph_is_launch(name) || serving_parse(name, &x) || cost_asks(name, &cost_own, COST_FORWARD, NULL) == COST_ASKS_INNER;
}

/* What the reading may leave out. What compilers wrote down is found again by frames and by all ranges, too. */
static struct input_options trace_reading(const char *path, const struct input_options *o)
{
	struct arena a = {0};
	struct input_options how = o ? *o : (struct input_options){0};
	const unsigned in_question = LEFT_FRAMES | LEFT_QUIET;
	if (how.ignores & in_question && (how.provenance || how.execution_trace || trace_folder_beside(&a, path, DISCOVER_PROVENANCE)))
		how.ignores &= ~in_question;
	how.needs_quiet = trace_needs_quiet;
	how.needs_frames = trace_needs_frames;
	arena_release(&a);
	return how;
}

struct profile *trace_open(const char *path, const struct input_options *o, struct err *e)
{
	const struct input_options how = trace_reading(path, o);
	struct profile *p = input_open(path, &how, e);
	if (!p)
		return NULL;
	const bool due = graph_join_is_due(p);
	if (!due && o && o->capture && !p->reopened)
		diag_add(&p->diags, "capture-unused", DIAG_NOTE, -1, "no graph was launched, and so --capture was not read");
	if ((!o || !o->execution_trace || execution_trace_join(p, o->execution_trace, e) == 0) && (!due || trace_join(p, path, o, e) == 0) && trace_tell_sources(p, path, o, e) == 0 &&
	    trace_tell_counters(p, path, o, e) == 0)
		return p;
	profile_free(p);
	return NULL;
}
