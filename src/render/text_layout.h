/* Which columns a text table shows and how wide each is, so that it fits the terminal. */
#ifndef OPSCOPE_RENDER_TEXT_LAYOUT_H
#define OPSCOPE_RENDER_TEXT_LAYOUT_H

#include "base/buf.h"
#include "base/table.h"
#include "render/text_alike.h"

enum { TEXT_GAP = 2 }; /* blanks between columns */

struct text_column {
	unsigned col;      /* in the table */
	int depth_col;     /* the COLUMN_TREE whose depth indents it; -1 = none */
	bool right;        /* numbers stand at the right */
	bool key;          /* the first text column */
	bool short_names;  /* kernels by their short names: cutting these loses more than a measure less does */
	bool stack;        /* COLUMN_STACK */
	bool empty;        /* null, or text without a character, in every row */
	bool zero;         /* null or 0 in every row, not empty, and not constant */
	bool constant;     /* the same value in every row, of at least two */
	bool shown;        /* there is room for it */
	bool can_share;    /* text that is neither a stack nor in a tree */
	struct text_alike alike; /* what its texts share, if can_share; else empty */
	enum text_how how; /* how its texts are cut, where they have to be */
	size_t key_part;   /* text, one of several that are the key: the width that it may be cut to; 0 = no such */
	size_t distinct;   /* text: the width that it can be cut to without rows looking alike, as far as it may matter */
	size_t body;       /* cells of the widest cell below the header */
	size_t title;      /* cells of the title on one line */
	size_t word;       /* cells of the title's longest word */
	size_t width;      /* what it gets */
};

struct text_layout {
	struct text_column *v;
	unsigned n;        /* shown */
	unsigned n_all;    /* v[n] .. v[n_all - 1] found no room */
	unsigned n_details; /* columns that text does not show unless they are asked for */
	size_t header_lines;
};

/* Scratch memory of the functions below; {0} at first, text_scratch_release at the end. */
struct text_scratch {
	struct buf raw, short_paths, safe;
};
void text_scratch_release(struct text_scratch *s);

/* The cell as it may be shown, uncut, indented in a tree, the paths of a stack shortened; valid until the next call with the same scratch. */
struct str text_cell(const struct table *t, size_t row, const struct text_column *c, struct text_scratch *scratch);

/* Cells of a terminal that `s` takes. */
size_t text_width(struct str s);

/* The next line of `*title` when it is set in `width` cells, broken at blanks; false when none is left. */
bool text_wrap(struct str *text, size_t width, struct str *line);

/* `width` 0 = unlimited. Wraps titles; leaves out columns that are empty, zero or constant (of which the value can be said once),
 * from the right; cuts text as long as rows do not look alike; leaves out COLUMN_MINOR columns, then others, then COLUMN_ANSWER columns,
 * cutting text further for these. The column that names the rows (the first text that
 * differs, preferably a COLUMN_ANSWER), COLUMN_ASKED ones and COLUMN_GROUP ones that differ always stay: a table of which
 * that is too much is wider than asked for. The columns left out stand behind the others, in their order. */
void text_layout_make(struct text_layout *l, const struct table *t, size_t width);
void text_layout_release(struct text_layout *l);

#endif
