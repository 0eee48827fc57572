/* Finds the call of the compiler's code that launched each piece of device work, and gives the call's sources (analysis/tree/sources.h) to the work and to the op
 * that launched it. */
#ifndef OPSCOPE_OPEN_PROVENANCE_JOIN_H
#define OPSCOPE_OPEN_PROVENANCE_JOIN_H

#include "open/provenance.h"
#include "store/profile.h"

/* Whether the profile has work of Inductor's code without sources. O(strings). */
bool provenance_is_due(const struct profile *p);

/* Which graph a launch belongs to is told by the hash of the graph in the range around the launch, by the hash of the kernel's code, and by the compiled frame
 * around the launch. Within a graph the order tells: if a run of the graph launches a kernel as often as the graph's code calls it, the k-th launch is the k-th
 * call. If several calls remain, only what is equal in all of them is told. Ops that compiled code called get a "Call stack" of their lines, with the Python
 * frames around them. What the compiler said of graph breaks and recompilations becomes facts about the run (sources.h).
 * Runs PASS_NEST and PASS_CORRELATE; drops the results of all passes. -1 and *e: a pass failed. */
int provenance_join(struct profile *p, const struct provenance *v, struct err *e);

#endif
