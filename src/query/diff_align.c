#include "query/diff_align.h"

#include "base/align.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"

#include <assert.h>

/* Hashes of the ops below a module, by type and by type, passes and shapes: of two modules, as many of the least are equal as the share of these that they have in common. */
enum { DIFF_SKETCH = 8 };
/* Fits of two modules (base/align.h), whose sums are maximised: two pairs of one class with nothing else in common are worth less than one pair that is equal (ALIGN_SAME). Each equal hash of the
 * sketch adds DIFF_FIT_SKETCH. */
enum { DIFF_FIT_CLASS = 120, DIFF_FIT_NAME = 40, DIFF_FIT_WRAPPED = 100, DIFF_FIT_CONTENT = 150, DIFF_FIT_ALIKE = 20, DIFF_FIT_SKETCH = 10 };
/* From so many equal hashes of the sketch on, a module may be one of another class. */
enum { DIFF_RENAMED_SKETCH = 5 };
/* So many modules around one, each with no other module in it, are taken for wrappers. */
enum { DIFF_WRAPPERS = 4 };

static_assert((int)DIFF_FIT_CLASS + DIFF_FIT_NAME + (int)DIFF_SKETCH * DIFF_FIT_SKETCH < (int)ALIGN_SAME && 2 * DIFF_FIT_CLASS < (int)ALIGN_SAME && DIFF_FIT_CONTENT < (int)ALIGN_SAME,
              "an equal pair is worth more");

struct diff_tree_node {
	uint32_t name;           /* texts of diff_align.texts */
	uint32_t class;          /* the name without numbers */
	uint32_t parent, first, last, next; /* first, last: of its modules; ops are found by name */
	uint32_t full;           /* of an op */
	uint32_t match;          /* of the other side; ROW_NONE = none */
	uint32_t modules;        /* directly below */
	uint64_t content;        /* hash of what is below */
	uint64_t hash;           /* with its class */
	uint32_t sketch[DIFF_SKETCH];
	bool is_op;
};

/* Of one side. Node 0 is the root; children have greater numbers than their parents, and than children that worked before them. */
struct diff_tree {
	struct diff_tree_node *node;
	uint32_t n, cap;
	struct intern keys;      /* parent, name and is_op; id = node, since id 0 is the empty text, and node 0 the root */
	uint32_t *of_part;
};

struct diff_pair {
	uint32_t a, b;
};

struct diff_aligner {
	struct diff_align *out;
	struct diff_tree tree[2];
	struct diff_pair *todo;
	size_t n, cap;
	/* Of the pair at work: the modules below, and what aligning needs of them. */
	uint32_t *below[2];
	uint32_t n_below[2];
	uint32_t *class;         /* text of a name -> text of its class; 0 = not asked yet */
	uint32_t cap_classes;
	struct buf text;
	bool *known[2];          /* the other side has modules of this class below its module */
};

void diff_put_family(struct str name, struct str type, struct buf *b)
{
	size_t path = name.n >= type.n && memcmp(name.p + name.n - type.n, type.p, type.n) == 0 ? name.n - type.n : 0;
	for (size_t i = 0; i < name.n; i++) {
		bool digit = i < path && name.p[i] >= '0' && name.p[i] <= '9';
		if (!digit)
			buf_char(b, name.p[i]);
		else if (b->n && b->p[b->n - 1] == '_')
			b->n--;
		else if (i && name.p[i - 1] != '_' && (name.p[i - 1] < '0' || name.p[i - 1] > '9'))
			buf_char(b, '*');
	}
}

/* ---- the tree of a side ---- */

