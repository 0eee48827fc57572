#include "report/parts/group_tree.h"

#include "analysis/analysis.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

static uint32_t group_tree_group_at(struct group_tree *t, uint32_t parent, struct str part)
{
	struct group *up = parent == GROUP_NONE ? NULL : &t->v[parent];
	if (up && up->depth + 1 >= GROUP_DEPTH_MAX)
		return parent;
	buf_clear(&t->key);
	buf_put(&t->key, &parent, sizeof parent);
	buf_str(&t->key, part);
	uint32_t at = intern_str(&t->keys, buf_view(&t->key)) - 1;
	if (at < t->n)
		return at;
	struct group g = {.parent = parent, .depth = up ? up->depth + 1 : 0};
	g.name = up ? arena_printf(&t->texts, STR_FMT STR_FMT "/", STR_ARG(up->name), STR_ARG(part)) : arena_str(&t->texts, part);
	g.part = up ? arena_str(&t->texts, part) : g.name;
	MEM_PUSH(t->v, t->n, t->cap, g);
	return at;
}

/* The group of a path "/a/b/". */
static uint32_t group_of_path(struct group_tree *t, struct str path)
{
	uint32_t at = 1;
	struct str part;
	while (str_split(&path, '/', &part))
		if (part.n)
			at = group_tree_group_at(t, at, part);
	return at;
}

/* The group of an op whose place the input does not tell: by direction and type. */
static uint32_t group_of_type(struct group_tree *t, const struct op *op)
{
	struct str direction = arena_printf(&t->texts, "(%s)", direction_name[op->direction]);
	return group_tree_group_at(t, group_tree_group_at(t, 1, direction), op->type);
}

void group_tree_init(struct group_tree *t, const struct profile *p, bool by_type)
{
	const struct ops *o = p->ops;
	*t = (struct group_tree){.of_op = NEW_ARRAY(o->n_ops, uint32_t)};
	intern_init(&t->keys);
	group_tree_group_at(t, GROUP_NONE, STR("_CompleteModel_"));
	group_tree_group_at(t, GROUP_NONE, STR("/"));
	for (uint32_t k = 0; k < o->n_instances; k++) {
		uint32_t i = o->instance[k].op;
		const struct op *op = &o->op[i];
		if (op->unassociated || op->first != k)
			continue;
		if (by_type && op->path_n <= 1)
			t->of_op[i] = group_of_type(t, op);
		else
			t->of_op[i] = group_of_path(t, (struct str){op->name.p, op->path_n});
	}
}

void group_tree_release(struct group_tree *t)
{
	mem_free(t->v);
	mem_free(t->of_op);
	arena_release(&t->texts);
	intern_release(&t->keys);
	buf_release(&t->key);
}

/* Group 0 is everything; "/" and all groups in it are parts of group 0. */
static uint32_t above(const struct group_tree *t, uint32_t g)
{
	return g == 0 ? GROUP_NONE : g == 1 ? 0 : t->v[g].parent;
}

/* --- unions ----------------------------------------------------------------------------------------------------- */

struct group_tree_piece {
	int64_t start, end;
	uint32_t instance, device;
};

struct group_tree_pieces {
	struct group_tree_piece *v;
	uint32_t n, cap;
};

/* The state of a group while the pieces come in order of iteration, device and start. */
struct group_tree_running {
	int64_t end;              /* end of the time covered so far in this segment */
	int64_t sum;              /* in this iteration */
	uint32_t segment, iteration;
	uint32_t iterations;      /* iterations that are over */
};

struct group_tree_sweep {
	struct group_tree *t;
	const struct profile *p;
	const uint32_t *iteration_of; /* instance -> iteration; n_iterations = in none; UINT32_MAX = not counted */
	uint32_t n_iterations;
	struct group_tree_running *at;       /* by group */
	enum op_time what;
};

static void group_tree_add_ns(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = INT64_MAX;
}

static void add_piece(struct group_tree_pieces *x, int64_t start, int64_t end, uint32_t instance, uint32_t device)
{
	if (start < end)
		MEM_PUSH(x->v, x->n, x->cap, (struct group_tree_piece){start, end, instance, device});
}

/* Closes the iteration of a group. */
static void close_iteration(struct group_tree_sweep *s, uint32_t g)
{
	struct group_tree_running *r = &s->at[g];
	struct op_stat *x = &s->t->v[g].time[s->what];
	if (r->iteration == UINT32_MAX)
		return;
	group_tree_add_ns(&x->total, r->sum);
	if (r->iteration != s->n_iterations) {
		x->min = !r->iterations || r->sum < x->min ? r->sum : x->min;
		x->max = !r->iterations || r->sum > x->max ? r->sum : x->max;
		r->iterations++;
	}
	r->sum = 0;
}

