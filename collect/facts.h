/* What a segment says of its process: the command, the machine, its part of a job, the options. */
#ifndef OPSCOPE_COLLECT_FACTS_H
#define OPSCOPE_COLLECT_FACTS_H

/* For the one thread that opens a segment. */
void facts_keep(void);

#endif
