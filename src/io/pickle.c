#include "io/pickle.h"

#include "base/mem.h"

enum { PICKLE_LINE = 4096 }; /* a number or key of protocol 0 is shorter */

struct pickle {
	const char *p, *end;
	struct arena *arena;
	struct py **stack;         /* values */
	uint32_t n, cap;
	uint32_t *mark;            /* heights of the stack */
	uint32_t n_marks, cap_marks;
	struct py **memo;          /* by number; NULL = not kept */
	uint32_t n_memo, cap_memo;
	uint32_t values, most_values;
	bool graph;                /* pickle_parse_graph */
	const char *why;
	int64_t repeated;          /* values that the memo gave again */
};

static bool pickle_fail(struct pickle *k, const char *why)
{
	k->why = why;
	return false;
}

static struct py *pickle_new(struct pickle *k, enum py_type type)
{
	if (k->values++ == k->most_values) {
		pickle_fail(k, "it holds too many values");
		return NULL;
	}
	struct py *v = arena_alloc(k->arena, sizeof *v);
	*v = (struct py){.type = type};
	return v;
}

static bool pickle_push(struct pickle *k, struct py *v)
{
	if (v)
		MEM_PUSH(k->stack, k->n, k->cap, v);
	return v != NULL;
}

static bool pickle_push_int(struct pickle *k, enum py_type type, int64_t i)
{
	struct py *v = pickle_new(k, type);
	if (v)
		v->i = i;
	return pickle_push(k, v);
}

static bool pickle_push_str(struct pickle *k, struct str s)
{
	struct py *v = pickle_new(k, PY_STR);
	if (v)
		v->s = s;
	return pickle_push(k, v);
}

/* ---- bytes ---- */

static bool pickle_take(struct pickle *k, uint64_t n, struct str *s)
{
	if (n > (uint64_t)(k->end - k->p))
		return pickle_fail(k, "it ends in the middle of a value");
	*s = (struct str){k->p, (size_t)n};
	k->p += n;
	return true;
}

static bool pickle_uint(struct pickle *k, unsigned bytes, uint64_t *v)
{
	struct str s;
	if (!pickle_take(k, bytes, &s))
		return false;
	*v = 0;
	for (unsigned i = bytes; i-- > 0;)
		*v = *v << 8 | (unsigned char)s.p[i];
	return true;
}

static bool pickle_line(struct pickle *k, struct str *s)
{
	const char *end = memchr(k->p, '\n', (size_t)(k->end - k->p));
	if (!end)
		return pickle_fail(k, "it ends in the middle of a line");
	*s = (struct str){k->p, (size_t)(end - k->p)};
	k->p = end + 1;
	if (s->n && s->p[s->n - 1] == '\r')
		s->n--;
	return true;
}

static bool pickle_counted(struct pickle *k, unsigned bytes)
{
	struct str s;
	uint64_t n;
	return pickle_uint(k, bytes, &n) && pickle_take(k, n, &s) && pickle_push_str(k, s);
}

/* Little endian, signed, of any length: one that does not fit 64 bits is a float, as in io/pyliteral.h. */
static bool pickle_long(struct pickle *k, unsigned bytes)
{
	struct str s;
	uint64_t n, v = 0;
	if (!pickle_uint(k, bytes, &n) || !pickle_take(k, n, &s))
		return false;
	bool negative = s.n && s.p[s.n - 1] & 0x80;
	for (size_t i = 0; i < sizeof v; i++)
		v |= (uint64_t)(unsigned char)(i < s.n ? s.p[i] : negative ? -1 : 0) << 8 * i;
	bool fits = s.n <= sizeof v;
	for (size_t i = sizeof v; i < s.n && !fits; i++)
		if ((unsigned char)s.p[i] != (negative ? 0xff : 0))
			return pickle_push_int(k, PY_FLOAT, 0);
	return pickle_push_int(k, ((int64_t)v < 0) == negative ? PY_INT : PY_FLOAT, (int64_t)v);
}

/* "5", "5L"; of opcode I also "00" and "01", which are False and True. */
static bool pickle_number_line(struct pickle *k, bool may_be_bool)
{
	struct str s;
	int64_t v;
	if (!pickle_line(k, &s))
		return false;
	if (may_be_bool && s.n == 2 && s.p[0] == '0' && (s.p[1] == '0' || s.p[1] == '1'))
		return pickle_push_int(k, PY_BOOL, s.p[1] == '1');
	if (s.n && s.p[s.n - 1] == 'L')
		s.n--;
	if (!s.n || s.n > PICKLE_LINE)
		return pickle_fail(k, "a number was expected");
	return str_to_i64(s, &v) ? pickle_push_int(k, PY_INT, v) : pickle_push_int(k, PY_FLOAT, 0);
}

