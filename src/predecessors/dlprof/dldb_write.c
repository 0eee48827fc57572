#include "predecessors/dlprof/dldb_write.h"

#include "base/mem.h"
#include "predecessors/dlprof/iterations.h"
#include "predecessors/dlprof/op_table.h"

int dldb_write(const struct dldb_content *c, const char *path, struct err *e)
{
	struct dldb_work w = {.c = c, .p = c->p, .zero_ns = dlprof_zero_ns(c->p)};
	enum { MODE = 0666 };
	if (op_check(c->p, e) < 0 || dldb_file_begin(&w.f, path, MODE, e) < 0)
		return -1;
	w.order = dlprof_op_order(c->p, &w.texts, &w.n);
	w.device_row = NEW_ARRAY(c->p->device.rows.n, int64_t);
	w.op_row = NEW_ARRAY(c->p->ops->n_ops, int64_t);
	w.number = NEW_ARRAY(c->p->ops->n_instances, int64_t);
	w.kernel_row = NEW_ARRAY(c->p->gpu_op.rows.n, int64_t);
	w.tc = op_tc_new(c->p, true);
	dldb_write_run(&w);
	w.f.failed = w.f.failed || dldb_write_sums(&w, e) < 0;
	mem_free(w.order);
	mem_free(w.device_row);
	mem_free(w.op_row);
	mem_free(w.number);
	mem_free(w.kernel_row);
	op_tc_free(w.tc);
	arena_release(&w.texts);
	return dldb_file_end(&w.f);
}
