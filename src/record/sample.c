#include "record/sample.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "record/launch.h"
#include "record/sample_ring.h"
#include "record/sample_segment.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_MS = 40, FLUSH_MS = 1000, PROCESSES_MOST = 1 << 16, ENVIRONMENT_MOST = 1 << 20 };

/* One program in one process: exec makes another one of it. */
struct sample_process {
	pid_t pid, parent;
	uint64_t since_ns;
	int64_t rank, world;
	bool asked;                   /* rank and world are known */
	struct sample_segment segment;
	struct sample_mapping *mapping;
	unsigned n, cap;
	unsigned written;             /* of them, in the segment */
};

struct sampler {
	struct sample_rings rings;
	const char *dir;
	int64_t max_bytes;
	bool ring;
	pthread_t thread;
	bool threaded;
	int stop;                     /* eventfd */
	struct buf bytes;             /* records that were taken and not handled */
	struct sample_record *record;
	unsigned n_records, cap_records;
	uint64_t upto_ns;             /* the latest time of the round before: all that is older has been taken from every CPU */
	struct sample_process **process;
	unsigned n_processes, cap_processes;
	struct idmap current;         /* pid -> place in process */
	struct intern paths;
	struct sampled result;
};

/* --- processes -------------------------------------------------------------------------------------------------- */

static struct sample_process *sample_find(const struct sampler *s, pid_t pid)
{
	uint32_t at = idmap_get(&s->current, pid);
	return at == IDMAP_NONE ? NULL : s->process[at];
}

static void sample_inherit(struct sample_process *p, const struct sample_process *from)
{
	p->rank = from->rank;
	p->world = from->world;
	p->n = 0;
	MEM_GROW(p->mapping, p->cap, from->n);
	if (from->n)
		memcpy(p->mapping, from->mapping, from->n * sizeof *p->mapping);
	p->n = from->n;
}

/* A new one of this number; NULL when there are too many. */
static struct sample_process *sample_add(struct sampler *s, pid_t pid, pid_t parent, uint64_t since_ns)
{
	if (s->n_processes == PROCESSES_MOST)
		return NULL;
	struct sample_process *p = NEW(struct sample_process);
	*p = (struct sample_process){.pid = pid, .parent = parent, .since_ns = since_ns, .rank = -1, .world = -1};
	p->segment.max_bytes = (uint64_t)s->max_bytes;
	p->segment.ring = s->ring;
	MEM_GROW(s->process, s->cap_processes, s->n_processes + 1);
	idmap_put(&s->current, pid, s->n_processes);
	s->process[s->n_processes++] = p;
	return p;
}

static struct sample_process *get(struct sampler *s, pid_t pid)
{
	struct sample_process *p = sample_find(s, pid);
	return p ? p : sample_add(s, pid, 0, 0);
}

/* One behind the other, each closed by a NUL. */
static int64_t sample_number_in(const void *environment, const char *name)
{
	const struct str *e = environment;
	size_t length = strlen(name);
	int64_t v;
	for (const char *p = e->p; p < e->p + e->n; p += strlen(p) + 1)
		if (strncmp(p, name, length) == 0 && p[length] == '=')
			return str_to_i64(str_from(p + length + 1), &v) && v >= 0 ? v : -1;
	return -1;
}

static void ask_rank(struct sample_process *p)
{
	char path[64];
	if (p->asked)
		return;
	p->asked = true;
	snprintf(path, sizeof path, "/proc/%d/environ", (int)p->pid);
	FILE *f = fopen(path, "re");
	char *text = mem_alloc(ENVIRONMENT_MOST + 1, 1);
	size_t n = f ? fread(text, 1, ENVIRONMENT_MOST, f) : 0;
	text[n] = 0;
	if (n) /* else it is gone already: as its parent */
		wire_rank_of(sample_number_in, &(const struct str){text, n}, &p->rank, &p->world);
	mem_free(text);
	if (f)
		fclose(f);
	p->segment.h.rank = p->rank;
	p->segment.h.world = p->world;
	p->segment.h.ppid = p->parent;
}

/* --- records ---------------------------------------------------------------------------------------------------- */

