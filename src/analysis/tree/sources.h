/* Sources of device work of compiled code: the ops, nodes and lines that the compiler wrote down beside the trace (open/provenance_join.h). */
#ifndef OPSCOPE_ANALYSIS_TREE_SOURCES_H
#define OPSCOPE_ANALYSIS_TREE_SOURCES_H

#include "store/profile.h"

/* How the call in the compiler's code was found. */
enum source_match {
	SOURCE_NONE,         /* it was not found, or nobody looked */
	SOURCE_AMBIGUOUS,    /* several calls fit; what differs between them is left out */
	SOURCE_BY_NAME,      /* by the kernel's name alone; kernels of other code may have it, too */
	SOURCE_BY_CODE,      /* by the hash of the kernel's code */
	SOURCE_BY_GRAPH,     /* by the hash of the graph */
	SOURCE_ALL_CALLS,    /* by one of the latter two, and the compiler did not tell the calls of the kernel in its graph apart */
	SOURCE_MATCHES,
};
extern const char *const source_match_name[SOURCE_MATCHES];

/* Lists as in struct provenance_call (open/provenance.h); "" = not known. Owned by the profile. */
struct sources {
	struct str ops, nodes, lines;
	enum source_match match;
};

/* The sources in an argument set of device work or of a span. */
struct sources sources_of(const struct profile *p, uint32_t set);

/* Keys of facts about the run (profile.meta): why the compiler left a graph, or compiled a frame again. The value is the frame, the place in the program and the
 * reason, separated by tabs. */
#define SOURCE_BREAK "torch.compile: graph break"
#define SOURCE_RECOMPILE "torch.compile: recompile"

/* Whether any work or span has sources. */
static inline bool sources_any(const struct profile *p) { return profile_has_arg(p, ARG_SOURCE_MATCH); }

#endif
