#include "import.h"

#include "detect/detect.h"
#include "export/export.h"
#include "input/input.h"
#include "report/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void ask_everything(struct profile *p)
{
	struct err e = {0};
	for (const struct report *const *r = report_registry; *r; r++) {
		for (const char *const *g = (*r)->group_by; g && *g; g++) {
			struct report_args args = {.group_by = *g};
			struct table t;
			if (report_run(*r, p, &args, &t, &e) == 0)
				table_release(&t);
		}
		for (const char *const *c = (*r)->compat; c && *c; c++) {
			struct report_args args = {.compat = *c};
			struct table t;
			if (report_run(*r, p, &args, &t, &e) == 0)
				table_release(&t);
		}
		struct table t;
		if (report_run(*r, p, &(struct report_args){0}, &t, &e) == 0)
			table_release(&t);
	}
	struct findings f = {0};
	detect_all(p, &f, &e);
	findings_release(&f);
}

static void export_everything(struct profile *p)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (const struct export_format *const *f = export_registry; *f; f++) {
		struct sink out;
		struct diags notes = {0};
		struct err e = {0};
		sink_init(&out, fd, false);
		if (export_run(*f, p, &(struct report_args){0}, NULL, &out, &notes, &e) < 0 && !e.msg[0])
			abort(); /* refused without a word */
		sink_finish(&out);
		diags_release(&notes);
	}
	close(fd);
}

void fuzz_import(const char *format, const uint8_t *data, size_t size)
{
	char path[] = "/dev/shm/opscope-fuzz-XXXXXX"; /* in memory, but with a name: SQLite opens nothing else */
	int fd = mkstemp(path);
	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	close(fd);
	struct err e = {0};
	struct profile *p = input_open(path, &(struct input_options){.format = format, .as_written = true}, &e);
	unlink(path);
	if (p) {
		ask_everything(p);
		export_everything(p);
		profile_free(p);
	} else if (!e.msg[0]) {
		abort(); /* refused without a word */
	}
}
