/* The sequence in which a period is looked for, and the iterations that a found period makes. */
#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/recording.h"
#include "analysis/steps/iterations_period.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sort.h"

/* What steps have and layers have not. */
static const char *const optimizer_words[] = {"multi_tensor_apply", "multitensorapply", "adam", "sgd", "lamb_", "optimizer", NULL};
static const char *const mark_words[] = {
	"nll_loss", "cross_entropy", "crossentropy", "mse_loss", "bce_loss", "loss_", "argmax", "multinomial", "top_p_sampl", "top_k_sampl", NULL,
};
static const char *const wait_words[] = {"DeviceSynchronize", "EventSynchronize", "CtxSynchronize", NULL};
static const char *const copy_words[] = {"DtoH", "Device -> Host", "Device -> Pageable", "Device -> Pinned", "DeviceToHost", NULL};

static const char *const copy_in_words[] = {"HtoD", "Host -> Device", "Pageable -> Device", "Pinned -> Device", "HostToDevice", NULL};

/* When a pattern is worth to be looked at by itself, whether it is a step or a layer. */
static const double ENOUGH_EXPLAINED = 0.9, MOST_ALIKE = 0.75;

enum { MARK_WORD = 1, MARK_WAIT = 2, MARK_COPY = 4, MARK_OPTIMIZER = 8 };

static uint8_t name_marks(struct str s)
{
	return (str_has_any_nocase(s, mark_words) ? MARK_WORD : 0) | (str_has_any_nocase(s, wait_words) ? MARK_WAIT : 0) | (str_has_any_nocase(s, copy_words) ? MARK_COPY : 0) |
	       (str_has_any_nocase(s, optimizer_words) ? MARK_OPTIMIZER : 0);
}

static uint8_t mark_of_span(const struct name_memo *marks, uint32_t i)
{
	const struct profile *p = marks->p;
	uint8_t kind = p->span.kind[i];
	if (kind == SPAN_CALL)
		return name_memo_of(marks, p->span.name[i]) & MARK_WAIT;
	return kind == SPAN_OP || kind == SPAN_USER ? name_memo_of(marks, p->span.name[i]) & (MARK_WORD | MARK_OPTIMIZER) : 0;
}

static uint8_t mark_of_gpu(const struct name_memo *marks, uint32_t g)
{
	const struct profile *p = marks->p;
	return name_memo_of(marks, p->gpu_op.name[g]) & (p->gpu_op.kind[g] == GPU_MEMCPY ? MARK_COPY : MARK_WORD | MARK_OPTIMIZER);
}

/* A kind of mark that is everywhere says nothing. Where optimizers are seen, a step has one: of a gradient's accumulation each part has a
 * loss and is no step. */
static uint8_t useful_marks(const struct profile *p, const struct sequence *q, const uint32_t *count)
{
	uint32_t events = p->span.rows.n + p->gpu_op.rows.n;
	if (count[MARK_OPTIMIZER] > 1 && count[MARK_OPTIMIZER] <= events / 4)
		return MARK_OPTIMIZER;
	return (count[MARK_WORD] <= events / 4 ? MARK_WORD : 0) | (count[MARK_WAIT] <= q->n / 4 ? MARK_WAIT : 0) |
	       (count[MARK_COPY] <= q->n / 4 ? MARK_COPY : 0);
}

static void count_marks(uint32_t *count, uint8_t marks)
{
	for (uint8_t m = MARK_WORD; m <= MARK_OPTIMIZER; m *= 2)
		count[m] += (marks & m) != 0;
}

