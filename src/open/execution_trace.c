#include "open/execution_trace.h"

#include "base/buf.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "io/json.h"
#include "io/pyliteral.h"
#include "io/source.h"

#include <stdlib.h>

/* The values of a node in memory take some 30 times the bytes of its text. */
enum { ET_MOST_BYTES = 1 << 30, ET_NODE_BYTES = 8 << 20 };

/* An op as the execution trace states it. What ops are paired by is read of all nodes at once; the rest stays text until et_tell. */
struct et_node {
	int64_t id, function_id; /* function_id 0 = not stated */
	struct str name, text;   /* text: JSON */
};

/* What a node's text tells of the op. NULL: not stated. */
struct et_told {
	struct str schema;
	const struct py *values[2], *shapes[2], *types[2], *strides[2]; /* [0]: of the inputs; [1]: of the outputs */
};

struct et {
	int64_t pid;             /* 0 = not stated */
	bool has_schema, has_nodes;
	struct buf text;
	struct arena arena;      /* owns names that the text has with escapes */
	struct et_node *node;
	uint32_t n, cap;
};

/* An op of the recording. */
struct et_op {
	int64_t id, function_id;
	uint32_t row;
};

static void et_release(struct et *t)
{
	buf_release(&t->text);
	arena_release(&t->arena);
	mem_free(t->node);
	*t = (struct et){0};
}

static int64_t et_number(const struct py *v)
{
	return v && v->type == PY_INT ? v->i : 0;
}

static struct str et_text(const struct py *v)
{
	return v && v->type == PY_STR ? v->s : (struct str){"", 0};
}

/* The attribute `name` of a node. Newer schemas have attributes in the list "attrs", older ones in the node itself. */
static const struct py *et_attribute(const struct py *node, const char *name)
{
	const struct py *attrs = py_get(node, "attrs");
	for (const struct py *a = attrs && attrs->type == PY_LIST ? attrs->first : NULL; a; a = a->next)
		if (str_eqc(et_text(py_get(a, "name")), name))
			return py_get(a, "value");
	return py_get(node, name);
}

static const struct py *et_list(const struct py *v)
{
	return v && v->type == PY_LIST ? v : NULL;
}

/* Whether ops of this name are not paired. Whether steps and the data loader are in the recording, in the execution trace or in both differs from version to version. */
static bool et_is_left_out(struct str name)
{
	return str_starts(name, STR("ProfilerStep")) || str_starts(name, STR("enumerate(DataLoader)")) || str_starts(name, STR("[pytorch|profiler|execution_"));
}

static const struct py *et_list_of(const struct py *group, bool newer, const char *key, const struct py *node, const char *older)
{
	return et_list(newer ? py_get(group, key) : py_get(node, older));
}

static struct et_told et_tell(const struct et_node *x, struct arena *a)
{
	static const char *const older[2][3] = {{"inputs", "input_shapes", "input_types"}, {"outputs", "output_shapes", "output_types"}};
	size_t at;
	const struct py *node = py_parse(x->text, a, &at);
	struct et_told told = {.schema = et_text(et_attribute(node, "op_schema"))};
	for (int k = 0; k < 2; k++) {
		const struct py *group = py_get(node, older[k][0]);
		const bool newer = group && group->type == PY_DICT;
		told.values[k] = et_list_of(group, newer, "values", node, older[k][0]);
		told.shapes[k] = et_list_of(group, newer, "shapes", node, older[k][1]);
		told.types[k] = et_list_of(group, newer, "types", node, older[k][2]);
		told.strides[k] = newer ? et_list(py_get(group, "strides")) : NULL;
	}
	return told;
}

static bool et_holds(struct str text, struct str part)
{
	return part.p >= text.p && part.p + part.n <= text.p + text.n;
}