static void add_to_groups(struct group_tree_sweep *s, const struct group_tree_piece *x, uint32_t segment)
{
	uint32_t iteration = s->iteration_of[x->instance];
	for (uint32_t g = s->t->of_op[s->p->ops->instance[x->instance].op]; g != GROUP_NONE; g = above(s->t, g)) {
		struct group_tree_running *r = &s->at[g];
		if (r->iteration != iteration) {
			close_iteration(s, g);
			r->iteration = iteration;
		}
		int64_t from = r->segment == segment && r->end > x->start ? r->end : x->start;
		if (r->segment != segment || x->end > r->end)
			r->end = x->end;
		r->segment = segment;
		if (x->end > from)
			group_tree_add_ns(&r->sum, x->end - from);
	}
}

/* Sorted by iteration, then device, then start. */
static void group_tree_sort_pieces(const struct group_tree_sweep *s, struct group_tree_pieces *x)
{
	struct sort_item *v = NEW_ARRAY_RAW(x->n, struct sort_item);
	struct group_tree_piece *sorted = NEW_ARRAY_RAW(x->n, struct group_tree_piece);
	for (uint32_t i = 0; i < x->n; i++)
		v[i] = (struct sort_item){.key = sort_key_i64(x->v[i].start), .row = i};
	sort_items(v, x->n);
	for (uint32_t i = 0; i < x->n; i++)
		v[i].key = (uint64_t)s->iteration_of[x->v[v[i].row].instance] << 32 | x->v[v[i].row].device;
	sort_items(v, x->n);
	for (uint32_t i = 0; i < x->n; i++)
		sorted[i] = x->v[v[i].row];
	mem_free(x->v);
	mem_free(v);
	x->v = sorted;
	x->cap = x->n;
}

static void group_tree_sweep(struct group_tree_sweep *s, enum op_time what, struct group_tree_pieces *x)
{
	s->what = what;
	for (uint32_t g = 0; g < s->t->n; g++)
		s->at[g] = (struct group_tree_running){.segment = UINT32_MAX, .iteration = UINT32_MAX};
	group_tree_sort_pieces(s, x);
	uint32_t segment = 0;
	for (uint32_t i = 0; i < x->n; i++) {
		segment += i && (x->v[i].device != x->v[i - 1].device ||
		                 s->iteration_of[x->v[i].instance] != s->iteration_of[x->v[i - 1].instance]);
		add_to_groups(s, &x->v[i], segment);
	}
	for (uint32_t g = 0; g < s->t->n; g++) {
		close_iteration(s, g);
		/* Counts the iterations in which the group ran without any of this time. */
		if (s->at[g].iterations < s->t->v[g].iterations)
			s->t->v[g].time[what].min = 0;
	}
	x->n = 0;
}

/* --- pieces ----------------------------------------------------------------------------------------------------- */

static void ranges(const struct group_tree_sweep *s, struct group_tree_pieces *x)
{
	for (uint32_t k = 0; k < s->p->ops->n_instances; k++)
		if (s->iteration_of[k] != UINT32_MAX)
			add_piece(x, s->p->ops->instance[k].start_ns, s->p->ops->instance[k].end_ns, k, 0);
}

static uint32_t group_tree_device_of(const struct profile *p, uint32_t gpu)
{
	uint32_t launch = p->gpu_op.launch[gpu];
	return launch == ROW_NONE ? 0 : (uint32_t)p->launch.device[launch];
}

static void group_tree_device_work(const struct group_tree_sweep *s, struct group_tree_pieces *x)
{
	for (uint32_t g = 0; g < s->p->gpu_op.rows.n; g++)
		if (s->iteration_of[s->p->ops->of_gpu[g]] != UINT32_MAX)
			add_piece(x, s->p->gpu_op.start_ns[g], gpu_end(s->p, g), s->p->ops->of_gpu[g], group_tree_device_of(s->p, g));
}

/* The gaps between the first and the last device work of each call, on each device. The work of an instance is sorted by start. */
static void gaps(const struct group_tree_sweep *s, struct group_tree_pieces *x)
{
	const struct profile *p = s->p;
	struct sort_item *v = NULL;
	uint32_t cap = 0;
	for (uint32_t k = 0; k < p->ops->n_instances; k++) {
		const struct op_instance *in = &p->ops->instance[k];
		int64_t end = 0;
		if (s->iteration_of[k] == UINT32_MAX || in->gpu_n < 2)
			continue;
		MEM_GROW(v, cap, in->gpu_n);
		for (uint32_t i = 0; i < in->gpu_n; i++) {
			uint32_t g = p->ops->gpu[in->gpu_first + i];
			v[i] = (struct sort_item){.key = group_tree_device_of(p, g), .row = g};
		}
		sort_items(v, in->gpu_n);
		for (uint32_t i = 0; i < in->gpu_n; i++) {
			bool first = !i || v[i].key != v[i - 1].key;
			if (!first)
				add_piece(x, end, p->gpu_op.start_ns[v[i].row], k, (uint32_t)v[i].key);
			end = first || gpu_end(p, v[i].row) > end ? gpu_end(p, v[i].row) : end;
		}
	}
	mem_free(v);
}