static void find_marks(const struct profile *p, struct sequence *q)
{
	struct name_memo marks = name_memo_new(p, name_marks);
	uint32_t count[MARK_OPTIMIZER + 1] = {0}, spans = p->span.rows.n, n = 0, cap = 0;
	for (uint32_t i = 0; i < spans; i++)
		count_marks(count, mark_of_span(&marks, i));
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		count_marks(count, mark_of_gpu(&marks, g));
	uint8_t useful = useful_marks(p, q, count);
	struct sort_item *item = NULL;
	for (uint32_t i = 0; i < spans; i++)
		if (mark_of_span(&marks, i) & useful)
			MEM_PUSH(item, n, cap, (struct sort_item){sort_key_i64(p->span.start_ns[i]), i, 0});
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (mark_of_gpu(&marks, g) & useful)
			MEM_PUSH(item, n, cap, (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0});
	sort_items(item, n);
	q->mark_ns = NEW_ARRAY(n, int64_t);
	for (uint32_t i = 0; i < n; i++)
		q->mark_ns[i] = (int64_t)(item[i].key ^ (1ull << 63));
	q->n_marks = n;
	mem_free(item);
	name_memo_release(&marks);
}

static void iterations_sequence_push(struct sequence *q, uint32_t *cap, uint32_t string, int64_t start, int64_t end, uint32_t call)
{
	uint32_t caps[3] = {*cap, *cap, *cap};
	MEM_GROW(q->name, caps[0], q->n + 1);
	MEM_GROW(q->start_ns, caps[1], q->n + 1);
	MEM_GROW(q->end_ns, caps[2], q->n + 1);
	MEM_GROW(q->call, *cap, q->n + 1);
	q->name[q->n] = string;
	q->start_ns[q->n] = start;
	q->end_ns[q->n] = end;
	q->call[q->n++] = call;
	q->ns += end - start;
}

/* String ids become 0, 1, ... */
static void number_names(const struct profile *p, struct sequence *q)
{
	uint32_t *of = NEW_ARRAY(p->strings.n, uint32_t);
	for (uint32_t i = 0; i < q->n; i++)
		if (!of[q->name[i]])
			of[q->name[i]] = ++q->names;
	q->string = NEW_ARRAY(q->names, uint32_t);
	q->copy_in = NEW_ARRAY(q->names, uint8_t);
	for (uint32_t i = 0; i < q->n; i++) {
		uint32_t name = of[q->name[i]] - 1;
		q->string[name] = q->name[i];
		q->name[i] = name;
	}
	for (uint32_t name = 0; name < q->names; name++)
		q->copy_in[name] = q->device && str_has_any_nocase(profile_str(p, q->string[name]), copy_in_words);
	mem_free(of);
}

static uint32_t busiest(const int64_t *ns, uint32_t n)
{
	uint32_t best = ROW_NONE;
	for (uint32_t t = 0; t < n; t++)
		if (ns[t] > 0 && (best == ROW_NONE || ns[t] > ns[best]))
			best = t;
	return best;
}

static void add_stream(const struct profile *p, struct sequence *q)
{
	int64_t *ns = NEW_ARRAY(p->track.rows.n, int64_t);
	uint32_t cap = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) /* the kernel of a collective waits for others */
		ns[p->gpu_op.track[g]] += name_is(p, p->gpu_op.name[g], NAME_COMM_KERNEL) ? 0 : p->gpu_op.dur_ns[g];
	q->track = busiest(ns, p->track.rows.n);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		if (p->gpu_op.track[g] == q->track)
			iterations_sequence_push(q, &cap, p->gpu_op.name[g], p->gpu_op.start_ns[g], gpu_end(p, g), p->gpu_op.call[g]);
	q->device = true;
	mem_free(ns);
}

/* Of ranges in one another the outermost that is called more than once: a loop around everything is not one of its rounds. */
static bool is_outermost(const struct profile *p, const uint32_t *calls, uint32_t i, int64_t *open_until, uint32_t *track)
{
	uint8_t kind = p->span.kind[i];
	if ((kind != SPAN_OP && kind != SPAN_USER) || calls[p->span.name[i]] < 2)
		return false;
	if (*track != p->span.track[i])
		*open_until = INT64_MIN;
	*track = p->span.track[i];
	if (p->span.start_ns[i] < *open_until)
		return false;
	*open_until = span_end(p, i);
	return true;
}

