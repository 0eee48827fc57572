#include "base/rankset.h"

#include "base/mem.h"

void rankset_init(struct rankset *s, uint32_t n_rows)
{
	*s = (struct rankset){.n_words = n_rows / 64 + 1};
	s->bits = NEW_ARRAY(s->n_words, uint64_t);
}

void rankset_seal(struct rankset *s)
{
	s->before = NEW_ARRAY_RAW(s->n_words, uint32_t);
	s->members = 0;
	for (uint32_t w = 0; w < s->n_words; w++) {
		s->before[w] = s->members;
		s->members += (uint32_t)__builtin_popcountll(s->bits[w]);
	}
}

void rankset_release(struct rankset *s)
{
	mem_free(s->bits);
	mem_free(s->before);
	*s = (struct rankset){0};
}
