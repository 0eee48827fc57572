/* What the ranges around a launch say (PyProf's kernel.py, nsight.py, nvvp.py). */
#include "base/buf.h"
#include "base/mem.h"
#include "base/sort.h"
#include "predecessors/pyprof/path.h"
#include "store/torch_names.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* Takes all occurrences of a word out of a text. */
static void drop_word(struct buf *b, struct str word)
{
	struct buf out = {0};
	struct str rest = buf_view(b);
	for (ptrdiff_t at; rest.n && (at = str_find(rest, word)) >= 0;) {
		buf_put(&out, rest.p, (size_t)at);
		rest = (struct str){rest.p + at + word.n, rest.n - (size_t)at - word.n};
	}
	buf_str(&out, rest);
	buf_release(b);
	*b = out;
}

/* The op that a range of the backward pass belongs to: "MmBackward" is Mm, "threshold_backward" is threshold. */
static uint32_t sane_op(const struct pyprof_records *r, uint32_t name)
{
	static const char *const words[] = {"torch", "autograd", "_backward", "::", "jit", "(anonymous namespace)"};
	uint32_t *slot = &r->names->sane_id[name];
	if (*slot)
		return *slot - 1;
	struct buf b = {0};
	struct str s = profile_str(r->p, name);
	if (r->rules == PYPROF_RECORDS_DEFAULT)
		str_skip(&s, STR(TORCH_ENGINE));
	buf_str(&b, s);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		drop_word(&b, str_from(words[i]));
	ptrdiff_t cut = str_find(buf_view(&b), STR("Backward"));
	if (cut >= 0)
		b.n = (size_t)cut;
	*slot = intern_put(&r->names->ops, b.n ? b.p : "", b.n) + 1;
	buf_release(&b);
	return *slot - 1;
}

/* The op that a range names. */
static uint32_t plain_op(const struct pyprof_records *r, uint32_t name)
{
	uint32_t *slot = &r->names->op_id[name];
	if (!*slot)
		*slot = intern_str(&r->names->ops, profile_str(r->p, name)) + 1;
	return *slot - 1;
}

static const char facts_tail[] = ", seq";

/* Byte i of the text that PyProf sorts by: number, name and ", seq", one behind the other; 0 behind its end. */
static unsigned char facts_byte(struct str number, struct str name, size_t i)
{
	size_t tail = i - number.n - name.n;
	return (unsigned char)(i < number.n ? number.p[i] : i - number.n < name.n ? name.p[i - number.n] : tail < sizeof facts_tail - 1 ? facts_tail[tail] : 0);
}

/* Order of these texts, as PyProf sorts them. */
static int compare_seq(const struct profile *p, const struct pyprof_seq *a, const struct pyprof_seq *b)
{
	char ta[24], tb[24];
	struct str na = {ta, (size_t)snprintf(ta, sizeof ta, "%lld", (long long)a->seq)}, sa = profile_str(p, a->name);
	struct str nb = {tb, (size_t)snprintf(tb, sizeof tb, "%lld", (long long)b->seq)}, sb = profile_str(p, b->name);
	for (size_t i = 0; i < na.n + sa.n || i < nb.n + sb.n; i++) {
		unsigned char ca = facts_byte(na, sa, i), cb = facts_byte(nb, sb, i);
		if (ca != cb)
			return ca < cb ? -1 : 1;
	}
	return 0;
}

struct facts_text {
	const struct profile *p;
	uint64_t head;       /* the first 8 bytes of its text, the first one highest: it sorts as they do */
	struct pyprof_seq seq;
	uint32_t order;
};

static uint64_t facts_head(const struct profile *p, const struct pyprof_seq *x)
{
	char t[24];
	uint64_t head = 0;
	struct str number = {t, (size_t)snprintf(t, sizeof t, "%lld", (long long)x->seq)}, name = profile_str(p, x->name);
	for (size_t i = 0; i < sizeof head; i++)
		head = head << 8 | facts_byte(number, name, i);
	return head;
}

