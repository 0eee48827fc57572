/* Which sequences of kernels, copies and sets ops launch, how often, and how much time lies between the pieces: fusing the pieces, or launching them earlier, could save it.
 * A call of an op that launches several pieces, itself or through ops inside, is one occurrence of the sequence of their names, in order of start. */
#include "analysis/names/short_names.h"
#include "analysis/recording.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/sort.h"
#include "query/report.h"

enum sequences_grouping { SEQUENCES_BY_OP, SEQUENCES_BY_EVERY_OP };

/* An op that launches more pieces is a part of the model rather than a sequence. This limit also bounds the work on deeply nested ops. */
enum { LONGEST = 64 };

enum {
	SEQUENCES_OP, SEQUENCES_KERNELS, SEQUENCES_LENGTH, SEQUENCES_CALLS, SEQUENCES_GPU, SEQUENCES_GPU_PCT, SEQUENCES_BETWEEN, SEQUENCES_SAVED, SEQUENCES_HOST,
	SEQUENCES_OP_DELAY, SEQUENCES_CALL_DELAY, SEQUENCES_NAMES
};

static const struct section sequences_section = {COLUMNS(
	[SEQUENCES_OP] = {COLUMN(TEXT, "op", "Op", "the op that launched the sequence, itself or through ops inside", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[SEQUENCES_KERNELS] = {COLUMN(TEXT, "kernels", "Kernels, copies and sets", "short names of the pieces in order of start, with how often each ran in a row", .flags = COLUMN_WIDE | COLUMN_ANSWER)},
	[SEQUENCES_LENGTH] = {COLUMN(COUNT, "length", "Length", "pieces of work in the sequence", .flags = COLUMN_ANSWER)},
	[SEQUENCES_CALLS] = {COLUMN(COUNT, "calls", "Calls", "calls of the op that launched this sequence", .flags = COLUMN_ANSWER)},
	[SEQUENCES_GPU] = {COLUMN(NS, "total_gpu_ns", "GPU total", "sum of the durations of the pieces", .flags = COLUMN_ANSWER)},
	[SEQUENCES_GPU_PCT] = {COLUMN(PERCENT, "total_pct", "Total %", "the same / all device work. With --group-by=every-op, the work of an op inside another counts for both")},
	[SEQUENCES_BETWEEN] = {COLUMN(NS, "between_ns", "Between", "time in which no piece of the call ran, from its first start to its last end; sum over the calls", .flags = COLUMN_ANSWER)},
	[SEQUENCES_SAVED] = {COLUMN(COUNT, "launches_less", "Launches less", "launches that one kernel for each call would save", .flags = COLUMN_MINOR)},
	[SEQUENCES_HOST] = {COLUMN(NS, "total_host_ns", "Host total", "sum of the op's durations on the host", .flags = COLUMN_MINOR)},
	[SEQUENCES_OP_DELAY] = {COLUMN(MEAN_NS, "op_delay_ns", "Op to kernel, mean", "mean time from the op's start to the start of its first piece", .flags = COLUMN_MINOR)},
	[SEQUENCES_CALL_DELAY] = {COLUMN(MEAN_NS, "launch_delay_ns", "Launch to kernel, mean", "mean time from the start of the call that launches a piece to the start of the piece; empty = no such call was recorded",
	                                 .flags = COLUMN_MINOR)},
	[SEQUENCES_NAMES] = {COLUMN(TEXT, "kernel_names", "Full names", "full names of the pieces in order of start, separated by |", .flags = COLUMN_WIDE | COLUMN_DETAIL)},
)};

struct sequence {
	uint32_t op;            /* string id */
	uint32_t first, length; /* the pieces of one of its calls, in `piece` */
	uint64_t calls, launches;
	int64_t gpu_ns, between_ns, host_ns, op_delay_ns, call_delay_ns;
};

struct sequences {
	const struct profile *p;
	enum sequences_grouping by;
	uint32_t *pieces_of;    /* span -> how many pieces of work it launched; LONGEST + 1: more than LONGEST */
	uint32_t *first_of;     /* span -> its first piece in `piece` */
	bool *by_one;           /* span -> one op inside launched all of them */
	uint32_t *piece;        /* rows of gpu_op, by op and then by start */
	struct intern keys;
	struct sequence *v;
	uint32_t n, cap, too_long;
	int64_t all_ns;
};

/* Counts the pieces of each op. The way up ends at an op with too many pieces, since the ops around it have too many, too. */
static void count_pieces(struct sequences *s)
{
	const struct profile *p = s->p;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		s->all_ns += p->gpu_op.dur_ns[g];
		for (uint32_t op = p->gpu_op.op[g]; op != ROW_NONE && s->pieces_of[op] <= LONGEST; op = p->span.op[op])
			s->pieces_of[op]++;
	}
	for (uint32_t op = 0; op < p->span.rows.n; op++) {
		uint32_t around = p->span.op[op];
		if (s->pieces_of[op] && around != ROW_NONE && p->span.kind[op] == SPAN_OP && s->pieces_of[op] == s->pieces_of[around])
			s->by_one[around] = true;
	}
}

static bool has_sequence(const struct sequences *s, uint32_t op)
{
	return s->pieces_of[op] >= 2 && s->pieces_of[op] <= LONGEST && (s->by == SEQUENCES_BY_EVERY_OP || !s->by_one[op]);
}

/* Deals the pieces out to their ops in order of start. */
static void deal_pieces(struct sequences *s)
{
	const struct profile *p = s->p;
	uint32_t n = p->gpu_op.rows.n, total = 0;
	struct sort_item *order = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t op = 0; op < p->span.rows.n; op++) {
		s->first_of[op] = total;
		s->too_long += s->pieces_of[op] > LONGEST;
		total += has_sequence(s, op) ? s->pieces_of[op] : 0;
	}
	s->piece = NEW_ARRAY_RAW(total, uint32_t);
	for (uint32_t g = 0; g < n; g++)
		order[g] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
	sort_items(order, n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t op = p->gpu_op.op[order[i].row]; op != ROW_NONE && s->pieces_of[op] <= LONGEST; op = p->span.op[op])
			if (has_sequence(s, op))
				s->piece[s->first_of[op]++] = order[i].row;
	for (uint32_t op = 0; op < p->span.rows.n; op++)
		s->first_of[op] -= has_sequence(s, op) ? s->pieces_of[op] : 0;
	mem_free(order);
}

