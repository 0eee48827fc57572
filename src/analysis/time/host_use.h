/* What a range of the host says that the host was doing, by the default rules: the one answer for the roles of steps (roles.h) and the uses
 * of time (usage.h), so that the two divide the same time in the same way.
 *
 *   none        nothing: steps and ranges that mark steps (on any thread, any with the name of one that is a step), Python
 *               frames (they cover everything), what describes or is the profiler's own
 *   call        a runtime or driver API call
 *   dataloader  a data loader makes a batch: "enumerate(DataLoader)#...", "enumerate(DataPipe)#...", DLProf's "torch.utils.data.dataloader."
 *   comm        an op or annotation of a collective
 *   io          an OS call that reads or writes a file
 *   cpu         any other op or range of the user's; start/end ranges do not count: they say no more than that something was going on */
#ifndef OPSCOPE_ANALYSIS_TIME_HOST_USE_H
#define OPSCOPE_ANALYSIS_TIME_HOST_USE_H

#include "store/profile.h"

enum host_use { HOST_NONE, HOST_CALL, HOST_DATALOADER, HOST_COMM, HOST_IO, HOST_CPU };

struct host_uses;

/* Needs PASS_STEPS. Free with host_uses_free, which takes NULL, too. */
struct host_uses *host_uses_new(const struct profile *p);
void host_uses_free(struct host_uses *h);

enum host_use host_use_of(struct host_uses *h, uint32_t span);

#endif