/* False, and *bad: the node is no JSON there. */
static bool et_add(struct et *t, struct str text, const char **bad)
{
	struct arena a = {0};
	size_t at;
	const struct py *node = py_parse(text, &a, &at), *id = py_get(node, "id");
	struct et_node x = {.id = et_number(id), .name = et_text(py_get(node, "name")), .function_id = et_number(et_attribute(node, "rf_id")), .text = text};
	/* Nodes with "cat" are device work, which traces that were linked with a Kineto trace have. */
	if (id && x.name.n && !et_is_left_out(x.name) && !py_get(node, "cat")) {
		if (!et_holds(text, x.name))
			x.name = arena_str(&t->arena, x.name);
		MEM_PUSH(t->node, t->n, t->cap, x);
	}
	*bad = text.p + at;
	arena_release(&a);
	return node;
}

static int et_by_id(const void *a, const void *b)
{
	const struct et_node *x = a, *y = b;
	return COMPARE(x->id, y->id);
}

static int et_fail_format(const char *path, struct err *e)
{
	return err_set(e, ERR_FORMAT, "%s: not an execution trace: an object with \"schema\" and \"nodes\" was expected", path);
}

static int et_fail_json(const struct et *t, const char *at, const char *path, struct err *e)
{
	const size_t byte = (size_t)(at - t->text.p);
	if (byte >= t->text.n)
		return err_set(e, ERR_FORMAT, "%s: the file ends early, at byte %zu: an execution trace was expected", path, t->text.n);
	return err_set(e, ERR_FORMAT, "%s: byte %zu: not JSON: an execution trace was expected", path, byte);
}

/* Reads the nodes. *at: behind '[', then behind ']'; NULL = the text is damaged, as *j says. */
static int et_read_nodes(struct et *t, struct json *j, const char **at, const char *path, struct err *e)
{
	struct json_value v;
	bool first = true, done = false;
	const char *bad;
	while ((*at = json_element(j, *at, &first, &done)) && !done) {
		const size_t byte = (size_t)(*at - t->text.p);
		if (!(*at = json_value(j, *at, &v)))
			break;
		if (v.raw.n > ET_NODE_BYTES)
			return err_set(e, ERR_LIMIT, "%s: byte %zu: a node of %zu MB: nodes of an execution trace were expected, of %d MB at most", path, byte, v.raw.n >> 20, ET_NODE_BYTES >> 20);
		if (v.type == JSON_OBJECT && !et_add(t, v.raw, &bad))
			return et_fail_json(t, bad, path, e);
	}
	return 0;
}

/* The members of the trace. No more of it is in memory at a time than its text, and the values of one node. */
static int et_read_members(struct et *t, const char *path, struct err *e)
{
	const char *end = t->text.p + t->text.n, *at = json_space(t->text.p);
	struct json j = {.end = end};
	struct json_value key, v;
	bool first = true, is_object = *at == '{';
	at = is_object ? at + 1 : json_skip(&j, at);
	while (is_object && (at = json_member(&j, at, &first, &key)) && key.raw.p) {
		t->has_schema |= str_eqc(key.raw, "schema");
		if (str_eqc(key.raw, "nodes") && *at == '[' && !t->has_nodes) {
			t->has_nodes = true;
			at++;
			if (et_read_nodes(t, &j, &at, path, e) < 0)
				return -1;
		} else if ((at = json_value(&j, at, &v)) && str_eqc(key.raw, "pid")) {
			t->pid = 0;
			json_to_i64(v.raw, &t->pid);
		}
		if (!at)
			break;
	}
	if (!at)
		return et_fail_json(t, j.status == JSON_BAD ? j.bad : end, path, e);
	at = json_space(at);
	return at < end ? et_fail_json(t, at, path, e) : 0;
}

static int et_read(struct et *t, const char *path, struct err *e)
{
	if (source_read_whole(path, ET_MOST_BYTES, "of an execution trace", &t->text, e) < 0)
		return -1;
	const size_t n = t->text.n;
	buf_fill(&t->text, 0, JSON_PADDING);
	t->text.n = n;
	if (et_read_members(t, path, e) < 0)
		return -1;
	if (!t->has_nodes || !t->has_schema)
		return et_fail_format(path, e);
	if (t->n)
		qsort(t->node, t->n, sizeof *t->node, et_by_id);
	return 0;
}

