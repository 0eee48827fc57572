#include "analysis/names/names.h"
#include "base/sort.h"
#include "detect/parts/collectives.h"

/* Up to this a message takes longer to begin than to send (1 MiB at 50 GB/s: 20 us). Where its size was not recorded, one that took longer than this
 * is not taken for small: 200 us send 25 MB, a bucket of DistributedDataParallel, at 125 GB/s. */
static const int64_t SMALL_BYTES = 1 << 20, SMALL_NS = 200 * 1000;
/* Small ones a step and GPU: fewer are what a step needs. Collectives in a row with at most one kernel between two: nothing is computed in between
 * that could need the result of each. */
enum { FEWEST = 20, IN_A_ROW = 8, BETWEEN = 1, PLACES_TOLD = 3 };
/* What the host does between two of a row is work of a message up to this; what takes longer is something else. */
static const int64_t BETWEEN_NS = 1000 * 1000;
/* Percent of the steps' time. */
static const double TOO_MUCH = 1, SEVERE = 10;

struct small {
	struct places places;
	uint64_t n, sized;        /* small collectives whose size was recorded */
	int64_t device_ns, exposed_ns, bytes, transfer_ns;
	int64_t least_ns;         /* the shortest of all collectives */
	double bytes_per_ns;      /* the fastest of the collectives that are known not to be small; 0 = there is none */
	int64_t host_ns;          /* no GPU has work while the host launches them, and between those of a row */
	uint64_t rows;            /* rows of small collectives, each of which one collective would replace */
	struct intervals host, covers; /* covers: host, and where nothing hides them */
};

static bool is_small(const struct profile *p, const struct collective *c)
{
	return c->wire_bytes >= 0 ? c->wire_bytes <= SMALL_BYTES : p->gpu_op.dur_ns[c->gpu_op] <= SMALL_NS;
}

static void find_pace(const struct profile *p, const struct collectives *c, struct small *s)
{
	s->least_ns = INT64_MAX;
	for (uint32_t i = 0; i < c->n; i++) {
		int64_t ns = p->gpu_op.dur_ns[c->v[i].gpu_op];
		s->least_ns = ns < s->least_ns ? ns : s->least_ns;
		if (c->v[i].wire_bytes > SMALL_BYTES && ns > 0 && (double)c->v[i].wire_bytes / (double)ns > s->bytes_per_ns)
			s->bytes_per_ns = (double)c->v[i].wire_bytes / (double)ns;
	}
}

/* The rows of collectives on one GPU: row[i] is the row of collective i, 0 where it stands alone. */
struct unbucketed_collectives_row_search {
	const struct profile *p;
	const struct collectives *c;
	uint32_t *of;             /* gpu_op -> collective */
	uint32_t *row, *member;   /* by collective; members of the row that goes on */
	uint32_t n_rows, n, between;
};

static void unbucketed_collectives_end_row(struct unbucketed_collectives_row_search *r)
{
	if (r->n >= IN_A_ROW) {
		r->n_rows++;
		for (uint32_t i = 0; i < r->n; i++)
			r->row[r->member[i]] = r->n_rows;
	}
	r->n = r->between = 0;
}

static void find_rows_of(struct unbucketed_collectives_row_search *r, uint32_t gpu, const struct sort_item *order, uint32_t n)
{
	int32_t device = r->c->gpu[gpu].device;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = order[i].row;
		if (r->p->gpu_op.kind[g] != GPU_KERNEL || r->p->launch.device[r->p->gpu_op.launch[g]] != device)
			continue;
		if (r->of[g] == ROW_NONE) {
			if (++r->between > BETWEEN)
				unbucketed_collectives_end_row(r);
			continue;
		}
		r->member[r->n++] = r->of[g];
		r->between = 0;
	}
	unbucketed_collectives_end_row(r);
}