/* The name of a module without numbers. */
static uint32_t diff_align_class_of(struct diff_aligner *x, uint32_t name)
{
	if (name >= x->cap_classes) {
		const uint32_t had = x->cap_classes;
		MEM_GROW(x->class, x->cap_classes, name + 1);
		memset(x->class + had, 0, (x->cap_classes - had) * sizeof *x->class);
	}
	if (!x->class[name]) {
		/* Before a number that is the whole name stands a slash in a path, too, which makes it a *. */
		buf_clear(&x->text);
		buf_char(&x->text, '/');
		buf_str(&x->text, intern_get(&x->out->texts, name));
		const size_t end = x->text.n;
		struct buf class = {0};
		diff_put_family(buf_view(&x->text), STR(""), &class);
		buf_str(&x->text, buf_view(&class));
		buf_release(&class);
		x->class[name] = intern_put(&x->out->texts, x->text.p + end, x->text.n - end);
	}
	return x->class[name];
}

static uint32_t diff_tree_add(struct diff_aligner *x, struct diff_tree *t, uint32_t parent, struct str name, bool is_op)
{
	const uint32_t text = intern_str(&x->out->texts, name), key[] = {parent, text, is_op}, i = intern_put(&t->keys, (const char *)key, sizeof key);
	if (i < t->n)
		return i;
	MEM_GROW(t->node, t->cap, i + 1);
	t->node[t->n++] = (struct diff_tree_node){
		.name = text, .class = is_op ? text : diff_align_class_of(x, text), .parent = parent, .first = ROW_NONE, .last = ROW_NONE, .next = ROW_NONE, .match = ROW_NONE, .is_op = is_op,
	};
	if (is_op)
		return i;
	struct diff_tree_node *p = &t->node[parent];
	if (p->last == ROW_NONE)
		p->first = i;
	else
		t->node[p->last].next = i;
	p->last = i;
	p->modules++;
	return i;
}

/* The modules around the op before, which are mostly those around the next. */
struct diff_path {
	struct str text;         /* "/GPT_0/Block_3/" */
	struct diff_path_part {
		size_t end;          /* of its name in the text */
		uint32_t module;
	} *part;
	size_t n, cap;
};

/* How many modules around the op before are around that of the path, too. */
static size_t diff_path_common(const struct diff_path *p, struct str path)
{
	size_t same = 0, n = 0;
	while (same < path.n && same < p->text.n && path.p[same] == p->text.p[same])
		same++;
	/* A name ends where its slash is equal. */
	while (n < p->n && p->part[n].end < same)
		n++;
	return n;
}

/* The op of the name, with the modules of its path. */
static uint32_t diff_tree_op(struct diff_aligner *x, struct diff_tree *t, struct diff_path *before, struct str name, struct str type)
{
	const struct str path = {name.p, name.n > type.n && memcmp(name.p + name.n - type.n, type.p, type.n) == 0 ? name.n - type.n : 0};
	before->n = diff_path_common(before, path);
	before->text = path;
	for (size_t from = before->n ? before->part[before->n - 1].end : 0, to; from < path.n; from = to + 1) {
		for (to = from; to < path.n && path.p[to] != '/';)
			to++;
		if (to == from)
			continue;
		MEM_GROW(before->part, before->cap, before->n + 1);
		before->part[before->n] = (struct diff_path_part){to, diff_tree_add(x, t, before->n ? before->part[before->n - 1].module : 0, (struct str){path.p + from, to - from}, false)};
		before->n++;
	}
	return diff_tree_add(x, t, before->n ? before->part[before->n - 1].module : 0, path.n ? type : name, true);
}

static bool diff_part_has_op(const struct diff_part *p)
{
	return p->key.kind != DIFF_IDLE && p->key.kind != DIFF_COPY && p->key.name != 0;
}

static void diff_sketch_add(uint32_t *sketch, uint64_t what)
{
	for (unsigned k = 0; k < DIFF_SKETCH; k++) {
		const uint32_t h = (uint32_t)hash_u64(what + (k + 1) * 0x9e3779b97f4a7c15u);
		sketch[k] = h < sketch[k] ? h : sketch[k];
	}
}

static uint64_t diff_text_hash(const struct intern *texts, uint32_t id)
{
	const struct str s = intern_get(texts, id);
	return hash_bytes(s.p, s.n);
}

