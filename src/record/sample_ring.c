#include "record/sample_ring.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGES_MOST = 64, PAGES_LEAST = 4 }; /* 64 and one more are what a user may lock for each CPU, unless told otherwise */
#define SECOND_NS 1000000000ll

/* Nearly the same on each CPU, and a multiple of nothing: what happens once a millisecond is not always met in the same place. */
static uint64_t period_of(int64_t hz, long cpu)
{
	uint64_t ns = (uint64_t)(SECOND_NS / hz);
	return (ns + ns / 1000 * (uint64_t)(cpu * 37 % 31) / 10) | 1;
}

static struct perf_event_attr attributes(int64_t hz, long cpu)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period_of(hz, cpu),
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.inherit = 1,
		.exclude_kernel = 1, /* what users may do by default */
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.mmap = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.enable_on_exec = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_REALTIME,
	};
}

/* Smaller where only less may be locked. */
static int map(struct sample_ring *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	for (size_t pages = PAGES_MOST; pages >= PAGES_LEAST; pages /= 2) {
		r->bytes = (pages + 1) * page;
		r->page = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
		if (r->page != MAP_FAILED)
			return 0;
		if (errno != EPERM && errno != EAGAIN && errno != ENOMEM)
			break;
	}
	return -1;
}

static int sample_ring_refuse(int why, struct err *e)
{
	char paranoid[16] = "not there";
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	if (f && fgets(paranoid, sizeof paranoid, f))
		paranoid[strcspn(paranoid, "\n")] = 0;
	if (f)
		fclose(f);
	if (why == ENOSYS)
		return err_set(e, ERR_IO, "this system has no perf_event_open");
	if (why == EACCES || why == EPERM)
		return err_set(e, ERR_IO, "the system does not allow it (perf_event_open: %s; /proc/sys/kernel/perf_event_paranoid is %s, 2 or less is needed, and containers "
		               "often forbid the call)", strerror(why), paranoid);
	return err_set(e, ERR_IO, "perf_event_open: %s", strerror(why));
}

static int sample_ring_open_one(struct sample_rings *r, pid_t pid, long cpu, int64_t hz)
{
	struct perf_event_attr a = attributes(hz, cpu);
	struct sample_ring ring = {.fd = (int)syscall(SYS_perf_event_open, &a, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC)};
	if (ring.fd < 0 || map(&ring) < 0) {
		int why = errno;
		if (ring.fd >= 0)
			close(ring.fd);
		return why;
	}
	MEM_PUSH(r->v, r->n, r->cap, ring);
	return 0;
}

int sample_rings_open(struct sample_rings *r, pid_t pid, int64_t hz, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	*r = (struct sample_rings){0};
	for (long cpu = 0; cpu < cpus; cpu++) {
		int why = sample_ring_open_one(r, pid, cpu, hz);
		if (!why || why == ENODEV || why == ENXIO) /* a CPU that is off */
			continue;
		sample_rings_close(r);
		return sample_ring_refuse(why, e);
	}
	return r->n ? 0 : sample_ring_refuse(ENOSYS, e);
}

void sample_rings_close(struct sample_rings *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		munmap(r->v[i].page, r->v[i].bytes);
		close(r->v[i].fd);
	}
	mem_free(r->v);
	*r = (struct sample_rings){0};
}

/* --- records ---------------------------------------------------------------------------------------------------- */

static void copy_out(const struct sample_ring *r, uint64_t from, void *to, size_t n)
{
	const char *data = (const char *)r->page + r->page->data_offset;
	size_t size = (size_t)r->page->data_size, at = (size_t)(from & (size - 1)), first = n < size - at ? n : size - at;
	memcpy(to, data + at, first);
	memcpy((char *)to + first, data, n - first);
}

/* The time stands behind the thread: in a sample near the front, else at the end. */
static uint64_t time_of(const struct perf_event_header *h)
{
	uint64_t t = 0;
	if (h->type == PERF_RECORD_SAMPLE && h->size >= 24)
		memcpy(&t, (const char *)h + 16, 8);
	else if (h->type != PERF_RECORD_SAMPLE && h->size >= 24)
		memcpy(&t, (const char *)h + h->size - 8, 8);
	return t;
}

static void take_ring(struct sample_ring *r, struct buf *bytes, struct sample_record **list, unsigned *n, unsigned *cap)
{
	uint64_t head = atomic_load_explicit((_Atomic uint64_t *)&r->page->data_head, memory_order_acquire), tail = r->page->data_tail;
	while (tail < head) {
		struct perf_event_header h;
		copy_out(r, tail, &h, sizeof h);
		if (h.size < sizeof h || h.size > head - tail)
			break;
		size_t at = bytes->n;
		copy_out(r, tail, buf_room(bytes, h.size), h.size);
		bytes->n += h.size;
		MEM_GROW(*list, *cap, *n + 1);
		(*list)[(*n)++] = (struct sample_record){time_of((const struct perf_event_header *)(bytes->p + at)), at};
		tail += h.size;
	}
	atomic_store_explicit((_Atomic uint64_t *)&r->page->data_tail, head, memory_order_release);
}

void sample_rings_take(struct sample_rings *r, struct buf *bytes, struct sample_record **list, unsigned *n, unsigned *cap)
{
	for (unsigned i = 0; i < r->n; i++)
		take_ring(&r->v[i], bytes, list, n, cap);
}

bool sample_parse(const struct perf_event_header *h, struct sample *s)
{
	const char *p = (const char *)(h + 1);
	uint64_t n;
	if (h->size < sizeof *h + 32)
		return false;
	memcpy(&s->pid, p, 4);
	memcpy(&s->tid, p + 4, 4);
	memcpy(&s->period_ns, p + 16, 8);
	memcpy(&n, p + 24, 8);
	if (n > (h->size - sizeof *h - 32) / 8)
		return false;
	s->frame = (const uint64_t *)(p + 32);
	s->n = (uint32_t)n;
	return true;
}
