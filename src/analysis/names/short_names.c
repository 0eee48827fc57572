#include "analysis/names/short_names.h"

#include "base/hash.h"
#include "base/mem.h"
#include "op/short_name.h"

struct short_names {
	const struct profile *p; /* owns the full names */
	struct idmap of;         /* string id -> place in v */
	struct str *v;
	struct arena arena;
};

/* The string ids of kernels, in order of first appearance. */
static uint32_t *kernel_ids(const struct profile *p, uint32_t *n)
{
	uint8_t *seen = NEW_ARRAY(p->strings.n, uint8_t);
	uint32_t *id = NULL, cap = 0, last = UINT32_MAX;
	*n = 0;
	for (uint32_t i = 0; i < p->gpu_op.rows.n; i++) {
		uint32_t name = p->gpu_op.name[i];
		if (name == last || p->gpu_op.kind[i] != GPU_KERNEL || seen[name])
			continue;
		last = name;
		seen[name] = 1;
		MEM_PUSH(id, *n, cap, name);
	}
	mem_free(seen);
	return id;
}

struct short_names *short_names_new(const struct profile *p)
{
	struct short_names *s = NEW(struct short_names);
	uint32_t n;
	s->p = p->whole ? p->whole : p;
	uint32_t *id = kernel_ids(s->p, &n);
	struct str *full = NEW_ARRAY_RAW(n, struct str);
	s->v = NEW_ARRAY(n, struct str);
	idmap_init(&s->of, 0, s->p->strings.n, n);
	for (uint32_t i = 0; i < n; i++) {
		full[i] = profile_str(s->p, id[i]);
		idmap_put(&s->of, id[i], i);
	}
	kernel_short_names(&s->arena, full, n, s->v);
	mem_free(full);
	mem_free(id);
	return s;
}

void short_names_free(struct short_names *s)
{
	if (!s)
		return;
	idmap_release(&s->of);
	arena_release(&s->arena);
	mem_free(s->v);
	mem_free(s);
}

struct str short_names_get(const struct short_names *s, uint32_t name)
{
	uint32_t at = idmap_get(&s->of, name);
	return at == IDMAP_NONE ? profile_str(s->p, name) : s->v[at];
}

struct str short_names_find(const struct short_names *s, struct str name)
{
	uint32_t id = intern_find(&s->p->strings, name);
	uint32_t at = id == INTERN_NONE ? IDMAP_NONE : idmap_get(&s->of, id);
	return at == IDMAP_NONE ? name : s->v[at];
}
