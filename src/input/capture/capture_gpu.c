/* Devices: what they are, what ran on them, what was called for it. Rows are named and filed as Kineto does it. */
#include "input/capture/capture.h"

#include "base/demangle.h"
#include "base/search.h"
#include "input/cbid.h"
#include "input/cupti.h"

#include <stdio.h>

static int64_t capture_gpu_unless_zero(uint64_t v) { return v && v <= INT64_MAX ? (int64_t)v : ID_NONE; }

/* ---- devices ---- */

static bool has_uuid(const uint8_t *uuid)
{
	static const uint8_t none[16];
	return memcmp(uuid, none, sizeof none) != 0;
}

/* Two processes may call different GPUs 0, and one GPU by different numbers: the uuid decides. A number that is taken gives way. */
static int32_t capture_gpu_new_id(const struct capture *c, uint32_t wanted)
{
	int32_t id = wanted <= INT16_MAX ? (int32_t)wanted : 0;
	for (uint32_t i = 0; i < c->n_devices; i++)
		if (c->device[i].id == id) {
			id++;
			i = UINT32_MAX; /* from the first one again */
		}
	return id;
}

static void capture_gpu_describe(struct capture *c, uint32_t row, const struct wire_device *w)
{
	struct devices *d = &c->p->device;
	d->name[row] = w->head.id ? capture_string(c, w->head.id) : 0;
	d->memory_bytes[row] = w->memory_bytes <= INT64_MAX ? (int64_t)w->memory_bytes : 0;
	d->cc_major[row] = w->cc_major ? capture_small(w->cc_major) : -1;
	d->cc_minor[row] = w->cc_major ? capture_small(w->cc_minor) : -1;
	d->sm_count[row] = capture_small(w->sm_count) > 0 ? capture_small(w->sm_count) : 0;
	d->warp_size[row] = capture_small(w->threads_per_warp) > 0 ? capture_small(w->threads_per_warp) : 0;
	capture_device_fact(c, d->id[row], "memory_bandwidth_bytes_per_s", w->memory_bandwidth);
	capture_device_fact(c, d->id[row], "clock_khz", w->clock_khz);
	uint64_t threads = (uint64_t)w->max_warps_per_sm * w->threads_per_warp;
	d->max_threads_per_sm[row] = threads <= INT32_MAX ? (int32_t)threads : 0;
}

void capture_device(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_device *w = (const struct wire_device *)h;
	enum { DEVICES_MOST = 256 };
	struct capture_device new = {.pid = c->file->h.pid, .ordinal = w->device, .nvml_index = w->nvml_index, .row = ROW_NONE};
	memcpy(new.uuid, w->uuid, sizeof new.uuid);
	build_count(&c->b, capture_cat(c, "device"), 'M', 1);
	if (c->n_devices >= DEVICES_MOST) {
		diag_add(&c->p->diags, "many-devices", DIAG_LOSS, c->offset, "%s: more than %d devices", c->name, DEVICES_MOST);
		return;
	}
	for (uint32_t i = 0; i < c->n_devices && new.row == ROW_NONE; i++) {
		struct capture_device *d = &c->device[i];
		bool same = has_uuid(d->uuid) && has_uuid(w->uuid) ? !memcmp(d->uuid, w->uuid, sizeof d->uuid) :
		                                                     d->ordinal == w->device && d->nvml_index == w->nvml_index;
		if (!same)
			continue;
		new.row = d->row;
		new.id = d->id;
		if (d->pid == new.pid) { /* told again, by another library: each knows something of its own */
			d->ordinal = w->device != UINT32_MAX ? w->device : d->ordinal;
			d->nvml_index = w->nvml_index != UINT32_MAX ? w->nvml_index : d->nvml_index;
			if (!c->p->device.sm_count[d->row] && w->sm_count)
				capture_gpu_describe(c, d->row, w);
			return;
		}
	}
	if (new.row == ROW_NONE) {
		new.id = capture_gpu_new_id(c, w->device != UINT32_MAX ? w->device : w->nvml_index);
		new.row = rows_push(&c->p->device, &store_tables[TABLE_device]);
		c->p->device.id[new.row] = new.id;
		capture_gpu_describe(c, new.row, w);
	}
	MEM_PUSH(c->device, c->n_devices, c->cap_devices, new);
}

