/* What several interfaces of programs share: trace.c, nvtx.c, itt.c. */
#ifndef OPSCOPE_COLLECT_TRACE_H
#define OPSCOPE_COLLECT_TRACE_H

#include "writer.h"

/* `name`: a text's id. */
void counter(uint32_t domain, uint32_t name, enum wire_payload kind, uint64_t value);
/* An argument of the innermost open range of the thread; `key` and texts as ids. */
void trace_arg(uint32_t domain, uint32_t key, enum wire_arg_kind kind, uint64_t value);
void name_thread(uint32_t thread, const char *name, size_t n);

#endif
