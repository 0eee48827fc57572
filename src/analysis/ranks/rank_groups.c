#include "analysis/ranks/rank_groups.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "io/json.h"

enum {
	RANK_GROUPS_LOOK_UP = 12, /* ranges around a launch, at most */
	RANK_GROUPS_MEMBERS = 1 << 21, /* of all groups of a rank together: what is more counts as not recorded */
};

static int rank_groups_by_number(const void *a, const void *b)
{
	return COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

/* The members in a list of numbers, "[0, 1, 2]". False, and none, where the list is cut ("...") or is not one of ranks. */
static bool rank_groups_read_members(struct rank_groups *s, struct str text, struct rank_group *g)
{
	uint32_t cap = 0;
	bool sound = text.n > 2 && text.p[0] == '[' && text.p[text.n - 1] == ']';
	struct str rest = sound ? (struct str){text.p + 1, text.n - 2} : STR(""), one;
	while (sound && rest.n && str_split(&rest, ',', &one)) {
		int64_t rank;
		sound = str_to_i64(str_trim(one), &rank) && rank >= 0 && s->n_members + g->n < RANK_GROUPS_MEMBERS;
		if (sound)
			MEM_PUSH(g->member, g->n, cap, rank);
	}
	if (g->n)
		qsort(g->member, g->n, sizeof *g->member, rank_groups_by_number);
	for (uint32_t i = 1; i < g->n; i++)
		sound &= g->member[i] != g->member[i - 1];
	if (sound && g->n && (!g->size || g->size == (int64_t)g->n)) {
		g->size = g->n;
		s->n_members += g->n;
		return true;
	}
	mem_free(g->member);
	g->member = NULL;
	g->n = 0;
	return false;
}

/* One object of pg_config. */
static const char *rank_groups_read_listed(struct rank_groups *s, struct json *j, struct str object)
{
	struct rank_group g = {0};
	struct json_value key, v, members = {0};
	bool first = true;
	const char *at = object.p + 1;
	while (at && (at = json_member(j, at, &first, &key)) && key.raw.p) {
		at = json_value(j, at, &v);
		if (!at)
			break;
		if (str_eqc(key.raw, "pg_name"))
			g.name = arena_str(&s->r->arena, v.raw);
		else if (str_eqc(key.raw, "pg_desc"))
			g.about = arena_str(&s->r->arena, v.raw);
		else if (str_eqc(key.raw, "ranks"))
			members = v;
		else if (str_eqc(key.raw, "pg_size"))
			json_to_i64(v.raw, &g.size);
	}
	g.size = g.size > 0 ? g.size : 0;
	if (members.raw.n)
		rank_groups_read_members(s, members.raw, &g);
	if (at && g.name.n && intern_find(&s->listed, g.name) == INTERN_NONE) {
		intern_str(&s->listed, g.name);
		MEM_PUSH(s->list, s->n_list, s->cap_list, g);
	} else {
		mem_free(g.member);
	}
	return at;
}

static void rank_groups_read_list(struct rank_groups *s, struct json *j, const char *at)
{
	bool first = true, done = false;
	struct json_value v;
	for (at++; at && (at = json_element(j, at, &first, &done)) && !done;) {
		const char *object = at;
		at = json_value(j, at, &v);
		if (at && v.type == JSON_OBJECT && !rank_groups_read_listed(s, j, (struct str){object, (size_t)(at - object)}))
			return;
	}
}

void rank_groups_init(struct rank_groups *s, const struct profile *p, struct rank *r)
{
	struct str text;
	*s = (struct rank_groups){.r = r};
	intern_init(&s->keys);
	intern_init(&s->listed);
	if (!profile_meta(p, "distributedInfo", &text) || !text.n || text.p[0] != '{')
		return;
	struct buf padded = {0};
	buf_str(&padded, text);
	buf_fill(&padded, 0, JSON_PADDING);
	struct json j = {.end = padded.p + text.n};
	struct json_value key, v;
	bool first = true;
	for (const char *at = padded.p + 1; at && (at = json_member(&j, at, &first, &key)) && key.raw.p;) {
		const char *list = at;
		at = json_value(&j, at, &v);
		if (at && v.type == JSON_ARRAY && str_eqc(key.raw, "pg_config"))
			rank_groups_read_list(s, &j, list);
	}
	buf_release(&padded);
}

void rank_groups_release(struct rank_groups *s)
{
	for (uint32_t i = 0; i < s->n_list; i++)
		mem_free(s->list[i].member);
	mem_free(s->list);
	intern_release(&s->keys);
	intern_release(&s->listed);
}

/* What is recorded of one collective. Texts are slices of the profile's. */
struct rank_groups_found {
	struct str name, about, id, members, seq;
	int64_t size;
	bool is_address;
};

static bool rank_groups_read_args(const struct profile *p, uint32_t set, struct rank_groups_found *f)
{
	struct str size;
	if (!profile_arg(p, set, ARG_GROUP_NAME, &f->name) && !profile_arg(p, set, ARG_GROUP_SIZE, &size) && !profile_arg(p, set, ARG_GROUP_ID, &f->id))
		return false;
	profile_arg(p, set, ARG_GROUP_DESCRIPTION, &f->about);
	profile_arg(p, set, ARG_GROUP_ID, &f->id);
	profile_arg(p, set, ARG_GROUP_RANKS, &f->members);
	profile_arg(p, set, ARG_SEQUENCE, &f->seq);
	if (!profile_arg(p, set, ARG_GROUP_SIZE, &size) || !str_to_i64(size, &f->size) || f->size < 0)
		f->size = 0;
	return true;
}

/* Up to torch 2.2 record_param_comms has nothing but values without names: the operand, the number in the group, the group's address, the rank,
 * the collective's name, how it is split (twice), and the number of ranks last. */
static bool rank_groups_read_values(const struct profile *p, uint32_t set, struct rank_groups_found *f)
{
	enum { SEQ = 1, GROUP = 2, LEAST = 8 };
	struct str text, value[LEAST + 4];
	unsigned n = 0;
	if (!profile_arg(p, set, ARG_INPUT_VALUES, &text) || text.n < 2 || text.p[0] != '[')
		return false;
	struct str rest = {text.p + 1, text.n - 2};
	while (rest.n && n < sizeof value / sizeof *value && str_split(&rest, ',', &value[n])) {
		struct str s = str_trim(value[n]);
		value[n++] = s.n > 1 && s.p[0] == '"' ? (struct str){s.p + 1, s.n - 2} : s;
	}
	int64_t seq;
	if (n < LEAST || !str_to_i64(value[SEQ], &seq) || !str_to_i64(value[GROUP], &seq) || !str_to_i64(value[n - 1], &f->size) || f->size < 1)
		return false;
	f->seq = value[SEQ];
	f->name = value[GROUP];
	f->is_address = true;
	return true;
}

static void rank_groups_find(const struct profile *p, struct rank_groups_at from, struct rank_groups_found *f)
{
	uint32_t at = from.around;
	*f = (struct rank_groups_found){0};
	if (rank_groups_read_args(p, from.args, f))
		return;
	for (int i = 0; i < RANK_GROUPS_LOOK_UP && at != ROW_NONE; i++, at = p->span.parent[at]) {
		if (rank_groups_read_args(p, p->span.args[at], f))
			return;
		if (str_eqc(profile_str(p, p->span.name[at]), "record_param_comms") && rank_groups_read_values(p, p->span.args[at], f))
			return;
	}
}

/* The argument of the collective, else of a range around it. */
static bool rank_groups_arg(const struct profile *p, struct rank_groups_at from, enum arg_key key, struct str *value)
{
	if (profile_arg(p, from.args, key, value))
		return true;
	uint32_t at = from.around;
	for (int i = 0; i < RANK_GROUPS_LOOK_UP && at != ROW_NONE; i++, at = p->span.parent[at])
		if (profile_arg(p, p->span.args[at], key, value))
			return true;
	return false;
}

/* What stands in for a list that is cut: the first rank, and how far the ranks are apart. */
static bool rank_groups_read_stride(struct rank_groups *s, const struct profile *p, struct rank_groups_at from, struct rank_group *g)
{
	struct str text;
	int64_t start, stride;
	const int64_t room = RANK_GROUPS_MEMBERS - (int64_t)s->n_members;
	if (!rank_groups_arg(p, from, ARG_GROUP_STRIDE, &text) || !str_to_i64(text, &stride) || !rank_groups_arg(p, from, ARG_GROUP_START, &text) || !str_to_i64(text, &start))
		return false;
	if (stride < 1 || stride > INT32_MAX || start < 0 || start > INT32_MAX || g->size < 2 || g->size > room)
		return false;
	g->n = (uint32_t)g->size;
	g->member = NEW_ARRAY(g->n, int64_t);
	s->n_members += g->n;
	for (uint32_t i = 0; i < g->n; i++)
		g->member[i] = start + i * stride;
	return true;
}

/* Members: as the collective lists them, or says how they are spaced, else as the head of the input does, else all ranks where there are as many. */
static void rank_groups_add_members(struct rank_groups *s, const struct profile *p, struct rank_groups_at from, const struct rank_groups_found *f, struct rank_group *g)
{
	if (f->members.n && (rank_groups_read_members(s, f->members, g) || rank_groups_read_stride(s, p, from, g)))
		return;
	uint32_t listed = g->is_address || !g->name.n ? INTERN_NONE : intern_find(&s->listed, g->name);
	const struct rank_group *of = listed != INTERN_NONE && listed ? &s->list[listed - 1] : NULL;
	if (of && of->n && (!g->size || g->size == (int64_t)of->n) && s->n_members + of->n <= RANK_GROUPS_MEMBERS) {
		g->member = NEW_ARRAY(of->n, int64_t);
		memcpy(g->member, of->member, of->n * sizeof *of->member);
		g->n = of->n;
		g->size = of->n;
		s->n_members += of->n;
		g->about = g->about.n ? g->about : of->about;
	} else if (g->size && g->size == s->r->world && g->size <= RANK_GROUPS_MEMBERS - (int64_t)s->n_members) {
		g->member = NEW_ARRAY(g->size, int64_t);
		g->n = (uint32_t)g->size;
		s->n_members += g->n;
		for (uint32_t i = 0; i < g->n; i++)
			g->member[i] = i;
	}
}

uint32_t rank_groups_of(struct rank_groups *s, const struct profile *p, struct rank_groups_at from, int64_t *seq)
{
	struct rank_groups_found f;
	struct buf key = {0};
	rank_groups_find(p, from, &f);
	if (!f.seq.n || !str_to_i64(f.seq, seq))
		*seq = RANK_UNKNOWN;
	buf_printf(&key, STR_FMT "\n" STR_FMT "\n%lld\n" STR_FMT, STR_ARG(f.id), STR_ARG(f.name), (long long)f.size, STR_ARG(f.members));
	uint32_t before = s->keys.n, at = intern_str(&s->keys, buf_view(&key)) - 1;
	buf_release(&key);
	if (s->keys.n == before)
		return at;
	struct arena *a = &s->r->arena;
	struct rank_group g = {.name = arena_str(a, f.name), .about = arena_str(a, f.about), .id = arena_str(a, f.id), .is_address = f.is_address, .size = f.size};
	rank_groups_add_members(s, p, from, &f, &g);
	MEM_PUSH(s->r->group, s->r->n_groups, s->cap, g);
	return at;
}

/* c10d's ranges name both ranks by their places in the group: "nccl:send 0->1", "nccl:recv 0<-1". */
static bool rank_groups_named_peer(const struct profile *p, uint32_t g, bool sends, int64_t *place)
{
	uint32_t at = p->gpu_op.call[g];
	for (int i = 0; i < RANK_GROUPS_LOOK_UP && at != ROW_NONE; i++, at = p->span.parent[at]) {
		struct str name = profile_str(p, p->span.name[at]);
		ptrdiff_t arrow = str_find(name, sends ? STR("->") : STR("<-"));
		if (arrow >= 0 && str_starts(name, sends ? STR("nccl:send ") : STR("nccl:recv ")))
			return str_to_i64((struct str){name.p + arrow + 2, name.n - (size_t)arrow - 2}, place);
	}
	return false;
}

int64_t rank_groups_peer(const struct profile *p, uint32_t g, enum comm_kind kind, const struct rank_group *group)
{
	struct str text;
	int64_t rank;
	bool sends = kind == COMM_SEND;
	if (!sends && kind != COMM_RECV)
		return RANK_UNKNOWN;
	if (rank_groups_arg(p, rank_groups_at_kernel(p, g), sends ? ARG_SEND_TO : ARG_RECV_FROM, &text) && str_to_i64(text, &rank) && rank >= 0)
		return rank;
	/* torch makes groups of ranks in ascending order, and so are the members. */
	return rank_groups_named_peer(p, g, sends, &rank) && rank >= 0 && rank < group->n ? group->member[rank] : RANK_UNKNOWN;
}

int rank_groups_parts(const struct profile *p, uint32_t g, int64_t part[RANK_GROUPS_PARTS])
{
	struct str text, one;
	int n = 0;
	if (!rank_groups_arg(p, rank_groups_at_kernel(p, g), ARG_MESSAGE_SPLIT, &text) || text.n < 2 || text.p[0] != '[' || text.p[text.n - 1] != ']')
		return -1;
	for (struct str rest = {text.p + 1, text.n - 2}; rest.n && str_split(&rest, ',', &one);) {
		if (n == RANK_GROUPS_PARTS || !str_to_i64(str_trim(one), &part[n]) || part[n] < 0)
			return -1;
		n++;
	}
	return n;
}