/* ---- work ---- */

struct capture_gpu_work {
	int64_t start_ns, end_ns;
	uint32_t correlation, device, context, stream, graph;
	uint64_t graph_node;
};

static struct launch_row capture_gpu_launch_of(struct capture *c, const struct capture_gpu_work *w)
{
	struct launch_row l = launch_none();
	l.pid = c->file->h.pid;
	l.device = capture_device_id(c, w->device);
	l.context = w->context;
	l.stream = w->stream == UINT32_MAX ? ID_NONE : w->stream;
	l.graph_id = capture_gpu_unless_zero(w->graph);
	l.graph_node_id = capture_gpu_unless_zero(w->graph_node);
	return l;
}

static void capture_gpu_add(struct capture *c, struct gpu_row *r, const struct launch_row *l, const struct capture_gpu_work *w, const char *cat)
{
	int64_t end;
	r->cat = capture_cat(c, cat);
	capture_count(c, r->cat);
	if (!w->start_ns || !w->end_ns) {
		diag_add(&c->p->diags, "device-work-without-time", DIAG_LOSS, c->offset, "%s: a kernel, copy or set of which CUPTI knew no times", c->name);
		return;
	}
	if (!capture_time(c, w->start_ns, &r->start_ns) || !capture_time(c, w->end_ns, &end))
		return;
	if (end < r->start_ns)
		diag_add(&c->p->diags, "negative-duration", DIAG_REPAIR, c->offset, "%s: device work ends %lld ns before it begins: taken as 0", c->name,
		         (long long)(r->start_ns - end));
	r->dur_ns = end > r->start_ns ? end - r->start_ns : 0;
	r->track = capture_stream_track(c, l->device == INT32_MIN ? -1 : l->device, l->stream == ID_NONE ? -1 : l->stream);
	r->launch = build_launch(&c->b, l);
	r->ext_id = ID_NONE;
	r->corr_id = w->correlation ? w->correlation : ID_NONE;
	build_gpu(&c->b, r);
}

/* The name of a kernel as people write it. */
static uint32_t symbol(struct capture *c, uint32_t id)
{
	uint32_t at = id ? idmap_get(&c->text_at, id) : IDMAP_NONE;
	if (at == IDMAP_NONE)
		return capture_string(c, id);
	struct capture_text *t = &c->text[at];
	if (t->symbol)
		return t->symbol - 1;
	buf_clear(&c->scratch);
	uint32_t name = c->room && demangle(t->s, &c->scratch) == DEMANGLE_DONE ? capture_made(c, buf_view(&c->scratch)) : capture_string(c, id);
	t->symbol = name + 1;
	return name;
}

/* What no column has. */
static uint32_t capture_gpu_kernel_args(struct capture *c, const struct wire_kernel *k)
{
	struct arg_pair pair[3];
	unsigned n = 0;
	char text[48];
	if ((uint64_t)k->cluster[0] * k->cluster[1] > 1 || k->cluster[2] > 1) {
		snprintf(text, sizeof text, "[%u, %u, %u]", k->cluster[0], k->cluster[1], k->cluster[2]);
		pair[n++] = (struct arg_pair){intern_str(&c->p->strings, STR("cluster")), intern_str(&c->p->strings, str_from(text)), 0};
	}
	if (k->local_per_thread) {
		snprintf(text, sizeof text, "%u", k->local_per_thread);
		pair[n++] = (struct arg_pair){intern_str(&c->p->strings, STR("local memory per thread")), intern_str(&c->p->strings, str_from(text)), 0};
	}
	if (k->head.flags & WIRE_LAUNCHED_BY_DEVICE)
		pair[n++] = (struct arg_pair){intern_str(&c->p->strings, STR("Launched by")), intern_str(&c->p->strings, STR("device")), 1};
	return build_args(&c->b, pair, n);
}

