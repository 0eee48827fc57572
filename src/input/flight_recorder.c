/* Dumps of torch's flight recorder: what it has written down of the collectives of one rank when the job hung. A dump is a pickle (or JSON) of plain data: the process groups
 * with their ranks, how far each has come, and the last calls (FlightRecorder.hpp). A call becomes a mark at the time at which it was made; groups become distributedInfo, as
 * torch.profiler writes it, with three more numbers for each: the last call that was made, begun and completed.
 *
 * The dump does not name its rank: that is the only one which all its groups have, else the number at the end of the file's name. It keys how far groups have come by a number
 * of its own (pg_id), which the calls state beside the group's name; of groups without calls the order tells, where it agrees with all calls. */
#include "input/input.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "io/pickle.h"
#include "store/build.h"

enum { FLIGHT_RECORDER_BYTES = 64 << 20, FLIGHT_RECORDER_PAIRS = 24, FLIGHT_RECORDER_FRAMES = 64, FLIGHT_RECORDER_MEMBERS = 1 << 21, FLIGHT_RECORDER_DIMS = 64 };

struct flight_recorder_group {
	struct str name, about;
	int64_t *member;           /* ascending; in the arena */
	uint32_t n;
	const struct py *status;   /* NULL = not told */
	int64_t order;             /* of its name, where that is a number; else -1 */
	uint32_t members;          /* the list of them, as a string's id; 0 = not made yet */
};

struct flight_recorder {
	struct arena arena;
	struct buf bytes;
	const struct py *root;
	const char *why;           /* of a damaged pickle; NULL = sound */
	size_t at;
	struct flight_recorder_group *group;
	uint32_t n, cap;
	uint32_t n_members;        /* of all groups */
	int64_t rank, world;       /* rank -1 = not known */
	bool named_otherwise;      /* the number at the end of the file's name is another one */
};

static struct str flight_recorder_str(const struct py *d, const char *key)
{
	const struct py *v = py_get(d, key);
	return v && v->type == PY_STR ? v->s : STR("");
}

static int64_t flight_recorder_i64(const struct py *d, const char *key, int64_t absent)
{
	const struct py *v = py_get(d, key);
	return v && v->type == PY_INT ? v->i : absent;
}

static bool flight_recorder_is(const struct py *d, const char *key)
{
	const struct py *v = py_get(d, key);
	return v && v->type == PY_BOOL && v->i;
}

static bool flight_recorder_is_list(const struct py *v) { return v && (v->type == PY_LIST || v->type == PY_TUPLE); }

/* ---- groups ---- */

static int flight_recorder_by_number(const void *a, const void *b) { return COMPARE(*(const int64_t *)a, *(const int64_t *)b); }

static void flight_recorder_add_member(struct flight_recorder *f, struct flight_recorder_group *g, uint32_t *cap, int64_t **v, int64_t rank)
{
	if (rank >= 0 && f->n_members < FLIGHT_RECORDER_MEMBERS) {
		MEM_PUSH(*v, g->n, *cap, rank);
		f->n_members++;
	}
}

/* "[0, 1]", or a list. */
static void flight_recorder_read_members(struct flight_recorder *f, const struct py *ranks, struct flight_recorder_group *g)
{
	int64_t *v = NULL, rank;
	uint32_t cap = 0, n = 0;
	struct str rest = ranks && ranks->type == PY_STR ? str_trim(ranks->s) : STR(""), one;
	if (rest.n > 1 && rest.p[0] == '[' && rest.p[rest.n - 1] == ']')
		rest = (struct str){rest.p + 1, rest.n - 2};
	while (rest.n && str_split(&rest, ',', &one))
		if (str_to_i64(str_trim(one), &rank))
			flight_recorder_add_member(f, g, &cap, &v, rank);
	const struct py *x = flight_recorder_is_list(ranks) ? ranks->first : NULL;
	for (; x && f->n_members < FLIGHT_RECORDER_MEMBERS; x = x->next)
		if (x->type == PY_INT)
			flight_recorder_add_member(f, g, &cap, &v, x->i);
		else
			f->n_members++;
	if (g->n)
		qsort(v, g->n, sizeof *v, flight_recorder_by_number);
	for (uint32_t i = 0; i < g->n; i++)
		if (!i || v[i] != v[i - 1])
			v[n++] = v[i];
	g->n = n;
	g->member = ARENA_ARRAY(&f->arena, n, int64_t);
	if (n)
		memcpy(g->member, v, n * sizeof *v);
	mem_free(v);
}

