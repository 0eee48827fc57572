#include "analysis/ranks/rank_place.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "io/json.h"

/* A member of the object `text` that is a whole number, 0 or more; else -1. */
static int64_t member(struct str text, struct str name)
{
	int64_t found = -1, n;
	double exact;
	if (!text.n || text.p[0] != '{')
		return -1;
	struct buf padded = {0};
	buf_str(&padded, text);
	buf_fill(&padded, 0, JSON_PADDING);
	struct json j = {.end = padded.p + text.n};
	struct json_value key, v;
	bool first = true;
	for (const char *at = padded.p + 1; at && (at = json_member(&j, at, &first, &key)) && key.raw.p;) {
		at = json_value(&j, at, &v);
		if (at && str_eq(key.raw, name) && v.type == JSON_NUMBER && json_to_i64(v.raw, &n) && n >= 0)
			found = json_to_f64(v.raw, &exact) && exact == (double)n ? n : -1;
	}
	buf_release(&padded);
	return found;
}

struct rank_place rank_place_of(const struct profile *p)
{
	struct str text;
	if (profile_meta(p, "opscope_job", &text)) {
		int64_t ranks = member(text, STR("world_size"));
		return (struct rank_place){.world = ranks > 0 ? ranks : 0, .is_merged = true};
	}
	if (!profile_meta(p, "distributedInfo", &text))
		return (struct rank_place){0};
	int64_t rank = member(text, STR("rank")), world = member(text, STR("world_size"));
	return (struct rank_place){.is_rank = rank >= 0 && world != 1, .rank = rank >= 0 ? rank : 0, .world = world > 0 ? world : 0};
}

uint32_t rank_foreign_gpus(const struct profile *p, uint8_t *foreign)
{
	uint32_t n = 0, total = p->device.rows.n;
	if (total < 2 || !rank_place_of(p).is_rank)
		return 0;
	struct idmap used;
	idmap_init(&used, INT32_MIN, INT32_MAX, p->launch.rows.n);
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		idmap_put(&used, p->launch.device[i], 1);
	for (uint32_t i = 0; i < total; i++)
		n += foreign[i] = idmap_get(&used, p->device.id[i]) == IDMAP_NONE;
	idmap_release(&used);
	if (n < total)
		return n;
	memset(foreign, 0, total);
	return 0;
}

uint32_t rank_own_gpus(const struct profile *p)
{
	uint8_t *foreign = NEW_ARRAY(p->device.rows.n, uint8_t);
	uint32_t n = p->device.rows.n - rank_foreign_gpus(p, foreign);
	mem_free(foreign);
	return n;
}

void rank_put_foreign_gpus(const struct profile *p, struct buf *b)
{
	uint8_t *foreign = NEW_ARRAY(p->device.rows.n, uint8_t);
	uint32_t n = rank_foreign_gpus(p, foreign);
	struct rank_place place = rank_place_of(p);
	if (n) {
		buf_printf(b, "This is rank %lld", (long long)place.rank);
		if (place.world)
			buf_printf(b, " of %lld", (long long)place.world);
		buf_cstr(b, n == 1 ? ": listed GPU" : ": listed GPUs");
		for (uint32_t i = 0, k = 0; i < p->device.rows.n; i++)
			if (foreign[i])
				buf_printf(b, "%s %d", k++ ? "," : "", p->device.id[i]);
		buf_printf(b, " %s no work here and count%s as those of other ranks: no number is divided by them.", n == 1 ? "has" : "have", n == 1 ? "s" : "");
	}
	mem_free(foreign);
}
