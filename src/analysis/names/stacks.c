#include "analysis/names/stacks.h"

#include "analysis/names/names.h"
#include "analysis/tree/fwdbwd.h"
#include "base/mem.h"
#include "base/search.h"
#include "store/reuse.h"
#include "store/torch_names.h"

struct stacks_stack {
	uint32_t frame;     /* innermost */
	uint32_t around;    /* the stack that it was called from; always a smaller number */
	uint32_t user;      /* innermost frame of user code, here or further out; 0 = none */
};

struct stacks {
	struct intern frames; /* "file.py(12): function" */
	struct intern keys;   /* (frame, around) pairs; stack i has key i */
	struct stacks_stack *v;
	uint32_t cap;
	uint32_t *of_span, *of_set; /* of_set: by argument set, what it holds */
	uint8_t *restarts;
	uint64_t from_forward;
	bool is_kept; /* store/reuse.h */
};

/* Files of our own package: opscope.profile and opscope.torch stand between the program and torch. Not all that is in a folder of that name, which
 * may be a program's: __init__.py and __main__.py, which every package may have, call nothing that is recorded. */
static bool is_own_code(struct str frame)
{
	static const char *const files[] = {"_compat.py", "_direct.py", "_event.py", "_events.py", "_frame.py", "_held.py", "_html.py", "_made.py", "_on_demand.py", "_options.py", "_own.py", "_plot.py", "_progress.py", "_ranges.py",
	                                    "_record_function.py", "_recorder.py", "_recording.py", "_records.py", "_reports.py", "_schedule.py", "_torch_modules.py", "flops.py", "job.py", "profiler.py",
	                                    "table.py", "torch.py", "trace.py"};
	const struct str folder = STR("opscope/");
	const char *paren = memchr(frame.p, '(', frame.n);
	struct str path = {frame.p, paren ? (size_t)(paren - frame.p) : frame.n};
	const char *slash = memrchr(path.p, '/', path.n);
	size_t n = slash ? (size_t)(slash + 1 - path.p) : 0;
	if (n < folder.n || memcmp(path.p + n - folder.n, folder.p, folder.n) != 0 || (n > folder.n && path.p[n - folder.n - 1] != '/'))
		return false;
	return ANY_WHERE(i, 0, sizeof files / sizeof files[0], str_eqc((struct str){path.p + n, path.n - n}, files[i]));
}

/* Frames that are not the user's: how they begin, or what their path holds. */
bool stacks_is_user_frame(struct str frame)
{
	static const char *const begins[] = {"<", TORCH_MODULE, "torch/", "threading.py(", "contextlib.py(", "runpy.py(",
	                                     "multiprocessing/", "concurrent/", "importlib/", "/usr/lib/python"};
	static const char *const holds[] = {"site-packages/", "dist-packages/", "/lib/python3", "<built-in", "<frozen",
	                                    "site-packages\\", "\\python\\cpython-", "\\Python3", "\\anaconda3\\lib\\", "\\miniconda3\\lib\\"}; /* Windows */
	if (!frame.n || is_own_code(frame))
		return false;
	return !ANY_WHERE(i, 0, sizeof begins / sizeof begins[0], str_starts(frame, str_from(begins[i]))) &&
	       !ANY_WHERE(i, 0, sizeof holds / sizeof holds[0], str_has(frame, str_from(holds[i])));
}

/* The stack of `frame` called from `around`. */
static uint32_t stacks_push(struct stacks *s, struct str frame, uint32_t around)
{
	uint32_t pair[2] = {intern_str(&s->frames, frame), around}, before = s->keys.n;
	uint32_t id = intern_put_key(&s->keys, pair, sizeof pair);
	if (s->keys.n > before) {
		MEM_GROW(s->v, s->cap, id + 1);
		s->v[id] = (struct stacks_stack){pair[0], around, stacks_is_user_frame(frame) ? pair[0] : s->v[around].user};
	}
	return id;
}

/* A recorded stack: frames innermost first, separated by ';'. */
static uint32_t push_text(struct stacks *s, struct str text, bool (*leave_out)(struct str frame))
{
	uint32_t id = 0;
	while (text.n) {
		const char *cut = memrchr(text.p, ';', text.n);
		const char *begin = cut ? cut + 1 : text.p;
		struct str frame = {begin, (size_t)(text.p + text.n - begin)};
		if (!leave_out || !leave_out(frame))
			id = stacks_push(s, frame, id);
		text.n = cut ? (size_t)(cut - text.p) : 0;
	}
	return id;
}

/* Argument set -> the stack that it holds. */
static uint32_t *recorded_stacks(struct stacks *s, const struct profile *p, bool (*leave_out)(struct str frame))
{
	uint32_t *of_set = NEW_ARRAY(p->arg_set.rows.n, uint32_t);
	for (uint32_t set = 0; set < p->arg_set.rows.n; set++) {
		struct str text;
		if (profile_arg(p, set, ARG_CALL_STACK, &text))
			of_set[set] = push_text(s, text, leave_out);
	}
	return of_set;
}

/* What was recorded at each range, the backward pass as it stands. */
static void own_stacks(struct stacks *s, const struct profile *p)
{
	s->of_set = recorded_stacks(s, p, NULL);
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t up = p->span.parent[i];
		uint32_t around = up == ROW_NONE ? 0 : s->of_span[up];
		if (p->span.kind[i] == SPAN_PYTHON)
			s->of_span[i] = stacks_push(s, profile_str(p, p->span.name[i]), around);
		else
			s->of_span[i] = s->of_set[p->span.args[i]] ? s->of_set[p->span.args[i]] : around;
	}
}

