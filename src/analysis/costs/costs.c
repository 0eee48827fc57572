#include "analysis/costs/costs.h"

#include "analysis/names/names.h"
#include "analysis/steps/serving_steps.h"
#include "analysis/tree/expert_ops.h"
#include "analysis/tree/fwdbwd.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/rankset.h"
#include "base/search.h"
#include "base/sort.h"
#include "op/cost_rules.h"
#include "store/reuse.h"

#include <pthread.h>

enum { NOT_LOOKED = ROW_NONE - 1 };
/* In place of the direction: the key of a kernel of which only the name is known. */
enum { BY_NAME = 2 };

/* What tells two calls apart: string ids, 0 = not recorded; compared as bytes. */
struct costs_key {
	uint32_t name, dims, types, concrete, names;
	uint32_t collective, comm_dtype, in_elements, out_elements, group_size, message_bytes;
	uint32_t direction;
	uint32_t linked;
	struct costs_inner {
		uint32_t dims, types, concrete;
	} routing, up, down;      /* of ops inside, of an op whose rule asks for them */
	uint32_t batch;           /* the iteration of a server around an op whose rule asks for its batch: index + 1; 0 = none, or it states nothing of it */
};

struct costs_cache {
	const struct cost_rules *rules;
	const struct costs_cache *base; /* that of costs->base: looked at first, and never written. NULL */
	struct intern keys;       /* key -> index + 1 in costs->cost, behind those of the base */
	uint32_t cap;
	struct intern plain;      /* name, argument set and direction, which are all that the key of most spans is made of -> place + 1 in plain_at */
	uint32_t *plain_at;       /* their index in costs->cost */
	uint32_t cap_plain;
	struct costs_known *known; /* NULL = nothing is kept */
	struct cost **stable;     /* copies that do not move, for costs_of_span */
	uint32_t n_stable;
	uint32_t *linked;         /* span -> string id of a linked op's sizes, 0 = none; NULL: of none */
	uint8_t *asks;            /* string id -> enum cost_asks of the op of that name, + 1; 0 = not looked. NULL = of none */
	uint32_t n_asks;
	struct intern with_inner; /* span whose rule asks for ops inside -> index + 1 in `inner` */
	struct expert_ops *inner;
	uint32_t cap_inner;
	struct serving_iteration *iteration; /* once a rule asked (searched); in order of start */
	uint32_t n_iterations;
	bool searched;
};

/* What was asked for a profile by the rules, kept for all that ask again (store/reuse.h): as many as there are distinct calls. */
struct costs_known {
	pthread_mutex_t lock;     /* several threads ask, and add */
	struct intern keys;       /* struct costs_key -> place + 1 in v */
	struct cost *v;
	uint32_t cap;
	struct arena arena;
};

/* While the kernels are attributed. */
struct costs_work {
	struct costs *c;
	const struct profile *p;
	const struct fwdbwd *links;
	struct rankset ops;       /* the ops around device work: few of all spans. The next ones go by the place in it */
	uint32_t *cover;          /* innermost op at or around it that has a model; NOT_LOOKED */
	uint32_t *model;          /* its index in cost[]; ROW_NONE = no model; NOT_LOOKED */
	uint32_t *inside;         /* classes of the models that cover work inside it, a bit each */
	uint32_t *own;            /* classes of the models that are its own and cover work */
	uint32_t *run;            /* see marker_run; NULL = no marker was asked. ROW_NONE */
	uint32_t *joined;         /* backward op -> the one whose instance it is of; ROW_NONE = itself */
};

static void costs_known_release(void *result)
{
	struct costs_known *k = result;
	pthread_mutex_destroy(&k->lock);
	intern_release(&k->keys);
	mem_free(k->v);
	arena_release(&k->arena);
	mem_free(k);
}

static struct costs_known *costs_known_of(const struct profile *p, const struct cost_rules *rules)
{
	struct costs_known *k = reuse_find(p, &rules->kept[COST_KEPT_KNOWN]);
	if (k)
		return k;
	k = NEW(struct costs_known);
	pthread_mutex_init(&k->lock, NULL);
	intern_init(&k->keys);
	if (reuse_keep(p, &rules->kept[COST_KEPT_KNOWN], k, costs_known_release, NULL))
		return k;
	costs_known_release(k);
	return NULL;
}

static struct costs_cache *cache_new(const struct profile *p, const struct cost_rules *rules)
{
	struct costs_cache *x = NEW(struct costs_cache);
	x->rules = rules;
	x->n_asks = p->strings.n;
	x->known = costs_known_of(p, rules);
	intern_init(&x->keys);
	intern_init(&x->plain);
	intern_init(&x->with_inner);
	return x;
}

