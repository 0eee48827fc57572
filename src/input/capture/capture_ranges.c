/* Ranges: a thread's open ones are a stack, on which those of each domain are linked to each other. */
#include "input/capture/capture.h"

#include "base/search.h"
#include "base/sort.h"
#include "io/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAIRS_MAX = 96 };

static uint32_t capture_ranges_domain_place(struct capture *c, uint32_t domain)
{
	if (domain < CAPTURE_DOMAINS)
		return domain;
	diag_add(&c->p->diags, "damaged-record", DIAG_LOSS, c->offset, "%s: a record of domain %u, which there cannot be", c->name, domain);
	return CAPTURE_DOMAINS - 1;
}

void capture_thread_begin(struct capture *c, uint32_t tid, uint32_t number)
{
	struct capture_thread *t = &c->thread;
	t->tid = tid;
	t->number = number;
	t->track = t->range_track = ROW_NONE;
	t->n_open = 0;
	t->step_name = 0;
	if (!t->top)
		t->top = NEW_ARRAY(CAPTURE_DOMAINS, uint32_t);
}

/* ---- the record ---- */

/* The parts of a range, in the order of their bits. */
struct capture_ranges_parts {
	uint32_t seq, op_id, sizes, category, colour, domain, payload_kind, text_bytes;
	uint64_t payload, range;
	const char *text;
	bool has_op;
};

static bool capture_ranges_take(const char **at, const char *end, uint32_t *a, uint32_t *b)
{
	if (end - *at < 8)
		return false;
	memcpy(a, *at, 4);
	memcpy(b, *at + 4, 4);
	*at += 8;
	return true;
}

static bool take_u64(const char **at, const char *end, uint64_t *v)
{
	uint32_t low, high;
	if (!capture_ranges_take(at, end, &low, &high))
		return false;
	*v = low | (uint64_t)high << 32;
	return true;
}

static bool capture_ranges_parts_of(const struct wire_head *h, uint32_t bytes, struct capture_ranges_parts *p)
{
	const char *at = (const char *)h + sizeof(struct wire_range), *end = (const char *)h + bytes;
	uint32_t unused;
	*p = (struct capture_ranges_parts){.seq = UINT32_MAX, .op_id = UINT32_MAX, .has_op = h->flags & WIRE_HAS_OP};
	if ((h->flags & WIRE_HAS_OP && !capture_ranges_take(&at, end, &p->seq, &p->op_id)) || (h->flags & WIRE_HAS_SIZES && !capture_ranges_take(&at, end, &p->sizes, &unused)) ||
	    (h->flags & WIRE_HAS_ATTR && !capture_ranges_take(&at, end, &p->category, &p->colour)) ||
	    (h->flags & WIRE_HAS_DOMAIN && !capture_ranges_take(&at, end, &p->domain, &p->payload_kind)) ||
	    (h->flags & WIRE_HAS_PAYLOAD && !take_u64(&at, end, &p->payload)) || (h->flags & WIRE_HAS_RANGE && !take_u64(&at, end, &p->range)))
		return false;
	if (h->flags & WIRE_HAS_TEXT) {
		if (end - at < 8)
			return false;
		memcpy(&p->text_bytes, at, 4);
		p->text = at + 4;
		return p->text_bytes <= (size_t)(end - p->text) && p->text_bytes <= WIRE_MAX_STRING;
	}
	return true;
}

/* The text as the program gave it. */
static struct str whole_text(struct capture *c, const struct wire_head *h, const struct capture_ranges_parts *p)
{
	struct buf *b = &c->scratch;
	buf_clear(b);
	buf_str(b, capture_text(c, h->id));
	if (p->has_op && p->seq != UINT32_MAX)
		buf_printf(b, ", seq = %u", p->seq);
	if (p->has_op && p->op_id != UINT32_MAX)
		buf_printf(b, ", op_id = %u", p->op_id);
	if (p->sizes) {
		buf_cstr(b, ", sizes = ");
		buf_str(b, capture_text(c, p->sizes));
	}
	if (p->text_bytes)
		buf_str(b, (struct str){p->text, p->text_bytes});
	return buf_view(b);
}

static struct str domain_name(const struct capture *c, uint32_t domain)
{
	return c->domain[domain].name ? intern_get(&c->p->strings, c->domain[domain].name) : (struct str){0};
}

