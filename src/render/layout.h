/* Layouts: text in the form that a predecessor printed, byte for byte, of a table that names the layout (struct table). CSV, JSON and
 * HTML are those of any table.
 *
 * Adding one: a file src/render/layout_NAME.c that ends in `const struct layout layout_NAME = {...};` and the word NAME among the
 * layouts of src/render/meson.build. */
#ifndef OPSCOPE_RENDER_LAYOUT_H
#define OPSCOPE_RENDER_LAYOUT_H

#include "render/render.h"

struct layout {
	const char *name;  /* what stands before the first "-" of table->layout */
	size_t rows;       /* how many, unless told otherwise; 0 = all */
	bool (*knows)(const char *layout); /* whether it has that one of its own; NULL = all */
	/* The whole output: the table with its sections, heading and banner. */
	void (*put)(const struct table *t, struct buf *out);
};

extern const struct layout *const layout_registry[]; /* NULL-terminated, generated from render/meson.build */

/* The layout that the table names; NULL = none, or no known one. */
const struct layout *layout_of(const struct table *t);

#endif
