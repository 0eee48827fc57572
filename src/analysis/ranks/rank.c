#include "analysis/ranks/rank.h"

#include "analysis/analysis.h"
#include "analysis/costs/costs.h"
#include "analysis/names/names.h"
#include "analysis/ranks/rank_comms.h"
#include "analysis/ranks/rank_groups.h"
#include "analysis/ranks/rank_host_calls.h"
#include "analysis/ranks/rank_place.h"
#include "analysis/ranks/rank_workers.h"
#include "analysis/steps/steps.h"
#include "analysis/time/thinned.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

/* What the kernel does not say of its collective, a range around its launch may: at most so many ranges are looked at. No framework nests deeper. */
enum { RANK_LOOK_UP = 12 };
/* Bytes of an all-to-all that are shared among its parts: a double has them exactly. */
static const int64_t RANK_PARTS_MOST = INT64_C(1) << 53;

struct rank_work {
	const struct profile *p;
	struct rank *r;
	const struct gpus *gpus;
	uint32_t gpu;              /* index of the rank's GPU; GPUS_NONE = work of all of them */
	struct costs *costs;
	struct rank_groups groups;
	struct intern streams;
	struct intervals computing, talking, copying;
	struct intervals loading, collecting;
	bool is_merged;            /* several ranks were merged into the recording: its steps are none of this rank */
	int64_t *kernel_start;     /* of all kernels but collectives, ascending */
	size_t n_kernels;
	uint32_t cap_sent;
};

static bool rank_has_gpu_op(const struct rank_work *w, uint32_t g)
{
	return w->gpu == GPUS_NONE || gpus_of(w->gpus, w->p, g) == w->gpu;
}

static bool rank_is_call(const struct profile *p, uint32_t g)
{
	return p->gpu_op.kind[g] == GPU_KERNEL && gpu_kernel(p, g)->class == KERNEL_COMM;
}

/* By GPU: whether it ran collectives. */
static uint32_t rank_talking_gpus(const struct profile *p, const struct gpus *gpus, uint8_t *talks)
{
	uint32_t n = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint32_t gpu = gpus_of(gpus, p, g);
		if (gpu == GPUS_NONE || talks[gpu] || !rank_is_call(p, g))
			continue;
		talks[gpu] = 1;
		n++;
	}
	return n;
}

/* Index of the i-th GPU that ran collectives; of a recording with at most one such GPU, of the first GPU. GPUS_NONE: no GPU worked. *count: rank_count. */
static uint32_t rank_gpu(const struct profile *p, const struct gpus *gpus, unsigned i, unsigned *count)
{
	uint8_t *talks = NEW_ARRAY(gpus->n, uint8_t);
	uint32_t n = rank_talking_gpus(p, gpus, talks), found = gpus->n ? 0 : GPUS_NONE;
	for (uint32_t gpu = 0, k = 0; gpu < gpus->n && n; gpu++)
		if (talks[gpu] && k++ == i)
			found = gpu;
	mem_free(talks);
	*count = n > 1 ? n : 1;
	return found;
}

unsigned rank_count(const struct profile *p)
{
	struct gpus gpus;
	unsigned n = rank_workers_count(p);
	if (n)
		return n;
	gpus_find(p, &gpus);
	rank_gpu(p, &gpus, 0, &n);
	gpus_release(&gpus);
	return n;
}

static int64_t rank_epoch(const struct profile *p)
{
	struct str text;
	int64_t v;
	return profile_meta(p, "baseTimeNanoseconds", &text) && str_to_i64(text, &v) && v > 0 && v < INT64_MAX / 4 ? v : 0;
}

static bool rank_says(const struct profile *p, const char *key)
{
	struct str v;
	return profile_meta(p, key, &v) && (str_eqc(v, "1") || str_eqc(v, "true"));
}

