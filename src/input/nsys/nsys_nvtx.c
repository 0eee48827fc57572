/* NVTX_EVENTS: ranges, marks, and the names of threads, domains and categories. What the texts say is input/marker.h's. */
#include "input/nsys/nsys.h"

enum { START, END, TYPE, TEXT, THREAD, END_THREAD, TEXT_ID, DOMAIN, CATEGORY, FIRST_PAYLOAD, JSON_TEXT_ID = FIRST_PAYLOAD + 6,
       JSON_TEXT, BINARY };
const char *const nsys_nvtx_columns[] = {"start", "end", "eventType", "text", "globalTid", "endGlobalTid", "textId", "domainId",
	"category", "uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue", "jsonTextId",
	"jsonText", "binaryData", NULL};

/* ENUM_NSYS_EVENT_TYPE, which older files lack. */
enum { NVTX_CATEGORY = 33, NVTX_MARK = 34, NVTX_THREAD = 39, NVTX_PUSH_POP = 59, NVTX_START_END = 60, NVTX_DOMAIN_CREATE = 75,
       NVTX_DOMAIN_DESTROY = 76 };

struct domain {
	int64_t id;
	uint32_t name;   /* 0 = not told */
	uint16_t cat;
	bool asked;      /* looked for in the whole table */
};

struct cached {
	struct marker marker;
	uint32_t string, domain; /* + 1; 0 = free slot */
};
enum { CACHED = 1 << 14, PAIRS_MAX = 32 };

struct nsys_nvtx {
	struct intern domain_keys;    /* (process, id) -> place in `domain`; place 0 is the default one */
	struct domain *domain;
	uint32_t cap_domains;
	struct intern category_keys;  /* (domain, id) -> place in `category` */
	uint32_t *category;           /* name; 0 = not told */
	uint32_t cap_categories;
	bool names_loaded;
	int64_t last_pid, last_id;
	uint32_t last_domain;
	struct nsys_payloads *payloads;
	struct nsys_comms *comms;
	struct cached cached[CACHED];
};

static struct nsys_nvtx *nvtx_of(struct nsys *n)
{
	if (!n->nvtx) {
		n->nvtx = NEW(struct nsys_nvtx);
		intern_init(&n->nvtx->domain_keys);
		intern_init(&n->nvtx->category_keys);
		n->nvtx->payloads = nsys_payloads_load(n);
		n->nvtx->comms = nsys_comms_new();
		n->nvtx->last_pid = n->nvtx->last_id = ID_NONE;
		MEM_GROW(n->nvtx->domain, n->nvtx->cap_domains, 1);
		n->nvtx->domain[0] = (struct domain){.cat = nsys_cat(n, "nvtx"), .asked = true};
	}
	return n->nvtx;
}

void nsys_nvtx_release(struct nsys *n)
{
	if (!n->nvtx)
		return;
	intern_release(&n->nvtx->domain_keys);
	intern_release(&n->nvtx->category_keys);
	mem_free(n->nvtx->domain);
	mem_free(n->nvtx->category);
	nsys_payloads_free(n->nvtx->payloads);
	nsys_comms_free(n->nvtx->comms);
	mem_free(n->nvtx);
	n->nvtx = NULL;
}

static struct str nsys_nvtx_text_of(struct nsys *n, const struct sqlscan *s, int text, int text_id)
{
	int64_t id;
	struct str t = sqlscan_str(s, text);
	if (t.p || !sqlscan_i64(s, text_id, &id))
		return t;
	const struct string_cell *string = nsys_string(n, id);
	return string ? (struct str){string->p, string->n} : STR("?");
}

/* The place of a domain, made where it is new. */
static uint32_t nsys_nvtx_domain_place(struct nsys *n, int64_t pid, int64_t id)
{
	struct nsys_nvtx *x = n->nvtx;
	int64_t key[2] = {pid, id};
	uint32_t before = x->domain_keys.n, at = intern_put(&x->domain_keys, (const char *)key, sizeof key);
	MEM_GROW(x->domain, x->cap_domains, at + 1);
	if (x->domain_keys.n > before)
		x->domain[at] = (struct domain){.id = id};
	return at;
}

