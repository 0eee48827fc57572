#include "record/sample_segment.h"

#include "base/hash.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/now.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MARK UINT64_C(0xfffffffffffff000) /* from here on: not addresses, but what the following ones are of */
enum { CHUNK_ROOM = WIRE_BLOCK - sizeof(struct wire_chunk) };

/* --- the file --------------------------------------------------------------------------------------------------- */

static void write_at(struct sample_segment *s, int fd, const void *p, size_t n, uint64_t at)
{
	for (ssize_t done; n; p = (const char *)p + done, n -= (size_t)done, at += (uint64_t)done) {
		done = pwrite(fd, p, n, (off_t)at);
		if (done <= 0) {
			s->broken = true;
			s->h.lost[WIRE_LOST_DISK]++;
			return;
		}
	}
}

/* Not kept open: there may be as many processes as one likes. */
static int sample_segment_open_file(struct sample_segment *s, int how)
{
	int fd = s->broken ? -1 : open(s->path.p, how | O_CLOEXEC, 0600);
	s->broken |= fd < 0;
	return fd;
}

static struct wire_anchor sample_segment_anchor(void)
{
	struct timespec raw;
	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	return (struct wire_anchor){now_realtime_ns(), raw.tv_sec * INT64_C(1000000000) + raw.tv_nsec};
}

static void sample_segment_begin(struct sample_segment *s, const char *dir, pid_t pid, int64_t time_ns)
{
	struct wire_header *h = &s->h;
	memcpy(h->magic, WIRE_MAGIC, sizeof h->magic);
	h->version = WIRE_VERSION;
	h->header_bytes = sizeof *h;
	h->block_bytes = WIRE_BLOCK;
	h->grain_bytes = WIRE_GRAIN;
	h->start_ns = time_ns;
	h->pid = pid;
	h->max_bytes = (int64_t)s->max_bytes;
	h->full = s->ring ? WIRE_FULL_RING : WIRE_FULL_STOP;
	h->state = WIRE_RUNNING;
	h->first = h->last = sample_segment_anchor();
	h->used_bytes = WIRE_BLOCK;
	machine_boot_id(h->boot_id, sizeof h->boot_id);
	machine_name(h->host, sizeof h->host);
	snprintf(h->library, sizeof h->library, "%s", OPSCOPE_VERSION);
	buf_printf(&s->path, "%s/%s-%d-%lld.seg", dir, h->host, (int)pid, (long long)time_ns);
	buf_char(&s->path, 0);
	int fd = sample_segment_open_file(s, O_WRONLY | O_CREAT | O_EXCL);
	if (fd >= 0) {
		write_at(s, fd, h, sizeof *h, 0);
		close(fd);
	}
}

/* A chunk that is used again has no number while that is done, as wire.h wants it. */
static void forget_chunk(struct sample_segment *s, int fd, uint64_t at)
{
	struct wire_chunk old;
	if (pread(fd, &old, sizeof old, (off_t)at) != sizeof old)
		return;
	s->h.lost[WIRE_LOST_RING] += old.committed;
	old.sequence = 0;
	write_at(s, fd, &old, sizeof old, at);
}

/* All chunks of samples of a ring are of one size. */
static uint64_t sample_segment_place_of(const struct sample_segment *s, enum wire_chunk_kind kind)
{
	enum { SLOTS_LEAST = 2 };
	uint64_t slots = s->max_bytes / WIRE_BLOCK > SLOTS_LEAST + 1 ? s->max_bytes / WIRE_BLOCK - 1 : SLOTS_LEAST;
	return s->ring && kind == WIRE_EVENTS && s->chunks >= slots ? (1 + s->chunks % slots) * WIRE_BLOCK : s->h.used_bytes;
}

static void begin_chunk(struct sample_segment *s, int fd, struct wire_chunk *c, bool again)
{
	if (again)
		forget_chunk(s, fd, c->offset);
	c->sequence = ++s->h.sequence;
	c->ordinal = s->chunks;
	s->chunks += c->kind == WIRE_EVENTS;
}

