/* Who launched what: API call -> op, device work -> API call -> op (B-08, D-04, E-03, E-04, E-17).
 *
 * An API call belongs to the op with its external id, if that is on the call's process; else to the innermost op around it
 * in time, which PASS_NEST has already put into span.op: launches through the driver API carry no external id.
 * Device work belongs to the call with its correlation id, and through it to an op; work whose call was not recorded, to
 * the op with its own external id; else it stays unattributed. */
#include "analysis/analysis.h"
#include "base/hash.h"

/* Ids of one kind, mapped to rows. */
struct ids {
	int64_t min, max;
	uint64_t n;
	struct idmap map;
};

static void ids_see(struct ids *ids, int64_t id)
{
	if (!ids->n++ || id < ids->min)
		ids->min = id;
	if (ids->n == 1 || id > ids->max)
		ids->max = id;
}

static bool owns_ext_id(const struct profile *p, uint32_t i)
{
	uint8_t kind = p->span.kind[i];
	return (kind == SPAN_OP || kind == SPAN_USER) && p->span.ext_id[i] != ID_NONE && p->span.ext_id[i] != 0;
}

static bool owns_correlation(const struct profile *p, uint32_t i)
{
	return p->span.kind[i] == SPAN_CALL && p->span.link_id[i] != ID_NONE;
}

static void index_ids(const struct profile *p, struct ids *ext, struct ids *corr, uint64_t *duplicates)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (owns_ext_id(p, i))
			ids_see(ext, p->span.ext_id[i]);
		else if (owns_correlation(p, i))
			ids_see(corr, p->span.link_id[i]);
	}
	idmap_init(&ext->map, ext->n ? ext->min : 1, ext->n ? ext->max : 0, ext->n);
	idmap_init(&corr->map, corr->n ? corr->min : 1, corr->n ? corr->max : 0, corr->n);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (owns_ext_id(p, i)) {
			if (idmap_get(&ext->map, p->span.ext_id[i]) == IDMAP_NONE)
				idmap_put(&ext->map, p->span.ext_id[i], i);
		} else if (owns_correlation(p, i)) {
			*duplicates += idmap_get(&corr->map, p->span.link_id[i]) != IDMAP_NONE;
			idmap_put(&corr->map, p->span.link_id[i], i);
		}
	}
}

static bool same_process(const struct profile *p, uint32_t a, uint32_t b)
{
	return p->track.pid_text[p->span.track[a]] == p->track.pid_text[p->span.track[b]];
}

static void calls_to_ops(struct profile *p, const struct ids *ext)
{
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (p->span.kind[i] != SPAN_CALL || p->span.ext_id[i] == ID_NONE || p->span.ext_id[i] == 0)
			continue;
		uint32_t op = idmap_get(&ext->map, p->span.ext_id[i]);
		if (op != IDMAP_NONE && same_process(p, op, i))
			p->span.op[i] = op;
	}
}

int pass_correlate(struct profile *p, struct err *e)
{
	(void)e;
	struct ids ext = {0}, corr = {0};
	uint64_t duplicates = 0, no_call = 0;
	index_ids(p, &ext, &corr, &duplicates);
	calls_to_ops(p, &ext);

	uint32_t *call = rows_derive(&p->gpu_op, &store_tables[TABLE_gpu_op], offsetof(struct gpu_ops, call));
	uint32_t *op = rows_derive(&p->gpu_op, &store_tables[TABLE_gpu_op], offsetof(struct gpu_ops, op));
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		if (p->gpu_op.corr_id[g] != ID_NONE)
			call[g] = idmap_get(&corr.map, p->gpu_op.corr_id[g]);
		if (call[g] != ROW_NONE)
			op[g] = p->span.op[call[g]];
		if (op[g] == ROW_NONE && p->gpu_op.ext_id[g] != ID_NONE && p->gpu_op.ext_id[g] != 0)
			op[g] = idmap_get(&ext.map, p->gpu_op.ext_id[g]);
		no_call += call[g] == ROW_NONE;
	}
	idmap_release(&ext.map);
	idmap_release(&corr.map);
	if (duplicates)
		diag_add_n(&p->diags, "duplicate-correlation", DIAG_NOTE, duplicates, -1,
		           "two API calls have the same correlation id: device work is given to the later one");
	if (no_call)
		diag_add_n(&p->diags, "no-launch-call", DIAG_NOTE, no_call, -1,
		           "device work without the API call that launched it (launched before the recording began?)");
	return 0;
}
