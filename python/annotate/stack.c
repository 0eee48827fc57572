/* Where a call stands in the program. Frames are compared by code and instruction; names and lines are asked for once a place. */
#include "annotate.h"

#if PY_VERSION_HEX < 0x030b0000
#include <frameobject.h>
#define PyFrame_GetLasti(frame) ((frame)->f_lasti)
#endif

struct stack {
	uint32_t n;
	bool cut;               /* its texts would be too long with all places */
	struct text *lines, *plain_marker;
	struct table markers;   /* function stack, and whether lines stand once (addresses are even) -> struct text */
	struct place {
		PyObject *file, *function;
		int line;
	} place[];
};

static struct table stacks;
static PyObject *own_folder;   /* str, or NULL */

void stack_leave_out(PyObject *folder)
{
	Py_XINCREF(folder);
	Py_XSETREF(own_folder, folder);
}

static bool is_own(PyCodeObject *code)
{
	bool own = own_folder && PyUnicode_Tailmatch(code->co_filename, own_folder, 0, PY_SSIZE_T_MAX, -1) == 1;
	PyErr_Clear();
	return own;
}

/* The frames of this thread, innermost first; the references are the caller's. */
static uint32_t frames_now(PyFrameObject **frame)
{
	uint32_t n = 0;
	PyFrameObject *f = PyEval_GetFrame();
	Py_XINCREF(f);
	while (f && n < FRAMES_MOST) {
		frame[n++] = f;
		f = PyFrame_GetBack(f);
	}
	if (UNLIKELY(f != NULL))
		limit_reached(LIMIT_FRAMES);
	Py_XDECREF(f);
	return n;
}

static void release(PyFrameObject **frame, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		Py_DECREF(frame[i]);
}

static const char *utf8(PyObject *text)
{
	const char *p = text ? PyUnicode_AsUTF8(text) : NULL;
	if (!p)
		PyErr_Clear();
	return p ? p : "?";
}

/* Code objects that are known by their address are never given back. */
static struct stack *made(PyFrameObject **frame, uint32_t n)
{
	enum { BESIDE = 20 /* bytes of a place beside its names: line, quotes, separators */ };
	struct stack *s = PyMem_Calloc(1, sizeof *s + n * sizeof s->place[0]);
	size_t bytes = 0;
	for (uint32_t i = 0; s && !s->cut && i < n; i++) {
		PyCodeObject *code = PyFrame_GetCode(frame[i]);
		if (is_own(code))
			continue;
		bytes += strlen(utf8(code->co_filename)) + strlen(utf8(code->co_name)) + BESIDE;
		s->cut = bytes > STACK_BYTES_MOST;
		if (!s->cut)
			s->place[s->n++] = (struct place){code->co_filename, code->co_name, PyFrame_GetLineNumber(frame[i])};
	}
	return s;
}

struct stack *stack_now(void)
{
	PyFrameObject *frame[FRAMES_MOST];
	uint64_t key[2 * FRAMES_MOST];
	uint32_t n = frames_now(frame);
	for (uint32_t i = 0; i < n; i++) {
		PyCodeObject *code = PyFrame_GetCode(frame[i]);
		key[2 * i] = (uintptr_t)code;
		key[2 * i + 1] = (uint64_t)PyFrame_GetLasti(frame[i]);
		Py_DECREF(code);
	}
	uint64_t hash = hash_words(key, 2 * n);
	struct stack *s = table_find(&stacks, key, 2 * n, hash);
	if (UNLIKELY(!s) && stacks.n >= STACKS_MOST) {
		limit_reached(LIMIT_STACKS);
	} else if (UNLIKELY(!s) && n) {
		s = made(frame, n);
		if (s && !table_add(&stacks, key, 2 * n, hash, s)) {
			PyMem_Free(s);
			s = NULL;
		}
	}
	release(frame, n);
	if (s && UNLIKELY(s->cut))
		limit_reached(LIMIT_FRAMES);
	return s;
}

