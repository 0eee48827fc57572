/* Which files beside a recording are, by their names, those of the other ranks of its job. */
#ifndef OPSCOPE_ANALYSIS_RANKS_JOB_FILES_H
#define OPSCOPE_ANALYSIS_RANKS_JOB_FILES_H

#include "base/buf.h"
#include "store/profile.h"

/* Files in the folder of p->input_path whose names are like its own but for their numbers, of which that of the rank is another: "x_rank1.json"
 * beside "x_rank0.json". The rank's number in the own name is the one after "rank", else the only one that equals the rank which the input
 * states. Appends their names, in order of rank, the first and the last of more than three ("a", "b", "c"; "a" to "h"), and returns how many ranks
 * they are; of several files of one rank, the first by name counts. 0 where the input states no rank, its name does not tell, or the folder
 * cannot be read. No file is opened. */
unsigned job_files_of_others(const struct profile *p, struct buf *names);

#endif