/* Whether the records of a ring's chunk will be written again, with those that are still to come, in the same place: its chunks are few, and of one size. */
static bool comes_again(const struct sample_segment *s, enum wire_chunk_kind kind, bool full) { return s->ring && kind == WIRE_EVENTS && !full; }

static void take_written(struct sample_segment *s, struct buf *records, const struct wire_chunk *c, bool full)
{
	bool again = comes_again(s, c->kind, full);
	if (c->kind == WIRE_EVENTS) {
		s->begun = again ? c->offset : 0;
		s->begun_sequence = again ? c->sequence : 0;
		s->flushed = again ? records->n : 0;
	}
	if (!again)
		buf_clear(records);
}

/* The header says how far a reader may go: it follows the chunk. */
static void write_chunk(struct sample_segment *s, struct buf *records, enum wire_chunk_kind kind, bool full)
{
	bool begun = s->begun && kind == WIRE_EVENTS;
	struct wire_chunk c = {.magic = WIRE_CHUNK_MAGIC, .kind = (uint16_t)kind, .thread_number = kind == WIRE_EVENTS, .offset = begun ? s->begun : sample_segment_place_of(s, kind),
	                       .sequence = s->begun_sequence, .committed = (uint32_t)records->n, .ordinal = s->chunks - begun};
	size_t bytes = s->ring && kind == WIRE_EVENTS ? WIRE_BLOCK : sizeof c + records->n;
	bool again = c.offset < s->h.used_bytes;
	c.grains = (uint16_t)((bytes + WIRE_GRAIN - 1) / WIRE_GRAIN);
	int fd = sample_segment_open_file(s, again ? O_RDWR : O_WRONLY);
	if (fd >= 0) {
		if (!begun)
			begin_chunk(s, fd, &c, again);
		write_at(s, fd, records->p, records->n, c.offset + sizeof c);
		write_at(s, fd, &c, sizeof c, c.offset);
		if (!again) {
			s->h.used_bytes += (uint64_t)c.grains * WIRE_GRAIN;
			s->broken |= ftruncate(fd, (off_t)s->h.used_bytes) < 0;
		}
		write_at(s, fd, &s->h, sizeof s->h, 0);
		close(fd);
	}
	take_written(s, records, &c, full);
}

static void sample_segment_put(struct sample_segment *s, struct buf *to, enum wire_chunk_kind kind, const void *p, size_t n, const void *more, size_t m)
{
	size_t pad = -(n + m) & 7;
	if (to->n + n + m + pad > CHUNK_ROOM) {
		if (kind == WIRE_EVENTS && s->keep.n) /* what the events refer to stands in front of them */
			write_chunk(s, &s->keep, WIRE_KEEP, true);
		write_chunk(s, to, kind, true);
	}
	buf_put(to, p, n);
	buf_put(to, more, m);
	buf_put(to, "\0\0\0\0\0\0\0", pad);
}

/* --- records ---------------------------------------------------------------------------------------------------- */

static struct wire_head sample_segment_head(enum wire_type type, uint8_t flags, size_t bytes, uint32_t id)
{
	return (struct wire_head){(uint8_t)type, flags, WIRE_WORDS(bytes), id};
}

void sample_segment_add(struct sample_segment *s, const char *dir, pid_t pid, pid_t tid, int64_t time_ns, int64_t period_ns, const uint64_t *frame, uint32_t n)
{
	uint64_t kept[WIRE_MAX_FRAMES];
	uint32_t k = 0;
	bool cut = false;
	for (uint32_t i = 0; i < n && !cut; i++)
		if (frame[i] < FIRST_MARK && !(frame[i] & WIRE_FRAME_TEXT)) {
			cut = k == WIRE_MAX_FRAMES;
			if (!cut)
				kept[k++] = frame[i];
		}
	if (!s->path.n)
		sample_segment_begin(s, dir, pid, time_ns);
	if (s->broken || (s->max_bytes && !s->ring && s->h.used_bytes + s->chunk.n > s->max_bytes)) {
		s->h.lost[s->broken ? WIRE_LOST_DISK : WIRE_LOST_FULL]++;
		return;
	}
	struct wire_cpu_sample r = {sample_segment_head(WIRE_CPU_SAMPLE, cut ? WIRE_CUT : 0, sizeof r + 8 * (size_t)k, (uint32_t)tid), time_ns, k,
	                            (uint32_t)((period_ns + 500) / 1000)};
	sample_segment_put(s, &s->chunk, WIRE_EVENTS, &r, sizeof r, kept, 8 * (size_t)k);
}