static struct marker known_marker(struct capture *c, uint32_t at, uint32_t domain)
{
	if (c->text[at].domain != domain + 1) {
		c->text[at].marker = marker_read(c->markers, c->text[at].s, domain_name(c, domain), c->offset);
		c->text[at].domain = domain + 1;
	}
	return c->text[at].marker;
}

/* Place of the text of an op that has a number, where the text is a marker of its own ({'mod': ...}): the number stands beside it, not in it. */
static uint32_t numbered_marker(const struct capture *c, const struct wire_head *h, const struct capture_ranges_parts *p)
{
	struct str text = h->id && p->has_op && !p->sizes && !p->text_bytes ? capture_text(c, h->id) : (struct str){0};
	return text.n && text.p[0] == '{' ? idmap_get(&c->text_at, h->id) : IDMAP_NONE;
}

/* What the text says; of a text that stands in the table it is found out once. */
static struct marker capture_ranges_marker_of(struct capture *c, const struct wire_head *h, const struct capture_ranges_parts *p, uint32_t domain)
{
	uint32_t at = h->id && !p->has_op && !p->text_bytes && !p->sizes ? idmap_get(&c->text_at, h->id) : IDMAP_NONE;
	if (h->id && idmap_get(&c->text_at, h->id) == IDMAP_NONE)
		capture_string(c, h->id); /* says so */
	if (at == IDMAP_NONE && (at = numbered_marker(c, h, p)) != IDMAP_NONE) {
		struct marker m = known_marker(c, at, domain);
		m.link_id = p->seq == UINT32_MAX ? ID_NONE : p->seq;
		m.op_id = p->op_id == UINT32_MAX ? 0 : p->op_id;
		return m;
	}
	if (at == IDMAP_NONE) {
		uint32_t strings = c->p->strings.n;
		struct marker m = marker_read(c->markers, capture_bounded(c, whole_text(c, h, p)), domain_name(c, domain), c->offset);
		capture_pay(c, strings);
		m.kind = p->has_op && m.kind == SPAN_USER ? SPAN_OP : m.kind; /* the program said so */
		return m;
	}
	return known_marker(c, at, domain);
}

/* ---- arguments ---- */

static void capture_ranges_add_arg(struct capture *c, uint32_t *list, uint32_t key, struct str value, bool is_string)
{
	MEM_GROW(c->arg, c->cap_args, c->n_args + 1);
	c->arg[c->n_args] = (struct capture_arg){{key, intern_str(&c->p->strings, value), is_string}, *list};
	*list = ++c->n_args;
}

static void add_number(struct capture *c, uint32_t *list, uint32_t key, enum wire_payload kind, uint64_t v)
{
	char text[40];
	double d;
	memcpy(&d, &v, 8);
	bool finite = kind != WIRE_F64 || (d == d && d - d == 0);
	int n = kind == WIRE_F64 ? snprintf(text, sizeof text, "%.17g", d) : kind == WIRE_I64 ? snprintf(text, sizeof text, "%" PRId64, (int64_t)v) :
	                                                                                         snprintf(text, sizeof text, "%" PRIu64, v);
	capture_ranges_add_arg(c, list, key, (struct str){text, (size_t)n}, !finite); /* JSON has no number for inf and nan */
}

static uint32_t capture_ranges_key_of(struct capture *c, const char *key)
{
	return intern_str(&c->p->strings, str_from(key));
}

static uint32_t category_name(struct capture *c, uint32_t domain, uint32_t category)
{
	int64_t key[2] = {domain, category};
	uint32_t at = intern_find(&c->categories, (struct str){(const char *)key, sizeof key});
	return at == INTERN_NONE ? 0 : c->category_name[at];
}

static bool is_cut(const struct capture *c, uint32_t text)
{
	uint32_t at = text ? idmap_get(&c->text_at, text) : IDMAP_NONE;
	return at != IDMAP_NONE && c->text[at].cut;
}

static void add_attributes(struct capture *c, uint32_t *list, const struct wire_head *h, const struct capture_ranges_parts *p, uint32_t domain)
{
	char text[16];
	if (h->flags & WIRE_CUT)
		capture_text_cut(c);
	if (h->flags & WIRE_CUT || (c->n_cut && (is_cut(c, h->id) || is_cut(c, p->sizes))))
		capture_ranges_add_arg(c, list, capture_ranges_key_of(c, "Text"), STR("cut"), true);
	if (p->payload_kind && h->flags & WIRE_HAS_PAYLOAD)
		add_number(c, list, capture_ranges_key_of(c, "Payload"), p->payload_kind, p->payload);
	if (p->colour) {
		snprintf(text, sizeof text, "#%08X", p->colour);
		capture_ranges_add_arg(c, list, capture_ranges_key_of(c, "Color"), str_from(text), true);
	}
	if (p->category) {
		uint32_t name = category_name(c, domain, p->category);
		snprintf(text, sizeof text, "%u", p->category);
		capture_ranges_add_arg(c, list, capture_ranges_key_of(c, "Category"), name ? intern_get(&c->p->strings, name) : str_from(text), true);
	}
}