static uint64_t diff_way_hash(const struct diff_side *s, const struct diff_key *k, bool shapes)
{
	return hash_u64(hash_u64(1 + (uint64_t)k->direction) + (shapes ? diff_text_hash(&s->texts, k->shapes) : 0));
}

static void diff_tree_build(struct diff_aligner *x, int side, bool shapes)
{
	const struct diff_side *s = x->out->side[side];
	struct diff_tree *t = &x->tree[side];
	struct diff_path path = {0};
	struct sort_item *way = NEW_ARRAY_RAW(s->n_parts, struct sort_item);
	uint32_t n = 0;
	intern_init(&t->keys);
	MEM_GROW(t->node, t->cap, 1);
	t->node[t->n++] = (struct diff_tree_node){.first = ROW_NONE, .last = ROW_NONE, .next = ROW_NONE, .match = 0};
	t->of_part = mem_filled((size_t)s->n_parts + 1, ROW_NONE);
	for (uint32_t i = 0; i < s->n_parts; i++) {
		const struct diff_key *k = &s->part[i].key;
		if (!diff_part_has_op(&s->part[i]))
			continue;
		const uint32_t op = t->of_part[i] = diff_tree_op(x, t, &path, intern_get(&s->texts, k->name), intern_get(&s->texts, k->type));
		t->node[op].full = k->name;
		way[n++] = (struct sort_item){hash_u64(diff_way_hash(s, k, shapes) + (uint64_t)op * 0x9e3779b97f4a7c15u), op, i};
	}
	/* Each pass with each shape once, in any order. */
	sort_items(way, n);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || way[i].key != way[i - 1].key)
			t->node[way[i].row].content += diff_way_hash(s, &s->part[way[i].tie].key, shapes);
	mem_free(path.part);
	mem_free(way);
}

/* Children have greater numbers, so that going backwards visits them first. Ops are summed, since their order is that of streams; modules are chained. */
static void diff_tree_hash(const struct diff_aligner *x, struct diff_tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		memset(t->node[i].sketch, 0xff, sizeof t->node[i].sketch);
	for (uint32_t i = t->n; i-- > 0;) {
		struct diff_tree_node *n = &t->node[i];
		for (uint32_t c = n->first; c != ROW_NONE; c = t->node[c].next)
			n->content = hash_u64(n->content * 31 + t->node[c].hash);
		const uint64_t own = diff_text_hash(&x->out->texts, n->class) + n->is_op;
		n->hash = hash_u64(n->content + hash_u64(own));
		if (i == 0)
			break;
		struct diff_tree_node *p = &t->node[n->parent];
		if (n->is_op) {
			p->content += hash_u64(n->hash);
			diff_sketch_add(p->sketch, own);
			diff_sketch_add(p->sketch, n->hash);
		}
		for (unsigned k = 0; k < DIFF_SKETCH; k++)
			p->sketch[k] = n->sketch[k] < p->sketch[k] ? n->sketch[k] : p->sketch[k];
	}
}

/* ---- matching ---- */

static unsigned diff_align_alike(const struct diff_tree_node *a, const struct diff_tree_node *b)
{
	unsigned n = 0;
	for (unsigned k = 0; k < DIFF_SKETCH; k++)
		n += a->sketch[k] == b->sketch[k];
	return n;
}

/* The module of this class that `i` wraps, alone or in wrappers; else ROW_NONE. */
static uint32_t diff_wrapped(const struct diff_tree *t, uint32_t i, uint32_t class)
{
	for (unsigned k = 0; k < DIFF_WRAPPERS && t->node[i].modules == 1; k++) {
		i = t->node[i].first;
		if (t->node[i].class == class)
			return i;
	}
	return ROW_NONE;
}

