#include "query/diff_rows.h"

#include "analysis/tree/direction.h"
#include "base/hash.h"
#include "base/mem.h"
#include "query/diff_wait.h"

#include <math.h>
#include <stdlib.h>

double diff_row_ns(const struct diff *d, const struct diff_row *r, int side)
{
	return (double)r->of[side].ns / diff_side_per(d->side[side]);
}

double diff_row_calls(const struct diff *d, const struct diff_row *r, int side)
{
	return (double)r->of[side].calls / diff_side_per(d->side[side]);
}

double diff_step_ns(const struct diff_side *s)
{
	return (double)s->total_ns / diff_side_per(s);
}

/* Rows are of ops, one by one or as terms. */
bool diff_is_by_op(const struct diff *d)
{
	return d->by == DIFF_BY_TERM || d->by == DIFF_BY_OP;
}

/* Without the op itself: "/GPT/Block" of "/GPT_0/Block_3/linear". */
static void diff_put_module(struct str name, struct str type, struct buf *b)
{
	diff_put_family(name, type, b);
	while (b->n && b->p[b->n - 1] != '/')
		b->n--;
	b->n -= b->n > 1; /* the slash, but of the root */
	if (!b->n)
		buf_cstr(b, "outside of modules");
}

/* What rows show of an op's name with its path. */
static uint32_t diff_op_text(struct diff *d, struct str name, struct str type)
{
	if (d->by == DIFF_BY_OP)
		return intern_str(&d->texts, name);
	struct buf b = {0};
	if (d->by == DIFF_BY_MODULE)
		diff_put_module(name, type, &b);
	else
		diff_put_family(name, type, &b);
	const uint32_t id = intern_str(&d->texts, buf_view(&b));
	buf_release(&b);
	return id;
}

static uint32_t diff_op_own(struct diff *d, int side, const struct diff_key *k, uint32_t op)
{
	uint32_t *own = &d->op_name[op].own[side];
	if (!*own)
		*own = diff_op_text(d, intern_get(&d->side[side]->texts, k->name), intern_get(&d->side[side]->texts, k->type));
	return *own;
}

/* By op, two ops may have one name: an inserted module moves the numbers of those behind it. */
static uint32_t diff_op_key(struct diff *d, int side, const struct diff_key *k, uint32_t op)
{
	uint32_t *key = &d->op_name[op].key;
	struct buf b = {0};
	if (*key)
		return *key;
	if (d->by == DIFF_BY_OP) {
		buf_printf(&b, "%u", op);
		*key = intern_str(&d->texts, buf_view(&b));
	} else {
		diff_align_put_name(d->align, op, &b);
		*key = diff_op_text(d, buf_view(&b), intern_get(&d->side[side]->texts, k->type));
	}
	buf_release(&b);
	return *key;
}

/* The name of a part that is not told by its op. */
static uint32_t diff_other_name(struct diff *d, const struct diff_side *s, const struct diff_part *x)
{
	const struct diff_key *k = &x->key;
	if (k->kind == DIFF_WAIT)
		return diff_wait_name(&d->texts, s, x, d->by, false);
	if (k->kind == DIFF_IDLE || (k->kind == DIFF_COMM && d->by == DIFF_BY_OP))
		return intern_str(&d->texts, intern_get(&s->texts, k->name));
	if (k->kind == DIFF_COPY || k->kind == DIFF_COMM || (d->by == DIFF_BY_KERNEL && k->kernel))
		return intern_str(&d->texts, intern_get(&s->texts, k->kernel));
	if (d->by == DIFF_BY_LINE)
		return intern_str(&d->texts, k->line ? intern_get(&s->texts, k->line) : STR("no line of Python"));
	return diff_op_text(d, intern_get(&s->texts, k->type), intern_get(&s->texts, k->type));
}

/* Whether the part's op tells its row. */
static bool diff_has_op_name(const struct diff *d, const struct diff_key *k, uint32_t op)
{
	if (op == ROW_NONE || !d->paths || d->by == DIFF_BY_LINE || (d->by == DIFF_BY_KERNEL && k->kernel))
		return false;
	return k->kind == DIFF_COMPUTE || k->kind == DIFF_HOST || (k->kind == DIFF_COMM && d->by == DIFF_BY_OP);
}

static bool diff_has_direction(const struct diff *d, const struct diff_key *k)
{
	return d->by != DIFF_BY_KERNEL && (k->kind == DIFF_COMPUTE || k->kind == DIFF_HOST) && k->direction != DIR_OTHER;
}

