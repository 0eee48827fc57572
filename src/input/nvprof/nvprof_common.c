/* Strings, tracks, objects and times, for all tables of an nvprof database. */
#include "input/nvprof/nvprof.h"

#include "base/demangle.h"

#include <stdio.h>

void nvprof_strings_load(struct nvprof *n)
{
	static const char *const columns[] = {"_id_", "value", NULL};
	intern_str(&n->tables_read, STR("StringTable"));
	string_table_load(&n->strings, &n->db, "StringTable", columns, &n->p->diags);
	n->readable = NEW_ARRAY(n->strings.n, uint32_t);
}

void nvprof_strings_release(struct nvprof *n)
{
	string_table_release(&n->strings);
	mem_free(n->readable);
}

static struct string_cell *nvprof_string(struct nvprof *n, int64_t id)
{
	struct string_cell *s = string_table_find(&n->strings, id);
	if (!s)
		NVPROF_DIAG(n, "missing-string", DIAG_REPAIR, ": StringTable has no id %lld: the name reads as ?", (long long)id);
	return s;
}

struct str nvprof_text(struct nvprof *n, int64_t string_id)
{
	const struct string_cell *s = nvprof_string(n, string_id);
	return s ? (struct str){s->p, s->n} : STR("?");
}

uint32_t nvprof_intern(struct nvprof *n, int64_t string_id)
{
	struct string_cell *s = nvprof_string(n, string_id);
	return s ? string_cell_intern(s, &n->p->strings) : intern_str(&n->p->strings, STR("?"));
}

static uint32_t readable(struct nvprof *n, struct str name)
{
	struct buf b = {0};
	enum demangled how = demangle(name, &b);
	uint32_t id = how == DEMANGLE_DONE ? intern_put(&n->p->strings, b.p, b.n) : intern_str(&n->p->strings, name);
	buf_release(&b);
	if (how == DEMANGLE_FAILED)
		diag_add(&n->p->diags, "mangled-name", DIAG_NOTE, -1, "'%.*s%s' cannot be made readable: kept as it is",
		         (int)(name.n < 60 ? name.n : 60), name.p, name.n > 60 ? "..." : "");
	else if (how == DEMANGLE_ABSENT)
		diag_add(&n->p->diags, "mangled-name", DIAG_NOTE, -1,
		         "names of kernels are shown as the compiler made them: opscope was built without libiberty");
	return id;
}

uint32_t nvprof_function(struct nvprof *n, int64_t string_id)
{
	const struct string_cell *s = nvprof_string(n, string_id);
	if (!s)
		return intern_str(&n->p->strings, STR("?"));
	uint32_t *slot = &n->readable[s - n->strings.v];
	if (!*slot)
		*slot = readable(n, (struct str){s->p, s->n}) + 1;
	return *slot - 1;
}

uint32_t nvprof_intern_buf(struct nvprof *n, struct buf *b)
{
	uint32_t id = intern_put(&n->p->strings, b->n ? b->p : "", b->n);
	buf_release(b);
	return id;
}

int64_t nvprof_int(struct nvprof *n, const struct sqlscan *s, int column, int64_t absent)
{
	int64_t v;
	if (sqlscan_i64(s, column, &v))
		return v;
	if (!sqlscan_is_null(s, column))
		NVPROF_DIAG(n, "wrong-type", DIAG_REPAIR, ": column %s is no integer: taken as not stated", n->table->columns[column]);
	return absent;
}

bool nvprof_time_ok(struct nvprof *n, int64_t at_ns)
{
	enum { TOO_FAR = 62 }; /* the distance of any two times fits an int64 */
	if (at_ns < 1ll << TOO_FAR && at_ns >= -(1ll << TOO_FAR)) {
		n->last_ns = at_ns > n->last_ns ? at_ns : n->last_ns;
		return true;
	}
	NVPROF_DIAG(n, "bad-time", DIAG_LOSS, ": no time in ns: the row has no place in time");
	return false;
}

/* Very large captures hold rows whose times are 0: they were recorded, but not when. */
bool nvprof_times(struct nvprof *n, const struct sqlscan *s, int start, int end, int64_t *start_ns, int64_t *dur_ns)
{
	int64_t to = 0;
	if (!sqlscan_i64(s, start, start_ns) || !sqlscan_i64(s, end, &to) || (!*start_ns && !to)) {
		NVPROF_DIAG(n, "no-time", DIAG_LOSS, ": its start or end was not recorded: it is left out");
		return false;
	}
	if (!nvprof_time_ok(n, *start_ns) || !nvprof_time_ok(n, to))
		return false;
	*dur_ns = to - *start_ns;
	if (*dur_ns < 0) {
		NVPROF_DIAG(n, "negative-duration", DIAG_REPAIR, " ends %lld ns before it begins: taken as 0", -(long long)*dur_ns);
		*dur_ns = 0;
	}
	return true;
}

