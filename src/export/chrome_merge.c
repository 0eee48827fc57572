#include "export/chrome_merge.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "base/sort.h"
#include "export/chrome.h"
#include "io/json.h"

#include <stdlib.h>

/* A process or thread of the rank. */
struct chrome_process {
	bool is_thread, is_named;
	uint32_t process;        /* of a thread: index of its process */
	uint32_t index;          /* its own */
	struct str text;         /* its number or name as it was */
	struct str name, labels; /* raw JSON strings; "" = none */
	int64_t sort;
};

/* Slices of an event's text. Values are as written, strings with their quotes. */
struct chrome_merge_event {
	struct str whole, ph, cat, name, pid, tid, ts, dur, args;
	bool is_gpu, has_device, is_of_gpu_memory;
};

/* Arguments that are ids; numbers below `least` are not. */
static const struct chrome_merge_id {
	const char *name;
	char kind;               /* equal ids of one kind are the same id */
	int64_t least;
} chrome_merge_ids[] = {
	{"correlation", 'c', 1}, {"wait_on_cuda_event_record_corr_id", 'c', 1}, {"External id", 'e', 1}, {"external id", 'e', 1}, {"Sequence number", 's', 0},
	{"Python id", 'y', 0}, {"Python parent id", 'y', 0},
};

static int chrome_merge_take(void *context, struct buf *text);

void chrome_merge_init(struct chrome_merge *m, struct sink *out, const struct job *j, int64_t base_ns, int64_t ids, int64_t first_device)
{
	*m = (struct chrome_merge){.out = out, .job = j, .base_ns = base_ns, .id_base = ids, .next_device = first_device};
	sink_init_take(&m->in, chrome_merge_take, m);
}

void chrome_merge_release(struct chrome_merge *m)
{
	sink_finish(&m->in);
	mem_free(m->place);
	buf_release(&m->key);
}

static int64_t chrome_merge_time(const struct chrome_merge *m, int64_t ns)
{
	return job_time(m->job, m->rank, ns + m->job->rank[m->rank]->epoch_ns) - m->base_ns;
}

static void chrome_merge_put_i64(struct buf *b, int64_t v)
{
	b->n = (size_t)(chrome_put_i64(buf_room(b, CHROME_NUMBER_MAX), v) - b->p);
}

static void chrome_merge_put_us(struct buf *b, int64_t ns)
{
	b->n = (size_t)(chrome_put_us(buf_room(b, CHROME_NUMBER_MAX), ns) - b->p);
}

/* ---- numbers ---- */

static uint32_t chrome_merge_place(struct chrome_merge *m, struct str text, bool is_thread, uint32_t process)
{
	uint32_t before = m->places.n, at = intern_str(&m->places, buf_view(&m->key)) - 1;
	if (m->places.n > before)
		MEM_PUSH(m->place, m->n_places, m->cap_places, (struct chrome_process){.is_thread = is_thread, .process = process, .index = at, .text = arena_str(&m->arena, text)});
	return at;
}

static uint32_t chrome_merge_process(struct chrome_merge *m, struct str pid)
{
	buf_clear(&m->key);
	buf_char(&m->key, 'p');
	buf_str(&m->key, pid);
	return chrome_merge_place(m, pid, false, 0);
}

static uint32_t chrome_merge_thread(struct chrome_merge *m, struct str pid, struct str tid)
{
	uint32_t process = chrome_merge_process(m, pid);
	buf_clear(&m->key);
	buf_char(&m->key, 't');
	buf_i64(&m->key, process);
	buf_char(&m->key, ' ');
	buf_str(&m->key, tid);
	return chrome_merge_place(m, tid, true, process);
}

static int64_t chrome_merge_place_number(const struct chrome_merge *m, uint32_t place)
{
	return m->place_base + place + 1;
}

static int64_t chrome_merge_number(struct chrome_merge *m, char kind, struct str of, struct str text)
{
	buf_clear(&m->key);
	buf_char(&m->key, kind);
	buf_str(&m->key, of);
	buf_char(&m->key, ' ');
	buf_str(&m->key, text);
	return m->id_base + intern_str(&m->ids, buf_view(&m->key));
}