/* What the forward rule of this op asks for. Only ops that ask for a batch are told apart by iteration: all others cost the same in each. */
static enum cost_asks costs_asks(const struct profile *p, struct costs_cache *x, uint32_t name)
{
	const uint8_t *known = x->base ? x->base->asks : NULL;
	if (known && name < x->n_asks && known[name])
		return (enum cost_asks)(known[name] - 1);
	if (!x->asks)
		x->asks = NEW_ARRAY(x->n_asks, uint8_t);
	uint8_t *asks = name < x->n_asks ? &x->asks[name] : NULL;
	if (asks && *asks)
		return (enum cost_asks)(*asks - 1);
	enum cost_asks what = cost_asks(profile_str(p, name), x->rules, COST_FORWARD, p->user_rules);
	if (asks)
		*asks = (uint8_t)(what + 1);
	return what;
}

/* A sum over all requests; SERVING_NOT_TOLD. */
static int64_t costs_of_all(int64_t all, int64_t prefill, int64_t decode)
{
	return all >= 0 ? all : prefill >= 0 && decode >= 0 && prefill <= INT64_MAX - decode ? prefill + decode : SERVING_NOT_TOLD;
}

static struct op_batch costs_batch(const struct costs_cache *x, uint32_t at)
{
	if (!at)
		return (struct op_batch){0};
	const struct serving *s = &x->iteration[at - 1].says;
	return (struct op_batch){
		.pairs = costs_of_all(s->all.pairs, s->prefill.pairs, s->decode.pairs),
		.keys = costs_of_all(s->all.keys, s->prefill.keys, s->decode.keys),
		.decode_pairs = s->decode.pairs,
		.decode_keys = s->decode.keys,
	};
}

/* The iteration around an op, by time: replays and workers have threads of their own. */
static uint32_t costs_batch_at(const struct profile *p, struct costs_cache *x, uint32_t span)
{
	if (!x->searched)
		x->iteration = serving_iterations(p, &x->n_iterations);
	x->searched = true;
	int64_t start = p->span.start_ns[span];
	uint32_t at = FIRST_WHERE(i, 0, x->n_iterations, x->iteration[i].start_ns > start);
	if (!at || start >= x->iteration[at - 1].end_ns)
		return 0;
	struct op_batch b = costs_batch(x, at);
	return b.pairs > 0 || b.keys > 0 || b.decode_pairs > 0 || b.decode_keys > 0 ? at : 0;
}

static int64_t costs_number(const struct profile *p, uint32_t id)
{
	int64_t v;
	return id && str_to_i64(profile_str(p, id), &v) ? v : -1;
}

static void add_collective(const struct profile *p, uint32_t set, struct costs_key *k)
{
	k->collective = profile_arg_id(p, set, ARG_COLLECTIVE);
	k->message_bytes = profile_arg_id(p, set, ARG_MESSAGE_BYTES);
	if (!k->collective && k->message_bytes && profile_arg_id(p, set, ARG_GROUP_ID))
		k->collective = k->name; /* a function of NCCL's, which is named as its collective */
	if (!k->collective) {
		k->message_bytes = 0;
		return;
	}
	k->comm_dtype = profile_arg_id(p, set, ARG_MESSAGE_TYPE);
	k->in_elements = profile_arg_id(p, set, ARG_MESSAGE_IN);
	k->out_elements = profile_arg_id(p, set, ARG_MESSAGE_OUT);
	k->group_size = profile_arg_id(p, set, ARG_GROUP_SIZE);
}

/* The ops inside an op; each op is searched once. */
static const struct expert_ops *costs_inner_at(const struct profile *p, struct costs_cache *x, uint32_t span)
{
	const uint32_t before = x->with_inner.n, at = intern_put_key(&x->with_inner, &span, sizeof span) - 1;
	if (x->with_inner.n > before) {
		MEM_GROW(x->inner, x->cap_inner, at + 1);
		x->inner[at] = expert_ops_in(p, span);
	}
	return &x->inner[at];
}

static struct costs_inner costs_inner_of(const struct profile *p, uint32_t span)
{
	if (span == ROW_NONE)
		return (struct costs_inner){0};
	const uint32_t set = p->span.args[span];
	return (struct costs_inner){profile_arg_id(p, set, ARG_INPUT_DIMS), profile_arg_id(p, set, ARG_INPUT_TYPES), profile_arg_id(p, set, ARG_INPUT_VALUES)};
}