/* ---- which of a folder ---- */

static bool et_has_process(const struct profile *p, int64_t pid)
{
	return ANY_WHERE(i, 0, p->track.rows.n, p->track.pid[i] == pid);
}

/* Whether the file begins as an execution trace does, and is of a process that the recording has. */
static bool et_is_of(const struct profile *p, const char *path)
{
	struct err unread;
	struct source *s = source_open_regular(path, &unread);
	struct str head = s ? source_peek(s) : (struct str){"", 0};
	const ptrdiff_t nodes = str_find(head, STR("\"nodes\"")), at = str_find(head, STR("\"pid\":"));
	int64_t pid = 0;
	bool is = nodes >= 0 && at >= 0 && at < nodes && str_find(head, STR("\"schema\"")) >= 0;
	for (size_t i = (size_t)at + 6; is && i < head.n && (is_digit(head.p[i]) || head.p[i] == ' ') && pid < INT32_MAX; i++)
		pid = head.p[i] == ' ' ? pid : pid * 10 + (head.p[i] - '0');
	if (s)
		source_close(s);
	return is && et_has_process(p, pid);
}

/* The path of the file to read: `path` itself; where it is a folder, the first file by name that is of a process of the recording. */
static int et_choose(const struct profile *p, const char *path, struct buf *chosen, struct err *e)
{
	struct folder f;
	const char *name;
	struct buf at = {0};
	if (!folder_open(&f, path)) {
		folder_close(&f);
		buf_printf(chosen, "%s", path);
		buf_end_text(chosen);
		return 0;
	}
	while ((name = folder_next(&f))) {
		if (!str_ends(str_from(name), STR(".json")) && !str_ends(str_from(name), STR(".json.gz")))
			continue;
		buf_clear(&at);
		buf_printf(&at, "%s/%s", path, name);
		buf_end_text(&at);
		if ((chosen->n && strcmp(at.p, chosen->p) > 0) || !et_is_of(p, at.p))
			continue;
		buf_clear(chosen);
		buf_str(chosen, buf_view(&at));
		buf_end_text(chosen);
	}
	folder_close(&f);
	buf_release(&at);
	return chosen->n ? 0 : err_set(e, ERR_DATA, "%s: no execution trace in this folder is of a process of this recording", path);
}

/* ---- pairs ---- */

static int et_op_by_id(const void *a, const void *b)
{
	const struct et_op *x = a, *y = b;
	return COMPARE(x->id, y->id) ?: COMPARE(x->row, y->row);
}

/* Ops and annotations, in the order of their External ids. */
static struct et_op *et_ops(const struct profile *p, uint32_t *n, bool *has_function_ids)
{
	struct et_op *v = NULL;
	uint32_t cap = 0;
	*n = 0;
	*has_function_ids = false;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		const struct str name = profile_str(p, p->span.name[i]);
		struct et_op x = {.id = span_ext_id(&p->span, i), .row = i};
		struct str id;
		if ((p->span.kind[i] != SPAN_OP && p->span.kind[i] != SPAN_USER) || x.id == ID_NONE || et_is_left_out(name))
			continue;
		if (profile_arg(p, p->span.args[i], ARG_FUNCTION_ID, &id) && str_to_i64(id, &x.function_id) && x.function_id > 0)
			*has_function_ids = true;
		MEM_PUSH(v, *n, cap, x);
	}
	if (*n)
		qsort(v, *n, sizeof *v, et_op_by_id);
	return v;
}

static int et_fail_other(const struct profile *p, const char *path, const struct et_node *x, const struct et_op *op, struct err *e)
{
	return err_set(e, ERR_DATA, "%s: of another run: its op " STR_FMT " is " STR_FMT " in the recording", path, STR_ARG(x->name), STR_ARG(profile_str(p, p->span.name[op->row])));
}

