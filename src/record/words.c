#include "record/words.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"

#include <stdarg.h>
#include <stdio.h>

void words_add(struct words *w, const char *word)
{
	MEM_GROW(w->v, w->cap, w->n + 2);
	w->v[w->n++] = (char *)(uintptr_t)word;
	w->v[w->n] = NULL;
}

void words_printf(struct words *w, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = arena_bytes(&w->arena, (size_t)(n < 0 ? 0 : n) + 1);
	*p = 0;
	if (n >= 0)
		vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	words_add(w, p);
}

void words_split(struct words *w, const char *text)
{
	char quote = 0;
	bool open = false;
	struct buf word = {0};
	for (const char *at = text;; at++) {
		bool ends = !*at || (!quote && strchr(" \t\n", *at));
		if (ends && open)
			words_add(w, arena_str(&w->arena, word.n ? buf_view(&word) : STR("")).p);
		if (!*at)
			break;
		if (ends) {
			open = false;
			buf_clear(&word);
			continue;
		}
		open = true;
		if (quote ? *at == quote : *at == '\'' || *at == '"')
			quote = quote ? 0 : *at;
		else if (*at == '\\' && quote != '\'' && at[1])
			buf_char(&word, *++at);
		else
			buf_char(&word, *at);
	}
	buf_release(&word);
}

bool words_has(const struct words *w, const char *word)
{
	return ANY_WHERE(i, 0, w->n, strcmp(w->v[i], word) == 0);
}

void words_release(struct words *w)
{
	mem_free(w->v);
	arena_release(&w->arena);
	*w = (struct words){0};
}
