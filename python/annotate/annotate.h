/* opscope._annotate: what the calls of a PyTorch program are told to whoever records it.
 *
 *   wrapper.c   the objects that stand where torch's functions stood
 *   args.c      a call's arguments as a text, made once for each combination of shapes, types and values
 *   stack.c     from where it was called: lines, and DLProf's function stacks
 *   layer.c     nn.Module.__call__: which layer of the model is running
 *   backward.c  forward calls and what the engine of autograd does for them, where torch itself does not say so
 *   calls.c     which call made a tensor
 *   sink.c      where all this goes: opscope's capture library, or whatever tool listens to NVTX
 *   capture.c   a capture that this process makes of itself
 *
 * All functions want the GIL. None sets a Python exception unless it says so: what cannot be told is left out, and the program goes on.
 * Tensors are asked for shape, dtype and grad_fn, never for their values. */
#ifndef OPSCOPE_ANNOTATE_H
#define OPSCOPE_ANNOTATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* How calls are written down. */
enum format {
	FORMAT_OWN,     /* a range with arguments; needs the capture library */
	FORMAT_PYPROF,  /* PyProf's markers, ranges in each other */
	FORMAT_DLPROF,  /* the same as DLProf's module has them */
};

/* What init() was told. */
struct settings {
	bool on;              /* calls are written down */
	bool stacks, function_stacks, call_ids, layers;
	bool links;           /* forward and backward are linked by hooks */
	enum format format;
};
extern struct settings settings;

/* A text that is written more than once. `name` is the capture library's number for it, 0 = none. */
struct text {
	char *p;
	uint32_t n, name;
};