void capture_kernel(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_kernel *k = (const struct wire_kernel *)h;
	struct capture_gpu_work w = {k->start_ns, k->end_ns, k->correlation, k->device, k->context, k->stream, k->graph, k->graph_node};
	struct gpu_row r = {.kind = GPU_KERNEL, .name = symbol(c, h->id), .args = capture_gpu_kernel_args(c, k)};
	struct launch_row l = capture_gpu_launch_of(c, &w);
	const struct capture_device *d = capture_find_device(c, k->device);
	l.grid_x = capture_small(k->grid[0]), l.grid_y = capture_small(k->grid[1]), l.grid_z = capture_small(k->grid[2]);
	l.block_x = capture_small(k->block[0]), l.block_y = capture_small(k->block[1]), l.block_z = capture_small(k->block[2]);
	l.registers = capture_small(k->registers);
	uint64_t shared = (uint64_t)k->static_shared + k->dynamic_shared;
	l.shared_bytes = shared <= INT32_MAX ? (int32_t)shared : INT32_MIN;
	cupti_per_sm(&c->p->device, d ? d->row : ROW_NONE, &l);
	capture_gpu_add(c, &r, &l, &w, "kernel");
}

static uint32_t named(struct capture *c, struct buf *b)
{
	return intern_put(&c->p->strings, b->p, b->n);
}

static struct arg_pair number_arg(struct capture *c, const char *key, int64_t v)
{
	buf_clear(&c->scratch);
	buf_i64(&c->scratch, v);
	return (struct arg_pair){intern_str(&c->p->strings, str_from(key)), named(c, &c->scratch), 0};
}

void capture_copy(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_copy *k = (const struct wire_copy *)h;
	struct capture_gpu_work w = {k->start_ns, k->end_ns, k->correlation, k->device, k->context, k->stream, k->graph, k->graph_node};
	struct gpu_row r = {.kind = GPU_MEMCPY};
	struct launch_row l = capture_gpu_launch_of(c, &w);
	buf_clear(&c->scratch);
	buf_printf(&c->scratch, "Memcpy %s (%s -> %s)", cupti_copy_kind(h->flags), cupti_memory_kind(k->from), cupti_memory_kind(k->to));
	r.name = named(c, &c->scratch);
	l.bytes = k->bytes <= INT64_MAX ? (int64_t)k->bytes : ID_NONE;
	struct arg_pair pair[3];
	unsigned n = 0;
	if (k->peer) {
		pair[n++] = number_arg(c, arg_key_text[ARG_FROM_DEVICE], capture_device_id(c, k->from_device));
		pair[n++] = number_arg(c, arg_key_text[ARG_TO_DEVICE], capture_device_id(c, k->to_device));
	}
	if (!k->async) /* the host waited for it */
		pair[n++] = number_arg(c, "async", 0);
	r.args = build_args(&c->b, pair, n);
	capture_gpu_add(c, &r, &l, &w, "gpu_memcpy");
}

void capture_set(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_set *k = (const struct wire_set *)h;
	struct capture_gpu_work w = {k->start_ns, k->end_ns, k->correlation, k->device, k->context, k->stream, k->graph, k->graph_node};
	struct gpu_row r = {.kind = GPU_MEMSET};
	struct launch_row l = capture_gpu_launch_of(c, &w);
	buf_clear(&c->scratch);
	buf_printf(&c->scratch, "Memset (%s)", cupti_memory_kind(h->flags));
	r.name = named(c, &c->scratch);
	l.bytes = k->bytes <= INT64_MAX ? (int64_t)k->bytes : ID_NONE;
	capture_gpu_add(c, &r, &l, &w, "gpu_memset");
}

