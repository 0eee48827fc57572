/* What NCCL's ranges say of communicators. The range of each function states the communicator's id. Only functions that make or destroy a communicator state
 * the number of its ranks, and who asks. ncclGroupEnd launches what a group of calls asked for, and states nothing. So what one range states is added to the others. */
#include "input/nsys/nsys.h"

#include "base/search.h"
#include "io/json.h"

#include <stdio.h>

static const char nsys_comms_id[] = "NCCL communicator ID", nsys_comms_ranks[] = "No. of ranks";

/* The calls of one thread between ncclGroupStart and ncclGroupEnd. */
struct nsys_comms_group {
	unsigned depth;          /* groups nest, and the outermost launches */
	uint32_t comm, name;     /* of all calls: strings; 0 = there was none */
	bool differ;             /* calls are of several communicators or kinds: nothing is known of their work */
	int64_t bytes, received; /* sums: of all calls but receives, and of receives */
	bool sends, receives;
};

struct nsys_comms {
	struct idmap ranks;      /* communicator -> number of ranks: strings */
	struct intern threads;   /* by index + 1 */
	struct nsys_comms_group *group;
	uint32_t cap;
	struct buf json;
};

struct nsys_comms *nsys_comms_new(void)
{
	struct nsys_comms *c = NEW(struct nsys_comms);
	idmap_init(&c->ranks, 0, UINT32_MAX, 0);
	intern_init(&c->threads);
	return c;
}

void nsys_comms_free(struct nsys_comms *c)
{
	if (!c)
		return;
	idmap_release(&c->ranks);
	intern_release(&c->threads);
	buf_release(&c->json);
	mem_free(c->group);
	mem_free(c);
}

/* Reads an object of plain values. False: it is not one, or has more than `max` members. */
static bool nsys_comms_read_object(struct nsys *n, struct nsys_comms *c, struct str text, struct arg_pair *pair, unsigned max, unsigned *k)
{
	struct json_value key, v;
	bool first = true;
	buf_clear(&c->json);
	buf_str(&c->json, text);
	buf_fill(&c->json, 0, JSON_PADDING);
	struct json j = {.end = c->json.p + text.n};
	const char *at = c->json.p + 1;
	for (*k = 0; (at = json_member(&j, at, &first, &key)) && key.raw.p; (*k)++) {
		at = json_value(&j, at, &v);
		if (!at || *k == max || v.type == JSON_OBJECT || v.type == JSON_ARRAY || v.type == JSON_BARE || key.escaped || v.escaped)
			return false;
		pair[*k] = (struct arg_pair){intern_str(&n->p->strings, key.raw), intern_str(&n->p->strings, v.raw), v.type == JSON_STRING};
	}
	return at != NULL;
}

unsigned nsys_comms_json(struct nsys *n, struct nsys_comms *c, struct str text, struct arg_pair *pair, unsigned max)
{
	unsigned k;
	if (!text.n || text.p[0] != '{' || !str_has(text, str_from(nsys_comms_id)))
		return 0;
	return nsys_comms_read_object(n, c, text, pair, max, &k) ? k : 0;
}

static uint32_t nsys_comms_value(const struct nsys *n, const struct arg_pair *pair, unsigned k, const char *key)
{
	for (unsigned i = 0; i < k; i++)
		if (str_eqc(intern_get(&n->p->strings, pair[i].key), key))
			return pair[i].value;
	return 0;
}

static unsigned nsys_comms_put(struct nsys *n, struct arg_pair *pair, unsigned k, unsigned max, const char *key, uint32_t value, bool is_string)
{
	if (value && k < max)
		pair[k++] = (struct arg_pair){intern_str(&n->p->strings, str_from(key)), value, is_string};
	return k;
}

static uint32_t nsys_comms_number(struct nsys *n, int64_t v)
{
	char text[24];
	int digits = snprintf(text, sizeof text, "%lld", (long long)v);
	return intern_put(&n->p->strings, text, (size_t)digits);
}

static struct nsys_comms_group *nsys_comms_group_of(struct nsys_comms *c, int64_t thread)
{
	uint32_t before = c->threads.n, at = intern_put(&c->threads, (const char *)&thread, sizeof thread);
	MEM_GROW(c->group, c->cap, at + 1);
	if (c->threads.n > before)
		c->group[at] = (struct nsys_comms_group){0};
	return &c->group[at];
}