static int flight_recorder_by_order(const void *a, const void *b)
{
	const struct flight_recorder_group *x = a, *y = b;
	return COMPARE(x->order, y->order) ?: str_cmp(x->name, y->name);
}

static void flight_recorder_read_groups(struct flight_recorder *f)
{
	const struct py *config = py_get(f->root, "pg_config");
	for (const struct py *x = config && config->type == PY_DICT ? config->first : NULL; x; x = x->next) {
		struct flight_recorder_group g = {.name = flight_recorder_str(x, "name"), .about = flight_recorder_str(x, "desc"), .order = -1};
		if (!g.name.n && x->key && x->key->type == PY_STR)
			g.name = x->key->s;
		if (!str_to_i64(g.name, &g.order) || g.order < 0)
			g.order = -1;
		flight_recorder_read_members(f, py_get(x, "ranks"), &g);
		MEM_PUSH(f->group, f->n, f->cap, g);
	}
	if (f->n)
		qsort(f->group, f->n, sizeof *f->group, flight_recorder_by_order);
	for (uint32_t i = 0; i < f->n; i++)
		if (f->group[i].n && f->group[i].member[f->group[i].n - 1] < INT32_MAX && f->group[i].member[f->group[i].n - 1] + 1 > f->world)
			f->world = f->group[i].member[f->group[i].n - 1] + 1;
}

static bool flight_recorder_all_have(const struct flight_recorder *f, int64_t rank)
{
	for (uint32_t i = 0; i < f->n; i++) {
		const struct flight_recorder_group *g = &f->group[i];
		uint32_t at = FIRST_WHERE(k, 0, g->n, g->member[k] >= rank);
		if (g->n && (at == g->n || g->member[at] != rank))
			return false;
	}
	return true;
}

/* The number at the end of a file's name: "_dump_12", "nccl_trace_rank_12.json". */
static int64_t flight_recorder_named(const char *path)
{
	static const char *const suffixes[] = {".gz", ".json", ".pkl", ".pickle"};
	struct str name = str_from(path ? path : ""), digits;
	int64_t rank;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (str_ends(name, str_from(suffixes[i])))
			name.n -= strlen(suffixes[i]);
	digits = (struct str){name.p + name.n, 0};
	while (digits.p > name.p && is_digit(digits.p[-1])) {
		digits.p--;
		digits.n++;
	}
	return digits.n && str_to_i64(digits, &rank) ? rank : -1;
}

static void flight_recorder_find_rank(struct flight_recorder *f, const char *path)
{
	const struct flight_recorder_group *least = NULL;
	int64_t named = flight_recorder_named(path), only = -1;
	uint32_t fit = 0;
	for (uint32_t i = 0; i < f->n; i++)
		if (f->group[i].n && (!least || f->group[i].n < least->n))
			least = &f->group[i];
	for (uint32_t k = 0; least && k < least->n; k++)
		if (flight_recorder_all_have(f, least->member[k])) {
			only = least->member[k];
			fit++;
		}
	f->rank = fit == 1 ? only : named >= 0 && (!least || flight_recorder_all_have(f, named)) ? named : -1;
	f->named_otherwise = fit == 1 && named >= 0 && named != only;
}

/* ---- how far groups have come ---- */

static struct flight_recorder_group *flight_recorder_find_group(const struct flight_recorder *f, struct str name)
{
	int64_t order;
	if (!str_to_i64(name, &order) || order < 0)
		order = -1;
	const struct flight_recorder_group wanted = {.name = name, .order = order};
	uint32_t at = FIRST_WHERE(i, 0, f->n, flight_recorder_by_order(&f->group[i], &wanted) >= 0);
	return at < f->n && str_eq(f->group[at].name, name) ? &f->group[at] : NULL;
}

