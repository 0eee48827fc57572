/* usage: diff_align [OPS]      (default 500000: with the module of each, a million nodes)
 * CPU seconds that aligning two sides of so many ops each takes, and of as many modules, (query/diff_align.h), of models whose layers are alike, differ a little, and have nothing in common. */
#include "base/mem.h"
#include "query/diff_align.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OPS_PER_LAYER = 50 };

static uint64_t random_of(uint64_t x)
{
	x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	return x ^ x >> 29;
}

/* One in `every` modules is of another width; 0 = none. `seed` tells which. */
static struct diff_side *side_new(uint32_t ops, uint64_t seed, uint64_t every, const char *prefix)
{
	struct diff_side *s = NEW(struct diff_side);
	intern_init(&s->texts);
	s->part = NEW_ARRAY(ops, struct diff_part);
	s->n_parts = ops;
	s->n_steps = s->gpus = 1;
	const uint32_t type = intern_str(&s->texts, STR("linear"));
	for (uint32_t i = 0; i < ops; i++) {
		struct buf name = {0}, shapes = {0};
		buf_printf(&name, "/GPT_0/%sBlock_%u/%sLinear_%u/linear", prefix, i / OPS_PER_LAYER, prefix, i);
		buf_printf(&shapes, "<%d, %llu>", i % OPS_PER_LAYER, every && random_of(seed + i) % every == 0 ? (unsigned long long)random_of(i + seed) % 1000 : 512ull);
		s->part[i] = (struct diff_part){.key = {.name = intern_str(&s->texts, buf_view(&name)), .type = type, .shapes = intern_str(&s->texts, buf_view(&shapes)), .kind = DIFF_COMPUTE}, .calls = 1, .ns = 1000};
		buf_release(&name);
		buf_release(&shapes);
	}
	return s;
}

static void measure(const char *what, struct diff_side *a, struct diff_side *b)
{
	struct diff_align x;
	struct timespec from, to;
	uint32_t both = 0;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	diff_align_init(&x, a, b);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	for (uint32_t i = 0; i < x.n; i++)
		both += x.node[i].is_op && x.node[i].on[0] && x.node[i].on[1];
	printf("%-24s %6.2f s, %u nodes, %u of %u ops aligned\n", what, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9, x.n, both, a->n_parts);
	diff_align_release(&x);
	diff_side_free(a);
	diff_side_free(b);
}

int main(int argc, char **argv)
{
	const uint32_t ops = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 500000;
	measure("equal", side_new(ops, 1, 0, ""), side_new(ops, 1, 0, ""));
	measure("1 of 100 ops differs", side_new(ops, 1, 0, ""), side_new(ops, 2, 100, ""));
	measure("every op differs", side_new(ops, 1, 1, ""), side_new(ops, 2, 1, ""));
	measure("all classes renamed", side_new(ops, 1, 100, ""), side_new(ops, 2, 100, "My"));
	return 0;
}