/* Of several GPUs in one recording: their communicators number them, or else they are counted. */
static void rank_number(struct rank_work *w, unsigned i, unsigned count)
{
	uint8_t *talks = NEW_ARRAY(w->gpus->n, uint8_t);
	int64_t *number = NEW_ARRAY(w->gpus->n, int64_t), world;
	rank_talking_gpus(w->p, w->gpus, talks);
	bool told = rank_comms_numbers(w->p, w->gpus, talks, number, &world);
	w->r->number = told ? number[w->gpu] : (int64_t)i;
	w->r->world = told ? world : (int64_t)count;
	mem_free(talks);
	mem_free(number);
}

/* What the rank is, before its events are looked at. */
static void rank_read_head(struct rank_work *w, unsigned i, unsigned count)
{
	const struct profile *p = w->p;
	struct rank *r = w->r;
	struct rank_place place = rank_place_of(p);
	w->is_merged = place.is_merged;
	r->path = arena_str(&r->arena, p->input_path);
	r->number = place.is_rank ? place.rank : RANK_UNKNOWN;
	/* A trace into which several ranks were merged, and of which the collectives do not tell them apart, is of no rank. */
	r->world = place.is_merged && count == 1 ? 0 : place.world;
	if (count > 1 && !place.is_merged)
		rank_number(w, i, count);
	r->device = w->gpu == GPUS_NONE ? INT32_MIN : w->gpus->device[w->gpu];
	if (place.is_merged && w->gpu != GPUS_NONE)
		r->number = r->device;
	uint32_t row = w->gpu == GPUS_NONE ? ROW_NONE : profile_device_row(p, r->device);
	r->gpu = row == ROW_NONE ? STR("") : arena_str(&r->arena, profile_str(p, p->device.name[row]));
	struct str host;
	r->host = profile_meta(p, "system:Hostname", &host) ? arena_str(&r->arena, host) : STR("");
	r->gpus_seen = p->device.rows.n;
	r->epoch_ns = rank_epoch(p);
	const struct thinned thinned = thinned_of(p);
	r->recording = (struct rank_recording){
		.stacks = rank_says(p, "with_stack"),
		.memory = rank_says(p, "profile_memory"),
		.thinned = thinned_is(&thinned),
	};
}

/* All device work of the rank by kind, and its collectives in order of start. */
static struct sort_item *rank_sort_out(struct rank_work *w, uint32_t *n)
{
	const struct gpu_ops *g = &w->p->gpu_op;
	struct sort_item *v = NEW_ARRAY_RAW(g->rows.n, struct sort_item);
	*n = 0;
	w->kernel_start = NEW_ARRAY_RAW(g->rows.n, int64_t);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (!rank_has_gpu_op(w, i))
			continue;
		bool call = rank_is_call(w->p, i);
		intervals_add(call ? &w->talking : g->kind[i] == GPU_MEMCPY ? &w->copying : &w->computing, g->start_ns[i], gpu_end(w->p, i));
		if (!call && g->kind[i] == GPU_KERNEL)
			w->kernel_start[w->n_kernels++] = g->start_ns[i];
		if (call)
			v[(*n)++] = (struct sort_item){sort_key_i64(g->start_ns[i]), i, 0};
	}
	intervals_normalise(&w->computing);
	intervals_normalise(&w->talking);
	intervals_normalise(&w->copying);
	sort_i64(w->kernel_start, w->n_kernels);
	sort_items(v, *n);
	return v;
}

