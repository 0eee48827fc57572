/* Who launched what: API call -> op, device work -> API call -> op.
 *
 * An API call belongs to the op of its process with its external id; else to the innermost op around it in time, which
 * PASS_NEST has already put into span.op: launches through the driver API carry no external id. Where all calls of a trace have their
 * correlation id as external id (many traces of 2022 to 2025 have that), it is no op's: the ids of ops are numbered otherwise, and only time tells which op made the call.
 * Device work belongs to the call with its correlation id, and through it to an op. Several processes in one trace count
 * their ids alike: where the input states the process of device work (launch.pid), only calls of that one count; then, among calls with the same correlation id, the one with the device work's external id is taken; if none
 * has it, and all are of one process, the last that began before the work did. Work whose call was not recorded goes to the
 * op with its own external id; what is left is unattributed. */
#include "analysis/analysis.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"

/* Ids of one kind, mapped to the rows that own them. Ids are nearly always unique: only where they are not, the rows are
 * also kept as a list, sorted by (id, row). */
struct ids {
	int64_t min, max;
	uint32_t n;
	struct idmap first;      /* id -> first row that owns it */
	struct sort_item *all;   /* NULL when no id has two owners */
	uint64_t repeated;       /* owners beyond the first */
};

typedef bool owner_fn(const struct profile *p, uint32_t span, int64_t *id);

static bool owns_ext_id(const struct profile *p, uint32_t i, int64_t *id)
{
	*id = span_ext_id(&p->span, i);
	return (p->span.kind[i] == SPAN_OP || p->span.kind[i] == SPAN_USER) && *id != ID_NONE && *id != 0;
}

static bool owns_correlation(const struct profile *p, uint32_t i, int64_t *id)
{
	*id = p->span.link_id[i];
	return p->span.kind[i] == SPAN_CALL && *id != ID_NONE;
}

static void ids_list(struct ids *ids, const struct profile *p, owner_fn *owns)
{
	int64_t id;
	uint32_t n = 0;
	ids->all = NEW_ARRAY_RAW(ids->n, struct sort_item);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (owns(p, i, &id))
			ids->all[n++] = (struct sort_item){sort_key_i64(id), i, 0};
	sort_items(ids->all, n);
}

static void ids_init(struct ids *ids, const struct profile *p, owner_fn *owns)
{
	int64_t id;
	*ids = (struct ids){.min = INT64_MAX, .max = INT64_MIN};
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!owns(p, i, &id))
			continue;
		ids->n++;
		ids->min = id < ids->min ? id : ids->min;
		ids->max = id > ids->max ? id : ids->max;
	}
	idmap_init(&ids->first, ids->min, ids->max, ids->n);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!owns(p, i, &id))
			continue;
		if (idmap_get(&ids->first, id) == IDMAP_NONE)
			idmap_put(&ids->first, id, i);
		else
			ids->repeated++;
	}
	if (ids->repeated)
		ids_list(ids, p, owns);
}

static void ids_release(struct ids *ids)
{
	idmap_release(&ids->first);
	mem_free(ids->all);
}

/* Hostile input may give one id to all: no list is searched further than this. */
enum { OWNERS_MAX = 64 };

/* The owners of `id`: how many (one more than OWNERS_MAX stands for any more), and in *owner the list when there are several, or *one. */
static uint32_t ids_find(const struct ids *ids, int64_t id, uint32_t *one, const struct sort_item **owner)
{
	*one = idmap_get(&ids->first, id);
	if (*one == IDMAP_NONE)
		return 0;
	if (!ids->all)
		return 1;
	uint64_t key = sort_key_i64(id);
	uint32_t low = FIRST_WHERE(i, 0, ids->n, ids->all[i].key >= key);
	*owner = ids->all + low;
	uint32_t n = 1;
	while (n <= OWNERS_MAX && low + n < ids->n && ids->all[low + n].key == key)
		n++;
	return n;
}

static uint32_t correlate_process_of(const struct profile *p, uint32_t span)
{
	return p->track.pid_text[p->span.track[span]];
}

/* Whether the external ids of calls are their correlation ids under another name. */
static bool ext_is_correlation(const struct profile *p)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		int64_t id = span_ext_id(&p->span, i);
		if (p->span.kind[i] != SPAN_CALL || id == ID_NONE || id == 0)
			continue;
		if (id != p->span.link_id[i])
			return false;
		n++;
	}
	return n > 1;
}

/* The op or annotation with this external id on the call's process. */
static uint32_t op_of_call(const struct profile *p, const struct ids *ext, uint32_t call)
{
	uint32_t one;
	const struct sort_item *owner = NULL;
	uint32_t n = ids_find(ext, span_ext_id(&p->span, call), &one, &owner);
	for (uint32_t k = 0; k < n && k < OWNERS_MAX; k++) {
		uint32_t span = owner ? owner[k].row : one;
		if (correlate_process_of(p, span) == correlate_process_of(p, call))
			return span;
	}
	return ROW_NONE;
}

/* Whether `call` can have launched work of the process `pid`. */
static bool of_process(const struct profile *p, uint32_t call, int64_t pid)
{
	int64_t own = p->track.pid[p->span.track[call]];
	return pid == ID_NONE || own == ID_NONE || own == pid;
}

