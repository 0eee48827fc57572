/* Writes the ranks of a played job as Kineto traces, and the truth beside them. */
#include "jobgen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/search.h"

enum { PUT_IN_IDS = 4096, MORE_KERNELS = 4, LIST_MOST = 30 }; /* Kineto cuts lists of ranks */
static const int64_t EPOCH_NS = 1704067200000000000, MONTHS_NS = 7776000000000000, BEGIN_NS = 1000000000;

struct writer {
	const struct jobgen_play *p;
	struct buf out;
	struct jobgen_map map;
	struct jobgen_insert insert[JOBGEN_LATES];
	uint32_t *item_number;   /* by item: its place among those of its kind */
	int64_t per_round[4];    /* by kind: items in a round */
	int64_t rank, round, id_shift, next_id;
	int64_t offset_ns, added_ns; /* of the rank's clock; what its file adds to or leaves out of the time */
	double drift;
};

void jobgen_clock_of(const struct jobgen_options *o, int64_t rank, int64_t *offset_ns, double *drift)
{
	*offset_ns = jobgen_chance(o, 5, (uint64_t)rank, 0, 2 * o->offset_ns + 1) - o->offset_ns;
	*drift = (double)(jobgen_chance(o, 6, (uint64_t)rank, 0, 2 * o->drift_ppb + 1) - o->drift_ppb) * 1e-9;
}

/* True time on the rank's own clock. */
static int64_t write_clock(const struct writer *w, int64_t ns)
{
	return ns + w->offset_ns + (int64_t)(w->drift * (double)(ns - BEGIN_NS));
}

/* Base time as true time. */
static int64_t write_true(const struct writer *w, int64_t base)
{
	const struct jobgen_point *v = w->map.v;
	uint32_t at = FIRST_WHERE(i, 0, w->map.n, v[i].base_ns >= base);
	if (at == w->map.n)
		return v[at - 1].after_ns + (base - v[at - 1].base_ns);
	if (v[at].base_ns == base || !at)
		return v[at].before_ns;
	double part = (double)(base - v[at - 1].base_ns) / (double)(v[at].base_ns - v[at - 1].base_ns);
	return v[at - 1].after_ns + (int64_t)((double)(v[at].before_ns - v[at - 1].after_ns) * part);
}

static void write_us(struct buf *out, int64_t ns)
{
	char text[I64_DIGITS + 5], *end = text;
	if (ns < 0)
		*end++ = '-';
	ns = ns < 0 ? -ns : ns;
	end = i64_write(end, ns / 1000);
	int64_t rest = ns % 1000;
	*end++ = '.';
	*end++ = (char)('0' + rest / 100);
	*end++ = (char)('0' + rest / 10 % 10);
	*end++ = (char)('0' + rest % 10);
	buf_put(out, text, (size_t)(end - text));
}

static int64_t write_group_number(const struct jobgen_options *o, enum jobgen_item_kind kind, int64_t rank)
{
	int64_t t = jobgen_tensor_place(o, rank), d = jobgen_data_place(o, rank), s = jobgen_stage(o, rank);
	if (kind == ITEM_TENSOR)
		return 1 + s * o->dp + d;
	return kind == ITEM_DATA ? 1 + o->dp * o->pp + s * o->tp + t : 1 + o->dp * o->pp + o->tp * o->pp + d * o->tp + t;
}

static const char *write_group_name(enum jobgen_item_kind kind)
{
	return kind == ITEM_TENSOR ? "TENSOR_MODEL_PARALLEL_GROUP" : kind == ITEM_DATA ? "DATA_PARALLEL_GROUP" : "PIPELINE_MODEL_PARALLEL_GROUP";
}

static void write_members(struct buf *out, const struct jobgen_options *o, enum jobgen_item_kind kind, int64_t rank, int64_t most)
{
	int64_t first, apart, n;
	const struct jobgen_item item = {.kind = kind};
	jobgen_group(o, &item, rank, &first, &apart, &n);
	buf_char(out, '[');
	for (int64_t k = 0; k < n && k < most; k++)
		buf_printf(out, "%s%" PRId64, k ? ", " : "", first + k * apart);
	buf_cstr(out, n > most ? ", ...]" : "]");
}