static int facts_by_text(const void *a, const void *b)
{
	const struct facts_text *x = a, *y = b;
	return COMPARE(x->head, y->head) ?: compare_seq(x->p, &x->seq, &y->seq) ?: COMPARE(x->order, y->order);
}

/* Sorts by text, as PyProf does. Then an entry goes if it has the number of the one before and one of the two names contains the other. */
static void sort_and_prune(const struct profile *p, struct pyprof_facts *f)
{
	if (f->n_seq > 1) {
		struct facts_text *v = NEW_ARRAY_RAW(f->n_seq, struct facts_text);
		for (uint32_t i = 0; i < f->n_seq; i++)
			v[i] = (struct facts_text){p, facts_head(p, &f->seq[i]), f->seq[i], i};
		qsort(v, f->n_seq, sizeof *v, facts_by_text);
		for (uint32_t i = 0; i < f->n_seq; i++)
			f->seq[i] = v[i].seq;
		mem_free(v);
	}
	struct pyprof_seq before = {0};
	uint32_t kept = 0;
	for (uint32_t i = 0; i < f->n_seq; i++) {
		struct pyprof_seq x = f->seq[i];
		struct str a = profile_str(p, x.name), b = profile_str(p, before.name);
		if (!i || x.seq != before.seq || !(str_has(a, b) || str_has(b, a)))
			f->seq[kept++] = x;
		before = x;
	}
	f->n_seq = kept;
}

/* Of n entries, `most` are listed, the middle is left out: how many are listed, and which one is the k-th of these. */
static uint32_t facts_listed(uint32_t n, unsigned most) { return n < most ? n : most; }
static uint32_t facts_place(uint32_t k, uint32_t n, unsigned most) { return n <= most || k < most / 2 ? k : k + (n - most); }

static void facts_find_seq(const struct pyprof_records *r, const struct pyprof_path *path, unsigned most, struct pyprof_facts *f)
{
	const struct spans *t = &r->p->span;
	f->n_seq = facts_listed(path->n_seq, most);
	f->seq_left_out = path->n_seq - f->n_seq;
	MEM_GROW(f->seq, f->cap_seq, f->n_seq);
	for (uint32_t k = 0; k < f->n_seq; k++) {
		uint32_t span = path->seq[facts_place(k, path->n_seq, most)].span;
		f->seq[k] = (struct pyprof_seq){t->name[span], t->link_id[span]};
	}
}

static void facts_find_ids(struct pyprof_facts *f)
{
	MEM_GROW(f->id, f->cap_ids, f->n_seq);
	for (uint32_t i = 0; i < f->n_seq; i++)
		f->id[i] = f->seq[i].seq;
	sort_i64(f->id, f->n_seq);
	f->n_ids = 0;
	for (uint32_t i = 0; i < f->n_seq; i++)
		if (!f->n_ids || f->id[i] != f->id[f->n_ids - 1])
			f->id[f->n_ids++] = f->id[i];
	if (f->n_ids > 1 && f->id[0] == 0) {
		f->n_ids--;
		memmove(f->id, f->id + 1, f->n_ids * sizeof *f->id);
	}
}

static void pyprof_facts_add_op(struct pyprof_facts *f, uint32_t op)
{
	MEM_PUSH(f->op, f->n_ops, f->cap_ops, op);
}

static uint32_t pyprof_facts_arg_text(const struct pyprof_records *r, uint32_t span, enum arg_key key)
{
	uint32_t value = profile_arg_id(r->p, r->p->span.args[span], key);
	return intern_str(&r->names->ops, profile_str(r->p, value));
}

/* Prepares for ops of n ranges; returns how many are listed. */
static uint32_t facts_begin_ops(struct pyprof_facts *f, uint32_t n, unsigned most)
{
	f->op_left_out = n - facts_listed(n, most);
	return facts_listed(n, most);
}