void capture_graph(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_graph *k = (const struct wire_graph *)h;
	struct capture_gpu_work w = {k->start_ns, k->end_ns, k->correlation, k->device, k->context, k->stream, h->id, 0};
	struct gpu_row r = {.kind = GPU_KERNEL};
	struct launch_row l = capture_gpu_launch_of(c, &w);
	buf_clear(&c->scratch);
	buf_printf(&c->scratch, "CUDA graph %u", h->id);
	r.name = named(c, &c->scratch);
	diag_add(&c->p->diags, "whole-graphs", DIAG_NOTE, -1, "CUDA graphs were recorded as a whole, without their kernels: record with --graph=node");
	capture_gpu_add(c, &r, &l, &w, "kernel");
}

/* The text of the innermost range that is open now, or that in which the node was made that is copied. */
void capture_graph_node(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_graph_node *g = (const struct wire_graph_node *)h;
	const struct capture_thread *t = &c->thread;
	uint64_t key[2] = {(uint32_t)c->file->h.pid, g->node}, original[2] = {key[0], g->original};
	uint32_t name = 0, from = g->original ? intern_find(&c->graph_nodes, (struct str){(const char *)original, sizeof original}) : INTERN_NONE;
	if (from != INTERN_NONE)
		name = c->node_range[from];
	for (uint32_t i = t->n_open; i-- > 0 && !name;)
		if (!t->open[i].closed && t->open[i].row.kind != SPAN_MARKER)
			name = t->open[i].row.name;
	uint32_t at = intern_put(&c->graph_nodes, (const char *)key, sizeof key);
	MEM_GROW(c->node_range, c->cap_nodes, at + 1);
	c->node_range[at] = name;
	struct span_row r = {.ext_id = (int64_t)g->node, .link_id = g->original ? (int64_t)g->original : ID_NONE, .aux_id = -1, .kind = SPAN_OTHER, .cat = capture_cat(c, "cuda_graph"),
	                     .name = intern_str(&c->p->strings, STR("graph node"))};
	build_count(&c->b, r.cat, 'i', 1);
	if (!g->node || !capture_time(c, g->time_ns, &r.start_ns))
		return;
	r.track = capture_track(c, t->tid, false);
	build_span(&c->b, &r);
}

/* ---- calls ---- */

static bool span_times(struct capture *c, int64_t start, int64_t end, struct span_row *r)
{
	int64_t to;
	capture_count(c, r->cat);
	if (!capture_time(c, start, &r->start_ns) || !capture_time(c, end, &to))
		return false;
	if (to < r->start_ns)
		diag_add(&c->p->diags, "negative-duration", DIAG_REPAIR, c->offset, "%s: a call ends %lld ns before it begins: taken as 0", c->name,
		         (long long)(r->start_ns - to));
	r->dur_ns = to > r->start_ns ? to - r->start_ns : 0;
	return true;
}

/* CUPTI's "cudaLaunchKernel_v7000" is cudaLaunchKernel to everybody else. */
static struct str without_version(struct str name)
{
	size_t n = name.n;
	while (n && name.p[n - 1] >= '0' && name.p[n - 1] <= '9')
		n--;
	return n < name.n && n > 2 && name.p[n - 1] == 'v' && name.p[n - 2] == '_' ? (struct str){name.p, n - 2} : name;
}

