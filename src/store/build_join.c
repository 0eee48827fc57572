#include "store/build_join.h"

#include "base/mem.h"

static bool build_join_is_of_events(enum store_table_id id)
{
	return id == TABLE_span || id == TABLE_gpu_op || id == TABLE_memory || id == TABLE_flow || id == TABLE_mark;
}

static struct rows *build_join_rows_of(const struct build *b, enum store_table_id id)
{
	return profile_table(b->p, id);
}

void build_map_release(struct build_map *m)
{
	mem_free(m->string);
	mem_free(m->track);
	mem_free(m->launch);
	mem_free(m->args);
	mem_free(m->cat);
	*m = (struct build_map){0};
}

static bool build_join_sums_fit(uint64_t a, uint64_t b)
{
	return a + b <= 1ull << BUILD_SUM_BITS; /* neither is above it */
}

bool build_can_join(const struct build *to, const struct build *from, uint64_t rows[STORE_N_TABLES])
{
	enum { MOST = 1 << 30 }; /* strings, argument sets: two of so many still are below 2^32 */
	const struct profile *a = to->p, *b = from->p;
	bool can = build_join_sums_fit(to->span_ns, from->span_ns) && build_join_sums_fit(to->gpu_ns, from->gpu_ns) &&
	           build_join_sums_fit(to->memory_bytes, from->memory_bytes) && !diag_count(&b->diags, "sum-too-large") &&
	           a->cat.rows.n + b->cat.rows.n < UINT16_MAX && a->strings.n < MOST && b->strings.n < MOST && a->arg.rows.n < MOST && b->arg.rows.n < MOST;
	for (enum store_table_id id = 0; id < STORE_N_TABLES; id++)
		if (build_join_is_of_events(id)) {
			rows[id] += build_join_rows_of(from, id)->n;
			can &= rows[id] < ROW_NONE - 1;
		}
	return can;
}

static void build_join_tracks(struct build *to, const struct profile *p, struct build_map *m)
{
	m->track = NEW_ARRAY_RAW(p->track.rows.n, uint32_t);
	for (uint32_t i = 0; i < p->track.rows.n; i++) {
		const uint32_t at = build_track(to, profile_str(p, p->track.pid_text[i]), profile_str(p, p->track.tid_text[i]));
		m->track[i] = at;
		if (p->track.thread_name[i])
			to->p->track.thread_name[at] = m->string[p->track.thread_name[i]]; /* the last one holds */
	}
}

static void build_join_cats(struct build *to, const struct profile *p, struct build_map *m)
{
	m->cat = NEW_ARRAY_RAW(p->cat.rows.n, uint32_t);
	for (uint32_t i = 0; i < p->cat.rows.n; i++)
		m->cat[i] = build_cat(to, m->string[p->cat.name[i]]);
	for (uint32_t i = 0; i < p->count.rows.n; i++)
		build_count(to, (uint16_t)m->cat[p->count.cat[i]], p->count.phase[i], p->count.events[i]);
}

static void build_join_launches(struct build *to, const struct build *from, struct build_map *m)
{
	const struct intern *keys = &from->launch_keys; /* key i + 1 is row i */
	m->launch = NEW_ARRAY_RAW(keys->n, uint32_t);
	for (uint32_t i = 0; i + 1 < keys->n; i++) {
		struct launch_row r;
		memcpy(&r, keys->entry[i + 1].p, sizeof r);
		m->launch[i] = build_launch(to, &r);
	}
}

static void build_join_arg_sets(struct build *to, const struct build *from, struct build_map *m)
{
	const struct intern *keys = &from->arg_set_keys;
	struct arg_pair *pairs = NULL;
	size_t cap = 0;
	m->args = NEW_ARRAY_RAW(keys->n, uint32_t);
	m->args[0] = 0;
	for (uint32_t i = 1; i < keys->n; i++) {
		const unsigned n = (unsigned)(keys->entry[i].n / sizeof *pairs);
		MEM_GROW(pairs, cap, n);
		memcpy(pairs, keys->entry[i].p, keys->entry[i].n);
		for (unsigned k = 0; k < n; k++) {
			pairs[k].key = m->string[pairs[k].key];
			pairs[k].value = m->string[pairs[k].value];
		}
		m->args[i] = build_args(to, pairs, n);
	}
	mem_free(pairs);
}

