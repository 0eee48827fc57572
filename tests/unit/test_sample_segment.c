/* Segments of samples (record/sample_segment.h) at their bound: the oldest go, or no more come, and what went is counted. */
#include "test.h"

#include "opscope/wire.h"
#include "record/sample_segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAMPLES = 40000, FRAMES = 4, RECORD = sizeof(struct wire_cpu_sample) + 8 * FRAMES, MOST = 8 * WIRE_BLOCK };

/* The samples that are in the file: how many, which is the first and the last, by the time; and what was lost. */
struct found {
	uint64_t n, bytes, keep_chunks;
	int64_t first, last;
	struct wire_header h;
};

static void look_at(struct found *f, const char *p, const struct wire_chunk *c)
{
	assert_int_equal(c->magic, WIRE_CHUNK_MAGIC);
	assert_true(c->sequence > 0);
	f->keep_chunks += c->kind == WIRE_KEEP;
	for (uint32_t at = 0; c->kind == WIRE_EVENTS && at < c->committed; at += RECORD) {
		struct wire_cpu_sample s;
		memcpy(&s, p + at, sizeof s);
		assert_int_equal(s.head.type, WIRE_CPU_SAMPLE);
		f->first = !f->n || s.time_ns < f->first ? s.time_ns : f->first;
		f->last = s.time_ns > f->last ? s.time_ns : f->last;
		f->n++;
	}
}

static struct found look(const char *path)
{
	struct found f = {0};
	struct stat st;
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *p = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, p, (size_t)st.st_size), st.st_size);
	memcpy(&f.h, p, sizeof f.h);
	f.bytes = (uint64_t)st.st_size;
	assert_true(f.h.used_bytes <= f.bytes);
	for (uint64_t at = WIRE_BLOCK; at < f.h.used_bytes;) {
		struct wire_chunk c;
		memcpy(&c, p + at, sizeof c);
		assert_int_equal(c.offset, at);
		look_at(&f, p + at + sizeof c, &c);
		at += (uint64_t)c.grains * WIRE_GRAIN;
	}
	free(p);
	close(fd);
	return f;
}

/* What came by now is there for a reader, without the end of the recording. */
static void look_at_flushed(struct sample_segment *s, int64_t latest)
{
	sample_segment_flush(s);
	sample_segment_flush(s); /* nothing is written twice */
	struct found f = look(s->path.p);
	if (!s->max_bytes || s->ring)
		assert_int_equal(f.last, latest);
	assert_true(f.n > 0 && f.h.state == WIRE_RUNNING);
	assert_int_equal(f.keep_chunks, 0);
}

static struct found write_and_look(bool ring, uint64_t most, int flush)
{
	char dir[] = "/tmp/opscope-samples-XXXXXX";
	struct sample_segment s = {.max_bytes = most, .ring = ring};
	struct symbols symbols;
	struct intern paths;
	const uint64_t frame[FRAMES] = {0x1000, 0x2000, 0x3000, 0x4000};
	assert_non_null(mkdtemp(dir));
	symbols_init(&symbols);
	intern_init(&paths);
	for (int i = 0; i < SAMPLES; i++) {
		sample_segment_add(&s, dir, 1, 1, 1000 + i, 1000000, frame, FRAMES);
		if (i % flush == flush - 1)
			look_at_flushed(&s, 1000 + i);
	}
	const struct sample_mapping mapping = {0x0, 0x10000, 0, intern_str(&paths, STR("/no/such/file"))};
	assert_true(sample_segment_finish(&s, &symbols, &paths, &mapping, 1));
	struct found f = look(s.path.p);
	unlink(s.path.p);
	rmdir(dir);
	sample_segment_release(&s);
	symbols_release(&symbols);
	intern_release(&paths);
	return f;
}

static void no_bound(void **state)
{
	struct found f = write_and_look(false, 0, SAMPLES + 1);
	assert_int_equal(f.n, SAMPLES);
	assert_int_equal(f.h.lost[WIRE_LOST_FULL] + f.h.lost[WIRE_LOST_RING], 0);
}

static void stop(void **state)
{
	struct found f = write_and_look(false, MOST, SAMPLES + 1);
	assert_int_equal(f.n + f.h.lost[WIRE_LOST_FULL], SAMPLES);
	assert_int_equal(f.first, 1000);
	assert_in_range(f.n, 1000, SAMPLES / 2);
}

static void look_at_ring(struct found f)
{
	assert_int_equal(f.h.full, WIRE_FULL_RING);
	assert_int_equal(f.last, 1000 + SAMPLES - 1);
	assert_int_equal(f.last - f.first + 1, f.n); /* none is missing between */
	assert_int_equal(f.n * RECORD + f.h.lost[WIRE_LOST_RING], (uint64_t)SAMPLES * RECORD);
	assert_in_range(f.n * RECORD, MOST / 2, MOST);
	assert_true(f.bytes <= MOST + WIRE_BLOCK); /* the texts come behind it */
	assert_int_equal(f.keep_chunks, 1);
}

static void ring(void **state)
{
	look_at_ring(write_and_look(true, MOST, SAMPLES + 1));
	assert_true(write_and_look(true, 1, SAMPLES + 1).n > 0);
}

/* A flush costs a ring no room, and none of its samples. */
static void flushed(void **state)
{
	look_at_ring(write_and_look(true, MOST, 777));
	assert_int_equal(write_and_look(false, 0, 777).n, SAMPLES);
	struct found f = write_and_look(false, MOST, 777);
	assert_int_equal(f.n + f.h.lost[WIRE_LOST_FULL], SAMPLES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_bound), cmocka_unit_test(stop), cmocka_unit_test(ring), cmocka_unit_test(flushed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
