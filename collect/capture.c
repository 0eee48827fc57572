/* Captures that a program makes of itself: opscope/capture.h. */
#include "opscope/capture.h"

#include "cupti.h"
#include "start.h"

enum { SIZE_LEAST = 2 << 20 };

__attribute__((visibility("default"))) opscope_capture_start_fn opscope_capture_start;
int opscope_capture_start(const struct opscope_capture_options *given)
{
	struct opscope_capture_options o = {0};
	if (!given || given->bytes < offsetof(struct opscope_capture_options, max_bytes))
		return -EINVAL;
	memcpy(&o, given, given->bytes < sizeof o ? given->bytes : sizeof o);
	if (!o.dir || !*o.dir || o.max_bytes < 0 || (o.max_bytes && o.max_bytes < SIZE_LEAST) || (o.ring && !o.max_bytes))
		return -EINVAL;
	const struct segment_options s = {.dir = o.dir, .max_bytes = o.max_bytes, .full = o.ring ? WIRE_FULL_RING : WIRE_FULL_STOP};
	return start_own(&s, cupti_begin);
}

__attribute__((visibility("default"))) opscope_capture_stop_fn opscope_capture_stop;
int opscope_capture_stop(void) { return end_own(cupti_end); }