/* The marker's own arguments, then those that were added, in the order in which they came. */
static uint32_t all_args(struct capture *c, uint32_t args, uint32_t list)
{
	struct arg_pair pair[PAIRS_MAX];
	const struct profile *p = c->p;
	unsigned k = 0, added = 0;
	if (!list)
		return args;
	uint32_t first = p->arg_set.first[args], end = args + 1 < p->arg_set.rows.n ? p->arg_set.first[args + 1] : p->arg.rows.n;
	for (uint32_t i = args ? first : end; i < end && k < PAIRS_MAX - CAPTURE_ARGS_MAX; i++)
		pair[k++] = (struct arg_pair){p->arg.key[i], p->arg.value[i], p->arg.is_string[i]};
	for (uint32_t at = list; at && added < CAPTURE_ARGS_MAX; at = c->arg[at - 1].next)
		added++;
	for (uint32_t at = list, i = added; i > 0; at = c->arg[at - 1].next)
		pair[k + --i] = c->arg[at - 1].pair;
	return build_args(&c->b, pair, k + added);
}

/* ---- push and pop ---- */

static struct capture_range capture_ranges_range_of(struct capture *c, const struct wire_head *h, const struct capture_ranges_parts *p, int64_t start)
{
	uint32_t domain = capture_ranges_domain_place(c, p->domain);
	struct marker m = capture_ranges_marker_of(c, h, p, domain);
	struct capture_range r = {.range = p->range, .domain = domain, .is_node = m.is_node};
	r.row = (struct span_row){.start_ns = start, .ext_id = ID_NONE, .link_id = m.link_id, .aux_id = -1, .op_id = m.op_id, .input_ops = m.input_ops, .name = m.name, .args = m.args,
	                          .cat = c->domain[domain].cat, .kind = m.kind};
	add_attributes(c, &r.args, h, p, domain);
	return r;
}

static void add_span(struct capture *c, struct capture_range *r, int64_t end_ns)
{
	r->row.dur_ns = end_ns > r->row.start_ns ? end_ns - r->row.start_ns : 0;
	if (end_ns < r->row.start_ns)
		diag_add(&c->p->diags, "negative-duration", DIAG_REPAIR, c->offset, "%s: a range ends %lld ns before it begins: taken as 0", c->name,
		         (long long)(r->row.start_ns - end_ns));
	r->row.args = all_args(c, r->row.args, r->args);
	capture_count(c, r->row.cat);
	build_span(&c->b, &r->row);
}

static void capture_ranges_mark(struct capture *c, const struct wire_head *h, const struct capture_ranges_parts *p, int64_t at)
{
	uint32_t domain = capture_ranges_domain_place(c, p->domain), list = 0, had = c->n_args;
	uint16_t cat = c->domain[domain].cat;
	uint32_t name = capture_made(c, whole_text(c, h, p));
	add_attributes(c, &list, h, p, domain);
	build_count(&c->b, cat, 'i', 1);
	build_mark(&c->b, at, name, capture_track(c, c->thread.tid, false), all_args(c, 0, list), cat, 'i');
	c->n_args = had;
}

void capture_range(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	struct capture_thread *t = &c->thread;
	struct capture_ranges_parts parts;
	int64_t at;
	if (!capture_ranges_parts_of(h, bytes, &parts)) {
		diag_add(&c->p->diags, "damaged-record", DIAG_LOSS, c->offset, "%s: a range whose parts do not fit in its record", c->name);
		return;
	}
	if (!capture_time(c, ((const struct wire_range *)h)->time_ns, &at))
		return;
	if (h->type == WIRE_MARK) {
		capture_ranges_mark(c, h, &parts, at);
		return;
	}
	struct capture_range r = capture_ranges_range_of(c, h, &parts, at);
	if (h->type == WIRE_START) {
		r.row.kind = SPAN_RANGE;
		r.row.track = capture_track(c, t->tid, true);
		r.tid = t->tid;
		r.op_track = r.is_node ? capture_track(c, t->tid, false) : ROW_NONE;
		MEM_PUSH(c->started, c->n_started, c->cap_started, r);
		return;
	}
	r.row.track = capture_track(c, t->tid, false);
	r.below = t->top[r.domain];
	MEM_PUSH(t->open, t->n_open, t->cap_open, r);
	t->top[r.domain] = t->n_open;
}

