/* Names with their roles (analysis/timeline/timeline_role.h), as answers about the timeline explain them. */
#ifndef OPSCOPE_SERVE_API_TIMELINE_ROLES_H
#define OPSCOPE_SERVE_API_TIMELINE_ROLES_H

#include "base/buf.h"
#include "serve/series.h"

/* The names of ranges ([false]) and of device work ([true]) that were met, each with the first row that had it. */
struct timeline_names {
	const struct profile *p;
	struct timeline_names_of {
		uint64_t *met;          /* bits by string id */
		struct timeline_name { uint32_t id, row; } *v;
		uint32_t n, cap;
	} of[2];
};

void timeline_names_begin(struct timeline_names *x, const struct profile *p);
void timeline_names_meet(struct timeline_names *x, bool device, uint32_t row);
/* `"names":{"12":"aten::mm",...}`, by string id. */
void timeline_names_put(const struct timeline_names *x, struct buf *b);
/* `"roles":{"span":{"12":"op",...},"gpu":{...}}`, by string id or, with `numbers`, by the number that texts have. */
void timeline_names_put_roles(const struct timeline_names *x, struct texts *numbers, struct buf *b);
void timeline_names_release(struct timeline_names *x);

#endif