/* The name and description that a call has of its group. */
static struct str flight_recorder_call_group(const struct py *call, struct str *about)
{
	const struct py *g = py_get(call, "process_group");
	const struct py *name = flight_recorder_is_list(g) ? g->first : NULL, *desc = name ? name->next : NULL;
	*about = desc && desc->type == PY_STR ? desc->s : STR("");
	return name && name->type == PY_STR ? name->s : STR("");
}

static const struct py *flight_recorder_calls(const struct flight_recorder *f)
{
	const struct py *entries = py_get(f->root, "entries");
	return flight_recorder_is_list(entries) ? entries->first : NULL;
}

struct flight_recorder_status {
	int64_t id;
	const struct py *v;
};

static int flight_recorder_by_id(const void *a, const void *b)
{
	const struct flight_recorder_status *x = a, *y = b;
	return COMPARE(x->id, y->id);
}

/* Gives each group the status that the order tells, unless a call contradicts: then only what calls tell holds. */
static void flight_recorder_give_status(struct flight_recorder *f, const struct flight_recorder_status *v, uint32_t n)
{
	bool in_order = n == f->n;
	for (uint32_t i = 0; i < f->n && in_order; i++) {
		in_order = f->group[i].order >= 0;
		f->group[i].status = v[i].v;
	}
	for (int round = 0; round < 2; round++) {
		bool agree = true;
		for (const struct py *c = flight_recorder_calls(f); c; c = c->next) {
			struct str about;
			struct flight_recorder_group *g = flight_recorder_find_group(f, flight_recorder_call_group(c, &about));
			int64_t id = flight_recorder_i64(c, "pg_id", -1);
			uint32_t at = FIRST_WHERE(i, 0, n, v[i].id >= id);
			if (!g || at == n || v[at].id != id)
				continue;
			agree &= g->status == v[at].v;
			if (round)
				g->status = v[at].v;
		}
		if (in_order && agree)
			return;
		for (uint32_t i = 0; i < f->n && !round; i++)
			f->group[i].status = NULL;
	}
}

static void flight_recorder_read_status(struct flight_recorder *f)
{
	const struct py *status = py_get(f->root, "pg_status");
	struct flight_recorder_status *v = NULL;
	uint32_t n = 0, cap = 0;
	for (const struct py *x = status && status->type == PY_DICT ? status->first : NULL; x; x = x->next) {
		struct flight_recorder_status s = {.v = x};
		bool told = x->key && (x->key->type == PY_INT ? (s.id = x->key->i, true) : x->key->type == PY_STR && str_to_i64(x->key->s, &s.id));
		if (told)
			MEM_PUSH(v, n, cap, s);
	}
	if (n)
		qsort(v, n, sizeof *v, flight_recorder_by_id);
	flight_recorder_give_status(f, v, n);
	mem_free(v);
}

/* ---- the file ---- */

static void flight_recorder_release(struct flight_recorder *f)
{
	mem_free(f->group);
	buf_release(&f->bytes);
	arena_release(&f->arena);
}

static int flight_recorder_parse(struct flight_recorder *f, struct source *s, struct err *e)
{
	bool end = false;
	while (!end && f->bytes.n < FLIGHT_RECORDER_BYTES)
		buf_str(&f->bytes, source_next(s, (struct str){NULL, 0}, &end));
	struct str text = buf_view(&f->bytes);
	bool json = text.n && (*text.p == '{' || *text.p == ' ' || *text.p == '\n');
	f->root = json ? py_parse(text, &f->arena, &f->at) : pickle_parse(text, &f->arena, &f->at, &f->why);
	if (source_error(s))
		f->why = source_error(s);
	if (!end && !f->why)
		f->why = "it is longer than 64 MB";
	if (!f->root || f->root->type != PY_DICT)
		return err_set(e, ERR_FORMAT, "%s: byte %zu: %s; a dump of torch's flight recorder was expected", source_path(s), f->at,
		               f->why ? f->why : json ? "no JSON" : "no dict");
	const char *path = strcmp(source_path(s), "-") ? source_path(s) : NULL;
	flight_recorder_read_groups(f);
	flight_recorder_find_rank(f, path);
	flight_recorder_read_status(f);
	return 0;
}

