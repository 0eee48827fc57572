/* Strings, tracks, times and counts, for all tables of an Nsight Systems export. */
#include "base/search.h"
#include "input/nsys/nsys.h"

#include <ctype.h>

#include <stdio.h>

void nsys_strings_load(struct nsys *n)
{
	static const char *const columns[] = {"id", "value", NULL};
	string_table_load(&n->strings, &n->db, nsys_find_table(n, "StringIds"), columns, &n->p->diags);
}

struct string_cell *nsys_string(struct nsys *n, int64_t id)
{
	struct string_cell *s = string_table_find(&n->strings, id);
	if (!s)
		NSYS_DIAG(n, "missing-string", DIAG_REPAIR, ": StringIds has no id %lld: the name reads as ?", (long long)id);
	return s;
}

uint32_t nsys_intern(struct nsys *n, int64_t string_id)
{
	struct string_cell *s = nsys_string(n, string_id);
	return s ? string_cell_intern(s, &n->p->strings) : intern_str(&n->p->strings, STR("?"));
}

uint32_t nsys_intern_cell(struct nsys *n, const struct sqlscan *s, int text)
{
	return intern_str(&n->p->strings, sqlscan_str(s, text));
}

static bool ends_in_version(const struct string_cell *s)
{
	if (s->n <= 6 || s->p[s->n - 6] != '_' || s->p[s->n - 5] != 'v')
		return false;
	return !ANY_WHERE(i, s->n - 4, s->n, s->p[i] < '0' || s->p[i] > '9');
}

uint32_t nsys_api_name(struct nsys *n, int64_t string_id, uint32_t *args)
{
	struct intern *t = &n->p->strings;
	struct string_cell *s = nsys_string(n, string_id);
	*args = 0;
	if (!s)
		return intern_str(t, STR("?"));
	uint32_t at = (uint32_t)(s - n->strings.v);
	struct nsys_name *slot = &n->api_name[at % NSYS_NAMES];
	if (slot->string != at + 1) {
		bool version = ends_in_version(s);
		*slot = (struct nsys_name){at + 1, intern_put(t, s->p, version ? s->n - 6 : s->n), 0};
		struct arg_pair pair = {intern_str(t, str_from(arg_key_text[ARG_API_VERSION])), version ? intern_put(t, s->p + s->n - 5, 5) : 0, 1};
		slot->args = version ? build_args(&n->b, &pair, 1) : 0;
	}
	*args = slot->args;
	return slot->id;
}

int64_t nsys_other_int(struct nsys *n, const struct sqlscan *s, int column, int64_t absent)
{
	int64_t v;
	if (sqlscan_i64(s, column, &v))
		return v;
	if (!sqlscan_is_null(s, column))
		NSYS_DIAG(n, "wrong-type", DIAG_REPAIR, ": column %d of those read is no integer: taken as not stated", column + 1);
	return absent;
}

static uint32_t nsys_common_new_thread_track(struct nsys *n, int64_t global, const char *suffix)
{
	char pid[24], tid[48];
	int np = snprintf(pid, sizeof pid, "%lld", (long long)nsys_pid(global));
	int nt = snprintf(tid, sizeof tid, "%lld%s", (long long)nsys_tid(global), suffix);
	return build_track(&n->b, (struct str){pid, (size_t)np}, (struct str){tid, (size_t)nt});
}

static uint32_t thread_track(struct nsys *n, struct nsys_thread *slots, const struct sqlscan *s, int column, const char *suffix)
{
	int64_t global;
	if (!sqlscan_i64(s, column, &global)) {
		NSYS_DIAG(n, "no-thread", DIAG_REPAIR, " names no thread: it is filed under the thread 'unknown'");
		return build_track(&n->b, STR("unknown"), STR("unknown"));
	}
	struct nsys_thread *slot = &slots[hash_u64((uint64_t)global) % NSYS_THREADS];
	if (slot->global_tid != global || !slot->track)
		*slot = (struct nsys_thread){global, nsys_common_new_thread_track(n, global, suffix) + 1};
	return slot->track - 1;
}

uint32_t nsys_other_thread_track(struct nsys *n, const struct sqlscan *s, int column)
{
	int64_t global;
	if (!sqlscan_i64(s, column, &global))
		return thread_track(n, n->thread, s, column, "");
	n->last_thread = (struct nsys_thread){global, thread_track(n, n->thread, s, column, "") + 1};
	return n->last_thread.track - 1;
}