/* What rows have in common that may stand together under other names; modules and lines have their names alone. */
static struct str diff_rows_alike(const struct diff *d, const struct diff_side *s, const struct diff_key *k, uint32_t name)
{
	if (!diff_is_by_op(d) && d->by != DIFF_BY_KERNEL)
		return intern_get(&d->texts, name);
	return intern_get(&s->texts, d->by == DIFF_BY_KERNEL && k->kind != DIFF_HOST ? k->kernel : k->type);
}

static bool diff_may_be_renamed(uint32_t kind)
{
	return kind == DIFF_COMPUTE || kind == DIFF_HOST;
}

static uint32_t diff_text_of(struct diff *d, const char *what, const struct diff_row *r, uint32_t name, uint32_t shapes)
{
	struct buf b = {0};
	buf_printf(&b, "%s %u %u %u %u", what, r->kind, r->direction, name, shapes);
	const uint32_t id = intern_str(&d->texts, buf_view(&b));
	buf_release(&b);
	return id;
}

static void diff_add_nodes(struct diff *d)
{
	const struct diff_align *x = d->align;
	MEM_GROW(d->row, d->cap, d->n_nodes);
	for (uint32_t i = 0; i < d->n_nodes; i++) {
		const struct diff_node *n = &x->node[i];
		const uint32_t name[] = {intern_str(&d->texts, intern_get(&x->texts, n->name[0])), intern_str(&d->texts, intern_get(&x->texts, n->name[1]))};
		d->row[d->n++] = (struct diff_row){.parent = n->parent, .depth = n->depth, .kind = d->side[0]->gpus ? DIFF_COMPUTE : DIFF_HOST, .name = name[n->on[1]],
		                                   .name_in_a = n->on[0] && n->on[1] && name[0] != name[1] ? name[0] : 0};
	}
}

static struct diff_row *diff_row_of(struct diff *d, int side, uint32_t part, const struct diff_part *x)
{
	const struct diff_side *s = d->side[side];
	const struct diff_key *k = &x->key;
	const uint32_t op = d->align->of_part[side][part];
	const bool named = diff_has_op_name(d, k, op);
	if (d->n_nodes && op != ROW_NONE && diff_may_be_renamed(k->kind))
		return &d->row[op];
	struct diff_row r = {.kind = k->kind, .parent = ROW_NONE, .name = named ? diff_op_own(d, side, k, op) : diff_other_name(d, s, x)};
	const uint32_t name = named ? diff_op_key(d, side, k, op) : r.name;
	if (diff_has_direction(d, k))
		r.direction = intern_str(&d->texts, str_from(direction_name[k->direction]));
	if (d->by == DIFF_BY_OP && d->shapes && k->kind != DIFF_COPY)
		r.shapes = intern_str(&d->texts, intern_get(&s->texts, k->shapes));
	const uint32_t key[] = {r.kind, name, named, r.direction, r.shapes}, i = d->n_nodes + intern_put(&d->keys, (const char *)key, sizeof key) - 1;
	if (i < d->n) {
		if (side == 1 && !d->row[i].name_in_a && d->row[i].name != r.name) {
			d->row[i].name_in_a = d->row[i].name;
			d->row[i].name = r.name;
		}
		return &d->row[i];
	}
	r.alike = diff_text_of(d, "alike", &r, intern_str(&d->texts, diff_rows_alike(d, s, k, r.name)), r.shapes);
	r.same_op = named && r.shapes ? diff_text_of(d, "op", &r, name, 0) : 0;
	if (x->short_kernel && r.name == intern_find(&d->texts, intern_get(&s->texts, k->kernel)))
		r.shown = intern_str(&d->texts, intern_get(&s->texts, x->short_kernel));
	if (k->kind == DIFF_WAIT && d->by == DIFF_BY_KERNEL)
		r.shown = diff_wait_name(&d->texts, s, x, d->by, true);
	r.region = diff_is_by_op(d) && k->kind == DIFF_COMPUTE && diff_is_region(intern_get(&s->texts, k->type));
	MEM_GROW(d->row, d->cap, i + 1);
	d->row[d->n++] = r;
	return &d->row[i];
}

/* A hash of the text if the row's side had not been given it before, else 0. */
static uint64_t diff_first_seen(struct diff *d, uint32_t row, int side, int what, struct str text)
{
	if (!text.n)
		return 0;
	uint32_t id = intern_str(&d->texts, text), key[] = {row, (uint32_t)(2 * what + side), id}, before = d->seen.n;
	intern_put(&d->seen, (const char *)key, sizeof key);
	return d->seen.n == before ? 0 : hash_bytes(text.p, text.n);
}

