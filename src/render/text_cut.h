/* Making long text fit: what is left out is left out in the middle, since names of kernels and stacks of calls differ at both
 * ends; of paths at the start. The strings are valid UTF-8 as utf8_put_safe writes it. */
#ifndef OPSCOPE_RENDER_TEXT_CUT_H
#define OPSCOPE_RENDER_TEXT_CUT_H

#include "base/buf.h"

/* Appends s, cut to `width` cells (at least 1) and filled up to them: about 60 % of its head, an ellipsis, its tail. Blanks
 * before the text (the indentation in a tree) stay. No character is cut in two. */
void text_put_cut(struct buf *out, struct str s, size_t width);

/* The same with `head` % of what stays from the head; 0 = an ellipsis and the tail. */
enum { TEXT_CUT_HEAD = 60 };
void text_put_cut_at(struct buf *out, struct str s, unsigned head, size_t width);

/* The same for frames separated by ';': the place of the first one, "linear.py(12)", survives, if need be its end only. */
void text_put_cut_stack(struct buf *out, struct str s, size_t width);

/* Appends the frames with their paths shortened: what stands behind the last site-packages/ or dist-packages/, else the last
 * two parts of a path that begins with '/' or '..'. "/usr/lib/python3/dist-packages/torch/nn/functional.py(12): f" becomes
 * "torch/nn/functional.py(12): f". A frame without "(LINE)" stays as it is. */
void text_put_short_stack(struct buf *out, struct str s);

#endif
