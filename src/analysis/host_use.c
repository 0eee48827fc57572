#include "analysis/host_use.h"

#include "analysis/steps.h"
#include "base/mem.h"
#include "op/kernels.h"

enum { NAME_ASKED = 1, NAME_STEP = 2, NAME_DATALOADER = 4, NAME_COMM = 8, NAME_IO = 16 };

struct host_uses {
	const struct profile *p;
	uint8_t *name;           /* by string id */
};

struct host_uses *host_uses_new(const struct profile *p)
{
	struct host_uses *h = NEW(struct host_uses);
	const struct steps *s = p->steps;
	*h = (struct host_uses){p, NEW_ARRAY(p->strings.n, uint8_t)};
	for (unsigned i = 0; i < s->total; i++) /* neither a range that is a step is work in it, nor another of its name */
		if (s->v[i].span != ROW_NONE)
			h->name[p->span.name[s->v[i].span]] = NAME_ASKED | NAME_STEP;
	return h;
}

void host_uses_free(struct host_uses *h)
{
	if (!h)
		return;
	mem_free(h->name);
	mem_free(h);
}

bool host_is_dataloader(struct str name)
{
	return str_starts(name, STR("enumerate(DataLoader)#")) || str_starts(name, STR("enumerate(DataPipe)#")) ||
	       str_starts(name, STR("torch.utils.data.dataloader."));
}

static bool is_io(struct str name)
{
	static const char *const calls[] = {"fread", "fwrite", "fread_unlocked", "fwrite_unlocked", "pread", "pread64", "pwrite", "pwrite64", "preadv",
		                            "pwritev", "readv", "writev", "sendfile", "fsync", "fdatasync"};
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (str_eqc(name, calls[i]))
			return true;
	return false;
}

static uint8_t ask(struct host_uses *h, uint32_t id)
{
	if (h->name[id])
		return h->name[id];
	struct str s = profile_str(h->p, id);
	return h->name[id] = (uint8_t)(NAME_ASKED | (str_starts(s, STR("ProfilerStep#")) ? NAME_STEP : 0) |
	                               (host_is_dataloader(s) ? NAME_DATALOADER : 0) | (op_is_comm(s) ? NAME_COMM : 0) | (is_io(s) ? NAME_IO : 0));
}

enum host_use host_use_of(struct host_uses *h, uint32_t i)
{
	const struct spans *s = &h->p->span;
	uint8_t name;
	switch (s->kind[i]) {
	case SPAN_CALL:
		return HOST_CALL;
	case SPAN_PYTHON: { /* the old per-call `python` events, not the frames of with_stack */
		struct str cat = profile_cat(h->p, s->cat[i]);
		return cat.n == 6 && str_has_nocase(cat, STR("python")) ? HOST_CPU : HOST_NONE;
	}
	case SPAN_OS:
		return ask(h, s->name[i]) & NAME_IO ? HOST_IO : HOST_NONE;
	case SPAN_RANGE:
		return (ask(h, s->name[i]) & (NAME_STEP | NAME_DATALOADER)) == NAME_DATALOADER ? HOST_DATALOADER : HOST_NONE;
	case SPAN_OP:
	case SPAN_USER:
		name = ask(h, s->name[i]);
		return name & NAME_STEP ? HOST_NONE : name & NAME_DATALOADER ? HOST_DATALOADER : name & NAME_COMM ? HOST_COMM : HOST_CPU;
	default:
		return HOST_NONE;
	}
}