static struct sequence *sequence_of(struct sequences *s, uint32_t op, struct buf *key)
{
	uint32_t first = s->first_of[op], n = s->pieces_of[op], before = s->keys.n;
	buf_clear(key);
	buf_put(key, &s->p->span.name[op], sizeof(uint32_t));
	for (uint32_t i = first; i < first + n; i++)
		buf_put(key, &s->p->gpu_op.name[s->piece[i]], sizeof(uint32_t));
	uint32_t at = intern_str(&s->keys, buf_view(key)) - 1;
	if (s->keys.n > before)
		MEM_PUSH(s->v, s->n, s->cap, (struct sequence){.op = s->p->span.name[op], .first = first, .length = n});
	return &s->v[at];
}

static void sequences_add(struct sequences *s, uint32_t op, struct buf *key)
{
	const struct profile *p = s->p;
	const uint32_t *piece = &s->piece[s->first_of[op]];
	struct sequence *x = sequence_of(s, op, key);
	int64_t until = p->gpu_op.start_ns[piece[0]];
	x->calls++;
	x->host_ns += p->span.dur_ns[op];
	x->op_delay_ns += until - p->span.start_ns[op];
	for (uint32_t i = 0; i < x->length; i++) {
		uint32_t g = piece[i], call = p->gpu_op.call[g];
		int64_t start = p->gpu_op.start_ns[g], end = gpu_end(p, g);
		x->gpu_ns += p->gpu_op.dur_ns[g];
		x->between_ns += start > until ? start - until : 0;
		until = end > until ? end : until;
		if (call != ROW_NONE) {
			x->launches++;
			x->call_delay_ns += start - p->span.start_ns[call];
		}
	}
}

static void put_names(const struct sequences *s, const struct sequence *x, struct short_names *names, struct buf *b, struct table *t)
{
	const uint32_t *name = s->p->gpu_op.name, *piece = &s->piece[x->first];
	buf_clear(b);
	for (uint32_t i = 0, next; i < x->length; i = next) {
		for (next = i + 1; next < x->length && name[piece[next]] == name[piece[i]]; next++)
			;
		buf_cstr(b, i ? " | " : "");
		buf_str(b, short_names_get(names, name[piece[i]]));
		if (next > i + 1)
			buf_printf(b, " x %u", next - i);
	}
	table_set_str_copy(t, SEQUENCES_KERNELS, buf_view(b));
	buf_clear(b);
	for (uint32_t i = 0; i < x->length; i++) {
		buf_cstr(b, i ? "|" : "");
		buf_str(b, profile_str(s->p, name[piece[i]]));
	}
	table_set_str_copy(t, SEQUENCES_NAMES, buf_view(b));
}

