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
 *   self.c      the object whose method a frame runs
 *   format*.c   the forms in which calls are written down (format.h); markers.c is what two of them share
 *   overrides.c what tensors are asked is not heard by programs that hear of it
 *   errors.c    what is raised while the program's objects are asked
 *   limits.c    what is left out because there is too much of it
 *   text.c      texts and tables
 *
 * All functions want the GIL. None sets a Python exception unless it says so: what cannot be told is left out, and the program goes on.
 * What interrupts the program while it is asked goes to the program.
 * Tensors are asked for shape, dtype and grad_fn, never for their values. */
#ifndef OPSCOPE_ANNOTATE_H
#define OPSCOPE_ANNOTATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "format.h"
#include "limits.h"
#include "text.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What init() was told. */
struct settings {
	bool on;              /* calls are written down */
	bool stacks, function_stacks, call_ids, layers;
	bool links;           /* forward and backward are linked by hooks */
	const struct format *format;
};
extern struct settings settings;


/* A wrapped call that goes on. */
struct open_call {
	const char *op;       /* of struct wrapper: equal names are equal pointers; NULL: same_op is not set */
	struct open_call *around;
	int64_t number;
};

/* As PyErr_Fetch gives it. */
struct error {
	PyObject *type, *value, *trace;
};

/* Of the calling thread. */
struct thread {
	bool busy;            /* with annotations: nothing that is called meanwhile is written down */
	bool quiet;           /* and no range of Python's either: what is called is no work of the program */
	bool in_node;         /* a range of a backward node is open */
	uint32_t open;        /* ranges that were pushed and not popped */
	unsigned backward;    /* calls of backward() that go on */
	struct open_call *call;
	struct open_layer *layer;
	bool mode;            /* a mode of __torch_function__ hears what tensors are asked */
	PyObject *guard, *hidden_mode; /* while that is hidden from it; NULL = it is not */
	struct error error;   /* type NULL = none: for the program, when what asks it is done */
};
extern __thread struct thread thread_self;

/* Whether what the weak reference was made for is this object, still; with NULL: whether it is gone. */
bool is_referent(PyObject *reference, const PyObject *object);

static inline bool is_list(PyObject *o) { return PyTuple_Check(o) || PyList_Check(o); }

/* The next item of a tuple or list, borrowed: *at is 0 at first. False at its end, and for what is neither. The list may change
 * meanwhile: who runs code of the program, by asking a tensor or by making objects, must hold the item. */
static inline bool next_item(PyObject *o, Py_ssize_t *at, PyObject **item)
{
	if (!is_list(o) || *at >= PySequence_Fast_GET_SIZE(o))
		return false;
	*item = PySequence_Fast_GET_ITEM(o, (*at)++);
	return true;
}

/* ---- overrides.c ---- */

/* Programs hear of what tensors are asked, by a method __torch_function__ of a class of tensors or of a mode: of our questions they must not. */
void overrides_begin(void);
/* Before a tensor is asked: hides it where somebody would hear, from there to overrides_end, between which nothing of the program is called. */
void overrides_hide(const PyObject *tensor);
void overrides_end(void);
/* A function of the module: overrides(plain, heard, guard, set_mode, get_mode), as opscope/torch.py has them; None = torch has no such thing. */
PyObject *overrides(PyObject *self, PyObject *args, PyObject *kwargs);

/* ---- errors.c ---- */

/* After the program was asked something: the exception, if there is one, is cleared, for what cannot be told is left out. One that is no Exception, as
 * KeyboardInterrupt, and what the handler of a signal raised are none of the object that was asked: such a one is kept for error_raise. */
void error_clear(void);
/* Sets the exception that was kept on this thread; false = none. */
bool error_raise(void);

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
	bool same_op;         /* what it calls under its own name is the same op: F.relu() calls torch.relu() */
	struct table texts;   /* arguments -> struct text */
	struct text *bare;    /* of a call without its arguments; made when it is needed */
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
/* For formats: a list as an argument for each of its items; a list of tensors as one argument, false when there is something else in it. */
void args_put_items(struct marker *m, PyObject *name, PyObject *list, unsigned depth);
bool args_put_tensors(struct marker *m, PyObject *name, PyObject *list);
/* {'mod': M, 'strRepr': R} for the module `self`. */
struct text *args_module_text(struct wrapper *w, PyObject *self);
extern PyTypeObject *tensor_type;   /* torch.Tensor's base; NULL before init */
/* False with an exception. */
bool args_tensors_are(PyTypeObject *type);
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

/* ---- self.c ---- */

/* What the variable "self" of the frame is, or that of a function around it; a new reference. NULL = it has none. The frame is left as it is: what
 * its variables hold lives no longer than without. */
PyObject *self_of(PyFrameObject *frame, PyCodeObject *code);

/* ---- layer.c ---- */

/* `self` is a module that is called: layer_begin begins its range, which layer_end ends. Where that is not to be done layer_begin returns 0, and -1 with
 * an exception that the program must see. */
struct open_layer {
	PyObject *module;
	struct open_layer *around;
};
int layer_begin(struct open_layer *l, PyObject *module);
void layer_end(struct open_layer *l);
/* Forgets which module has which name. */
void layer_forget(void);

/* ---- backward.c ---- */

int backward_ready(PyObject *module);
/* Before a wrapped call with these arguments: what made them and is not wrapped gets a range of its own in the backward pass, which belongs to the call
 * that goes on around, if there is one, else to none. */
void backward_inputs(PyObject *const *args, Py_ssize_t n);
/* The call with this number, before which backward_inputs was called, has returned `result`. */
void backward_link(const struct wrapper *w, PyObject *result, int64_t number);
/* Around a call of backward(): begin returns what end wants. */
bool backward_begin(void);
void backward_end(bool was_in_node);

/* ---- calls.c ---- */

/* The number of the call that made the tensor, -1 = not known. */
int64_t calls_maker(PyObject *tensor);
void calls_made(PyObject *result, int64_t number);
/* Numbers of the calls that made the tensors among the arguments; how many. */
int calls_inputs(PyObject *const *args, Py_ssize_t n, int64_t numbers[INPUTS_MOST]);
/* The function stack of a call that begins, for those that its result is given to. */
void calls_name(int64_t number, const struct text *functions);
/* That of the call that made the tensor; NULL = not known. */
const struct text *calls_maker_name(PyObject *tensor);

/* ---- sink.c ---- */

enum listener { LISTENER_NONE, LISTENER_NVTX, LISTENER_OPSCOPE };
/* Who listens to this process; asked once. */
enum listener sink_listener(void);
/* Whether what a range contains is wanted now: false outside of the steps, ranges or times that the user asked for. */
bool sink_wanted(void);
void sink_push(const struct text *t);
void sink_push_op(const struct text *t, int64_t number); /* -1 = none */
void sink_pop(void);
/* Ranges that need not nest, and end on any thread. */
uint64_t sink_start(const struct text *t);
void sink_end(uint64_t range);
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
