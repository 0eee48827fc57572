#include "record/nsys.h"

#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const nsys_suffix[] = {"nsys-rep", "qdrep", "qdstrm"};

/* --- what is there afterwards ----------------------------------------------------------------------------------- */

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);
	return n > s + 1 && name[n - s - 1] == '.' && strcmp(name + n - s, suffix) == 0;
}

/* Files of `dir` whose names begin with `start` and have one of the first n suffixes, as paths. */
static void nsys_list(const char *dir, const char *start, unsigned n, struct words *out)
{
	struct dirent **entry;
	int found = scandir(dir, &entry, NULL, alphasort);
	for (int i = 0; i < found; i++) {
		bool fits = strncmp(entry[i]->d_name, start, strlen(start)) == 0;
		for (unsigned k = 0; k < n && fits; k++)
			if (has_suffix(entry[i]->d_name, nsys_suffix[k]))
				words_printf(out, "%s/%s", dir, entry[i]->d_name);
		free(entry[i]);
	}
	if (found >= 0)
		free(entry);
}

/* A report that nsys could not write where it should stays in the folder for temporary files. */
static void list_strays(struct words *out)
{
	const char *tmp = getenv("TMPDIR");
	nsys_list(tmp && *tmp ? tmp : "/tmp", "nsys-report-", NSYS_SUFFIXES, out);
}

static bool tell_strays(const struct words *before, struct words *warnings)
{
	struct words now = {0};
	bool any = false;
	list_strays(&now);
	for (int i = 0; i < now.n; i++)
		if (!words_has(before, now.v[i])) {
			words_printf(warnings, "nsys wrote no report into the run directory, but %s is new and may be it: `opscope info %s` tells", now.v[i], now.v[i]);
			any = true;
		}
	words_release(&now);
	return any;
}

/* Why there is no report. */
static void tell_missing(const struct nsys *n, const struct record_spec *s, const struct words *strays, struct record_result *r)
{
	struct words left = {0};
	int status = launch_status(r->wait_status);
	bool told = tell_strays(strays, &r->warnings);
	nsys_list(s->dir, "nsys", NSYS_SUFFIXES, &left);
	if (left.n)
		words_printf(&r->warnings, "nsys left %s: its importer failed, so that there is nothing to read", left.v[0]);
	else if (told)
		; /* said */
	else if (status == 127 && n->year && n->year < 2022)
		words_printf(&r->warnings, "nsys %s wrote no report, and the program ended with status 127: so old an nsys breaks programs on newer systems", n->version.p);
	else if (status)
		words_printf(&r->warnings, "nsys ended with status %d and wrote no report: what it and the program said stands above", status);
	else if (s->range)
		words_printf(&r->warnings, "nothing was recorded: the program never entered the range %s", s->range);
	else if (s->delay_ns)
		words_add(&r->warnings, "nothing was recorded: the program ended before --delay");
	else
		words_add(&r->warnings, "nsys ended with status 0 and wrote no report");
	words_release(&left);
}

/* --- export ----------------------------------------------------------------------------------------------------- */

/* The last line of a log that is not empty, for messages. */
static void put_last_line(const char *log, struct buf *out)
{
	char text[4096];
	FILE *f = fopen(log, "re");
	size_t n = 0;
	if (f && fseek(f, -(long)sizeof text, SEEK_END) < 0)
		rewind(f);
	if (f) {
		n = fread(text, 1, sizeof text, f);
		fclose(f);
	}
	while (n && (unsigned char)text[n - 1] <= ' ')
		n--;
	size_t start = n;
	while (start && text[start - 1] != '\n' && text[start - 1] != '\r')
		start--;
	buf_str(out, (struct str){text + start, n - start});
}

static void tell_export(const char *report, const char *log, int status, struct words *warnings)
{
	struct buf said = {0};
	put_last_line(log, &said);
	words_printf(warnings, "`nsys export` of %s failed with status %d%s%.*s; the report is kept, all that was said is in %s", report, status,
	             said.n ? ": " : "", (int)(said.n < 300 ? said.n : 300), said.n ? said.p : "", log);
	buf_release(&said);
}

/* The database made of a report, NUL-terminated, in *out. False, with a warning, when nsys made none. */
static bool nsys_export_one(const struct nsys *n, const struct record_spec *s, const char *report, struct record_result *r, struct buf *out)
{
	struct launched done;
	struct err e;
	struct stat st;
	struct buf log = {0};
	const char *dot = strrchr(report, '.');
	buf_clear(out);
	buf_printf(out, "%.*s.sqlite", (int)(dot - report), report);
	buf_char(out, 0);
	buf_printf(&log, "%s/nsys-export.log", s->dir);
	buf_char(&log, 0);
	char *argv[] = {n->path.p, "export", "-t", "sqlite", "-f", "true", "-o", out->p, (char *)(uintptr_t)report, NULL};
	const struct launch l = {.argv = argv, .log = log.p};
	bool ok = launch_run(&l, &done, &e) == 0 && done.wait_status == 0 && stat(out->p, &st) == 0 && st.st_size > 0;
	if (ok) {
		unlink(log.p);
	} else {
		unlink(out->p); /* half of it */
		tell_export(report, log.p, launch_status(done.wait_status), &r->warnings);
	}
	buf_release(&log);
	return ok;
}

static void export_all(const struct nsys *n, const struct record_spec *s, const struct words *reports, struct record_result *r)
{
	struct buf database = {0};
	int made = 0;
	for (int i = 0; i < reports->n; i++) {
		if (!nsys_export_one(n, s, reports->v[i], r, &database))
			continue;
		buf_clear(&r->capture);
		buf_cstr(&r->capture, made++ ? s->dir : database.p);
		buf_end_text(&r->capture);
	}
	buf_release(&database);
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static int profile(const struct nsys *n, const struct record_spec *s, struct record_result *r, struct err *e)
{
	struct words command = {0}, env = {0}, strays = {0}, reports = {0};
	struct buf base = {0};
	buf_printf(&base, "%s/nsys", s->dir);
	buf_char(&base, 0);
	int rc = nsys_command(n, s, base.p, &command, &env, &r->notes, e);
	list_strays(&strays);
	if (rc == 0)
		rc = nsys_wait(command.v, env.v, s->dir, &r->launched, &r->warnings, e);
	r->wait_status = r->launched.wait_status;
	if (rc == 0) {
		nsys_list(s->dir, "nsys", NSYS_REPORTS, &reports);
		if (reports.n)
			export_all(n, s, &reports, r);
		else
			tell_missing(n, s, &strays, r);
	}
	words_release(&command);
	words_release(&env);
	words_release(&strays);
	words_release(&reports);
	buf_release(&base);
	return rc;
}

int nsys_run(const struct record_spec *s, struct record_result *r, struct err *e)
{
	struct nsys n;
	int rc = nsys_probe(&n, e);
	if (rc == 0)
		rc = profile(&n, s, r, e);
	nsys_release(&n);
	return rc;
}
