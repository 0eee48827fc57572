#include "query/diff.h"

#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "query/diff_label.h"
#include "query/diff_notes.h"

#include <math.h>

static const char *const diff_by_name[DIFF_BYS] = {
	[DIFF_BY_TERM] = "term", [DIFF_BY_MODULE] = "module", [DIFF_BY_TREE] = "tree", [DIFF_BY_OP] = "op", [DIFF_BY_KERNEL] = "kernel", [DIFF_BY_LINE] = "line",
};

int diff_by_of(struct str name, enum diff_by *by, struct err *e)
{
	struct buf names = {0};
	for (unsigned i = 0; i < DIFF_BYS; i++) {
		if (str_eqc(name, diff_by_name[i])) {
			*by = (enum diff_by)i;
			buf_release(&names);
			return 0;
		}
		buf_printf(&names, "%s%s", i == 0 ? "" : i + 1 < DIFF_BYS ? ", " : " or ", diff_by_name[i]);
	}
	err_set(e, ERR_USAGE, "by=" STR_FMT ": " STR_FMT " was expected", STR_ARG(name), STR_ARG(buf_view(&names)));
	buf_release(&names);
	return -1;
}

enum {
	DIFF_KIND, DIFF_DEPTH, DIFF_NAME, DIFF_DIRECTION, DIFF_SHAPES, DIFF_A, DIFF_B, DIFF_DELTA, DIFF_HALF, DIFF_SHARE, DIFF_LABEL, DIFF_CALLS_A, DIFF_CALLS_B, DIFF_EACH_A, DIFF_EACH_B, DIFF_OF_CALLS, DIFF_OF_EACH,
	DIFF_NAME_A, DIFF_SHAPES_A, DIFF_FULL_NAME,
};
static const struct column diff_columns[] = {
	[DIFF_KIND] = {.id = "kind", .title = "Kind", .type = CELL_STR, .flags = COLUMN_MINOR, .help = "what the time is: compute, comm (collectives that no computation hides), wait (of these, until the last rank came, as far as the ranks of a job tell), copy (nothing else runs), idle (by what the host did meanwhile), or host, of a recording without device work or with --device=cpu"},
	[DIFF_DEPTH] = {.id = "depth", .title = "Depth", .type = CELL_I64, .flags = COLUMN_TREE, .help = "in the tree; 0 = root; rows stand in pre-order, and a module's numbers hold those of the rows below it"},
	[DIFF_NAME] = {.id = "name", .title = "Name", .type = CELL_STR, .flags = COLUMN_ANSWER | COLUMN_GROUP | COLUMN_WIDE, .help = "term: ops of one type and path, layers together (* is a number); module: their path alone; tree: a module or an op of the one above it; op; kernel; or function of Python with its recorded line"},
	[DIFF_DIRECTION] = {.id = "direction", .title = "Pass", .type = CELL_STR, .flags = COLUMN_GROUP, .help = "forward, backward or optimizer; empty = none of these"},
	[DIFF_SHAPES] = {.id = "shapes", .title = "Shapes", .type = CELL_STR, .flags = COLUMN_WIDE | COLUMN_GROUP, .help = "of the op's inputs, where recorded"},
	[DIFF_A] = {.id = "a_ns", .title = "A", .type = CELL_F64, .unit = UNIT_NS, .help = "of a step of A, mean; moments in which several kernels run are shared equally, so that rows add up to the step"},
	[DIFF_B] = {.id = "b_ns", .title = "B", .type = CELL_F64, .unit = UNIT_NS, .help = "the same of B"},
	[DIFF_DELTA] = {.id = "delta_ns", .title = "B - A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_ANSWER, .help = "the differences of all rows add up to the difference of the steps"},
	[DIFF_HALF] = {.id = "half_ns", .title = "+-", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "half the 95 % interval of B - A, by how the row scatters from step to step; empty = fewer than 2 steps, or the time of single steps is unknown"},
	[DIFF_SHARE] = {.id = "step_pct", .title = "Of the step", .type = CELL_F64, .unit = UNIT_PERCENT, .flags = COLUMN_MINOR, .help = "B - A as a share of A's step"},
	[DIFF_LABEL] = {.id = "label", .title = "Because", .type = CELL_STR, .flags = COLUMN_ANSWER, .help = "new, gone, as a region (a compiled region or a graph, which does not tell its ops, stands beside the ops of its pass), other kernels, other shapes, more calls, fewer calls (of kernels), slower, faster, same (within 2 %), or unclear (the interval of B - A, from these steps, holds 0); of idle time and waiting more or less; of collectives longer or shorter, with their waiting for other ranks where that is not told apart"},
	[DIFF_CALLS_A] = {.id = "a_calls", .title = "Kernels A", .type = CELL_F64, .unit = UNIT_COUNT, .flags = COLUMN_MINOR, .help = "how many kernels or copies of it run in a step, mean: one call of an op can launch several. Of a recording of the host alone: its calls"},
	[DIFF_CALLS_B] = {.id = "b_calls", .title = "Kernels B", .type = CELL_F64, .unit = UNIT_COUNT, .flags = COLUMN_MINOR, .help = "the same of B"},
	[DIFF_EACH_A] = {.id = "a_each_ns", .title = "Each A", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "time of one of these, mean"},
	[DIFF_EACH_B] = {.id = "b_each_ns", .title = "Each B", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "the same of B"},
	[DIFF_OF_CALLS] = {.id = "by_calls_ns", .title = "By number", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "the part of B - A that comes from more or fewer of these: their number's difference times the mean of both times; empty where other kernels ran, which do other things"},
	[DIFF_OF_EACH] = {.id = "by_each_ns", .title = "By time", .type = CELL_F64, .unit = UNIT_NS, .flags = COLUMN_MINOR, .help = "the rest: the difference of the time of each, times the mean of both numbers"},
	[DIFF_NAME_A] = {.id = "a_name", .title = "Name in A", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_WIDE, .help = "where it differs"},
	[DIFF_SHAPES_A] = {.id = "a_shapes", .title = "Shapes in A", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_WIDE, .help = "where they differ"},
	[DIFF_FULL_NAME] = {.id = "full_name", .title = "Full name", .type = CELL_STR, .flags = COLUMN_DETAIL | COLUMN_WIDE, .help = "of a kernel whose name is shortened"},
};

/* ---- what a row says ---- */

static void diff_put_calls(const struct diff *d, const struct diff_row *r, struct table *t)
{
	double calls[2] = {diff_row_calls(d, r, 0), diff_row_calls(d, r, 1)}, each[2] = {0};
	for (int s = 0; s < 2; s++) {
		table_set_f64(t, DIFF_CALLS_A + (unsigned)s, calls[s]);
		each[s] = calls[s] > 0 ? diff_row_ns(d, r, s) / calls[s] : 0;
		if (calls[s] > 0)
			table_set_f64(t, DIFF_EACH_A + (unsigned)s, each[s]);
	}
	/* Calls of one kernel and of three others are not calls of the same thing. */
	if (calls[0] <= 0 || calls[1] <= 0 || diff_has_other_kernels(d, r))
		return;
	double by_calls = (calls[1] - calls[0]) * (each[0] + each[1]) / 2;
	table_set_f64(t, DIFF_OF_CALLS, by_calls);
	table_set_f64(t, DIFF_OF_EACH, r->delta_ns - by_calls);
}

static bool diff_is_other(const struct diff *d, const struct diff_row *r)
{
	return r->delta_ns || r->name_in_a || diff_row_calls(d, r, 0) < diff_row_calls(d, r, 1) || diff_row_calls(d, r, 0) > diff_row_calls(d, r, 1) || r->of[0].kernels != r->of[1].kernels || diff_has_other_shapes(r);
}

/* What the host alone did is counted in calls. */
static void diff_name_counts(const struct diff_side *a, struct table *t)
{
	if (a->gpus)
		return;
	t->data[DIFF_CALLS_A].col.title = "Calls A";
	t->data[DIFF_CALLS_B].col.title = "Calls B";
}

/* All times in the unit of the longer step: one can be compared with the next, and columns are narrow. */
static void diff_choose_unit(const struct diff *d, struct table *t)
{
	static const unsigned times[] = {DIFF_A, DIFF_B, DIFF_DELTA, DIFF_HALF, DIFF_OF_CALLS, DIFF_OF_EACH};
	const double step_ns = fmax(diff_step_ns(d->side[0]), diff_step_ns(d->side[1]));
	for (unsigned i = 0; i < sizeof times / sizeof *times; i++)
		t->data[times[i]].col.shown_in = step_ns >= 1e9 ? "s" : step_ns >= 1e6 ? "ms" : step_ns >= 1e3 ? "us" : "ns";
}

static void diff_put_row(const struct diff *d, const struct diff_row *r, struct table *t)
{
	table_row(t);
	table_set_str(t, DIFF_KIND, str_from(diff_kind_name[r->kind]));
	table_set_i64(t, DIFF_DEPTH, r->depth);
	table_set_str_copy(t, DIFF_NAME, diff_shown(d, r));
	if (r->direction)
		table_set_str_copy(t, DIFF_DIRECTION, intern_get(&d->texts, r->direction));
	if (r->shapes)
		table_set_str_copy(t, DIFF_SHAPES, intern_get(&d->texts, r->shapes));
	if (r->name_in_a)
		table_set_str_copy(t, DIFF_NAME_A, intern_get(&d->texts, r->name_in_a));
	if (r->shapes_in_a)
		table_set_str_copy(t, DIFF_SHAPES_A, intern_get(&d->texts, r->shapes_in_a));
	if (r->shown)
		table_set_str_copy(t, DIFF_FULL_NAME, intern_get(&d->texts, r->name));
	table_set_f64(t, DIFF_A, diff_row_ns(d, r, 0));
	table_set_f64(t, DIFF_B, diff_row_ns(d, r, 1));
	table_set_f64(t, DIFF_DELTA, r->delta_ns);
	if (r->half_known)
		table_set_f64(t, DIFF_HALF, r->half_ns);
	table_set_f64(t, DIFF_SHARE, percent(r->delta_ns, diff_step_ns(d->side[0])));
	table_set_str(t, DIFF_LABEL, str_from(diff_label(d, r)));
	if (diff_has_calls(r))
		diff_put_calls(d, r, t);
}

/* ---- can they be compared? ---- */

static int diff_refuse(const struct diff_side *a, const struct diff_side *b, double matched_pct, struct err *e)
{
	struct buf facts = {0};
	diff_put_facts(a, b, &facts);
	err_set(e, ERR_DATA, "only %.0f %% of the time of computation is in ops that both have: these are not two runs of one program (--force compares them anyway)%s" STR_FMT, matched_pct,
	        facts.n ? "; what differs: " : "", STR_ARG(buf_view(&facts)));
	buf_release(&facts);
	return -1;
}

/* The side as it would be without Python frames: their time belongs to the ranges around them. Its parts are the caller's (mem_free). */
static struct diff_side diff_without_frames(const struct diff_side *s)
{
	struct diff_side plain = *s;
	plain.part = NEW_ARRAY_RAW(s->n_parts, struct diff_part);
	for (uint32_t i = 0; i < s->n_parts; i++) {
		struct diff_part *x = &plain.part[i];
		*x = s->part[i];
		if (!x->key.around)
			continue;
		x->key.name = x->key.type = x->key.around;
		x->key.around = 0;
		x->calls = 0;
		if (str_eq(intern_get(&s->texts, x->key.name), diff_side_outside_ranges()))
			x->key.kind = DIFF_IDLE;
	}
	return plain;
}

/* ERR_DATA where one side does not know what rows shall be by. */
static int diff_check_by(const struct diff_matched *m, enum diff_by by, struct err *e)
{
	for (unsigned s = 0; s < 2 && by == DIFF_BY_LINE; s++)
		if (!diff_side_has_lines(m->align->side[s]))
			return err_set(e, ERR_DATA, "%s has no call stacks, so that its lines of Python are unknown: record both with stacks (with_stack)", s ? "B" : "A");
	if ((by == DIFF_BY_MODULE || by == DIFF_BY_TREE) && !m->paths)
		return err_set(e, ERR_DATA, "most ops are in other modules in A than in B, or one side does not tell the modules: record both with stacks (with_stack) or modules (with_modules)");
	return 0;
}

/* ERR_DATA where they are not of one program, or not of the same part of it. */
static int diff_check_alike(const struct diff_matched *m, struct err *e)
{
	const struct diff_side *a = m->align->side[0], *b = m->align->side[1];
	if (m->pct < DIFF_LEAST_MATCHED)
		return diff_refuse(a, b, m->pct, e);
	if (a->n_recordings != b->n_recordings)
		return err_set(e, ERR_DATA, "A is %u rank%s of a job, B %u: --rank chooses the same ones (--force compares them anyway)", a->n_recordings, a->n_recordings == 1 ? "" : "s", b->n_recordings);
	if (diff_facts_differ(a, b, DIFF_FACT_RANKS))
		return err_set(e, ERR_DATA, "the job of A has " STR_FMT " ranks, that of B " STR_FMT ": a rank does another part of the work (--force compares them anyway)",
		               STR_ARG(a->fact[DIFF_FACT_RANKS].value), STR_ARG(b->fact[DIFF_FACT_RANKS].value));
	return 0;
}

/* ---- which rows are shown ---- */

/* In the tree, rows whose difference is less of A's step, percent, are left out. */
static const double DIFF_TREE_LEAST_PCT = 0.1;

/* What is left out of the table. */
struct diff_left_out {
	unsigned equal, small;
	double small_ns;         /* differences of small rows of depth 0, in all */
};

/* Whether a row of the tree stays, whatever is below it. */
static bool diff_is_large(const struct diff *d, const struct diff_row *r)
{
	return fabs(r->delta_ns) * 100 >= DIFF_TREE_LEAST_PCT * diff_step_ns(d->side[0]) || r->name_in_a || diff_row_is_on(r, 0) != diff_row_is_on(r, 1);
}

/* A module whose only child is an op is one row with it. */
static void diff_merge_only_ops(const struct diff *d, bool *shown)
{
	uint32_t *children = NEW_ARRAY(d->n_nodes, uint32_t);
	for (uint32_t i = 0; i < d->n_nodes; i++)
		if (d->row[i].parent != ROW_NONE)
			children[d->row[i].parent]++;
	for (uint32_t i = 0; i < d->n_nodes; i++)
		if (d->align->node[i].is_op && d->row[i].parent != ROW_NONE && children[d->row[i].parent] == 1)
			shown[i] = false;
	mem_free(children);
}

/* Rows that differ; of the tree those that differ much, and what is around them. The caller's (mem_free). */
static bool *diff_rows_shown(const struct diff *d, struct diff_left_out *out)
{
	bool *shown = NEW_ARRAY(d->n, bool);
	*out = (struct diff_left_out){0};
	for (uint32_t i = d->n; i-- > 0;) {
		const struct diff_row *r = &d->row[i];
		const bool other = diff_is_other(d, r);
		shown[i] |= other && (d->by != DIFF_BY_TREE || diff_is_large(d, r));
		if (shown[i] && r->parent != ROW_NONE)
			shown[r->parent] = true;
		out->equal += !shown[i] && !other;
		out->small += !shown[i] && other;
		out->small_ns += !shown[i] && !r->depth ? r->delta_ns : 0;
	}
	diff_merge_only_ops(d, shown);
	return shown;
}

static void diff_note_left_out(const struct diff_left_out *x, struct table *t)
{
	struct buf sum = {0};
	if (x->equal)
		table_note(t, "%u row%s that %s the same time and calls in both %s left out", x->equal, x->equal == 1 ? "" : "s", x->equal == 1 ? "has" : "have", x->equal == 1 ? "is" : "are");
	if (!x->small)
		return;
	diff_put_time(x->small_ns, true, &sum);
	table_note(t, "%u row%s whose difference is less than %.1f %% of A's step, with nothing larger, new, gone or renamed below, %s left out; those of depth 0 add up to " STR_FMT, x->small, x->small == 1 ? "" : "s",
	           DIFF_TREE_LEAST_PCT, x->small == 1 ? "is" : "are", STR_ARG(buf_view(&sum)));
	buf_release(&sum);
}

/* Rows of no op stand before the tree. */
static void diff_put_rows(const struct diff *d, struct table *out)
{
	struct diff_left_out left_out;
	bool *shown = diff_rows_shown(d, &left_out);
	for (uint32_t i = d->n_nodes; i < d->n; i++)
		if (shown[i])
			diff_put_row(d, &d->row[i], out);
	for (uint32_t i = 0; i < d->n_nodes; i++)
		if (shown[i])
			diff_put_row(d, &d->row[i], out);
	diff_note_left_out(&left_out, out);
	mem_free(shown);
}

/* ---- the table ---- */

/* The last `parts` parts of a path. */
static struct str diff_path_end(struct str path, unsigned parts)
{
	size_t from = path.n;
	while (from && (path.p[from - 1] != '/' || from == path.n || --parts))
		from--;
	return (struct str){path.p + from, path.n - from};
}

/* Names both by their files, with as much of the folders as tells them apart. */
static void diff_put_heading(const struct diff_side *a, const struct diff_side *b, struct table *t)
{
	const struct str path[] = {diff_side_place(a), diff_side_place(b)};
	unsigned parts = 1;
	while (!str_eq(path[0], path[1]) && str_eq(diff_path_end(path[0], parts), diff_path_end(path[1], parts)))
		parts++;
	t->heading = arena_printf(&t->arena, "What changed from A (" STR_FMT ") to B (" STR_FMT ")", STR_ARG(diff_path_end(path[0], parts)), STR_ARG(diff_path_end(path[1], parts))).p;
}

static void diff_leave_out_columns(enum diff_by by, struct table *t)
{
	if (by != DIFF_BY_OP) {
		table_leave_out(t, DIFF_SHAPES);
		table_leave_out(t, DIFF_SHAPES_A);
	}
	if (by == DIFF_BY_KERNEL || by == DIFF_BY_TREE)
		table_leave_out(t, DIFF_DIRECTION);
	if (by != DIFF_BY_TREE)
		table_leave_out(t, DIFF_DEPTH);
	table_drop_left_out(t);
}

static int diff_matched_table(const struct diff_matched *m, const struct diff_ask *ask, struct table *out, struct err *e)
{
	struct diff d, terms;
	if (!ask->force && diff_check_alike(m, e) < 0)
		return -1;
	if (diff_check_by(m, ask->by, e) < 0)
		return -1;
	table_init(out, "diff", "What changed from A to B");
	table_columns(out, diff_columns, sizeof diff_columns / sizeof *diff_columns);
	diff_name_counts(m->align->side[0], out);
	diff_put_heading(m->align->side[0], m->align->side[1], out);
	diff_rows_init(&d, m, ask->by);
	diff_choose_unit(&d, out);
	diff_put_rows(&d, out);
	diff_rows_release(&d);
	out->whole = ask->by == DIFF_BY_TREE;
	diff_leave_out_columns(ask->by, out);
	diff_rows_init(&terms, m, DIFF_BY_TERM);
	const struct diff_causes causes = diff_verdict_add(&terms, m, out);
	diff_rows_release(&terms);
	diff_notes_add(m, &causes, ask->by, out);
	return 0;
}

static int diff_table_of(const struct diff_side *a, const struct diff_side *b, const struct diff_ask *ask, struct table *out, struct err *e)
{
	struct diff_align x;
	if (!a->gpus != !b->gpus)
		return err_set(e, ERR_DATA, "%s has device work, the other recording has none: only times of the host and of the host, or of GPUs and of GPUs, can be compared (--device=cpu compares the hosts)", a->gpus ? "A" : "B");
	diff_align_init(&x, a, b);
	const struct diff_matched m = diff_matched_of(&x);
	const int rc = diff_matched_table(&m, ask, out, e);
	diff_align_release(&x);
	return rc;
}

int diff_table(const struct diff_side *a, const struct diff_side *b, const struct diff_ask *ask, struct table *out, struct err *e)
{
	if (a->frames == b->frames)
		return diff_table_of(a, b, ask, out, e);
	const struct diff_side plain = diff_without_frames(a->frames ? a : b);
	const int rc = a->frames ? diff_table_of(&plain, b, ask, out, e) : diff_table_of(a, &plain, ask, out, e);
	if (rc == 0)
		table_note(out, "%s alone has Python frames (with_stack): their time belongs to the ranges around them here", a->frames ? "A" : "B");
	mem_free(plain.part);
	return rc;
}
