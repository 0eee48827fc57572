#include "predecessors/tb_plugin/diff_pairs.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "render/number.h"

/* Of one tree: a node, a list of at least two, or nothing. */
struct tb_side {
	const struct tb_tree *t;
	const uint32_t *v;
	uint32_t n;
};

struct tb_pair {
	struct tb_side left, right;
};

struct tb_pairs {
	struct tb_pair *v;
	uint32_t n, cap;
};

static struct tb_side tb_inside(struct tb_side s)
{
	return s.n == 1 ? (struct tb_side){s.t, s.t->v[s.v[0]].kids.v, s.t->v[s.v[0]].kids.n} : s;
}

static struct tb_side tb_between(struct tb_side s, uint32_t first, uint32_t end)
{
	return (struct tb_side){s.t, s.v + first, end - first};
}

static uint32_t tb_key(struct intern *keys, const struct tb_tree *t, uint32_t node)
{
	struct buf b = {0};
	buf_char(&b, (char)('0' + t->v[node].kind));
	buf_str(&b, tb_name(t, node));
	const uint32_t id = intern_str(keys, buf_view(&b)) - 1;
	buf_release(&b);
	return id;
}

static void tb_push_pair(struct tb_pairs *out, struct tb_side left, struct tb_side right)
{
	if (left.n || right.n)
		MEM_PUSH(out->v, out->n, out->cap, (struct tb_pair){left, right});
}

/* What stands inside of two nodes, or in two lists: matches, and what is between them. Nothing where there is no match, or a node beside a list. */
static void tb_match(struct tb_side left, struct tb_side right, struct tb_pairs *out)
{
	struct intern keys;
	struct tb_list next = {0}, head = {0}; /* by place in `right`: the next one with its key; by key: the first that may still be taken */
	if (!left.n || !right.n || (left.n == 1) != (right.n == 1))
		return;
	left = tb_inside(left);
	right = tb_inside(right);
	intern_init(&keys);
	for (uint32_t i = 0; i < right.n; i++)
		tb_push(&next, ROW_NONE);
	for (uint32_t i = right.n; i-- > 0;) {
		if (right.t->v[right.v[i]].kind == TB_OP)
			continue;
		const uint32_t key = tb_key(&keys, right.t, right.v[i]);
		if (key == head.n)
			tb_push(&head, ROW_NONE);
		next.v[i] = head.v[key];
		head.v[key] = i;
	}
	uint32_t l = 0, r = 0;
	for (uint32_t i = 0; i < left.n; i++) {
		if (left.t->v[left.v[i]].kind == TB_OP)
			continue;
		const uint32_t key = tb_key(&keys, left.t, left.v[i]);
		while (key < head.n && head.v[key] != ROW_NONE && head.v[key] < r)
			head.v[key] = next.v[head.v[key]];
		if (key >= head.n || head.v[key] == ROW_NONE)
			continue;
		const uint32_t j = head.v[key];
		tb_push_pair(out, tb_between(left, l, i), tb_between(right, r, j));
		tb_push_pair(out, tb_between(left, i, i + 1), tb_between(right, j, j + 1));
		l = i + 1;
		r = j + 1;
	}
	if (out->n)
		tb_push_pair(out, tb_between(left, l, left.n), tb_between(right, r, right.n));
	intern_release(&keys);
	mem_free(next.v);
	mem_free(head.v);
}

/* ---- JSON ---- */

struct tb_sums {
	uint32_t name;
	uint64_t calls;
	int64_t host_ns, dev_ns, own_host_ns, own_dev_ns;
};

static void tb_put_us(const char *name, int64_t ns, struct buf *out)
{
	buf_printf(out, ",\"%s\":", name);
	number_shortest(out, (double)ns / 1000);
}

static void tb_add_sums(const struct tb_tree *t, const struct tb_node *x, struct intern *names, struct tb_sums **sums, uint32_t *n, size_t *cap)
{
	const uint32_t at = intern_put(names, (const char *)&x->name, sizeof x->name) - 1;
	if (at == *n)
		MEM_PUSH(*sums, *n, *cap, (struct tb_sums){.name = x->name});
	struct tb_sums *s = &(*sums)[at];
	s->calls++;
	s->host_ns += x->end_ns - x->start_ns;
	s->dev_ns += x->dev_ns;
	s->own_host_ns += x->own_host_ns;
	s->own_dev_ns += x->own_dev_ns;
}

struct tb_open {
	uint32_t node, kid;      /* the child that is next */
};

