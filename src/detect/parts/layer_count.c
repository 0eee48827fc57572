#include "detect/parts/layer_count.h"

#include "base/mem.h"
#include "detect/parts/shared.h"

void layer_count_init(struct layer_count *c, const struct profile *p, struct findings *f)
{
	*c = (struct layer_count){.p = p, .layers = shared_layers(f)};
	c->seen = NEW_ARRAY(c->layers->n, uint8_t);
}

void layer_count_release(struct layer_count *c)
{
	mem_free(c->seen);
}

void layer_count_add(struct layer_count *c, uint32_t gpu)
{
	uint32_t at = layers_of_gpu(c->layers, c->p, gpu);
	if (at == LAYER_NONE || c->seen[at])
		return;
	c->seen[at] = 1;
	c->first = c->n++ ? c->first : at;
}

void layer_count_text(const struct layer_count *c, struct buf *out)
{
	if (c->n)
		buf_printf(out, ". In %u %s, the first " STR_FMT, c->n, c->n == 1 ? "layer" : "layers",
		           STR_ARG(intern_get(&c->layers->names, c->layers->v[c->first].name)));
}
