/* How the texts of a column that is too narrow for them are cut so that rows that differ do not look alike. What all of them
 * share (pieces that end in one of , ; / .) can be left out, as the table says it once for all rows. */
#ifndef OPSCOPE_RENDER_TEXT_ALIKE_H
#define OPSCOPE_RENDER_TEXT_ALIKE_H

#include "base/arena.h"
#include "base/buf.h"

/* Which part of a text goes: the middle, with more of the head or of the tail kept, or the start. The same with what is shared
 * left out before that. */
enum text_how { TEXT_HEAD, TEXT_TAIL, TEXT_END, TEXT_SHARED_HEAD, TEXT_SHARED_TAIL, TEXT_SHARED_END, TEXT_HOWS };

struct text_alike {
	/* Pieces, counted from the front and from the back, that all texts of several pieces have in common. When all have the same
	 * number of pieces (`even`), `front` tells of each; else `front` has only those before the first that differs. */
	uint64_t front;
	unsigned n_back, n_pieces;
	bool any, even, differ; /* there are such texts; `even`; two of them differ */
	bool path;             /* the end tells most: cut at the start where nothing speaks against it */
	struct buf first;      /* the first text of several pieces */
	struct str *sample;    /* distinct texts, at most ALIKE_SAMPLE of them, of the first rows */
	unsigned n_sample;
	struct arena arena;
};

enum { ALIKE_SAMPLE = 64 };

void text_alike_init(struct text_alike *a, bool path);
void text_alike_add(struct text_alike *a, struct str text);
void text_alike_release(struct text_alike *a);

/* Appends `text`, with what is shared left out as `how` says, cut to `width` cells and filled up to them. */
void text_alike_put(const struct text_alike *a, enum text_how how, struct str text, size_t width, struct buf *out);

/* The way that loses least in `width` cells: (of no path) only what is shared, if that is enough, else the one that keeps most of the sample
 * distinct; *n gets how many. */
enum text_how text_alike_choose(const struct text_alike *a, size_t width, unsigned *n);

/* The least width in from..to that keeps as many distinct as any of these widths does. */
size_t text_alike_width(const struct text_alike *a, size_t from, size_t to);

/* The width that the texts take at most when what is shared is left out; 0 = not known, there are too many to look at. */
size_t text_alike_widest(const struct text_alike *a);

/* What the texts share, the rest as ellipses: "N=1,...,fp32". */
void text_alike_put_shared(const struct text_alike *a, struct buf *out);

#endif
