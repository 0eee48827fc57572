#include "store/profile.h"

#include "base/mem.h"
#include "store/reuse.h"
#include "store/written.h"

const char *const span_kind_name[SPAN_KINDS] = {
	[SPAN_OP] = "op",             [SPAN_USER] = "user",         [SPAN_PYTHON] = "python",
	[SPAN_CALL] = "call",         [SPAN_SYNC] = "sync",         [SPAN_OVERHEAD] = "overhead",
	[SPAN_GPU_USER] = "gpu_user", [SPAN_TRACE] = "trace",       [SPAN_OTHER] = "other",
	[SPAN_MARKER] = "marker",     [SPAN_OS] = "os",             [SPAN_RANGE] = "range",
};

const char *const gpu_evidence_name[GPU_EVIDENCES] = {
	[EVIDENCE_NONE] = "", [EVIDENCE_UNKNOWN] = "unknown", [EVIDENCE_AMBIGUOUS] = "ambiguous", [EVIDENCE_NODE] = "node", [EVIDENCE_SEQUENCE] = "sequence",
	[EVIDENCE_ALIGNED] = "aligned", [EVIDENCE_POSITION] = "position",
};
const char *const gpu_kind_name[GPU_KINDS] = {
	[GPU_KERNEL] = "kernel",
	[GPU_MEMCPY] = "memcpy",
	[GPU_MEMSET] = "memset",
};

/* Descriptors of every table, generated from columns.def. */
#define COLUMN_DESC_(ctype, field, semantic, colgroup, text)                                            \
	{.name = #field, .help = text, .offset = offsetof(struct THIS_TABLE, field), .size = sizeof(ctype), \
	 .type = semantic, .group = colgroup},
