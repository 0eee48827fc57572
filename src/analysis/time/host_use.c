#include "analysis/time/host_use.h"

#include "analysis/names/names.h"
#include "analysis/steps/steps.h"
#include "base/mem.h"

struct host_uses {
	const struct profile *p;
	uint8_t *is_step;        /* by string id: a range of this name is a step */
};

struct host_uses *host_uses_new(const struct profile *p)
{
	struct host_uses *h = NEW(struct host_uses);
	const struct steps *s = p->steps;
	*h = (struct host_uses){p, NEW_ARRAY(p->strings.n, uint8_t)};
	for (unsigned i = 0; i < s->total; i++) /* neither a range that is a step is work in it, nor another of its name */
		if (s->v[i].span != ROW_NONE)
			h->is_step[p->span.name[s->v[i].span]] = 1;
	return h;
}

void host_uses_free(struct host_uses *h)
{
	if (!h)
		return;
	mem_free(h->is_step);
	mem_free(h);
}

enum host_use host_use_of(struct host_uses *h, uint32_t i)
{
	const struct profile *p = h->p;
	const struct spans *s = &p->span;
	uint32_t name = s->name[i];
	bool step = h->is_step[name] || name_is(p, name, NAME_STEP);
	switch (s->kind[i]) {
	case SPAN_CALL:
		return HOST_CALL;
	case SPAN_PYTHON: { /* the old per-call `python` events, not the frames of with_stack */
		struct str cat = profile_cat(p, s->cat[i]);
		return cat.n == 6 && str_has_nocase(cat, STR("python")) ? HOST_CPU : HOST_NONE;
	}
	case SPAN_OS:
		return !step && name_is(p, name, NAME_FILE_IO) ? HOST_IO : HOST_NONE;
	case SPAN_RANGE:
		return !step && name_is_dataloader(p, name) ? HOST_DATALOADER : HOST_NONE;
	case SPAN_OP:
	case SPAN_USER:
		return step ? HOST_NONE : name_is_dataloader(p, name) ? HOST_DATALOADER : name_is(p, name, NAME_COMM) ? HOST_COMM : HOST_CPU;
	default:
		return HOST_NONE;
	}
}