/* The caller frees it. *n_rows: how many rows there are. */
static uint32_t *unbucketed_collectives_find_rows(const struct profile *p, const struct collectives *c, uint32_t *n_rows)
{
	uint32_t n = p->gpu_op.rows.n;
	struct unbucketed_collectives_row_search r = {.p = p, .c = c, .of = NEW_ARRAY_RAW(n, uint32_t), .row = NEW_ARRAY(c->n, uint32_t), .member = NEW_ARRAY(c->n, uint32_t)};
	struct sort_item *order = NEW_ARRAY_RAW(n, struct sort_item);
	for (uint32_t g = 0; g < n; g++) {
		order[g] = (struct sort_item){sort_key_i64(p->gpu_op.start_ns[g]), g, 0};
		r.of[g] = ROW_NONE;
	}
	for (uint32_t i = 0; i < c->n; i++)
		r.of[c->v[i].gpu_op] = i;
	sort_items(order, n);
	for (uint32_t g = 0; g < c->n_gpus; g++)
		if (c->gpu[g].n)
			find_rows_of(&r, g, order, n);
	mem_free(order);
	mem_free(r.of);
	mem_free(r.member);
	*n_rows = r.n_rows;
	return r.row;
}

/* The outermost range of a collective around its launch, whose time on the host would go with it; and what the host does between it and the one before it
 * in its row: copies, waits and Python of each message. *last: the range of the one before it, ROW_NONE = none; now this one's. */
static void unbucketed_collectives_add_host(const struct profile *p, const struct collective *k, uint32_t *last, struct small *s)
{
	uint32_t at = p->gpu_op.call[k->gpu_op], outer = at;
	for (; at != ROW_NONE; at = p->span.parent[at])
		outer = name_is(p, p->span.name[at], NAME_COMM) ? at : outer;
	if (outer == ROW_NONE)
		return;
	intervals_add(&s->host, p->span.start_ns[outer], span_end(p, outer));
	if (*last != ROW_NONE && p->span.track[*last] == p->span.track[outer]) {
		int64_t end = span_end(p, *last), start = p->span.start_ns[outer];
		if (start > end && start - end <= BETWEEN_NS)
			intervals_add(&s->host, end, start);
	}
	*last = outer;
}

/* row: by collective, 0 .. n_rows. Streams share rows, and collectives stand by stream. */
static void unbucketed_collectives_measure(const struct profile *p, struct findings *f, const struct step_time *w, const struct collectives *c, const uint32_t *row, uint32_t n_rows,
                                           struct small *s)
{
	uint32_t *last = NEW_ARRAY_RAW(n_rows + 1, uint32_t);
	uint8_t *seen = NEW_ARRAY(n_rows + 1, uint8_t);
	for (uint32_t r = 0; r <= n_rows; r++)
		last[r] = ROW_NONE;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct collective *k = &c->v[i];
		int64_t ns = p->gpu_op.dur_ns[k->gpu_op];
		if (!is_small(p, k) || (!row[i] && k->use != COLLECTIVE_GRADIENTS))
			continue;
		s->n++;
		s->rows += !row[i] || !seen[row[i]];
		seen[row[i]] = 1;
		s->device_ns += ns;
		s->exposed_ns += k->exposed_ns;
		if (k->wire_bytes >= 0) {
			s->sized++;
			s->bytes += k->wire_bytes;
			s->transfer_ns += ns && s->bytes_per_ns > 0 ? (int64_t)((double)k->wire_bytes / s->bytes_per_ns * (double)k->exposed_ns / (double)ns) : 0;
		}
		places_add(&s->places, shared_stacks(f), collective_name(p, k->gpu_op), k->at, 1, ns);
		uint32_t none = ROW_NONE;
		unbucketed_collectives_add_host(p, k, row[i] ? &last[row[i]] : &none, s);
		intervals_add(&s->covers, p->gpu_op.start_ns[k->gpu_op], gpu_end(p, k->gpu_op));
	}
	mem_free(seen);
	mem_free(last);
	intervals_normalise(&s->host);
	intervals_intersect(&s->host, &w->idle, &s->host);
	s->host_ns = intervals_length(&s->host);
	intervals_normalise(&s->covers);
	intervals_intersect(&s->covers, &collectives_most(c)->exposed, &s->covers);
	intervals_union(&s->covers, &s->host, &s->covers);
}

/* Whether the time is known that the bytes of these collectives take. */
static bool has_rate(const struct small *s) { return s->sized == s->n && s->bytes_per_ns > 0; }

/* What joining them saves on devices: what is not hidden, less the transfer; where that is not known, the fixed cost of all but one a row and
 * step, which is no more than the shortest collective takes. */
