#include "op/user_rules_work.h"

struct user_rules *user_rules_new(struct arena *a)
{
	struct user_rules *u = ARENA_ARRAY(a, 1, struct user_rules);
	u->arena = a;
	return u;
}

void *user_rules_grow(struct arena *a, void *v, size_t n, size_t size)
{
	if (n & (n - 1))
		return v;
	void *more = arena_zalloc_array(a, n ? 2 * n : 1, size);
	if (n)
		memcpy(more, v, n * size);
	return more;
}
