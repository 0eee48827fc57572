#include "render/view.h"

#include "base/buf.h"
#include "base/mem.h"

struct table *table_view(const struct table *t, bool sections)
{
	struct table *first = NULL, **tail = &first;
	for (; t; t = sections ? t->next : NULL) {
		struct table *v = NEW(struct table);
		*v = *t;
		v->arena = (struct arena){0};
		v->next = NULL;
		v->cap_notes = v->n_notes;
		v->notes = NEW_ARRAY_RAW(v->n_notes, struct str);
		for (unsigned i = 0; i < v->n_notes; i++)
			v->notes[i] = t->notes[i];
		*tail = v;
		tail = &v->next;
	}
	return first;
}

void table_view_free(struct table *view)
{
	for (struct table *next; view; view = next) {
		next = view->next;
		mem_free(view->notes);
		arena_release(&view->arena);
		mem_free(view);
	}
}

void table_fold(struct table *t, struct table **kept)
{
	struct buf names = {0};
	unsigned n = 0;
	for (struct table **at = &t->next; *at;) {
		struct table *s = *at;
		if (!s->folded) {
			at = &s->next;
			continue;
		}
		buf_printf(&names, "%s%s", n++ ? ", " : "", s->name);
		*at = s->next;
		s->next = NULL;
		*kept = s;
		kept = &s->next;
	}
	if (n)
		table_note(t, "%u more table%s: " STR_FMT ". --section=NAME shows one, --section=all every one; --format=json and html have them.", n, n == 1 ? "" : "s",
		           STR_ARG(buf_view(&names)));
	buf_release(&names);
}
