/* Python's pickle, read as data: the opcodes of protocols 0 to 5 that make dicts, lists, tuples, strings, bytes, numbers, True, False and None, and the memo. An opcode that
 * would import, call or build anything ends the reading: nothing of the file is ever run. */
#ifndef OPSCOPE_IO_PICKLE_H
#define OPSCOPE_IO_PICKLE_H

#include "io/pyliteral.h"

enum {
	PICKLE_VALUES = 1 << 22,   /* a pickle of more values is not read further, */
	PICKLE_REPEATED = 1 << 24, /* nor one that repeats so many by its memo */
	PICKLE_GRAPH_VALUES = 1 << 26, /* of pickle_parse_graph, which repeats none */
};

/* What the bytes hold; everything lives in `a`, or in the bytes, which must stay. Where they are damaged, cut, or hold what is refused, *why says what, *at is the byte, and
 * the result is what came before, containers that were still open ending there; NULL = nothing came. *why is NULL of a sound pickle. Strings are as written: of protocol 0 with its
 * escapes. `key` and `next` are as in io/pyliteral.h, `raw` is not set. Linear in the bytes and in the values. */
const struct py *pickle_parse(struct str bytes, struct arena *a, size_t *at, const char **why);

/* The same, for pickles that hold the same lists and dicts many times over: what the memo gives again is not copied, and a place in a list takes 8 bytes. Lists and tuples have
 * `item[0 .. n - 1]`, and `first` is NULL; dicts are as ever. What is shared has the same `item` or `first`. A hostile pickle can so hold itself, and stand for exponentially many
 * values: whoever walks the result goes to a fixed depth, and looks at what is shared once. Linear in the bytes. */
const struct py *pickle_parse_graph(struct str bytes, struct arena *a, size_t *at, const char **why);

#endif