/* The kind that the kernel, or what is around its launch, says; that of a range around it where the kernel is one of several kinds. */
static enum comm_kind rank_kind_of(const struct profile *p, uint32_t g)
{
	struct str said;
	if (profile_arg(p, p->gpu_op.args[g], ARG_COLLECTIVE, &said) && said.n)
		return comm_kind_of(said);
	enum comm_kind by_kernel = comm_kind_of(profile_str(p, p->gpu_op.name[g]));
	if (by_kernel != COMM_SEND_RECV && by_kernel != COMM_UNKNOWN)
		return by_kernel;
	uint32_t at = p->gpu_op.call[g];
	for (int i = 0; i < RANK_LOOK_UP && at != ROW_NONE; i++, at = p->span.parent[at]) {
		enum comm_kind by_range = profile_arg(p, p->span.args[at], ARG_COLLECTIVE, &said) ? comm_kind_of(said) : COMM_UNKNOWN;
		if (by_range == COMM_SEND_RECV)
			continue; /* so is an all-to-all made: a range around it may say so */
		if (by_range != COMM_UNKNOWN)
			return by_range;
		by_range = name_is(p, p->span.name[at], NAME_COMM) ? comm_kind_of(profile_str(p, p->span.name[at])) : COMM_UNKNOWN;
		if (by_range != COMM_UNKNOWN)
			return by_range;
	}
	return by_kernel;
}

static uint32_t rank_kernel_text(struct rank_work *w, uint32_t g)
{
	struct str s = profile_str(w->p, w->p->gpu_op.name[g]);
	const char *args = memchr(s.p, '(', s.n);
	return intern_str(&w->r->texts, args && args > s.p ? (struct str){s.p, (size_t)(args - s.p)} : s);
}

/* The innermost range around the launch that is not the collective's own. */
static uint32_t rank_op_text(struct rank_work *w, uint32_t g)
{
	const struct profile *p = w->p;
	uint32_t at = p->gpu_op.call[g];
	for (; at != ROW_NONE; at = p->span.parent[at])
		if ((p->span.kind[at] == SPAN_OP || p->span.kind[at] == SPAN_USER) && !name_is(p, p->span.name[at], NAME_COMM))
			return intern_str(&w->r->texts, profile_str(p, p->span.name[at]));
	return 0;
}

static uint32_t rank_stream(struct rank_work *w, uint32_t g)
{
	const uint32_t l = w->p->gpu_op.launch[g];
	const int64_t key[2] = {w->p->launch.device[l], w->p->launch.stream[l]};
	return intern_put_key(&w->streams, key, sizeof key) - 1;
}

/* Sends and receives of a group that is an all-to-all are counted with what a rank sends to itself, which no wire carries. */
static int64_t rank_wire_bytes(const struct rank_work *w, const struct rank_call *c, int64_t wire)
{
	int64_t ranks = w->r->group[c->group].size;
	bool own_part = c->kind == COMM_ALL_TO_ALL && wire == c->bytes && wire > 0;
	return own_part ? ranks > 1 ? wire / ranks * (ranks - 1) + wire % ranks * (ranks - 1) / ranks : -1 : wire;
}

static void rank_size_call(const struct rank_work *w, uint32_t i, struct rank_call *c)
{
	const struct cost *cost = i != ROW_NONE && w->costs->cost[i].class == OP_COMM ? &w->costs->cost[i] : NULL;
	c->bytes = cost && cost->message_bytes >= 0 ? cost->message_bytes : -1;
	c->wire_bytes = cost && cost->wire_bytes >= 0 ? rank_wire_bytes(w, c, cost->wire_bytes) : -1;
	/* The op may not know how many ranks there are, as the group does. */
	if (cost && cost->wire_bytes < 0 && c->bytes >= 0 && w->r->group[c->group].size > 0)
		c->wire_bytes = comm_wire_bytes((enum comm_kind)c->kind, c->bytes, w->r->group[c->group].size);
}

/* Keeps what an all-to-all sends to each rank of its group: its bytes, shared in proportion to the parts. */
static void rank_keep_parts(struct rank_work *w, uint32_t g, struct rank_call *c)
{
	struct rank *r = w->r;
	int64_t part[RANK_GROUPS_PARTS];
	double all = 0;
	int n = c->kind == COMM_ALL_TO_ALL && c->bytes > 0 && c->bytes < RANK_PARTS_MOST ? rank_groups_parts(w->p, g, part) : -1;
	for (int i = 0; i < n; i++)
		all += (double)part[i];
	c->sent = n ? 0 : RANK_EQUAL_PARTS;
	if (n < 1 || (uint32_t)n != r->group[c->group].n || all <= 0)
		return;
	c->sent = r->n_sent + 1;
	for (int i = 0; i < n; i++)
		MEM_PUSH(r->sent, r->n_sent, w->cap_sent, (int64_t)((double)c->bytes * (double)part[i] / all + 0.5));
}

