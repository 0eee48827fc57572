/* The Distributed view as tables: of the command line, and of the endpoints, which write them as the plugin did. */
#ifndef OPSCOPE_PREDECESSORS_TB_PLUGIN_DISTRIBUTED_TABLES_H
#define OPSCOPE_PREDECESSORS_TB_PLUGIN_DISTRIBUTED_TABLES_H

#include "predecessors/tb_plugin/distributed.h"
#include "query/report.h"

/* The workers, and which steps of theirs. */
struct tb_workers {
	struct tb_worker **v;
	uint32_t n, cap;
	int64_t first, last;     /* steps with numbers first..last; INT64_MIN..INT64_MAX: all, and what is in none */
};
void tb_workers_free(struct tb_workers *w);

/* A row for each step and worker, "all" first, then the steps by their first appearance; within a step in the order of the workers. The first columns are
 * step, worker and rank, of communications worker, rank and name; then the numbers in the plugin's order. *t is table_init-ed; the workers are matched. */
void tb_overlap_table(const struct tb_workers *w, struct table *t);
void tb_wait_table(const struct tb_workers *w, struct table *t);
void tb_comm_table(const struct tb_workers *w, struct table *t);
enum { TB_KEYS = 3, TB_WAIT_NUMBERS = 2, TB_COMM_NUMBERS = 7 };

extern const struct report_gather tb_gather_overlap, tb_gather_wait, tb_gather_comm;

#endif
