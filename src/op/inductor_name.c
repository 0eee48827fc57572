#include "op/inductor_name.h"

#include "base/mem.h"

#include <stdint.h>

const char *const inductor_kind_name[INDUCTOR_KINDS] = {
	[INDUCTOR_UNKNOWN] = "unknown", [INDUCTOR_POINTWISE] = "pointwise", [INDUCTOR_REDUCTION] = "reduction", [INDUCTOR_PERSISTENT] = "persistent reduction",
	[INDUCTOR_TEMPLATE] = "template", [INDUCTOR_FOREACH] = "foreach", [INDUCTOR_SCAN] = "scan",
};

/* Cuts the piece behind the last '_' off *s; false where there is no '_'. */
static bool cut_last(struct str *s, struct str *piece)
{
	size_t at = s->n;
	while (at && s->p[at - 1] != '_')
		at--;
	if (!at)
		return false;
	*piece = (struct str){s->p + at, s->n - at};
	*s = (struct str){s->p, at - 1};
	return true;
}

/* "0d1d2de": the numbers of the arguments, and what is known of each. */
static bool is_signature(struct str s)
{
	bool letters = false;
	for (size_t i = 0; i < s.n; i++) {
		letters |= s.p[i] == 'd' || s.p[i] == 'c';
		if (!is_digit(s.p[i]) && s.p[i] != 'd' && s.p[i] != 'e' && s.p[i] != 'c')
			return false;
	}
	return s.n && is_digit(s.p[0]) && letters;
}

static bool inductor_is_number(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_digit(s.p[i]))
			return false;
	return s.n;
}

static bool kind_of(struct str *s, enum inductor_kind *kind)
{
	static const struct { const char *word; enum inductor_kind kind; } kinds[] = {
		{"poi_", INDUCTOR_POINTWISE}, {"red_", INDUCTOR_REDUCTION}, {"per_", INDUCTOR_PERSISTENT}, {"tem_", INDUCTOR_TEMPLATE},
		{"for_", INDUCTOR_FOREACH}, {"spl_", INDUCTOR_SCAN}, {"unk_", INDUCTOR_UNKNOWN},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (str_skip(s, str_from(kinds[i].word))) {
			*kind = kinds[i].kind;
			return true;
		}
	*kind = INDUCTOR_UNKNOWN;
	return false;
}

bool inductor_name_parse(struct str text, struct inductor_name *out)
{
	struct str rest = text, name = text, piece;
	*out = (struct inductor_name){.name = text};
	if (!str_skip(&rest, STR("triton_")))
		return false;
	if (cut_last(&name, &piece) && is_signature(piece))
		out->name = name;
	if (out->name.n < strlen("triton_")) /* "triton__0d1d": nothing but a signature */
		return true;
	rest = (struct str){out->name.p + strlen("triton_"), out->name.n - strlen("triton_")};
	bool has_kind = kind_of(&rest, &out->kind);
	if (!rest.n)
		return true;
	bool fused = str_eqc(rest, "fused") || str_skip(&rest, STR("fused_"));
	if (!fused)
		return has_kind;
	if (inductor_is_number(rest))
		return true;
	struct str ops = rest;
	out->ops = cut_last(&ops, &piece) && inductor_is_number(piece) ? ops : rest;
	return true;
}

struct str inductor_graph_key(struct str range)
{
	(void)str_skip(&range, STR(INDUCTOR_GRAPH_RANGE));
	if (str_ends(range, STR("##")))
		range.n -= strlen("##");
	return str_trim(range);
}

static const uint32_t INDUCTOR_STRANGE = 1000, INDUCTOR_NO_WAY = UINT32_MAX / 2;

/* How the text before an end can be read where its last op begins behind a certain end. */
struct inductor_way {
	uint32_t cost;    /* each op costs 1, each other word INDUCTOR_STRANGE */
	uint32_t ways;    /* in which all words are ops, at most UINT16_MAX */
	uint8_t before;   /* where the op before begins */
	bool known;
};

struct inductor_reading {
	struct str s;
	unsigned n;                             /* ends */
	size_t end[INDUCTOR_OPS_MAX + 1];     /* end[0]: before the text; a word from i to j is s[end[i] + 1 .. end[j]) */
	struct inductor_way *way;               /* (n + 1) x (n + 1), by begin and end */
};

static struct str word_of(const struct inductor_reading *r, unsigned from, unsigned to)
{
	size_t a = from ? r->end[from] + 1 : 0;
	return a < r->end[to] ? (struct str){r->s.p + a, r->end[to] - a} : (struct str){r->s.p + a, 0};
}

static struct inductor_way *way_at(const struct inductor_reading *r, unsigned from, unsigned to) { return &r->way[from * (r->n + 1) + to]; }

static void find_way(struct inductor_reading *r, unsigned from, unsigned to, bool known)
{
	struct inductor_way *w = way_at(r, from, to);
	struct str word = word_of(r, from, to);
	*w = (struct inductor_way){.cost = from ? INDUCTOR_NO_WAY : 0, .ways = !from, .known = known};
	for (unsigned before = 0; before < from; before++) {
		const struct inductor_way *b = way_at(r, before, from);
		if (b->cost >= INDUCTOR_NO_WAY || (known && b->known && str_cmp(word_of(r, before, from), word) >= 0))
			continue;
		w->ways += b->ways;
		if (b->cost < w->cost) {
			w->cost = b->cost;
			w->before = (uint8_t)before;
		}
	}
	w->ways = !known ? 0 : w->ways < UINT16_MAX ? w->ways : UINT16_MAX;
	if (w->cost < INDUCTOR_NO_WAY)
		w->cost += known ? 1 : 1 + INDUCTOR_STRANGE * (to - from);
}

unsigned inductor_ops(struct str ops, bool (*known)(const void *of, struct str word), const void *of, struct inductor_op out[INDUCTOR_OPS_MAX], bool *ambiguous)
{
	struct inductor_reading r = {.s = ops};
	struct inductor_op found[INDUCTOR_OPS_MAX];
	*ambiguous = false;
	if (!ops.n)
		return 0;
	for (size_t i = 1; i <= ops.n && r.n < INDUCTOR_OPS_MAX; i++)
		if (i == ops.n || ops.p[i] == '_')
			r.end[++r.n] = i;
	if (r.end[r.n] != ops.n) {
		out[0] = (struct inductor_op){.name = ops};
		return 1;
	}
	r.way = NEW_ARRAY((r.n + 1) * (r.n + 1), struct inductor_way);
	for (unsigned to = 1; to <= r.n; to++)
		for (unsigned from = 0; from < to; from++) {
			struct str word = word_of(&r, from, to);
			if (word.n)
				find_way(&r, from, to, word.p[word.n - 1] != '_' && known(of, word));
			else
				*way_at(&r, from, to) = (struct inductor_way){.cost = INDUCTOR_NO_WAY};
		}
	unsigned from = 0, to = r.n, n = 0;
	uint32_t ways = 0;
	for (unsigned i = 0; i < r.n; i++) {
		from = way_at(&r, i, to)->cost < way_at(&r, from, to)->cost ? i : from;
		ways += way_at(&r, i, to)->ways;
	}
	*ambiguous = ways > 1;
	for (;;) {
		const struct inductor_way *w = way_at(&r, from, to);
		found[n++] = (struct inductor_op){word_of(&r, from, to), w->known};
		if (!from)
			break;
		to = from;
		from = w->before;
	}
	for (unsigned i = 0; i < n; i++)
		out[i] = found[n - 1 - i];
	mem_free(r.way);
	return n;
}
