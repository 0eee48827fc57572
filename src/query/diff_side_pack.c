#include "query/diff_side_pack.h"

#include "analysis/tree/direction.h"
#include "base/mem.h"
#include "base/pack.h"
#include "query/diff_scatter.h"

#include <assert.h>

/* Times lie between -2^62 and 2^62, as in a profile: they can be subtracted. */
#define DIFF_PACK_TIME ((int64_t)1 << 62)
#define DIFF_PACK_SIZE 0, DIFF_PACK_TIME

struct diff_side_value { struct str text; };

/* What a file keeps of struct diff_side: without what is known only of the whole job. */
struct diff_side_bytes {
	struct intern texts;
	struct diff_part *part;
	uint32_t n_parts;
	struct diff_exposed *exposed;
	uint32_t n_exposed;
	int64_t *step_ns;
	uint32_t n_steps;
	int64_t *part_step_ns;
	uint32_t n_part_steps;
	struct diff_side_value *fact;
	uint32_t n_facts;
	struct str path, slowest;
	uint32_t slowest_pct, warm_up, gpus;
	bool has_steps, workers, frames, thinned;
	uint8_t window;
	int64_t total_ns, peak_bytes;
};

#define DIFF_KEY_FIELDS(F, S)                               \
	F(S, REF, name, struct diff_side_bytes, texts.n)    \
	F(S, REF, type, struct diff_side_bytes, texts.n)    \
	F(S, REF, shapes, struct diff_side_bytes, texts.n)  \
	F(S, REF, kernel, struct diff_side_bytes, texts.n)  \
	F(S, REF, around, struct diff_side_bytes, texts.n)  \
	F(S, REF, line, struct diff_side_bytes, texts.n)    \
	F(S, LATER, waited_for, 0)                          \
	F(S, INT, kind, 0, DIFF_WAIT - 1)                   \
	F(S, INT, direction, 0, DIRECTIONS - 1)              \
	F(S, LATER, zero, 0)
#define DIFF_PART_FIELDS(F, S)                              \
	F(S, STRUCT, key, diff_key)                         \
	F(S, INT, calls, 0, UINT32_MAX)                     \
	F(S, INT, ns, DIFF_PACK_SIZE)                       \
	F(S, INT, wait_unknown_ns, DIFF_PACK_SIZE)                \
	F(S, INT, maybe_wait_ns, DIFF_PACK_SIZE)                 \
	F(S, REF, short_kernel, struct diff_side_bytes, texts.n)
#define DIFF_EXPOSED_FIELDS(F, S)                           \
	F(S, INT, start_ns, -DIFF_PACK_TIME, DIFF_PACK_TIME) \
	F(S, INT, end_ns, -DIFF_PACK_TIME, DIFF_PACK_TIME)  \
	F(S, INT, share_ns, DIFF_PACK_SIZE)                 \
	F(S, REF, part, struct diff_side_bytes, n_parts)    \
	F(S, INT, row, 0, UINT32_MAX)                       \
	F(S, LATER, input, 0)
#define DIFF_SIDE_VALUE_FIELDS(F, S) F(S, TEXT, text)
#define DIFF_SIDE_BYTES_FIELDS(F, S)                        \
	F(S, TEXTS, texts)                                  \
	F(S, ROWS, part, n_parts, diff_part)                \
	F(S, ROWS, exposed, n_exposed, diff_exposed)        \
	F(S, LIST, step_ns, n_steps, DIFF_PACK_SIZE)        \
	F(S, LIST, part_step_ns, n_part_steps, -DIFF_PACK_TIME, DIFF_PACK_TIME) \
	F(S, ROWS, fact, n_facts, diff_side_value)          \
	F(S, TEXT, path)                                    \
	F(S, TEXT, slowest)                                 \
	F(S, INT, slowest_pct, 0, UINT32_MAX)               \
	F(S, INT, warm_up, 0, UINT32_MAX)                   \
	F(S, INT, gpus, 0, INT32_MAX)                       \
	F(S, FLAG, has_steps)                               \
	F(S, FLAG, workers)                                 \
	F(S, FLAG, frames)                                  \
	F(S, FLAG, thinned)                                 \
	F(S, INT, window, 0, WINDOW_RECORDING)              \
	F(S, INT, total_ns, 0, INT64_MAX)                   \
	F(S, INT, peak_bytes, -1, INT64_MAX)

PACK_TYPE(diff_key, DIFF_KEY_FIELDS)
PACK_TYPE(diff_part, DIFF_PART_FIELDS)
PACK_TYPE(diff_exposed, DIFF_EXPOSED_FIELDS)
PACK_TYPE(diff_side_value, DIFF_SIDE_VALUE_FIELDS)
PACK_TYPE(diff_side_bytes, DIFF_SIDE_BYTES_FIELDS)

