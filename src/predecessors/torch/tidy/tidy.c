#include "predecessors/torch/tidy/tidy.h"

#include "base/buf.h"
#include "base/intern.h"
#include "base/mem.h"
#include "detect/parts/shared.h"
#include "store/torch_names.h"

const struct expert_system tidy_experts = {"torch", "TorchTidy Report", PASS_NEST};

enum { PLACES_TOLD = 10 };

static bool torch_tidy_is_event(const struct profile *p, uint32_t i)
{
	uint8_t k = p->span.kind[i];
	return k == SPAN_OP || k == SPAN_USER || k == SPAN_PYTHON;
}

static void link_up(struct tidy *t)
{
	const struct spans *s = &t->p->span;
	uint32_t n = s->rows.n, last_root = ROW_NONE;
	uint32_t **columns[] = {&t->parent, &t->before, &t->after, &t->first_child, &t->last_child};
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
		*columns[c] = NEW_ARRAY_RAW(n, uint32_t);
		memset(*columns[c], 0xff, (size_t)n * sizeof **columns[c]); /* ROW_NONE */
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = s->parent[i];
		if (up != ROW_NONE && !torch_tidy_is_event(t->p, up))
			up = t->parent[up]; /* of a call and the like, which is no event: set below when its row came */
		t->parent[i] = up;
		if (!torch_tidy_is_event(t->p, i))
			continue;
		bool same_thread = last_root != ROW_NONE && s->track[last_root] == s->track[i];
		uint32_t before = up != ROW_NONE ? t->last_child[up] : same_thread ? last_root : ROW_NONE;
		t->before[i] = before;
		if (before != ROW_NONE)
			t->after[before] = i;
		else if (up != ROW_NONE)
			t->first_child[up] = i;
		if (up != ROW_NONE)
			t->last_child[up] = i;
		else
			last_root = i;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!torch_tidy_is_event(t->p, i))
			t->parent[i] = ROW_NONE;
}

bool tidy_is(const struct tidy *t, uint32_t span, const char *name)
{
	return span != ROW_NONE && str_eqc(tidy_name(t, span), name);
}

/* Texts between quotes, lists between brackets, at the outermost level of a list. */
bool tidy_item(const struct tidy *t, uint32_t span, enum arg_key key, unsigned at, struct str *item)
{
	struct str list;
	int depth = 0;
	bool quoted = false;
	size_t from = 1;
	if (!profile_arg(t->p, t->p->span.args[span], key, &list) || list.n < 3 || list.p[0] != '[')
		return false;
	for (size_t i = 0; i < list.n; i++) {
		char c = list.p[i];
		quoted ^= c == '"';
		if (quoted)
			continue;
		depth += c == '[';
		if ((c == ',' && depth == 1) || (c == ']' && depth == 1)) {
			if (at-- == 0) {
				while (from < i && (list.p[from] == ' ' || list.p[from] == '"'))
					from++;
				size_t end = i;
				while (end > from && list.p[end - 1] == '"')
					end--;
				*item = (struct str){list.p + from, end - from};
				return true;
			}
			from = i + 1;
		}
		depth -= c == ']';
	}
	return false;
}

/* "train.py(12): step" as "train.py:12" of the nearest frame around that is neither torch's nor the interpreter's. The trace has the
 * line where the function begins, torch the line of the call in it. */
static bool torch_tidy_place(const struct tidy *t, uint32_t span, struct buf *b)
{
	buf_clear(b);
	uint32_t i = t->parent[span];
	for (int up = 0; i != ROW_NONE && up < TIDY_DEPTH; i = t->parent[i], up++) {
		struct str name = tidy_name(t, i);
		if (t->p->span.kind[i] != SPAN_PYTHON || str_starts(name, STR("torch/")) || str_starts(name, STR(TORCH_MODULE)) ||
		    str_starts(name, STR("<")))
			continue;
		const char *open = memchr(name.p, '(', name.n), *close = open ? memchr(open, ')', (size_t)(name.p + name.n - open)) : NULL;
		if (!close)
			continue;
		buf_str(b, (struct str){name.p, (size_t)(open - name.p)});
		buf_char(b, ':');
		buf_str(b, (struct str){open + 1, (size_t)(close - open - 1)});
		return true;
	}
	buf_cstr(b, "No source code location found");
	return false;
}