#define THIS_TABLE spans
static const struct store_column span_columns[] = {SPAN_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE gpu_ops
static const struct store_column gpu_op_columns[] = {GPU_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE launches
static const struct store_column launch_columns[] = {LAUNCH_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE memories
static const struct store_column memory_columns[] = {MEMORY_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE flows
static const struct store_column flow_columns[] = {FLOW_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE marks
static const struct store_column mark_columns[] = {MARK_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE tracks
static const struct store_column track_columns[] = {TRACK_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE devices
static const struct store_column device_columns[] = {DEVICE_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE arg_sets
static const struct store_column arg_set_columns[] = {ARG_SET_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE args
static const struct store_column arg_columns[] = {ARG_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE metas
static const struct store_column meta_columns[] = {META_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE stateds
static const struct store_column stated_columns[] = {STATED_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE memory_segments
static const struct store_column memory_segment_columns[] = {SEGMENT_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE memory_blocks
static const struct store_column memory_block_columns[] = {BLOCK_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE cats
static const struct store_column cat_columns[] = {CAT_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE
#define THIS_TABLE counts
static const struct store_column count_columns[] = {COUNT_COLUMNS(COLUMN_DESC_)};
#undef THIS_TABLE

const struct store_table store_tables[STORE_N_TABLES] = {
#define TABLE_DESC_(table, structname, columnlist, text)                                               \
	[TABLE_##table] = {.name = #table, .help = text, .columns = table##_columns,                   \
	                   .n_columns = sizeof table##_columns / sizeof table##_columns[0],            \
	                   .offset = offsetof(struct profile, table)},
	STORE_TABLES(TABLE_DESC_)
};

struct profile *profile_new(void)
{
	struct profile *p = NEW(struct profile);
	p->replay_cat = ROW_NONE;
	intern_init(&p->strings);
	return p;
}

static void free_parts(struct profile *p)
{
	reuse_end(p);
	profile_free(p->slice);
	for (int t = 0; t < STORE_N_TABLES; t++)
		if (!p->whole || profile_is_cut(t))
			rows_release(profile_table(p, t), &store_tables[t]);
	if (!p->whole) {
		intern_release(&p->strings);
		written_free(p->written);
	}
	diags_release(&p->diags);
	arena_release(&p->arena);
	mem_free(p);
}

void profile_free(struct profile *p)
{
	struct mem_pool all = {0}; /* *p may be one of them */
	if (!p)
		return;
	mem_pool_move(&all, &p->blocks);
	if (!p->broken)
		free_parts(p);
	mem_pool_release(&all); /* all of a broken one; of others, what calls that failed have left */
}

void profile_break(void *profile)
{
	((struct profile *)profile)->broken = true;
}

int profile_check(const struct profile *p, struct err *e)
{
	if (!p->broken)
		return 0;
	return err_set(e, ERR_NOMEM, STR_FMT ": memory ran out in an earlier call on this trace, which left it half done: open it again", STR_ARG(p->input_path));
}

const char *const arg_key_text[ARG_KEYS] = {
#define ARG_KEY(name, text, other) [ARG_##name] = text,
#include "store/arg_keys.def"
#undef ARG_KEY
};
static const char *const other_text[ARG_KEYS] = {
#define ARG_KEY(name, text, other) [ARG_##name] = other,
#include "store/arg_keys.def"
#undef ARG_KEY
};

static uint32_t find_string(const struct profile *p, struct str text)
{
	uint32_t id = intern_find(&p->strings, text);
	return id == INTERN_NONE ? 0 : id;
}

void profile_find_arg_keys(struct profile *p)
{
	for (int key = 0; key < ARG_KEYS; key++) {
		p->arg_key[key][0] = find_string(p, str_from(arg_key_text[key]));
		p->arg_key[key][1] = other_text[key] ? find_string(p, str_from(other_text[key])) : 0;
	}
	p->replay_cat = ROW_NONE;
	for (uint32_t i = 0; i < p->cat.rows.n; i++)
		if (str_eqc(profile_str(p, p->cat.name[i]), REPLAY_CATEGORY))
			p->replay_cat = i;
}

static uint32_t row_of_name(const struct profile *p, uint32_t set, uint32_t name)
{
	if (!name || set >= p->arg_set.rows.n)
		return ROW_NONE;
	uint32_t end = set + 1 < p->arg_set.rows.n ? p->arg_set.first[set + 1] : p->arg.rows.n;
	for (uint32_t i = p->arg_set.first[set]; i < end; i++)
		if (p->arg.key[i] == name)
			return i;
	return ROW_NONE;
}

static uint32_t row_of_key(const struct profile *p, uint32_t set, enum arg_key key)
{
	uint32_t row = row_of_name(p, set, p->arg_key[key][0]);
	return row == ROW_NONE ? row_of_name(p, set, p->arg_key[key][1]) : row;
}

uint32_t profile_arg_id(const struct profile *p, uint32_t set, enum arg_key key)
{
	uint32_t row = row_of_key(p, set, key);
	return row == ROW_NONE ? 0 : p->arg.value[row];
}

bool profile_arg(const struct profile *p, uint32_t set, enum arg_key key, struct str *value)
{
	uint32_t row = row_of_key(p, set, key);
	if (row == ROW_NONE)
		return false;
	*value = profile_str(p, p->arg.value[row]);
	return true;
}

bool profile_has_arg(const struct profile *p, enum arg_key key)
{
	return p->arg_key[key][0] || p->arg_key[key][1];
}

bool profile_is_arg(const struct profile *p, uint32_t id, enum arg_key key)
{
	return id && (id == p->arg_key[key][0] || id == p->arg_key[key][1]);
}

static bool is_spelling(struct str name, enum arg_key key)
{
	return str_eqc(name, arg_key_text[key]) || (other_text[key] && str_eqc(name, other_text[key]));
}

bool profile_arg_named(const struct profile *p, uint32_t set, struct str name, struct str *value)
{
	uint32_t id = find_string(p, name);
	for (int key = 0; key < ARG_KEYS; key++)
		if (id ? profile_is_arg(p, id, (enum arg_key)key) : is_spelling(name, (enum arg_key)key))
			return profile_arg(p, set, (enum arg_key)key, value);
	uint32_t row = row_of_name(p, set, id);
	if (row == ROW_NONE)
		return false;
	*value = profile_str(p, p->arg.value[row]);
	return true;
}

bool profile_meta(const struct profile *p, const char *key, struct str *value)
{
	uint32_t id = intern_find(&p->strings, str_from(key));
	for (uint32_t i = 0; id != INTERN_NONE && i < p->meta.rows.n; i++)
		if (p->meta.key[i] == id) {
			*value = profile_str(p, p->meta.value[i]);
			return true;
		}
	return false;
}

void profile_join_devices(struct profile *p)
{
	bool works = false;
	int32_t on = INT32_MIN;
	p->device_joined = false;
	if (p->device.rows.n != 1)
		return;
	for (uint32_t i = 0; i < p->launch.rows.n; i++) {
		int32_t device = p->launch.device[i];
		if (device == INT32_MIN || (works && device == on))
			continue;
		if (works)
			return;
		works = true;
		on = device;
	}
	p->device_joined = works && on != p->device.id[0];
	p->joined_device = on;
}

uint32_t profile_device_row(const struct profile *p, int32_t ordinal)
{
	enum { SEARCHED = 1024 }; /* no machine has more; hostile input may */
	const struct devices *d = &p->device;
	if (p->device_joined)
		return ordinal == p->joined_device ? 0 : ROW_NONE;
	if (ordinal >= 0 && (uint32_t)ordinal < d->rows.n && d->id[ordinal] == ordinal)
		return (uint32_t)ordinal;
	for (uint32_t i = 0; i < d->rows.n && i < SEARCHED && ordinal != INT32_MIN; i++)
		if (d->id[i] == ordinal)
			return i;
	return ROW_NONE;
}

size_t profile_bytes(const struct profile *p)
{
	size_t bytes = sizeof *p + intern_bytes(&p->strings) + p->arena.bytes + p->diags.arena.bytes + written_bytes(p->written);
	for (int t = 0; t < STORE_N_TABLES; t++)
		bytes += rows_bytes(profile_table(p, t), &store_tables[t]);
	for (int t = 0; p->slice && t < STORE_N_TABLES; t++)
		if (profile_is_cut(t))
			bytes += rows_bytes(profile_table(p->slice, t), &store_tables[t]);
	return bytes;
}

uint64_t profile_events(const struct profile *p)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->count.rows.n; i++)
		n += p->count.events[i];
	return n;
}