/* 'text' or "text". */
static bool pickle_quoted_line(struct pickle *k)
{
	struct str s;
	if (!pickle_line(k, &s))
		return false;
	if (s.n < 2 || (s.p[0] != '\'' && s.p[0] != '"') || s.p[s.n - 1] != s.p[0])
		return pickle_fail(k, "a quoted string was expected");
	return pickle_push_str(k, (struct str){s.p + 1, s.n - 2});
}

/* ---- containers ---- */

/* The height of the stack at the last mark, which is taken away. */
static bool pickle_pop_mark(struct pickle *k, uint32_t *at)
{
	if (!k->n_marks || k->mark[k->n_marks - 1] > k->n)
		return pickle_fail(k, "an end stands where nothing began");
	*at = k->mark[--k->n_marks];
	return true;
}

static bool pickle_is_container(const struct py *v) { return v->type == PY_LIST || v->type == PY_TUPLE || v->type == PY_DICT; }

/* How many values a value is, with all that it holds; `i` of a container counts those in it, up to a limit that only pickle_parse_graph reaches. */
static const int64_t PICKLE_WEIGHT = 1ll << 60;
static int64_t pickle_weight(const struct py *v) { return 1 + (pickle_is_container(v) ? v->i : 0); }

/* Items of a chain: the last one is remembered in `key` of the container, which has none of its own until it is an item itself. */
static void pickle_append(struct py *container, struct py *item)
{
	container->i += pickle_weight(item);
	container->i = container->i < PICKLE_WEIGHT ? container->i : PICKLE_WEIGHT;
	struct py *last = container->first ? container->key : NULL;
	item->next = NULL;
	if (last)
		last->next = item;
	else
		container->first = item;
	container->key = item;
	container->n++;
}

/* A copy of a value as an item: `key` is that of a dict's item from here on. */
static struct py *pickle_copy(struct pickle *k, const struct py *v, struct py *key)
{
	struct py *item = pickle_new(k, v->type);
	if (item) {
		*item = *v;
		item->key = key;
		item->next = NULL;
	}
	return item;
}

/* A value of the stack as an item: one that the memo does not have stands nowhere else. */
static struct py *pickle_item(struct pickle *k, struct py *v, struct py *key)
{
	if (v->kept)
		return pickle_copy(k, v, key);
	v->key = key;
	v->next = NULL;
	return v;
}

/* Appends the values from `at` on to a list or tuple that has `item`. The array doubles, by powers of two. */
static bool pickle_fill_array(struct pickle *k, struct py *list, uint32_t at)
{
	uint32_t cap = list->n ? 1 : 0, wanted;
	while (cap && cap < list->n)
		cap *= 2;
	if (__builtin_add_overflow(list->n, k->n - at, &wanted) || wanted > k->most_values)
		return pickle_fail(k, "it holds too many values");
	if (wanted > cap) {
		for (cap = cap ? cap : 1; cap < wanted;)
			cap *= 2;
		struct py **item = arena_alloc(k->arena, cap * sizeof(struct py *));
		if (list->n)
			memcpy(item, list->item, list->n * sizeof *item);
		list->item = item;
	}
	if (k->n > at)
		memcpy(list->item + list->n, k->stack + at, (k->n - at) * sizeof *k->stack);
	list->n = wanted;
	k->n = at;
	return true;
}

/* Moves the values from `at` on into the container: pairs of key and value for a dict. */
static bool pickle_fill(struct pickle *k, struct py *container, uint32_t at)
{
	bool dict = container->type == PY_DICT;
	if (k->graph && !dict)
		return pickle_fill_array(k, container, at);
	for (uint32_t i = at; i + dict < k->n; i += 1 + dict) {
		struct py *item = pickle_item(k, k->stack[i + dict], dict ? k->stack[i] : NULL);
		if (!item)
			return false;
		pickle_append(container, item);
	}
	bool odd = dict && (k->n - at) % 2;
	k->n = at;
	return odd ? pickle_fail(k, "a key has no value") : true;
}

static bool pickle_fill_below(struct pickle *k, uint32_t at, enum py_type type)
{
	if (!at || at > k->n || k->stack[at - 1]->type != type || (k->n_marks && k->mark[k->n_marks - 1] >= at))
		return pickle_fail(k, "items stand where no container is open");
	return pickle_fill(k, k->stack[at - 1], at);
}

static bool pickle_collect(struct pickle *k, enum py_type type, uint32_t at)
{
	struct py *v = pickle_new(k, type);
	if (!v || !pickle_fill(k, v, at))
		return false;
	return pickle_push(k, v);
}