static void diff_fold(struct diff *d, int side)
{
	const struct diff_side *s = d->side[side];
	for (uint32_t i = 0; i < s->n_parts; i++) {
		const struct diff_part part = diff_waits_part(d->waits, side, i), *x = &part;
		struct diff_row *r = diff_row_of(d, side, i, x);
		uint32_t at = (uint32_t)(r - d->row);
		struct diff_sum *sum = &r->of[side];
		sum->ns += x->ns;
		sum->calls += x->calls;
		sum->maybe_wait_ns += x->maybe_wait_ns;
		diff_scatter_add(&d->scatter, side, at, s, i);
		r->steps_unknown |= s->waits_told && (x->key.kind == DIFF_COMM || x->key.kind == DIFF_WAIT);
		/* A module has the kernels of all below, each once. */
		for (; at != ROW_NONE; at = d->row[at].parent) {
			d->row[at].of[side].kernels += diff_first_seen(d, at, side, 0, intern_get(&s->texts, x->key.kernel));
			d->row[at].of[side].shapes += diff_first_seen(d, at, side, 1, intern_get(&s->texts, x->key.shapes));
		}
	}
}

bool diff_row_is_on(const struct diff_row *r, int side)
{
	return r->of[side].ns || r->of[side].calls;
}

/* Regions of one side alone stand for the ops of their pass that the other side has alone; a graph, of no known pass, for all. */
static void diff_join_region(struct diff *d, uint32_t region, int side)
{
	struct diff_row *to = &d->row[region];
	bool any_pass = !to->direction;
	for (uint32_t i = 0; i < d->n; i++) {
		struct diff_row *r = &d->row[i];
		if (r->region || r->kind != DIFF_COMPUTE || diff_row_is_on(r, side) || !r->of[!side].ns || (!any_pass && r->direction != to->direction))
			continue;
		to->of[!side].ns += r->of[!side].ns;
		to->of[!side].calls += r->of[!side].calls;
		to->n_replaced++;
		to->steps_unknown = true;
		r->of[!side] = (struct diff_sum){0};
	}
}

/* Which region of a pass an op went into is not known: all of them stand in the row of this one, under the name of the longest. */
static void diff_fold_regions(struct diff *d, uint32_t region, int side)
{
	struct diff_row *to = &d->row[region];
	uint32_t name = to->name, more = 0;
	int64_t longest_ns = to->of[side].ns;
	for (uint32_t i = region + 1; i < d->n; i++) {
		struct diff_row *r = &d->row[i];
		if (!r->region || r->direction != to->direction || !diff_row_is_on(r, side))
			continue;
		name = r->of[side].ns > longest_ns ? r->name : name;
		longest_ns = r->of[side].ns > longest_ns ? r->of[side].ns : longest_ns;
		to->of[side].ns += r->of[side].ns;
		to->of[side].calls += r->of[side].calls;
		r->of[side] = (struct diff_sum){0};
		more++;
	}
	if (!more)
		return;
	struct buf b = {0};
	buf_printf(&b, STR_FMT " and %u more", STR_ARG(intern_get(&d->texts, name)), more);
	to->name = intern_str(&d->texts, buf_view(&b));
	to->shown = 0;
	buf_release(&b);
}

static void diff_join_regions(struct diff *d)
{
	bool on[2] = {0};
	for (uint32_t i = 0; i < d->n; i++)
		for (int s = 0; s < 2; s++)
			on[s] |= d->row[i].region && d->row[i].of[s].ns;
	for (uint32_t i = 0; i < d->n && on[0] != on[1]; i++)
		if (d->row[i].region && d->row[i].of[on[1]].ns) {
			diff_join_region(d, i, on[1]);
			if (d->row[i].n_replaced)
				diff_fold_regions(d, i, on[1]);
		}
}

/* What rows of A alone and of B alone may have in common; 0 = nothing. */
static uint32_t diff_common(const struct diff_row *r, bool same_op)
{
	return !diff_may_be_renamed(r->kind) ? 0 : same_op ? r->same_op : r->alike;
}

/* Rows of A alone join rows of B alone that have this in common, in order: of one op with other shapes, or of ops that are alike in all but the name, since their module was renamed. Of collectives and
 * copies another name is another thing. */
