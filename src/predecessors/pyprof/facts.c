/* What the ranges around a launch say (PyProf's kernel.py, nsight.py, nvvp.py). */
#include "analysis/names/autograd_names.h"
#include "base/buf.h"
#include "base/mem.h"
#include "predecessors/pyprof/chain.h"
#include "store/torch_names.h"

#include <stdio.h>

static void find_markers(struct pyprof_names *x, const struct profile *p)
{
	x->marker_of_args = NEW_ARRAY(p->arg_set.rows.n + 1, uint32_t);
	for (uint32_t set = 0; profile_has_arg(p, ARG_MARKER) && set < p->arg_set.rows.n; set++)
		x->marker_of_args[set] = profile_arg_id(p, set, ARG_MARKER);
}

struct pyprof_names *pyprof_names_new(const struct profile *p)
{
	struct pyprof_names *x = NEW(struct pyprof_names);
	x->flags = NEW_ARRAY(p->strings.n, uint16_t);
	x->op_id = NEW_ARRAY(p->strings.n, uint32_t);
	x->sane_id = NEW_ARRAY(p->strings.n, uint32_t);
	find_markers(x, p);
	intern_init(&x->ops);
	return x;
}

void pyprof_names_free(struct pyprof_names *x)
{
	if (!x)
		return;
	mem_free(x->flags);
	mem_free(x->op_id);
	mem_free(x->sane_id);
	mem_free(x->marker_of_args);
	intern_release(&x->ops);
	mem_free(x);
}

static bool is_autograd(struct str name)
{
	enum autograd_name kind = autograd_classify(name);
	return kind == AUTOGRAD_ENGINE || kind == AUTOGRAD_NODE || kind == AUTOGRAD_ACCUMULATE || kind == AUTOGRAD_FORMULA;
}

unsigned pyprof_name_flags(const struct pyprof_records *r, uint32_t name)
{
	uint16_t *slot = &r->names->flags[name];
	if (*slot)
		return *slot;
	struct str s = profile_str(r->p, name);
	bool back_op = str_ends(s, STR("Backward")) || str_ends(s, STR("backward"));
	bool back = back_op || str_ends(s, STR("Backward0")) || (r->rules == PYPROF_RECORDS_2 && str_ends(s, STR("Backward1")));
	unsigned f = NAME_ASKED | (back ? NAME_BACK : 0) | (back_op ? NAME_BACK_OP : 0) | (is_autograd(s) ? NAME_AUTOGRAD : 0) |
	             (autograd_classify(s) == AUTOGRAD_ACCUMULATE ? NAME_ACCUMULATE : 0);
	if (str_has(s, STR("CheckpointFunctionBackward")))
		f |= NAME_IGNORED;
	else if (str_has(s, STR("layer:")))
		f |= NAME_LAYER;
	else if (str_has(s, STR("traceMarker")))
		f |= NAME_TRACE;
	else if (str_has(s, STR("strRepr")))
		f |= NAME_REPR;
	return *slot = (uint16_t)f;
}

enum pyprof_range pyprof_range_kind(const struct pyprof_records *r, uint32_t span)
{
	const struct spans *s = &r->p->span;
	unsigned f = pyprof_name_flags(r, s->name[span]);
	if (f & NAME_IGNORED)
		return PYPROF_IGNORED;
	if (r->names->marker_of_args[s->args[span]])
		return PYPROF_MARKER;
	if (f & (NAME_LAYER | NAME_TRACE | NAME_REPR))
		return f & NAME_LAYER ? PYPROF_LAYER : f & NAME_TRACE ? PYPROF_TRACE : PYPROF_REPR;
	return s->kind[span] == SPAN_OP && s->link_id[span] != ID_NONE ? PYPROF_SEQUENCE : PYPROF_PLAIN;
}

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

/* The text before the first comma. */
static uint32_t plain_op(const struct pyprof_records *r, uint32_t name)
{
	uint32_t *slot = &r->names->op_id[name];
	if (!*slot) {
		struct str s = profile_str(r->p, name);
		*slot = intern_str(&r->names->ops, s) + 1;
	}
	return *slot - 1;
}

/* Order of the texts "N" "name, seq", as PyProf sorts them. */
static int compare_seq(const struct profile *p, const struct pyprof_seq *a, const struct pyprof_seq *b)
{
	char ta[24], tb[24];
	int na = snprintf(ta, sizeof ta, "%lld", (long long)a->seq), nb = snprintf(tb, sizeof tb, "%lld", (long long)b->seq);
	struct str sa = profile_str(p, a->name), sb = profile_str(p, b->name);
	size_t la = (size_t)na + sa.n, lb = (size_t)nb + sb.n;
	for (size_t i = 0; i < la || i < lb; i++) {
		static const char tail[] = ", seq";
		size_t ia = i - la, ib = i - lb;
		unsigned char ca = (unsigned char)(i < (size_t)na ? ta[i] : i < la ? sa.p[i - (size_t)na] : ia < 5 ? tail[ia] : 0);
		unsigned char cb = (unsigned char)(i < (size_t)nb ? tb[i] : i < lb ? sb.p[i - (size_t)nb] : ib < 5 ? tail[ib] : 0);
		if (ca != cb)
			return ca < cb ? -1 : 1;
	}
	return 0;
}