static uint32_t nvprof_common_new_thread_track(struct nvprof *n, int64_t pid, int64_t tid)
{
	char p[24], t[24];
	int np = snprintf(p, sizeof p, "%lld", (long long)pid), nt = snprintf(t, sizeof t, "%lld", (long long)tid);
	uint32_t track = build_track(&n->b, (struct str){p, (size_t)np}, (struct str){t, (size_t)nt});
	n->p->track.process_labels[track] = intern_str(&n->p->strings, STR("CPU"));
	return track;
}

uint32_t nvprof_thread_track(struct nvprof *n, int64_t pid, int64_t tid)
{
	tid &= 0xffffffff;
	struct nvprof_thread *slot = &n->thread[hash_u64((uint64_t)pid << 32 ^ (uint64_t)tid) % NVPROF_THREADS];
	if (slot->pid != pid || slot->tid != tid || !slot->track)
		*slot = (struct nvprof_thread){pid, tid, nvprof_common_new_thread_track(n, pid, tid) + 1};
	return slot->track - 1;
}

/* Named as Kineto names them. */
uint32_t nvprof_stream_track(struct nvprof *n, int32_t device, int64_t stream)
{
	char dev[16], name[24], label[48];
	int nd = snprintf(dev, sizeof dev, "%d", device), ns = snprintf(name, sizeof name, "%lld", (long long)stream);
	uint32_t before = n->p->track.rows.n;
	uint32_t track = build_track(&n->b, (struct str){dev, (size_t)nd}, (struct str){name, (size_t)ns});
	struct tracks *t = &n->p->track;
	if (t->rows.n == before)
		return track;
	int nl = snprintf(label, sizeof label, "GPU %d", device);
	t->process_labels[track] = intern_put(&n->p->strings, label, (size_t)nl);
	nl = snprintf(label, sizeof label, stream < 0 ? "no stream" : "stream %lld", (long long)stream);
	t->thread_name[track] = intern_put(&n->p->strings, label, (size_t)nl);
	return track;
}

int32_t nvprof_context_device(const struct nvprof *n, int64_t context)
{
	uint32_t device = idmap_get(&n->context_device, context);
	return device == IDMAP_NONE || device > INT32_MAX ? INT32_MIN : (int32_t)device;
}

void nvprof_stream_on(struct nvprof *n, int64_t stream, int32_t device)
{
	if (device < 0)
		return;
	uint32_t known = idmap_get(&n->stream_device, stream);
	if (known == IDMAP_NONE)
		idmap_put(&n->stream_device, stream, (uint32_t)device);
	else if (known != (uint32_t)device)
		idmap_put(&n->stream_device, stream, NVPROF_SEVERAL);
}

int32_t nvprof_stream_device(const struct nvprof *n, int64_t stream, int64_t context)
{
	uint32_t device = idmap_get(&n->stream_device, stream);
	return device == IDMAP_NONE || device == NVPROF_SEVERAL ? nvprof_context_device(n, context) : (int32_t)device;
}

static int64_t nvprof_common_word(struct str bytes, size_t i)
{
	const unsigned char *b = (const unsigned char *)bytes.p + 4 * i;
	if (bytes.n < 4 * i + 4)
		return 0;
	return (int64_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
}

/* The union of CUPTI as bytes: process and thread, or device, context and stream; 32 bits each, little-endian. */
struct nvprof_object nvprof_object(struct nvprof *n, const struct sqlscan *s, int kind, int id)
{
	struct nvprof_object o = {.kind = nvprof_int(n, s, kind, 0)};
	struct str bytes = sqlscan_str(s, id);
	if (bytes.n < 8)
		NVPROF_DIAG(n, "no-thread", DIAG_REPAIR, ": its objectId is no bytes that name a thread: taken as 0");
	if (o.kind == NVPROF_PROCESS || o.kind == NVPROF_THREAD) {
		o.pid = nvprof_common_word(bytes, 0);
		o.tid = o.kind == NVPROF_THREAD ? nvprof_common_word(bytes, 1) : 0;
	} else {
		o.device = nvprof_common_word(bytes, 0);
		o.context = nvprof_common_word(bytes, 1);
		o.stream = o.kind == NVPROF_STREAM ? nvprof_common_word(bytes, 2) : -1;
	}
	return o;
}

uint32_t nvprof_object_track(struct nvprof *n, const struct nvprof_object *o)
{
	if (o->kind == NVPROF_THREAD)
		return nvprof_thread_track(n, o->pid, o->tid);
	if (o->kind == NVPROF_DEVICE || o->kind == NVPROF_CONTEXT || o->kind == NVPROF_STREAM)
		return nvprof_stream_track(n, o->device > INT32_MAX ? -1 : (int32_t)o->device, o->stream);
	char pid[24];
	int np = snprintf(pid, sizeof pid, "%lld", (long long)o->pid);
	uint32_t track = build_track(&n->b, (struct str){pid, (size_t)np}, STR("process"));
	n->p->track.process_labels[track] = intern_str(&n->p->strings, STR("CPU"));
	return track;
}
