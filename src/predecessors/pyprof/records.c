#include "predecessors/pyprof/records.h"

#include "base/mem.h"
#include "base/sort.h"
#include "predecessors/pyprof/forward.h"

#include <limits.h>

/* What is carried from one kernel to the next: PyProf has one of these, the default one for each thread. */
struct pyprof_records_state {
	int64_t seq, sub;
	uint32_t *op;        /* ids in names->ops */
	uint32_t n_ops, cap_ops;
	uint32_t instance;   /* default: the op's range */
};

/* PyProf: the latest forward record with a sequence number, by seqId and by altSeqId. */
struct lookup {
	struct idmap kept, other;
};

struct builder {
	struct pyprof_records *r;
	struct pyprof_records_state *state;
	uint32_t n_states;
	struct lookup lookup;
	struct pyprof_forward forward; /* default */
	uint32_t *process;        /* default: track -> number of its process */
	struct pyprof_facts facts;
	uint32_t facts_chain;     /* of what chain `facts` is */
	int64_t *kept, *other;
	uint32_t cap_kept, cap_other;
	uint32_t word_forward, word_cells[3];
};

static int64_t order_key(const struct pyprof_records *r, uint32_t gpu)
{
	const struct profile *p = r->p;
	uint32_t call = p->gpu_op.call[gpu];
	bool launch = r->rules == PYPROF_RECORDS_DEFAULT && call != ROW_NONE;
	return launch ? p->span.start_ns[call] : p->gpu_op.start_ns[gpu];
}

/* The kernels in order. PyProf joins them with their launches, so that it never sees one without. */
static void find_kernels(struct pyprof_records *r)
{
	const struct gpu_ops *g = &r->p->gpu_op;
	bool joined = r->rules != PYPROF_RECORDS_DEFAULT && !r->from_dict;
	struct sort_item *v = NEW_ARRAY_RAW(g->rows.n, struct sort_item);
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->kind[i] != GPU_KERNEL)
			continue;
		r->left_out += g->call[i] == ROW_NONE;
		if (!joined || g->call[i] != ROW_NONE)
			v[n++] = (struct sort_item){.key = sort_key_i64(order_key(r, i)), .row = i};
	}
	sort_items(v, n);
	r->n = n;
	r->gpu = NEW_ARRAY_RAW(n, uint32_t);
	for (uint32_t i = 0; i < n; i++)
		r->gpu[i] = v[i].row;
	mem_free(v);
}

/* How many processes the tracks are of. */
static int64_t pyprof_records_number_processes(const struct profile *p, uint32_t *process)
{
	struct idmap seen;
	int64_t n_processes = 0;
	idmap_init(&seen, INT64_MIN, INT64_MAX, p->track.rows.n);
	for (uint32_t t = 0; t < p->track.rows.n; t++) {
		int64_t pid = p->track.pid[t];
		uint32_t n = idmap_get(&seen, pid);
		if (n == IDMAP_NONE)
			idmap_put(&seen, pid, n = (uint32_t)n_processes++);
		process[t] = n;
	}
	idmap_release(&seen);
	return n_processes;
}

static void lookup_open(struct builder *b)
{
	const struct pyprof_records *r = b->r;
	int64_t min = INT64_MAX, max = INT64_MIN;
	uint64_t n = 0;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		int64_t seq = r->p->span.link_id[r->node[i].span];
		if (r->p->span.kind[r->node[i].span] != SPAN_OP || seq == ID_NONE)
			continue;
		min = seq < min ? seq : min;
		max = seq > max ? seq : max;
		n++;
	}
	if (r->rules == PYPROF_RECORDS_DEFAULT && !r->from_dict) {
		b->process = NEW_ARRAY(r->p->track.rows.n, uint32_t);
		int64_t n_processes = pyprof_records_number_processes(r->p, b->process);
		pyprof_forward_init(&b->forward, r, b->process, n_processes, min, max, n);
		return;
	}
	if (r->from_dict)
		min = INT64_MIN, max = INT64_MAX, n = r->n;
	idmap_init(&b->lookup.kept, min, max, n);
	idmap_init(&b->lookup.other, min, max, n);
}

static void lookup_close(struct builder *b)
{
	pyprof_forward_release(&b->forward);
	idmap_release(&b->lookup.kept);
	idmap_release(&b->lookup.other);
	mem_free(b->process);
}

