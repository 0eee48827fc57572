/* Where device work of compiled code came from, as the compiler wrote it down beside the trace (open/provenance_join.h). */
#ifndef OPSCOPE_ANALYSIS_TREE_SOURCES_H
#define OPSCOPE_ANALYSIS_TREE_SOURCES_H

#include "store/profile.h"

/* How the call in the compiler's code was told that a piece of work is of. */
enum source_match {
	SOURCE_NONE,         /* it was not, or no one looked */
	SOURCE_AMBIGUOUS,    /* calls of several sources fit: what they differ in is left out */
	SOURCE_BY_NAME,      /* by the kernel's name alone, which kernels of other code may have */
	SOURCE_BY_CODE,      /* by the hash of the kernel's code */
	SOURCE_BY_GRAPH,     /* by the hash of the graph */
	SOURCE_ALL_CALLS,    /* by one of the latter two, and the compiler told all calls of the kernel in its graph together */
	SOURCE_MATCHES,
};
extern const char *const source_match_name[SOURCE_MATCHES];

/* "" = not known. As in open/provenance.h. */
struct sources {
	struct str ops, nodes, lines;
	enum source_match match;
};

/* Of an argument set of device work or of a span. */
struct sources sources_of(const struct profile *p, uint32_t set);

/* Facts about the run (profile.meta): what the compiler said of a graph break, or of compiling again. The value is the frame, the place in the program and the reason, tabs between them. */
#define SOURCE_BREAK "torch.compile: graph break"
#define SOURCE_RECOMPILE "torch.compile: recompile"

/* Whether any work has them. */
static inline bool sources_any(const struct profile *p) { return profile_has_arg(p, ARG_SOURCE_MATCH); }

#endif