void sample_segment_flush(struct sample_segment *s)
{
	if (s->chunk.n == s->flushed)
		return;
	if (s->keep.n)
		write_chunk(s, &s->keep, WIRE_KEEP, true);
	s->h.last = sample_segment_anchor();
	write_chunk(s, &s->chunk, WIRE_EVENTS, false);
}

static uint32_t sample_segment_keep_text(struct sample_segment *s, struct str text)
{
	bool cut = text.n > WIRE_MAX_STRING;
	uint32_t n = cut ? WIRE_MAX_STRING : (uint32_t)text.n;
	while (cut && n && (text.p[n] & 0xc0) == 0x80) /* not in the middle of a character */
		n--;
	struct wire_string r = {sample_segment_head(WIRE_STRING, cut ? WIRE_CUT : 0, sizeof r + n, ++s->texts), n, 0};
	sample_segment_put(s, &s->keep, WIRE_KEEP, &r, sizeof r, text.p, n);
	return s->texts;
}

void sample_segment_map(struct sample_segment *s, const struct sample_mapping *m, struct str path)
{
	if (s->ring) /* whose chunks lie side by side until the end */
		return;
	struct wire_mapping r = {sample_segment_head(WIRE_MAPPING, 0, sizeof r, sample_segment_keep_text(s, path)), m->start, m->end, m->offset};
	sample_segment_put(s, &s->keep, WIRE_KEEP, &r, sizeof r, NULL, 0);
}

/* --- the end: addresses become texts ---------------------------------------------------------------------------- */

struct naming {
	struct sample_segment *s;
	struct symbols *symbols;
	const struct intern *paths;
	const struct sample_mapping *mapping;
	unsigned n_mappings;
	struct perf_map made;
	struct idmap known;        /* address -> text */
	struct intern names;       /* text -> its number, less `before` */
	uint32_t before;           /* texts that are no names */
	struct buf scratch;
};

/* The last mapping that holds it: an address may have been used again. */
static const struct sample_mapping *mapping_of(const struct naming *n, uint64_t address)
{
	for (unsigned i = n->n_mappings; i > 0; i--)
		if (address >= n->mapping[i - 1].start && address < n->mapping[i - 1].end)
			return &n->mapping[i - 1];
	return NULL;
}

/* Callers are returned to: their call stands before the address. 0: no code is there. */
static uint64_t sample_segment_text_of(struct naming *n, uint64_t address, bool innermost)
{
	uint64_t at = innermost || !address ? address : address - 1;
	uint32_t text = idmap_get(&n->known, (int64_t)at);
	if (text == IDMAP_NONE) {
		const struct sample_mapping *m = mapping_of(n, at);
		if (!m && !innermost && !perf_map_name(&n->made, at).n)
			return 0;
		buf_clear(&n->scratch);
		symbols_name(n->symbols, &n->made, m ? intern_get(n->paths, m->path) : (struct str){0}, m ? m->offset + (at - m->start) : 0, at, &n->scratch);
		uint32_t before = n->names.n, id = intern_str(&n->names, buf_view(&n->scratch));
		text = id ? n->before + id : 0;
		if (id >= before)
			sample_segment_keep_text(n->s, buf_view(&n->scratch));
		idmap_put(&n->known, (int64_t)at, text);
	}
	return WIRE_FRAME_TEXT | text;
}

