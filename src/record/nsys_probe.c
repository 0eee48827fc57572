#include "record/nsys.h"

#include "base/program.h"

#include <errno.h>
#include <sys/wait.h>

enum { ANSWER_S = 60 }; /* a first start from a network disk takes its time */

/* What nsys prints when asked; its status must be 0. */
static int nsys_probe_ask(const struct nsys *n, const char *a, const char *b, struct buf *out, struct err *e)
{
	char *argv[] = {n->path.p, (char *)(uintptr_t)a, (char *)(uintptr_t)b, NULL};
	int status = 0;
	if (launch_capture(argv, ANSWER_S * LAUNCH_S, out, &status, e) < 0)
		return -1;
	buf_end_text(out);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return err_set(e, ERR_IO, "%s %s %s: ended with status %d: this nsys does not work", n->path.p, a, b ? b : "", launch_status(status));
	return 0;
}

/* "NVIDIA Nsight Systems version 2024.2.3.38-242334140272v0", somewhere in the text. */
static void read_version(struct nsys *n, struct str text)
{
	ptrdiff_t at = str_find(text, STR("version "));
	struct str rest = at < 0 ? STR("") : (struct str){text.p + at + 8, text.n - (size_t)at - 8};
	size_t len = 0;
	while (len < rest.n && len < 60 && rest.p[len] > ' ')
		len++;
	buf_str(&n->version, (struct str){rest.p, len});
	buf_end_text(&n->version);
	for (size_t i = 0; i < len && i < 4 && rest.p[i] >= '0' && rest.p[i] <= '9'; i++)
		n->year = n->year * 10 + (rest.p[i] - '0');
}

int nsys_probe(struct nsys *n, struct err *e)
{
	struct buf text = {0};
	*n = (struct nsys){0};
	int why = program_find("nsys", &n->path);
	if (why)
		return err_set(e, ERR_IO, why == ENOENT ? "nsys was not found on the PATH: Nsight Systems has to be installed" : "nsys on the PATH may not be executed");
	int rc = nsys_probe_ask(n, "--version", NULL, &text, e);
	if (rc == 0) {
		read_version(n, buf_view(&text));
		rc = nsys_probe_ask(n, "profile", "--help", &n->help, e);
	}
	buf_release(&text);
	return rc;
}

void nsys_release(struct nsys *n)
{
	buf_release(&n->path);
	buf_release(&n->version);
	buf_release(&n->help);
	*n = (struct nsys){0};
}

static bool nsys_probe_in_word(char c)
{
	return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool nsys_has(const struct nsys *n, const char *word)
{
	struct str rest = buf_view(&n->help);
	for (ptrdiff_t at; (at = str_find(rest, str_from(word))) >= 0;) {
		size_t end = (size_t)at + strlen(word);
		bool before = at > 0 && nsys_probe_in_word(rest.p[at - 1]), after = end < rest.n && nsys_probe_in_word(rest.p[end]);
		if (!before && !after)
			return true;
		rest = (struct str){rest.p + end, rest.n - end};
	}
	return false;
}