static uint32_t category_place(struct nsys *n, uint32_t domain, int64_t id)
{
	struct nsys_nvtx *x = n->nvtx;
	int64_t key[2] = {domain, id};
	uint32_t before = x->category_keys.n, at = intern_put(&x->category_keys, (const char *)key, sizeof key);
	MEM_GROW(x->category, x->cap_categories, at + 1);
	if (x->category_keys.n > before)
		x->category[at] = 0;
	return at;
}

static void name_domain(struct nsys *n, uint32_t place, struct str name)
{
	struct domain *d = &n->nvtx->domain[place];
	d->name = intern_str(&n->p->strings, name);
	d->cat = build_cat(&n->b, d->name);
}

static int64_t pid_of(const struct sqlscan *s)
{
	int64_t global;
	return sqlscan_i64(s, THREAD, &global) ? nsys_pid(global) : ID_NONE;
}

static void learn_name(struct nsys *n, const struct sqlscan *s, int64_t type)
{
	int64_t domain = nsys_int(n, s, DOMAIN, 0), category;
	uint32_t place = domain ? nsys_nvtx_domain_place(n, pid_of(s), domain) : 0;
	if (type == NVTX_DOMAIN_CREATE && domain)
		name_domain(n, place, nsys_nvtx_text_of(n, s, TEXT, TEXT_ID));
	else if (type == NVTX_CATEGORY && sqlscan_i64(s, CATEGORY, &category)) {
		uint32_t at = category_place(n, place, category);
		n->nvtx->category[at] = intern_str(&n->p->strings, nsys_nvtx_text_of(n, s, TEXT, TEXT_ID));
	}
}

/* Names usually come before they are used. The first use of one that did not makes the whole table be asked, once. */
static void load_names(struct nsys *n)
{
	struct sqlscan s;
	const char *table = nsys_find_table(n, "NVTX_EVENTS");
	if (n->nvtx->names_loaded)
		return;
	n->nvtx->names_loaded = true;
	if (!table || sqlscan_open(&s, &n->db, table, nsys_nvtx_columns, NULL) < 0)
		return;
	while (sqlscan_next(&s)) {
		int64_t type;
		if (sqlscan_i64(&s, TYPE, &type) && (type == NVTX_DOMAIN_CREATE || type == NVTX_CATEGORY))
			learn_name(n, &s, type);
	}
	sqlscan_close(&s);
}

/* A domain that the capture never named: what began before it did. */
static void guess_name(struct nsys *n, uint32_t place)
{
	struct domain *d = &n->nvtx->domain[place];
	if (nsys_payloads_are_nccl(n->nvtx->payloads, d->id)) {
		name_domain(n, place, STR("NCCL"));
		return;
	}
	struct buf b = {0};
	buf_printf(&b, "domain %lld", (long long)d->id);
	name_domain(n, place, buf_view(&b));
	buf_release(&b);
}

static uint32_t nsys_nvtx_domain_named(struct nsys *n, const struct sqlscan *s, int64_t id)
{
	struct nsys_nvtx *x = n->nvtx;
	int64_t pid = pid_of(s);
	if (pid == x->last_pid && id == x->last_id)
		return x->last_domain;
	uint32_t place = nsys_nvtx_domain_place(n, pid, id);
	if (!x->domain[place].name) {
		load_names(n);
		if (!x->domain[place].name)
			guess_name(n, place);
	}
	x->last_pid = pid;
	x->last_id = id;
	x->last_domain = place;
	return place;
}

/* 0 = the default one. */
static inline uint32_t nsys_nvtx_domain_of(struct nsys *n, const struct sqlscan *s)
{
	int64_t id = nsys_int(n, s, DOMAIN, 0);
	return id ? nsys_nvtx_domain_named(n, s, id) : 0;
}

