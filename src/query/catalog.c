#include "query/catalog.h"

#include "base/buf.h"
#include "base/mem.h"

static void catalog_put_word(struct buf *b, const char *word)
{
	if (b->n)
		buf_char(b, '_');
	for (; *word; word++) {
		bool plain = (*word >= 'a' && *word <= 'z') || (*word >= 'A' && *word <= 'Z') || (*word >= '0' && *word <= '9');
		buf_char(b, plain ? *word : '_');
	}
}

const char *catalog_name(struct arena *a, const char *prefix, const char *name, const char *section)
{
	struct buf b = {0};
	if (prefix)
		catalog_put_word(&b, prefix);
	catalog_put_word(&b, name);
	if (section)
		catalog_put_word(&b, section);
	const char *copy = arena_str(a, buf_view(&b)).p;
	buf_release(&b);
	return copy;
}

static void catalog_add(struct catalog *c, const struct report *r, const char *group_by)
{
	struct str by = {"", 0};
	if (group_by) {
		if (report_combines(r)) /* of parts "stack" without ":N"; else the whole grouping, "depth:1" */
			group_by = arena_str(&c->arena, report_part_name(str_from(group_by))).p;
		by = arena_printf(&c->arena, "by_%s", group_by);
	}
	MEM_GROW(c->v, c->cap, c->n + 1);
	c->v[c->n++] = (struct catalog_entry){r, group_by, catalog_name(&c->arena, NULL, r->name, group_by ? by.p : NULL)};
}

void catalog_init(struct catalog *c)
{
	*c = (struct catalog){0};
	for (const struct report *const *r = report_registry; *r; r++) {
		catalog_add(c, *r, NULL);
		for (unsigned i = 1; report_grouping(*r, i); i++)
			catalog_add(c, *r, report_grouping(*r, i));
	}
}

void catalog_release(struct catalog *c)
{
	mem_free(c->v);
	arena_release(&c->arena);
	*c = (struct catalog){0};
}
