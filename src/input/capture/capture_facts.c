/* What the segment says of the process, of itself, and of what it could not see. */
#include "input/capture/capture.h"

#include <inttypes.h>
#include <stdio.h>

enum { TOLD_MOST = 16 };

static uint32_t prefixed(struct capture *c, const char *prefix, struct str key)
{
	struct buf b = {0};
	buf_cstr(&b, prefix);
	buf_str(&b, key);
	uint32_t id = intern_put(&c->p->strings, b.p, b.n);
	buf_release(&b);
	return id;
}

static void capture_facts_put_meta(struct capture *c, const char *prefix, struct str key, struct str value, bool is_string)
{
	build_meta(&c->b, prefixed(c, prefix, key), intern_str(&c->p->strings, value), is_string);
}

void capture_device_fact(struct capture *c, int32_t device, const char *what, uint64_t value)
{
	struct buf key = {0}, text = {0};
	if (!value)
		return;
	buf_printf(&key, "device.%d.%s", device, what);
	buf_printf(&text, "%" PRIu64, value);
	capture_facts_put_meta(c, "capture:", buf_view(&key), buf_view(&text), false);
	buf_release(&key);
	buf_release(&text);
}

/* The words of a command line, each closed by a NUL, as one would type them. */
static void capture_facts_put_words(struct buf *b, struct str words)
{
	while (words.n && !words.p[words.n - 1])
		words.n--;
	for (size_t i = 0; i < words.n; i++)
		buf_char(b, words.p[i] ? words.p[i] : ' ');
}

/* By the first word of the command, without its directory. */
void capture_facts_known(struct capture *c)
{
	struct str words = capture_text(c, c->argv);
	size_t end = 0, from = 0;
	if (!c->argv)
		return;
	while (end < words.n && words.p[end])
		from = words.p[end++] == '/' ? end : from;
	c->process_name = intern_put(&c->p->strings, words.p + from, end - from);
}

/* Each text once, however many facts it is of. */
static uint32_t fact_of(struct capture *c, uint32_t id)
{
	uint32_t at = id ? idmap_get(&c->text_at, id) : IDMAP_NONE;
	if (at == IDMAP_NONE)
		return prefixed(c, "capture:", STR(""));
	struct capture_text *t = &c->text[at];
	if (!t->fact)
		t->fact = prefixed(c, "capture:", t->s) + 1;
	return t->fact - 1;
}

static uint32_t words_of(struct capture *c, uint32_t id)
{
	uint32_t at = id ? idmap_get(&c->text_at, id) : IDMAP_NONE;
	if (at == IDMAP_NONE)
		return intern_str(&c->p->strings, STR(""));
	struct capture_text *t = &c->text[at];
	if (!t->words) {
		buf_clear(&c->scratch);
		capture_facts_put_words(&c->scratch, t->s);
		t->words = intern_str(&c->p->strings, buf_view(&c->scratch)) + 1;
	}
	return t->words - 1;
}

void capture_meta(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_meta *m = (const struct wire_meta *)h;
	struct str key = capture_text(c, h->id);
	if (str_eqc(key, "memory.source"))
		c->has_memory = true;
	if (str_eqc(key, "argv"))
		c->argv = m->value;
	c->has_facts = true;
	if (c->leader)
		build_meta(&c->b, fact_of(c, h->id), words_of(c, m->value), true);
}

/* The library knows some thirty kinds; of a damaged capture's there may be any number, and each would be looked for among all of them. */
static const char *capture_facts_kind_of(struct capture *c, struct str kind, char *to, size_t room)
{
	enum { KINDS_MOST = 128 };
	kind.n = kind.n < room ? kind.n : room; /* looks no further */
	snprintf(to, room, STR_FMT, STR_ARG(kind));
	if (!*to)
		return "capture";
	if (diag_count(&c->p->diags, to))
		return to;
	return ++c->n_notes <= KINDS_MOST ? to : "more-notes";
}

void capture_note(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_note *n = (const struct wire_note *)h;
	struct str text = capture_text(c, n->text);
	char kind[64];
	diag_add(&c->p->diags, capture_facts_kind_of(c, capture_text(c, h->id), kind, sizeof kind), n->loss ? DIAG_LOSS : DIAG_NOTE, -1, "process %d: " STR_FMT, c->file->h.pid, STR_ARG(text));
	if (n->loss && c->total.told < TOLD_MOST) {
		c->total.told++;
		capture_facts_put_meta(c, "", STR("recording:note"), text, true);
	}
}

void capture_resource(struct capture *c, const struct wire_head *h, uint32_t bytes)
{
	const struct wire_resource *r = (const struct wire_resource *)h;
	static const char *const kind[] = {"CUDA device", "CUDA context", "CUDA stream", "CUDA event"};
	uint32_t which = r->kind - WIRE_RESOURCE_CUDA_DEVICE;
	struct buf b = {0};
	build_count(&c->b, capture_cat(c, "resource"), 'M', 1);
	if (r->kind == WIRE_RESOURCE_CUDA_STREAM_NUMBER) { /* that it has a name is told by the stream's handle, too */
		capture_stream_add(c, &(struct capture_stream){.device = (uint32_t)(r->handle >> 32), .stream = (uint32_t)r->handle, .name = capture_string(c, h->id)});
		return;
	}
	buf_printf(&b, which < 4 ? "process %d: %s 0x%" PRIx64 : "process %d: %s0x%" PRIx64, c->file->h.pid, which < 4 ? kind[which] : "", r->handle);
	capture_facts_put_meta(c, "resource:", buf_view(&b), capture_text(c, h->id), true);
	buf_release(&b);
}

/* ---- what is told of every segment ---- */

