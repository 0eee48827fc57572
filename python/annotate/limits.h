/* What is left out because there may not be more of it. It is counted, and said: in the capture at the first time (a note, which reports print
 * where something is lost), and as a warning of Python at the end.
 *
 * Another limit is a number here, a row of LIMITS whose sentence has it, limit_reached(LIMIT_NAME) where something is left out, and a row of the table in
 * docs/python.md. */
#ifndef OPSCOPE_ANNOTATE_LIMITS_H
#define OPSCOPE_ANNOTATE_LIMITS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define TEXT_BYTES_MOST 32000       /* of a call's text: the capture library takes 32768 */
#define COMBINATIONS_MOST 16384     /* of shapes and types, of each function */
#define VALUES_MOST 256             /* of those and of values of numbers, which may be others in each step */
#define LIST_VALUES_MOST 64         /* of a list of numbers whose values are told */
#define LIST_DEPTH_MOST 4           /* lists in lists */
#define FRAMES_MOST 256             /* of a stack */
#define STACK_BYTES_MOST 24000      /* of its lines */
#define STACKS_MOST 131072
#define MODULES_MOST 65536
#define MODELS_MOST 4096
#define INPUTS_MOST 256             /* calls that made the inputs of a call */

/* X(name, kind of the note, whether something is lost that is seldom left out, a sentence without a full stop) */
#define LIMITS(X)                                                                                                                             \
	X(TEXT, "annotate-arguments", 1, "calls whose arguments would be a text of more than " SAY(TEXT_BYTES_MOST) " bytes are told without them") \
	X(COMBINATIONS, "annotate-combinations", 1,                                                                                            \
	  "a function was called with more than " SAY(COMBINATIONS_MOST) " combinations of shapes and types: calls with others are told "      \
	  "without their arguments")                                                                                                           \
	X(VALUES, "annotate-values", 0,                                                                                                        \
	  "values of numbers are not told where there are many: more than " SAY(LIST_VALUES_MOST) " in a list, or more than " SAY(VALUES_MOST) \
	  " combinations of shapes, types and numbers with which a function was called")                                                       \
	X(DEPTH, "annotate-nested-lists", 1, "what stands in lists that are more than " SAY(LIST_DEPTH_MOST) " deep in each other is not told") \
	X(FRAMES, "annotate-frames", 1, "of stacks of more than " SAY(FRAMES_MOST) " frames of Python, or of " SAY(STACK_BYTES_MOST) " bytes, the outermost frames are not told") \
	X(STACKS, "annotate-stacks", 1, "calls came from more than " SAY(STACKS_MOST) " different stacks: those from others have no lines")    \
	X(MODULES, "annotate-modules", 1, "more than " SAY(MODULES_MOST) " modules were called: others have no ranges")                        \
	X(MODELS, "annotate-models", 1, "more than " SAY(MODELS_MOST) " models were called: others have numbers that may be another one's, too") \
	X(INPUTS, "annotate-inputs", 1, "of the calls that made the inputs of a call no more than " SAY(INPUTS_MOST) " are told")              \
	X(MAKERS, "annotate-makers", 1, "so many tensors live at the same time that it is not known of all which call made them: -1, or a name '', stands for it")
#define SAY(number) SAY_(number)
#define SAY_(number) #number

enum limit {
#define LIMIT(name, kind, loss, text) LIMIT_##name,
	LIMITS(LIMIT)
#undef LIMIT
	LIMITS_ALL
};

/* A capture of this process's own has begun: it is told anew what is left out. */
void limits_begin(void);
/* Something was left out. */
void limit_reached(enum limit which);
/* {sentence: how often} of what is lost, since this was asked last. A new reference, or NULL with an exception. */
PyObject *limits_reached(void);

#endif
