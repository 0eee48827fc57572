#include "detect/parts/collectives.h"

#include "analysis/names/names.h"
#include "base/search.h"
#include "base/sort.h"
#include "detect/parts/inside.h"

/* Parts of names of ranges around a launch: autograd functions and wrappers of Megatron, DeepSpeed, PyTorch. First match counts. */
static const struct {
	const char *part;
	enum collective_use use;
} range_names[] = {
	{"ModelParallelRegion", COLLECTIVE_LAYERS}, {"SequenceParallelRegion", COLLECTIVE_LAYERS}, {"TensorParallel", COLLECTIVE_LAYERS},
	{"VocabParallel", COLLECTIVE_LAYERS}, {"ColumnParallel", COLLECTIVE_LAYERS}, {"RowParallel", COLLECTIVE_LAYERS},
	{"AndAsyncCommunication", COLLECTIVE_LAYERS}, {"tensor_model_parallel_all", COLLECTIVE_LAYERS}, {"_AllToAll", COLLECTIVE_LAYERS},
	{"FullyShardedDataParallel", COLLECTIVE_SHARDS}, {"FSDP::", COLLECTIVE_SHARDS}, {"runtime/zero/", COLLECTIVE_SHARDS},
	{"torch::autograd::AccumulateGrad", COLLECTIVE_GRADIENTS},
};

/* Words of a group's description, apart from one another by anything that is not a letter: "mesh_tp", "TENSOR_MODEL_PARALLEL_GROUP". */
static const struct {
	const char *word;
	enum collective_use use;
} group_words[] = {
	{"tp", COLLECTIVE_LAYERS}, {"tensor", COLLECTIVE_LAYERS}, {"ep", COLLECTIVE_LAYERS}, {"expert", COLLECTIVE_LAYERS}, {"cp", COLLECTIVE_LAYERS},
	{"context", COLLECTIVE_LAYERS}, {"fsdp", COLLECTIVE_SHARDS}, {"shard", COLLECTIVE_SHARDS}, {"dp", COLLECTIVE_GRADIENTS},
	{"data", COLLECTIVE_GRADIENTS}, {"ddp", COLLECTIVE_GRADIENTS},
};

static uint8_t use_of_range(struct str name)
{
	for (size_t i = 0; i < sizeof range_names / sizeof *range_names; i++)
		if (str_has(name, str_from(range_names[i].part)))
			return (uint8_t)range_names[i].use;
	return COLLECTIVE_UNKNOWN;
}

static bool collectives_is_letter(char x) { return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z'); }

static bool collectives_is_word(struct str s, const char *word)
{
	size_t n = strlen(word);
	for (size_t i = 0; i < s.n && i < n; i++)
		if ((s.p[i] | 0x20) != word[i])
			return false;
	return s.n == n;
}

static enum collective_use use_of_group(struct str text)
{
	for (size_t i = 0, k; i < text.n; i = k + 1) {
		for (k = i; k < text.n && collectives_is_letter(text.p[k]); k++)
			;
		for (size_t w = 0; w < sizeof group_words / sizeof *group_words; w++)
			if (collectives_is_word((struct str){text.p + i, k - i}, group_words[w].word))
				return group_words[w].use;
	}
	return COLLECTIVE_UNKNOWN;
}

/* An argument of the kernel, else of the nearest range around its launch that has it. */
static bool find_arg(const struct profile *p, uint32_t g, enum arg_key key, struct str *value)
{
	bool found = profile_arg(p, p->gpu_op.args[g], key, value) && value->n;
	uint32_t at = p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
	for (; !found && at != ROW_NONE; at = p->span.parent[at])
		found = profile_arg(p, p->span.args[at], key, value) && value->n;
	return found;
}

struct str collective_name(const struct profile *p, uint32_t g)
{
	struct str s;
	if (profile_arg(p, p->gpu_op.args[g], ARG_COLLECTIVE, &s) && s.n)
		return s;
	s = profile_str(p, p->gpu_op.name[g]);
	const char *args = memchr(s.p, '(', s.n);
	return args && args > s.p ? (struct str){s.p, (size_t)(args - s.p)} : s;
}

static int64_t wire_bytes(const struct costs *k, uint32_t g)
{
	return k->of_gpu[g] != ROW_NONE && k->cost[k->of_gpu[g]].class == OP_COMM && k->parts[g] ? k->cost[k->of_gpu[g]].wire_bytes : -1;
}

struct collectives_work {
	const struct profile *p;
	const struct step_time *w;
	struct collectives *out;
	struct gpus gpus;
	uint8_t *comm;            /* by gpu_op */
	uint32_t *gpu;            /* by gpu_op: index into out->gpu; ROW_NONE: not in the steps */
	struct intervals *other;  /* by out->gpu */
};

/* The GPUs that have work in the steps; place[index of all] = index of these. */
static void collectives_find_gpus(struct collectives_work *x, uint32_t *place)
{
	struct collectives *c = x->out;
	c->gpu = NEW_ARRAY(x->gpus.n, struct collective_gpu);
	for (uint32_t i = 0; i < x->gpus.n; i++) {
		place[i] = c->n_gpus;
		if (x->w->gpu[i].busy.n)
			c->gpu[c->n_gpus++].device = x->gpus.device[i];
	}
}

/* Which device work lies in the steps, of which GPU, and which of it are collectives. */
static void sort_out(struct collectives_work *x, struct findings *f)
{
	const struct gpu_ops *g = &x->p->gpu_op;
	uint32_t *place = NEW_ARRAY(x->gpus.n, uint32_t);
	collectives_find_gpus(x, place);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		x->gpu[i] = ROW_NONE;
		if (!intervals_length_within(&x->w->all, g->start_ns[i], gpu_end(x->p, i)))
			continue;
		uint32_t gpu = gpus_of(&x->gpus, x->p, i);
		if (gpu == GPUS_NONE)
			continue;
		x->gpu[i] = place[gpu];
		x->comm[i] = g->kind[i] == GPU_KERNEL && gpu_kernel(x->p, i)->class == KERNEL_COMM;
		x->out->n += x->comm[i];
		x->out->gpu[x->gpu[i]].n += x->comm[i];
	}
	mem_free(place);
}

