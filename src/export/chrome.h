/* Chrome trace events as Kineto writes them. */
#ifndef OPSCOPE_EXPORT_CHROME_H
#define OPSCOPE_EXPORT_CHROME_H

#include "export/export.h"

/* A process or thread as written: a number where it is one, else text. */
void chrome_put_id(struct buf *b, struct str s);

/* All events between '[' and ']', copied where they were kept as written; a line each. sink_room is called between events alone. */
int chrome_put_events(const struct export_run *x, struct err *e);

/* Events of counters, behind the others: launches that wait on each stream, GB/s of copies and sets, and how busy GPUs were, as analysis/time/gpu_metrics.h defines
 * their utilization and SM efficiency, in at most 100 pieces of 10^n us. */
void chrome_put_counters(const struct export_run *x);

/* A row of p->device as an element of deviceProperties, with this number. */
void chrome_put_device(struct buf *b, const struct profile *p, uint32_t row, int64_t id);

/* A file of all ranks of a job (struct export_format.write_job). */
int chrome_write_job(const struct export_ranks *x, struct err *e);

/* All events between '[' and ']', made from the rows of the profile. */
int chrome_put_rows(const struct export_run *x, struct err *e);

/* Formatting, into room that the caller has seen to: nothing is checked. Each returns the position behind. */
enum { CHROME_NUMBER_MAX = 24 };
char *chrome_put_i64(char *p, int64_t v);
/* v / 10^decimals with all its decimals, from the digits alone. */
char *chrome_put_decimal(char *p, int64_t v, unsigned decimals);
/* Nanoseconds as microseconds with three decimals. */
static inline char *chrome_put_us(char *p, int64_t ns) { return chrome_put_decimal(p, ns, 3); }

#endif