static void nsys_comms_add_call(struct nsys *n, struct nsys_comms_group *g, uint32_t comm, uint32_t name, uint32_t bytes)
{
	int64_t v;
	struct str called = intern_get(&n->p->strings, name);
	bool send = str_eqc(called, "ncclSend"), receive = str_eqc(called, "ncclRecv"), pairs = g->sends || g->receives;
	g->differ |= g->comm && (g->comm != comm || (g->name != name && !(pairs && (send || receive))));
	g->differ |= !str_to_i64(intern_get(&n->p->strings, bytes), &v) || v < 0;
	if (g->differ)
		return;
	g->comm = comm;
	g->name = name;
	g->sends |= send;
	g->receives |= receive;
	g->differ |= __builtin_add_overflow(receive ? g->received : g->bytes, v, receive ? &g->received : &g->bytes);
}

/* What the calls of a group ask for together. */
static unsigned nsys_comms_put_group(struct nsys *n, const struct nsys_comms *c, const struct nsys_comms_group *g, struct arg_pair *pair, unsigned k, unsigned max)
{
	if (!g->comm || g->differ)
		return k;
	bool both = g->sends && g->receives;
	int64_t bytes = g->receives && !g->sends ? g->received : g->bytes;
	uint32_t ranks = idmap_get(&c->ranks, g->comm);
	k = nsys_comms_put(n, pair, k, max, arg_key_text[ARG_COLLECTIVE], both ? intern_str(&n->p->strings, STR("send_recv")) : g->name, true);
	k = nsys_comms_put(n, pair, k, max, nsys_comms_id, g->comm, false);
	k = nsys_comms_put(n, pair, k, max, nsys_comms_ranks, ranks == IDMAP_NONE ? 0 : ranks, false);
	return bytes ? nsys_comms_put(n, pair, k, max, arg_key_text[ARG_MESSAGE_BYTES], nsys_comms_number(n, bytes), false) : k;
}

bool nsys_comms_is_group(struct str name)
{
	return str_eqc(name, "ncclGroupStart") || str_eqc(name, "ncclGroupEnd");
}

/* Who asks: the number of the GPU on the machine, beside the number that the process has for it. */
static unsigned nsys_comms_put_gpu(struct nsys *n, int64_t thread, struct arg_pair *pair, unsigned k, unsigned max)
{
	int64_t device;
	uint32_t stated = nsys_comms_value(n, pair, k, arg_key_text[ARG_GROUP_DEVICE]);
	if (!stated || !str_to_i64(intern_get(&n->p->strings, stated), &device))
		return k;
	int32_t gpu = nsys_device(n, device, nsys_pid(thread));
	return gpu < 0 ? k : nsys_comms_put(n, pair, k, max, arg_key_text[ARG_GROUP_GPU], nsys_comms_number(n, gpu), false);
}

unsigned nsys_comms_complete(struct nsys *n, struct nsys_comms *c, int64_t thread, uint32_t name, struct arg_pair *pair, unsigned k, unsigned max)
{
	struct str called = intern_get(&n->p->strings, name);
	uint32_t comm = nsys_comms_value(n, pair, k, nsys_comms_id);
	if (comm) {
		uint32_t ranks = nsys_comms_value(n, pair, k, nsys_comms_ranks), bytes = nsys_comms_value(n, pair, k, arg_key_text[ARG_MESSAGE_BYTES]);
		uint32_t known = idmap_get(&c->ranks, comm);
		if (ranks && known == IDMAP_NONE)
			idmap_put(&c->ranks, comm, ranks);
		else if (!ranks && known != IDMAP_NONE)
			k = nsys_comms_put(n, pair, k, max, nsys_comms_ranks, known, false);
		struct nsys_comms_group *g = nsys_comms_group_of(c, thread);
		if (g->depth && bytes)
			nsys_comms_add_call(n, g, comm, name, bytes);
		return nsys_comms_put_gpu(n, thread, pair, k, max);
	}
	if (!nsys_comms_is_group(called))
		return k;
	struct nsys_comms_group *g = nsys_comms_group_of(c, thread);
	if (str_eqc(called, "ncclGroupStart")) {
		if (!g->depth++)
			*g = (struct nsys_comms_group){.depth = 1};
	} else if (g->depth && !--g->depth) {
		k = nsys_comms_put_group(n, c, g, pair, k, max);
	}
	return k;
}
