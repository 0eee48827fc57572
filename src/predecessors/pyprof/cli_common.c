#include "predecessors/pyprof/cli_common.h"

#include "cli/cli.h"
#include "io/atomic.h"

#include <errno.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 16 };

enum pyprof_record_rules pyprof_compat_of(const char *command, const char *name, const struct pyprof_compat *list, unsigned n)
{
	struct buf words = {0};
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(name, list[i].name) == 0) {
			buf_release(&words);
			return list[i].rules;
		}
		buf_printf(&words, "%s%s", i ? ", " : "", list[i].name);
	}
	cli_usage("%s: --compat=%s: expected one of " STR_FMT, command, name, STR_ARG(buf_view(&words)));
}

void pyprof_warn(const struct profile *p, const struct pyprof_records *r)
{
	struct err e;
	if (p->recorder == RECORDER_TORCH) {
		err_set(&e, ERR_NONE, STR_FMT ": PyProf read databases of nsys and nvprof; of a PyTorch trace, `opscope report pyprof` says more",
		        STR_ARG(p->input_path));
		cli_fail(&e, 0);
	}
	if (r->left_out && !r->from_dict) {
		err_set(&e, ERR_NONE, STR_FMT ": %u kernels are left out, as PyProf does: their launch was not recorded", STR_ARG(p->input_path),
		        r->left_out);
		cli_fail(&e, 0);
	}
}

int pyprof_flush(struct buf *b, bool all, int *status)
{
	if (!b->n || (!all && b->n < PIECE_BYTES))
		return 0;
	int rc = fd_write_all(STDOUT_FILENO, buf_view(b));
	buf_clear(b);
	if (rc == 0)
		return 0;
	*status = EXIT_DONE;
	if (errno != EPIPE) {
		struct err e;
		err_set(&e, ERR_IO, "standard output: %s", strerror(errno));
		*status = cli_fail(&e, EXIT_INPUT);
	}
	return -1;
}