void capture_api(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_api_call *a = (const struct wire_api_call *)h;
	bool driver = h->flags == WIRE_API_DRIVER;
	struct span_row r = {.ext_id = ID_NONE, .aux_id = capture_small(h->id) < 0 ? -1 : capture_small(h->id), .kind = SPAN_CALL,
	                     .cat = capture_cat(c, driver ? "cuda_driver" : "cuda_runtime")};
	if (!span_times(c, a->start_ns, a->end_ns, &r))
		return;
	const char *known = driver ? cbid_driver(h->id) : cbid_runtime(h->id);
	if (known) {
		r.name = intern_str(&c->p->strings, str_from(known));
	} else if (capture_text(c, a->name).n) {
		r.name = intern_str(&c->p->strings, without_version(capture_text(c, a->name)));
	} else {
		buf_clear(&c->scratch);
		buf_printf(&c->scratch, "%s call %u", driver ? "driver" : "runtime", h->id);
		r.name = named(c, &c->scratch);
	}
	if (a->result) {
		buf_clear(&c->scratch);
		buf_printf(&c->scratch, "%u", a->result);
		struct arg_pair pair = {intern_str(&c->p->strings, STR("Return value")), named(c, &c->scratch), 0};
		r.args = build_args(&c->b, &pair, 1);
	}
	r.link_id = a->correlation ? a->correlation : ID_NONE;
	r.track = capture_track(c, a->thread, false);
	build_span(&c->b, &r);
}

void capture_context(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_context *k = (const struct wire_context *)h;
	build_count(&c->b, capture_cat(c, "context"), 'M', 1);
	if (k->device != IDMAP_NONE) {
		idmap_put(&c->context_device, h->id, k->device);
		if (k->null_stream != UINT32_MAX)
			capture_stream_add(c, &(struct capture_stream){.context = h->id, .device = k->device, .stream = k->null_stream, .is_default = true});
	}
}

void capture_sync(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_sync *s = (const struct wire_sync *)h;
	struct span_row r = {.ext_id = ID_NONE, .aux_id = -1, .kind = SPAN_SYNC, .cat = capture_cat(c, "cuda_sync")};
	if (!span_times(c, s->start_ns, s->end_ns, &r))
		return;
	uint32_t told = s->device == UINT32_MAX ? idmap_get(&c->context_device, s->context) : s->device;
	int32_t device = told == IDMAP_NONE ? INT32_MIN : capture_device_id(c, told);
	r.name = intern_str(&c->p->strings, str_from(cupti_sync_name(h->flags)));
	r.link_id = s->correlation ? s->correlation : ID_NONE;
	r.track = capture_stream_track(c, device == INT32_MIN ? -1 : device, s->stream == UINT32_MAX ? -1 : (int64_t)s->stream);
	uint32_t row = build_span(&c->b, &r);
	if (row == ROW_NONE || h->id == UINT32_MAX)
		return;
	MEM_PUSH(c->wait, c->n_waits, c->cap_waits, (struct capture_wait){row, s->context, h->id});
}

void capture_cuda_event(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_cuda_event *k = (const struct wire_cuda_event *)h;
	capture_count(c, capture_cat(c, "cuda_event"));
	MEM_PUSH(c->event, c->n_events, c->cap_events, (struct capture_event){k->context, h->id, k->stream, k->correlation, INT64_MAX});
}

void capture_overhead(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	enum { OBJECT_DEVICE = 3 }; /* CUpti_ActivityObjectKind */
	const struct wire_overhead *o = (const struct wire_overhead *)h;
	struct span_row r = {.ext_id = ID_NONE, .link_id = ID_NONE, .aux_id = -1, .kind = SPAN_OVERHEAD, .cat = capture_cat(c, "overhead")};
	if (!span_times(c, o->start_ns, o->end_ns, &r))
		return;
	r.name = capture_string(c, h->id);
	if (h->flags == OBJECT_DEVICE) {
		struct arg_pair pair = number_arg(c, "device", capture_device_id(c, o->object));
		r.args = build_args(&c->b, &pair, 1);
	}
	r.track = capture_track(c, o->thread ? o->thread : (uint32_t)c->file->h.pid, true); /* it need not nest with the thread's ranges */
	build_span(&c->b, &r);
}

/* ---- memory and samples ---- */

