#include "base/html_text.h"

#include "base/json_text.h"
#include "base/utf8.h"

void html_put_text(struct buf *out, struct str s)
{
	struct buf safe = {0};
	utf8_put_safe(&safe, s);
	for (size_t i = 0; i < safe.n; i++) {
		char c = safe.p[i];
		const char *name = c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" :
		                   c == '\'' ? "&#39;" : NULL;
		if (name)
			buf_cstr(out, name);
		else
			buf_char(out, c);
	}
	buf_release(&safe);
}

void html_put_script_string(struct buf *out, struct str s)
{
	struct buf safe = {0}, quoted = {0};
	utf8_put_safe(&safe, s);
	json_put_string(&quoted, buf_view(&safe));
	for (size_t i = 0; i < quoted.n; i++) {
		if (quoted.p[i] == '<')
			buf_cstr(out, "\\u003c");
		else
			buf_char(out, quoted.p[i]);
	}
	buf_release(&safe);
	buf_release(&quoted);
}
