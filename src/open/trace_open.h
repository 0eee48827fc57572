/* Opens a trace for whoever asks about it: reads it (input/input.h), and attributes what graphs replayed (analysis/graph/graph_join.h) by its own captures, by those of o->capture, or by those that lie beside
 * it (open/captures.h). A trace without graphs, and a file that was imported, is only read.
 *
 * Work of compiled code gets its sources (open/provenance_join.h) from o->provenance, or from the folder DISCOVER_PROVENANCE beside the trace. *
 * Kernels get the hardware counters of o->counters (open/counters_join.h). */
#ifndef OPSCOPE_OPEN_TRACE_OPEN_H
#define OPSCOPE_OPEN_TRACE_OPEN_H

#include "input/input.h"

/* As input_open. A capture that lies beside the trace and cannot be read leaves a diagnostic; one that is given is an error. The same holds for provenance. */
struct profile *trace_open(const char *path, const struct input_options *o, struct err *e);

#endif
