#include "query/diff_matched.h"

#include "base/mem.h"
#include "detect/parts/compiled.h"
#include "query/diff.h"

#include <math.h>

/* Below this share of the computation whose path both sides have, percent, ops stand together by type alone. */
static const double DIFF_LEAST_PATHS_PCT = 50;
/* An op of one program is called at most so many times as often in one run of it as in another. */
static const double DIFF_MOST_CALLS = 1.5;

bool diff_is_region(struct str type)
{
	return compiled_is_region(type) || str_has(type, STR("GraphLaunch"));
}

double diff_region_pct(const struct diff_side *s)
{
	int64_t all = 0, region = 0;
	for (uint32_t i = 0; i < s->n_parts; i++) {
		const struct diff_key *k = &s->part[i].key;
		all += k->kind == DIFF_IDLE ? 0 : s->part[i].ns;
		region += k->kind == DIFF_COMPUTE && diff_is_region(intern_get(&s->texts, k->type)) ? s->part[i].ns : 0;
	}
	return all ? 100.0 * (double)region / (double)all : 0;
}

/* What is known of the ops of one type, or of one path. */
struct diff_matched_ops {
	bool on[2];
	double calls[2];         /* in a step */
};

enum diff_matched_by { DIFF_MATCHED_TYPE, DIFF_MATCHED_PATH };

/* The number of a part's type, or of its path without numbers of layers, with its kind and pass. */
static uint32_t diff_matched_key(const struct diff_side *s, const struct diff_key *k, enum diff_matched_by by, struct intern *keys)
{
	struct buf key = {0};
	buf_printf(&key, "%d %d %d ", by, k->kind, k->direction);
	if (by == DIFF_MATCHED_PATH)
		diff_put_family(intern_get(&s->texts, k->name), intern_get(&s->texts, k->type), &key);
	else
		buf_str(&key, intern_get(&s->texts, k->type));
	const uint32_t id = intern_str(keys, buf_view(&key));
	buf_release(&key);
	return id;
}

/* Runs of one program call an op as often, but for more layers, which then are at the same paths. Recordings without steps hold as much as happened to be recorded. */
static bool diff_matched_calls(const struct diff_matched_ops *m, bool steps)
{
	return !steps || (m->calls[0] <= DIFF_MOST_CALLS * m->calls[1] && m->calls[1] <= DIFF_MOST_CALLS * m->calls[0]);
}

/* The time of computation of both sides, and how much of it is common. */
struct diff_matched_sum {
	int64_t all_ns[2], common_ns[2];
};

static bool diff_matched_counts(const struct diff_part *part)
{
	return part->key.kind == DIFF_COMPUTE || part->key.kind == DIFF_HOST;
}

static void diff_matched_add(struct diff_matched_sum *sum, const struct diff_matched *m, int side, const struct diff_part *part, bool common)
{
	const bool unknown = m->regions[0] != m->regions[1] && (m->regions[!side] || diff_is_region(intern_get(&m->align->side[side]->texts, part->key.type)));
	sum->all_ns[side] += part->ns;
	sum->common_ns[side] += common || unknown ? part->ns : 0;
}

static double diff_matched_least_pct(const struct diff_matched_sum *sum)
{
	double pct = 100;
	for (int s = 0; s < 2; s++)
		if (sum->all_ns[s])
			pct = fmin(pct, 100.0 * (double)sum->common_ns[s] / (double)sum->all_ns[s]);
	return pct;
}

/* Of ops that the other side has, too. */
static double diff_matched_pct(const struct diff_matched *m)
{
	const struct diff_side *const *side = m->align->side;
	const bool steps = side[0]->has_steps && side[1]->has_steps;
	struct intern keys;
	struct diff_matched_sum sum = {0};
	struct diff_matched_ops *ops = NEW_ARRAY(2 * ((size_t)side[0]->n_parts + side[1]->n_parts) + 1, struct diff_matched_ops);
	intern_init(&keys);
	for (int pass = 0; pass < 2; pass++)
		for (int s = 0; s < 2; s++)
			for (uint32_t i = 0; i < side[s]->n_parts; i++) {
				const struct diff_part *part = &side[s]->part[i];
				if (!diff_matched_counts(part))
					continue;
				struct diff_matched_ops *type = &ops[diff_matched_key(side[s], &part->key, DIFF_MATCHED_TYPE, &keys)], *path = &ops[diff_matched_key(side[s], &part->key, DIFF_MATCHED_PATH, &keys)];
				if (pass == 0) {
					type->on[s] = path->on[s] = true;
					type->calls[s] += (double)part->calls / diff_side_per(side[s]);
				} else {
					diff_matched_add(&sum, m, s, part, (path->on[0] && path->on[1]) || (type->on[0] && type->on[1] && diff_matched_calls(type, steps)));
				}
			}
	intern_release(&keys);
	mem_free(ops);
	return diff_matched_least_pct(&sum);
}

/* Of ops that are aligned with one of the other side. */
static double diff_matched_aligned_pct(const struct diff_matched *m)
{
	const struct diff_align *x = m->align;
	struct diff_matched_sum sum = {0};
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < x->side[s]->n_parts; i++) {
			const uint32_t op = x->of_part[s][i];
			if (diff_matched_counts(&x->side[s]->part[i]))
				diff_matched_add(&sum, m, s, &x->side[s]->part[i], op != ROW_NONE && x->node[op].on[0] && x->node[op].on[1]);
		}
	return diff_matched_least_pct(&sum);
}

struct diff_matched diff_matched_of(const struct diff_align *x)
{
	struct diff_matched m = {.align = x, .regions = {diff_region_pct(x->side[0]) > 0, diff_region_pct(x->side[1]) > 0}};
	m.pct = diff_matched_pct(&m);
	/* Of two programs most paths differ; what they call alike is told by path all the same. */
	m.paths = m.pct < DIFF_LEAST_MATCHED || diff_matched_aligned_pct(&m) >= DIFF_LEAST_PATHS_PCT;
	return m;
}
