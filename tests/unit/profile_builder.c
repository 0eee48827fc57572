#include "profile_builder.h"

static const char *const category[SPAN_KINDS] = {
	[SPAN_OP] = "cpu_op", [SPAN_USER] = "user_annotation", [SPAN_PYTHON] = "python_function", [SPAN_CALL] = "cuda_runtime",
	[SPAN_SYNC] = "cuda_sync", [SPAN_OVERHEAD] = "overhead", [SPAN_GPU_USER] = "gpu_user_annotation", [SPAN_TRACE] = "Trace",
	[SPAN_MARKER] = "nvtx", [SPAN_OS] = "osrt", [SPAN_RANGE] = "nvtx", [SPAN_OTHER] = "other",
};
static const char *const gpu_category[GPU_KINDS] = {[GPU_KERNEL] = "kernel", [GPU_MEMCPY] = "gpu_memcpy", [GPU_MEMSET] = "gpu_memset"};

void builder_begin(struct builder *m)
{
	*m = (struct builder){.p = profile_new()};
	build_init(&m->b, m->p);
}

struct profile *builder_finish(struct builder *m, unsigned passes)
{
	struct err e = {0};
	assert_int_equal(build_finish(&m->b, &e), 0);
	assert_int_equal(analysis_run(m->p, passes, &e), 0);
	return m->p;
}

uint32_t builder_text(struct builder *m, const char *text)
{
	return intern_str(&m->p->strings, str_from(text));
}

uint32_t builder_track(struct builder *m, const char *pid, const char *tid)
{
	return build_track(&m->b, str_from(pid), str_from(tid));
}

uint32_t builder_stream(struct builder *m, int device)
{
	char number[16];
	snprintf(number, sizeof number, "%d", device);
	return builder_track(m, number, "7");
}

uint32_t builder_launch_on(struct builder *m, int device)
{
	struct launch_row l = launch_none();
	l.device = device;
	return build_launch(&m->b, &l);
}

static uint32_t add_args(struct builder *m, const char *const *pairs, bool is_string)
{
	struct arg_pair pair[16];
	unsigned n = 0;
	for (; pairs[2 * n]; n++) {
		assert_true(n < sizeof pair / sizeof pair[0]);
		pair[n] = (struct arg_pair){builder_text(m, pairs[2 * n]), builder_text(m, pairs[2 * n + 1]), is_string};
	}
	return build_args(&m->b, pair, n);
}

uint32_t builder_args(struct builder *m, const char *const *pairs)
{
	return add_args(m, pairs, false);
}

uint32_t builder_text_args(struct builder *m, const char *const *pairs)
{
	return add_args(m, pairs, true);
}

struct span_row builder_span_row(struct builder *m, uint32_t track, enum span_kind kind, const char *name, int64_t start, int64_t end)
{
	return (struct span_row){.start_ns = start, .dur_ns = end - start, .ext_id = ID_NONE, .link_id = ID_NONE, .aux_id = -1,
	                         .name = builder_text(m, name), .track = track, .cat = build_cat(&m->b, builder_text(m, category[kind])), .kind = kind};
}

struct gpu_row builder_gpu_row(struct builder *m, int device, enum gpu_kind kind, const char *name, int64_t start, int64_t end)
{
	return (struct gpu_row){.start_ns = start, .dur_ns = end - start, .ext_id = ID_NONE, .corr_id = ID_NONE, .name = builder_text(m, name),
	                        .track = builder_stream(m, device), .launch = builder_launch_on(m, device),
	                        .cat = build_cat(&m->b, builder_text(m, gpu_category[kind])), .kind = kind};
}

void builder_span(struct builder *m, uint32_t track, enum span_kind kind, const char *name, int64_t start, int64_t end)
{
	struct span_row r = builder_span_row(m, track, kind, name, start, end);
	build_span(&m->b, &r);
}

void builder_gpu(struct builder *m, int device, enum gpu_kind kind, const char *name, int64_t start, int64_t end)
{
	struct gpu_row r = builder_gpu_row(m, device, kind, name, start, end);
	build_gpu(&m->b, &r);
}

void builder_op(struct builder *m, uint32_t track, const char *name, int64_t start, int64_t end, int64_t sequence, int32_t forward_thread)
{
	struct span_row r = builder_span_row(m, track, SPAN_OP, name, start, end);
	r.link_id = sequence;
	r.aux_id = forward_thread;
	build_span(&m->b, &r);
}

void builder_call(struct builder *m, uint32_t track, const char *name, int64_t start, int64_t end, int64_t correlation)
{
	struct span_row r = builder_span_row(m, track, SPAN_CALL, name, start, end);
	r.link_id = correlation;
	build_span(&m->b, &r);
}

void builder_launch(struct builder *m, uint32_t track, int64_t call_start, int64_t call_end, int device, const char *kernel, int64_t start, int64_t end)
{
	struct gpu_row r = builder_gpu_row(m, device, GPU_KERNEL, kernel, start, end);
	r.corr_id = ++m->correlation;
	builder_call(m, track, "cudaLaunchKernel", call_start, call_end, r.corr_id);
	build_gpu(&m->b, &r);
}

void builder_device(struct builder *m, int id, int64_t memory_bytes)
{
	struct devices *d = &m->p->device;
	uint32_t row = rows_push(d, &store_tables[TABLE_device]);
	d->id[row] = id;
	d->name[row] = builder_text(m, "GPU");
	d->memory_bytes[row] = memory_bytes;
	d->sm_count[row] = d->max_threads_per_sm[row] = d->warp_size[row] = 0;
	d->cc_major[row] = d->cc_minor[row] = -1;
}

static uint32_t only_row(const struct profile *p, const uint32_t *names, uint32_t n, const char *name)
{
	uint32_t found = ROW_NONE;
	for (uint32_t i = 0; i < n; i++) {
		if (!str_eqc(profile_str(p, names[i]), name))
			continue;
		if (found != ROW_NONE)
			fail_msg("several rows are named %s", name);
		found = i;
	}
	if (found == ROW_NONE)
		fail_msg("no row is named %s", name);
	return found;
}

uint32_t builder_span_named(const struct profile *p, const char *name)
{
	return only_row(p, p->span.name, p->span.rows.n, name);
}

uint32_t builder_gpu_named(const struct profile *p, const char *name)
{
	return only_row(p, p->gpu_op.name, p->gpu_op.rows.n, name);
}