uint32_t nsys_range_track(struct nsys *n, const struct sqlscan *s, int column)
{
	return thread_track(n, n->range_thread, s, column, " start/end");
}

/* Streams are named as Kineto names them. Two processes may have a stream of the same number on one device: the second
 * one's is told apart by its process. */
static uint32_t new_stream_track(struct nsys *n, int32_t device, int64_t stream, int64_t pid)
{
	int64_t key[2] = {device, stream};
	uint32_t before = n->stream_names.n, at = intern_put(&n->stream_names, (const char *)key, sizeof key);
	MEM_GROW(n->stream_owner, n->cap_owners, at + 1);
	if (n->stream_names.n > before)
		n->stream_owner[at] = pid;
	char dev[16], name[64], label[32];
	int nd = snprintf(dev, sizeof dev, "%d", device);
	int nn = snprintf(name, sizeof name, n->stream_owner[at] == pid ? "%lld" : "%lld of process %lld", (long long)stream, (long long)pid);
	uint32_t track = build_track(&n->b, (struct str){dev, (size_t)nd}, (struct str){name, (size_t)nn});
	struct tracks *t = &n->p->track;
	t->tid[track] = stream;
	int nl = snprintf(label, sizeof label, "GPU %d", device);
	t->process_labels[track] = intern_put(&n->p->strings, label, (size_t)nl);
	int ns = snprintf(label, sizeof label, stream < 0 ? "no stream" : "stream %lld", (long long)stream);
	t->thread_name[track] = intern_put(&n->p->strings, label, (size_t)ns);
	return track;
}

static uint32_t nsys_find_stream_track(struct nsys *n, int32_t device, int64_t stream, int64_t pid)
{
	int64_t key[3] = {device, stream, pid};
	uint32_t before = n->streams.n, at = intern_put(&n->streams, (const char *)key, sizeof key);
	MEM_GROW(n->stream_track, n->cap_streams, at + 1);
	if (n->streams.n > before)
		n->stream_track[at] = new_stream_track(n, device, stream, pid);
	return n->stream_track[at];
}

uint32_t nsys_stream_track(struct nsys *n, int32_t device, int64_t stream, int64_t pid)
{
	struct nsys_stream *last = &n->last_stream;
	if (!last->track || last->device != device || last->stream != stream || last->pid != pid)
		*last = (struct nsys_stream){device, stream, pid, nsys_find_stream_track(n, device, stream, pid) + 1};
	return last->track - 1;
}

int32_t nsys_device(struct nsys *n, int64_t cuda_id, int64_t pid)
{
	if (n->cap_gpu_ids) {
		int64_t key[2] = {pid, cuda_id};
		uint32_t at = intern_find(&n->devices_of, (struct str){(const char *)key, sizeof key});
		if (at != INTERN_NONE)
			return n->gpu_id[at];
	}
	n->unmapped = true;
	return cuda_id >= 0 && cuda_id <= INT32_MAX ? (int32_t)cuda_id : INT32_MIN;
}

void nsys_context_on(struct nsys *n, int64_t pid, int64_t context, int64_t cuda_id)
{
	if (context < 0 || cuda_id < 0)
		return;
	int64_t key[2] = {pid, context};
	uint32_t before = n->contexts.n, at = intern_put(&n->contexts, (const char *)key, sizeof key);
	MEM_GROW(n->context_device, n->cap_contexts, at + 1);
	if (n->contexts.n > before)
		n->context_device[at] = cuda_id;
}

int64_t nsys_context_device(const struct nsys *n, int64_t pid, int64_t context, int64_t stated)
{
	int64_t key[2] = {pid, context};
	uint32_t at = intern_find(&n->contexts, (struct str){(const char *)key, sizeof key});
	return at == INTERN_NONE ? stated : n->context_device[at];
}

void nsys_name_tracks(struct nsys *n)
{
	struct tracks *t = &n->p->track;
	uint32_t cpu = intern_str(&n->p->strings, STR("CPU"));
	for (uint32_t i = 0; i < t->rows.n; i++) {
		if (t->process_labels[i] || t->pid[i] == ID_NONE)
			continue; /* a stream, or no one's */
		t->process_labels[i] = cpu;
		uint32_t name = idmap_get(&n->process_name, t->pid[i]);
		if (name != IDMAP_NONE)
			t->process_name[i] = name;
		name = t->tid[i] == ID_NONE ? IDMAP_NONE : idmap_get(&n->thread_name, t->pid[i] << 24 | t->tid[i]);
		if (name != IDMAP_NONE && !t->thread_name[i])
			t->thread_name[i] = name;
	}
}