static void sequences_put(const struct sequences *s, const struct report_args *args, struct table *t)
{
	struct buf b = {0};
	struct short_names *names = short_names_new(s->p);
	section_start(&sequences_section, args, 0, t);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct sequence *x = &s->v[i];
		table_row(t);
		table_set_str(t, SEQUENCES_OP, profile_str(s->p, x->op));
		put_names(s, x, names, &b, t);
		table_set_i64(t, SEQUENCES_LENGTH, x->length);
		table_set_i64(t, SEQUENCES_CALLS, (int64_t)x->calls);
		table_set_i64(t, SEQUENCES_GPU, x->gpu_ns);
		table_set_f64(t, SEQUENCES_GPU_PCT, percent((double)x->gpu_ns, (double)s->all_ns));
		table_set_i64(t, SEQUENCES_BETWEEN, x->between_ns);
		table_set_i64(t, SEQUENCES_SAVED, (int64_t)(x->calls * (x->length - 1)));
		table_set_i64(t, SEQUENCES_HOST, x->host_ns);
		table_set_f64(t, SEQUENCES_OP_DELAY, (double)x->op_delay_ns / (double)x->calls);
		if (x->launches)
			table_set_f64(t, SEQUENCES_CALL_DELAY, (double)x->call_delay_ns / (double)x->launches);
	}
	short_names_free(names);
	buf_release(&b);
}

static void sequences_find(struct sequences *s)
{
	struct buf key = {0};
	uint32_t n = s->p->span.rows.n;
	s->pieces_of = NEW_ARRAY(n, uint32_t);
	s->first_of = NEW_ARRAY_RAW(n, uint32_t);
	s->by_one = NEW_ARRAY(n, bool);
	intern_init(&s->keys);
	count_pieces(s);
	deal_pieces(s);
	for (uint32_t op = 0; op < n; op++)
		if (has_sequence(s, op))
			sequences_add(s, op, &key);
	buf_release(&key);
}

static void sequences_release(struct sequences *s)
{
	intern_release(&s->keys);
	mem_free(s->pieces_of);
	mem_free(s->first_of);
	mem_free(s->by_one);
	mem_free(s->piece);
	mem_free(s->v);
}

static int sequences_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct sequences s = {.p = p, .by = (enum sequences_grouping)args->variant->by};
	int rc;
	if (!p->gpu_op.rows.n)
		return err_set(e, ERR_DATA, "the input holds no device work; to record it: %s", recording_how(p, RECORD_DEVICE_WORK));
	sequences_find(&s);
	if (!s.n) {
		rc = err_set(e, ERR_DATA, "no op launched from two to %d kernels, copies and sets", LONGEST);
	} else {
		sequences_put(&s, args, out);
		if (s.too_long)
			table_note(out, "calls of ops that launched more than %d pieces are left out: %u. The sequences of the ops inside them are in the table", LONGEST, s.too_long);
		rc = table_sort(out, STR("total_gpu_ns"), true, e);
	}
	sequences_release(&s);
	return rc;
}

static const struct report_variant sequences_variants[] = {
	{.group_by = "op", .by = SEQUENCES_BY_OP},
	{.group_by = "every-op", .by = SEQUENCES_BY_EVERY_OP},
	{0},
};

const struct report report_sequences = {
	.name = "sequences",
	.title = "Sequences of kernels that ops launch",
	.asks = ASKS_FASTER,
	.also = "frequent_sequences patterns fusion kernel_sequences launch_delay op_kernels",
	.help = "Which kernels, copies and sets each op launches one after the other, how often, how much device time they take, how much time lies between them, and how long after "
	        "the op and the launch they begin. An op launches its pieces itself or through several ops inside. Where one op inside launches the whole sequence, that op alone has a row; "
	        "--group-by=every-op also has the ops around it. Ops that launch a single piece are left out.",
	.variants = sequences_variants,
	.sections = (const struct section *const[]){&sequences_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_OF_STEPS,
	.timeline = true,
	.run = sequences_run,
};