static void facts_ops_of_markers(const struct pyprof_records *r, const struct pyprof_spans *marker, unsigned most, struct pyprof_facts *f)
{
	const uint32_t n = facts_begin_ops(f, marker->n, most);
	for (uint32_t k = 0; k < n; k++)
		pyprof_facts_add_op(f, pyprof_facts_arg_text(r, marker->v[facts_place(k, marker->n, most)], ARG_MARKER_OP));
}

static void facts_ops_of_backward(const struct pyprof_records *r, const struct pyprof_spans *backward, unsigned most, struct pyprof_facts *f)
{
	const uint32_t n = facts_begin_ops(f, backward->n, most);
	for (uint32_t k = 0; k < n; k++)
		pyprof_facts_add_op(f, sane_op(r, r->p->span.name[backward->v[facts_place(k, backward->n, most)]]));
}

/* By ranges with a number, by PyProf's rules those of the backward pass first. */
static void facts_ops_of_numbers(const struct pyprof_records *r, struct pyprof_facts *f)
{
	for (uint32_t i = 0; i < f->n_seq && r->rules != PYPROF_RECORDS_DEFAULT; i++)
		if (pyprof_name_flags(r, f->seq[i].name) & NAME_BACK_OP)
			pyprof_facts_add_op(f, sane_op(r, f->seq[i].name));
	if (f->n_ops)
		return;
	f->op_left_out = f->seq_left_out;
	for (uint32_t i = 0; i < f->n_seq; i++)
		pyprof_facts_add_op(f, plain_op(r, f->seq[i].name));
}

/* Fills `op`: by argument markers, else by ranges of the backward pass (default rules), else by those with a number, else by the outermost plain range. */
static void pyprof_facts_find_ops(const struct pyprof_records *r, const struct pyprof_path *path, unsigned most, struct pyprof_facts *f)
{
	const bool own = r->rules == PYPROF_RECORDS_DEFAULT;
	const struct pyprof_spans *marker = &path->list[PYPROF_LIST_MARKER], *backward = &path->list[PYPROF_LIST_BACKWARD], *plain = &path->list[PYPROF_LIST_PLAIN];
	f->n_markers = marker->n;
	f->mod0 = marker->n ? pyprof_facts_arg_text(r, marker->v[0], ARG_MARKER_MODULE) : intern_put(&r->names->ops, "na", 2);
	f->n_ops = f->op_left_out = 0;
	if (marker->n) {
		facts_ops_of_markers(r, marker, most, f);
		return;
	}
	if (own && backward->n) {
		facts_ops_of_backward(r, backward, most, f);
		return;
	}
	facts_ops_of_numbers(r, f);
	if (!f->n_ops && plain->n) {
		const uint32_t name = r->p->span.name[plain->v[0]];
		pyprof_facts_add_op(f, own && (pyprof_name_flags(r, name) & NAME_AUTOGRAD) ? sane_op(r, name) : plain_op(r, name));
	}
}

void pyprof_facts_of(const struct pyprof_records *r, struct pyprof_path *path, uint32_t chain, unsigned most, struct pyprof_facts *f)
{
	bool own = r->rules == PYPROF_RECORDS_DEFAULT;
	assert(most >= 2);
	pyprof_path_go(path, r, chain);
	facts_find_seq(r, path, most, f);
	f->backward = path->n_backward > 0;
	f->accumulate = path->n_accumulate > 0;
	if (!own)
		sort_and_prune(r->p, f);
	for (uint32_t i = 0; i < f->n_seq && !own; i++)
		f->backward |= (pyprof_name_flags(r, f->seq[i].name) & NAME_BACK) != 0;
	facts_find_ids(f);
	pyprof_facts_find_ops(r, path, most, f);
}

void pyprof_facts_release(struct pyprof_facts *f)
{
	mem_free(f->seq);
	mem_free(f->id);
	mem_free(f->op);
	*f = (struct pyprof_facts){0};
}