/* A collective that is a kernel. */
static void rank_read_kernel(struct rank_work *w, uint32_t g, struct rank_call *c)
{
	c->start_ns = w->p->gpu_op.start_ns[g] + w->r->epoch_ns;
	c->end_ns = gpu_end(w->p, g) + w->r->epoch_ns;
	c->kind = (uint8_t)rank_kind_of(w->p, g);
	c->kernel = rank_kernel_text(w, g);
	c->op = rank_op_text(w, g);
	c->stream = rank_stream(w, g);
	c->row = g;
	c->group = rank_groups_of(&w->groups, w->p, rank_groups_at_kernel(w->p, g), &c->seq);
	rank_size_call(w, w->costs->of_gpu[g], c);
	c->peer = rank_groups_peer(w->p, g, (enum comm_kind)c->kind, &w->r->group[c->group]);
	rank_keep_parts(w, g, c);
}

/* A collective that is a range of the host: no stream tells those of different groups apart. */
static void rank_read_range(struct rank_work *w, uint32_t span, struct rank_call *c)
{
	struct str name = profile_str(w->p, w->p->span.name[span]);
	c->start_ns = w->p->span.start_ns[span] + w->r->epoch_ns;
	c->end_ns = span_end(w->p, span) + w->r->epoch_ns;
	c->kind = (uint8_t)comm_kind_of(name);
	c->kernel = intern_str(&w->r->texts, name);
	c->row = ROW_NONE;
	c->group = rank_groups_of(&w->groups, w->p, (struct rank_groups_at){w->p->span.args[span], w->p->span.parent[span]}, &c->seq);
	rank_size_call(w, costs_index_of_span(w->costs, w->p, span, COST_FORWARD), c);
	c->peer = RANK_UNKNOWN;
}

static void rank_read_calls(struct rank_work *w, const struct sort_item *order, uint32_t n, bool by_host)
{
	struct rank *r = w->r;
	r->call = NEW_ARRAY(n, struct rank_call);
	r->n_calls = n;
	for (uint32_t i = 0; i < n; i++) {
		r->call[i].wait_ns = -1;
		if (by_host)
			rank_read_range(w, order[i].row, &r->call[i]);
		else
			rank_read_kernel(w, order[i].row, &r->call[i]);
	}
}

static void rank_find_host_work(struct rank_work *w)
{
	const struct profile *p = w->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum host_kind kind = name_host_kind(p, p->span.name[i]);
		if (kind == HOST_DATA || kind == HOST_GC)
			intervals_add(kind == HOST_DATA ? &w->loading : &w->collecting, p->span.start_ns[i], span_end(p, i));
	}
	intervals_normalise(&w->loading);
	intervals_normalise(&w->collecting);
}

/* What was done from `from`, up to which *past says it, until `to`; backwards where `to` is earlier. */
static struct rank_past rank_past_until(const struct rank_work *w, const struct rank_past *past, int64_t from, int64_t to)
{
	struct rank_past out = *past;
	const int64_t lo = from < to ? from : to, hi = from < to ? to : from, sign = from < to ? 1 : -1;
	out.compute_ns += sign * intervals_length_within(&w->computing, lo, hi);
	out.copy_ns += sign * intervals_length_within(&w->copying, lo, hi);
	out.talk_ns += sign * intervals_length_within(&w->talking, lo, hi);
	out.loading_ns += sign * intervals_length_within(&w->loading, lo, hi);
	out.collecting_ns += sign * intervals_length_within(&w->collecting, lo, hi);
	out.kernels = FIRST_WHERE(i, 0, w->n_kernels, w->kernel_start[i] >= to);
	return out;
}