static struct costs_key key_of_span(const struct profile *p, struct costs_cache *x, uint32_t span, enum cost_direction d)
{
	uint32_t set = p->span.args[span];
	struct costs_key k = {.name = p->span.name[span], .direction = d};
	k.dims = profile_arg_id(p, set, ARG_INPUT_DIMS);
	k.types = profile_arg_id(p, set, ARG_INPUT_TYPES);
	k.concrete = profile_arg_id(p, set, ARG_INPUT_VALUES);
	k.names = profile_arg_id(p, set, ARG_INPUT_NAMES);
	k.linked = x->linked && d == COST_FORWARD ? x->linked[span] : 0;
	const enum cost_asks asks = d == COST_FORWARD ? costs_asks(p, x, k.name) : COST_ASKS_NOTHING;
	k.batch = asks == COST_ASKS_BATCH ? costs_batch_at(p, x, span) : 0;
	if (asks == COST_ASKS_INNER) {
		const struct expert_ops *inner = costs_inner_at(p, x, span);
		k.routing = costs_inner_of(p, inner->routing);
		k.up = costs_inner_of(p, inner->up);
		k.down = costs_inner_of(p, inner->down);
	}
	add_collective(p, set, &k);
	return k;
}

static struct op_inner costs_inner_facts(const struct profile *p, struct costs_inner x)
{
	return (struct op_inner){profile_str(p, x.dims), profile_str(p, x.types), profile_str(p, x.concrete)};
}

static struct op_facts costs_facts_of(const struct profile *p, const struct costs_cache *x, const struct costs_key *k)
{
	return (struct op_facts){
		.name = k->collective ? STR("record_param_comms") : profile_str(p, k->name),
		.dims = profile_str(p, k->dims),
		.types = profile_str(p, k->types),
		.concrete = profile_str(p, k->concrete),
		.names = profile_str(p, k->names),
		.linked = profile_str(p, k->linked),
		.collective = profile_str(p, k->collective),
		.comm_dtype = profile_str(p, k->comm_dtype),
		.in_elements = costs_number(p, k->in_elements),
		.out_elements = costs_number(p, k->out_elements),
		.group_size = costs_number(p, k->group_size),
		.message_bytes = costs_number(p, k->message_bytes),
		.batch = costs_batch(x, k->batch),
		.routing = costs_inner_facts(p, k->routing),
		.up = costs_inner_facts(p, k->up),
		.down = costs_inner_facts(p, k->down),
	};
}

static struct cost costs_ask(const struct costs_cache *x, const struct profile *p, const struct costs_key *k, struct arena *a)
{
	struct cost cost;
	struct op_facts f = costs_facts_of(p, x, k);
	cost_of(&f, x->rules, (enum cost_direction)k->direction, p->user_rules, a, &cost);
	return cost;
}

static void costs_unlock(void *known)
{
	pthread_mutex_unlock(&((struct costs_known *)known)->lock);
}

/* The same, asked once. */
static struct cost costs_ask_known(const struct costs_cache *x, const struct profile *p, const struct costs_key *k)
{
	struct costs_known *known = x->known;
	struct mem_undo undo;
	pthread_mutex_lock(&known->lock);
	mem_undo_begin(&undo, costs_unlock, known);
	const uint32_t id = intern_find_key(&known->keys, k, sizeof *k);
	const struct cost cost = id != INTERN_NONE ? known->v[id - 1] : costs_ask(x, p, k, &known->arena);
	if (id == INTERN_NONE) { /* the key last: once it is there, other threads look at its cost */
		MEM_GROW(known->v, known->cap, known->keys.n);
		known->v[known->keys.n - 1] = cost;
		intern_put_key(&known->keys, k, sizeof *k);
	}
	mem_undo_end(&undo);
	costs_unlock(known);
	return cost;
}

/* The key's index in cost[]. True: it is new, and its cost is to be set. */
static bool costs_place(struct costs *c, const struct costs_key *k, uint32_t *at)
{
	struct costs_cache *x = c->cache;
	const uint32_t others = c->base ? c->base->n : 0, known = x->base ? intern_find_key(&x->base->keys, k, sizeof *k) : INTERN_NONE;
	if (known != INTERN_NONE) {
		*at = known - 1;
		return false;
	}
	const uint32_t before = x->keys.n;
	*at = others + intern_put_key(&x->keys, k, sizeof *k) - 1;
	if (x->keys.n == before)
		return false;
	if (c->base && !x->cap) {
		c->cost = NEW_ARRAY_RAW((size_t)others + 1, struct cost);
		if (others) /* else there is no array to copy */
			memcpy(c->cost, c->base->cost, others * sizeof *c->cost);
		x->cap = others + 1;
	}
	MEM_GROW(c->cost, x->cap, *at + 1);
	c->n = *at + 1;
	return true;
}

