#include "report/parts/copy_rates.h"

#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "query/window.h"

/* How inputs spell the direction of a copy: the first of these of which the name of a copy holds a text. */
static const struct {
	const char *name, *text[3];
} copy_directions[] = {
	{"HtoD", {"HtoD", "Host-to-Device", "HostToDevice"}},   {"DtoH", {"DtoH", "Device-to-Host", "DeviceToHost"}},
	{"DtoD", {"DtoD", "Device-to-Device", "DeviceToDevice"}}, {"HtoH", {"HtoH", "Host-to-Host", "HostToHost"}},
	{"PtoP", {"PtoP", "Peer-to-Peer", "PeerToPeer"}},
	{"HtoA", {"HtoA"}}, {"AtoH", {"AtoH"}}, {"DtoA", {"DtoA"}}, {"AtoD", {"AtoD"}}, {"AtoA", {"AtoA"}},
};

static const char copy_no_direction[] = "";

const char *copy_direction(struct str name)
{
	for (size_t i = 0; i < sizeof copy_directions / sizeof *copy_directions; i++)
		for (size_t k = 0; k < 3 && copy_directions[i].text[k]; k++)
			if (str_has(name, str_from(copy_directions[i].text[k])))
				return copy_directions[i].name;
	return copy_no_direction;
}

enum { RATES_TIME, RATES_DEVICE, RATES_KIND, RATES_DIRECTION, RATES_RUNNING, RATES_GBS };

const struct section copy_rates_section = {.by = BY(MEMCPY_BY_CHANGE), COLUMNS(
	[RATES_TIME] = {COLUMN(TIME, "time_ns", "Time", "when one began or ended")},
	[RATES_DEVICE] = {COLUMN(NUMBER, "device", "Device", "ordinal of the device", .flags = COLUMN_GROUP)},
	[RATES_KIND] = {COLUMN(TEXT, "operation", "Operation", "memcpy or memset", .flags = COLUMN_GROUP)},
	[RATES_DIRECTION] = {COLUMN(TEXT, "direction", "Direction", "H = host, D = device, P = another device, A = array; empty = not told", .flags = COLUMN_GROUP)},
	[RATES_RUNNING] = {COLUMN(COUNT, "running", "Running", "of this operation and direction, how many run from then on")},
	[RATES_GBS] = {COLUMN(REAL, "gb_per_s", "GB/s", "sum of bytes / time of each of these, in 10^9 bytes", .digits = 2, .flags = COLUMN_ANSWER)},
)};

struct copy_rates_key {
	int32_t device;
	uint32_t kind;
	const char *direction; /* copy_direction, the same address for the same direction */
};

struct copy_rates_now {
	double gbs;
	uint32_t running;
};

/* Rows are put by time; of equal times ends come first. Bit 0 of `tie` is set at a begin; the rest is the group. */
static void copy_rates_put(const struct profile *p, const struct intern *keys, const struct sort_item *v, uint32_t n, uint32_t shown, struct table *t)
{
	struct copy_rates_now *now = NEW_ARRAY(keys->n, struct copy_rates_now);
	for (uint32_t i = 0; i < n && i < shown; i++) {
		struct copy_rates_now *x = &now[v[i].tie >> 1];
		uint32_t g = v[i].row;
		double gbs = (double)p->launch.bytes[p->gpu_op.launch[g]] / (double)p->gpu_op.dur_ns[g];
		bool begins = v[i].tie & 1;
		struct copy_rates_key k;
		memcpy(&k, keys->entry[v[i].tie >> 1].p, sizeof k);
		x->running += begins ? 1 : -1;
		x->gbs = x->running ? x->gbs + (begins ? gbs : -gbs) : 0; /* sums of doubles leave a rest */
		table_row(t);
		table_set_i64(t, RATES_TIME, begins ? p->gpu_op.start_ns[g] : gpu_end(p, g));
		if (k.device != INT32_MIN)
			table_set_i64(t, RATES_DEVICE, k.device);
		table_set_str(t, RATES_KIND, str_from(gpu_kind_name[k.kind]));
		table_set_str(t, RATES_DIRECTION, str_from(k.direction));
		table_set_i64(t, RATES_RUNNING, x->running);
		table_set_f64(t, RATES_GBS, x->gbs);
	}
	mem_free(now);
}

/* Ends stand at the front of v, begins at its back until all are there. */
int copy_rates(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	const struct gpu_ops *g = &p->gpu_op;
	struct window w;
	struct intern keys;
	uint32_t n = 0, untold = 0;
	if (window_of(p, args, &w, e) < 0)
		return -1;
	struct sort_item *v = NEW_ARRAY_RAW((size_t)g->rows.n * 2, struct sort_item);
	intern_init(&keys);
	for (uint32_t i = 0; i < g->rows.n; i++) {
		if (g->kind[i] == GPU_KERNEL || !window_has_gpu(&w, p, i))
			continue;
		if (p->launch.bytes[g->launch[i]] < 0 || g->dur_ns[i] <= 0) {
			untold++;
			continue;
		}
		struct copy_rates_key k = {p->launch.device[g->launch[i]], g->kind[i], copy_direction(profile_str(p, g->name[i]))};
		uint32_t at = intern_put(&keys, (const char *)&k, sizeof k) << 1;
		v[n++] = (struct sort_item){sort_key_i64(gpu_end(p, i)), i, at};
		v[(size_t)g->rows.n * 2 - n] = (struct sort_item){sort_key_i64(g->start_ns[i]), i, at | 1};
	}
	memmove(v + n, v + (size_t)g->rows.n * 2 - n, n * sizeof *v); /* begins behind ends: the sort keeps that order of equal times */
	n *= 2;
	sort_items(v, n);
	uint32_t shown = args->row_limit && args->row_limit < n ? (uint32_t)args->row_limit : n;
	int rc = 0;
	if (!n) {
		rc = err_set(e, ERR_DATA, "no copy or set of memory%s states its bytes", w.all ? "" : " of the steps asked for");
	} else {
		section_start(&copy_rates_section, args, 0, t);
		copy_rates_put(p, &keys, v, n, shown, t);
		t->hidden_rows = n - shown;
		if (untold)
			table_note(t, "copies and sets that state no bytes, or took no time, are left out: %u", untold);
	}
	intern_release(&keys);
	mem_free(v);
	return rc;
}