/* Arrows from launch to work have the number of the correlation. */
static int64_t chrome_merge_arrow_number(struct chrome_merge *m, const struct chrome_merge_event *ev, struct str id)
{
	bool launch = str_eqc(ev->cat, "\"ac2g\"") || str_eqc(ev->cat, "\"async_cpu_to_gpu\"");
	return launch ? chrome_merge_number(m, 'c', STR(""), id) : chrome_merge_number(m, 'f', ev->cat, id);
}

static int64_t chrome_merge_device(const struct chrome_merge *m, struct str text)
{
	int64_t device;
	if (!str_to_i64(text, &device))
		return -1;
	uint32_t to = idmap_get(&m->devices, device);
	return to == IDMAP_NONE ? -1 : (int64_t)to;
}

/* ---- one event ---- */

static bool chrome_merge_is_gpu(struct str cat)
{
	static const char *const cats[] = {"\"kernel\"", "\"Kernel\"", "\"gpu_memcpy\"", "\"gpu_memset\"", "\"concurrent_kernel\"", "\"Memcpy\"", "\"Memset\""};
	for (size_t i = 0; i < sizeof cats / sizeof *cats; i++)
		if (str_eqc(cat, cats[i]))
			return true;
	return false;
}

static bool chrome_merge_read_args(struct chrome_merge_event *ev, struct json *j)
{
	struct json_value key, v;
	bool first = true;
	const char *at = ev->args.p + 1;
	while ((at = json_member(j, at, &first, &key)) && key.raw.p) {
		const char *value = at;
		if (!(at = json_value(j, at, &v)))
			return false;
		ev->has_device |= str_eqc(key.raw, "device");
		if (str_eqc(key.raw, "Device Type"))
			ev->is_of_gpu_memory = *value != '0' && *value != '-';
	}
	return at;
}

/* What the event is. False: it is not a whole object. */
static bool chrome_merge_read(struct chrome_merge_event *ev, struct json *j)
{
	static const struct { const char *name; size_t at; } members[] = {
		{"ph", offsetof(struct chrome_merge_event, ph)}, {"cat", offsetof(struct chrome_merge_event, cat)}, {"name", offsetof(struct chrome_merge_event, name)},
		{"pid", offsetof(struct chrome_merge_event, pid)}, {"tid", offsetof(struct chrome_merge_event, tid)}, {"ts", offsetof(struct chrome_merge_event, ts)},
		{"dur", offsetof(struct chrome_merge_event, dur)}, {"args", offsetof(struct chrome_merge_event, args)},
	};
	struct json_value key, v;
	bool first = true;
	const char *at = ev->whole.p + 1;
	while ((at = json_member(j, at, &first, &key)) && key.raw.p) {
		const char *value = at;
		if (!(at = json_value(j, at, &v)))
			return false;
		for (size_t i = 0; i < sizeof members / sizeof *members; i++)
			if (str_eqc(key.raw, members[i].name))
				*(struct str *)((char *)ev + members[i].at) = (struct str){value, (size_t)(at - value)};
	}
	if (!at)
		return false;
	if (ev->args.n && ev->args.p[0] != '{')
		ev->args.n = 0;
	ev->is_gpu = chrome_merge_is_gpu(ev->cat);
	bool of_memory = str_starts(ev->name, STR("\"[memory]")) || str_starts(ev->name, STR("\"[OutOfMemory]"));
	return !ev->args.n || (!ev->is_gpu && !of_memory) || chrome_merge_read_args(ev, j);
}

/* Puts the text from *done up to `to`, and goes on behind it. */
static void chrome_merge_copy(struct buf *b, const char **done, const char *to, const char *next)
{
	buf_put(b, *done, (size_t)(to - *done));
	*done = next;
}

