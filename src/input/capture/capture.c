/* What `opscope record` leaves: the segments of its capture library (docs/capture.md). */
#include "input/capture/capture.h"

#include "base/sort.h"
#include "input/input.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- a segment ---- */

static void each_record(struct capture *c, const struct capture_chunk *chunk, void (*f)(struct capture *, const struct wire_head *, uint32_t))
{
	uint32_t n = capture_file_load(c->file, chunk);
	c->room += (uint64_t)n * CAPTURE_ROOM_A_BYTE;
	for (uint32_t at = 0; at + sizeof(struct wire_head) <= n;) {
		const struct wire_head *h = (const struct wire_head *)(c->file->records + at);
		uint32_t bytes = h->words * 8u;
		c->offset = (int64_t)(chunk->offset + sizeof(struct wire_chunk) + at);
		if (!bytes || bytes > n - at) {
			diag_add(&c->p->diags, "damaged-record", DIAG_LOSS, c->offset, "%s: a record that does not fit in its chunk: the rest of the chunk is left out",
			         c->name);
			return;
		}
		f(c, h, bytes);
		at += bytes;
	}
}

static int capture_by_start(const void *x, const void *y)
{
	const struct wire_mapping *a = x, *b = y;
	return COMPARE(a->start, b->start);
}

static void begin_segment(struct capture *c)
{
	const struct wire_header *h = &c->file->h;
	c->n_texts = c->n_cut = c->n_off = c->n_args = c->n_mappings = 0;
	c->argv = c->process_name = 0;
	c->has_facts = false;
	c->anchor = h->first;
	c->last_ns = h->last.realtime_ns > h->start_ns ? h->last.realtime_ns : h->start_ns;
	idmap_init(&c->text_at, 1, 0, 1024);
	idmap_init(&c->thread_name, 1, 0, 64);
	idmap_init(&c->system_name, 1, 0, 64);
	idmap_init(&c->context_device, 1, 0, 64);
	c->n_allocations = c->n_events = c->n_waits = c->n_streams = 0;
	c->first_span = c->p->span.rows.n;
	c->first_gpu = c->p->gpu_op.rows.n;
	intern_init(&c->categories);
	intern_init(&c->graph_nodes);
	for (int i = 0; i < CAPTURE_DOMAINS; i++)
		c->domain[i] = (struct capture_domain){0, capture_cat(c, "nvtx")};
	capture_thread_begin(c, 0, 0);
}

static void end_segment(struct capture *c)
{
	capture_facts_tell(c);
	idmap_release(&c->text_at);
	idmap_release(&c->thread_name);
	idmap_release(&c->system_name);
	idmap_release(&c->context_device);
	intern_release(&c->categories);
	intern_release(&c->graph_nodes);
}

static void capture_read_events(struct capture *c, unsigned first)
{
	const struct capture_file *f = c->file;
	for (unsigned i = first; i < f->n; i++) {
		const struct capture_chunk *k = &f->chunk[i], *before = i > first ? k - 1 : NULL;
		if (!before || before->number != k->number || before->thread != k->thread) {
			capture_close_later(c);
			capture_thread_begin(c, k->thread, k->number);
		} else if (k->ordinal != before->ordinal + 1) {
			capture_drop_open(c);
		}
		each_record(c, k, capture_event);
	}
	capture_close_later(c);
	capture_match_ranges(c);
	capture_match_gpu(c);
}

static void read_segment(struct capture *c, const char *path)
{
	struct capture_file f;
	struct err e;
	const char *slash = strrchr(path, '/');
	if (capture_file_open(&f, path, true, &e) < 0) {
		diag_add(&c->p->diags, "segment-unreadable", DIAG_LOSS, -1, "%s", e.msg);
		if (f.error)
			c->failed = e;
		return;
	}
	c->file = &f;
	c->name = slash ? slash + 1 : path;
	begin_segment(c);
	unsigned events = 0;
	for (; events < f.n && f.chunk[events].kept; events++)
		each_record(c, &f.chunk[events], capture_kept);
	if (c->n_mappings)
		qsort(c->mapping, c->n_mappings, sizeof *c->mapping, capture_by_start);
	capture_streams_known(c);
	capture_facts_known(c);
	capture_read_events(c, events);
	end_segment(c);
	c->p->input_bytes += f.bytes;
	c->leader &= !c->has_facts;
	capture_file_close(&f);
	if (f.error)
		err_set(&c->failed, ERR_IO, "%s: cannot read: %s", path, strerror(f.error));
}