void capture_pop(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	struct capture_thread *t = &c->thread;
	uint32_t domain = capture_ranges_domain_place(c, h->id), at = t->top[domain];
	int64_t end;
	if (!at) {
		c->before++;
		return;
	}
	struct capture_range *r = &t->open[at - 1];
	if (capture_time(c, ((const struct wire_pop *)h)->time_ns, &end))
		add_span(c, r, end);
	t->top[domain] = r->below;
	r->closed = true;
	while (t->n_open && t->open[t->n_open - 1].closed)
		t->n_open--;
	if (!t->n_open && !c->n_started)
		c->n_args = 0;
}

/* What has no end of its own ends where the recording does: its length says little, and a step of that kind counts in no mean. */
static void add_cut(struct capture *c, struct capture_range *r, int64_t end_ns)
{
	capture_ranges_add_arg(c, &r->args, capture_ranges_key_of(c, arg_key_text[ARG_NOT_TO_END]), STR("not to its end"), true);
	add_span(c, r, end_ns);
}

static struct span_row step_row(struct capture *c)
{
	const struct capture_thread *t = &c->thread;
	return (struct span_row){.start_ns = t->step_ns, .ext_id = ID_NONE, .link_id = ID_NONE, .aux_id = -1, .name = t->step_name,
	                         .track = capture_track(c, t->tid, false), .cat = capture_cat(c, "step"), .kind = SPAN_USER};
}

/* Chunks of the thread are gone: where its open ranges ended is not known. */
void capture_drop_open(struct capture *c)
{
	struct capture_thread *t = &c->thread;
	for (uint32_t i = 0; i < t->n_open; i++)
		c->dropped += !t->open[i].closed;
	c->dropped += t->step_name != 0;
	t->n_open = 0;
	t->step_name = 0;
	memset(t->top, 0, CAPTURE_DOMAINS * sizeof *t->top);
}

/* Absolute time; the end of what is open. */
void capture_close_all(struct capture *c, int64_t time_ns, uint32_t why)
{
	struct capture_thread *t = &c->thread;
	int64_t end;
	if ((!t->n_open && !t->step_name) || !capture_time(c, time_ns, &end))
		end = 0;
	if (t->step_name) {
		struct capture_range step = {.row = step_row(c)};
		(why == WIRE_WHY_STEPS ? add_span : add_cut)(c, &step, end > t->step_ns ? end : t->step_ns); /* --steps ends where a step does */
		t->step_name = 0;
	}
	for (uint32_t i = t->n_open; i-- > 0;) {
		struct capture_range *r = &t->open[i];
		if (!r->closed)
			add_cut(c, r, end > r->row.start_ns ? end : r->row.start_ns);
	}
	t->n_open = 0;
	memset(t->top, 0, CAPTURE_DOMAINS * sizeof *t->top);
}

/* Until when something is known to have been open that began at that (absolute) time: collecting was switched off, or the process ended (NULL). */
static const struct capture_off *end_of_open(const struct capture *c, int64_t start_ns)
{
	uint32_t from = FIRST_WHERE(i, 0, c->n_off, c->off[i].time_ns >= start_ns);
	return from < c->n_off ? &c->off[from] : NULL;
}

static void capture_ranges_later(struct capture *c, const struct capture_range *r)
{
	MEM_GROW(c->started, c->cap_started, c->n_started + 1);
	c->started[c->n_started] = *r;
	c->started[c->n_started++].range = 0;
}

/* When that was is known when all threads were read. */
void capture_close_later(struct capture *c)
{
	struct capture_thread *t = &c->thread;
	for (uint32_t i = 0; i < t->n_open; i++)
		if (!t->open[i].closed)
			capture_ranges_later(c, &t->open[i]);
	if (t->step_name)
		capture_ranges_later(c, &(struct capture_range){.row = step_row(c), .is_step = true});
	t->n_open = 0;
	t->step_name = 0;
	memset(t->top, 0, CAPTURE_DOMAINS * sizeof *t->top);
}