/* Each range less the API calls on its thread. Calls are sorted by thread and start. */
static void overheads(const struct group_tree_sweep *s, struct group_tree_pieces *x)
{
	const struct spans *t = &s->p->span;
	const struct ops *o = s->p->ops;
	int64_t *done = NEW_ARRAY_RAW(o->n_instances, int64_t);
	for (uint32_t k = 0; k < o->n_instances; k++)
		done[k] = o->instance[k].start_ns;
	for (uint32_t i = 0; i < t->rows.n; i++) {
		uint32_t k = t->kind[i] == SPAN_CALL ? o->of_span[i] : ROW_NONE;
		if (k == ROW_NONE || s->iteration_of[k] == UINT32_MAX || o->instance[k].span == ROW_NONE ||
		    t->track[o->instance[k].span] != t->track[i])
			continue;
		int64_t to = t->start_ns[i] < o->instance[k].end_ns ? t->start_ns[i] : o->instance[k].end_ns;
		add_piece(x, done[k], to, k, 0);
		done[k] = span_end(s->p, i) > done[k] ? span_end(s->p, i) : done[k];
	}
	for (uint32_t k = 0; k < o->n_instances; k++)
		if (s->iteration_of[k] != UINT32_MAX)
			add_piece(x, done[k], o->instance[k].end_ns, k, 0);
	mem_free(done);
}

/* --- counts ----------------------------------------------------------------------------------------------------- */

static uint32_t group_tree_iteration_at(const struct group_iterations *it, int64_t ns)
{
	uint32_t later = FIRST_WHERE(i, 0, it->n, it->start_ns[i] > ns);
	return later && ns < it->end_ns[later - 1] ? later - 1 : it->n;
}

enum { RAN = 1, USED = 2 };

static bool group_tree_uses_tc(const struct profile *p, uint32_t k, struct op_tc *tc)
{
	const struct op_instance *x = &p->ops->instance[k];
	for (uint32_t i = 0; i < x->gpu_n; i++)
		if (op_tc_of(tc, p->ops->gpu[x->gpu_first + i]) == TRI_YES)
			return true;
	return false;
}

/* Instances are sorted by start, and so by iteration, except for device work of no call. */
static void group_tree_count(struct group_tree_sweep *s, struct op_tc *tc, const struct op_rules *rules)
{
	const struct ops *o = s->p->ops;
	uint8_t *op_bits = NEW_ARRAY(o->n_ops, uint8_t);
	uint32_t *last = NEW_ARRAY_RAW(s->t->n, uint32_t);
	memset(last, 0xff, s->t->n * sizeof *last);
	for (uint32_t k = 0; k < o->n_instances; k++) {
		uint32_t iteration = s->iteration_of[k];
		if (iteration == UINT32_MAX)
			continue;
		op_bits[o->instance[k].op] |= RAN;
		if (!(op_bits[o->instance[k].op] & USED) && group_tree_uses_tc(s->p, k, tc))
			op_bits[o->instance[k].op] |= USED;
		for (uint32_t g = s->t->of_op[o->instance[k].op]; g != GROUP_NONE; g = above(s->t, g)) {
			s->t->v[g].calls++;
			s->t->v[g].iterations += last[g] != iteration && iteration != s->n_iterations;
			last[g] = iteration;
		}
	}
	for (uint32_t i = 0; i < o->n_ops; i++)
		for (uint32_t g = s->t->of_op[i]; g != GROUP_NONE && op_bits[i]; g = above(s->t, g)) {
			struct group *x = &s->t->v[g];
			bool eligible = rules->by_type ? o->op[i].tc_eligible : op_eligible(&o->op[i]);
			x->ops++;
			x->eligible += eligible;
			x->using_tc += (op_bits[i] & USED) != 0;
			x->eligible_using_tc += (op_bits[i] & USED) && eligible;
		}
	mem_free(op_bits);
	mem_free(last);
}

void group_tree_measure(struct group_tree *t, const struct profile *p, const struct window *w, const struct group_iterations *it,
                        const struct op_rules *asked)
{
	static const struct op_rules own = {0};
	const struct op_rules *rules = asked ? asked : &own;
	struct op_tc *tc = op_tc_new(p, rules->listed_kernels);
	const struct ops *o = p->ops;
	uint32_t *iteration_of = NEW_ARRAY_RAW(o->n_instances, uint32_t);
	struct group_tree_sweep s = {.t = t, .p = p, .iteration_of = iteration_of, .n_iterations = it->n, .at = NEW_ARRAY(t->n, struct group_tree_running)};
	struct group_tree_pieces x = {0};
	for (uint32_t k = 0; k < o->n_instances; k++) {
		bool skip = (rules->recorded_calls && o->instance[k].span == ROW_NONE) || !op_in_window(p, k, w);
		iteration_of[k] = skip ? UINT32_MAX : group_tree_iteration_at(it, o->instance[k].start_ns);
	}
	group_tree_count(&s, tc, rules);
	ranges(&s, &x);
	group_tree_sweep(&s, OP_CPU, &x);
	group_tree_device_work(&s, &x);
	group_tree_sweep(&s, OP_GPU, &x);
	overheads(&s, &x);
	group_tree_sweep(&s, OP_OVERHEAD, &x);
	gaps(&s, &x);
	group_tree_sweep(&s, OP_IDLE, &x);
	mem_free(x.v);
	mem_free(s.at);
	mem_free(iteration_of);
	op_tc_free(tc);
}