static void collectives_find_exposed(struct collectives_work *x)
{
	struct collectives *c = x->out;
	x->other = NEW_ARRAY(c->n_gpus, struct intervals);
	for (uint32_t i = 0; i < x->p->gpu_op.rows.n; i++)
		if (x->gpu[i] != ROW_NONE)
			intervals_add(x->comm[i] ? &c->gpu[x->gpu[i]].exposed : &x->other[x->gpu[i]], x->p->gpu_op.start_ns[i], gpu_end(x->p, i));
	for (uint32_t i = 0; i < c->n_gpus; i++) {
		struct intervals *e = &c->gpu[i].exposed;
		intervals_normalise(e);
		intervals_normalise(&x->other[i]);
		intervals_subtract(e, &x->other[i], e);
		intervals_intersect(e, &x->w->all, e);
		c->gpu[i].exposed_ns = intervals_length(e);
		intervals_release(&x->other[i]);
	}
	mem_free(x->other);
}

/* Of collectives of several streams, a moment belongs to the one that began first, as in the report on communication (report/comm.c). */
static void share_exposed(const struct profile *p, struct collectives *c)
{
	struct sort_item *order = NEW_ARRAY_RAW(c->n, struct sort_item);
	int64_t *done = NEW_ARRAY_RAW(c->n_gpus, int64_t); /* until when time is given away, by GPU */
	for (uint32_t i = 0; i < c->n_gpus; i++)
		done[i] = INT64_MIN;
	for (uint32_t i = 0; i < c->n; i++)
		order[i] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[c->v[i].gpu_op]), i, 0};
	sort_items(order, c->n);
	for (uint32_t i = 0; i < c->n; i++) {
		struct collective *k = &c->v[order[i].row];
		int64_t start = p->gpu_op.start_ns[k->gpu_op], end = gpu_end(p, k->gpu_op), *until = &done[k->gpu];
		start = start > *until ? start : *until;
		k->exposed_ns = start < end ? intervals_length_within(&c->gpu[k->gpu].exposed, start, end) : 0;
		*until = end > *until ? end : *until;
	}
	mem_free(order);
	mem_free(done);
}

static void collectives_describe(struct collectives_work *x, struct findings *f, const uint8_t *mark)
{
	const struct profile *p = x->p;
	struct collectives *c = x->out;
	const struct costs *costs = c->n ? shared_costs(f) : NULL;
	c->v = NEW_ARRAY(c->n, struct collective);
	c->n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (!x->comm[g])
			continue;
		struct str text;
		int64_t ranks;
		enum collective_use use = find_arg(p, g, ARG_GROUP_DESCRIPTION, &text) ? use_of_group(text) : COLLECTIVE_UNKNOWN;
		uint32_t at = p->gpu_op.op[g] != ROW_NONE ? p->gpu_op.op[g] : p->gpu_op.call[g];
		if (find_arg(p, g, ARG_GROUP_SIZE, &text) && str_to_i64(text, &ranks) && ranks > c->ranks)
			c->ranks = ranks;
		c->v[c->n++] = (struct collective){
			.gpu_op = g, .gpu = x->gpu[g], .at = at, .use = use ? (uint8_t)use : inside_of_gpu(p, mark, g), .wire_bytes = wire_bytes(costs, g),
		};
	}
	share_exposed(p, c);
}

static bool collectives_has_any(const struct profile *p, struct findings *f)
{
	return ANY_WHERE(g, 0, p->gpu_op.rows.n, p->gpu_op.kind[g] == GPU_KERNEL && gpu_kernel(p, g)->class == KERNEL_COMM);
}

struct collectives *collectives_new(const struct profile *p, struct findings *f, const struct step_time *w)
{
	struct collectives_work x = {.p = p, .w = w, .out = NEW(struct collectives)};
	if (!collectives_has_any(p, f))
		return x.out;
	x.comm = NEW_ARRAY(p->gpu_op.rows.n, uint8_t);
	x.gpu = NEW_ARRAY(p->gpu_op.rows.n, uint32_t);
	gpus_find(p, &x.gpus);
	sort_out(&x, f);
	gpus_release(&x.gpus);
	collectives_find_exposed(&x);
	uint8_t *mark = x.out->n ? inside_new(p, use_of_range, NULL) : NULL;
	collectives_describe(&x, f, mark);
	mem_free(mark);
	mem_free(x.comm);
	mem_free(x.gpu);
	return x.out;
}

void collectives_free(struct collectives *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->n_gpus; i++)
		intervals_release(&c->gpu[i].exposed);
	mem_free(c->gpu);
	mem_free(c->v);
	mem_free(c);
}

const struct collective_gpu *collectives_most(const struct collectives *c)
{
	const struct collective_gpu *most = NULL;
	for (uint32_t i = 0; i < c->n_gpus; i++)
		most = most && most->exposed_ns >= c->gpu[i].exposed_ns ? most : &c->gpu[i];
	return most;
}

int64_t collectives_exposed_ns(const struct collectives *c)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < c->n_gpus; i++)
		sum += c->gpu[i].exposed_ns;
	return c->n_gpus ? sum / c->n_gpus : 0;
}
