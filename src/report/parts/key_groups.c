#include "report/parts/key_groups.h"

#include "base/mem.h"
#include "base/saturate.h"
#include "store/reuse.h"
#include "store/torch_names.h"

/* The parts of the keys of groups, looked up once for each distinct argument set, thread, ... */
struct looked {
	struct key_groups *g;
	uint32_t *shapes_of_set, *overload_of_set; /* argument set -> text + 1; 0 = not looked */
	uint32_t *frames_of_stack; /* stack -> text of its innermost frames + 1; 0 = not looked; NULL = whole stacks */
	uint32_t *module_of_stack; /* stack -> text */
	struct buf text;
};

/* The length of the first entry of the list of shapes at `s`; *flat says whether the entry is a list of numbers. */
static size_t entry(struct str s, bool *flat)
{
	int depth = 0;
	size_t i = 0;
	*flat = true;
	for (; i < s.n; i++) {
		if (s.p[i] == '[') {
			*flat &= ++depth == 1;
		} else if (s.p[i] == ']' && depth-- == 0) {
			break;
		} else if (s.p[i] == ',' && depth == 0) {
			break;
		}
	}
	return i;
}

static void put_numbers(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == ' ' || s.p[i] == '\n' || s.p[i] == '\t')
			continue;
		buf_char(out, s.p[i]);
		if (s.p[i] == ',')
			buf_char(out, ' ');
	}
}

void torch_shapes_text(struct str dims, struct buf *out)
{
	buf_char(out, '[');
	size_t at = 0;
	while (at < dims.n && dims.p[at] != '[')
		at++;
	at++;
	for (bool first = true; at < dims.n && dims.p[at] != ']'; first = false) {
		struct str rest = {dims.p + at, dims.n - at};
		bool flat;
		size_t n = entry(rest, &flat);
		if (!first)
			buf_str(out, STR(", "));
		if (flat && memchr(rest.p, '[', n))
			put_numbers((struct str){rest.p, n}, out);
		else
			buf_str(out, STR("[]"));
		at += n;
		at += at < dims.n && dims.p[at] == ',';
	}
	buf_char(out, ']');
}

static uint32_t key_groups_text_id(struct looked *l, struct str s)
{
	return intern_str(&l->g->texts, s);
}

static uint32_t key_groups_shapes_of(struct looked *l, uint32_t event)
{
	const struct torch_events *t = l->g->t;
	uint32_t set = t->kind[event] == TORCH_SPAN ? t->p->span.args[t->row[event]] : 0, *slot = &l->shapes_of_set[set];
	if (*slot)
		return *slot - 1;
	uint32_t id = torch_event_shapes(t, event);
	if (!t->rules->name) {
		*slot = key_groups_text_id(l, profile_str(t->p, id)) + 1;
	} else {
		l->text.n = 0;
		torch_shapes_text(profile_str(t->p, id), &l->text);
		*slot = key_groups_text_id(l, buf_view(&l->text)) + 1;
	}
	return *slot - 1;
}

static uint32_t overload_of(struct looked *l, uint32_t event)
{
	const struct torch_events *t = l->g->t;
	uint32_t set = t->kind[event] == TORCH_SPAN ? t->p->span.args[t->row[event]] : 0, *slot = &l->overload_of_set[set];
	if (!*slot)
		*slot = key_groups_text_id(l, profile_str(t->p, torch_event_overload(t, event))) + 1;
	return *slot - 1;
}

static uint32_t key_groups_stack_of(struct looked *l, uint32_t event)
{
	uint32_t stack = torch_event_stack(l->g->t, event), *slot = l->frames_of_stack ? &l->frames_of_stack[stack] : NULL;
	if (!slot)
		return stack;
	if (!*slot) {
		l->text.n = 0;
		torch_stack_text(l->g->t, stack, l->g->choice.frames, &l->text);
		*slot = key_groups_text_id(l, buf_view(&l->text)) + 1;
	}
	return *slot - 1;
}

/* The innermost module of each stack: the module of its innermost frame, else that of the stack around it. */
static void find_modules(struct looked *l)
{
	const struct stacks *s = l->g->t->stacks;
	uint32_t n = stacks_count(s);
	l->module_of_stack = NEW_ARRAY(n, uint32_t);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t around = i;
		struct str frame;
		stacks_pop(s, &around, &frame);
		bool module = str_skip(&frame, STR(TORCH_MODULE)) && frame.n;
		l->module_of_stack[i] = module ? key_groups_text_id(l, frame) : l->module_of_stack[around];
	}
}