/* Function id -> node. twice[i]: another node has the function id of node i, which is the first one with this id. */
static void et_map_functions(const struct et *t, struct idmap *map, bool *twice)
{
	int64_t min = INT64_MAX, max = INT64_MIN;
	for (uint32_t i = 0; i < t->n; i++) {
		min = t->node[i].function_id < min ? t->node[i].function_id : min;
		max = t->node[i].function_id > max ? t->node[i].function_id : max;
	}
	idmap_init(map, min, max, t->n);
	for (uint32_t i = 0; i < t->n; i++) {
		const uint32_t k = t->node[i].function_id > 0 ? idmap_get(map, t->node[i].function_id) : IDMAP_NONE;
		if (k != IDMAP_NONE)
			twice[k] = true;
		else if (t->node[i].function_id > 0)
			idmap_put(map, t->node[i].function_id, i);
	}
}

/* node_of[i]: the node of op i; NULL = none. A function id that several ops or several nodes have pairs none of them. */
static int et_pair_by_function(struct profile *p, const struct et *t, const struct et_op *op, uint32_t n, const struct et_node **node_of, const char *path, struct err *e)
{
	struct idmap map;
	bool *twice = NEW_ARRAY(t->n, bool);
	uint32_t *of = mem_filled(n, IDMAP_NONE), *uses = NEW_ARRAY(t->n, uint32_t), paired = 0, ambiguous = 0;
	int rc = 0;
	et_map_functions(t, &map, twice);
	for (uint32_t i = 0; i < n; i++) {
		of[i] = op[i].function_id > 0 ? idmap_get(&map, op[i].function_id) : IDMAP_NONE;
		if (of[i] != IDMAP_NONE)
			uses[of[i]]++;
	}
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const uint32_t k = of[i];
		if (k == IDMAP_NONE)
			continue;
		if (twice[k] || uses[k] > 1) {
			ambiguous++;
			continue;
		}
		node_of[i] = &t->node[k];
		paired++;
		if (!str_eq(node_of[i]->name, profile_str(p, p->span.name[op[i].row])))
			rc = et_fail_other(p, path, node_of[i], &op[i], e);
	}
	idmap_release(&map);
	mem_free(twice);
	mem_free(of);
	mem_free(uses);
	if (ambiguous)
		diag_add_n(&p->diags, "execution-trace-ambiguous", DIAG_LOSS, ambiguous, -1, "an op gets no arguments from %s: several ops, there or in the recording, have its \"Record function id\"", path);
	if (rc == 0 && !paired)
		rc = ambiguous ? err_set(e, ERR_DATA, "%s: none of its ops can be told: several ops, there or in the recording, have each \"Record function id\"", path)
		               : err_set(e, ERR_DATA, "%s: of another run: it has no op of the recording", path);
	return rc;
}

static int et_pair_by_order(struct profile *p, const struct et *t, const struct et_op *op, uint32_t n, const struct et_node **node_of, const char *path, struct err *e)
{
	if (t->n != n)
		return err_set(e, ERR_DATA, "%s: %u ops, but the recording has %u: without \"Record function id\" in the recording, both must be of the same steps of one run", path, t->n, n);
	for (uint32_t i = 0; i < n; i++) {
		node_of[i] = &t->node[i];
		if (!str_eq(t->node[i].name, profile_str(p, p->span.name[op[i].row])))
			return et_fail_other(p, path, &t->node[i], &op[i], e);
	}
	return 0;
}

/* ---- arguments, in the words of torch.profiler ---- */

struct et_write {
	struct profile *p;
	struct intern sets;
	uint32_t *row_of_set;    /* set of `sets` -> row of arg_set */
	uint32_t cap_sets;
	struct arg_made {
		uint32_t key, value, is_string;
	} *pair;                 /* of one op */
	unsigned n, cap;
	struct buf text;
};

static bool et_has(const struct et_write *w, const char *key)
{
	for (unsigned i = 0; i < w->n; i++)
		if (str_eqc(profile_str(w->p, w->pair[i].key), key))
			return true;
	return false;
}

