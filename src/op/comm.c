/* Collectives. With n ranks and S bytes as nccl-tests defines them (doc/PERFORMANCE.md there): algorithm bandwidth = S / time, bus
 * bandwidth = wire_bytes / time.
 *   all_reduce      S = the buffer              wire = S 2 (n - 1) / n
 *   all_gather      S = the gathered result     wire = S (n - 1) / n
 *   reduce_scatter  S = the input of a rank     wire = S (n - 1) / n
 *   all_to_all      S = the buffer of a rank    wire = S (n - 1) / n
 *   gather, scatter S = the whole               wire = S (n - 1) / n
 *   broadcast, reduce, send, recv               wire = S
 * `bytes` is what a rank reads of its input and writes of its result; FLOPs are the additions that fall to one rank. */
#include "op/comm_kind.h"
#include "op/cost_call.h"

struct message {
	int64_t in, out, ranks;   /* elements; COST_UNKNOWN */
	enum dtype type;
};

static int64_t elements(const struct cost_call *c, int64_t i)
{
	const struct op_arg *x = op_arg(&c->args, i);
	int64_t n = x->n_tensors ? 0 : COST_UNKNOWN;
	for (uint32_t k = 0; k < x->n_tensors; k++)
		n = cost_add(n, c->args.tensor[x->tensor + k].elements);
	return n;
}

/* What the record says; else the op's own tensors: c10d's *_base ops have the result first. */
static void read_message(const struct cost_call *c, enum comm_kind kind, struct message *m)
{
	const struct op_facts *f = c->facts;
	bool stated = f->in_elements > 0 || f->out_elements > 0;
	m->ranks = f->group_size > 0 ? f->group_size : COST_UNKNOWN;
	m->type = f->comm_dtype.n ? dtype_find(f->comm_dtype) : op_arg(&c->args, 0)->dtype;
	m->in = stated ? f->in_elements : elements(c, 0);
	m->out = stated ? f->out_elements : COST_UNKNOWN;
	bool pair = kind == COMM_ALL_GATHER || kind == COMM_REDUCE_SCATTER || kind == COMM_ALL_TO_ALL;
	if (!stated && pair && str_starts(c->name, STR("c10d::"))) {
		m->out = elements(c, 0);
		m->in = elements(c, 1);
		if (m->ranks < 0 && m->in > 0 && m->out > 0 && kind != COMM_ALL_TO_ALL)
			m->ranks = kind == COMM_ALL_GATHER ? m->out / m->in : m->in / m->out;
	}
	if (kind == COMM_ALL_REDUCE || kind == COMM_BROADCAST || kind == COMM_ALL_TO_ALL || kind == COMM_REDUCE || kind == COMM_SEND || kind == COMM_RECV) {
		m->in = m->in > 0 ? m->in : m->out;
		m->out = m->out > 0 ? m->out : m->in;
	}
	if (kind == COMM_ALL_GATHER && m->out < 0)
		m->out = cost_mul(m->in, m->ranks);
	if (kind == COMM_REDUCE_SCATTER && m->out < 0 && m->ranks > 0 && m->in >= 0)
		m->out = m->in / m->ranks;
}

/* S, in elements. */
static int64_t comm_size_of(enum comm_kind kind, const struct message *m)
{
	switch (kind) {
	case COMM_ALL_GATHER:
	case COMM_GATHER:
		return m->out > 0 ? m->out : cost_mul(m->in, m->ranks);
	case COMM_SCATTER:
		return cost_mul(m->out, m->ranks);
	default:
		return m->in;
	}
}

int64_t comm_wire_bytes(enum comm_kind kind, int64_t bytes, int64_t ranks)
{
	if (kind == COMM_BROADCAST || kind == COMM_REDUCE || kind == COMM_SEND || kind == COMM_RECV)
		return bytes;
	bool shared = kind == COMM_ALL_REDUCE || kind == COMM_ALL_GATHER || kind == COMM_REDUCE_SCATTER || kind == COMM_ALL_TO_ALL || kind == COMM_GATHER || kind == COMM_SCATTER;
	if (!shared || ranks < 1)
		return COST_UNKNOWN;
	int64_t x = cost_mul(cost_mul(bytes, kind == COMM_ALL_REDUCE ? 2 : 1), ranks - 1);
	return x < 0 ? COST_UNKNOWN : x / ranks;
}