/* What of two modules belongs together: they, or what one of them wraps. */
static struct diff_pair diff_unwrapped(const struct diff_aligner *x, uint32_t a, uint32_t b)
{
	const uint32_t class[] = {x->tree[0].node[a].class, x->tree[1].node[b].class};
	if (class[0] != class[1]) {
		const uint32_t in_b = diff_wrapped(&x->tree[1], b, class[0]), in_a = diff_wrapped(&x->tree[0], a, class[1]);
		if (in_b != ROW_NONE)
			return (struct diff_pair){a, in_b};
		if (in_a != ROW_NONE)
			return (struct diff_pair){in_a, b};
	}
	return (struct diff_pair){a, b};
}

static unsigned diff_align_fit(const void *context, uint32_t i, uint32_t k)
{
	const struct diff_aligner *x = context;
	const uint32_t a = x->below[0][i], b = x->below[1][k];
	const struct diff_pair p = diff_unwrapped(x, a, b);
	const struct diff_tree_node *na = &x->tree[0].node[p.a], *nb = &x->tree[1].node[p.b];
	const unsigned alike = diff_align_alike(na, nb);
	if (na->class == nb->class)
		return (p.a == a && p.b == b ? DIFF_FIT_CLASS + (na->name == nb->name ? DIFF_FIT_NAME : 0) : DIFF_FIT_WRAPPED) + alike * DIFF_FIT_SKETCH;
	/* Two classes that both sides have changed places; neither was renamed to the other. */
	if (x->known[0][i] && x->known[1][k])
		return 0;
	if (na->content == nb->content)
		return DIFF_FIT_CONTENT;
	return alike >= DIFF_RENAMED_SKETCH ? DIFF_FIT_ALIKE + alike * DIFF_FIT_SKETCH : 0;
}

static void diff_align_match(struct diff_aligner *x, uint32_t a, uint32_t b)
{
	const struct diff_pair p = diff_unwrapped(x, a, b);
	x->tree[0].node[p.a].match = p.b;
	x->tree[1].node[p.b].match = p.a;
	if (!x->tree[0].node[p.a].modules || !x->tree[1].node[p.b].modules)
		return;
	MEM_GROW(x->todo, x->cap, x->n + 1);
	x->todo[x->n++] = p;
}

static uint64_t diff_moved_key(const struct diff_tree_node *n, bool by_name)
{
	return by_name ? hash_u64(n->name) : n->hash;
}

/* Modules left over, by what `by_name` says, in order. */
static struct sort_item *diff_left_over(const struct diff_aligner *x, int side, const bool *taken, bool by_name, uint32_t *n)
{
	struct sort_item *v = NEW_ARRAY_RAW(x->n_below[side], struct sort_item);
	*n = 0;
	for (uint32_t i = 0; i < x->n_below[side]; i++)
		if (!taken[i])
			v[(*n)++] = (struct sort_item){diff_moved_key(&x->tree[side].node[x->below[side][i]], by_name), i, 0};
	sort_items(v, *n);
	return v;
}

static void diff_match_moved(struct diff_aligner *x, bool *const taken[2], bool by_name)
{
	uint32_t n[2];
	struct sort_item *v[2];
	for (int s = 0; s < 2; s++)
		v[s] = diff_left_over(x, s, taken[s], by_name, &n[s]);
	for (uint32_t i = 0, k = 0; i < n[0] && k < n[1];) {
		if (v[0][i].key != v[1][k].key) {
			v[0][i].key < v[1][k].key ? i++ : k++;
			continue;
		}
		taken[0][v[0][i].row] = taken[1][v[1][k].row] = true;
		diff_align_match(x, x->below[0][v[0][i++].row], x->below[1][v[1][k++].row]);
	}
	for (int s = 0; s < 2; s++)
		mem_free(v[s]);
}

static struct sort_item *diff_classes_below(const struct diff_aligner *x, int side)
{
	struct sort_item *v = NEW_ARRAY_RAW(x->n_below[side], struct sort_item);
	for (uint32_t i = 0; i < x->n_below[side]; i++)
		v[i] = (struct sort_item){x->tree[side].node[x->below[side][i]].class, i, 0};
	sort_items(v, x->n_below[side]);
	return v;
}