static void et_put(struct et_write *w, const char *key, struct str value, bool is_string)
{
	if (value.n && !et_has(w, key))
		MEM_PUSH(w->pair, w->n, w->cap, (struct arg_made){intern_str(&w->p->strings, str_from(key)), intern_str(&w->p->strings, value), is_string});
}

/* Of "Tensor(float)" the inner type. */
static bool et_is_tensor(struct str type, struct str *inner)
{
	*inner = type;
	if (!str_skip(inner, STR("Tensor(")) || !inner->n)
		return false;
	inner->n--;
	return true;
}

static bool et_is_tensor_list(struct str type)
{
	return str_starts(type, STR("GenericList[Tensor("));
}

static void et_put_type(struct buf *b, struct str type, struct str schema)
{
	struct str inner;
	if (et_is_tensor(type, &inner))
		buf_printf(b, "\"" STR_FMT "\"", STR_ARG(inner));
	else if (et_is_tensor_list(type)) /* torch.profiler states no type for a list of optional tensors */
		buf_cstr(b, str_has(schema, STR("Tensor?[]")) ? "\"\"" : "\"TensorList\"");
	else if (str_starts(type, STR("GenericList[")))
		buf_cstr(b, "\"ScalarList\"");
	else
		buf_cstr(b, str_eqc(type, "Int") || str_eqc(type, "Bool") || str_eqc(type, "Double") ? "\"Scalar\"" : "\"\"");
}

/* A number, or a list of numbers with ", " between them. */
static void et_put_value(struct buf *b, const struct py *v)
{
	if (v->type == PY_LIST) {
		buf_char(b, '[');
		for (const struct py *x = v->first; x; x = x->next) {
			et_put_value(b, x);
			buf_cstr(b, x->next ? ", " : "");
		}
		buf_char(b, ']');
	} else if (v->type == PY_BOOL) {
		buf_cstr(b, v->i ? "True" : "False");
	} else if (v->type == PY_INT || v->type == PY_FLOAT) {
		struct str raw = v->raw;
		if (v->type == PY_FLOAT && str_ends(raw, STR(".0")))
			raw.n--; /* torch.profiler writes "1." */
		buf_str(b, raw);
	}
}

/* The text of "Concrete Inputs" for one argument: numbers and lists of numbers; "" for tensors. */
static void et_put_concrete(struct buf *b, const struct py *v, struct str type)
{
	struct str inner;
	buf_char(b, '"');
	if (!et_is_tensor(type, &inner) && !et_is_tensor_list(type))
		et_put_value(b, v);
	buf_char(b, '"');
}

/* [id, storage] of one tensor. */
static void et_put_tensor(struct buf *b, const struct py *v)
{
	const struct py *id = v && v->type == PY_LIST ? v->first : NULL, *storage = id ? id->next : NULL;
	if (id && storage && id->type == PY_INT && storage->type == PY_INT)
		buf_printf(b, "[%lld, %lld]", (long long)id->i, (long long)storage->i);
	else
		buf_cstr(b, "[]");
}

static void et_put_tensors(struct buf *b, const struct py *v, struct str type)
{
	struct str inner;
	if (et_is_tensor(type, &inner)) {
		et_put_tensor(b, v);
	} else if (et_is_tensor_list(type) && v->type == PY_LIST) {
		buf_char(b, '[');
		for (const struct py *x = v->first; x; x = x->next) {
			et_put_tensor(b, x);
			buf_cstr(b, x->next ? ", " : "");
		}
		buf_char(b, ']');
	} else {
		buf_cstr(b, "[]");
	}
}