/* What was spent in each phase from `from` until `to`, added to ns. */
static void rank_add_spent(const struct rank_phases *phases, int64_t from, int64_t to, int64_t ns[RANK_N_SPENT])
{
	for (unsigned k = 0; k < RANK_N_SPENT; k++)
		ns[k] += intervals_length_within(&phases->v[rank_spent_phase[k]], from, to);
}

static void rank_read_pasts(struct rank_work *w, const struct rank_phases *phases)
{
	struct rank *r = w->r;
	struct rank_past past = {0};
	int64_t spent[RANK_N_SPENT] = {0};
	int64_t at = r->n_calls ? r->call[0].start_ns - r->epoch_ns : 0;
	rank_find_host_work(w);
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rank_call *c = &r->call[i];
		int64_t start = c->start_ns - r->epoch_ns;
		past = c->before = rank_past_until(w, &past, at, start);
		rank_add_spent(phases, at, start, spent);
		memcpy(c->spent_ns, spent, sizeof spent);
		c->after = rank_past_until(w, &past, start, c->end_ns - r->epoch_ns);
		at = start;
	}
	intervals_release(&w->loading);
	intervals_release(&w->collecting);
}

/* Gives each moment in which collectives alone ran to the one of them that began first. */
static void rank_share_exposed(struct rank *r, const struct intervals *exposed)
{
	int64_t done = INT64_MIN;
	size_t at = 0;
	uint32_t cap = 0;
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct rank_call *c = &r->call[i];
		int64_t from = c->start_ns - r->epoch_ns, to = c->end_ns - r->epoch_ns;
		from = from > done ? from : done;
		c->piece = r->n_pieces;
		for (; at < exposed->n && exposed->v[at].end <= from; at++)
			;
		for (size_t k = at; k < exposed->n && exposed->v[k].start < to; k++) {
			int64_t start = exposed->v[k].start > from ? exposed->v[k].start : from, end = exposed->v[k].end < to ? exposed->v[k].end : to;
			if (start >= end)
				continue;
			MEM_PUSH(r->piece, r->n_pieces, cap, (struct interval){start + r->epoch_ns, end + r->epoch_ns});
			c->exposed_ns += end - start;
		}
		c->n_pieces = r->n_pieces - c->piece;
		done = to > done ? to : done;
	}
}

static void rank_fill_busy(const struct rank_work *w, const struct intervals *talk_alone, const struct intervals *copy_alone, int64_t start, int64_t end,
                           struct busy *b)
{
	int64_t *ns = b->ns;
	ns[BUSY_COMPUTE] = intervals_length_within(&w->computing, start, end);
	ns[BUSY_EXPOSED_COMM] = intervals_length_within(talk_alone, start, end);
	ns[BUSY_EXPOSED_COPY] = intervals_length_within(copy_alone, start, end);
	ns[BUSY_COMM] = intervals_length_within(&w->talking, start, end);
	ns[BUSY_COPY] = intervals_length_within(&w->copying, start, end);
	ns[BUSY_TOTAL] = end - start;
	ns[BUSY_BUSY] = ns[BUSY_COMPUTE] + ns[BUSY_EXPOSED_COMM] + ns[BUSY_EXPOSED_COPY];
	ns[BUSY_IDLE] = ns[BUSY_TOTAL] - ns[BUSY_BUSY];
}

/* From the first to the last device work of the rank. False: there is none. */
static bool rank_window(const struct rank_work *w, struct step *window)
{
	const struct intervals *const all[] = {&w->computing, &w->talking, &w->copying};
	*window = (struct step){.start_ns = INT64_MAX, .end_ns = INT64_MIN};
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		if (!all[i]->n)
			continue;
		int64_t start = all[i]->v[0].start, end = all[i]->v[all[i]->n - 1].end;
		window->start_ns = start < window->start_ns ? start : window->start_ns;
		window->end_ns = end > window->end_ns ? end : window->end_ns;
	}
	return window->start_ns < window->end_ns;
}