static void key_groups_prepare(struct looked *l)
{
	struct key_groups *g = l->g;
	size_t sets = (size_t)g->t->p->arg_set.rows.n + 1;
	/* Recorded stacks are no longer than the input that holds them; Python frames that lie in each other can be, each with all its own. */
	if (!g->t->stacks || (g->choice.frames > KEY_FRAMES_MAX && !g->t->rules->name))
		g->choice.frames = 0;
	if (!g->t->stacks)
		g->choice.parts &= ~(unsigned)KEY_MODULE;
	l->shapes_of_set = NEW_ARRAY(sets, uint32_t);
	l->overload_of_set = NEW_ARRAY(sets, uint32_t);
	if ((g->choice.parts & KEY_STACK) && g->choice.frames)
		l->frames_of_stack = NEW_ARRAY(stacks_count(g->t->stacks), uint32_t);
	if (g->choice.parts & KEY_MODULE)
		find_modules(l);
	if (!g->t->rules->name || (g->choice.parts & KEY_CYCLE))
		cycles_find(g->t->p, &g->cycles);
}

static struct key_id key_groups_key_of(struct looked *l, uint32_t i)
{
	const struct torch_events *t = l->g->t;
	struct key_id k = {.name = t->key[i], .node_id = t->node_id ? t->node_id[i] : -1, .device_type = t->device_type[i]};
	unsigned parts = l->g->choice.parts;
	if (t->rules->user_annotation)
		k.annotation = (t->flags[i] & TORCH_USER_ANNOTATION) != 0;
	if (parts & KEY_SHAPE)
		k.shapes = key_groups_shapes_of(l, i);
	if (parts & KEY_OVERLOAD)
		k.overload = overload_of(l, i);
	if (parts & KEY_STACK)
		k.stack = key_groups_stack_of(l, i);
	if (parts & KEY_MODULE)
		k.module = l->module_of_stack[torch_event_stack(t, i)];
	if (parts & KEY_THREAD)
		k.thread = t->track[i] + 1;
	if (parts & KEY_CYCLE)
		k.cycle = l->g->cycles.n ? cycle_at(&l->g->cycles, t->p, t->track[i], t->start_ns[i]) + 1 : 0;
	if (parts & KEY_EVENT)
		k.event = i + 1;
	return k;
}

static void key_groups_sum(struct key_groups *g, int64_t *to, int64_t v)
{
	g->overflows += !add_saturated(to, v);
}

static void add_event(struct key_groups *g, struct key_group *x, uint32_t i)
{
	const struct torch_events *t = g->t;
	x->calls++;
	x->async += (t->flags[i] & TORCH_ASYNC) != 0;
	key_groups_sum(g, &x->host_self, t->cpu_self[i]);
	key_groups_sum(g, &x->dev_self, t->dev_self[i]);
	if (t->memory_known) {
		key_groups_sum(g, &x->cpu_mem, t->cpu_mem[i]);
		key_groups_sum(g, &x->cpu_mem_self, t->cpu_mem_self[i]);
		key_groups_sum(g, &x->dev_mem, t->dev_mem[i]);
		key_groups_sum(g, &x->dev_mem_self, t->dev_mem_self[i]);
	}
	if (t->flops && t->flops[i] != TORCH_UNKNOWN) {
		key_groups_sum(g, &x->flops, t->flops[i]);
		x->flops_known++;
	}
}

static void key_groups_add_totals(struct key_groups *g, struct key_group *x, uint32_t i)
{
	key_groups_sum(g, &x->host_total, torch_cpu_total(g->t, i));
	key_groups_sum(g, &x->dev_total, g->t->dev_total[i]);
}

/* By event: 1 = an event around it is of the same group. Walks the tree and counts the open events of each group. */
static uint8_t *inside_own_group(const struct key_groups *g)
{
	const struct torch_events *t = g->t;
	uint32_t *child = NEW_ARRAY_RAW(t->n, uint32_t), *next = NEW_ARRAY_RAW(t->n, uint32_t), *open = NEW_ARRAY(g->n, uint32_t);
	uint8_t *inside = NEW_ARRAY(t->n, uint8_t);
	memset(child, 0xff, t->n * sizeof *child);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t up = t->parent[i];
		next[i] = up == ROW_NONE ? ROW_NONE : child[up];
		if (up != ROW_NONE)
			child[up] = i;
	}
	for (uint32_t root = 0; root < t->n; root++) {
		for (uint32_t i = t->parent[root] == ROW_NONE ? root : ROW_NONE; i != ROW_NONE;) {
			uint32_t group = g->group_of[i];
			inside[i] = group != ROW_NONE && open[group]++ > 0;
			if (child[i] != ROW_NONE) {
				i = child[i];
				continue;
			}
			while (i != ROW_NONE) {
				if (g->group_of[i] != ROW_NONE)
					open[g->group_of[i]]--;
				if (i == root || next[i] != ROW_NONE)
					break;
				i = t->parent[i];
			}
			i = i == root ? ROW_NONE : next[i];
		}
	}
	mem_free(child);
	mem_free(next);
	mem_free(open);
	return inside;
}