static uint32_t costs_cost_at(struct costs *c, const struct profile *p, const struct costs_key *k)
{
	struct costs_cache *x = c->cache;
	uint32_t at;
	if (costs_place(c, k, &at))
		c->cost[at] = x->known ? costs_ask_known(x, p, k) : costs_ask(x, p, k, &c->arena);
	return at;
}

uint32_t costs_index_of_span(struct costs *c, const struct profile *p, uint32_t span, enum cost_direction d)
{
	struct costs_cache *x = c->cache;
	const uint32_t plain[3] = {p->span.name[span], p->span.args[span], d};
	const bool linked = d == COST_FORWARD && x->linked && x->linked[span];
	const uint32_t known = x->base && !linked ? intern_find_key(&x->base->plain, plain, sizeof plain) : INTERN_NONE;
	if (known != INTERN_NONE)
		return x->base->plain_at[known - 1];
	if (linked || (d == COST_FORWARD && costs_asks(p, x, plain[0]) != COST_ASKS_NOTHING)) {
		const struct costs_key k = key_of_span(p, x, span, d);
		return costs_cost_at(c, p, &k);
	}
	const uint32_t before = x->plain.n, at = intern_put_key(&x->plain, plain, sizeof plain) - 1;
	if (x->plain.n > before) {
		const struct costs_key k = key_of_span(p, x, span, d);
		MEM_GROW(x->plain_at, x->cap_plain, at + 1);
		x->plain_at[at] = costs_cost_at(c, p, &k);
	}
	return x->plain_at[at];
}

static bool is_model(const struct cost *m)
{
	return (m->flops >= 0 || m->bytes >= 0) && m->class != OP_VIEW;
}

static bool is_comm_kernel(const struct costs_work *w, uint32_t gpu)
{
	return profile_arg_id(w->p, w->p->gpu_op.args[gpu], ARG_COLLECTIVE) != 0;
}

/* The backward of one call that PyProf marked may be several nodes of autograd: its kernels are of one instance. It begins with the
 * first of these nodes, and a new one when the node of one forward op runs again (retain_graph). `run` has for the marker the node that
 * its instance began with, and for a forward op inside it the last instance that it was part of. */
static void marker_run(struct costs_work *w, uint32_t node, uint32_t forward, uint32_t marker)
{
	if (!rankset_has(&w->ops, marker))
		return;
	if (!w->run) {
		w->run = NEW_ARRAY_RAW(w->ops.members, uint32_t);
		w->joined = NEW_ARRAY_RAW(w->ops.members, uint32_t);
		for (uint32_t i = 0; i < w->ops.members; i++)
			w->run[i] = w->joined[i] = ROW_NONE;
	}
	uint32_t *now = &w->run[rankset_place(&w->ops, marker)];
	uint32_t *last = forward != marker && rankset_has(&w->ops, forward) ? &w->run[rankset_place(&w->ops, forward)] : NULL;
	if (*now == ROW_NONE || (last && *last == *now))
		*now = node;
	if (last)
		*last = *now;
	w->joined[rankset_place(&w->ops, node)] = *now;
}

/* A marker is close around what it marks. Hostile input may nest without end. */
enum { MARKER_DEPTH = 64 };

/* The backward of the forward op that its number leads to; where that has no shapes itself, of PyProf's marker around it. */
static uint32_t backward_model(struct costs_work *w, uint32_t span)
{
	uint32_t forward = fwdbwd_forward(w->links, span), at = forward;
	for (int up = 0; at != ROW_NONE && up < MARKER_DEPTH; at = w->p->span.op[at], up++) {
		bool marker = profile_arg_id(w->p, w->p->span.args[at], ARG_MARKER) != 0;
		if (at != forward && !marker)
			continue;
		uint32_t model = costs_index_of_span(w->c, w->p, at, COST_BACKWARD);
		if (is_model(&w->c->cost[model])) {
			if (marker)
				marker_run(w, span, forward, at);
			return model;
		}
	}
	return ROW_NONE;
}

/* An op's own model; without one, that of the backward of its forward op. */
static uint32_t model_of(struct costs_work *w, uint32_t span)
{
	uint32_t *model = &w->model[rankset_place(&w->ops, span)];
	if (*model != NOT_LOOKED)
		return *model;
	*model = ROW_NONE;
	uint32_t at = costs_index_of_span(w->c, w->p, span, COST_FORWARD);
	*model = is_model(&w->c->cost[at]) ? at : backward_model(w, span);
	return *model;
}