static void write_group(struct writer *w, const struct jobgen_item *x, bool has_name)
{
	const struct jobgen_options *o = w->p->o;
	int64_t first, apart, n, item = x - w->p->b->item;
	jobgen_group(o, x, w->rank, &first, &apart, &n);
	struct buf *out = &w->out;
	if (!has_name && x->kind <= ITEM_DATA) {
		struct str by = w->p->b->collective;
		buf_printf(out, ", \"Collective name\": \"%s\"", str_has_nocase(by, STR("allgather")) ? "_allgather_base" : str_has_nocase(by, STR("reducescatter")) ? "_reduce_scatter_base" : "allreduce");
	}
	if (!has_name && x->elements)
		buf_printf(out, ", \"In msg nelems\": %" PRId64 ", \"Out msg nelems\": %" PRId64 ", \"dtype\": \"Half\"", x->elements, x->elements);
	buf_printf(out, ", \"Group size\": %" PRId64 ", \"Process Group Name\": \"%" PRId64 "\", \"Process Group Description\": \"%s\", \"Process Group Ranks\": \"", n,
	           write_group_number(o, x->kind, w->rank), write_group_name(x->kind));
	write_members(out, o, x->kind, w->rank, LIST_MOST);
	buf_cstr(out, "\"");
	if (x->kind <= ITEM_DATA)
		buf_printf(out, ", \"Seq\": %" PRId64, 100 + w->round * w->per_round[x->kind] + w->item_number[item]);
}

/* What record_param_comms of torch 2.2 and older says. */
static void write_values(struct writer *w, const struct jobgen_item *x)
{
	int64_t first, apart, n;
	jobgen_group(w->p->o, x, w->rank, &first, &apart, &n);
	buf_printf(&w->out, "[\"\", \"%" PRId64 "\", \"%" PRId64 "\", \"%" PRId64 "\", \"\", \"[]\", \"[]\", \"%" PRId64 "\"]",
	           100 + w->round * w->per_round[x->kind] + w->item_number[x - w->p->b->item], 93825114103440 + w->rank * 4096 + 64 * x->kind, (w->rank - first) / apart, n);
}

static const struct jobgen_part *write_part(const struct writer *w, uint32_t item)
{
	return &w->p->part[(w->rank * w->p->o->rounds + w->round) * w->p->b->n_items + item];
}

/* Beginning and end of an event, true time. */
static void write_times(const struct writer *w, const struct jobgen_event *e, int64_t *start, int64_t *end)
{
	if (e->class == EVENT_COLLECTIVE) {
		const struct jobgen_part *part = write_part(w, e->item);
		*start = part->arrival_ns;
		*end = part->end_ns;
		return;
	}
	*start = write_true(w, e->start_ns);
	*end = write_true(w, e->end_ns);
	if (e->class != EVENT_DEVICE)
		return;
	/* A kernel runs on while the rank waits or is late: it takes as long as in the base, and longer only where all kernels do. */
	const struct jobgen_base *b = w->p->b;
	int64_t length = e->end_ns - e->start_ns;
	uint32_t busy = FIRST_WHERE(i, 0, b->n_busy, b->busy[i].end_ns > e->start_ns);
	if (busy < b->n_busy && b->busy[busy].start_ns <= e->start_ns && length > 1) {
		uint32_t at = FIRST_WHERE(i, 0, w->map.n, w->map.v[i].base_ns > e->start_ns);
		const struct jobgen_point *to = &w->map.v[at], *from = to - 1;
		length = (int64_t)((double)length * (double)(to->before_ns - from->after_ns) / (double)(to->base_ns - from->base_ns));
	}
	*end = *end < *start + length ? *end : *start + length;
}

static void write_python_of_step(struct writer *w, int64_t start, int64_t end)
{
	buf_printf(&w->out, "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"train.py(12): train_step\", \"pid\": %" PRId64 ", \"tid\": %" PRId64 ", \"ts\": ", w->p->b->pid, w->p->b->tid);
	write_us(&w->out, write_clock(w, start + 1) + w->added_ns);
	buf_cstr(&w->out, ", \"dur\": ");
	write_us(&w->out, end - start > 2 ? end - start - 2 : 0);
	buf_printf(&w->out, ", \"args\": {\"Python id\": %" PRId64 ", \"Python parent id\": null}},\n", w->next_id++);
}