static bool is_module(const struct profile *p, uint32_t span)
{
	return p->span.kind[span] == SPAN_PYTHON && name_is(p, p->span.name[span], NAME_MODULE);
}

static uint32_t stacks_op_around(const struct profile *p, uint32_t span)
{
	uint32_t up = p->span.parent[span];
	return up == ROW_NONE || p->span.kind[up] == SPAN_OP ? up : p->span.op[up];
}

/* The backward pass while it is gone through; rows are in pre-order, so that what is around stands first. */
struct backward {
	uint32_t *base;      /* in a node: the forward op's stack with the frames inside the node upon it; else 0 */
	uint8_t *recomputed; /* a module was called between the node and the range */
};

static void in_node(struct stacks *s, const struct profile *p, struct backward *b, uint32_t i)
{
	bool python = p->span.kind[i] == SPAN_PYTHON;
	if (b->recomputed[i]) {
		uint32_t op = stacks_op_around(p, i);
		s->restarts[i] = op == ROW_NONE || !b->recomputed[op];
		return;
	}
	if (python) { /* its own stack stays: what it calls stands upon the forward op's */
		b->base[i] = stacks_push(s, profile_str(p, p->span.name[i]), b->base[i]);
		return;
	}
	if (profile_arg_id(p, p->span.args[i], ARG_SOURCE_LINES)) { /* what its kernel was generated from, in the backward pass as in the forward */
		b->base[i] = s->of_span[i];
		return;
	}
	s->of_span[i] = b->base[i];
	s->from_forward += p->span.kind[i] == SPAN_OP;
}

static void forward_stacks(struct stacks *s, const struct profile *p, const struct fwdbwd *f)
{
	uint32_t n = p->span.rows.n;
	struct backward b = {NEW_ARRAY(n, uint32_t), NEW_ARRAY(n, uint8_t)};
	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = p->span.parent[i], forward = fwdbwd_forward(f, i);
		if (forward != ROW_NONE) {
			b.base[i] = s->of_span[forward];
			s->restarts[i] = b.base[i] != 0;
		} else if (up != ROW_NONE) {
			b.base[i] = b.base[up];
			b.recomputed[i] = b.recomputed[up] || (b.base[i] && is_module(p, i));
		}
		if (b.base[i])
			in_node(s, p, &b, i);
	}
	mem_free(b.base);
	mem_free(b.recomputed);
}

static struct stacks *stacks_empty(const struct profile *p)
{
	struct stacks *s = NEW(struct stacks);
	intern_init(&s->frames);
	intern_init(&s->keys); /* key 0, the empty string, is the empty stack */
	MEM_GROW(s->v, s->cap, 1);
	s->v[0] = (struct stacks_stack){0};
	s->of_span = NEW_ARRAY(p->span.rows.n, uint32_t);
	s->restarts = NEW_ARRAY(p->span.rows.n, uint8_t);
	return s;
}

struct stacks *stacks_new_linked(const struct profile *p, const struct fwdbwd *links)
{
	struct stacks *s = stacks_empty(p);
	own_stacks(s, p);
	if (s->keys.n > 1)
		forward_stacks(s, p, links);
	return s;
}

static void stacks_release(void *result)
{
	struct stacks *s = result;
	intern_release(&s->frames);
	intern_release(&s->keys);
	mem_free(s->v);
	mem_free(s->of_span);
	mem_free(s->of_set);
	mem_free(s->restarts);
	mem_free(s);
}

void stacks_free(struct stacks *s)
{
	if (s && !s->is_kept)
		stacks_release(s);
}

static const char stacks_kept[] = "stacks";

struct stacks *stacks_new(const struct profile *p)
{
	struct stacks *kept = reuse_find(p, stacks_kept);
	if (kept)
		return kept;
	struct fwdbwd *links = fwdbwd_new(p);
	struct stacks *s = stacks_new_linked(p, links);
	fwdbwd_free(links);
	reuse_keep(p, stacks_kept, s, stacks_release, &s->is_kept);
	return s;
}

struct stacks *stacks_recorded_new(const struct profile *p, bool (*leave_out)(struct str frame))
{
	struct stacks *s = stacks_empty(p);
	s->of_set = recorded_stacks(s, p, leave_out);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		s->of_span[i] = s->of_set[p->span.args[i]];
	return s;
}

uint32_t stacks_of(const struct stacks *s, uint32_t span)
{
	return s->of_span[span];
}

uint32_t stacks_of_args(const struct stacks *s, uint32_t set)
{
	return s->of_set[set];
}

bool stacks_restarts(const struct stacks *s, uint32_t span)
{
	return s->restarts[span];
}

void stacks_text(const struct stacks *s, uint32_t stack, struct buf *out)
{
	for (uint32_t at = stack; at; at = s->v[at].around) {
		if (at != stack)
			buf_char(out, ';');
		buf_str(out, intern_get(&s->frames, s->v[at].frame));
	}
}

bool stacks_pop(const struct stacks *s, uint32_t *stack, struct str *frame)
{
	if (!*stack)
		return false;
	*frame = intern_get(&s->frames, s->v[*stack].frame);
	*stack = s->v[*stack].around;
	return true;
}

uint32_t stacks_count(const struct stacks *s)
{
	return s->keys.n;
}

struct str stacks_user_line(const struct stacks *s, uint32_t stack)
{
	return intern_get(&s->frames, s->v[stack].user);
}

bool stacks_any(const struct stacks *s)
{
	return s->keys.n > 1;
}

uint64_t stacks_from_forward(const struct stacks *s)
{
	return s->from_forward;
}