static void chrome_merge_put_arg(struct chrome_merge *m, const struct chrome_merge_event *ev, struct str key, struct str value, const char **done)
{
	struct buf *b = &m->out->buf;
	int64_t v;
	if (value.p[0] == '"' || value.p[0] == '[' || value.p[0] == '{')
		return;
	if (str_eqc(key, "device") || (ev->is_of_gpu_memory && str_eqc(key, "Device Id"))) {
		int64_t device = chrome_merge_device(m, value);
		if (device >= 0) {
			chrome_merge_copy(b, done, value.p, value.p + value.n);
			chrome_merge_put_i64(b, device);
		}
		return;
	}
	for (size_t i = 0; i < sizeof chrome_merge_ids / sizeof *chrome_merge_ids; i++) {
		const struct chrome_merge_id *id = &chrome_merge_ids[i];
		if (!str_eqc(key, id->name) || !str_to_i64(value, &v) || v < id->least)
			continue;
		chrome_merge_copy(b, done, value.p, value.p + value.n);
		chrome_merge_put_i64(b, chrome_merge_number(m, id->kind, STR(""), value));
		return;
	}
}

static void chrome_merge_put_args(struct chrome_merge *m, const struct chrome_merge_event *ev, struct json *j, const char **done)
{
	struct json_value key, v;
	bool first = true;
	const char *at = ev->args.p + 1;
	int64_t device = ev->is_gpu && !ev->has_device ? chrome_merge_device(m, ev->pid) : -1;
	if (device >= 0) { /* it was the process */
		chrome_merge_copy(&m->out->buf, done, at, at);
		buf_printf(&m->out->buf, "\"device\":%lld%s", (long long)device, *json_space(at) == '}' ? "" : ",");
	}
	while ((at = json_member(j, at, &first, &key)) && key.raw.p) {
		const char *value = at;
		if (!(at = json_value(j, at, &v)))
			return;
		chrome_merge_put_arg(m, ev, key.raw, (struct str){value, (size_t)(at - value)}, done);
	}
}

static void chrome_merge_put_end(struct chrome_merge *m, const struct chrome_merge_event *ev)
{
	int64_t device = ev->is_gpu && !ev->args.n ? chrome_merge_device(m, ev->pid) : -1;
	if (device >= 0)
		buf_printf(&m->out->buf, ",\"args\":{\"device\":%lld}", (long long)device);
}

static void chrome_merge_put_time(struct chrome_merge *m, const struct chrome_merge_event *ev, struct str value, bool is_dur, const char **done)
{
	int64_t start, dur = 0;
	if (!json_to_scaled(ev->ts, 3, &start) || llabs(start) > INT64_MAX / 4 || (is_dur && (!json_to_scaled(ev->dur, 3, &dur) || dur < 0 || dur > INT64_MAX / 4)))
		return;
	int64_t from = str_eqc(ev->ph, "\"M\"") ? 0 : chrome_merge_time(m, start);
	chrome_merge_copy(&m->out->buf, done, value.p, value.p + value.n);
	chrome_merge_put_us(&m->out->buf, is_dur ? chrome_merge_time(m, start + dur) - from : from);
}

static void chrome_merge_put_member(struct chrome_merge *m, const struct chrome_merge_event *ev, struct json *j, struct str key, struct str value, const char **done)
{
	struct buf *b = &m->out->buf;
	int64_t number;
	if (str_eqc(key, "pid"))
		number = chrome_merge_place_number(m, chrome_merge_process(m, value));
	else if (str_eqc(key, "tid"))
		number = chrome_merge_place_number(m, chrome_merge_thread(m, ev->pid, value));
	else if (str_eqc(key, "id") && value.p[0] != '{')
		number = chrome_merge_arrow_number(m, ev, value);
	else if (str_eqc(key, "ts") || str_eqc(key, "dur"))
		return chrome_merge_put_time(m, ev, value, key.p[0] == 'd', done);
	else if (str_eqc(key, "args") && ev->args.n)
		return chrome_merge_put_args(m, ev, j, done);
	else
		return;
	chrome_merge_copy(b, done, value.p, value.p + value.n);
	chrome_merge_put_i64(b, number);
}

static void chrome_merge_separate(struct chrome_merge *m)
{
	buf_cstr(&m->out->buf, m->any ? ",\n" : "\n");
	m->any = true;
}

static void chrome_merge_put(struct chrome_merge *m, const struct chrome_merge_event *ev, struct json *j)
{
	struct json_value key, v;
	bool first = true;
	const char *at = ev->whole.p + 1, *done = ev->whole.p, *end = ev->whole.p + ev->whole.n - 1;
	chrome_merge_separate(m);
	while ((at = json_member(j, at, &first, &key)) && key.raw.p) {
		const char *value = at;
		if (!(at = json_value(j, at, &v)))
			break;
		chrome_merge_put_member(m, ev, j, key.raw, (struct str){value, (size_t)(at - value)}, &done);
	}
	buf_put(&m->out->buf, done, (size_t)(end - done));
	chrome_merge_put_end(m, ev);
	buf_char(&m->out->buf, '}');
}

