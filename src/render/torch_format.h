/* Numbers as torch.autograd.profiler writes them (torch/autograd/profiler_util.py): its rules, in the doubles that Python has. */
#ifndef OPSCOPE_RENDER_TORCH_FORMAT_H
#define OPSCOPE_RENDER_TORCH_FORMAT_H

#include "base/buf.h"

/* "1.234s" from 1e6 us on, "1.234ms" from 1e3 us on, else (and for all negative times) "1.234us"; `unit` "s", "ms" or "us" forces one. */
void torch_text_time(struct buf *out, double us, const char *unit);

/* "12.34%". */
void torch_text_share(struct buf *out, double percent);

/* "1.50 KB", "-3 B", by powers of 1024 of the size without its sign; `units`: those of bytes, kilobytes, megabytes, gigabytes. */
extern const char *const torch_memory_units[4], *const torch_memory_units_old[4]; /* "B" ..., "b" ... */
void torch_text_memory(struct buf *out, int64_t bytes, const char *const units[4]);

/* The unit that fits the smallest of some positive numbers of FLOPs: "KFLOPs", and by what to multiply. */
struct torch_flops_unit {
	const char *name;
	double scale;
};
struct torch_flops_unit torch_flops_unit_of(int64_t smallest);

/* In that unit with 3 decimals, at least 8 characters; "--" when it is not positive. */
void torch_text_flops(struct buf *out, int64_t flops, double scale);

#endif