/* The operators inside, children before parents, summed up by name in the order in which these appear. */
static void tb_put_ops(struct tb_side s, struct buf *out)
{
	struct intern names;
	struct tb_sums *sums = NULL;
	struct tb_open *open = NULL;
	size_t depth = 0, cap = 0, cap_sums = 0;
	uint32_t n = 0;
	intern_init(&names);
	for (uint32_t i = 0; i < s.n; i++) {
		MEM_PUSH(open, depth, cap, (struct tb_open){.node = s.v[i]});
		while (depth) {
			struct tb_open *x = &open[depth - 1];
			const struct tb_node *node = &s.t->v[x->node];
			if (x->kid < node->kids.n) {
				const uint32_t kid = node->kids.v[x->kid++];
				MEM_PUSH(open, depth, cap, (struct tb_open){.node = kid});
				continue;
			}
			if (node->counts)
				tb_add_sums(s.t, node, &names, &sums, &n, &cap_sums);
			depth--;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		buf_cstr(out, i ? ",{\"name\":" : "{\"name\":");
		json_put_string(out, intern_get(&s.t->names, sums[i].name));
		buf_printf(out, ",\"calls\":%llu", (unsigned long long)sums[i].calls);
		tb_put_us("host_duration", sums[i].host_ns, out);
		tb_put_us("device_duration", sums[i].dev_ns, out);
		tb_put_us("self_host_duration", sums[i].own_host_ns, out);
		tb_put_us("self_device_duration", sums[i].own_dev_ns, out);
		buf_char(out, '}');
	}
	intern_release(&names);
	mem_free(sums);
	mem_free(open);
}

static void tb_put_side(const char *name, struct tb_side s, struct buf *out)
{
	int64_t host_ns = 0, dev_ns = 0, total_ns = 0;
	for (uint32_t i = 0; i < s.n; i++) {
		const struct tb_node *x = &s.t->v[s.v[i]];
		host_ns += x->end_ns - x->start_ns;
		dev_ns += x->dev_ns;
		total_ns += x->dev_ns ? x->dev_ns : x->end_ns - x->start_ns;
	}
	buf_printf(out, "\"%s\":{\"name\":", name);
	json_put_string(out, !s.n ? STR("Blank") : s.n == 1 ? tb_name(s.t, s.v[0]) : STR("CompositeNodes"));
	tb_put_us("duration", host_ns, out);
	tb_put_us("device_duration", dev_ns, out);
	tb_put_us("total_duration", total_ns, out);
	buf_cstr(out, ",\"aggs\":[");
	tb_put_ops(s, out);
	buf_cstr(out, "]}");
}

static void tb_put_pair(const struct tb_pair *x, struct buf *out)
{
	buf_char(out, '{');
	tb_put_side("left", x->left, out);
	buf_char(out, ',');
	tb_put_side("right", x->right, out);
}

/* Readers of JSON in Python give up at 1,000 containers within each other, of which a level has two. */
enum { TB_DEPTH_MAX = 300, TB_BYTES_MAX = 64 << 20 };

static void tb_put_tree(const struct tb_pair *x, unsigned depth, struct buf *out)
{
	struct tb_pairs inside = {0};
	tb_put_pair(x, out);
	buf_cstr(out, ",\"children\":[");
	if (depth < TB_DEPTH_MAX)
		tb_match(x->left, x->right, &inside);
	for (uint32_t i = 0; i < inside.n && out->n <= TB_BYTES_MAX; i++) {
		buf_cstr(out, i ? ",\n" : "\n");
		tb_put_tree(&inside.v[i], depth + 1, out);
	}
	buf_cstr(out, "]}");
	mem_free(inside.v);
}

static struct tb_pair tb_whole(const struct tb_tree *left, const struct tb_tree *right)
{
	return (struct tb_pair){{left, left->top.v, left->top.n}, {right, right->top.v, right->top.n}};
}

int tb_diff_put_all(const struct tb_tree *left, const struct tb_tree *right, struct buf *out, struct err *e)
{
	const struct tb_pair whole = tb_whole(left, right);
	tb_put_tree(&whole, 0, out);
	buf_char(out, '\n');
	return out->n <= TB_BYTES_MAX ? 0 : err_set(e, ERR_LIMIT, "the comparison takes more than %d MiB: diffnode gives it node by node", TB_BYTES_MAX >> 20);
}

static void tb_put_path(struct str path, struct buf *out)
{
	buf_cstr(out, ",\"path\":");
	json_put_string(out, path);
}

int tb_diff_put_node(const struct tb_tree *left, const struct tb_tree *right, struct str path, struct buf *out, struct err *e)
{
	struct tb_pair x = tb_whole(left, right);
	struct tb_pairs inside = {0};
	struct str rest = path, piece;
	bool first = true;
	while (str_split(&rest, '-', &piece)) {
		int64_t i;
		if (!first)
			tb_match(x.left, x.right, &inside);
		if (!str_to_i64(piece, &i) || i < 0 || (piece.n > 1 && *piece.p == '0') || (first ? i != 0 : i >= inside.n)) {
			mem_free(inside.v);
			return err_set(e, ERR_DATA, "could not find diff run for " STR_FMT, STR_ARG(path));
		}
		x = first ? x : inside.v[i];
		first = false;
		mem_free(inside.v);
		inside = (struct tb_pairs){0};
	}
	tb_match(x.left, x.right, &inside);
	tb_put_pair(&x, out);
	tb_put_path(path, out);
	buf_cstr(out, ",\"children\":[");
	for (uint32_t i = 0; i < inside.n; i++) {
		struct buf name = {0};
		buf_printf(&name, STR_FMT "-%u", STR_ARG(path), i);
		buf_cstr(out, i ? ",\n" : "\n");
		tb_put_pair(&inside.v[i], out);
		tb_put_path(buf_view(&name), out);
		buf_char(out, '}');
		buf_release(&name);
	}
	buf_cstr(out, "]}\n");
	mem_free(inside.v);
	return 0;
}