void diff_side_pack(const struct diff_side *s, struct buf *out)
{
	const uint64_t version = pack_version(&diff_side_bytes_layout);
	struct diff_side_bytes b = {
		.texts = s->texts, .part = s->part, .n_parts = s->n_parts, .exposed = s->exposed, .n_exposed = s->n_exposed, .step_ns = s->step_ns, .n_steps = s->n_steps,
		.part_step_ns = s->part_step_ns, .n_part_steps = s->n_part_steps,
		.fact = NEW_ARRAY(s->n_facts, struct diff_side_value), .n_facts = s->n_facts, .path = s->path, .slowest = s->slowest, .slowest_pct = s->slowest_pct, .warm_up = s->warm_up, .gpus = s->gpus, .has_steps = s->has_steps, .workers = s->workers,
		.frames = s->frames, .thinned = s->thinned, .window = (uint8_t)s->window, .total_ns = s->total_ns, .peak_bytes = s->peak_bytes,
	};
	assert(s->n_recordings == 1 && !s->waits_told);
	for (unsigned i = 0; i < s->n_facts; i++)
		b.fact[i].text = s->fact[i].value;
	buf_put(out, &version, sizeof version);
	pack_put(&diff_side_bytes_layout, &b, out);
	mem_free(b.fact);
}

/* Whether `ns` could be added; the sum stays below what 64 bits hold. */
static bool diff_pack_add(int64_t *sum, int64_t ns)
{
	return !__builtin_add_overflow(*sum, ns, sum);
}

/* Parts add up to the total, and exposed time to what its parts have at most. */
static bool diff_pack_adds_up(const struct diff_side *s)
{
	int64_t sum = 0, steps = 0;
	int64_t *left = NEW_ARRAY(s->n_parts, int64_t);
	bool ok = s->n_steps > 0 && (!s->n_part_steps || s->n_part_steps == (uint64_t)s->n_parts * s->n_steps);
	for (uint32_t i = 0; i < s->n_parts && ok; i++) {
		const struct diff_part *x = &s->part[i];
		ok = diff_pack_add(&sum, x->ns) && x->wait_unknown_ns == x->maybe_wait_ns && x->maybe_wait_ns == (x->key.kind == DIFF_COMM ? x->ns : 0);
		left[i] = x->maybe_wait_ns;
	}
	for (unsigned i = 0; i < s->n_steps && ok; i++)
		ok = diff_pack_add(&steps, s->step_ns[i]);
	for (uint32_t i = 0; i < s->n_exposed && ok; i++) {
		const struct diff_exposed *x = &s->exposed[i];
		ok = x->start_ns < x->end_ns && x->share_ns <= x->end_ns - x->start_ns && (left[x->part] -= x->share_ns) >= 0;
	}
	mem_free(left);
	return ok && sum == s->total_ns && diff_scatter_adds_up(s);
}

/* Gives the side what was taken of the bytes. */
static bool diff_pack_fill(struct diff_side *s, const struct diff_side_bytes *b)
{
	struct str *value = NEW_ARRAY(b->n_facts, struct str);
	s->n_recordings = 1;
	s->path = b->path;
	s->slowest = b->slowest;
	s->slowest_pct = b->slowest_pct;
	s->workers = b->workers;
	s->warm_up = b->warm_up;
	s->gpus = b->gpus;
	s->has_steps = b->has_steps;
	s->frames = b->frames;
	s->thinned = b->thinned;
	s->window = (enum steps_window_kind)b->window;
	s->total_ns = b->total_ns;
	s->peak_bytes = b->peak_bytes;
	for (uint32_t i = 0; i < b->n_facts; i++)
		value[i] = b->fact[i].text;
	bool ok = diff_side_set_facts(s, value, b->n_facts);
	for (uint32_t i = 0; i < s->n_parts && ok; i++)
		ok = intern_put(&s->keys, (const char *)&s->part[i].key, sizeof s->part[i].key) == i + 1;
	mem_free(value);
	return ok && diff_pack_adds_up(s);
}

struct diff_side *diff_side_unpack(struct str bytes, struct err *e)
{
	const uint64_t want = pack_version(&diff_side_bytes_layout);
	struct diff_side *s = NEW(struct diff_side);
	struct diff_side_bytes b = {0};
	uint64_t version;
	const char *why;
	const bool mine = bytes.n >= sizeof version && (memcpy(&version, bytes.p, sizeof version), version == want);
	intern_init(&b.texts);
	intern_init(&s->keys);
	bool ok = mine && pack_take(&diff_side_bytes_layout, (struct str){bytes.p + sizeof version, bytes.n - sizeof version}, &s->arena, &b, &why);
	s->texts = b.texts;
	s->part = b.part;
	s->n_parts = s->cap_parts = b.n_parts;
	s->exposed = b.exposed;
	s->n_exposed = s->cap_exposed = b.n_exposed;
	s->step_ns = b.step_ns;
	s->n_steps = b.n_steps;
	s->part_step_ns = b.part_step_ns;
	s->n_part_steps = s->cap_part_steps = b.n_part_steps;
	s->scatter_dropped = !b.n_part_steps;
	if (!mine)
		err_set(e, ERR_FORMAT, "what is compared of a recording was written by another version of opscope: import the folder again");
	else if (!ok)
		err_set(e, ERR_FORMAT, "what is compared of a recording is damaged: %s", why);
	else if (!(ok = diff_pack_fill(s, &b)))
		err_set(e, ERR_FORMAT, "what is compared of a recording is damaged: its numbers do not add up");
	mem_free(b.fact);
	if (ok)
		return s;
	diff_side_free(s);
	return NULL;
}