static void diff_know_classes(struct diff_aligner *x)
{
	struct sort_item *v[] = {diff_classes_below(x, 0), diff_classes_below(x, 1)};
	for (int s = 0; s < 2; s++) {
		x->known[s] = NEW_ARRAY(x->n_below[s], bool);
		for (uint32_t i = 0, k = 0; i < x->n_below[s]; i++) {
			while (k < x->n_below[!s] && v[!s][k].key < v[s][i].key)
				k++;
			x->known[s][v[s][i].row] = k < x->n_below[!s] && v[!s][k].key == v[s][i].key;
		}
	}
	mem_free(v[0]);
	mem_free(v[1]);
}

static void diff_match_modules(struct diff_aligner *x, struct diff_pair p)
{
	const uint32_t parent[] = {p.a, p.b};
	uint64_t *hash[2];
	bool *taken[2];
	for (int s = 0; s < 2; s++) {
		const struct diff_tree *t = &x->tree[s];
		uint32_t n = 0;
		x->n_below[s] = t->node[parent[s]].modules;
		x->below[s] = NEW_ARRAY_RAW(x->n_below[s], uint32_t);
		hash[s] = NEW_ARRAY_RAW(x->n_below[s], uint64_t);
		taken[s] = NEW_ARRAY(x->n_below[s], bool);
		for (uint32_t c = t->node[parent[s]].first; c != ROW_NONE; c = t->node[c].next) {
			hash[s][n] = t->node[c].hash;
			x->below[s][n++] = c;
		}
	}
	uint32_t *match = NEW_ARRAY_RAW(x->n_below[0], uint32_t);
	diff_know_classes(x);
	const struct align_ask ask = {.hash = {hash[0], hash[1]}, .n = {x->n_below[0], x->n_below[1]}, .fit = diff_align_fit, .context = x};
	align_sequences(&ask, match);
	for (uint32_t i = 0; i < x->n_below[0]; i++)
		if (match[i] != ALIGN_NONE) {
			taken[0][i] = taken[1][match[i]] = true;
			diff_align_match(x, x->below[0][i], x->below[1][match[i]]);
		}
	diff_match_moved(x, taken, false);
	diff_match_moved(x, taken, true);
	mem_free(match);
	for (int s = 0; s < 2; s++) {
		mem_free(x->below[s]);
		mem_free(x->known[s]);
		mem_free(hash[s]);
		mem_free(taken[s]);
	}
}

/* Ops of modules that belong together, by type. */
static void diff_match_ops(struct diff_aligner *x)
{
	const struct diff_tree *a = &x->tree[0], *b = &x->tree[1];
	for (uint32_t i = 1; i < a->n; i++) {
		struct diff_tree_node *op = &a->node[i];
		const uint32_t parent = a->node[op->parent].match, key[] = {parent, op->name, true};
		if (!op->is_op || parent == ROW_NONE)
			continue;
		const uint32_t other = intern_find(&b->keys, (struct str){(const char *)key, sizeof key});
		if (other == INTERN_NONE)
			continue;
		op->match = other;
		b->node[other].match = i;
	}
}

/* ---- the aligned tree ---- */

/* Where a node of A alone stands among its siblings: behind the one of B that the sibling before it is. */
struct diff_place {
	uint32_t b, a;           /* b first; a = 0: the node is in B */
};

static struct diff_place *diff_places(const struct diff_tree *a)
{
	struct diff_place *place = NEW_ARRAY(a->n, struct diff_place);
	uint32_t *last = NEW_ARRAY(a->n, uint32_t); /* of a parent: the node of B that its newest child is, or stands behind */
	for (uint32_t i = 1; i < a->n; i++) {
		const struct diff_tree_node *n = &a->node[i];
		const bool both = n->match != ROW_NONE;
		place[i] = both ? (struct diff_place){n->match, 0} : (struct diff_place){last[n->parent], i};
		if (both)
			last[n->parent] = n->match;
	}
	mem_free(last);
	return place;
}