/* A text that grows. */
struct line {
	char *p;
	size_t n, cap;
};
void line_add(struct line *l, const char *p, size_t n);
void line_put(struct line *l, const char *text);
/* For what is short: numbers, names of types. More than 255 bytes are cut off. */
void line_format(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As repr() writes it; false when it cannot be had. */
bool line_repr(struct line *l, PyObject *value);
/* The line becomes a text, and empty. NULL without memory. */
struct text *line_text(struct line *l);

/* A wrapped call that goes on. */
struct open_call {
	const char *op;       /* of struct wrapper: equal names are equal pointers; NULL: same_op is not set */
	struct open_call *around;
};

/* Of the calling thread. */
struct thread {
	bool busy;            /* with annotations: nothing that is called meanwhile is written down */
	bool in_node;         /* a range of a backward node is open */
	unsigned backward;    /* calls of backward() that go on */
	PyObject *hooked;     /* weak: the result of a call inside of the one that goes on, which has its hook; NULL = none */
	struct open_call *call;
	struct open_layer *layer;
};
extern __thread struct thread thread_self;

/* Whether what the weak reference was made for is this object, still; with NULL: whether it is gone. */
bool is_referent(PyObject *reference, const PyObject *object);

/* ---- a table from words to a pointer ---- */

/* Keys are copied; equal if they are equal word by word. */
struct table {
	struct slot {
		uint64_t hash;        /* 0 = free */
		uint32_t n;
		uint64_t *key;
		void *value;
	} *slot;
	uint32_t n, cap;
};
uint64_t hash_words(const uint64_t *key, uint32_t n);
void *table_find(const struct table *t, const uint64_t *key, uint32_t n, uint64_t hash);
/* False without memory. The key must not be there. */
bool table_add(struct table *t, const uint64_t *key, uint32_t n, uint64_t hash, void *value);

/* ---- wrapper.c ---- */

struct wrapper {
	PyObject_HEAD
	vectorcallfunc call;
	PyObject *function;   /* what is wrapped */
	PyObject *owner;      /* the module or class that it was taken from */
	PyObject *name;       /* str, interned: its attribute there */
	PyObject *before;     /* called once, before the first call; or NULL */
	PyObject *weakrefs;
	const char *op;       /* of `name` */
	char *module;         /* `owner` as it is called in markers */
	bool has_repr;        /* a forward() whose module is described by extra_repr() */
	bool in_place;        /* by its name it changes what it is given */
	bool same_op;         /* what it calls under its own name is the same op: F.relu() calls torch.relu() */
	struct table texts;   /* arguments -> struct text */
};
extern PyTypeObject *wrapper_function_type, *wrapper_method_type;
/* The method is nn.Module.__call__. */
void wrapper_is_layer(struct wrapper *w);
int wrapper_ready(PyObject *module);

/* ---- args.c ---- */

/* The marker for a call with these arguments; NULL = it cannot be said. */
const struct text *args_text(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
/* The same, made anew, with DLProf's call ids. Free with text_free. */
struct text *args_text_with_ids(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, int64_t call);
void text_free(struct text *t);
/* {'mod': M, 'strRepr': R} for the module `self`. */
struct text *args_module_text(struct wrapper *w, PyObject *self);
extern PyTypeObject *tensor_type;   /* torch.Tensor's base; NULL before init */
static inline bool is_tensor(PyObject *o) { return tensor_type && PyObject_TypeCheck(o, tensor_type); }

/* ---- stack.c ---- */

struct stack;
/* Frames of files whose paths begin so are left out: those of this package. NULL = none. */
void stack_leave_out(PyObject *folder);
/* Where the program stands; NULL = not known. The same pointer for the same place. */
struct stack *stack_now(void);
/* "file(line): function" of each frame, innermost first, ';' between them. */
const struct text *stack_lines(struct stack *s);
/* {'traceMarker': [...]} of the format that is set, with the function stack for a call of `op` where those are wanted. */
const struct text *stack_marker(struct stack *s, const char *op);
/* "/main/Net::forward/conv2d(2)"; NULL = cannot be had. */
const struct text *stack_functions(const char *op);

/* ---- layer.c ---- */

/* `self` is a module that is called: begins its range; layer_end ends it. */
struct open_layer {
	PyObject *module;
	struct open_layer *around;
};
bool layer_begin(struct open_layer *l, PyObject *module);
void layer_end(struct open_layer *l);
/* Forgets which module has which name. */
void layer_forget(void);

/* ---- backward.c ---- */

int backward_ready(PyObject *module);
/* The call with this number has returned `result`. */
void backward_link(struct wrapper *w, PyObject *const *args, Py_ssize_t n, PyObject *result, int64_t number);
/* Around a call of backward(): begin returns what end wants. */
bool backward_begin(void);
void backward_end(bool was_in_node);

/* ---- calls.c ---- */

/* The number of the call that made the tensor, -1 = not known. */
int64_t calls_maker(PyObject *tensor);
void calls_made(PyObject *result, int64_t number);
/* Numbers of the calls that made the tensors among the arguments, at most `most`. */
int calls_inputs(PyObject *const *args, Py_ssize_t n, int64_t *numbers, int most);
/* The function stack of a call, for those that its result is given to. */
void calls_name(int64_t number, const struct text *functions);
const struct text *calls_name_of(int64_t number);

/* ---- sink.c ---- */

enum listener { LISTENER_NONE, LISTENER_NVTX, LISTENER_OPSCOPE };
/* Who listens to this process; asked once. */
enum listener sink_listener(void);
/* Whether what a range contains is wanted now: false outside of the steps, ranges or times that the user asked for. */
bool sink_wanted(void);
void sink_push(const struct text *t);
void sink_push_op(const struct text *t, int64_t number); /* -1 = none */
void sink_pop(void);
/* The process is about to leave in order, but not by exit(). */
void sink_leaving(void);
/* Of the range that was pushed last. */
void sink_arg_text(const char *key, const struct text *value);
void sink_arg_number(const char *key, int64_t value);
void sink_arg_numbers(const char *key, const int64_t *values, int n);
/* From now on opscope's library listens, which records this process because it asked for that (true, after opscope_capture_begin), or who listened before. */
void sink_capture(bool on);
/* For tests: copies all that is written into this list, as ("push", text), ("pop",), ...; NULL = no more. */
void sink_copy(PyObject *list);

/* ---- capture.c: functions of the module ---- */

PyObject *capture_begin(PyObject *self, PyObject *args);
PyObject *capture_end(PyObject *self, PyObject *unused);

#endif
