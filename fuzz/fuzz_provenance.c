/* The log in which torch.compile says where its kernels came from, any bytes: all that comes out are texts that a profile can hold. */
#include "open/provenance_read.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct str s)
{
	if (s.n && (!s.p || memchr(s.p, '\n', s.n)))
		abort();
}

static void check_graph(const struct provenance_graph *g)
{
	for (uint32_t i = 0; i < g->n_calls; i++) {
		const struct provenance_call *c = &g->call[i];
		if (c->number < -1 || (c->stack.n != 0) != (c->lines.n != 0))
			abort();
		check_text(c->lines);
		check_text(c->stack);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1); /* nothing stands behind the text */
	struct provenance v = {0};
	if (size)
		memcpy(copy, data, size);
	(void)provenance_read_log(&v, (struct str){copy, size}, size % 3 ? -1 : 0);
	for (uint32_t i = 0; i < v.n; i++)
		check_graph(&v.graph[i]);
	for (uint32_t i = 0; i < v.n_said; i++) {
		check_text(v.said[i].place);
		check_text(v.said[i].reason);
	}
	provenance_release(&v);
	free(copy);
	return 0;
}