/* Nodes of A, then those that B alone has. */
struct diff_joint {
	uint32_t a, b, parent, first, next;
	struct diff_place place;
};

static uint32_t diff_joint_of(const struct diff_aligner *x, int side, uint32_t node, const uint32_t *of_b)
{
	return side == 0 ? node : x->tree[1].node[node].match != ROW_NONE ? x->tree[1].node[node].match : of_b[node];
}

/* Of a pair: where both parents belong together, that one; else the parent of B, if B alone has it, for a wrapper; else that of A. */
static uint32_t diff_joint_parent(const struct diff_aligner *x, const struct diff_joint *j, const uint32_t *of_b)
{
	const uint32_t a = j->a == ROW_NONE ? ROW_NONE : x->tree[0].node[j->a].parent, b = j->b == ROW_NONE ? ROW_NONE : x->tree[1].node[j->b].parent;
	if (a == ROW_NONE || (b != ROW_NONE && x->tree[1].node[b].match == ROW_NONE))
		return diff_joint_of(x, 1, b, of_b);
	return a;
}

static struct diff_joint *diff_join_trees(const struct diff_aligner *x, uint32_t *n)
{
	const struct diff_tree *a = &x->tree[0], *b = &x->tree[1];
	struct diff_place *place = diff_places(a);
	struct diff_joint *v = NEW_ARRAY((size_t)a->n + b->n, struct diff_joint);
	uint32_t *of_b = mem_filled(b->n, ROW_NONE);
	*n = 0;
	for (uint32_t i = 0; i < a->n; i++)
		v[(*n)++] = (struct diff_joint){.a = i, .b = a->node[i].match, .place = place[i], .first = ROW_NONE, .next = ROW_NONE};
	for (uint32_t i = 0; i < b->n; i++)
		if (b->node[i].match == ROW_NONE) {
			of_b[i] = *n;
			v[(*n)++] = (struct diff_joint){.a = ROW_NONE, .b = i, .place = {i, 0}, .first = ROW_NONE, .next = ROW_NONE};
		}
	v[0].parent = ROW_NONE;
	for (uint32_t i = 1; i < *n; i++)
		v[i].parent = diff_joint_parent(x, &v[i], of_b);
	mem_free(of_b);
	mem_free(place);
	return v;
}

/* The children of each node in order. */
static void diff_order_children(struct diff_joint *v, uint32_t n)
{
	struct sort_item *order = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t i = 1; i < n; i++)
		order[i - 1] = (struct sort_item){(uint64_t)v[i].place.b << 32 | v[i].place.a, i, 0};
	sort_items(order, n - 1);
	for (uint32_t k = n - 1; k-- > 0;) {
		const uint32_t i = order[k].row;
		v[i].next = v[v[i].parent].first;
		v[v[i].parent].first = i;
	}
	mem_free(order);
}

static void diff_put_node(const struct diff_aligner *x, const struct diff_joint *j, uint32_t parent, uint32_t *at)
{
	struct diff_align *out = x->out;
	struct diff_node *n = &out->node[out->n];
	const uint32_t of[] = {j->a, j->b};
	*n = (struct diff_node){.parent = parent, .depth = parent == ROW_NONE ? 0 : out->node[parent].depth + 1};
	for (int s = 0; s < 2; s++)
		if (of[s] != ROW_NONE) {
			const struct diff_tree_node *own = &x->tree[s].node[of[s]];
			n->name[s] = own->name;
			n->full[s] = own->full;
			n->is_op = own->is_op;
			n->on[s] = true;
			at[of[s] + (s ? x->tree[0].n : 0)] = out->n;
		}
	out->n++;
}