static bool flight_recorder_rank(const char *path, int64_t *rank)
{
	struct flight_recorder f = {0};
	struct err e;
	struct source *s = source_open_regular(path, &e);
	bool told = s && flight_recorder_parse(&f, s, &e) == 0 && f.rank >= 0;
	*rank = f.rank;
	if (s)
		source_close(s);
	flight_recorder_release(&f);
	return told;
}

/* ---- into the profile ---- */

struct flight_recorder_row {
	struct profile *p;
	struct arg_pair pair[FLIGHT_RECORDER_PAIRS];
	unsigned n;
};

static void flight_recorder_put(struct flight_recorder_row *r, const char *key, struct str value, bool is_string)
{
	if (value.n && r->n < FLIGHT_RECORDER_PAIRS)
		r->pair[r->n++] = (struct arg_pair){intern_str(&r->p->strings, str_from(key)), intern_str(&r->p->strings, value), is_string};
}

static void flight_recorder_put_i64(struct flight_recorder_row *r, const char *key, int64_t v)
{
	struct buf b = {0};
	buf_i64(&b, v);
	flight_recorder_put(r, key, buf_view(&b), false);
	buf_release(&b);
}

static void flight_recorder_put_members(const struct flight_recorder_group *g, struct buf *b)
{
	buf_char(b, '[');
	for (uint32_t i = 0; i < g->n; i++)
		buf_printf(b, "%s%lld", i ? ", " : "", (long long)g->member[i]);
	buf_char(b, ']');
}

/* [[4096,5120],[8]]: what is no list of lists of numbers is left out, and so is what has more dimensions than a tensor can have. */
static void flight_recorder_put_dims(struct flight_recorder_row *r, const char *key, const struct py *sizes)
{
	struct buf b = {0};
	buf_char(&b, '[');
	for (const struct py *x = flight_recorder_is_list(sizes) ? sizes->first : NULL; x; x = x->next) {
		if (x->n > FLIGHT_RECORDER_DIMS)
			continue;
		buf_cstr(&b, b.n > 1 ? ",[" : "[");
		bool first = true;
		for (const struct py *d = flight_recorder_is_list(x) ? x->first : NULL; d; d = d->next, first = false)
			buf_printf(&b, "%s%lld", first ? "" : ",", (long long)(d->type == PY_INT ? d->i : -1));
		buf_char(&b, ']');
	}
	buf_char(&b, ']');
	if (b.n > 2)
		flight_recorder_put(r, key, buf_view(&b), false);
	buf_release(&b);
}

/* Where in the program it was called: innermost first, "file(line): function". */
static void flight_recorder_put_frames(struct flight_recorder_row *r, const struct py *call)
{
	const struct py *frames = py_get(call, "frames");
	struct buf b = {0};
	int n = 0;
	for (const struct py *x = flight_recorder_is_list(frames) ? frames->first : NULL; x && n < FLIGHT_RECORDER_FRAMES; x = x->next, n++)
		buf_printf(&b, "%s" STR_FMT "(%lld): " STR_FMT, n ? ";" : "", STR_ARG(flight_recorder_str(x, "filename")), (long long)flight_recorder_i64(x, "line", 0),
		           STR_ARG(flight_recorder_str(x, "name")));
	flight_recorder_put(r, arg_key_text[ARG_CALL_STACK], buf_view(&b), true);
	buf_release(&b);
}

static void flight_recorder_put_group(const struct flight_recorder *f, struct flight_recorder_row *r, const struct py *call)
{
	struct str about, name = flight_recorder_call_group(call, &about);
	struct flight_recorder_group *g = flight_recorder_find_group(f, name);
	struct buf b = {0};
	flight_recorder_put(r, arg_key_text[ARG_GROUP_NAME], name, true);
	flight_recorder_put(r, arg_key_text[ARG_GROUP_DESCRIPTION], about, true);
	if (!g || !g->n)
		return;
	flight_recorder_put_i64(r, arg_key_text[ARG_GROUP_SIZE], g->n);
	if (!g->members) {
		flight_recorder_put_members(g, &b);
		g->members = intern_str(&r->p->strings, buf_view(&b));
		buf_release(&b);
	}
	flight_recorder_put(r, arg_key_text[ARG_GROUP_RANKS], profile_str(r->p, g->members), true);
}

