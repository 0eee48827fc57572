/* Tells which call of the compiler's code each piece of device work is of, and gives the work, and the op that launched it, the call's sources (analysis/tree/sources.h). */
#ifndef OPSCOPE_OPEN_PROVENANCE_JOIN_H
#define OPSCOPE_OPEN_PROVENANCE_JOIN_H

#include "open/provenance.h"
#include "store/profile.h"

/* Whether the profile has work that came from Inductor's code, and no one has told yet from where. */
bool provenance_is_due(const struct profile *p);

/* Calls of a kernel are told apart by the hash of the graph whose range is around the launch, by the hash of the kernel's code, by the compiled frame around it, and, of one graph, by their order:
 * where a run of the graph launches the kernel as often as the graph's code calls it, the k-th launch is of the k-th call. Where several calls are left, what is equal in all of them is
 * told, and nothing else. Ops that were launched so get a "Call stack" of the lines, with the Python frames around them. Runs PASS_NEST and PASS_CORRELATE, and forgets all passes. */
int provenance_join(struct profile *p, const struct provenance *v, struct err *e);

#endif