bool nsys_odd_times(struct nsys *n, const struct sqlscan *s, int start, int end, int64_t *start_ns, int64_t *dur_ns, bool *open)
{
	int64_t to = 0, limit = NSYS_TIME_MOST;
	*open = false;
	bool timed = sqlscan_i64(s, start, start_ns);
	if (timed && !sqlscan_i64(s, end, &to)) {
		*open = sqlscan_is_null(s, end);
		timed = *open;
		to = *start_ns;
	}
	if (!timed || *start_ns > limit || *start_ns < -limit || to > limit || to < -limit) {
		NSYS_DIAG(n, "bad-time", DIAG_LOSS, ": start or end is no time in ns: the row has no place in time");
		return false;
	}
	*dur_ns = to - *start_ns; /* fits: see NSYS_TIME_MOST */
	if (*dur_ns < 0) {
		NSYS_DIAG(n, "negative-duration", DIAG_REPAIR, " ends %lld ns before it begins: taken as 0", -(long long)*dur_ns);
		*dur_ns = 0;
	}
	int64_t last = *start_ns + *dur_ns;
	n->last_ns = last > n->last_ns ? last : n->last_ns;
	return true;
}

void nsys_put_span(struct nsys *n, const struct span_row *r, bool open)
{
	uint32_t span = build_put_span(&n->b, r);
	if (open && span != ROW_NONE)
		MEM_PUSH(n->open, n->n_open, n->cap_open, span);
}

void nsys_popped(struct nsys *n, int64_t end_ns)
{
	if (!n->last_pops || end_ns > n->last_pop_ns) {
		n->last_pop_ns = end_ns;
		n->last_pops = 0;
	}
	n->last_pops += end_ns == n->last_pop_ns;
}

void nsys_close_open(struct nsys *n)
{
	for (uint32_t i = 0; i < n->n_open; i++) {
		int64_t dur = n->last_ns - n->p->span.start_ns[n->open[i]];
		if (dur > 0)
			build_span_dur(&n->b, n->open[i], dur);
	}
	if (n->last_pops > 1)
		diag_add_n(&n->p->diags, "range-never-popped", DIAG_NOTE, n->last_pops, -1, "a range ends in the same nanosecond as others and as the "
		           "last of all: most likely it was pushed and never popped, and contains what it only precedes");
	if (n->n_open)
		diag_add_n(&n->p->diags, "range-without-end", DIAG_REPAIR, n->n_open, -1, "a range was still open when the capture ended: it ends with the capture");
}

uint16_t nsys_cat(struct nsys *n, const char *name)
{
	struct nsys_cat *slot = &n->cat[hash_u64((uintptr_t)name) % (sizeof n->cat / sizeof n->cat[0])];
	if (slot->name != name)
		*slot = (struct nsys_cat){name, build_cat(&n->b, intern_str(&n->p->strings, str_from(name)))};
	return slot->cat;
}

void nsys_count_new(struct nsys *n, uint16_t cat)
{
	uint32_t had = n->n_seen;
	MEM_GROW(n->seen, n->n_seen, cat + 1u);
	memset(n->seen + had, 0, (n->n_seen - had) * sizeof *n->seen);
}

void nsys_flush_counts(struct nsys *n)
{
	for (uint32_t c = 0; c < n->n_seen; c++)
		if (n->seen[c])
			build_count(&n->b, (uint16_t)c, 'X', n->seen[c]);
}

/* "T", or "T_V<digits>": 1 or the number; 0 = another table. */
static unsigned long nsys_version_of(const char *table, const char *name)
{
	size_t n = strlen(name);
	if (strncasecmp(table, name, n) != 0)
		return 0;
	table += n;
	if (!*table)
		return 1;
	if (table[0] != '_' || (table[1] != 'V' && table[1] != 'v') || !isdigit((unsigned char)table[2]))
		return 0;
	unsigned long v = 0;
	for (table += 2; isdigit((unsigned char)*table) && v < 1000; table++)
		v = v * 10 + (unsigned long)(*table - '0');
	return *table ? 0 : v;
}

const char *nsys_find_table(struct nsys *n, const char *name)
{
	const char *best = NULL;
	unsigned long best_version = 0;
	for (const char *t = n->tables.p, *end = t + n->tables.n; t && t < end; t += strlen(t) + 1) {
		unsigned long v = nsys_version_of(t, name);
		if (v > best_version) {
			best_version = v;
			best = t;
		}
	}
	return best;
}