/* The tree without its root, in pre-order. */
static void diff_put_nodes(const struct diff_aligner *x, struct diff_joint *v, uint32_t n)
{
	struct diff_align *out = x->out;
	uint32_t *at = mem_filled((size_t)x->tree[0].n + x->tree[1].n, ROW_NONE); /* node of A, then of B -> of the aligned tree */
	uint32_t *placed = mem_filled(n, ROW_NONE);
	out->node = NEW_ARRAY(n, struct diff_node);
	for (uint32_t i = v[0].first; i != ROW_NONE;) {
		placed[i] = out->n;
		diff_put_node(x, &v[i], v[i].parent == 0 ? ROW_NONE : placed[v[i].parent], at);
		uint32_t next = v[i].first;
		while (next == ROW_NONE && i != 0) {
			next = v[i].next;
			i = v[i].parent;
		}
		i = next;
	}
	assert(out->n == n - 1);
	for (int s = 0; s < 2; s++) {
		out->of_part[s] = mem_filled((size_t)out->side[s]->n_parts + 1, ROW_NONE);
		for (uint32_t i = 0; i < out->side[s]->n_parts; i++)
			if (x->tree[s].of_part[i] != ROW_NONE)
				out->of_part[s][i] = at[x->tree[s].of_part[i] + (s ? x->tree[0].n : 0)];
	}
	mem_free(at);
	mem_free(placed);
}

void diff_align_init(struct diff_align *out, const struct diff_side *a, const struct diff_side *b)
{
	struct diff_aligner x = {.out = out};
	const bool shapes = diff_side_has_shapes(a) && diff_side_has_shapes(b);
	uint32_t n;
	*out = (struct diff_align){.side = {a, b}};
	intern_init(&out->texts);
	for (int s = 0; s < 2; s++) {
		diff_tree_build(&x, s, shapes);
		diff_tree_hash(&x, &x.tree[s]);
	}
	MEM_GROW(x.todo, x.cap, 1);
	x.todo[x.n++] = (struct diff_pair){0, 0};
	while (x.n)
		diff_match_modules(&x, x.todo[--x.n]);
	diff_match_ops(&x);
	struct diff_joint *joint = diff_join_trees(&x, &n);
	diff_order_children(joint, n);
	diff_put_nodes(&x, joint, n);
	mem_free(joint);
	mem_free(x.todo);
	mem_free(x.class);
	buf_release(&x.text);
	for (int s = 0; s < 2; s++) {
		intern_release(&x.tree[s].keys);
		mem_free(x.tree[s].node);
		mem_free(x.tree[s].of_part);
	}
}

void diff_align_release(struct diff_align *x)
{
	intern_release(&x->texts);
	mem_free(x->node);
	mem_free(x->of_part[0]);
	mem_free(x->of_part[1]);
}

/* Appends the names of the modules around a node of B alone, outermost first. */
static void diff_put_path(const struct diff_align *x, uint32_t node, struct buf *out)
{
	uint32_t depth = x->node[node].depth, *path = NEW_ARRAY_RAW(depth, uint32_t);
	for (uint32_t k = depth, i = x->node[node].parent; k-- > 0; i = x->node[i].parent)
		path[k] = i;
	for (uint32_t k = 0; k < depth; k++) {
		const struct diff_node *n = &x->node[path[k]];
		buf_printf(out, "/" STR_FMT, STR_ARG(intern_get(&x->texts, n->name[n->on[0] ? 0 : 1])));
	}
	mem_free(path);
}

void diff_align_put_name(const struct diff_align *x, uint32_t op, struct buf *out)
{
	const struct diff_node *n = &x->node[op];
	assert(n->is_op);
	if (n->on[0]) {
		buf_str(out, intern_get(&x->side[0]->texts, n->full[0]));
		return;
	}
	if (n->parent == ROW_NONE) {
		buf_str(out, intern_get(&x->side[1]->texts, n->full[1]));
		return;
	}
	diff_put_path(x, op, out);
	buf_printf(out, "/" STR_FMT, STR_ARG(intern_get(&x->texts, n->name[1])));
}