/* [storage, bytes up to the end of the tensor, "cuda:0"] of each tensor in `v`; nothing for other values. */
static void et_put_storages(struct buf *b, const struct py *v)
{
	enum { ID, STORAGE, OFFSET, ELEMENTS, ELEMENT_BYTES, DEVICE, FIELDS };
	const struct py *field[FIELDS] = {0};
	unsigned n = 0;
	if (v->type != PY_LIST)
		return;
	for (const struct py *x = v->first; x && n < FIELDS; x = x->next)
		field[n++] = x;
	bool is = v->n == FIELDS && field[DEVICE]->type == PY_STR;
	for (int i = ID; is && i < DEVICE; i++)
		is = field[i]->type == PY_INT;
	if (!is) {
		for (const struct py *x = v->first; x; x = x->next)
			if (x->type == PY_LIST)
				et_put_storages(b, x);
		return;
	}
	int64_t bytes;
	if (__builtin_add_overflow(field[OFFSET]->i, field[ELEMENTS]->i, &bytes) || __builtin_mul_overflow(bytes, field[ELEMENT_BYTES]->i, &bytes))
		return;
	buf_printf(b, "%s[%lld, %lld, \"", b->n > 1 ? ", " : "", (long long)field[STORAGE]->i, (long long)bytes);
	buf_str(b, field[DEVICE]->s);
	buf_cstr(b, "\"]");
}

static struct str et_storages(struct et_write *w, const struct et_told *x, int side)
{
	struct buf *b = &w->text;
	buf_clear(b);
	if (!x->values[side])
		return (struct str){"", 0};
	buf_char(b, '[');
	et_put_storages(b, x->values[side]);
	buf_char(b, ']');
	return b->n > 2 ? buf_view(b) : (struct str){"", 0};
}

enum et_column { ET_DIMS, ET_STRIDES, ET_TYPES, ET_CONCRETE, ET_TENSORS };

/* A list with an entry for each argument of one side; "" where the execution trace does not state the column for each argument. */
static struct str et_column(struct et_write *w, const struct et_told *x, int side, enum et_column c)
{
	const struct py *values = x->values[side], *types = x->types[side], *from = c == ET_DIMS ? x->shapes[side] : c == ET_STRIDES ? x->strides[side] : values;
	struct buf *b = &w->text;
	buf_clear(b);
	if (!types || !from || types->n != from->n || !types->n)
		return (struct str){"", 0};
	buf_char(b, '[');
	for (const struct py *v = from->first, *t = types->first; v; v = v->next, t = t->next) {
		const struct str type = et_text(t);
		struct str inner;
		switch (c) {
		case ET_DIMS:
		case ET_STRIDES:
			if (v->type == PY_LIST && (et_is_tensor(type, &inner) || (et_is_tensor_list(type) && !str_has(x->schema, STR("Tensor?[]")))))
				et_put_value(b, v);
			else
				buf_cstr(b, "[]");
			break;
		case ET_TYPES: et_put_type(b, type, x->schema); break;
		case ET_CONCRETE: et_put_concrete(b, v, type); break;
		case ET_TENSORS: et_put_tensors(b, v, type); break;
		}
		buf_cstr(b, v->next ? ", " : "");
	}
	buf_char(b, ']');
	return buf_view(b);
}

/* The argument set of w->pair; 0 = the empty one. */
static uint32_t et_set(struct et_write *w)
{
	struct profile *p = w->p;
	if (!w->n)
		return 0;
	const uint32_t before = w->sets.n, id = intern_put(&w->sets, (const char *)w->pair, w->n * sizeof *w->pair);
	if (w->sets.n == before)
		return w->row_of_set[id];
	MEM_GROW(w->row_of_set, w->cap_sets, id + 1);
	const uint32_t set = rows_push(&p->arg_set, &store_tables[TABLE_arg_set]);
	w->row_of_set[id] = set == ROW_NONE ? 0 : set;
	if (set == ROW_NONE)
		return 0;
	p->arg_set.first[set] = p->arg.rows.n;
	for (unsigned i = 0; i < w->n; i++) {
		const uint32_t a = rows_push(&p->arg, &store_tables[TABLE_arg]);
		if (a == ROW_NONE)
			break;
		p->arg.key[a] = w->pair[i].key;
		p->arg.value[a] = w->pair[i].value;
		p->arg.is_string[a] = w->pair[i].is_string != 0;
	}
	return w->row_of_set[id];
}