void capture_device_memory(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_device_memory *m = (const struct wire_device_memory *)h;
	int32_t device = capture_device_id(c, m->device);
	int64_t at;
	if (!capture_time(c, m->time_ns, &at))
		return;
	uint32_t track = capture_track(c, m->thread ? m->thread : c->thread.tid, false);
	uint16_t cat = capture_cat(c, "cuda_memory");
	build_count(&c->b, cat, 'i', 1);
	struct memory_row r = {at, (int64_t)m->address, m->bytes, ID_NONE, ID_NONE, track, intern_str(&c->p->strings, STR("[memory]")), cat, 1,
	                       device >= 0 && device <= INT16_MAX ? (int16_t)device : -1};
	if (!c->has_memory) { /* what a framework's allocator says of the same bytes goes first */
		uint32_t row = build_memory(&c->b, &r);
		if (row != ROW_NONE && m->correlation && !m->thread)
			MEM_PUSH(c->allocation, c->n_allocations, c->cap_allocations, (struct capture_allocation){row, m->correlation});
		return;
	}
	struct arg_pair pair[3];
	const int64_t value[] = {m->bytes, (int64_t)m->address, device};
	static const char *const key[] = {"Bytes", "Addr", "Device Id"};
	for (int i = 0; i < 3; i++) {
		buf_clear(&c->scratch);
		buf_i64(&c->scratch, value[i]);
		pair[i] = (struct arg_pair){intern_str(&c->p->strings, str_from(key[i])), named(c, &c->scratch), 0};
	}
	build_mark(&c->b, at, intern_str(&c->p->strings, m->bytes < 0 ? STR("CUDA free") : STR("CUDA allocation")), track, build_args(&c->b, pair, 3), cat, 'i');
}

static const struct capture_device *by_nvml(const struct capture *c, uint32_t index)
{
	return ELEMENT_WHERE(i, c->device, c->n_devices, c->device[i].pid == c->file->h.pid && c->device[i].nvml_index == index);
}

void capture_gpu_sample(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_gpu_sample *s = (const struct wire_gpu_sample *)h;
	const struct capture_device *d = by_nvml(c, s->nvml_index);
	static const char *const name[] = {"gpu_utilization_pct", "gpu_memory_utilization_pct", "gpu_sm_clock_mhz", "gpu_memory_clock_mhz", "gpu_power_mw",
	                                   "gpu_temperature_c", "gpu_memory_used_bytes", "gpu_throttle_reasons"};
	const uint64_t value[] = {s->gpu_pct, s->memory_pct, s->sm_mhz, s->memory_mhz, s->power_mw, s->temperature_c, s->memory_used_bytes, s->throttle};
	int64_t at;
	uint16_t cat = capture_cat(c, "gpu_sample");
	char label[48], device[16];
	if (!capture_time(c, s->time_ns, &at))
		return;
	snprintf(device, sizeof device, "%d", d ? d->id : capture_small(s->nvml_index));
	snprintf(label, sizeof label, "GPU %s", device);
	uint32_t track = build_track(&c->b, str_from(device), STR("samples"));
	c->p->track.process_labels[track] = intern_str(&c->p->strings, str_from(label));
	for (unsigned i = 0; i < sizeof name / sizeof name[0]; i++) {
		if (!(h->id >> i & 1))
			continue;
		buf_clear(&c->scratch);
		buf_printf(&c->scratch, "%llu", (unsigned long long)value[i]);
		struct arg_pair pair[2] = {{intern_str(&c->p->strings, str_from(arg_key_text[ARG_COUNTER_VALUE])), named(c, &c->scratch), 0},
		                           {intern_str(&c->p->strings, str_from(arg_key_text[ARG_COUNTER_DEVICE])), intern_str(&c->p->strings, str_from(device)), 0}};
		build_count(&c->b, cat, 'C', 1);
		build_mark(&c->b, at, intern_str(&c->p->strings, str_from(name[i])), track, build_args(&c->b, pair, 2), cat, 'C');
	}
}
