/* Long columns of numbers as JSON, short when packed: each number may stand as its difference to the one before. And texts by number. */
#ifndef OPSCOPE_SERVE_SERIES_H
#define OPSCOPE_SERVE_SERIES_H

#include "base/buf.h"
#include "store/profile.h"

struct series {
	struct buf *b;
	int64_t last;
	bool differences, any;
};

/* `"name":[`; `differences`: the first number stands as it is, each other one less the one before it. */
struct series series_begin(struct buf *b, const char *name, bool differences);
void series_add(struct series *s, int64_t v);
void series_end(struct series *s);

/* Strings of a profile numbered from 0 in the order of their first use. Begin with {0} and texts_begin. */
struct texts {
	const struct profile *p;
	uint32_t *place;        /* by string id: number + 1 */
	uint32_t *id;           /* by number */
	uint32_t n, cap;
};
void texts_begin(struct texts *t, const struct profile *p);
uint32_t texts_number(struct texts *t, uint32_t id);
/* `"name":["...",...]` */
void texts_put(const struct texts *t, struct buf *b, const char *name);
void texts_release(struct texts *t);

/* `"name":["...",...]` of n words. */
void series_words(struct buf *b, const char *name, const char *const *words, unsigned n);

#endif