static void et_write_told(struct et_write *w, const struct et_told *x)
{
	et_put(w, arg_key_text[ARG_INPUT_DIMS], et_column(w, x, 0, ET_DIMS), false);
	et_put(w, arg_key_text[ARG_INPUT_TYPES], et_column(w, x, 0, ET_TYPES), false);
	et_put(w, arg_key_text[ARG_INPUT_STRIDES], et_column(w, x, 0, ET_STRIDES), false);
	et_put(w, arg_key_text[ARG_INPUT_VALUES], et_column(w, x, 0, ET_CONCRETE), false);
	et_put(w, arg_key_text[ARG_INPUT_TENSORS], et_column(w, x, 0, ET_TENSORS), false);
	et_put(w, "Output Dims", et_column(w, x, 1, ET_DIMS), false);
	et_put(w, "Output type", et_column(w, x, 1, ET_TYPES), false);
	et_put(w, arg_key_text[ARG_OUTPUT_TENSORS], et_column(w, x, 1, ET_TENSORS), false);
	et_put(w, arg_key_text[ARG_INPUT_STORAGES], et_storages(w, x, 0), false);
	et_put(w, arg_key_text[ARG_OUTPUT_STORAGES], et_storages(w, x, 1), false);
	et_put(w, "Op schema", x->schema, true);
}

static void et_write_op(struct et_write *w, uint32_t row, const struct et_node *x)
{
	struct profile *p = w->p;
	const uint32_t set = p->span.args[row], end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	w->n = 0;
	for (uint32_t i = set ? p->arg_set.first[set] : end; i < end; i++)
		if (!profile_is_arg(p, p->arg.key[i], ARG_FUNCTION_ID))
			MEM_PUSH(w->pair, w->n, w->cap, (struct arg_made){p->arg.key[i], p->arg.value[i], p->arg.is_string[i]});
	if (x) {
		struct arena a = {0};
		const struct et_told told = et_tell(x, &a);
		et_write_told(w, &told);
		arena_release(&a);
	}
	p->span.args[row] = et_set(w);
}

static void et_write_all(struct profile *p, const struct et_op *op, uint32_t n, const struct et_node *const *node_of)
{
	struct et_write w = {.p = p};
	intern_init(&w.sets);
	for (uint32_t i = 0; i < n; i++)
		et_write_op(&w, op[i].row, node_of[i]);
	intern_release(&w.sets);
	mem_free(w.row_of_set);
	mem_free(w.pair);
	buf_release(&w.text);
	rows_trim(&p->arg_set, &store_tables[TABLE_arg_set]);
	rows_trim(&p->arg, &store_tables[TABLE_arg]);
	profile_find_arg_keys(p);
}

static int et_join(struct profile *p, const char *path, struct err *e)
{
	struct et t = {0};
	struct buf chosen = {0};
	uint32_t n = 0;
	bool by_function = false;
	struct et_op *op = NULL;
	const struct et_node **node_of = NULL;
	int rc = et_choose(p, path, &chosen, e);
	rc = rc < 0 ? rc : et_read(&t, chosen.p, e);
	if (rc == 0 && t.pid > 0 && !et_has_process(p, t.pid)) /* the ranks of a job run the same ops on other tensors */
		rc = err_set(e, ERR_DATA, "%s: of process %lld, which is not in the recording", chosen.p, (long long)t.pid);
	if (rc == 0) {
		op = et_ops(p, &n, &by_function);
		node_of = NEW_ARRAY(n, const struct et_node *);
		rc = (by_function ? et_pair_by_function : et_pair_by_order)(p, &t, op, n, node_of, chosen.p, e);
	}
	if (rc == 0) {
		et_write_all(p, op, n, node_of);
		p->adds_args = true;
	}
	mem_free(op);
	mem_free(node_of);
	buf_release(&chosen);
	et_release(&t);
	return rc;
}

int execution_trace_join(struct profile *p, const char *path, struct err *e)
{
	struct err why = {0};
	return et_join(p, path, &why) < 0 ? err_set(e, why.code, "--execution-trace=%s", why.msg) : 0;
}