/* ---- start and end ---- */

void capture_end(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_end *e = (const struct wire_end *)h;
	int64_t at;
	if (!capture_time(c, e->time_ns, &at))
		return;
	MEM_PUSH(c->ended, c->n_ended, c->cap_ended, (struct capture_range){.row = {.start_ns = at, .track = c->thread.tid}, .range = e->range});
}

/* When a range began or ended. */
struct moment {
	uint64_t range;
	int64_t time_ns;
	uint32_t at;
};

static int by_range_and_time(const void *x, const void *y)
{
	const struct moment *a = x, *b = y;
	return COMPARE(a->range, b->range) ?: COMPARE(a->time_ns, b->time_ns) ?: COMPARE(a->at, b->at);
}

/* Those with a number, sorted. */
static struct moment *moments_of(const struct capture_range *r, uint32_t n, uint32_t *kept)
{
	struct moment *m = NEW_ARRAY((size_t)n + 1, struct moment);
	*kept = 0;
	for (uint32_t i = 0; i < n; i++)
		if (r[i].range)
			m[(*kept)++] = (struct moment){r[i].range, r[i].row.start_ns, i};
	qsort(m, *kept, sizeof *m, by_range_and_time);
	return m;
}

static bool is_only_one(const struct moment *m, uint32_t n, uint32_t i)
{
	return (!i || m[i - 1].range != m[i].range) && (i + 1 == n || m[i + 1].range != m[i].range);
}

/* The end of each started range, or ROW_NONE. Numbers may come again (ITT's events and frames have the same one each time): by time, an end is that
 * of the innermost range of its number. One that is the only one of its number belongs to the only start, even where a clock was set between them. */
static uint32_t *ends_of_started(const struct capture *c)
{
	uint32_t n_starts, n_ends, n_open = 0, i = 0, *end = NEW_ARRAY((size_t)c->n_started + 1, uint32_t), *open = NEW_ARRAY((size_t)c->n_started + 1, uint32_t);
	struct moment *start = moments_of(c->started, c->n_started, &n_starts), *stop = moments_of(c->ended, c->n_ended, &n_ends);
	uint64_t range = 0;
	for (uint32_t k = 0; k < c->n_started; k++)
		end[k] = ROW_NONE;
	for (uint32_t k = 0; k < n_ends; k++) {
		const struct moment *m = &stop[k];
		if (m->range != range)
			n_open = 0;
		range = m->range;
		while (i < n_starts && start[i].range < range)
			i++;
		for (; i < n_starts && start[i].range == range && (start[i].time_ns < m->time_ns || (start[i].time_ns == m->time_ns && !n_open)); i++)
			open[n_open++] = start[i].at;
		if (n_open)
			end[open[--n_open]] = m->at;
		else if (i < n_starts && start[i].range == range && is_only_one(start, n_starts, i) && is_only_one(stop, n_ends, k))
			end[start[i].at] = m->at;
	}
	mem_free(start);
	mem_free(stop);
	mem_free(open);
	return end;
}

/* Whether events of this process were lost with which the ends of ranges may have gone. A pop has its room in the chunk of its push. */
static bool may_have_lost_ends(const struct capture *c, bool steps)
{
	static const enum wire_loss of_events[] = {WIRE_LOST_FULL, WIRE_LOST_DISK, WIRE_LOST_THREADS, WIRE_LOST_NESTED, WIRE_LOST_BUSY, WIRE_LOST_RING};
	const uint64_t *lost = c->file->h.lost;
	for (size_t i = 0; i < sizeof of_events / sizeof of_events[0]; i++)
		if (lost[of_events[i]] && !(steps && of_events[i] == WIRE_LOST_RING)) /* of a thread the newest is there: capture_drop_open */
			return true;
	return false;
}

/* A step has no end of its own: it ends where --steps does, or with a process that left by exit(). */
static bool is_cut_off(const struct capture *c, const struct capture_range *r, const struct capture_off *off)
{
	return !r->is_step || (off ? off->why != WIRE_WHY_STEPS : c->file->h.state != WIRE_ENDED);
}

static void end_open(struct capture *c, struct capture_range *r)
{
	const struct capture_off *off = end_of_open(c, r->row.start_ns + c->base_ns);
	int64_t end = (off ? off->time_ns : c->last_ns) - c->base_ns;
	c->open_at_end += !off && !r->is_step;
	(is_cut_off(c, r, off) ? add_cut : add_span)(c, r, end < r->row.start_ns ? r->row.start_ns : end);
}

