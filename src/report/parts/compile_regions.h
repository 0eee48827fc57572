/* The regions of a run in which compiled code ran, and what the host did in them, for `compile`. */
#ifndef OPSCOPE_REPORT_PARTS_COMPILE_REGIONS_H
#define OPSCOPE_REPORT_PARTS_COMPILE_REGIONS_H

#include "store/profile.h"

/* What the host does in a range by itself, without what is inside. */
enum compile_part {
	COMPILE_OUTSIDE,         /* of all regions */
	COMPILE_OWN,             /* the compiler's own code around a graph: the frame's bytecode, AOTAutograd */
	COMPILE_WRAPPER,         /* the code that Inductor wrote to call the graph's ops and kernels, and what runs it */
	COMPILE_OP,              /* an op, or the launch of a generated kernel, that the graph calls */
	COMPILE_CALL,            /* an API call that the graph makes */
	COMPILE_EAGER,           /* ops and API calls in a region and outside of its graph */
	COMPILE_COMPILER,        /* the compiler, at work within a region */
	COMPILE_GUARD,           /* Dynamo looks whether what it compiled fits */
	COMPILE_PARTS,
};

/* The calls of one piece of compiled code. */
struct compile_region {
	uint32_t name;           /* string id of the outermost range: "Torch-Compiled Region: 0/0" */
	uint32_t graph;          /* that of its (first) graph's range, "## Call CompiledFxGraph ... ##"; 0 = none */
	uint32_t code;           /* that of the frame of its graph's file; 0 = none */
	uint32_t graphs;         /* ranges of graphs in a call, at most */
	bool shows_wrapper;      /* by a graph's range or the frame of its file */
	uint32_t forward;        /* of a backward pass: the region of which; ROW_NONE */
	uint64_t calls, guarded; /* guarded: calls before which the guards have a range */
	int64_t part_ns[COMPILE_PARTS];
};

struct compile_regions {
	struct compile_region *v;
	uint32_t n;
	uint32_t *of_span;       /* region; ROW_NONE */
	uint8_t *part;           /* by span: enum compile_part */
	uint8_t *in_graph;       /* by span */
	uint32_t *root;          /* by span: the outermost op around it that is no part of the compiler's own, within its region or outside of all; ROW_NONE */
	uint64_t lost_guards;    /* ranges of guards behind which no region came */
	int64_t lost_guards_ns;
};

/* A region begins at a compiled frame, at the backward pass of a compiled function, and, where these have no ranges, at what runs a graph. One inside
 * another counts for itself alone: times of regions add up. Needs PASS_NEST. O(ranges log ranges). Release with compile_regions_release. */
void compile_regions_find(const struct profile *p, struct compile_regions *out);
void compile_regions_release(struct compile_regions *r);

/* False: the run has no regions, which is told in a fraction of the time. */
bool compile_regions_any(const struct profile *p);

/* The host's time in the region, without guards, which stand before it. */
int64_t compile_region_host_ns(const struct compile_region *r);

#endif
