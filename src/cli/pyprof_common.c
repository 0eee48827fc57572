#include "cli/pyprof_common.h"

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