static struct marker nsys_nvtx_marker_of(struct nsys *n, const struct sqlscan *s, uint32_t domain)
{
	struct str text = sqlscan_str(s, TEXT), name = intern_get(&n->p->strings, n->nvtx->domain[domain].name);
	int64_t id;
	if (text.p || !sqlscan_i64(s, TEXT_ID, &id))
		return marker_read(n->markers, text, name, n->row);
	struct string_cell *string = nsys_string(n, id);
	if (!string)
		return marker_read(n->markers, STR("?"), name, n->row);
	uint32_t at = (uint32_t)(string - n->strings.v);
	struct cached *c = &n->nvtx->cached[hash_u64((uint64_t)at << 32 | domain) % CACHED];
	if (c->string != at + 1 || c->domain != domain + 1)
		*c = (struct cached){marker_read(n->markers, (struct str){string->p, string->n}, name, n->row), at + 1, domain + 1};
	return c->marker;
}

static unsigned nsys_nvtx_put(struct nsys *n, struct arg_pair *pair, unsigned k, const char *key, struct str value, bool is_string)
{
	if (k < PAIRS_MAX)
		pair[k++] = (struct arg_pair){intern_str(&n->p->strings, str_from(key)), intern_str(&n->p->strings, value), is_string};
	return k;
}

/* The payload that a range carries in one of the columns for it. */
static unsigned payload_pairs(struct nsys *n, const struct sqlscan *s, struct arg_pair *pair, unsigned k)
{
	struct buf b = {0};
	for (int c = FIRST_PAYLOAD; c < JSON_TEXT_ID && !b.n; c++) {
		int64_t v;
		double real;
		if (sqlscan_i64(s, c, &v))
			buf_i64(&b, v);
		else if (sqlscan_f64(s, c, &real))
			buf_printf(&b, "%.17g", real);
	}
	if (b.n)
		k = nsys_nvtx_put(n, pair, k, "Payload", buf_view(&b), false);
	buf_release(&b);
	struct str json = nsys_nvtx_text_of(n, s, JSON_TEXT, JSON_TEXT_ID);
	unsigned of_nccl = json.p ? nsys_comms_json(n, n->nvtx->comms, json, pair + k, PAIRS_MAX - k) : 0;
	k += of_nccl;
	if (json.p && !of_nccl)
		k = nsys_nvtx_put(n, pair, k, "Payload", json, true);
	struct str binary = sqlscan_str(s, BINARY);
	if (binary.n)
		k += nsys_payload_args(n, n->nvtx->payloads, binary, pair + k, PAIRS_MAX - k);
	return k;
}

/* The arguments of the marker, and what else the row states. `range`: its name, 0 = a mark. */
static uint32_t args_of(struct nsys *n, const struct sqlscan *s, uint32_t args, uint32_t domain, uint32_t range)
{
	struct arg_pair pair[PAIRS_MAX];
	const struct profile *p = n->p;
	unsigned k = 0, more;
	uint32_t first = p->arg_set.first[args], end = args + 1 < p->arg_set.rows.n ? p->arg_set.first[args + 1] : p->arg.rows.n;
	for (uint32_t i = args ? first : end; i < end && k < PAIRS_MAX; i++)
		pair[k++] = (struct arg_pair){p->arg.key[i], p->arg.value[i], p->arg.is_string[i]};
	more = k;
	int64_t category = nsys_int(n, s, CATEGORY, 0), thread, end_thread;
	if (category) {
		uint32_t at = category_place(n, domain, category);
		if (!n->nvtx->category[at])
			load_names(n);
		struct buf b = {0};
		buf_i64(&b, category);
		struct str name = n->nvtx->category[at] ? intern_get(&p->strings, n->nvtx->category[at]) : buf_view(&b);
		k = nsys_nvtx_put(n, pair, k, "Category", name, true);
		buf_release(&b);
	}
	if (sqlscan_i64(s, THREAD, &thread) && sqlscan_i64(s, END_THREAD, &end_thread) && end_thread != thread && end_thread) {
		struct buf b = {0};
		buf_i64(&b, nsys_tid(end_thread));
		k = nsys_nvtx_put(n, pair, k, "End thread", buf_view(&b), false);
		buf_release(&b);
	}
	k = payload_pairs(n, s, pair, k);
	if (domain && range && sqlscan_i64(s, THREAD, &thread))
		k = nsys_comms_complete(n, n->nvtx->comms, thread, range, pair, k, PAIRS_MAX);
	return k == more ? args : build_args(&n->b, pair, k);
}