static void write_event(struct writer *w, const struct jobgen_event *e)
{
	const struct jobgen_base *b = w->p->b;
	const struct jobgen_item *item = e->item == UINT32_MAX ? NULL : &b->item[e->item];
	bool old = w->p->o->old[w->rank];
	struct str text = {b->text.p + e->text, e->n};
	int64_t start, end;
	size_t at = 0;
	write_times(w, e, &start, &end);
	for (uint32_t s = e->slot; s < e->slot + e->n_slots; s++) {
		const struct jobgen_slot *x = &b->slot[s];
		bool keep = (x->kind == SLOT_GROUP || x->kind == SLOT_VALUES) && (!item || old != (x->kind == SLOT_VALUES));
		if (keep)
			continue;
		buf_put(&w->out, text.p + at, x->at - at);
		at = x->at + x->n;
		if (x->kind == SLOT_START)
			write_us(&w->out, write_clock(w, start) + w->added_ns);
		else if (x->kind == SLOT_LENGTH)
			write_us(&w->out, write_clock(w, end) - write_clock(w, start));
		else if (x->kind == SLOT_ID)
			buf_i64(&w->out, x->value + w->round * w->id_shift);
		else if (x->kind == SLOT_STEP)
			buf_i64(&w->out, x->value + w->round * b->n_steps);
		else if (x->kind == SLOT_GROUP)
			write_group(w, item, str_has(text, STR("\"Collective name\"")));
		else
			write_values(w, item);
	}
	buf_put(&w->out, text.p + at, text.n - at);
	buf_cstr(&w->out, ",\n");
	if (e->is_step && w->p->o->stacks[w->rank])
		write_python_of_step(w, start, end);
}

static void write_host(struct writer *w, const char *cat, const char *name, int64_t start, int64_t end, int64_t correlation)
{
	buf_printf(&w->out, "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %" PRId64 ", \"tid\": %" PRId64 ", \"ts\": ", cat, name, w->p->b->pid, w->p->b->tid);
	write_us(&w->out, write_clock(w, start) + w->added_ns);
	buf_cstr(&w->out, ", \"dur\": ");
	write_us(&w->out, write_clock(w, end) - write_clock(w, start));
	buf_cstr(&w->out, ", \"args\": {");
	if (correlation >= 0)
		buf_printf(&w->out, "\"correlation\": %" PRId64, correlation);
	buf_cstr(&w->out, "}},\n");
}

/* Work of the device with the call that asked for it. `message` = NULL: it is not one. */
static void write_device(struct writer *w, const char *cat, struct str name, const char *call, int64_t stream, int64_t start, int64_t end, const struct jobgen_item *message)
{
	int64_t id = w->next_id++;
	write_host(w, "cuda_runtime", call, start - 1, start - 1, id);
	buf_printf(&w->out, "{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"" STR_FMT "\", \"pid\": 0, \"tid\": %" PRId64 ", \"ts\": ", cat, STR_ARG(name), stream);
	write_us(&w->out, write_clock(w, start) + w->added_ns);
	buf_cstr(&w->out, ", \"dur\": ");
	write_us(&w->out, write_clock(w, end) - write_clock(w, start));
	buf_printf(&w->out, ", \"args\": {\"device\": 0, \"context\": 1, \"stream\": %" PRId64 ", \"correlation\": %" PRId64, stream, id);
	if (message) {
		int64_t peer = (message->kind == ITEM_SEND) == message->forward ? w->rank + w->p->o->tp * w->p->o->dp : w->rank - w->p->o->tp * w->p->o->dp;
		bool sends = message->kind == ITEM_SEND;
		write_group(w, message, false);
		buf_printf(&w->out, ", \"Collective name\": \"%s\", \"Src Rank\": %" PRId64 ", \"Dst Rank\": %" PRId64, sends ? "send" : "recv", sends ? w->rank : peer, sends ? peer : w->rank);
	}
	buf_cstr(&w->out, "}},\n");
}

static void write_insert(struct writer *w, const struct jobgen_insert *x)
{
	int64_t length = x->end_ns - x->start_ns, edge = length / 50;
	const struct jobgen_base *b = w->p->b;
	if (x->cause == CAUSE_GC || x->cause == CAUSE_DATA)
		write_host(w, "user_annotation", x->cause == CAUSE_GC ? "Python GC" : "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", x->start_ns + 1, x->end_ns - 1, -1);
	if (x->cause == CAUSE_COPIES)
		write_device(w, "gpu_memcpy", STR("Memcpy HtoD (Pinned -> Device)"), "cudaMemcpyAsync", b->compute_stream, x->start_ns + edge, x->end_ns, NULL);
	for (int64_t k = 0; k < MORE_KERNELS && x->cause == CAUSE_MORE; k++)
		write_device(w, "kernel", b->kernel, "cudaLaunchKernel", b->compute_stream, x->start_ns + 2 + length * k / MORE_KERNELS, x->start_ns + length * (k + 1) / MORE_KERNELS, NULL);
}