static void pyprof_records_remember(struct builder *b, uint32_t record, const int64_t *kept, unsigned n_kept, const int64_t *other, unsigned n_other)
{
	bool together = b->r->rules == PYPROF_RECORDS_DEFAULT;
	for (unsigned i = 0; i < n_kept; i++)
		idmap_put(&b->lookup.kept, kept[i], record);
	for (unsigned i = 0; i < n_other; i++)
		idmap_put(together ? &b->lookup.kept : &b->lookup.other, other[i], record);
}

static uint32_t pyprof_records_find_forward(const struct builder *b, int64_t seq)
{
	uint32_t found = idmap_get(&b->lookup.kept, seq);
	return found != IDMAP_NONE ? found : idmap_get(&b->lookup.other, seq); /* IDMAP_NONE is ROW_NONE */
}

static bool same_ops(const struct pyprof_records_state *s, const struct pyprof_facts *f)
{
	return s->n_ops == f->n_ops && (!f->n_ops || memcmp(s->op, f->op, f->n_ops * sizeof *f->op) == 0);
}

static bool is_cell_forward(const struct builder *b, const struct pyprof_facts *f)
{
	return f->n_ops && f->op[0] == b->word_forward &&
	       (f->mod0 == b->word_cells[0] || f->mod0 == b->word_cells[1] || f->mod0 == b->word_cells[2]);
}

/* PyProf: which number is this kernel's, and is it one more kernel of the same op? */
static void number_as_pyprof(struct builder *b, uint32_t i, const struct pyprof_facts *f)
{
	struct pyprof_records_state *s = &b->state[0];
	int64_t seq = f->id[0];
	if (!f->backward) {
		seq = s->seq;
		for (uint32_t k = f->n_ids; k-- && f->id[k] > s->seq;)
			seq = f->id[k];
	}
	bool same = same_ops(s, f);
	b->r->sub[i] = same && (seq == s->seq || is_cell_forward(b, f)) ? (uint32_t)(s->sub + 1) : 0;
	b->r->seq[i] = s->seq = seq;
	s->sub = b->r->sub[i];
	MEM_GROW(s->op, s->cap_ops, f->n_ops);
	if (f->n_ops)
		memcpy(s->op, f->op, f->n_ops * sizeof *f->op);
	s->n_ops = f->n_ops;
}

/* The range that is the op: the outermost that says so; a user's annotation does not. */
static uint32_t pyprof_records_instance_of(const struct pyprof_path *path)
{
	const struct pyprof_spans *marker = &path->list[PYPROF_LIST_MARKER], *op = &path->list[PYPROF_LIST_OP];
	return marker->n ? marker->v[0] : path->n_seq ? path->seq[0].span : op->n ? op->v[0] : ROW_NONE;
}

static void link_ids(struct builder *b, uint32_t i, const struct pyprof_facts *f)
{
	unsigned n_kept, n_other;
	MEM_GROW(b->kept, b->cap_kept, f->n_ids);
	MEM_GROW(b->other, b->cap_other, f->n_ids);
	pyprof_split_ids(b->r->rules, f->id, f->n_ids, b->r->seq[i], b->kept, &n_kept, b->other, &n_other);
	if (!f->backward)
		pyprof_records_remember(b, i, b->kept, n_kept, b->other, n_other);
	else if (!f->n_markers && n_kept && !f->accumulate)
		b->r->forward[i] = pyprof_records_find_forward(b, b->kept[0]);
}

static void build_as_pyprof(struct builder *b, uint32_t i)
{
	struct pyprof_records *r = b->r;
	if (r->chain[i] != b->facts_chain || i == 0)
		pyprof_facts_of(r, r->path, r->chain[i], UINT_MAX, &b->facts);
	b->facts_chain = r->chain[i];
	const struct pyprof_facts *f = &b->facts;
	r->backward[i] = f->backward;
	if (f->n_ids) {
		number_as_pyprof(b, i, f);
		link_ids(b, i, f);
	}
}

static void build_by_range(struct builder *b, uint32_t i)
{
	struct pyprof_records *r = b->r;
	if (r->chain[i] == ROW_NONE)
		return;
	uint32_t thread = r->p->span.track[r->p->gpu_op.call[r->gpu[i]]];
	const struct pyprof_path *path = pyprof_forward_enter(&b->forward, r, thread, r->chain[i]);
	struct pyprof_records_state *s = &b->state[thread];
	uint32_t instance = pyprof_records_instance_of(path);
	s->sub = instance != ROW_NONE && instance == s->instance ? s->sub + 1 : 0;
	s->instance = instance;
	r->sub[i] = (uint32_t)s->sub;
	r->backward[i] = path->n_backward > 0;
	if (!path->n_seq)
		return;
	r->seq[i] = pyprof_path_least(path);
	if (!path->n_backward)
		pyprof_forward_remember(&b->forward, r, thread, i);
	else if (!path->list[PYPROF_LIST_MARKER].n && !path->n_accumulate)
		r->forward[i] = pyprof_forward_find(&b->forward, thread, r->seq[i]);
}