void build_join_names(struct build *to, const struct build *from, const uint64_t rows[STORE_N_TABLES], struct build_map *m)
{
	const struct profile *p = from->p;
	m->string = NEW_ARRAY_RAW(p->strings.n, uint32_t);
	for (uint32_t i = 0; i < p->strings.n; i++)
		m->string[i] = intern_put_hashed(&to->p->strings, p->strings.entry[i].p, p->strings.entry[i].n, p->strings.entry[i].hash);
	build_join_tracks(to, p, m);
	build_join_cats(to, p, m);
	build_join_launches(to, from, m);
	build_join_arg_sets(to, from, m);
	to->span_ns += from->span_ns;
	to->gpu_ns += from->gpu_ns;
	to->memory_bytes += from->memory_bytes;
	for (enum store_table_id id = 0; id < STORE_N_TABLES; id++)
		m->first[id] = (uint32_t)rows[id];
}

void build_join_reserve(struct build *to, const uint64_t rows[STORE_N_TABLES], struct build *const *from, unsigned n)
{
	for (enum store_table_id id = 0; id < STORE_N_TABLES; id++) {
		const struct store_table *desc = &store_tables[id];
		void *table = profile_table(to->p, id);
		if (!build_join_is_of_events(id))
			continue;
		rows_reserve(table, desc, (uint32_t)rows[id]);
		for (unsigned c = 0; c < desc->n_columns; c++)
			for (unsigned i = 0; i < n && desc->columns[c].group == SPARSE && !*rows_column(table, &desc->columns[c]); i++)
				if (*rows_column(profile_table(from[i]->p, id), &desc->columns[c]))
					rows_materialize(table, desc, desc->columns[c].offset);
		((struct rows *)table)->n = (uint32_t)rows[id];
	}
}

/* By what a column's numbers change; NULL = by nothing. */
static const uint32_t *build_join_map_of(const struct build_map *m, enum store_type type)
{
	switch (type) {
	case ST_STR: return m->string;
	case ST_TRACK: return m->track;
	case ST_LAUNCH: return m->launch;
	case ST_ARGS: return m->args;
	case ST_CAT: return m->cat;
	default: return NULL;
	}
}

static void build_join_move_column(void *to, const void *from, uint32_t n, const struct store_column *c, const uint32_t *map)
{
	if (!map)
		memcpy(to, from, (size_t)n * c->size);
	else if (c->type == ST_CAT)
		for (uint32_t i = 0; i < n; i++)
			((uint16_t *)to)[i] = (uint16_t)map[((const uint16_t *)from)[i]];
	else
		for (uint32_t i = 0; i < n; i++)
			((uint32_t *)to)[i] = ((const uint32_t *)from)[i] == ROW_NONE ? ROW_NONE : map[((const uint32_t *)from)[i]];
}

void build_join_rows(struct build *to, struct build *from, const struct build_map *m)
{
	for (enum store_table_id id = 0; id < STORE_N_TABLES; id++) {
		const struct store_table *desc = &store_tables[id];
		void *table = profile_table(to->p, id), *source = profile_table(from->p, id);
		const uint32_t n = ((struct rows *)source)->n;
		for (unsigned c = 0; c < desc->n_columns && n && build_join_is_of_events(id); c++) {
			const struct store_column *column = &desc->columns[c];
			char *data = *rows_column(table, column);
			void **old = rows_column(source, column);
			if (!data || column->group == DERIVED)
				continue;
			data += (size_t)m->first[id] * column->size;
			if (*old)
				build_join_move_column(data, *old, n, column, build_join_map_of(m, column->type));
			else
				rows_set_absent(data, n, column);
			mem_free(*old);
			*old = NULL;
		}
	}
}