static bool pickle_last(struct pickle *k, unsigned n, uint32_t *at)
{
	uint32_t floor = k->n_marks ? k->mark[k->n_marks - 1] : 0;
	if (k->n < floor + n)
		return pickle_fail(k, "a value is missing");
	*at = k->n - n;
	return true;
}

/* ---- memo ---- */

static bool pickle_put(struct pickle *k, uint64_t number)
{
	uint32_t at;
	if (!pickle_last(k, 1, &at))
		return false;
	if (number >= k->most_values)
		return pickle_fail(k, "it holds too many values");
	uint32_t had = k->n_memo;
	if (number >= had) {
		MEM_GROW(k->memo, k->cap_memo, (uint32_t)number + 1);
		memset(k->memo + had, 0, (number + 1 - had) * sizeof *k->memo);
		k->n_memo = (uint32_t)number + 1;
	}
	k->memo[number] = k->stack[at];
	k->stack[at]->kept = true;
	return true;
}

/* A copy of what a value holds by now: so nothing can be made that holds itself. What stands deeper is shared, and counts each time, since whoever reads the result walks it each time. */
static bool pickle_push_copy(struct pickle *k, const struct py *from)
{
	struct py *v = pickle_new(k, from->type), *item;
	if (!v)
		return false;
	k->repeated += pickle_weight(from);
	if (k->repeated > PICKLE_REPEATED)
		return pickle_fail(k, "it holds too many values");
	*v = *from;
	v->first = v->key = v->next = NULL;
	v->n = 0;
	v->kept = false;
	v->i = pickle_is_container(from) ? 0 : from->i;
	for (struct py *x = from->first; x; x = x->next) {
		if (!(item = pickle_copy(k, x, x->key)))
			return false;
		pickle_append(v, item);
	}
	return pickle_push(k, v);
}

static bool pickle_get(struct pickle *k, uint64_t number)
{
	if (number >= k->n_memo || !k->memo[number])
		return pickle_fail(k, "it refers to a value that was not kept");
	if (k->graph)
		return pickle_push(k, k->memo[number]);
	return pickle_push_copy(k, k->memo[number]);
}

static bool pickle_number_of_line(struct pickle *k, uint64_t *v)
{
	struct str s;
	int64_t i;
	if (!pickle_line(k, &s))
		return false;
	if (!str_to_i64(s, &i) || i < 0)
		return pickle_fail(k, "a number of the memo was expected");
	*v = (uint64_t)i;
	return true;
}

/* ---- opcodes ---- */

static bool pickle_op_number(struct pickle *k, unsigned char op)
{
	uint64_t v;
	struct str s;
	switch (op) {
	case 'N':
		return pickle_push_int(k, PY_NONE, 0);
	case 0x88:
	case 0x89:
		return pickle_push_int(k, PY_BOOL, op == 0x88);
	case 'I':
	case 'L':
		return pickle_number_line(k, op == 'I');
	case 'J':
		return pickle_uint(k, 4, &v) && pickle_push_int(k, PY_INT, (int32_t)(uint32_t)v);
	case 'K':
	case 'M':
		return pickle_uint(k, op == 'K' ? 1 : 2, &v) && pickle_push_int(k, PY_INT, (int64_t)v);
	case 0x8a:
	case 0x8b:
		return pickle_long(k, op == 0x8a ? 1 : 4);
	case 'F':
		return pickle_line(k, &s) && pickle_push_int(k, PY_FLOAT, 0);
	case 'G':
		return pickle_take(k, 8, &s) && pickle_push_int(k, PY_FLOAT, 0);
	default:
		return pickle_fail(k, "it holds more than plain data, which is not read: nothing in a pickle is run");
	}
}

static bool pickle_op_text(struct pickle *k, unsigned char op)
{
	struct str s;
	switch (op) {
	case 'S':
		return pickle_quoted_line(k);
	case 'V':
		return pickle_line(k, &s) && pickle_push_str(k, s);
	case 'T':
	case 'X':
	case 'B':
		return pickle_counted(k, 4);
	case 'U':
	case 'C':
	case 0x8c:
		return pickle_counted(k, 1);
	case 0x8d:
	case 0x8e:
	case 0x96:
		return pickle_counted(k, 8);
	default:
		return pickle_op_number(k, op);
	}
}