static bool nsys_nvtx_is_bare(const struct sqlscan *s)
{
	unsigned types = s->v[END_THREAD].type;
	for (int c = CATEGORY; c <= BINARY; c++)
		types |= s->v[c].type;
	return types == SQLPAGE_NULL;
}

/* Whether a thread ended what it had started, and it is an op of that thread. */
static bool nsys_nvtx_is_thread_op(const struct sqlscan *s, const struct marker *m)
{
	int64_t from, to;
	return m->is_node && sqlscan_i64(s, THREAD, &from) && (!sqlscan_i64(s, END_THREAD, &to) || to == from);
}

static void range_row(struct nsys *n, const struct sqlscan *s, int64_t type)
{
	bool open;
	uint32_t domain = nsys_nvtx_domain_of(n, s);
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .cat = n->nvtx->domain[domain].cat};
	nsys_count(n, r.cat);
	if (!nsys_times(n, s, START, END, &r.start_ns, &r.dur_ns, &open))
		return;
	struct marker m = nsys_nvtx_marker_of(n, s, domain);
	r.link_id = m.link_id;
	if (!(n->p->left_out & LEFT_OP_IDS)) {
		r.op_id = m.op_id;
		r.input_ops = m.input_ops;
	}
	r.name = m.name;
	bool plain = nsys_nvtx_is_bare(s) && !(domain && nsys_comms_is_group(intern_get(&n->p->strings, m.name)));
	r.args = plain ? m.args : args_of(n, s, m.args, domain, m.name);
	bool loose = type == NVTX_START_END && !nsys_nvtx_is_thread_op(s, &m);
	r.kind = loose ? SPAN_RANGE : m.kind;
	if (type == NVTX_PUSH_POP && !open)
		nsys_popped(n, r.start_ns + r.dur_ns);
	r.track = loose ? nsys_range_track(n, s, THREAD) : nsys_thread_track(n, s, THREAD);
	nsys_span(n, &r, open);
}

static void mark_row(struct nsys *n, const struct sqlscan *s)
{
	int64_t at;
	uint32_t domain = nsys_nvtx_domain_of(n, s);
	uint16_t cat = n->nvtx->domain[domain].cat;
	build_count(&n->b, cat, 'i', 1);
	if (!sqlscan_i64(s, START, &at)) {
		NSYS_DIAG(n, "bad-time", DIAG_LOSS, ": a mark without a time");
		return;
	}
	uint32_t name = intern_str(&n->p->strings, nsys_nvtx_text_of(n, s, TEXT, TEXT_ID));
	build_mark(&n->b, at, name, nsys_thread_track(n, s, THREAD), nsys_nvtx_is_bare(s) ? 0 : args_of(n, s, 0, domain, 0), cat, 'i');
}

/* Finding the track may make it, and move the table: both are done before this is called. */
static void name_track(struct nsys *n, uint32_t track, struct str name)
{
	n->p->track.thread_name[track] = intern_str(&n->p->strings, name);
}

static void name_thread(struct nsys *n, const struct sqlscan *s)
{
	int64_t global;
	if (sqlscan_i64(s, THREAD, &global))
		name_track(n, nsys_thread_track(n, s, THREAD), nsys_nvtx_text_of(n, s, TEXT, TEXT_ID));
}

void nsys_nvtx_row(struct nsys *n, const struct sqlscan *s)
{
	nvtx_of(n);
	int64_t type = nsys_int(n, s, TYPE, -1);
	if (type == NVTX_PUSH_POP || type == NVTX_START_END) {
		range_row(n, s, type);
		return;
	}
	if (type == NVTX_MARK) {
		mark_row(n, s);
		return;
	}
	build_count(&n->b, nsys_cat(n, "nvtx"), 'M', 1);
	if (type == NVTX_DOMAIN_CREATE || type == NVTX_CATEGORY)
		learn_name(n, s, type);
	else if (type == NVTX_THREAD)
		name_thread(n, s);
	else if (type != NVTX_DOMAIN_DESTROY)
		NSYS_DIAG(n, "unknown-nvtx-event", DIAG_NOTE, ": eventType %lld is not known: only counted", (long long)type);
}
