/* Names of C++ functions as people write them, from those that compilers make ("_Z3addIfEvPT_" is "void add<float>(float*)"). */
#ifndef OPSCOPE_BASE_DEMANGLE_H
#define OPSCOPE_BASE_DEMANGLE_H

#include "base/buf.h"

/* Longer names, and those that would become longer, stay as they are: a few bytes can stand for gigabytes. */
enum { DEMANGLE_IN_MAX = 8 << 10, DEMANGLE_OUT_MAX = 256 << 10 };

enum demangled {
	DEMANGLE_NO,      /* no mangled name: nothing to do */
	DEMANGLE_DONE,
	DEMANGLE_FAILED,  /* begins like one, and is none, or is beyond the limits */
	DEMANGLE_ABSENT,  /* the program was built without a demangler */
};

/* Appends the readable name to *out only for DEMANGLE_DONE. */
enum demangled demangle(struct str name, struct buf *out);

#endif
