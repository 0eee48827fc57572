/* When torch.compile's compiler ran, and for which frame. */
#ifndef OPSCOPE_DETECT_PARTS_COMPILER_RUNS_H
#define OPSCOPE_DETECT_PARTS_COMPILER_RUNS_H

#include "detect/parts/inside.h"

/* One mark a span: in the compiler or not. The caller frees it. Needs PASS_NEST. */
uint8_t *compiler_runs_new(const struct profile *p);
/* Whether a run of the compiler begins with this range: the outermost one of it, and not so short that the compiler left the frame alone. */
bool compiler_run_starts(const struct profile *p, const uint8_t *mark, uint32_t span);
/* Appends "frame 0", the frame that runs as compiled when this run is done; a constant where the input does not number frames. */
void compiler_run_put_frame(const struct profile *p, uint32_t run, struct buf *out);

#endif
