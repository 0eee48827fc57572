/* Profiles made by hand, for unit tests: a few events whose truth is known.
 *
 *   struct builder m;
 *   builder_begin(&m);
 *   uint32_t thread = builder_track(&m, "1", "1");
 *   builder_span(&m, thread, SPAN_OP, "aten::mm", 0, 100);
 *   builder_launch(&m, thread, 10, 20, 0, "gemm", 30, 90);
 *   struct profile *p = builder_finish(&m, PASS_NEST | PASS_CORRELATE);
 *   ...
 *   profile_free(p);
 *
 * Events may come in any order of time. Times are [start, end), in ns. What an event has beyond this (sequence numbers, arguments) is set in its row:
 * builder_span_row and builder_gpu_row make one, build_span and build_gpu (store/build.h) take one. */
#ifndef OPSCOPE_TESTS_UNIT_PROFILE_BUILDER_H
#define OPSCOPE_TESTS_UNIT_PROFILE_BUILDER_H

#include "test.h"

#include "analysis/analysis.h"
#include "store/build.h"

struct builder {
	struct profile *p;
	struct build b;
	int64_t correlation; /* of the last builder_launch; counts from 1 */
};

void builder_begin(struct builder *m);
/* Sorts, checks, and runs the passes. Returns m->p, which is the caller's. */
struct profile *builder_finish(struct builder *m, unsigned passes);

uint32_t builder_text(struct builder *m, const char *text);
/* The thread or stream with these texts. */
uint32_t builder_track(struct builder *m, const char *pid, const char *tid);
/* Stream 7 of a device; the launch of something there, with nothing else stated. */
uint32_t builder_stream(struct builder *m, int device);
uint32_t builder_launch_on(struct builder *m, int device);
/* Arguments, as `key, value, ..., NULL`: the values are JSON, or text. */
uint32_t builder_args(struct builder *m, const char *const *pairs);
uint32_t builder_text_args(struct builder *m, const char *const *pairs);

/* The category is the one that Kineto gives to such events. */
struct span_row builder_span_row(struct builder *m, uint32_t track, enum span_kind kind, const char *name, int64_t start, int64_t end);
struct gpu_row builder_gpu_row(struct builder *m, int device, enum gpu_kind kind, const char *name, int64_t start, int64_t end);
void builder_span(struct builder *m, uint32_t track, enum span_kind kind, const char *name, int64_t start, int64_t end);
void builder_gpu(struct builder *m, int device, enum gpu_kind kind, const char *name, int64_t start, int64_t end);

/* An op with its sequence number; of one that autograd runs, `forward_thread` > 0 is the thread of the forward op with the same number. */
void builder_op(struct builder *m, uint32_t track, const char *name, int64_t start, int64_t end, int64_t sequence, int32_t forward_thread);
/* An API call with a correlation id. */
void builder_call(struct builder *m, uint32_t track, const char *name, int64_t start, int64_t end, int64_t correlation);
/* cudaLaunchKernel, and the kernel that it launches. */
void builder_launch(struct builder *m, uint32_t track, int64_t call_start, int64_t call_end, int device, const char *kernel, int64_t start, int64_t end);

/* A device that the input describes. */
void builder_device(struct builder *m, int id, int64_t memory_bytes);

/* After builder_finish: the row of the only range, or the only device work, with this name. */
uint32_t builder_span_named(const struct profile *p, const char *name);
uint32_t builder_gpu_named(const struct profile *p, const char *name);

#endif