/* ---- a run ---- */

static void capture_begin_(struct capture *c, struct profile *p, const struct capture_run *r)
{
	*c = (struct capture){.p = p, .base_ns = r->base_ns, .rank = r->rank, .world = r->world, .leader = true, .room = CAPTURE_ROOM_FIRST};
	build_init(&c->b, p);
	c->markers = markers_new(&c->b);
	c->domain = NEW_ARRAY(CAPTURE_DOMAINS, struct capture_domain);
	intern_init(&c->streams);
	idmap_init(&c->named, 1, 0, 64);
	char text[24];
	int n = snprintf(text, sizeof text, "%lld", (long long)r->base_ns);
	build_meta(&c->b, intern_str(&p->strings, STR("baseTimeNanoseconds")), intern_put(&p->strings, text, (size_t)n), false);
}

static void capture_release(struct capture *c)
{
	markers_free(c->markers);
	intern_release(&c->streams);
	idmap_release(&c->named);
	arena_release(&c->bytes);
	buf_release(&c->scratch);
	void *const blocks[] = {c->text, c->domain, c->category_name, c->off, c->thread.open, c->thread.top, c->started, c->ended, c->arg,
	                        c->stream_track, c->device, c->node_range, c->allocation, c->event, c->wait, c->mapping, c->seen, c->stream};
	for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
		mem_free(blocks[i]);
}

static void note_absent(struct capture *c, const struct capture_run *r)
{
	if (r->absent)
		diag_add_n(&c->p->diags, "process-missing", DIAG_LOSS, r->absent, -1, "a process could not begin its capture, for lack of a free descriptor or of room on the disk");
}

/* An empty capture is told what it lacks and how to record it. */
static void capture_note_missing(struct capture *c)
{
	if (!c->p->span.rows.n && !c->p->gpu_op.rows.n)
		diag_add(&c->p->diags, "nothing-recorded", DIAG_NOTE, -1,
		         "the capture holds no ranges and no work of a GPU: the program used neither NVTX, ITT, opscope/trace.h nor CUDA, or only outside of "
		         "what was to be recorded");
}

static int capture_read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s);
	struct capture_run r;
	if (strcmp(path, "-") == 0)
		return err_set(e, ERR_USAGE, "a capture cannot be read from a pipe: give its name");
	if (source_is_compressed(s))
		return err_set(e, ERR_FORMAT, "%s: a segment of a capture that was compressed: unpack it first", path);
	if (capture_run_find(&r, path, source_root(s), e) < 0)
		return -1;
	struct capture *c = mem_alloc(1, sizeof *c);
	capture_begin_(c, p, &r);
	p->zero_is_start = true;
	p->recorder = RECORDER_NVIDIA;
	p->input_bytes = 0;
	for (unsigned i = 0; i < r.n && !c->failed.code; i++)
		read_segment(c, r.path[i]);
	for (uint32_t k = 0; k < c->n_seen; k++)
		if (c->seen[k])
			build_count(&c->b, (uint16_t)k, 'X', c->seen[k]);
	capture_facts_finish(c);
	note_absent(c, &r);
	capture_note_missing(c);
	int rc = build_finish(&c->b, e);
	if (c->failed.code) {
		*e = c->failed;
		rc = -1;
	}
	capture_release(c);
	mem_free(c);
	capture_run_release(&r);
	return rc;
}

static int capture_sniff(struct str head, const char *path, struct err *e)
{
	return str_starts(head, STR(WIRE_MAGIC)) ? 100 : 0;
}

const struct input input_capture = {
	.name = "capture",
	.help = "Captures of `opscope record`: a run directory, or one segment (*.seg) in it; also of a program that was killed or still runs",
	.sniff = capture_sniff,
	.read = capture_read_file,
	.is_whole = capture_run_leads,
	.forget = capture_run_forget,
	.lives = capture_run_lives,
	.progress = capture_run_progress,
	.rank = capture_run_rank,
	.grows = true,
};
