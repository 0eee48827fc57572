#include "cli/gate_ci.h"

#include "base/html_text.h"
#include "base/utf8.h"
#include "io/atomic.h"
#include "render/render.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Text as XML 1.0 has it, which lacks two characters beside those that HTML escapes. */
static void gate_ci_put_text(struct buf *out, struct str s)
{
	struct buf plain = {0};
	for (size_t at = 0; at < s.n;) {
		uint32_t code;
		const unsigned n = utf8_next(s, at, &code);
		if (code == 0xfffe || code == 0xffff)
			buf_char(&plain, '?');
		else
			buf_put(&plain, s.p + at, n);
		at += n;
	}
	html_put_text(out, buf_view(&plain));
	buf_release(&plain);
}

static void gate_ci_put_judgement(const struct gate_block *b, const struct gate_judgement *j, struct buf *out)
{
	struct buf text = {0};
	gate_put_judgement(b, j, &text);
	gate_ci_put_text(out, buf_view(&text));
	buf_release(&text);
}

static void gate_ci_begin_junit(const unsigned *n, struct buf *out)
{
	buf_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"opscope gate\" tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\">\n",
	           n[GATE_PASS] + n[GATE_FAIL] + n[GATE_UNDECIDED], n[GATE_FAIL], n[GATE_UNDECIDED]);
}

/* Releases *out. */
static int gate_ci_end_junit(const char *path, struct buf *out, struct err *e)
{
	struct atomic_file f;
	buf_cstr(out, "</testsuite>\n</testsuites>\n");
	const int rc = atomic_begin_any(&f, path, e) < 0 ? -1 : atomic_write(&f, buf_view(out), e) ? atomic_abort(&f) : atomic_commit(&f, e);
	buf_release(out);
	return rc;
}

int gate_ci_write_junit(const char *path, const struct gate_block *b, const struct gate_judgements *j, struct str run, struct err *e)
{
	struct buf out = {0};
	unsigned n[GATE_VERDICTS] = {0};
	for (unsigned i = 0; i < j->n; i++)
		n[j->v[i].verdict]++;
	gate_ci_begin_junit(n, &out);
	for (unsigned i = 0; i < j->n; i++) {
		const struct gate_judgement *x = &j->v[i];
		buf_cstr(&out, "<testcase classname=\"");
		gate_ci_put_text(&out, run);
		buf_cstr(&out, "\" name=\"");
		gate_ci_put_text(&out, b->metric[x->metric]);
		buf_cstr(&out, x->anchor ? " against the anchors\">" : "\">");
		if (x->verdict != GATE_PASS) {
			buf_cstr(&out, x->verdict == GATE_FAIL ? "<failure message=\"" : "<skipped message=\"");
			gate_ci_put_judgement(b, x, &out);
			buf_cstr(&out, "\"/>");
		}
		buf_cstr(&out, "</testcase>\n");
	}
	return gate_ci_end_junit(path, &out, e);
}

int gate_ci_write_undecided(const char *path, struct str run, const char *why, struct err *e)
{
	struct buf out = {0};
	const unsigned n[GATE_VERDICTS] = {[GATE_UNDECIDED] = 1};
	gate_ci_begin_junit(n, &out);
	buf_cstr(&out, "<testcase classname=\"");
	gate_ci_put_text(&out, run);
	buf_cstr(&out, "\" name=\"gate\"><skipped message=\"");
	gate_ci_put_text(&out, str_from(why));
	buf_cstr(&out, "\"/></testcase>\n");
	return gate_ci_end_junit(path, &out, e);
}

/* The text of an annotation: GitHub reads % and line ends of it as escapes. */
static void gate_ci_print_annotation(const char *kind, struct str text)
{
	printf("::%s title=opscope gate::", kind);
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '%' || (unsigned char)text.p[i] < 0x20)
			printf("%%%02X", (unsigned char)text.p[i]);
		else
			putchar(text.p[i]);
	putchar('\n');
}

void gate_ci_warn_github(const char *why)
{
	gate_ci_print_annotation("warning", str_from(why));
	fflush(stdout);
}

static int gate_ci_append(const char *path, struct str text, struct err *e)
{
	const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	const int rc = fd < 0 ? -1 : fd_write_all(fd, text);
	const int why = errno;
	if (fd >= 0)
		close(fd);
	return rc < 0 ? err_set(e, ERR_IO, "%s: %s", path, strerror(why)) : 0;
}

int gate_ci_tell_github(const struct gate_block *b, const struct gate_judgements *j, const struct table *t, struct err *e)
{
	const char *summary = getenv("GITHUB_STEP_SUMMARY");
	struct buf text = {0};
	int rc = 0;
	for (unsigned i = 0; i < j->n; i++)
		if (j->v[i].verdict != GATE_PASS) {
			buf_clear(&text);
			buf_printf(&text, "%s: ", gate_verdict_name[j->v[i].verdict]);
			gate_put_judgement(b, &j->v[i], &text);
			gate_ci_print_annotation(j->v[i].verdict == GATE_FAIL ? "error" : "warning", buf_view(&text));
		}
	fflush(stdout);
	if (summary && *summary) {
		buf_clear(&text);
		rc = renderer_find(STR("markdown"))->render(t, &(struct render_options){0}, &text, e);
		rc = rc < 0 ? rc : gate_ci_append(summary, buf_view(&text), e);
	}
	buf_release(&text);
	return rc;
}