/* Adds totals: by torch's rules of all events; by our own rules not of an event inside another event of its group. */
static void collect_totals(struct key_groups *g)
{
	uint8_t *inside = g->t->rules->name ? NULL : inside_own_group(g);
	for (uint32_t i = 0; i < g->t->n; i++) {
		if (g->group_of[i] == ROW_NONE)
			continue;
		key_groups_add_totals(g, &g->all, i);
		if (!inside || !inside[i])
			key_groups_add_totals(g, &g->v[g->group_of[i]], i);
	}
	mem_free(inside);
}

static void key_groups_collect(struct looked *l)
{
	struct key_groups *g = l->g;
	g->group_of = NEW_ARRAY_RAW(g->t->n, uint32_t);
	for (uint32_t i = 0; i < g->t->n; i++) {
		g->group_of[i] = ROW_NONE;
		if (!g->choice.python && !torch_event_counts(g->t, i))
			continue;
		struct key_id k = key_groups_key_of(l, i);
		uint32_t at = stats_add(&g->durations, &k, sizeof k, g->t->end_ns[i] - g->t->start_ns[i]);
		if (at == g->n)
			MEM_PUSH(g->v, g->n, g->cap, (struct key_group){.id = k, .first = i});
		g->group_of[i] = at;
		add_event(g, &g->v[at], i);
		add_event(g, &g->all, i);
	}
	stats_finish(&g->durations);
	collect_totals(g);
}

struct key_choice key_choice_of(const struct report_args *args)
{
	static const struct {
		const char *grouping;
		unsigned part;
	} parts[] = {{"overload", KEY_OVERLOAD}, {"shape", KEY_SHAPE}, {"stack", KEY_STACK}, {"module", KEY_MODULE}, {"thread", KEY_THREAD}, {"cycle", KEY_CYCLE}, {"event", KEY_EVENT}};
	struct key_choice c = {0};
	int64_t n = 0;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (report_groups_by(args, parts[i].grouping, parts[i].part == KEY_STACK ? &n : NULL))
			c.parts |= parts[i].part;
	c.frames = n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
	return c;
}

static const char key_totals_kept[] = "key totals";

static struct key_totals key_totals_of(const struct key_groups *g)
{
	return (struct key_totals){.groups = g->n, .memory_known = g->t->memory_known, .all = g->all, .unattributed_ns = g->t->unattributed_ns};
}

static void key_totals_keep(const struct key_groups *g)
{
	const struct profile *p = g->t->p;
	if (g->t->rules != &torch_rules[TORCH_OWN] || g->choice.python || reuse_look(p, key_totals_kept))
		return;
	struct key_totals *totals = NEW(struct key_totals);
	*totals = key_totals_of(g);
	if (!reuse_keep(p, key_totals_kept, totals, mem_free, NULL))
		mem_free(totals);
}

void key_totals_find(const struct profile *p, struct key_totals *out)
{
	const struct key_totals *kept = reuse_find(p, key_totals_kept);
	if (kept) {
		*out = *kept;
		return;
	}
	struct torch_events *t = torch_events_new(p, &torch_rules[TORCH_OWN], 0);
	struct key_groups *g = key_groups_new(t, &(struct key_choice){0});
	*out = key_totals_of(g);
	key_groups_free(g);
	torch_events_free(t);
}

struct key_groups *key_groups_new(const struct torch_events *t, const struct key_choice *c)
{
	struct key_groups *g = NEW(struct key_groups);
	struct looked l = {.g = g};
	g->t = t;
	g->choice = *c;
	intern_init(&g->texts);
	key_groups_prepare(&l);
	key_groups_collect(&l);
	key_totals_keep(g);
	mem_free(l.frames_of_stack);
	mem_free(l.module_of_stack);
	mem_free(l.shapes_of_set);
	mem_free(l.overload_of_set);
	buf_release(&l.text);
	return g;
}

void key_stack_text(const struct key_groups *g, uint32_t group, struct buf *out)
{
	uint32_t stack = g->v[group].id.stack;
	if (g->choice.frames)
		buf_str(out, intern_get(&g->texts, stack));
	else if (stack)
		torch_stack_text(g->t, stack, 0, out);
}

void key_groups_free(struct key_groups *g)
{
	if (!g)
		return;
	stats_release(&g->durations);
	intern_release(&g->texts);
	cycles_release(&g->cycles);
	mem_free(g->v);
	mem_free(g->group_of);
	mem_free(g);
}