/* Each span is looked at once: what is found is noted for all on the way up. */
static uint32_t cover_of(struct costs_work *w, uint32_t span)
{
	uint32_t at = span, found = ROW_NONE;
	for (; at != ROW_NONE; at = w->p->span.op[at]) {
		uint32_t known = w->cover[rankset_place(&w->ops, at)];
		if (known != NOT_LOOKED) {
			found = known;
			break;
		}
		if (model_of(w, at) != ROW_NONE) {
			found = at;
			break;
		}
	}
	for (uint32_t i = span; i != at; i = w->p->span.op[i])
		w->cover[rankset_place(&w->ops, i)] = found;
	if (at != ROW_NONE)
		w->cover[rankset_place(&w->ops, at)] = found;
	return found;
}

static void costs_find_ops(struct costs_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	rankset_init(&w->ops, w->p->span.rows.n);
	for (uint32_t i = 0; i < g->rows.n; i++)
		for (uint32_t op = g->op[i]; op != ROW_NONE && !rankset_has(&w->ops, op); op = w->p->span.op[op])
			rankset_add(&w->ops, op);
	rankset_seal(&w->ops);
}

/* Ranges around a launch that are looked at, at most. */
enum { COSTS_LOOK_UP = 12 };

/* A collective's model by a range around its launch. Up to torch 2.2 record_param_comms lacks the types; the range "nccl:all_reduce", which is not an op, has them. */
static uint32_t costs_of_range(struct costs_work *w, uint32_t gpu)
{
	const struct profile *p = w->p;
	uint32_t at = p->gpu_op.call[gpu];
	for (int i = 0; i < COSTS_LOOK_UP && at != ROW_NONE; i++, at = p->span.parent[at]) {
		if (p->span.kind[at] == SPAN_OP || !name_is(p, p->span.name[at], NAME_COMM))
			continue;
		uint32_t model = costs_index_of_span(w->c, p, at, COST_FORWARD);
		if (is_model(&w->c->cost[model]))
			return model;
	}
	return ROW_NONE;
}

static void costs_attribute(struct costs_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct costs *c = w->c;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		uint32_t op = g->op[i], cover = op == ROW_NONE ? ROW_NONE : cover_of(w, op);
		bool kernel = g->kind[i] == GPU_KERNEL;
		c->of_gpu[i] = ROW_NONE;
		c->op[i] = op;
		if (kernel && is_comm_kernel(w, i)) {
			/* The kernel says itself what it sends. */
			struct costs_key k = {0};
			add_collective(w->p, g->args[i], &k);
			uint32_t at = costs_cost_at(c, w->p, &k);
			c->of_gpu[i] = is_model(&c->cost[at]) ? at : ROW_NONE;
			c->parts[i] = 1;
		} else if (cover != ROW_NONE) {
			uint32_t place = rankset_place(&w->ops, cover);
			c->of_gpu[i] = w->model[place];
			c->op[i] = w->joined && w->joined[place] != ROW_NONE ? w->joined[place] : cover;
		} else if (kernel && name_is(w->p, g->name[i], NAME_COMM_KERNEL)) {
			c->of_gpu[i] = costs_of_range(w, i);
			c->parts[i] = c->of_gpu[i] != ROW_NONE;
		}
		int64_t ns = kernel ? g->dur_ns[i] : 0;
		c->kernel_ns += ns;
		if (c->of_gpu[i] != ROW_NONE)
			c->modelled_ns += ns;
		else if (op != ROW_NONE)
			c->unmodelled_ns += ns;
		else
			c->unattributed_ns += ns;
	}
}

/* Kernel classes that do the work of an op's class; 0 = any. */
static uint32_t fitting(enum op_class class)
{
#define BIT(k) (1u << KERNEL_##k)
	static const uint32_t fit[OP_CLASSES] = {
		[OP_GEMM] = BIT(GEMM),
		[OP_CONV] = BIT(CONV) | BIT(GEMM),
		[OP_ATTENTION] = BIT(ATTENTION) | BIT(GEMM),
		[OP_RNN] = BIT(RNN) | BIT(GEMM),
		[OP_NORM] = BIT(NORM),
		[OP_SOFTMAX] = BIT(SOFTMAX),
		[OP_ELEMENTWISE] = BIT(ELEMENTWISE),
		[OP_REDUCE] = BIT(REDUCE),
		[OP_POOL] = BIT(POOL),
		[OP_EMBEDDING] = BIT(EMBEDDING),
		[OP_COPY] = BIT(COPY) | BIT(ELEMENTWISE),
		[OP_RANDOM] = BIT(RANDOM),
		[OP_SORT] = BIT(SORT),
		[OP_OPTIMIZER] = BIT(OPTIMIZER),
		[OP_COMM] = BIT(COMM),
	};
#undef BIT
	return fit[class];
}

