/* A window, some steps or all of an input as a Chrome trace, packed. */
#include "analysis/steps/slice.h"
#include "export/export.h"
#include "serve/api/timeline_times.h"
#include "serve/chrome.h"
#include "serve/tables.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_MAX = 4000000 }; /* of one answer, which is made in memory */

/* What was asked for. */
struct wanted {
	struct report_args args;
	bool has_window;
	struct step_window window;
};

static int read_wanted(const struct request *r, struct wanted *w, struct err *e)
{
	const struct timeline *t = library_timeline(r->library, r->entry, e);
	if (!t || table_choice(r, &w->args, e) < 0 || timeline_window(r, t, &w->window.start_ns, &w->window.end_ns, e) < 0)
		return -1;
	w->has_window = request_value(r, "from").p || request_value(r, "to").p;
	w->window.device_start_ns = w->window.start_ns;
	w->window.device_end_ns = w->window.end_ns;
	if (w->has_window && (w->args.has_steps || w->args.aggregation))
		return err_set(e, ERR_USAGE, "steps: not together with from and to");
	return 0;
}

static int check_size(const struct profile *p, struct err *e)
{
	uint64_t n = (uint64_t)p->span.rows.n + p->gpu_op.rows.n + p->memory.rows.n + p->flow.rows.n + p->mark.rows.n;
	if (n <= ROWS_MAX)
		return 0;
	return err_set(e, ERR_LIMIT, "%llu events: more than %d are too much for a browser; choose a shorter window, or use `opscope export chrome`",
	               (unsigned long long)n, ROWS_MAX);
}

static void serve_export_chrome_close_it(void *fd)
{
	close(*(int *)fd);
}

static int read_back(int fd, struct buf *out, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_set(e, ERR_IO, "the export cannot be read: %s", strerror(errno));
	char *p = buf_room(out, (size_t)st.st_size);
	for (off_t at = 0; at < st.st_size;) {
		ssize_t n = pread(fd, p + at, (size_t)(st.st_size - at), at);
		if (n <= 0)
			return err_set(e, ERR_IO, "the export cannot be read: %s", n ? strerror(errno) : "it has become shorter");
		at += n;
	}
	out->n += (size_t)st.st_size;
	return 0;
}

static int write_part(struct profile *p, bool counters, int fd, struct buf *out, struct err *e)
{
	const struct export_format *f = export_find(STR("chrome"));
	const char *value[EXPORT_OPTIONS_MAX] = {0};
	struct sink s;
	struct diags notes = {0};
	for (unsigned i = 0; counters && f->options[i].name; i++)
		value[i] = strcmp(f->options[i].name, "counter-tracks") == 0 ? "" : NULL;
	sink_init(&s, fd, true);
	int rc = export_run(f, p, &(struct report_args){0}, value, &s, &notes, e);
	if (sink_finish(&s) < 0 && rc == 0)
		rc = err_set(e, ERR_IO, "the export cannot be written: %s", strerror(s.error));
	diags_release(&notes);
	return rc < 0 ? -1 : read_back(fd, out, e);
}

int chrome_packed(struct profile *p, bool counters, struct buf *out, struct err *e)
{
	if (check_size(p, e) < 0)
		return -1;
	int fd = memfd_create("chrome", MFD_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_IO, "the export cannot be written: %s", strerror(errno));
	struct mem_undo undo;
	mem_undo_begin(&undo, serve_export_chrome_close_it, &fd);
	int rc = write_part(p, counters, fd, out, e);
	mem_undo_end(&undo);
	close(fd);
	return rc;
}

static int serve_export_chrome_export_to(struct profile *p, const struct wanted *w, struct buf *out, struct err *e)
{
	struct report_args a = w->args;
	struct profile *part = w->has_window ? slice_of(p, &w->window, 0, -1, e) : report_part(p, &a, PASS_NEST | PASS_CORRELATE, e);
	return part ? chrome_packed(part, false, out, e) : -1;
}

static int serve_export_chrome_run(const struct request *r, struct response *out, struct err *e)
{
	struct wanted w = {0};
	struct library_turn turn;
	if (read_wanted(r, &w, e) < 0 || library_turn_begin(&turn, r->entry, e) < 0)
		return -1;
	int rc = serve_export_chrome_export_to(r->entry->profile, &w, &out->body, e);
	library_turn_end(&turn);
	out->type = "application/gzip";
	out->file_name = "opscope.trace.json.gz";
	return rc;
}

static const struct endpoint_param params[] = {
	WINDOW_PARAMS,
	CHOICE_PARAMS,
	{0},
};

const struct endpoint endpoint_export_chrome = {
	.path = "/api/export/chrome",
	.help = "a window (host work that begins in it, with the device work that it launched), some steps or all of it as Chrome trace JSON, packed by "
	        "gzip: for ui.perfetto.dev",
	.flags = ENDPOINT_INPUT | ENDPOINT_FRESH,
	.params = params,
	.run = serve_export_chrome_run,
};