/* A caller where there is no code is not one: the stack was not what frame pointers promise, and ends before it. */
static void name_frames(struct naming *n, char *records, size_t bytes)
{
	for (size_t at = 0; at + sizeof(struct wire_cpu_sample) <= bytes;) {
		struct wire_cpu_sample r;
		memcpy(&r, records + at, sizeof r);
		for (uint32_t i = 0; i < r.frames; i++) {
			uint64_t f;
			char *p = records + at + sizeof r + 8 * (size_t)i;
			memcpy(&f, p, 8);
			f = sample_segment_text_of(n, f, i == 0);
			memcpy(p, &f, 8);
			if (!f) {
				r.frames = i;
				r.head.flags |= WIRE_CUT;
			}
		}
		memcpy(records + at, &r, sizeof r);
		at += 8 * (size_t)r.head.words;
	}
}

/* The chunks that were written, each in its place. */
static void name_written(struct naming *n)
{
	struct sample_segment *s = n->s;
	char *records = mem_alloc(1, WIRE_BLOCK);
	int fd = sample_segment_open_file(s, O_RDWR);
	for (uint64_t at = WIRE_BLOCK; fd >= 0 && at < s->h.used_bytes && !s->broken;) {
		struct wire_chunk c;
		bool ok = pread(fd, &c, sizeof c, (off_t)at) == sizeof c && c.grains && c.committed <= CHUNK_ROOM &&
		          pread(fd, records, c.committed, (off_t)(at + sizeof c)) == (ssize_t)c.committed;
		if (!ok)
			break;
		if (c.kind == WIRE_EVENTS) {
			name_frames(n, records, c.committed);
			write_at(s, fd, records, c.committed, at + sizeof c);
		}
		at += (uint64_t)c.grains * WIRE_GRAIN;
	}
	if (fd >= 0)
		close(fd);
	mem_free(records);
}

void sample_segment_thread(struct sample_segment *s, pid_t tid, struct str name)
{
	buf_put(&s->threads, &tid, sizeof tid);
	buf_put(&s->threads, name.p, name.n);
	buf_char(&s->threads, 0);
}

static void name_threads(struct naming *n)
{
	struct sample_segment *s = n->s;
	for (size_t at = 0; at + sizeof(pid_t) < s->threads.n;) {
		pid_t tid;
		memcpy(&tid, s->threads.p + at, sizeof tid);
		struct str name = str_from(s->threads.p + at + sizeof tid);
		struct wire_thread_name r = {sample_segment_head(WIRE_THREAD_NAME, WIRE_BY_SYSTEM, sizeof r, sample_segment_keep_text(s, name)), (uint32_t)tid, 0};
		sample_segment_put(s, &s->keep, WIRE_KEEP, &r, sizeof r, NULL, 0);
		at += sizeof tid + name.n + 1;
	}
}

bool sample_segment_finish(struct sample_segment *s, struct symbols *symbols, const struct intern *paths, const struct sample_mapping *mapping, unsigned n)
{
	struct naming name = {.s = s, .symbols = symbols, .paths = paths, .mapping = mapping, .n_mappings = n, .before = s->texts};
	char path[64];
	if (!s->path.n)
		return true;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)s->h.pid);
	perf_map_read(&name.made, path);
	idmap_init(&name.known, INT64_MIN, INT64_MAX, 1024);
	intern_init(&name.names);
	if (s->chunk.n)
		write_chunk(s, &s->chunk, WIRE_EVENTS, true);
	name_written(&name);
	name_threads(&name);
	s->h.state = WIRE_ENDED;
	s->h.last = sample_segment_anchor();
	write_chunk(s, &s->keep, WIRE_KEEP, true);
	idmap_release(&name.known);
	intern_release(&name.names);
	perf_map_release(&name.made);
	buf_release(&name.scratch);
	return !s->broken;
}

void sample_segment_release(struct sample_segment *s)
{
	buf_release(&s->path);
	buf_release(&s->chunk);
	buf_release(&s->keep);
	buf_release(&s->threads);
}