static void diff_join_left_over(struct diff *d, bool same_op)
{
	uint32_t *next = mem_filled(d->texts.n, ROW_NONE); /* the first row of B alone that has it */
	uint32_t *after = mem_filled(d->n + 1, ROW_NONE);
	for (uint32_t i = d->n; i-- > 0;) {
		const uint32_t common = diff_common(&d->row[i], same_op);
		if (!diff_row_is_on(&d->row[i], 0) && common) {
			after[i] = next[common];
			next[common] = i;
		}
	}
	for (uint32_t i = 0; i < d->n; i++) {
		struct diff_row *r = &d->row[i];
		const uint32_t common = diff_common(r, same_op), to = diff_row_is_on(r, 1) || !common ? ROW_NONE : next[common];
		if (to == ROW_NONE)
			continue;
		struct diff_row *b = &d->row[to];
		next[common] = after[to];
		r->of[1] = b->of[1];
		r->steps[1] = b->steps[1];
		r->name_in_a = r->name != b->name ? r->name : 0;
		r->shapes_in_a = r->shapes != b->shapes ? r->shapes : 0;
		r->name = b->name;
		r->shapes = b->shapes;
		r->shown = b->shown;
		b->of[1] = (struct diff_sum){0};
	}
	mem_free(next);
	mem_free(after);
}

static void diff_drop_empty(struct diff *d)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < d->n; i++)
		if (diff_row_is_on(&d->row[i], 0) || diff_row_is_on(&d->row[i], 1))
			d->row[kept++] = d->row[i];
	d->n = kept;
}

static int diff_by_size(const void *a, const void *b)
{
	double x = fabs(((const struct diff_row *)a)->delta_ns), y = fabs(((const struct diff_row *)b)->delta_ns);
	return (x < y) - (x > y);
}

/* A module holds what is below it. Sums of hashes stay equal where all below is equal. */
static void diff_add_up(struct diff *d)
{
	for (uint32_t i = d->n_nodes; i-- > 0;)
		for (int s = 0; s < 2 && d->row[i].parent != ROW_NONE; s++) {
			struct diff_sum *to = &d->row[d->row[i].parent].of[s];
			const struct diff_sum *x = &d->row[i].of[s];
			to->ns += x->ns;
			to->calls += x->calls;
			diff_scatter_sum(&d->scatter, s, d->row[i].parent, i);
		}
}

static void diff_tell_delta(const struct diff *d, struct diff_row *r)
{
	r->delta_ns = diff_row_ns(d, r, 1) - diff_row_ns(d, r, 0);
	r->half_known = !r->steps_unknown && diff_scatter_half(&d->scatter, r->steps[0], r->steps[1], &r->half_ns);
}

static void diff_make_rows(struct diff *d)
{
	diff_scatter_init(&d->scatter, d->side[0], d->side[1]);
	diff_add_nodes(d);
	diff_fold(d, 0);
	diff_fold(d, 1);
	for (uint32_t i = 0; i < d->n; i++)
		d->row[i].steps[0] = d->row[i].steps[1] = i;
	if (d->by != DIFF_BY_TREE) {
		diff_join_left_over(d, true);
		diff_join_left_over(d, false);
		diff_join_regions(d);
		diff_drop_empty(d);
	}
	diff_add_up(d);
	for (uint32_t i = 0; i < d->n; i++)
		diff_tell_delta(d, &d->row[i]);
	qsort(d->row + d->n_nodes, d->n - d->n_nodes, sizeof *d->row, diff_by_size);
}

void diff_rows_init(struct diff *d, const struct diff_matched *m, enum diff_by by)
{
	const struct diff_align *x = m->align;
	const struct diff_side *a = x->side[0], *b = x->side[1];
	*d = (struct diff){.side = {a, b}, .align = x, .by = by, .paths = m->paths, .shapes = diff_side_has_shapes(a) && diff_side_has_shapes(b)};
	d->n_nodes = by == DIFF_BY_TREE ? x->n : 0;
	d->op_name = NEW_ARRAY(x->n, struct diff_op_name);
	intern_init(&d->texts);
	intern_init(&d->keys);
	intern_init(&d->seen);
	d->waits = diff_waits_new(a, b);
	diff_make_rows(d);
}

void diff_rows_release(struct diff *d)
{
	intern_release(&d->texts);
	intern_release(&d->keys);
	intern_release(&d->seen);
	diff_scatter_release(&d->scatter);
	mem_free(d->op_name);
	diff_waits_free(d->waits);
	mem_free(d->row);
}
