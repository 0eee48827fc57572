#include "predecessors/dlprof/usage.h"

#include "analysis/analysis.h"
#include "analysis/tree/op_instances.h"
#include "base/mem.h"

/* The data loaders that DLProf knows. */
static bool dlprof_usage_is_loader(struct str name)
{
	return str_starts(name, STR("enumerate(DataLoader)#")) || str_starts(name, STR("enumerate(DataPipe)#")) || str_starts(name, STR("torch.utils.data.dataloader."));
}

/* Ops and API calls, ranges of data loaders, and two calls of the C library. */
static enum usage_kind host_kind(const struct profile *p, uint8_t *asked, uint32_t span)
{
	uint32_t name = p->span.name[span];
	uint8_t kind = p->span.kind[span];
	if (kind == SPAN_CALL)
		return USAGE_CPU;
	if (kind != SPAN_OS && kind != SPAN_OP && kind != SPAN_USER && kind != SPAN_RANGE)
		return USAGE_OTHER;
	struct str s = profile_str(p, name);
	if (!asked[name])
		asked[name] = (uint8_t)(1 + 2 * dlprof_usage_is_loader(s) + 4 * (str_eqc(s, "fread") || str_eqc(s, "fwrite")));
	if (kind == SPAN_OS)
		return asked[name] & 4 ? USAGE_IO : USAGE_OTHER;
	return asked[name] & 2 ? USAGE_DATALOADER : USAGE_OTHER;
}

static void dlprof_usage_add_host(const struct profile *p, struct intervals *host)
{
	uint8_t *asked = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		enum usage_kind kind = host_kind(p, asked, i);
		if (kind != USAGE_OTHER)
			intervals_add(&host[kind], p->span.start_ns[i], span_end(p, i));
	}
	for (uint32_t k = 0; k < p->ops->n_instances; k++)
		if (p->ops->instance[k].span != ROW_NONE)
			intervals_add(&host[USAGE_CPU], p->ops->instance[k].start_ns, p->ops->instance[k].end_ns);
	mem_free(asked);
}

const struct usage_rules dlprof_usage = {.listed_kernels = true, .visible_gpus = true, .add_host = dlprof_usage_add_host};
