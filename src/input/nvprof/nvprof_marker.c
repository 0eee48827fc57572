/* CUPTI_ACTIVITY_KIND_MARKER: one row for the start of a range and one for its end, joined by `id`. A range's span is made when
 * its start is met, so that ranges of equal times keep their order, and gets its duration from the end. */
#include "input/nvprof/nvprof.h"

enum { FLAGS, TIME, ID, OBJECT_KIND, OBJECT_ID, NAME, DOMAIN };
const char *const nvprof_marker_columns[] = {"flags", "timestamp", "id", "objectKind", "objectId", "name", "domain", NULL};

enum { FLAG_INSTANT = 1, FLAG_START = 2, FLAG_END = 4 };

/* The domain's name is a string, too; the first one, "-- null --", stands for none. */
static struct str nvprof_marker_domain_of(struct nvprof *n, const struct sqlscan *s)
{
	int64_t id = nvprof_int(n, s, DOMAIN, 0);
	return id > 0 ? nvprof_text(n, id) : STR("");
}

static uint16_t cat_of(struct nvprof *n, struct str domain)
{
	return domain.n ? build_cat(&n->b, intern_str(&n->p->strings, domain)) : n->cat;
}

/* The durations of a hostile file may be more than a profile holds in all: then they stay 0. */
static void set_end(struct nvprof *n, uint32_t span, int64_t at_ns)
{
	int64_t dur = at_ns - n->p->span.start_ns[span];
	if (dur < 0) {
		NVPROF_DIAG(n, "negative-duration", DIAG_REPAIR, ": a range ends %lld ns before it begins: taken as 0", -(long long)dur);
		return;
	}
	build_span_dur(&n->b, span, dur);
}

static void nvprof_marker_start_range(struct nvprof *n, const struct sqlscan *s, int64_t id, int64_t at_ns)
{
	struct str domain = nvprof_marker_domain_of(n, s);
	struct nvprof_object o = nvprof_object(n, s, OBJECT_KIND, OBJECT_ID);
	struct marker m = marker_read(n->markers, nvprof_text(n, nvprof_int(n, s, NAME, 0)), domain, n->row);
	uint32_t span = build_span(&n->b, &(struct span_row){
		.start_ns = at_ns, .ext_id = id, .link_id = m.link_id, .aux_id = -1, .op_id = m.op_id, .input_ops = m.input_ops, .name = m.name, .args = m.args, .kind = m.kind,
		.track = nvprof_object_track(n, &o), .cat = cat_of(n, domain),
	});
	if (span == ROW_NONE)
		return;
	n->any_ranges = true;
	uint32_t other = idmap_get(&n->open, id);
	if (other != IDMAP_NONE && other != NVPROF_CLOSED)
		NVPROF_DIAG(n, "repeated-range-id", DIAG_REPAIR,
		            ": a range begins under the id %lld of one that has not ended: that one ends where it begins", (long long)id);
	else
		n->n_open++;
	idmap_put(&n->open, id, span);
}

static void nvprof_marker_close_range(struct nvprof *n, int64_t id, uint32_t span, int64_t at_ns)
{
	set_end(n, span, at_ns);
	idmap_put(&n->open, id, NVPROF_CLOSED);
	n->n_open--;
}

static void end_range(struct nvprof *n, int64_t id, int64_t at_ns)
{
	uint32_t span = idmap_get(&n->open, id);
	if (span == IDMAP_NONE || span == NVPROF_CLOSED) {
		MEM_PUSH(n->early, n->n_early, n->cap_early, (struct nvprof_end){id, at_ns});
		return;
	}
	nvprof_marker_close_range(n, id, span, at_ns);
}

void nvprof_marker_row(struct nvprof *n, const struct sqlscan *s)
{
	int64_t flags = nvprof_int(n, s, FLAGS, 0), at, id = nvprof_int(n, s, ID, 0);
	bool start = flags & FLAG_START, end = flags & FLAG_END;
	uint16_t cat = cat_of(n, nvprof_marker_domain_of(n, s));
	build_count(&n->b, cat, start ? 'B' : end ? 'E' : 'i', 1);
	if (!sqlscan_i64(s, TIME, &at)) {
		NVPROF_DIAG(n, "no-time", DIAG_LOSS, ": its time was not recorded: it is left out");
	} else if (!nvprof_time_ok(n, at)) {
		return; /* it said why */
	} else if (start) {
		nvprof_marker_start_range(n, s, id, at);
	} else if (end) {
		end_range(n, id, at);
	} else {
		struct nvprof_object o = nvprof_object(n, s, OBJECT_KIND, OBJECT_ID);
		build_mark(&n->b, at, nvprof_intern(n, nvprof_int(n, s, NAME, 0)), nvprof_object_track(n, &o), 0, cat, 'i');
		if (!(flags & FLAG_INSTANT))
			NVPROF_DIAG(n, "unknown-marker", DIAG_NOTE, ": flags %lld are neither start, end nor instant: taken as an instant", (long long)flags);
	}
}

/* Ranges that never ended are those that stand in `open` with their span. The map cannot be walked: the ids can. */
static void close_open(struct nvprof *n)
{
	static const char *const columns[] = {"flags", "id", NULL};
	struct sqlscan s;
	uint64_t closed = 0;
	if (!n->n_open || sqlscan_open(&s, &n->db, "CUPTI_ACTIVITY_KIND_MARKER", columns, NULL) < 0)
		return;
	while (sqlscan_next(&s)) {
		int64_t flags, id;
		if (!sqlscan_i64(&s, 0, &flags) || !(flags & FLAG_START) || !sqlscan_i64(&s, 1, &id))
			continue;
		uint32_t span = idmap_get(&n->open, id);
		if (span == IDMAP_NONE || span == NVPROF_CLOSED)
			continue;
		nvprof_marker_close_range(n, id, span, n->last_ns);
		closed++;
	}
	sqlscan_close(&s);
	if (closed)
		diag_add_n(&n->p->diags, "range-without-end", DIAG_REPAIR, closed, -1,
		           "a range was still open when the capture ended: it ends with the capture");
}

void nvprof_markers_finish(struct nvprof *n)
{
	uint64_t lost = 0;
	for (uint32_t i = 0; i < n->n_early; i++) {
		uint32_t span = idmap_get(&n->open, n->early[i].id);
		if (span == IDMAP_NONE || span == NVPROF_CLOSED) {
			lost++;
			continue;
		}
		nvprof_marker_close_range(n, n->early[i].id, span, n->early[i].at_ns);
	}
	if (lost)
		diag_add_n(&n->p->diags, "range-without-start", DIAG_LOSS, lost, -1,
		           "the end of a range whose start was not recorded: what it was called is not known, it is left out");
	close_open(n);
}