static int64_t device_gain(const struct step_time *w, const struct small *s)
{
	uint64_t left = s->rows > w->n ? s->rows : w->n;
	int64_t ns = has_rate(s) ? s->exposed_ns - s->transfer_ns : (int64_t)(s->n > left ? s->n - left : 0) * s->least_ns;
	return ns < 0 ? 0 : ns < s->exposed_ns ? ns : s->exposed_ns;
}

static void unbucketed_collectives_report(const struct profile *p, struct findings *f, const struct step_time *w, const struct small *s, uint32_t all, unsigned gpus, int64_t ns)
{
	unsigned per = w->n * gpus;
	bool sized = s->sized == s->n;
	double pct = step_time_pct(w, ns);
	struct buf evidence = {0};
	struct finding *x = findings_add(f, pct >= SEVERE ? FINDING_MEDIUM : FINDING_LOW);
	x->problem = arena_printf(&f->arena, "%.0f of %.0f collectives%s%s are small and sent one by one, though nothing is computed between them that needs their results",
	                          (double)s->n / per, (double)all / per, w->kind == WINDOW_STEPS ? " a step" : "", gpus > 1 ? " and GPU" : "");
	buf_cstr(&evidence, "Each takes ");
	put_ns(&evidence, (double)s->device_ns / (double)s->n);
	buf_cstr(&evidence, " of its GPU on average, the shortest ");
	put_ns(&evidence, (double)s->least_ns);
	if (sized)
		buf_printf(&evidence, ", for %.1f KiB on the wire", (double)s->bytes / (double)s->n / 1024);
	else
		buf_cstr(&evidence, "; the sizes of the messages were not recorded");
	if (s->bytes_per_ns > 0)
		buf_printf(&evidence, "; larger ones reach %.1f GB/s", s->bytes_per_ns);
	buf_printf(&evidence, ". %s, the GPU has no work for ", w->per);
	put_ns(&evidence, (double)s->host_ns / w->n);
	buf_cstr(&evidence, " while the host launches them and sees to their messages; on the device: ");
	finding_evidence(x, f, &evidence, &s->places, PLACES_TOLD, per, true);
	finding_looks_at_most(x, p, &s->places);
	finding_rests_on(x, w, s->n, s->exposed_ns / gpus);
	finding_covers(x, &s->covers);
	finding_gain(x, w, ns, has_rate(s) ? "what nothing hides of them, less the transfer of their bytes at the highest rate of larger ones, and the time without device work "
	                                     "while the host launches them and in between"
	                                   : "the shortest collective's time for all but one of each row of them, and the time without device work while the host launches "
	                                     "them and in between; how long their bytes take is not known");
}

static void unbucketed_collectives_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct small s = {0};
	uint32_t n_rows = 0, gpus = 0;
	struct collectives *c = collectives_new(p, f, w);
	for (uint32_t i = 0; i < c->n_gpus; i++)
		gpus += c->gpu[i].n > 0;
	if (c->n >= (uint64_t)FEWEST * w->n * (gpus ? gpus : 1)) {
		uint32_t *row = unbucketed_collectives_find_rows(p, c, &n_rows);
		find_pace(p, c, &s);
		unbucketed_collectives_measure(p, f, w, c, row, n_rows, &s);
		int64_t ns = device_gain(w, &s) / gpus + s.host_ns;
		if (s.n >= (uint64_t)FEWEST * w->n * gpus && step_time_pct(w, ns) >= TOO_MUCH)
			unbucketed_collectives_report(p, f, w, &s, c->n, gpus, ns);
		intervals_release(&s.host);
		intervals_release(&s.covers);
		places_release(&s.places);
		mem_free(row);
	}
	collectives_free(c);
}

const struct detector detector_unbucketed_collectives = {
	.id = "unbucketed-collectives",
	.title = "Many small collectives where few large ones would do",
	.why = "A collective costs some 10 us on each GPU and some 50 us on its host whatever its size; a small message also uses little of the links' bandwidth.",
	.fix = "Send gradients in buckets: DistributedDataParallel with the default bucket_cap_mb=25 or more, or torch.nn.utils.parameters_to_vector and one all_reduce; "
	       "for others, all_reduce_coalesced or a coalescing manager of torch.distributed.",
	.disprove = "Something on the host needs the result of each before the next is sent.",
	.shares = "communication-bound host-collectives gpu-starvation launch-bound",
	.where = DETECT_WINDOW,
	.run = unbucketed_collectives_run,
};