static bool pickle_op_container(struct pickle *k, unsigned char op)
{
	uint32_t at;
	switch (op) {
	case ']':
	case ')':
	case '}':
		return pickle_push(k, pickle_new(k, op == ']' ? PY_LIST : op == ')' ? PY_TUPLE : PY_DICT));
	case 'a':
		return pickle_last(k, 2, &at) && pickle_fill_below(k, at + 1, PY_LIST);
	case 's':
		return pickle_last(k, 3, &at) && pickle_fill_below(k, at + 1, PY_DICT);
	case 'e':
		return pickle_pop_mark(k, &at) && pickle_fill_below(k, at, PY_LIST);
	case 'u':
		return pickle_pop_mark(k, &at) && pickle_fill_below(k, at, PY_DICT);
	case 'l':
	case 't':
	case 'd':
		return pickle_pop_mark(k, &at) && pickle_collect(k, op == 'l' ? PY_LIST : op == 't' ? PY_TUPLE : PY_DICT, at);
	case 0x85:
	case 0x86:
	case 0x87:
		return pickle_last(k, op - 0x84u, &at) && pickle_collect(k, PY_TUPLE, at);
	default:
		return pickle_op_text(k, op);
	}
}

static bool pickle_op(struct pickle *k, unsigned char op)
{
	uint64_t v;
	uint32_t at;
	switch (op) {
	case 0x80:
		return pickle_uint(k, 1, &v) && (v <= 5 || pickle_fail(k, "its protocol is not known"));
	case 0x95: /* a frame only says how many bytes may be read at once */
		return pickle_uint(k, 8, &v);
	case '(':
		if (k->n_marks == k->most_values)
			return pickle_fail(k, "it is nested too deep");
		MEM_PUSH(k->mark, k->n_marks, k->cap_marks, k->n);
		return true;
	case '0':
		if (!pickle_last(k, 1, &at))
			return false;
		k->n = at;
		return true;
	case '1':
		if (!pickle_pop_mark(k, &at))
			return false;
		k->n = at;
		return true;
	case '2':
		if (!pickle_last(k, 1, &at))
			return false;
		k->stack[at]->kept |= k->graph;
		return k->graph ? pickle_push(k, k->stack[at]) : pickle_push_copy(k, k->stack[at]);
	case 'q':
	case 'r':
		return pickle_uint(k, op == 'q' ? 1 : 4, &v) && pickle_put(k, v);
	case 'p':
		return pickle_number_of_line(k, &v) && pickle_put(k, v);
	case 0x94:
		return pickle_put(k, k->n_memo);
	case 'h':
	case 'j':
		return pickle_uint(k, op == 'h' ? 1 : 4, &v) && pickle_get(k, v);
	case 'g':
		return pickle_number_of_line(k, &v) && pickle_get(k, v);
	default:
		return pickle_op_container(k, op);
	}
}

/* Ends the containers that are open, innermost first, with what they have. */
static void pickle_close(struct pickle *k)
{
	const char *why = k->why;
	while (k->n_marks) {
		uint32_t at = k->mark[--k->n_marks];
		struct py *below = at && at <= k->n ? k->stack[at - 1] : NULL;
		bool open = below && (below->type == PY_LIST || below->type == PY_DICT) && (!k->n_marks || k->mark[k->n_marks - 1] < at);
		if (open)
			pickle_fill(k, below, at);
		else
			k->n = at < k->n ? at : k->n;
	}
	k->why = why;
}

static const struct py *pickle_read(struct str bytes, struct pickle k, size_t *at, const char **why)
{
	k.p = bytes.p;
	k.end = bytes.p + bytes.n;
	bool stopped = false;
	while (!k.why && !stopped) {
		*at = (size_t)(k.p - bytes.p);
		if (k.p == k.end) {
			pickle_fail(&k, "it is cut off");
			break;
		}
		unsigned char op = (unsigned char)*k.p++;
		stopped = op == '.';
		if (!stopped && !pickle_op(&k, op) && !k.why)
			pickle_fail(&k, "it is damaged");
	}
	if (stopped && (k.n_marks || k.n != 1))
		pickle_fail(&k, "it ends with values that are part of nothing");
	pickle_close(&k);
	const struct py *v = k.n ? k.stack[0] : NULL;
	*why = k.why;
	mem_free(k.stack);
	mem_free(k.mark);
	mem_free(k.memo);
	return v;
}

const struct py *pickle_parse(struct str bytes, struct arena *a, size_t *at, const char **why)
{
	return pickle_read(bytes, (struct pickle){.arena = a, .most_values = PICKLE_VALUES}, at, why);
}

const struct py *pickle_parse_graph(struct str bytes, struct arena *a, size_t *at, const char **why)
{
	return pickle_read(bytes, (struct pickle){.arena = a, .most_values = PICKLE_GRAPH_VALUES, .graph = true}, at, why);
}