static bool costs_fits(struct costs_work *w, uint32_t gpu, enum op_class class)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	if (g->kind[gpu] != GPU_KERNEL)
		return class == (g->kind[gpu] == GPU_MEMCPY ? OP_COPY : OP_FILL);
	return fitting(class) >> gpu_kernel(w->p, gpu)->class & 1;
}

/* Work that supports an op and is not the op's own: an inner copy does not mean that the op around it is modelled by it. */
bool costs_counts_inside(const struct cost *outer, uint32_t inside)
{
#define BIT(c) (1u << OP_##c)
	const uint32_t helpers = BIT(COPY) | BIT(FILL) | BIT(RANDOM) | BIT(VIEW), heavy = BIT(GEMM) | BIT(CONV) | BIT(ATTENTION) | BIT(RNN);
#undef BIT
	uint32_t bit = 1u << outer->class;
	if (outer->apart)
		return false;
	if (bit & heavy)
		return inside & (heavy | bit);
	return inside & (bit | ~helpers);
}

/* Children stand behind their parents, so that going backwards brings all classes up. */
static void note_inside(struct costs_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	for (uint32_t i = 0; i < g->rows.n; i++)
		if (w->c->of_gpu[i] != ROW_NONE && w->c->op[i] != ROW_NONE)
			w->own[rankset_place(&w->ops, w->c->op[i])] |= 1u << w->c->cost[w->c->of_gpu[i]].class;
	uint32_t at = w->ops.members;
	for (uint32_t i = w->p->span.rows.n; i-- > 0;) {
		if (!rankset_has(&w->ops, i))
			continue;
		at--;
		uint32_t up = w->p->span.op[i], all = w->own[at] | w->inside[at];
		if (all && up != ROW_NONE && up < i)
			w->inside[rankset_place(&w->ops, up)] |= all;
	}
}

/* Two parts of different size go to two kernels that fit, in order of start. If not just two kernels fit, both parts go to the longest that fits. */
static void costs_deal_uneven(struct costs_work *w, const struct sort_item *list, uint32_t n, enum op_class class)
{
	const int64_t *start_ns = w->p->gpu_op.start_ns;
	uint32_t fits = 0, at[2] = {list[0].row, ROW_NONE};
	for (uint32_t i = 0; i < n; i++)
		if (costs_fits(w, list[i].row, class) && fits++ < 2)
			at[fits - 1] = list[i].row;
	if (fits != 2) {
		w->c->parts[at[0]] = COSTS_FIRST | COSTS_SECOND;
		return;
	}
	const bool in_order = start_ns[at[0]] < start_ns[at[1]] || (start_ns[at[0]] == start_ns[at[1]] && at[0] < at[1]);
	w->c->parts[at[0]] = in_order ? COSTS_FIRST : COSTS_SECOND;
	w->c->parts[at[1]] = in_order ? COSTS_SECOND : COSTS_FIRST;
}

/* One instance: device work list[0..n-1], the longest first. Its parts go to the longest that fit. */
static void deal_out(struct costs_work *w, const struct sort_item *list, uint32_t n)
{
	uint32_t first = list[0].row, span = w->c->op[first];
	const struct cost *m = &w->c->cost[w->c->of_gpu[first]];
	int left = m->parts;
	bool any = false;
	if (span != ROW_NONE && costs_counts_inside(m, w->inside[rankset_place(&w->ops, span)]))
		return;
	if (m->uneven) {
		costs_deal_uneven(w, list, n, m->class);
		return;
	}
	for (uint32_t i = 0; i < n && left > 0; i++)
		if (costs_fits(w, list[i].row, m->class)) {
			w->c->parts[list[i].row] = 1;
			left--;
			any = true;
		}
	/* Nothing fits: names tell nothing, so the longest ones. */
	for (uint32_t i = 0; i < n && !any && left > 0; i++, left--)
		w->c->parts[list[i].row] = 1;
}

static void count_once(struct costs_work *w)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct sort_item *list = NEW_ARRAY_RAW(g->rows.n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->rows.n; i++)
		if (w->c->of_gpu[i] != ROW_NONE && w->c->parts[i] == 0)
			list[n++] = (struct sort_item){UINT64_MAX - (uint64_t)g->dur_ns[i], i, 0};
	sort_items(list, n);
	for (uint32_t i = 0; i < n; i++)
		list[i].key = w->c->op[list[i].row];
	sort_items(list, n); /* equal keys keep their order: the longest first */
	for (uint32_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && list[to].key == list[from].key;)
			to++;
		deal_out(w, list + from, to - from);
	}
	mem_free(list);
}