static void rank_read_steps(struct rank_work *w, const struct intervals *talk_alone, const struct rank_phases *phases)
{
	const struct steps *s = w->p->steps;
	struct rank *r = w->r;
	struct intervals hidden = {0}, copy_alone = {0};
	r->phases_of_host = w->p->gpu_op.rows.n == 0;
	intervals_union(&w->computing, &w->talking, &hidden);
	intervals_subtract(&w->copying, &hidden, &copy_alone);
	struct step window;
	const bool is_window = w->is_merged && rank_window(w, &window);
	r->steps_are_window = s->whole_trace || is_window;
	r->n_steps = is_window ? 1 : s->n;
	r->step = NEW_ARRAY(r->n_steps, struct rank_step);
	for (unsigned i = 0; i < r->n_steps; i++) {
		const struct step *from = is_window ? &window : &s->v[i];
		struct rank_step *to = &r->step[i];
		*to = (struct rank_step){.number = from->number, .start_ns = from->start_ns + r->epoch_ns, .end_ns = from->end_ns + r->epoch_ns};
		rank_fill_busy(w, talk_alone, &copy_alone, from->start_ns, from->end_ns, &to->busy);
		rank_phases_add(phases, from->start_ns, from->end_ns, to->phase_ns);
	}
	intervals_release(&hidden);
	intervals_release(&copy_alone);
}

struct rank *rank_new(const struct profile *p, unsigned i)
{
	if (rank_workers_count(p))
		return rank_worker_new(p, i);
	struct rank *r = NEW(struct rank);
	struct gpus gpus;
	unsigned count;
	gpus_find(p, &gpus);
	intern_init(&r->texts);
	struct rank_work w = {.p = p, .r = r, .gpus = &gpus, .gpu = rank_gpu(p, &gpus, i, &count), .costs = costs_new(p, &cost_own)};
	intern_init(&w.streams);
	rank_read_head(&w, i, count);
	rank_groups_init(&w.groups, p, r);
	rank_hang_read(p, &r->arena, &r->hang);
	uint32_t n;
	struct intervals alone = {0};
	struct sort_item *order = rank_sort_out(&w, &n);
	const bool by_host = !n && count == 1;
	if (by_host) {
		mem_free(order);
		order = rank_host_calls_list(p, &w.talking, &n);
		intervals_normalise(&w.talking);
	}
	intervals_subtract(&w.talking, &w.computing, &alone);
	struct rank_phases phases = {0};
	rank_phases_find(p, &gpus, w.gpu, &phases);
	rank_read_steps(&w, &alone, &phases);
	rank_read_calls(&w, order, n, by_host);
	/* Copies do not wait for a collective: a moment of both is the collective's (analysis/time/busy.h). */
	rank_share_exposed(r, &alone);
	rank_read_pasts(&w, &phases);
	rank_phases_release(&phases);
	mem_free(w.kernel_start);
	mem_free(order);
	intervals_release(&alone);
	intervals_release(&w.computing);
	intervals_release(&w.talking);
	intervals_release(&w.copying);
	rank_groups_release(&w.groups);
	intern_release(&w.streams);
	costs_free(w.costs);
	gpus_release(&gpus);
	return r;
}

uint32_t rank_step_at(const struct rank *r, int64_t ns)
{
	uint32_t at = FIRST_WHERE(i, 0, r->n_steps, r->step[i].end_ns > ns);
	return at < r->n_steps && r->step[at].start_ns <= ns ? at : UINT32_MAX;
}

void rank_free(struct rank *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->n_groups; i++)
		mem_free(r->group[i].member);
	mem_free(r->step);
	mem_free(r->group);
	mem_free(r->call);
	mem_free(r->piece);
	mem_free(r->task);
	mem_free(r->sent);
	rank_hang_release(&r->hang);
	intern_release(&r->texts);
	arena_release(&r->arena);
	mem_free(r);
}