static struct str flight_recorder_first_type(const struct py *call)
{
	const struct py *types = py_get(call, "input_dtypes");
	const struct py *first = flight_recorder_is_list(types) ? types->first : NULL;
	return first && first->type == PY_STR ? first->s : STR("");
}

static uint32_t flight_recorder_track(struct build *b, const struct py *call)
{
	struct str tid = flight_recorder_str(call, "thread_id"), name = flight_recorder_str(call, "thread_name");
	uint32_t track = build_track(b, STR("rank"), tid.n ? tid : STR("calls"));
	if (name.n)
		b->p->track.thread_name[track] = intern_str(&b->p->strings, name);
	return track;
}

/* When the call was made; 0 where that is no time in ns. */
static int64_t flight_recorder_made_ns(struct build *b, const struct py *call)
{
	enum { TOO_FAR = 62 }; /* the distance of any two times fits an int64 */
	const int64_t at = flight_recorder_i64(call, "time_created_ns", 0);
	if (at < 1ll << TOO_FAR && at >= -(1ll << TOO_FAR))
		return at;
	diag_add(&b->p->diags, "bad-time", DIAG_REPAIR, -1, "time_created_ns of a call is no time in ns: the call has no place in time");
	return 0;
}

static void flight_recorder_put_call(const struct flight_recorder *f, struct build *b, const struct py *call, uint16_t cat)
{
	struct flight_recorder_row r = {.p = b->p};
	struct str name = flight_recorder_str(call, "profiling_name"), state = flight_recorder_str(call, "state"), op = name;
	bool p2p = flight_recorder_is(call, "is_p2p");
	int64_t at = flight_recorder_made_ns(b, call);
	if (!flight_recorder_i64(call, "time_discovered_completed_ns", 0) && !flight_recorder_is(call, "retired"))
		state = state.n ? state : STR("unknown");
	else
		state = STR("completed");
	str_skip(&op, STR("nccl:"));
	flight_recorder_put(&r, arg_key_text[ARG_COLLECTIVE], op, true);
	flight_recorder_put_group(f, &r, call);
	flight_recorder_put_i64(&r, arg_key_text[ARG_SEQUENCE], flight_recorder_i64(call, p2p ? "p2p_seq_id" : "collective_seq_id", -1));
	flight_recorder_put(&r, arg_key_text[ARG_CALL_STATE], state, true);
	flight_recorder_put_i64(&r, arg_key_text[ARG_CALL_RECORD], flight_recorder_i64(call, "record_id", -1));
	if (p2p)
		flight_recorder_put(&r, arg_key_text[ARG_CALL_P2P], STR("true"), false);
	flight_recorder_put_dims(&r, arg_key_text[ARG_INPUT_DIMS], py_get(call, "input_sizes"));
	flight_recorder_put_dims(&r, "Output Dims", py_get(call, "output_sizes"));
	flight_recorder_put(&r, arg_key_text[ARG_MESSAGE_TYPE], flight_recorder_first_type(call), true);
	int64_t timeout = flight_recorder_i64(call, "timeout_ms", -1);
	if (timeout >= 0)
		flight_recorder_put_i64(&r, "Timeout ms", timeout);
	flight_recorder_put_frames(&r, call);
	build_count(b, cat, 'i', 1);
	build_mark(b, at, intern_str(&b->p->strings, name.n ? name : STR("?")), flight_recorder_track(b, call), build_args(b, r.pair, r.n), cat, 'i');
}

static void flight_recorder_meta(struct build *b, const char *key, struct str value, bool is_string)
{
	if (value.n)
		build_meta(b, intern_str(&b->p->strings, str_from(key)), intern_str(&b->p->strings, value), is_string);
}

static void flight_recorder_put_far(const struct flight_recorder_group *g, const char *name, const char *key, struct buf *b)
{
	const struct py *v = g->status ? py_get(g->status, key) : NULL;
	if (v && v->type == PY_INT)
		buf_printf(b, ", \"%s\": %lld", name, (long long)v->i);
}