const struct text *stack_lines(struct stack *s)
{
	struct line l = {NULL, 0, 0};
	if (LIKELY(s->lines != NULL))
		return s->lines;
	for (uint32_t i = 0; i < s->n; i++) {
		line_put(&l, i ? ";" : "");
		line_put(&l, utf8(s->place[i].file));
		line_format(&l, "(%d): ", s->place[i].line);
		line_put(&l, utf8(s->place[i].function));
	}
	return s->lines = line_text(&l);
}

/* ---- PyProf's and DLProf's marker ---- */

static void put_quoted(struct line *l, const char *file, int line)
{
	PyObject *text = PyUnicode_FromFormat("%s:%d", file, line);
	if (!text || !line_repr(l, text))
		PyErr_Clear();
	Py_XDECREF(text);
}

static struct text *marker_text(const struct stack *s, const struct text *functions)
{
	struct line l = {NULL, 0, 0};
	const struct place *before = NULL;
	line_put(&l, "{'traceMarker': [");
	for (uint32_t i = s->n; i-- > 0;) {
		const struct place *p = &s->place[i];
		bool again = before && before->line == p->line && strcmp(utf8(before->file), utf8(p->file)) == 0;
		if (again && settings.format->lines_not_twice)
			continue;
		line_put(&l, before ? ", " : "");
		put_quoted(&l, utf8(p->file), p->line);
		before = p;
	}
	line_put(&l, "]");
	if (functions && l.n + functions->n > TEXT_BYTES_MOST) {
		limit_reached(LIMIT_FRAMES);
		functions = NULL;
	}
	if (functions)
		line_put(&l, ", 'funcStack': '");
	if (functions)
		line_add(&l, functions->p, functions->n);
	line_put(&l, functions ? "'}" : "}");
	return line_text(&l);
}

const struct text *stack_marker(struct stack *s, const char *op)
{
	const struct text *functions = settings.function_stacks ? stack_functions(op) : NULL;
	uint64_t key = (uintptr_t)functions | settings.format->lines_not_twice, hash = hash_words(&key, 1);
	struct text *t = table_find(&s->markers, &key, 1, hash);
	if (!t && (t = marker_text(s, functions)) != NULL && !table_add(&s->markers, &key, 1, hash, t)) {
		text_free(t);
		t = NULL;
	}
	return t;
}

/* ---- function stacks ---- */

/* A function called from a place: its name there, and all names before it. The second place in one caller from which the same function is called
 * has "(2)" behind the name, the third "(3)". */
struct node {
	char *shown;          /* "/main/Net::forward": without wrappers and names that come twice in a row */
	char *name;
	char *suffix;         /* what the number of a wrapper adds to the op's name */
	uint32_t callees;     /* of struct node that counts */
	struct text *text;    /* of a call of an op */
};

static struct table nodes, counts;
static struct node root = {.shown = "", .name = "", .suffix = ""};

static char *joined(const char *a, const char *b, const char *c)
{
	size_t n = strlen(a), m = strlen(b), o = strlen(c);
	char *p = PyMem_Malloc(n + m + o + 1);
	if (p) {
		memcpy(p, a, n);
		memcpy(p + n, b, m);
		memcpy(p + n + m, c, o + 1);
	}
	return p;
}

static bool is_wrapper(const char *function)
{
	return strcmp(function, "wrapper_func") == 0 || strcmp(function, "always_benchmark_wrapper") == 0;
}

/* How many places there are in `around` that call this function; counted up when this is a new one. */
static uint32_t count_callee(struct node *around, const char *function, uint64_t what)
{
	uint64_t key[3] = {(uintptr_t)around, (uintptr_t)function, what};
	uint64_t hash = hash_words(key, 3);
	uint32_t *n = table_find(&counts, key, 3, hash);
	if (!n && (n = PyMem_Calloc(1, sizeof *n)) != NULL && !table_add(&counts, key, 3, hash, n)) {
		PyMem_Free(n);
		n = NULL;
	}
	return n ? ++*n : 1;
}