static void write_round(struct writer *w)
{
	const struct jobgen_base *b = w->p->b;
	unsigned n = jobgen_map_round(w->p, w->rank, w->round, &w->map, w->insert);
	w->next_id = b->most_id + 1 + w->round * w->id_shift;
	for (uint32_t i = 0; i < b->n_events; i++)
		write_event(w, &b->event[i]);
	for (unsigned i = 0; i < n; i++)
		write_insert(w, &w->insert[i]);
	for (uint32_t i = 0; i < b->n_items; i++)
		if (b->item[i].kind >= ITEM_RECEIVE && jobgen_takes_part(w->p->o, &b->item[i], w->rank))
			write_device(w, "kernel", STR("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"), "cudaLaunchKernel", 1000, write_part(w, i)->arrival_ns, write_part(w, i)->end_ns,
			             &b->item[i]);
}

static void write_groups(struct buf *out, const struct jobgen_options *o, int64_t rank)
{
	buf_printf(out, "[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", \"pg_size\": %" PRId64 "}", o->n);
	for (enum jobgen_item_kind kind = ITEM_TENSOR; kind <= ITEM_RECEIVE; kind++) {
		int64_t first, apart, n;
		const struct jobgen_item item = {.kind = kind};
		jobgen_group(o, &item, rank, &first, &apart, &n);
		if (n < 2)
			continue;
		buf_printf(out, ", {\"pg_name\": \"%" PRId64 "\", \"pg_desc\": \"%s\", \"backend_config\": \"cuda:nccl\", \"pg_size\": %" PRId64 ", \"ranks\": ", write_group_number(o, kind, rank),
		           write_group_name(kind), n);
		write_members(out, o, kind, rank, INT64_MAX);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void write_rank(struct writer *w)
{
	const struct jobgen_options *o = w->p->o;
	struct buf *out = &w->out;
	bool old = o->old[w->rank];
	int64_t epoch = EPOCH_NS + (o->months[w->rank] ? MONTHS_NS : 0);
	buf_clear(out);
	jobgen_clock_of(o, w->rank, &w->offset_ns, &w->drift);
	w->added_ns = old ? EPOCH_NS : EPOCH_NS - epoch;
	buf_cstr(out, "{\"schemaVersion\": 1,\n");
	buf_str(out, buf_view(&w->p->b->head));
	buf_printf(out, "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %" PRId64 ", \"world_size\": %" PRId64, w->rank, o->n);
	if (!old) {
		buf_cstr(out, ", \"pg_config\": ");
		write_groups(out, o, w->rank);
	}
	buf_cstr(out, "},\n");
	if (o->stacks[w->rank])
		buf_cstr(out, "\"with_stack\": 1,\n");
	if (!old)
		buf_printf(out, "\"baseTimeNanoseconds\": %" PRId64 ",\n", epoch);
	buf_cstr(out, "\"traceEvents\": [\n");
	buf_str(out, buf_view(&w->p->b->metadata));
	for (w->round = 0; w->round < o->rounds; w->round++)
		write_round(w);
	out->n -= 2; /* the last comma */
	buf_cstr(out, "\n]}\n");
}

/* The file's name, behind that of the folder. */
static void write_name(const struct jobgen_options *o, int64_t rank, bool again, char *name, size_t size)
{
	const char *end = o->gzip ? ".json.gz" : ".json";
	if (o->hidden)
		snprintf(name, size, "trace_%08" PRIx64 "%s%s", (uint64_t)jobgen_chance(o, 7, (uint64_t)rank, 0, 1ll << 32), again ? "_b" : "", end);
	else
		snprintf(name, size, "rank%" PRId64 "%s%s", rank, again ? "_again" : "", end);
}

/* `part` of 100 of the bytes of the file. */
static void write_file(const struct writer *w, const char *name, int64_t part)
{
	char path[4096];
	struct buf packed = {0};
	struct str bytes = buf_view(&w->out);
	snprintf(path, sizeof path, "%s/%s", w->p->o->folder, name);
	if (w->p->o->gzip && part) {
		z_stream z = {.next_in = (void *)(uintptr_t)bytes.p, .avail_in = (unsigned)bytes.n};
		if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			jobgen_die("cannot compress", path);
		size_t room = deflateBound(&z, bytes.n);
		z.next_out = (void *)buf_room(&packed, room);
		z.avail_out = (unsigned)room;
		deflate(&z, Z_FINISH);
		packed.n = z.total_out;
		deflateEnd(&z);
		bytes = buf_view(&packed);
	}
	FILE *f = fopen(path, "wb");
	size_t n = bytes.n * (size_t)part / 100;
	if (!f || (n && fwrite(bytes.p, 1, n, f) != n) || fclose(f))
		jobgen_die("cannot write", path);
	buf_release(&packed);
}

static void write_truth(const struct jobgen_play *p)
{
	const struct jobgen_options *o = p->o;
	const struct jobgen_base *b = p->b;
	char path[4096], name[64];
	snprintf(path, sizeof path, "%s/truth.json", o->folder);
	FILE *f = fopen(path, "w");
	if (!f)
		jobgen_die("cannot write", path);
	fprintf(f, "{\"world\": %" PRId64 ", \"tp\": %" PRId64 ", \"dp\": %" PRId64 ", \"pp\": %" PRId64 ", \"seed\": %" PRId64 ", \"steps\": %" PRId64 ",\n\"late\": [", o->n, o->tp, o->dp, o->pp,
	        o->seed, o->rounds * b->n_steps);
	for (unsigned i = 0; i < o->n_lates; i++) {
		const struct jobgen_late *l = &o->late[i];
		fprintf(f, "%s\n {\"rank\": %" PRId64 ", \"cause\": \"%s\", \"ns_per_step\": %" PRId64 ", \"first_step\": %" PRId64 ", \"last_step\": %" PRId64 "}", i ? "," : "", l->rank,
		        jobgen_cause_name[l->cause], l->ns, l->first, l->last < o->rounds * b->n_steps ? l->last : o->rounds * b->n_steps - 1);
	}
	fprintf(f, "],\n\"ranks\": [");
	for (int64_t r = 0; r < o->n; r++) {
		int64_t offset;
		double drift;
		jobgen_clock_of(o, r, &offset, &drift);
		write_name(o, r, false, name, sizeof name);
		const char *state = o->missing[r] ? "missing" : o->empty[r] ? "empty" : o->damaged[r] ? "damaged" : o->repeated[r] ? "repeated" : "whole";
		fprintf(f, "%s\n {\"rank\": %" PRId64 ", \"file\": \"%s\", \"state\": \"%s\", \"offset_ns\": %" PRId64 ", \"drift_ppm\": %.6f, \"wait_ns\": %" PRId64 ", \"kept_waiting_ns\": %" PRId64
		        ", \"stacks\": %s, \"old\": %s, \"months\": %s}",
		        r ? "," : "", r, name, state, offset, drift * 1e6, p->wait_ns[r], p->kept_ns[r], o->stacks[r] ? "true" : "false", o->old[r] ? "true" : "false",
		        o->months[r] ? "true" : "false");
	}
	fprintf(f, "]}\n");
	if (fclose(f))
		jobgen_die("cannot write", path);
}

void jobgen_write(const struct jobgen_play *p)
{
	const struct jobgen_options *o = p->o;
	const struct jobgen_base *b = p->b;
	struct writer w = {.p = p, .item_number = NEW_ARRAY(b->n_items, uint32_t), .id_shift = b->most_id - b->least_id + 1 + PUT_IN_IDS};
	char name[64];
	for (uint32_t i = 0; i < b->n_items; i++)
		w.item_number[i] = (uint32_t)w.per_round[b->item[i].kind]++;
	for (w.rank = 0; w.rank < o->n; w.rank++) {
		if (o->missing[w.rank])
			continue;
		write_name(o, w.rank, false, name, sizeof name);
		if (!o->empty[w.rank])
			write_rank(&w);
		write_file(&w, name, o->empty[w.rank] ? 0 : o->damaged[w.rank] ? 60 : 100);
		if (!o->repeated[w.rank])
			continue;
		write_name(o, w.rank, true, name, sizeof name);
		write_file(&w, name, 100);
	}
	write_truth(p);
	buf_release(&w.out);
	mem_free(w.map.v);
	mem_free(w.item_number);
}