/* The call that launched device work `g`; ROW_NONE when none is recorded, or *ambiguous when several would do. */
static uint32_t call_of_gpu(const struct profile *p, const struct ids *corr, uint32_t g, bool *ambiguous)
{
	uint32_t one, best = ROW_NONE, latest = ROW_NONE;
	const struct sort_item *owner = NULL;
	uint32_t n = ids_find(corr, p->gpu_op.corr_id[g], &one, &owner);
	if (n == 0)
		return ROW_NONE;
	uint32_t launch = p->gpu_op.launch[g];
	int64_t pid = launch == ROW_NONE ? ID_NONE : p->launch.pid[launch];
	if (n == 1)
		return of_process(p, one, pid) ? one : ROW_NONE;
	int64_t ext = gpu_ext_id(&p->gpu_op, g), start = p->gpu_op.start_ns[g];
	bool one_process = true;
	uint32_t first = ROW_NONE;
	for (uint32_t k = 0; k < n && k < OWNERS_MAX; k++) {
		uint32_t call = owner[k].row;
		if (!of_process(p, call, pid))
			continue;
		first = first == ROW_NONE ? call : first;
		one_process &= correlate_process_of(p, call) == correlate_process_of(p, first);
		if (p->span.start_ns[call] > start)
			continue;
		if (latest == ROW_NONE || p->span.start_ns[call] >= p->span.start_ns[latest])
			latest = call;
		if (ext != ID_NONE && ext != 0 && span_ext_id(&p->span, call) == ext &&
		    (best == ROW_NONE || p->span.start_ns[call] >= p->span.start_ns[best]))
			best = call;
	}
	if (best != ROW_NONE)
		return best;
	*ambiguous = first != ROW_NONE && (!one_process || latest == ROW_NONE || n > OWNERS_MAX);
	return *ambiguous ? ROW_NONE : latest;
}

static void correlate_note(struct profile *p, uint64_t repeated, uint64_t ambiguous, uint64_t no_call)
{
	if (repeated)
		diag_add_n(&p->diags, "duplicate-correlation", DIAG_NOTE, repeated, -1,
		           "an API call has the correlation id of another: device work is told apart by process, external id and time");
	if (ambiguous)
		diag_add_n(&p->diags, "ambiguous-correlation", DIAG_REPAIR, ambiguous, -1,
		           "device work fits several API calls: it is left unattributed");
	if (no_call)
		diag_add_n(&p->diags, "no-launch-call", DIAG_NOTE, no_call, -1,
		           "device work without the API call that launched it (launched before the recording began?)");
}

static bool has_ext_id(const struct profile *p, uint32_t i)
{
	return p->span.kind[i] == SPAN_CALL && span_ext_id(&p->span, i) != ID_NONE && span_ext_id(&p->span, i) != 0;
}

uint32_t *correlate_by_ext_id(const struct profile *p)
{
	struct ids ext;
	uint32_t *owner = NEW_ARRAY_RAW(p->span.rows.n, uint32_t);
	ids_init(&ext, p, owns_ext_id);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		owner[i] = has_ext_id(p, i) ? op_of_call(p, &ext, i) : ROW_NONE;
	ids_release(&ext);
	return owner;
}

int pass_correlate(struct profile *p, struct err *e)
{
	struct ids ext, corr;
	bool by_time = ext_is_correlation(p);
	ids_init(&ext, p, owns_ext_id);
	ids_init(&corr, p, owns_correlation);
	for (uint32_t i = 0; i < p->span.rows.n && !by_time; i++) {
		uint32_t owner = has_ext_id(p, i) ? op_of_call(p, &ext, i) : ROW_NONE;
		if (owner != ROW_NONE)
			p->span.op[i] = owner;
	}

	uint32_t *call = rows_derive(&p->gpu_op, &store_tables[TABLE_gpu_op], offsetof(struct gpu_ops, call));
	uint32_t *op = rows_derive(&p->gpu_op, &store_tables[TABLE_gpu_op], offsetof(struct gpu_ops, op));
	uint64_t no_call = 0, ambiguous = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		bool unclear = false;
		if (p->gpu_op.corr_id[g] != ID_NONE)
			call[g] = call_of_gpu(p, &corr, g, &unclear);
		ambiguous += unclear;
		no_call += call[g] == ROW_NONE && !unclear;
		const bool replayed = gpu_is_replayed(&p->gpu_op, g);
		if (call[g] != ROW_NONE && !replayed)
			op[g] = p->span.op[call[g]];
		/* By its own external id only where that names one op in the whole trace. */
		if (op[g] == ROW_NONE && !unclear && (!by_time || replayed) && gpu_ext_id(&p->gpu_op, g) != ID_NONE && gpu_ext_id(&p->gpu_op, g) != 0) {
			uint32_t one;
			const struct sort_item *owner;
			if (ids_find(&ext, gpu_ext_id(&p->gpu_op, g), &one, &owner) == 1)
				op[g] = one;
		}
	}
	correlate_note(p, corr.repeated, ambiguous, no_call);
	ids_release(&ext);
	ids_release(&corr);
	return 0;
}
