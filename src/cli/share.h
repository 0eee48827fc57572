/* Processes that answer about one job together: those of `mpirun opscope-mpi` (share_mpi.c). Each reads its share of the recordings; the first one, the root, joins them and alone
 * writes. In opscope itself there is one process, and nothing here does anything (share_none.c).
 *
 * All processes parse the same command line. The root finds the recordings; the others are told them in place of looking (cli_share_list). Each of these ends in cli_share_end, or at
 * exit, when the root needs no more of it. One that ends otherwise ends all. */
#ifndef OPSCOPE_CLI_SHARE_H
#define OPSCOPE_CLI_SHARE_H

#include "input/discover.h"
#include "query/job_read.h"

/* First of all. */
void cli_share_begin(int *argc, char ***argv);
/* How many processes there are, and which one this is: 0 is the root. */
int cli_share_count(void);
int cli_share_me(void);

/* Whether another program hands on what is printed, perhaps through a terminal of its own that is not the user's. */
bool cli_share_is_relayed(void);

/* In a process that is not the root: the recordings of the job. Waits for the root to know them; ends the process where the root needs none of them read. */
void cli_share_list(struct trace_list *l);
/* In the root, once it knows them: tells the others, and has *in ask these for their shares. In the others: has *in read this process's share and send it. *in is used in order, each
 * recording once. */
void cli_share_work(const struct trace_list *l, struct job_inputs *in);
/* Once all is read: frees what cli_share_work made. Ends a process that is not the root. */
void cli_share_end(struct job_inputs *in);

#endif
