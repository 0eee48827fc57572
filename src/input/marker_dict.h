/* The markers of PyProf and DLProf: dicts in Python's or JSON's notation. */
#ifndef OPSCOPE_INPUT_MARKER_DICT_H
#define OPSCOPE_INPUT_MARKER_DICT_H

#include "input/marker.h"

/* What a text that begins with '{' says; its raw form is the interned string `raw`. False when it is no such marker:
 * *damaged tells whether it wants to be one. Temporary memory is taken from `a`. */
bool marker_read_dict(struct build *b, struct arena *a, uint32_t raw, struct marker *out, bool *damaged);

/* PyTorch's name of a type -> the one in Kineto traces, so that both mean the same to whoever reads the arguments. */
struct str marker_kineto_type(struct str dtype);

#endif