void capture_match_ranges(struct capture *c)
{
	uint32_t *end_of = ends_of_started(c);
	bool no_ends = may_have_lost_ends(c, false), no_steps = may_have_lost_ends(c, true);
	for (uint32_t i = 0; i < c->n_started; i++) {
		struct capture_range *r = &c->started[i];
		uint32_t e = end_of[i];
		if (e == ROW_NONE && (r->is_step ? no_steps : r->range && no_ends)) {
			c->end_lost++;
			continue;
		}
		if (e == ROW_NONE) {
			end_open(c, r);
		} else {
			c->ended[e].closed = true;
			if (r->is_node && c->ended[e].row.track == r->tid) {
				r->row.kind = SPAN_OP;
				r->row.track = r->op_track;
			}
			add_span(c, r, c->ended[e].row.start_ns);
		}
	}
	for (uint32_t i = 0; i < c->n_ended; i++)
		c->before += !c->ended[i].closed;
	mem_free(end_of);
	c->n_started = c->n_ended = c->n_args = 0;
}

/* ---- the C API ---- */

static bool is_json(struct capture *c, uint32_t text)
{
	struct str s = capture_text(c, text);
	struct json_value v;
	buf_clear(&c->scratch);
	buf_str(&c->scratch, s);
	buf_fill(&c->scratch, 0, JSON_PADDING);
	struct json j = {.end = c->scratch.p + s.n};
	const char *end = json_value(&j, c->scratch.p, &v);
	return end && v.type != JSON_STRING && !j.repairs && end == j.end;
}

/* "[1, -1]" */
static void add_numbers(struct capture *c, uint32_t *list, uint32_t key, const struct wire_arg *a, uint32_t bytes)
{
	const char *at = (const char *)(a + 1);
	int64_t v;
	if (a->value > WIRE_MAX_NUMBERS || a->value > (bytes - sizeof *a) / sizeof v) {
		diag_add(&c->p->diags, "damaged-record", DIAG_LOSS, c->offset, "%s: an argument with more numbers than its record holds", c->name);
		return;
	}
	buf_clear(&c->scratch);
	buf_char(&c->scratch, '[');
	for (uint64_t i = 0; i < a->value; i++) {
		memcpy(&v, at + 8 * i, sizeof v);
		buf_printf(&c->scratch, "%s%" PRId64, i ? ", " : "", v);
	}
	buf_char(&c->scratch, ']');
	capture_ranges_add_arg(c, list, key, buf_view(&c->scratch), false);
}

void capture_arg_record(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_arg *a = (const struct wire_arg *)h;
	uint32_t domain = capture_ranges_domain_place(c, a->domain), at = c->thread.top[domain];
	struct capture_range *r = at ? &c->thread.open[at - 1] : NULL;
	if (!r)
		return; /* its range began before the recording */
	if (h->flags == WIRE_ARG_I64S)
		add_numbers(c, &r->args, capture_string(c, h->id), a, bytes);
	else if (h->flags == WIRE_ARG_I64 || h->flags == WIRE_ARG_F64)
		add_number(c, &r->args, capture_string(c, h->id), h->flags == WIRE_ARG_I64 ? WIRE_I64 : WIRE_F64, a->value);
	else
		capture_ranges_add_arg(c, &r->args, capture_string(c, h->id), capture_text(c, (uint32_t)a->value), h->flags != WIRE_ARG_JSON || !is_json(c, (uint32_t)a->value));
}

void capture_step(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_step *s = (const struct wire_step *)h;
	struct str name = capture_text(c, h->id);
	int64_t at;
	if (!capture_time(c, s->time_ns, &at))
		return;
	if (c->thread.step_name) {
		struct capture_range r = {.row = step_row(c)};
		add_span(c, &r, at);
	}
	if (name.n > CAPTURE_SHORT) /* each step is another text */
		diag_add(&c->p->diags, "step-name-cut", DIAG_NOTE, c->offset, "%s: a step whose name is longer than %d bytes: cut", c->name, CAPTURE_SHORT);
	buf_clear(&c->scratch);
	buf_str(&c->scratch, name.n ? capture_short(name) : STR("ProfilerStep"));
	buf_printf(&c->scratch, "#%lld", (long long)s->number);
	c->thread.step_name = capture_made(c, buf_view(&c->scratch));
	c->thread.step_ns = at;
}