static void add_thread(const struct profile *p, struct sequence *q)
{
	int64_t *ns = NEW_ARRAY(p->track.rows.n, int64_t), open_until = INT64_MIN;
	uint32_t *calls = NEW_ARRAY(p->strings.n, uint32_t), cap = 0, track = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OP || p->span.kind[i] == SPAN_USER)
			calls[p->span.name[i]]++;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (is_outermost(p, calls, i, &open_until, &track))
			ns[p->span.track[i]] += p->span.dur_ns[i];
	q->track = busiest(ns, p->track.rows.n);
	track = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (is_outermost(p, calls, i, &open_until, &track) && p->span.track[i] == q->track)
			iterations_sequence_push(q, &cap, p->span.name[i], p->span.start_ns[i], span_end(p, i), i);
	mem_free(ns);
	mem_free(calls);
}

void sequence_make(const struct profile *p, struct sequence *q)
{
	*q = (struct sequence){.track = ROW_NONE};
	if (p->gpu_op.rows.n)
		add_stream(p, q);
	else
		add_thread(p, q);
	number_names(p, q);
	find_marks(p, q);
}

void sequence_release(struct sequence *q)
{
	mem_free(q->name);
	mem_free(q->start_ns);
	mem_free(q->end_ns);
	mem_free(q->call);
	mem_free(q->mark_ns);
	mem_free(q->string);
	mem_free(q->copy_in);
	*q = (struct sequence){0};
}

/* When the host began what is at this place: the call that launched it, or the outermost op around that which began behind the call
 * before. */
static int64_t host_begin(const struct profile *p, const struct sequence *q, uint32_t at)
{
	uint32_t call = q->call[at];
	if (call == ROW_NONE || !q->device)
		return q->start_ns[at];
	uint32_t before = at ? q->call[at - 1] : ROW_NONE;
	int64_t after = before == ROW_NONE ? INT64_MIN : p->span.start_ns[before], begin = p->span.start_ns[call];
	for (uint32_t op = p->span.op[call]; op != ROW_NONE && p->span.start_ns[op] > after; op = p->span.op[op])
		begin = p->span.start_ns[op];
	return begin;
}

static void add_period(struct iterations *it, struct arena *a, int64_t start, int64_t end, uint32_t number, bool partial)
{
	if (end <= start)
		return;
	MEM_PUSH(it->v, it->n, it->cap, (struct iteration){start, end, number, arena_printf(a, "%u", number), ROW_NONE, partial});
}

/* When the host began each period, ascending. Of work that was launched before the recording this is not known: it is left out, unless
 * no launch was recorded at all. */
static uint32_t host_borders(const struct profile *p, const struct sequence *q, const uint32_t *border, uint32_t n, int64_t *out)
{
	uint32_t with_call = 0, kept = 0;
	for (uint32_t i = 0; i < n; i++)
		with_call += q->call[border[i]] != ROW_NONE;
	for (uint32_t i = 0; i < n; i++) {
		if (with_call && q->call[border[i]] == ROW_NONE)
			continue;
		int64_t begin = host_begin(p, q, border[i]);
		if (!kept || begin > out[kept - 1])
			out[kept++] = begin;
	}
	return kept;
}

/* A whole period behind the last border ends with its work, not with the recording. */
static int64_t end_of_last(const struct profile *p, const struct sequence *q, const struct period *f, const uint32_t *border, int64_t last)
{
	uint32_t from = border[f->anchors - 1], next = from + (from - border[0]) / (f->anchors - 1);
	if (!f->last_is_whole)
		return last + 1;
	int64_t begin = next < q->n ? host_begin(p, q, next) : last + 1, end = q->end_ns[from];
	for (uint32_t i = from; i < next && i < q->n; i++)
		end = q->end_ns[i] > end ? q->end_ns[i] : end;
	return end < begin ? end : begin;
}