/* What PyProf found stands there already; only the link is made by its next stage. */
static void build_from_dict(struct builder *b, uint32_t i)
{
	struct pyprof_records *r = b->r;
	struct arena a = {0};
	struct pyprof_record x;
	pyprof_record_get(r, i, UINT_MAX, &a, &x);
	r->sub[i] = (uint32_t)(x.sub < 0 ? 0 : x.sub);
	r->backward[i] = x.backward;
	r->seq[i] = x.seq.n ? x.seq.v[0] : ID_NONE;
	if (!x.backward)
		pyprof_records_remember(b, i, x.seq.v, x.seq.n, x.alt_seq.v, x.alt_seq.n);
	else if (!x.marker.n && x.seq.n)
		r->forward[i] = pyprof_records_find_forward(b, x.seq.v[0]);
	arena_release(&a);
}

static void pyprof_records_build_all(struct builder *b)
{
	struct pyprof_records *r = b->r;
	static const char *const cells[] = {"LSTMCell", "GRUCell", "RNNCell"};
	bool own = r->rules == PYPROF_RECORDS_DEFAULT;
	b->n_states = own && r->p->track.rows.n ? r->p->track.rows.n : 1;
	b->state = NEW_ARRAY(b->n_states, struct pyprof_records_state);
	for (uint32_t t = 0; t < b->n_states; t++)
		b->state[t] = (struct pyprof_records_state){.seq = -1, .sub = -1, .instance = ROW_NONE};
	b->word_forward = intern_put(&r->names->ops, "forward", 7);
	for (int i = 0; i < 3; i++)
		b->word_cells[i] = intern_str(&r->names->ops, str_from(cells[i]));
	lookup_open(b);
	for (uint32_t i = 0; i < r->n; i++)
		r->from_dict ? build_from_dict(b, i) : own ? build_by_range(b, i) : build_as_pyprof(b, i);
	lookup_close(b);
	for (uint32_t t = 0; t < b->n_states; t++)
		mem_free(b->state[t].op);
	mem_free(b->state);
	mem_free(b->kept);
	mem_free(b->other);
	pyprof_facts_release(&b->facts);
}

bool pyprof_is_dict(const struct profile *p)
{
	return p->recorder == RECORDER_PYPROF;
}

struct pyprof_records *pyprof_records_new(const struct profile *p, enum pyprof_record_rules rules)
{
	struct pyprof_records *r = NEW(struct pyprof_records);
	r->p = p;
	r->rules = rules;
	r->from_dict = pyprof_is_dict(p);
	r->names = pyprof_names_new(p);
	r->path = NEW(struct pyprof_path);
	r->facts = NEW(struct pyprof_facts);
	find_kernels(r);
	r->chain = NEW_ARRAY_RAW(r->n, uint32_t);
	r->sub = NEW_ARRAY(r->n, uint32_t);
	r->forward = NEW_ARRAY_RAW(r->n, uint32_t);
	memset(r->forward, 0xff, r->n * sizeof *r->forward);
	r->seq = NEW_ARRAY_RAW(r->n, int64_t);
	for (uint32_t i = 0; i < r->n; i++)
		r->seq[i] = ID_NONE;
	r->backward = NEW_ARRAY(r->n, uint8_t);
	pyprof_chains(r);
	struct builder b = {.r = r, .facts_chain = ROW_NONE};
	pyprof_records_build_all(&b);
	return r;
}

void pyprof_records_free(struct pyprof_records *r)
{
	if (!r)
		return;
	mem_free(r->gpu);
	mem_free(r->chain);
	mem_free(r->sub);
	mem_free(r->forward);
	mem_free(r->seq);
	mem_free(r->backward);
	mem_free(r->node);
	pyprof_names_free(r->names);
	pyprof_path_release(r->path);
	mem_free(r->path);
	pyprof_facts_release(r->facts);
	mem_free(r->facts);
	mem_free(r);
}