/* Without repetitions, sorted; then one of the same number goes when its name and that of the one before contain each other. */
static void sort_and_prune(const struct pyprof_records *r, struct pyprof_facts *f)
{
	const struct profile *p = r->p;
	for (uint32_t i = 1; i < f->n_seq; i++) {
		struct pyprof_seq x = f->seq[i];
		uint32_t k = i;
		for (; k && compare_seq(p, &x, &f->seq[k - 1]) < 0; k--)
			f->seq[k] = f->seq[k - 1];
		f->seq[k] = x;
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

static void add_seq(struct pyprof_facts *f, uint32_t name, int64_t seq)
{
	for (uint32_t i = 0; i < f->n_seq; i++)
		if (f->seq[i].name == name && f->seq[i].seq == seq)
			return;
	MEM_PUSH(f->seq, f->n_seq, f->cap_seq, (struct pyprof_seq){name, seq});
}

static void add_id(struct pyprof_facts *f, int64_t id)
{
	uint32_t k = 0;
	while (k < f->n_ids && f->id[k] < id)
		k++;
	if (k < f->n_ids && f->id[k] == id)
		return;
	MEM_GROW(f->id, f->cap_ids, f->n_ids + 1);
	memmove(f->id + k + 1, f->id + k, (f->n_ids - k) * sizeof *f->id);
	f->id[k] = id;
	f->n_ids++;
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

bool pyprof_is_import(const struct pyprof_records *r, uint32_t span)
{
	if (r->rules != PYPROF_RECORDS_DEFAULT || !profile_has_arg(r->p, ARG_MARKER_OP))
		return false;
	return str_eqc(profile_str(r->p, profile_arg_id(r->p, r->p->span.args[span], ARG_MARKER_OP)), "__getattr__");
}

/* The op: by argument markers, else by ranges of the backward pass, else by those with a number, else by any other. */
static void pyprof_facts_find_ops(const struct pyprof_records *r, struct pyprof_facts *f)
{
	bool own = r->rules == PYPROF_RECORDS_DEFAULT;
	f->mod0 = intern_put(&r->names->ops, "na", 2);
	for (uint32_t i = 0; i < f->n_spans; i++)
		if (pyprof_range_kind(r, f->span[i]) == PYPROF_MARKER && !pyprof_is_import(r, f->span[i])) {
			if (!f->n_ops)
				f->mod0 = pyprof_facts_arg_text(r, f->span[i], ARG_MARKER_MODULE);
			pyprof_facts_add_op(f, pyprof_facts_arg_text(r, f->span[i], ARG_MARKER_OP));
		}
	f->n_markers = f->n_ops;
	for (uint32_t i = 0; i < f->n_seq && !f->n_markers; i++)
		if (pyprof_name_flags(r, f->seq[i].name) & (own ? NAME_AUTOGRAD : NAME_BACK_OP))
			pyprof_facts_add_op(f, sane_op(r, f->seq[i].name));
	if (!f->n_ops)
		for (uint32_t i = 0; i < f->n_seq; i++)
			pyprof_facts_add_op(f, plain_op(r, f->seq[i].name));
	for (uint32_t i = 0; i < f->n_spans && !f->n_ops; i++)
		if (pyprof_range_kind(r, f->span[i]) == PYPROF_PLAIN) {
			uint32_t name = r->p->span.name[f->span[i]];
			pyprof_facts_add_op(f, own && (pyprof_name_flags(r, name) & NAME_AUTOGRAD) ? sane_op(r, name) : plain_op(r, name));
		}
}

static void pyprof_facts_find_spans(const struct pyprof_records *r, uint32_t chain, struct pyprof_facts *f)
{
	f->n_spans = 0;
	uint32_t around = 0;
	for (uint32_t c = chain; c != ROW_NONE && around < PYPROF_AROUND_MAX; c = r->node[c].outer, around++) {
		if (pyprof_range_kind(r, r->node[c].span) == PYPROF_IGNORED)
			continue;
		MEM_PUSH(f->span, f->n_spans, f->cap_spans, r->node[c].span);
	}
	for (uint32_t i = 0, k = f->n_spans; i + 1 < k; i++) {
		uint32_t x = f->span[i];
		f->span[i] = f->span[--k];
		f->span[k] = x;
	}
}

void pyprof_facts_of(const struct pyprof_records *r, uint32_t chain, struct pyprof_facts *f)
{
	bool own = r->rules == PYPROF_RECORDS_DEFAULT;
	pyprof_facts_find_spans(r, chain, f);
	f->n_seq = f->n_ids = f->n_ops = 0;
	f->backward = f->accumulate = false;
	for (uint32_t i = 0; i < f->n_spans; i++) {
		uint32_t name = r->p->span.name[f->span[i]];
		if (pyprof_range_kind(r, f->span[i]) == PYPROF_SEQUENCE)
			add_seq(f, name, r->p->span.link_id[f->span[i]]);
		f->backward |= own && (pyprof_name_flags(r, name) & NAME_AUTOGRAD);
		f->accumulate |= own && (pyprof_name_flags(r, name) & NAME_ACCUMULATE);
	}
	if (!own)
		sort_and_prune(r, f);
	for (uint32_t i = 0; i < f->n_seq; i++) {
		add_id(f, f->seq[i].seq);
		f->backward |= !own && (pyprof_name_flags(r, f->seq[i].name) & NAME_BACK);
	}
	if (f->n_ids > 1 && f->id[0] == 0) {
		f->n_ids--;
		memmove(f->id, f->id + 1, f->n_ids * sizeof *f->id);
	}
	pyprof_facts_find_ops(r, f);
}

void pyprof_facts_release(struct pyprof_facts *f)
{
	mem_free(f->span);
	mem_free(f->seq);
	mem_free(f->id);
	mem_free(f->op);
	*f = (struct pyprof_facts){0};
}