/* What a process is called is written at the end of the rank, with the rank. */
static bool chrome_merge_keep_name(struct chrome_merge *m, const struct chrome_merge_event *ev, struct json *j)
{
	bool name = str_eqc(ev->name, "\"process_name\""), labels = str_eqc(ev->name, "\"process_labels\""), sort = str_eqc(ev->name, "\"process_sort_index\"");
	if (!str_eqc(ev->ph, "\"M\"") || (!name && !labels && !sort))
		return false;
	struct chrome_process *p = &m->place[chrome_merge_process(m, ev->pid)];
	struct json_value key, v;
	bool first = true;
	for (const char *at = ev->args.n ? ev->args.p + 1 : NULL; at && (at = json_member(j, at, &first, &key)) && key.raw.p;) {
		if (!(at = json_value(j, at, &v)))
			break;
		if (name && str_eqc(key.raw, "name") && v.type == JSON_STRING)
			p->name = arena_str(&m->arena, v.raw);
		else if (labels && str_eqc(key.raw, "labels") && v.type == JSON_STRING)
			p->labels = arena_str(&m->arena, v.raw);
		else if (sort && str_eqc(key.raw, "sort_index"))
			json_to_i64(v.raw, &p->sort);
	}
	return true;
}

static void chrome_merge_line(struct chrome_merge *m, struct str line, const char *end)
{
	struct json j = {.end = end};
	struct chrome_merge_event ev = {.whole = line};
	if (line.p[0] != '{' || line.p[line.n - 1] != '}' || !chrome_merge_read(&ev, &j)) {
		m->lost++;
		return;
	}
	if (chrome_merge_keep_name(m, &ev, &j))
		return;
	if (str_eqc(ev.ph, "\"M\"") && str_eqc(ev.name, "\"thread_name\""))
		m->place[chrome_merge_thread(m, ev.pid, ev.tid)].is_named = true;
	chrome_merge_put(m, &ev, &j);
}

/* Whole events, a line each, with commas between. */
static int chrome_merge_take(void *context, struct buf *text)
{
	struct chrome_merge *m = context;
	size_t n = text->n;
	buf_fill(text, 0, JSON_PADDING);
	struct str rest = {text->p, n}, line;
	while (rest.n && sink_room(m->out) == 0 && str_split(&rest, '\n', &line)) {
		if (line.n && line.p[line.n - 1] == ',')
			line.n--;
		if (line.n)
			chrome_merge_line(m, line, text->p + n);
	}
	return m->out->error;
}

/* ---- a rank ---- */

static void chrome_merge_add_device(struct chrome_merge *m, int32_t device, bool *any)
{
	if (device == INT32_MIN || idmap_get(&m->devices, device) != IDMAP_NONE)
		return;
	int64_t number = *any ? m->next_device++ : job_rank_number(m->job, m->rank);
	*any = true;
	if (number >= 0 && number < INT32_MAX)
		idmap_put(&m->devices, device, (uint32_t)number);
}

/* The rank's own GPU first. */
static void chrome_merge_number_devices(struct chrome_merge *m, const struct profile *p)
{
	bool any = false;
	idmap_init(&m->devices, INT32_MIN, INT32_MAX, p->launch.rows.n + 1);
	chrome_merge_add_device(m, m->job->rank[m->rank]->device, &any);
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		chrome_merge_add_device(m, p->launch.device[i], &any);
}

void chrome_merge_begin(struct chrome_merge *m, const struct profile *p, uint32_t rank)
{
	m->rank = rank;
	intern_init(&m->places);
	intern_init(&m->ids);
	m->n_places = 0;
	chrome_merge_number_devices(m, p);
}

/* A text of the profile as it stands in the export of one rank. */
static struct str chrome_merge_id_text(struct chrome_merge *m, struct str s)
{
	struct buf b = {0};
	chrome_put_id(&b, s);
	struct str out = arena_str(&m->arena, buf_view(&b));
	buf_release(&b);
	return out;
}