/* NCCL was called with m bytes: of all-gathers, reduce-scatters, all-to-alls, gathers and scatters these are what a rank has for each other one. */
static void comm_by_bytes(struct cost_call *c, enum comm_kind kind)
{
	struct cost *o = c->out;
	int64_t m = c->facts->message_bytes, ranks = c->facts->group_size > 0 ? c->facts->group_size : COST_UNKNOWN;
	bool parts = kind == COMM_ALL_GATHER || kind == COMM_REDUCE_SCATTER || kind == COMM_ALL_TO_ALL || kind == COMM_GATHER || kind == COMM_SCATTER;
	int64_t s = parts ? cost_mul(m, ranks) : m;
	int64_t read = kind == COMM_RECV ? 0 : kind == COMM_REDUCE_SCATTER || kind == COMM_ALL_TO_ALL ? s : m;
	int64_t written = kind == COMM_SEND ? 0 : kind == COMM_ALL_GATHER || kind == COMM_ALL_TO_ALL ? s : m;
	o->params = ranks > 0 ? arena_printf(c->arena, "%s,bytes=%lld,ranks=%lld", comm_kind_name(kind), (long long)s, (long long)ranks)
	                      : arena_printf(c->arena, "%s,bytes=%lld", comm_kind_name(kind), (long long)s);
	o->message_bytes = s;
	o->wire_bytes = kind == COMM_SEND_RECV ? s : comm_wire_bytes(kind, s, ranks);
	if (kind == COMM_ALL_REDUCE || kind == COMM_REDUCE_SCATTER || kind == COMM_REDUCE)
		cost_unknown(c, "the type of the elements was not recorded");
	else
		cost_set_flops(c, 0);
	cost_set_bytes(c, read, written, "the number of ranks was not recorded");
}

void cost_comm(struct cost_call *c)
{
	struct message m;
	struct cost *o = c->out;
	o->tc_eligible = TRI_NO;
	enum comm_kind kind = comm_kind_of(c->facts->collective.n ? c->facts->collective : c->name);
	if (kind != COMM_UNKNOWN && c->facts->message_bytes > 0) {
		comm_by_bytes(c, kind);
		return;
	}
	kind = kind == COMM_SEND_RECV ? COMM_SEND : kind;
	if (kind == COMM_UNKNOWN) {
		cost_unknown(c, "which collective it is was not recorded");
		return;
	}
	read_message(c, kind, &m);
	o->dtype = m.type;
	o->params = m.ranks > 0 ? arena_printf(c->arena, "%s,elements=%lld,ranks=%lld,%s", comm_kind_name(kind), (long long)comm_size_of(kind, &m),
	                                       (long long)m.ranks, dtype_short(m.type))
	                        : arena_printf(c->arena, "%s,elements=%lld,%s", comm_kind_name(kind), (long long)comm_size_of(kind, &m),
	                                       dtype_short(m.type));
	bool adds = kind == COMM_ALL_REDUCE || kind == COMM_REDUCE_SCATTER || kind == COMM_REDUCE;
	if (adds && (m.ranks < 1 || m.in < 0)) {
		cost_unknown(c, m.in < 0 ? "the size of the message was not recorded" : "the number of ranks was not recorded");
	} else {
		int64_t all = adds ? cost_mul(m.in, m.ranks - 1) : 0;
		cost_set_flops(c, all < 0 ? all : adds && kind != COMM_REDUCE ? all / m.ranks : all);
	}
	int64_t s = cost_bytes_of(comm_size_of(kind, &m), m.type);
	o->message_bytes = s;
	o->wire_bytes = kind == COMM_BARRIER ? 0 : comm_wire_bytes(kind, s, m.ranks);
	int64_t read = kind == COMM_RECV ? 0 : cost_bytes_of(m.in, m.type), written = kind == COMM_SEND ? 0 : cost_bytes_of(m.out, m.type);
	cost_set_bytes(c, kind == COMM_BARRIER ? 0 : read, kind == COMM_BARRIER ? 0 : written, "the size or type of the message was not recorded");
}