/* The kernel's layouts, behind the header. */
struct fork_body {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};
struct comm_body {
	uint32_t pid, tid;
	char comm[];
};
struct mmap_body {
	uint32_t pid, tid;
	uint64_t address, bytes, offset;
	char path[];
};
enum { TRAILER = 16 }; /* pid, tid, time behind every record but samples */

static struct str sample_text_of(const struct perf_event_header *h, const char *from)
{
	const char *end = (const char *)h + h->size - TRAILER;
	return from < end ? (struct str){from, strnlen(from, (size_t)(end - from))} : (struct str){0};
}

static void on_fork(struct sampler *s, const struct perf_event_header *h, uint64_t time_ns)
{
	const struct fork_body *b = (const struct fork_body *)(h + 1);
	if (h->size < sizeof *h + sizeof *b || b->pid == b->ppid)
		return; /* a thread */
	struct sample_process *p = sample_add(s, (pid_t)b->pid, (pid_t)b->ppid, time_ns), *parent = sample_find(s, (pid_t)b->ppid);
	if (p && parent)
		sample_inherit(p, parent);
}

static void on_comm(struct sampler *s, const struct perf_event_header *h, uint64_t time_ns)
{
	const struct comm_body *b = (const struct comm_body *)(h + 1);
	if (h->size < sizeof *h + sizeof *b + TRAILER)
		return;
	struct sample_process *p = get(s, (pid_t)b->pid);
	if (p && (h->misc & PERF_RECORD_MISC_COMM_EXEC)) {
		int64_t rank = p->rank, world = p->world;
		p = sample_add(s, (pid_t)b->pid, p->parent, time_ns);
		if (p) {
			p->rank = rank;
			p->world = world;
		}
	}
	if (p)
		sample_segment_thread(&p->segment, (pid_t)b->tid, sample_text_of(h, b->comm));
}

static void on_mmap(struct sampler *s, const struct perf_event_header *h)
{
	const struct mmap_body *b = (const struct mmap_body *)(h + 1);
	if (h->size < sizeof *h + sizeof *b + TRAILER || b->address + b->bytes < b->address)
		return;
	struct sample_process *p = get(s, (pid_t)b->pid);
	if (!p)
		return;
	MEM_PUSH(p->mapping, p->n, p->cap, (struct sample_mapping){b->address, b->address + b->bytes, b->offset, intern_str(&s->paths, sample_text_of(h, b->path))});
}

static void on_sample(struct sampler *s, const struct perf_event_header *h, uint64_t time_ns)
{
	struct sample x;
	struct sample_process *p = sample_parse(h, &x) ? get(s, (pid_t)x.pid) : NULL;
	if (!p)
		return;
	ask_rank(p);
	s->result.samples++;
	sample_segment_add(&p->segment, s->dir, (pid_t)x.pid, (pid_t)x.tid, (int64_t)time_ns, (int64_t)x.period_ns, x.frame, x.n);
	for (; p->written < p->n; p->written++)
		sample_segment_map(&p->segment, &p->mapping[p->written], intern_get(&s->paths, p->mapping[p->written].path));
}

static void on_lost(struct sampler *s, const struct perf_event_header *h)
{
	uint64_t body[2]; /* id, how many */
	if (h->size < sizeof *h + sizeof body)
		return;
	memcpy(body, h + 1, sizeof body);
	s->result.lost += body[1];
}

static void sample_handle(struct sampler *s, const struct sample_record *r)
{
	const struct perf_event_header *h = (const struct perf_event_header *)(s->bytes.p + r->at);
	switch (h->type) {
	case PERF_RECORD_FORK: on_fork(s, h, r->time_ns); break;
	case PERF_RECORD_COMM: on_comm(s, h, r->time_ns); break;
	case PERF_RECORD_MMAP: on_mmap(s, h); break;
	case PERF_RECORD_SAMPLE: on_sample(s, h, r->time_ns); break;
	case PERF_RECORD_LOST: on_lost(s, h); break;
	default: break;
	}
}

static int by_time(const void *x, const void *y)
{
	const struct sample_record *a = x, *b = y;
	return COMPARE(a->time_ns, b->time_ns) ?: COMPARE(a->at, b->at);
}