void chrome_merge_arrow(struct chrome_merge *m, const struct profile *p, uint32_t g, char phase, const char *name, int64_t id)
{
	struct buf *b = &m->out->buf;
	uint32_t track = p->gpu_op.track[g];
	sink_flush(&m->in);
	struct str pid = chrome_merge_id_text(m, profile_str(p, p->track.pid_text[track])), tid = chrome_merge_id_text(m, profile_str(p, p->track.tid_text[track]));
	chrome_merge_separate(m);
	buf_printf(b, "{\"ph\":\"%c\",\"cat\":\"collective\",\"name\":\"%s\",\"pid\":%lld,\"tid\":%lld,\"ts\":", phase, name,
	           (long long)chrome_merge_place_number(m, chrome_merge_process(m, pid)), (long long)chrome_merge_place_number(m, chrome_merge_thread(m, pid, tid)));
	chrome_merge_put_us(b, chrome_merge_time(m, p->gpu_op.start_ns[g]));
	buf_printf(b, ",\"id\":%lld%s}", (long long)id, phase == 'f' ? ",\"bp\":\"e\"" : "");
}

static int chrome_merge_by_sort(const void *a, const void *b)
{
	const struct chrome_process *x = a, *y = b;
	return COMPARE(x->is_thread, y->is_thread) ?: COMPARE(x->sort, y->sort) ?: COMPARE(x->index, y->index);
}

static struct buf *chrome_merge_name_begin(struct chrome_merge *m, const struct chrome_process *p, const char *what, const char *key)
{
	struct buf *b = &m->out->buf;
	chrome_merge_separate(m);
	buf_printf(b, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%lld,\"tid\":%lld,\"ts\":0,\"args\":{\"%s\":", what,
	           (long long)chrome_merge_place_number(m, p->is_thread ? p->process : p->index), p->is_thread ? (long long)chrome_merge_place_number(m, p->index) : 0, key);
	return b;
}

/* Of a raw text, what stands between the quotes. */
static struct str chrome_merge_bare(struct str s)
{
	return s.n >= 2 && s.p[0] == '"' ? (struct str){s.p + 1, s.n - 2} : s;
}

static void chrome_merge_put_process(struct chrome_merge *m, const struct chrome_process *p, uint32_t at)
{
	enum { PROCESSES_OF_A_RANK = 1000 };
	long long rank = (long long)job_rank_number(m->job, m->rank);
	struct str name = p->name.n ? p->name : chrome_merge_bare(p->text);
	buf_printf(chrome_merge_name_begin(m, p, "process_name", "name"), "\"rank %lld: " STR_FMT "\"}}", rank, STR_ARG(name));
	struct str labels = p->labels.n ? p->labels : STR("");
	buf_printf(chrome_merge_name_begin(m, p, "process_labels", "labels"), "\"rank %lld%s" STR_FMT "\"}}", rank, labels.n ? ", " : "", STR_ARG(labels));
	buf_printf(chrome_merge_name_begin(m, p, "process_sort_index", "sort_index"), "%lld}}", (long long)m->order * PROCESSES_OF_A_RANK + at);
}

void chrome_merge_end(struct chrome_merge *m, struct buf *pids)
{
	sink_flush(&m->in);
	qsort(m->place, m->n_places, sizeof *m->place, chrome_merge_by_sort);
	for (uint32_t i = 0; i < m->n_places && sink_room(m->out) == 0; i++) {
		struct chrome_process *p = &m->place[i];
		if (p->is_thread && !p->is_named) {
			buf_printf(chrome_merge_name_begin(m, p, "thread_name", "name"), "\"" STR_FMT "\"}}", STR_ARG(chrome_merge_bare(p->text)));
		} else if (!p->is_thread) {
			chrome_merge_put_process(m, p, i);
			buf_printf(pids, "%s%lld", pids->n ? "," : "", (long long)chrome_merge_place_number(m, p->index));
		}
	}
	m->order++;
	m->place_base += m->n_places;
	m->id_base += m->ids.n - 1;
	intern_release(&m->places);
	intern_release(&m->ids);
	idmap_release(&m->devices);
	arena_release(&m->arena);
}