struct matches {
	struct intern places;
	uint64_t *times;         /* of place i + 1 */
	uint32_t n, cap;
	uint64_t events;
};

static void torch_tidy_add(struct matches *m, struct str at)
{
	uint32_t id = intern_str(&m->places, at); /* never the empty string, which is 0 */
	if (id > m->n) {
		MEM_GROW(m->times, m->cap, id);
		m->times[m->n++] = 0;
	}
	m->times[id - 1]++;
	m->events++;
}

static void torch_tidy_report(const struct tidy *t, const struct matches *m, const char *name, const char *description)
{
	struct buf b = {0};
	buf_printf(&b, "%s [Source Code Location] ", description);
	for (uint32_t i = 0; i < m->n && i < PLACES_TOLD; i++)
		buf_printf(&b, "%s" STR_FMT, i ? "; " : "", STR_ARG(intern_get(&m->places, i + 1)));
	if (m->n > PLACES_TOLD)
		buf_printf(&b, "; and %u more", m->n - PLACES_TOLD);
	findings_quote(t->f, arena_printf(&t->f->arena, "%s: %llu events matched.", name, (unsigned long long)m->events),
	                    arena_str(&t->f->arena, buf_view(&b)));
	buf_release(&b);
}

static bool lacks(const struct tidy *t, unsigned wants)
{
	bool stacks = wants & TIDY_STACKS && !t->stacks, shapes = wants & TIDY_SHAPES && !t->shapes;
	if (stacks && shapes)
		findings_missing(t->f, "Python frames and shapes were not recorded");
	else if (stacks)
		findings_missing(t->f, "Python frames were not recorded");
	else if (shapes)
		findings_missing(t->f, "shapes were not recorded");
	return stacks || shapes;
}

static struct tidy *tidy_new(const struct profile *p, struct findings *f)
{
	struct tidy *t = NEW(struct tidy);
	*t = (struct tidy){.p = p, .f = f, .shapes = profile_has_arg(p, ARG_INPUT_DIMS)};
	for (uint32_t i = 0; i < p->span.rows.n && !t->stacks; i++)
		t->stacks = p->span.kind[i] == SPAN_PYTHON;
	return t;
}

static void tidy_free(void *tree)
{
	struct tidy *t = tree;
	mem_free(t->parent);
	mem_free(t->before);
	mem_free(t->after);
	mem_free(t->first_child);
	mem_free(t->last_child);
	mem_free(t->zeroed);
	mem_free(t);
}

struct tidy *tidy_ready(const struct profile *p, struct findings *f, unsigned wants)
{
	struct shared_experts *slot = shared_experts(f);
	if (!slot->state)
		*slot = (struct shared_experts){tidy_new(p, f), tidy_free};
	struct tidy *t = slot->state;
	if (lacks(t, wants))
		return NULL;
	if (!t->parent)
		link_up(t);
	return t;
}

void tidy_look(const struct tidy *t, const char *name, const char *description,
               bool (*match)(const struct tidy *t, uint32_t span))
{
	struct matches m = {0};
	struct buf b = {0};
	intern_init(&m.places);
	for (uint32_t i = 0; i < t->p->span.rows.n; i++) {
		if (!torch_tidy_is_event(t->p, i) || !match(t, i))
			continue;
		torch_tidy_place(t, i, &b);
		torch_tidy_add(&m, buf_view(&b));
	}
	if (m.events)
		torch_tidy_report(t, &m, name, description);
	intern_release(&m.places);
	mem_free(m.times);
	buf_release(&b);
}

void tidy_run(const struct profile *p, struct findings *f, unsigned wants, const char *name, const char *description,
              bool (*match)(const struct tidy *t, uint32_t span))
{
	const struct tidy *t = tidy_ready(p, f, wants);
	if (t)
		tidy_look(t, name, description, match);
}