static uint8_t costs_is_convolution(struct str name) { return str_has(name, STR("onvolution")); }

void costs_link(struct costs *c, const struct profile *p, const struct fwdbwd *links)
{
	struct costs_cache *x = c->cache;
	if (x->linked || profile_has_arg(p, ARG_INPUT_VALUES) || x->rules != &cost_own || !profile_has_arg(p, ARG_INPUT_DIMS))
		return;
	struct name_memo convolutions = name_memo_new(p, costs_is_convolution);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_OP || !name_memo_of(&convolutions, p->span.name[i]))
			continue;
		struct str name = profile_str(p, p->span.name[i]);
		bool weight = str_ends(name, STR("convolution_backward_weight"));
		uint32_t forward = weight ? ROW_NONE : fwdbwd_forward(links, i), around = weight ? p->span.op[i] : ROW_NONE;
		bool is_node = forward != ROW_NONE && str_has(name, STR("Backward")) && str_has(profile_str(p, p->span.name[forward]), STR("convolution"));
		if (!is_node && (around == ROW_NONE || !str_ends(profile_str(p, p->span.name[around]), STR("convolution_backward"))))
			continue;
		if (!x->linked)
			x->linked = NEW_ARRAY(p->span.rows.n, uint32_t);
		uint32_t of = is_node ? forward : i, dims = profile_arg_id(p, p->span.args[is_node ? i : around], ARG_INPUT_DIMS);
		x->linked[of] = dims ? dims : x->linked[of];
	}
	name_memo_release(&convolutions);
}

static void costs_release(void *result)
{
	struct costs *c = result;
	struct costs_cache *x = c->cache;
	mem_free(!c->base || x->cap ? c->cost : NULL);
	if (!c->base) {
		mem_free(c->of_gpu);
		mem_free(c->op);
		mem_free(c->parts);
	}
	intern_release(&x->keys);
	intern_release(&x->plain);
	mem_free(x->plain_at);
	intern_release(&x->with_inner);
	mem_free(x->inner);
	mem_free(x->stable);
	mem_free(x->base && x->linked == x->base->linked ? NULL : x->linked);
	mem_free(x->asks);
	mem_free(x->base && x->iteration == x->base->iteration ? NULL : x->iteration);
	mem_free(x);
	arena_release(&c->arena);
	mem_free(c);
}

void costs_free(struct costs *c)
{
	if (c && !c->is_kept)
		costs_release(c);
}

/* Those of one that is kept, for somebody who may add to them: others look at that one meanwhile. */
static struct costs *costs_beside(const struct costs *base)
{
	struct costs *c = NEW(struct costs);
	struct costs_cache *x = NEW(struct costs_cache);
	*c = *base;
	*x = (struct costs_cache){.rules = base->cache->rules, .base = base->cache, .known = base->cache->known, .linked = base->cache->linked, .n_asks = base->cache->n_asks,
	                          .iteration = base->cache->iteration, .n_iterations = base->cache->n_iterations, .searched = base->cache->searched};
	c->base = base;
	c->cache = x;
	c->arena = (struct arena){0};
	c->is_kept = false;
	intern_init(&x->keys);
	intern_init(&x->plain);
	intern_init(&x->with_inner);
	return c;
}

struct costs *costs_new_linked(const struct profile *p, const struct cost_rules *rules, const struct fwdbwd *links)
{
	const struct costs *kept = reuse_find(p, &rules->kept[COST_KEPT_ALL]);
	if (kept)
		return costs_beside(kept);
	struct costs *c = NEW(struct costs);
	uint32_t n_gpu = p->gpu_op.rows.n;
	struct costs_work w = {.c = c, .p = p, .links = links};
	c->cache = cache_new(p, rules);
	c->of_gpu = NEW_ARRAY_RAW(n_gpu, uint32_t);
	c->op = NEW_ARRAY_RAW(n_gpu, uint32_t);
	c->parts = NEW_ARRAY(n_gpu, uint8_t);
	costs_link(c, p, w.links);
	costs_find_ops(&w);
	uint32_t n_ops = w.ops.members;
	w.cover = NEW_ARRAY_RAW(n_ops, uint32_t);
	w.model = NEW_ARRAY_RAW(n_ops, uint32_t);
	w.inside = NEW_ARRAY(n_ops, uint32_t);
	w.own = NEW_ARRAY(n_ops, uint32_t);
	for (uint32_t i = 0; i < n_ops; i++)
		w.cover[i] = w.model[i] = NOT_LOOKED;
	costs_attribute(&w);
	note_inside(&w);
	count_once(&w);
	mem_free(w.cover);
	mem_free(w.model);
	mem_free(w.inside);
	mem_free(w.own);
	mem_free(w.run);
	mem_free(w.joined);
	rankset_release(&w.ops);
	c->n_made = c->n;
	return reuse_keep(p, &rules->kept[COST_KEPT_ALL], c, costs_release, &c->is_kept) ? costs_beside(c) : c;
}