static void flight_recorder_put_job(const struct flight_recorder *f, struct build *b)
{
	struct buf t = {0};
	buf_cstr(&t, "{\"backend\": \"nccl\"");
	if (f->rank >= 0)
		buf_printf(&t, ", \"rank\": %lld", (long long)f->rank);
	if (f->world)
		buf_printf(&t, ", \"world_size\": %lld", (long long)f->world);
	buf_cstr(&t, ", \"pg_config\": [");
	for (uint32_t i = 0; i < f->n; i++) {
		const struct flight_recorder_group *g = &f->group[i];
		buf_cstr(&t, i ? ", {\"pg_name\": " : "{\"pg_name\": ");
		json_put_string(&t, g->name);
		buf_cstr(&t, ", \"pg_desc\": ");
		json_put_string(&t, g->about);
		buf_printf(&t, ", \"pg_size\": %u, \"ranks\": ", g->n);
		flight_recorder_put_members(g, &t);
		flight_recorder_put_far(g, "last_enqueued", "last_enqueued_collective", &t);
		flight_recorder_put_far(g, "last_started", "last_started_collective", &t);
		flight_recorder_put_far(g, "last_completed", "last_completed_collective", &t);
		buf_char(&t, '}');
	}
	buf_cstr(&t, "]}");
	flight_recorder_meta(b, "distributedInfo", buf_view(&t), false);
	buf_release(&t);
	struct str version = flight_recorder_str(f->root, "version");
	flight_recorder_meta(b, "flight recorder version", version.n ? version : STR("unknown"), true);
	struct str nccl = flight_recorder_str(f->root, "nccl_version");
	flight_recorder_meta(b, "nccl_version", nccl.n ? nccl : flight_recorder_str(f->root, "comm_lib_version"), true);
}

static int flight_recorder_read(struct source *s, struct profile *p, struct err *e)
{
	struct flight_recorder f = {0};
	struct build b;
	if (flight_recorder_parse(&f, s, e) < 0) {
		flight_recorder_release(&f);
		return -1;
	}
	build_init(&b, p);
	p->input_bytes = f.bytes.n;
	uint16_t cat = build_cat(&b, intern_str(&p->strings, STR("call")));
	flight_recorder_put_job(&f, &b);
	for (const struct py *c = flight_recorder_calls(&f); c; c = c->next) {
		if (c->type == PY_DICT)
			flight_recorder_put_call(&f, &b, c, cat);
		else
			diag_add(&p->diags, "damaged-call", DIAG_REPAIR, -1, "an entry of the dump is no dict: it is left out");
	}
	if (f.why)
		diag_add(&p->diags, "damaged-pickle", DIAG_LOSS, (int64_t)f.at, "the dump is read up to byte %zu: %s", f.at, f.why);
	if (f.named_otherwise)
		diag_add(&p->diags, "other-rank", DIAG_NOTE, -1, "the dump is of rank %lld by its groups, and of another one by the number at the end of its name: the groups count",
		         (long long)f.rank);
	flight_recorder_release(&f);
	return build_finish(&b, e);
}

static int flight_recorder_sniff(struct str head, const char *path, struct err *e)
{
	(void)path;
	(void)e;
	if (!head.n || !str_has(head, STR("version")))
		return 0;
	bool json = *head.p == '{', pickle = (unsigned char)*head.p == 0x80 || *head.p == '(' || *head.p == '}';
	if (json)
		return str_has(head, STR("\"pg_status\"")) || str_has(head, STR("\"collective_seq_id\"")) ? 90 : 0;
	return pickle && (str_has(head, STR("pg_config")) || str_has(head, STR("pg_status")) || str_has(head, STR("collective_seq_id"))) ? 95 : 0;
}

const struct input input_flight_recorder = {
	.name = "flight-recorder",
	.help = "Dumps of torch's flight recorder (`TORCH_NCCL_DUMP_ON_TIMEOUT`, `_dump_nccl_trace`), one a rank, as pickle or JSON: what each rank was waiting for when the job hung",
	.sniff = flight_recorder_sniff,
	.read = flight_recorder_read,
	.rank = flight_recorder_rank,
	.job_look = "hangs",
};