static void name_node(struct node *n, const struct node *around, const char *class, const char *function, uint32_t number)
{
	char count[16] = "";
	bool wrapper = is_wrapper(function) && !*class;
	if (number > 1)
		snprintf(count, sizeof count, "(%u)", number);
	char *base = joined(class, *class ? "::" : "", function);
	n->name = joined(base ? base : "", count, "");
	bool left_out = wrapper || (n->name && strcmp(n->name, around->name) == 0);
	n->shown = left_out ? joined(around->shown, "", "") : joined(around->shown, "/", n->name ? n->name : "");
	n->suffix = joined(wrapper && *count ? count : around->suffix, "", "");
	if (left_out) {
		PyMem_Free(n->name);
		n->name = joined(around->name, "", "");
	}
	PyMem_Free(base);
}

/* The function `function` (a text of same_text, as is `file`) of an object of `class`, called in `around` from that line. Functions of the same name
 * that differ in `what` are counted apart. */
static struct node *node_at(struct node *around, const char *class, const char *function, uint64_t what, const char *file, int line)
{
	uint64_t key[5] = {(uintptr_t)around, (uintptr_t)function, what, (uintptr_t)file, (uint64_t)line};
	uint64_t hash = hash_words(key, 5);
	struct node *n = table_find(&nodes, key, 5, hash);
	if (n)
		return n;
	n = PyMem_Calloc(1, sizeof *n);
	if (!n)
		return NULL;
	name_node(n, around, class, function, count_callee(around, function, what));
	if (!n->shown || !n->name || !n->suffix || !table_add(&nodes, key, 5, hash, n)) {
		PyMem_Free(n->shown);
		PyMem_Free(n->name);
		PyMem_Free(n->suffix);
		PyMem_Free(n);
		return NULL;
	}
	return n;
}

/* Equal texts at equal addresses, for as long as the process lives. */
static const char *same_text(const char *p)
{
	static PyObject *known; /* str -> itself */
	PyObject *text = PyUnicode_FromString(p), *kept = NULL;
	if (!known)
		known = PyDict_New();
	if (text && known)
		kept = PyDict_SetDefault(known, text, text);
	const char *out = kept ? PyUnicode_AsUTF8(kept) : NULL;
	PyErr_Clear();
	Py_XDECREF(text);
	return out ? out : "";
}

/* DLProf does not look at the class when it asks whether it knows a function: of several that are called from one line all have the first one's. */
static struct node *node_of_frame(struct node *around, PyFrameObject *frame, const char **file, int *line)
{
	PyCodeObject *code = PyFrame_GetCode(frame);
	if (is_own(code)) {
		Py_DECREF(code);
		return around;
	}
	PyObject *self = self_of(frame, code);
	const char *class = self ? same_text(last_name(Py_TYPE(self)->tp_name)) : "";
	uint64_t what = settings.format->functions_by_name ? 0 : (uintptr_t)class;
	struct node *n = node_at(around, class, same_text(utf8(code->co_name)), what, *file, *line);
	*file = same_text(utf8(code->co_filename));
	*line = PyFrame_GetLineNumber(frame);
	Py_XDECREF(self);
	Py_DECREF(code);
	return n;
}

const struct text *stack_functions(const char *op)
{
	PyFrameObject *frame[FRAMES_MOST];
	uint32_t n = frames_now(frame);
	struct node *at = &root;
	const char *file = "";
	int line = 0;
	for (uint32_t i = n; at && i-- > 0;)
		at = node_of_frame(at, frame[i], &file, &line);
	/* The wrapper itself is a function that is called there, another one for each op. */
	struct node *call = at ? node_at(at, "", same_text("wrapper_func"), (uintptr_t)same_text(op), file, line) : NULL;
	release(frame, n);
	if (!call)
		return NULL;
	if (!call->text) {
		struct line l = {NULL, 0, 0};
		line_put(&l, at->shown);
		line_put(&l, "/");
		line_put(&l, op);
		line_put(&l, call->suffix);
		call->text = line_text(&l);
	}
	return call->text;
}