struct costs *costs_new(const struct profile *p, const struct cost_rules *rules)
{
	struct fwdbwd *links = fwdbwd_new(p);
	struct costs *c = costs_new_linked(p, rules, links);
	fwdbwd_free(links);
	return c;
}

struct costs *costs_models(const struct profile *p, const struct cost_rules *rules)
{
	struct costs *c = NEW(struct costs);
	c->cache = cache_new(p, rules);
	return c;
}

static int64_t carried(const struct costs *c, uint32_t gpu, int64_t all, int64_t first)
{
	const struct cost *m = &c->cost[c->of_gpu[gpu]];
	const uint8_t parts = c->parts[gpu];
	if (parts == 0)
		return 0;
	if (all < 0)
		return COST_UNKNOWN;
	return m->uneven ? (parts & COSTS_FIRST ? first : 0) + (parts & COSTS_SECOND ? all - first : 0) : all / m->parts * parts;
}

int64_t costs_flops(const struct costs *c, uint32_t gpu)
{
	const struct cost *m = c->of_gpu[gpu] == ROW_NONE ? NULL : &c->cost[c->of_gpu[gpu]];
	return m ? carried(c, gpu, m->flops, m->first.flops) : COST_UNKNOWN;
}

int64_t costs_bytes(const struct costs *c, uint32_t gpu)
{
	const struct cost *m = c->of_gpu[gpu] == ROW_NONE ? NULL : &c->cost[c->of_gpu[gpu]];
	return m ? carried(c, gpu, m->bytes, m->first.bytes) : COST_UNKNOWN;
}

int64_t costs_bytes_least(const struct costs *c, uint32_t gpu)
{
	const struct cost *m = c->of_gpu[gpu] == ROW_NONE ? NULL : &c->cost[c->of_gpu[gpu]];
	return m ? carried(c, gpu, m->bytes_least, m->first.bytes_least) : COST_UNKNOWN;
}

uint32_t costs_index_of_name(struct costs *c, const struct profile *p, uint32_t kernel_name, enum op_class class, enum dtype t)
{
	struct costs_key k = {.name = kernel_name, .dims = class, .types = t, .direction = BY_NAME};
	uint32_t at;
	if (!costs_place(c, &k, &at))
		return at;
	c->cost[at] = (struct cost){.flops = COST_UNKNOWN, .bytes = COST_UNKNOWN, .bytes_least = COST_UNKNOWN, .bytes_read = COST_UNKNOWN, .bytes_written = COST_UNKNOWN,
	                            .wire_bytes = COST_UNKNOWN, .message_bytes = COST_UNKNOWN, .class = class, .parts = 1, .tc_eligible = TRI_UNKNOWN, .dtype = t,
	                            .params = profile_str(p, kernel_name), .why = class == OP_UNKNOWN ? STR("its op has no model, or no shapes were recorded") : STR("no shapes were recorded for this kernel"),
	                            .flops_causal = COST_UNKNOWN};
	return at;
}

struct op_facts costs_facts(const struct costs *c, const struct profile *p, uint32_t index, enum cost_direction *d)
{
	struct costs_key k;
	const uint32_t others = c->base ? c->base->n : 0;
	memcpy(&k, index < others ? c->base->cache->keys.entry[index + 1].p : c->cache->keys.entry[index - others + 1].p, sizeof k);
	*d = (enum cost_direction)k.direction;
	return costs_facts_of(p, c->cache, &k);
}

const struct cost *costs_of_span(struct costs *c, const struct profile *p, uint32_t span, enum cost_direction d)
{
	struct costs_cache *x = c->cache;
	uint32_t at = costs_index_of_span(c, p, span, d), before = x->n_stable;
	if (at >= x->n_stable) {
		MEM_GROW(x->stable, x->n_stable, at + 1);
		memset(x->stable + before, 0, (x->n_stable - before) * sizeof *x->stable);
	}
	if (!x->stable[at]) {
		x->stable[at] = arena_alloc(&c->arena, sizeof **x->stable);
		*x->stable[at] = c->cost[at];
	}
	return x->stable[at];
}