static unsigned iterations_sequence_cut(const struct profile *p, const struct sequence *q, const struct period *f, const uint32_t *border, struct arena *a,
                                        struct iterations *it)
{
	int64_t first, last, *at = NEW_ARRAY(f->anchors, int64_t);
	uint32_t n = host_borders(p, q, border, f->anchors, at);
	bool any = n > 1 && recording_extent(p, &first, &last);
	if (any) {
		add_period(it, a, first, at[0], 0, true);
		for (uint32_t i = 0; i + 1 < n; i++)
			add_period(it, a, at[i], at[i + 1], i + 1, false);
		int64_t end = end_of_last(p, q, f, border, last);
		add_period(it, a, at[n - 1], end, n, !f->last_is_whole);
		add_period(it, a, end, last + 1, n + 1, true);
	}
	mem_free(at);
	return any ? n - 1 : 0;
}

static void iterations_sequence_describe(const struct profile *p, const struct sequence *q, const struct period *f, bool good, struct arena *a,
                                         struct iterations *it)
{
	struct buf b = {0};
	it->layers = !good && !f->within_call && f->numbered >= f->anchors / 2;
	struct str track = q->track < p->track.rows.n ? profile_str(p, p->track.tid_text[q->track]) : STR("");
	enum { SHOWN = 60 };
	const char *on = !q->device ? "thread " : str_starts(track, STR("stream")) ? "" : "stream ";
	struct str key = {it->key.p, it->key.n > SHOWN ? SHOWN : it->key.n};
	buf_printf(&b, "%s pattern of %u %s that repeats %u times on %s" STR_FMT ". It begins with `" STR_FMT "%s` and explains %.0f %% of the work there, "
	           "and %.0f %% of its periods are alike",
	           good ? "Steps were found as a" : "There is a", f->length, q->device ? "device operations" : "host ops", f->anchors, on, STR_ARG(track),
	           STR_ARG(key), key.n < it->key.n ? "..." : "", 100 * f->explained, 100 * f->equal);
	if (good)
		buf_printf(&b, ". What is before the first and after the last is no whole step and counts in no mean");
	else if (f->within_call)
		buf_printf(&b, ". It gives no steps: several are launched by one call, so that they are parts of a step");
	else if (it->layers)
		buf_printf(&b, ". It gives no steps: modules that differ in their number alone occur once each, so that they are layers of a step");
	else if (!f->marked)
		buf_printf(&b, ". It gives no steps: nothing in it tells a step from a layer (no result that goes to the host, no loss, no optimizer)");
	else
		buf_printf(&b, ". It gives no steps, since that is not certain enough");
	buf_char(&b, '.');
	it->how = arena_str(a, buf_view(&b));
	buf_release(&b);
}

/* The repeats, where they explain nearly all work of the stream and there are enough of them. */
static void set_repeats(const struct profile *p, const struct sequence *q, const struct period *f, const uint32_t *border, struct iterations *it)
{
	if (!q->device || f->explained < ENOUGH_EXPLAINED || f->equal < MOST_ALIKE)
		return;
	uint32_t whole = f->anchors - !f->last_is_whole, from = border[f->anchors - 1];
	uint32_t end = f->last_is_whole ? from + (from - border[0]) / (f->anchors - 1) : from;
	it->repeats = whole;
	it->repeat_start_ns = q->start_ns[border[0]];
	it->repeat_host_ns = host_begin(p, q, border[0]);
	it->repeat_end_ns = INT64_MIN;
	for (uint32_t i = border[0]; i < end && i < q->n; i++)
		it->repeat_end_ns = q->end_ns[i] > it->repeat_end_ns ? q->end_ns[i] : it->repeat_end_ns;
}

bool iterations_period(const struct profile *p, struct arena *a, struct iterations *it)
{
	struct sequence q;
	struct period f;
	uint32_t *border;
	sequence_make(p, &q);
	bool good = period_find(p, &q, &f, &border);
	if (border) {
		it->key = arena_str(a, profile_str(p, q.string[f.name]));
		it->calls = f.anchors;
		it->certainty = f.explained * f.equal;
		set_repeats(p, &q, &f, border, it);
		good = good && iterations_sequence_cut(p, &q, &f, border, a, it) > 0;
		iterations_sequence_describe(p, &q, &f, good, a, it);
	}
	mem_free(border);
	sequence_release(&q);
	return good;
}
