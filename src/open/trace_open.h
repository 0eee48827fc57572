/* Opens a trace: reads it (input/input.h), attributes what graphs replayed, and tells which lines compiled code came from.
 *
 * Graphs (analysis/graph/graph_join.h): by captures in the trace itself, and by those at o->capture or, without o->capture, beside the trace (open/captures.h).
 * Compiled code (open/provenance_join.h): by o->provenance or, without it, by the folder DISCOVER_PROVENANCE beside the trace.
 * Hardware counters of kernels (open/counters_join.h): those of o->counters.
 * An imported file has all of these already; it is only read. */
#ifndef OPSCOPE_OPEN_TRACE_OPEN_H
#define OPSCOPE_OPEN_TRACE_OPEN_H

#include "input/input.h"

/* As input_open. If o->capture or o->provenance cannot be read at all, that is an error; a file beside the trace that cannot be read leaves a diagnostic, and so
 * does one among several at o->capture. */
struct profile *trace_open(const char *path, const struct input_options *o, struct err *e);

#endif