/* By enum wire_loss. */
static const struct {
	const char *kind, *what;
} losses[] = {
#define LOSS_(name, kind, what) {kind, what},
	WIRE_LOST_REASONS(LOSS_)
};

static void tell_losses(struct capture *c)
{
	const struct wire_header *h = &c->file->h;
	for (int i = 0; i < WIRE_LOST_N; i++)
		if (h->lost[i]) {
			diag_add_n(&c->p->diags, losses[i].kind, DIAG_LOSS, h->lost[i], -1, "lost while recording: %s", losses[i].what);
			c->total.lost[i] += h->lost[i];
		}
	for (int i = WIRE_LOST_N; i < WIRE_LOSSES; i++)
		if (h->lost[i])
			diag_add_n(&c->p->diags, "lost-other", DIAG_LOSS, h->lost[i], -1, "lost while recording, for reason %d, which this program does not know", i);
	if (c->before)
		diag_add_n(&c->p->diags, "range-without-start", DIAG_NOTE, c->before, -1, "a range had begun before what was recorded: left out");
	if (c->dropped)
		diag_add_n(&c->p->diags, "range-cut-by-ring", DIAG_LOSS, c->dropped, -1, "the end of a range was overwritten (--max-size=SIZE,ring): left out");
	if (c->end_lost)
		diag_add_n(&c->p->diags, "range-end-unknown", DIAG_LOSS, c->end_lost, -1,
		           "a range or step has no end, which may be among the events that were lost while recording: left out");
}

/* Forked workers leave by _exit() when all is well: of those that do not say so (opscope_leaving) nobody knows. */
static void tell_no_exit(struct capture *c, const struct wire_header *h)
{
	const char *lost = c->has_devices ? ", what CUPTI still held of its device work is lost" : "";
	if (h->forked)
		diag_add(&c->p->diags, "child-no-exit", DIAG_NOTE, -1,
		         "how process %d ended is unknown, because it was forked (by process %d) and did not leave by exit(): workers leave by _exit() when all is well, or it was "
		         "killed or aborted; its ranges are whole up to that moment%s", h->pid, h->ppid, lost);
	else
		diag_add(&c->p->diags, "no-exit", DIAG_NOTE, -1,
		         "process %d did not leave by exit(): killed, aborted, replaced by exec, or left by _exit(); its ranges are whole up to that moment%s", h->pid, lost);
}

static void tell_end(struct capture *c)
{
	const struct wire_header *h = &c->file->h;
	bool lives = capture_file_lives(h);
	if (c->open_at_end)
		diag_add_n(&c->p->diags, "range-without-end", DIAG_REPAIR, c->open_at_end, -1, "a range was still open when the %s: it ends there",
		           lives ? "capture of a process that still runs was read" : "recording of its process ended");
	if (h->state == WIRE_ENDED)
		return;
	*(lives ? &c->total.living : &c->total.unended) += 1;
	if (lives)
		diag_add(&c->p->diags, "still-recording", DIAG_NOTE, -1, "process %d is still running: this is what it had recorded by now", h->pid);
	else if (c->samples) /* which are written from outside */
		diag_add(&c->p->diags, "samples-not-ended", DIAG_LOSS, -1,
		         "the samples of stacks of process %d were not ended, since `opscope record` was killed: those of its last second, and the names of functions, are not there",
		         h->pid);
	else
		tell_no_exit(c, h);
}

static uint64_t capture_facts_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void capture_facts_tell(struct capture *c)
{
	const struct wire_header *h = &c->file->h;
	tell_losses(c);
	tell_end(c);
	c->total.calls = capture_facts_plus(c->total.calls, h->calls);
	c->total.cost_ns = capture_facts_plus(c->total.cost_ns, h->cost_ns);
	c->total.helper_ns = capture_facts_plus(c->total.helper_ns, h->helper_ns);
	c->total.processes++;
	c->samples = c->before = c->open_at_end = c->dropped = c->end_lost = 0;
}

/* One sentence for every report of this capture, then one for each kind of loss. */
void capture_facts_finish(struct capture *c)
{
	struct buf b = {0};
	int64_t rank = c->rank, world = c->world;
	bool behind = c->total.living || c->total.unended; /* threads tell what they did now and then */
	buf_printf(&b, "recorded by opscope%s: its library took %s %.3f ms of the program's time in %s%" PRIu64 " calls and its start, and %.3f ms in %s of its own",
	           c->total.living ? " from a program that still ran when this was read" : "", behind ? "at least" : "about", (double)c->total.cost_ns / 1e6,
	           behind ? "at least " : "", c->total.calls, (double)c->total.helper_ns / 1e6, c->total.processes == 1 ? "a thread" : "threads");
	bool lost = false;
	for (int i = 0; i < WIRE_LOST_N; i++)
		if (c->total.lost[i]) {
			buf_printf(&b, "%s%" PRIu64 " %s", lost ? "; " : "; lost: ", c->total.lost[i], losses[i].what);
			lost = true;
		}
	buf_cstr(&b, lost ? "" : "; no event was lost");
	capture_facts_put_meta(c, "", STR("recording:note"), buf_view(&b), true);
	buf_clear(&b);
	buf_printf(&b, "%" PRIu64, c->total.processes);
	capture_facts_put_meta(c, "capture:", STR("processes"), buf_view(&b), false);
	if (rank >= 0) {
		buf_clear(&b);
		buf_printf(&b, "{\"rank\": %" PRId64, rank);
		if (world > 0)
			buf_printf(&b, ", \"world_size\": %" PRId64, world);
		buf_cstr(&b, "}");
		capture_facts_put_meta(c, "", STR("distributedInfo"), buf_view(&b), false);
	}
	buf_release(&b);
}