/* Takes what there is, and handles in the order of time what no CPU can add to any more. */
static void round_of(struct sampler *s, bool last)
{
	struct buf rest = {0};
	unsigned n = 0;
	uint64_t upto = s->upto_ns;
	sample_rings_take(&s->rings, &s->bytes, &s->record, &s->n_records, &s->cap_records);
	if (s->n_records)
		qsort(s->record, s->n_records, sizeof *s->record, by_time);
	for (unsigned i = 0; i < s->n_records; i++) {
		struct sample_record *r = &s->record[i];
		const struct perf_event_header *h = (const struct perf_event_header *)(s->bytes.p + r->at);
		s->upto_ns = r->time_ns > s->upto_ns ? r->time_ns : s->upto_ns;
		if (last || r->time_ns < upto) {
			sample_handle(s, r);
			continue;
		}
		struct sample_record kept = {r->time_ns, rest.n};
		buf_put(&rest, h, h->size);
		s->record[n++] = kept;
	}
	buf_release(&s->bytes);
	s->bytes = rest;
	s->n_records = n;
}

static void *sample_run(void *context)
{
	struct sampler *s = context;
	struct pollfd p = {.fd = s->stop, .events = POLLIN};
	for (unsigned round = 1; poll(&p, 1, ROUND_MS) <= 0; round++) {
		round_of(s, false);
		if (round % (FLUSH_MS / ROUND_MS) == 0)
			for (unsigned i = 0; i < s->n_processes; i++)
				sample_segment_flush(&s->process[i]->segment);
	}
	return NULL;
}

/* --- from beginning to end -------------------------------------------------------------------------------------- */

struct sampler *sampler_start(pid_t pid, const char *dir, int64_t hz, int64_t max_bytes, bool ring, struct err *e)
{
	struct sampler *s = NEW(struct sampler);
	s->dir = dir;
	s->max_bytes = max_bytes;
	s->ring = ring && max_bytes;
	s->stop = eventfd(0, EFD_CLOEXEC);
	idmap_init(&s->current, 0, INT32_MAX, 64);
	intern_init(&s->paths);
	if (sample_rings_open(&s->rings, pid, hz, e) == 0) {
		int why = s->stop < 0 ? errno : pthread_create(&s->thread, NULL, sample_run, s);
		s->threaded = why == 0;
		if (s->threaded)
			return s;
		err_set(e, ERR_IO, "cannot start a thread: %s", strerror(why));
	}
	sampler_finish(s, NULL);
	return NULL;
}

static void finish_processes(struct sampler *s, int64_t cpu_ns)
{
	struct symbols symbols;
	bool first = true;
	symbols_init(&symbols);
	for (unsigned i = 0; i < s->n_processes; i++) {
		struct sample_process *p = s->process[i];
		if (p->segment.path.n && first) { /* what is of all processes is told once */
			p->segment.h.lost[WIRE_LOST_SAMPLES] = s->result.lost;
			p->segment.h.helper_ns = (uint64_t)cpu_ns;
			first = false;
		}
		s->result.broken |= !sample_segment_finish(&p->segment, &symbols, &s->paths, p->mapping, p->n);
		sample_segment_release(&p->segment);
		mem_free(p->mapping);
		mem_free(p);
	}
	symbols_release(&symbols);
}

/* Of the thread that took the samples. */
static int64_t cpu_time(pthread_t thread)
{
	clockid_t clock;
	struct timespec t;
	return pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &t) == 0 ? t.tv_sec * LAUNCH_S + t.tv_nsec : 0;
}

void sampler_finish(struct sampler *s, struct sampled *r)
{
	int64_t cpu_ns = 0;
	if (s->threaded) {
		uint64_t one = 1;
		cpu_ns = cpu_time(s->thread);
		if (write(s->stop, &one, sizeof one) == sizeof one)
			pthread_join(s->thread, NULL);
		round_of(s, true);
	}
	finish_processes(s, cpu_ns);
	sample_rings_close(&s->rings);
	if (s->stop >= 0)
		close(s->stop);
	if (r)
		*r = s->result;
	mem_free(s->process);
	mem_free(s->record);
	buf_release(&s->bytes);
	idmap_release(&s->current);
	intern_release(&s->paths);
	mem_free(s);
}
