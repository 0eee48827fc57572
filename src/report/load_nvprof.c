/* What torch.autograd.profiler.load_nvprof gives of an nvprof database: a function for each range, in order of time, with the
 * kernels whose launching runtime call lies strictly inside it, on whatever thread (torch/autograd/profiler.py). O(n log n). */
#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "query/report.h"

/* Runtime calls that launched kernels, in order of their starts. Each call with a correlation id launched all kernels with that id. */
struct load_nvprof_launchers {
	uint32_t n;
	uint32_t *span;
	uint32_t *kernels;
	int64_t *ns;             /* of these kernels */
	uint32_t *first, *second; /* gpu_op rows of the first two kernels; ROW_NONE = there is one */
	bool fits;               /* all ns together are less than 2^63, which a hostile file may exceed */
};

struct functions {
	uint32_t n;
	uint32_t *span;          /* by start; equal ones as recorded */
	uint64_t *kernels;
	int64_t *ns;
};

static int64_t load_nvprof_end_of(const struct profile *p, uint32_t span)
{
	return p->span.start_ns[span] + p->span.dur_ns[span];
}

/* The rows that are wanted, sorted by key, then by row. */
static struct sort_item *load_nvprof_collect(uint32_t *n, const struct profile *p, uint32_t rows, bool (*wanted)(const struct profile *, uint32_t),
                                             int64_t (*key)(const struct profile *, uint32_t))
{
	struct sort_item *v = NEW_ARRAY_RAW(rows, struct sort_item);
	*n = 0;
	for (uint32_t i = 0; i < rows; i++)
		if (wanted(p, i))
			v[(*n)++] = (struct sort_item){.key = sort_key_i64(key(p, i)), .row = i};
	sort_items(v, *n);
	return v;
}

static bool is_function(const struct profile *p, uint32_t i) { return p->span.kind[i] != SPAN_CALL && span_ext_id(&p->span, i) != ID_NONE; }
static bool is_kernel(const struct profile *p, uint32_t g) { return p->gpu_op.kind[g] == GPU_KERNEL && p->gpu_op.corr_id[g] != ID_NONE; }
static int64_t span_start(const struct profile *p, uint32_t i) { return p->span.start_ns[i]; }
static int64_t span_id(const struct profile *p, uint32_t i) { return span_ext_id(&p->span, i); }
static int64_t span_link(const struct profile *p, uint32_t i) { return p->span.link_id[i]; }
static int64_t kernel_link(const struct profile *p, uint32_t g) { return p->gpu_op.corr_id[g]; }

static bool load_nvprof_is_runtime_call(const struct profile *p, uint32_t i)
{
	return p->span.kind[i] == SPAN_CALL && p->span.link_id[i] != ID_NONE &&
	       str_eqc(profile_str(p, p->cat.name[p->span.cat[i]]), "cuda_runtime");
}

/* Kernels of one correlation id. */
struct load_nvprof_group {
	uint32_t kernels, first, second;
	int64_t ns;
};

static struct load_nvprof_group load_nvprof_group_at(const struct profile *p, const struct sort_item *kernel, uint32_t n, uint32_t k)
{
	struct load_nvprof_group g = {0, kernel[k].row, ROW_NONE, 0};
	for (uint32_t i = k; i < n && kernel[i].key == kernel[k].key; i++) {
		if (i == k + 1)
			g.second = kernel[i].row;
		g.ns += p->gpu_op.dur_ns[kernel[i].row]; /* all durations together fit: build.h */
		g.kernels++;
	}
	return g;
}

static void launches_find(const struct profile *p, struct load_nvprof_launchers *l)
{
	uint32_t n_calls, n_kernels, k = 0;
	struct sort_item *call = load_nvprof_collect(&n_calls, p, p->span.rows.n, load_nvprof_is_runtime_call, span_link);
	struct sort_item *kernel = load_nvprof_collect(&n_kernels, p, p->gpu_op.rows.n, is_kernel, kernel_link);
	struct sort_item *hit = NEW_ARRAY_RAW(n_calls, struct sort_item);
	struct load_nvprof_group *of = NEW_ARRAY_RAW(n_calls, struct load_nvprof_group);
	__int128 all = 0;
	l->n = 0;
	for (uint32_t c = 0; c < n_calls; c++) {
		while (k < n_kernels && kernel[k].key < call[c].key)
			k++;
		if (k == n_kernels || kernel[k].key != call[c].key)
			continue;
		bool again = c && call[c - 1].key == call[c].key;
		of[l->n] = again ? of[l->n - 1] : load_nvprof_group_at(p, kernel, n_kernels, k);
		all += of[l->n].ns;
		hit[l->n] = (struct sort_item){.key = sort_key_i64(span_start(p, call[c].row)), .row = call[c].row, .tie = l->n};
		l->n++;
	}
	sort_items(hit, l->n);
	l->fits = all <= INT64_MAX;
	l->span = NEW_ARRAY_RAW(l->n, uint32_t);
	l->kernels = NEW_ARRAY_RAW(l->n, uint32_t);
	l->ns = NEW_ARRAY_RAW(l->n, int64_t);
	l->first = NEW_ARRAY_RAW(l->n, uint32_t);
	l->second = NEW_ARRAY_RAW(l->n, uint32_t);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct load_nvprof_group *g = &of[hit[i].tie];
		l->span[i] = hit[i].row;
		l->kernels[i] = g->kernels;
		l->ns[i] = l->fits ? g->ns : 0;
		l->first[i] = g->first;
		l->second[i] = g->second;
	}
	mem_free(of);
	mem_free(hit);
	mem_free(kernel);
	mem_free(call);
}

static void launches_release(struct load_nvprof_launchers *l)
{
	mem_free(l->span);
	mem_free(l->kernels);
	mem_free(l->ns);
	mem_free(l->first);
	mem_free(l->second);
}

/* Calls in order of their ends, as a Fenwick tree that tells what all calls which ended before a time launched. Launches count once they are added. */
struct ends {
	uint32_t n;
	int64_t *end_ns;         /* ascending */
	uint32_t *place;         /* of each launch */
	uint64_t *kernels;
	int64_t *ns;
};

static void ends_init(struct ends *x, const struct profile *p, const struct load_nvprof_launchers *l)
{
	struct sort_item *v = NEW_ARRAY_RAW(l->n, struct sort_item);
	for (uint32_t i = 0; i < l->n; i++)
		v[i] = (struct sort_item){.key = sort_key_i64(load_nvprof_end_of(p, l->span[i])), .row = i};
	sort_items(v, l->n);
	*x = (struct ends){l->n, NEW_ARRAY_RAW(l->n, int64_t), NEW_ARRAY_RAW(l->n, uint32_t), NEW_ARRAY((size_t)l->n + 1, uint64_t),
	                   NEW_ARRAY((size_t)l->n + 1, int64_t)};
	for (uint32_t i = 0; i < l->n; i++) {
		x->end_ns[i] = load_nvprof_end_of(p, l->span[v[i].row]);
		x->place[v[i].row] = i;
	}
	mem_free(v);
}

static void ends_release(struct ends *x)
{
	mem_free(x->end_ns);
	mem_free(x->place);
	mem_free(x->kernels);
	mem_free(x->ns);
}

static void ends_add(struct ends *x, const struct load_nvprof_launchers *l, uint32_t launch)
{
	for (uint32_t i = x->place[launch] + 1; i <= x->n; i += i & -i) {
		x->kernels[i] += l->kernels[launch];
		x->ns[i] += l->ns[launch];
	}
}

static void ends_before(const struct ends *x, int64_t time_ns, uint64_t *kernels, int64_t *ns)
{
	*kernels = 0;
	*ns = 0;
	for (uint32_t i = FIRST_WHERE(k, 0, x->n, x->end_ns[k] >= time_ns); i; i -= i & -i) {
		*kernels += x->kernels[i];
		*ns += x->ns[i];
	}
}

static void functions_find(const struct profile *p, const struct load_nvprof_launchers *l, struct functions *f)
{
	struct sort_item *v = load_nvprof_collect(&f->n, p, p->span.rows.n, is_function, span_start);
	struct ends x;
	ends_init(&x, p, l);
	f->span = NEW_ARRAY_RAW(f->n, uint32_t);
	f->kernels = NEW_ARRAY_RAW(f->n, uint64_t);
	f->ns = NEW_ARRAY_RAW(f->n, int64_t);
	uint32_t later = l->n; /* launches from here on started after the function did */
	for (uint32_t i = f->n; i-- > 0;) {
		uint32_t span = f->span[i] = v[i].row;
		while (later && p->span.start_ns[l->span[later - 1]] > p->span.start_ns[span])
			ends_add(&x, l, --later);
		ends_before(&x, load_nvprof_end_of(p, span), &f->kernels[i], &f->ns[i]);
	}
	ends_release(&x);
	mem_free(v);
}

static void functions_release(struct functions *f)
{
	mem_free(f->span);
	mem_free(f->kernels);
	mem_free(f->ns);
}

/* By launch: a function that holds it, ROW_NONE = none. Among the functions that began before the launch, the one that ends last. */
static uint32_t *holders(const struct profile *p, const struct load_nvprof_launchers *l, const struct functions *f)
{
	uint32_t *in = NEW_ARRAY_RAW(l->n, uint32_t), last = ROW_NONE;
	for (uint32_t i = 0, k = 0; i < l->n; i++) {
		for (; k < f->n && p->span.start_ns[f->span[k]] < p->span.start_ns[l->span[i]]; k++)
			if (last == ROW_NONE || load_nvprof_end_of(p, f->span[k]) > load_nvprof_end_of(p, last))
				last = f->span[k];
		in[i] = last != ROW_NONE && load_nvprof_end_of(p, l->span[i]) < load_nvprof_end_of(p, last) ? last : ROW_NONE;
	}
	return in;
}

enum { LOAD_NVPROF_ID, LOAD_NVPROF_NAME, LOAD_NVPROF_START, LOAD_NVPROF_CPU, LOAD_NVPROF_KERNELS, LOAD_NVPROF_CUDA };

static const struct section load_nvprof_section = {COLUMNS(
	[LOAD_NVPROF_ID] = {COLUMN(NUMBER, "id", "Id", "id of the range in the database")},
	[LOAD_NVPROF_NAME] = {COLUMN(TEXT, "name", "Name", "text of the range; of an op as emit_nvtx wrote it, without its op_id", .flags = COLUMN_WIDE | COLUMN_ANSWER)},
	[LOAD_NVPROF_START] = {COLUMN(TIME, "start_ns", "Start", "when it began, on the database's clock", .flags = COLUMN_DETAIL)},
	[LOAD_NVPROF_CPU] = {COLUMN(NS, "cpu_time_ns", "CPU Time", "end less start; ranges inside it included", .flags = COLUMN_ANSWER)},
	[LOAD_NVPROF_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "launched by runtime calls strictly inside it, by any thread", .flags = COLUMN_ANSWER)},
	[LOAD_NVPROF_CUDA] = {COLUMN(NS, "cuda_time_ns", "CUDA Time", "sum of the durations of these kernels", .flags = COLUMN_ANSWER)},
)};

/* The range's whole text: the store keeps emit_nvtx's numbers apart from its names. */
static struct str load_nvprof_text_of(const struct profile *p, uint32_t span, struct buf *b)
{
	uint32_t raw = profile_arg_id(p, p->span.args[span], ARG_MARKER);
	if (raw || p->span.kind[span] != SPAN_OP)
		return profile_str(p, raw ? raw : p->span.name[span]);
	uint32_t sizes = profile_arg_id(p, p->span.args[span], ARG_INPUT_DIMS);
	buf_clear(b);
	buf_str(b, profile_str(p, p->span.name[span]));
	if (p->span.link_id[span] != ID_NONE)
		buf_printf(b, ", seq = %lld", (long long)p->span.link_id[span]);
	if (sizes)
		buf_printf(b, ", sizes = " STR_FMT, STR_ARG(profile_str(p, sizes)));
	return buf_view(b);
}

static void load_nvprof_put_functions(const struct profile *p, const struct report_args *args, const struct functions *f, bool sums, struct table *out)
{
	struct buf b = {0};
	section_start(&load_nvprof_section, args, 0, out);
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t span = f->span[i];
		table_row(out);
		table_set_i64(out, LOAD_NVPROF_ID, span_ext_id(&p->span, span));
		table_set_str_copy(out, LOAD_NVPROF_NAME, load_nvprof_text_of(p, span, &b));
		table_set_i64(out, LOAD_NVPROF_START, p->span.start_ns[span]);
		table_set_i64(out, LOAD_NVPROF_CPU, p->span.dur_ns[span]);
		table_set_i64(out, LOAD_NVPROF_KERNELS, (int64_t)f->kernels[i]);
		if (sums)
			table_set_i64(out, LOAD_NVPROF_CUDA, f->ns[i]);
	}
	buf_release(&b);
}

/* Notes where all kernels are. Each kernel counts once, however many ranges are around it. */
static void note_kernels(const struct profile *p, const struct load_nvprof_launchers *l, const uint32_t *in, struct table *out)
{
	uint8_t *state = NEW_ARRAY(p->gpu_op.rows.n, uint8_t); /* of the first kernel of an id: 1 launched, 2 inside a range */
	int64_t all = 0, outside = 0, inside = 0;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		all += p->gpu_op.kind[g] == GPU_KERNEL ? p->gpu_op.dur_ns[g] : 0;
	for (uint32_t i = 0; i < l->n; i++)
		if (in[i] != ROW_NONE && state[l->first[i]] != 2) {
			state[l->first[i]] = 2;
			inside += l->ns[i];
		}
	for (uint32_t i = 0; i < l->n; i++)
		if (!state[l->first[i]]) {
			state[l->first[i]] = 1;
			outside += l->ns[i];
		}
	mem_free(state);
	if (l->fits)
		table_note(out, "kernels %lld ns = inside ranges %lld + launched outside any %lld + launched by no runtime call that was recorded %lld; "
		           "ranges that nest each count what is inside", (long long)all, (long long)inside, (long long)outside,
		           (long long)(all - inside - outside));
	else
		table_note(out, "CUDA times are unknown: correlation ids repeat so often that their sum is beyond 63 bits");
}

/* torch stops at a kernel that another call than cudaLaunchKernel (211) launched. */
static void note_other_calls(const struct profile *p, const struct load_nvprof_launchers *l, const uint32_t *in, struct table *out)
{
	uint64_t others = 0;
	uint32_t first = ROW_NONE;
	for (uint32_t i = 0; i < l->n; i++) {
		if (in[i] == ROW_NONE || str_eqc(profile_str(p, p->span.name[l->span[i]]), "cudaLaunchKernel"))
			continue;
		others += l->kernels[i];
		first = first == ROW_NONE ? l->span[i] : first;
	}
	if (others)
		table_note(out, "torch's load_nvprof would stop with an AssertionError: %llu kernels were launched by other calls than cudaLaunchKernel, the first "
		           "by " STR_FMT " at %lld; here they count", (unsigned long long)others, STR_ARG(profile_str(p, p->span.name[first])),
		           (long long)p->span.start_ns[first]);
}

enum { MOST_NOTES = 5 };

/* A range id that occurs twice. */
static void note_equal_ids(const struct profile *p, struct table *out)
{
	struct buf b[2] = {{0}, {0}};
	uint32_t n, found = 0;
	struct sort_item *v = load_nvprof_collect(&n, p, p->span.rows.n, is_function, span_id);
	for (uint32_t i = 1; i < n; i++) {
		if (v[i].key != v[i - 1].key || ++found > MOST_NOTES)
			continue;
		struct str one = load_nvprof_text_of(p, v[i - 1].row, &b[0]), two = load_nvprof_text_of(p, v[i].row, &b[1]);
		table_note(out, "torch's load_nvprof would stop with 'duplicate key: (%lld,)': the id is that of " STR_FMT " at %lld and of " STR_FMT
		           " at %lld; here they are two", (long long)span_ext_id(&p->span, v[i].row), STR_ARG(one), (long long)p->span.start_ns[v[i - 1].row],
		           STR_ARG(two), (long long)p->span.start_ns[v[i].row]);
	}
	if (found > MOST_NOTES)
		table_note(out, "and %u more ids that repeat", found - MOST_NOTES);
	mem_free(v);
	buf_release(&b[0]);
	buf_release(&b[1]);
}

/* torch stops at a call with several kernels: the pair of range and call occurs once for each kernel. */
static void note_equal_pairs(const struct profile *p, const struct load_nvprof_launchers *l, const uint32_t *in, struct table *out)
{
	struct buf b = {0};
	uint32_t found = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		if (in[i] == ROW_NONE || l->second[i] == ROW_NONE || ++found > MOST_NOTES)
			continue;
		const struct gpu_ops *g = &p->gpu_op;
		struct str range = load_nvprof_text_of(p, in[i], &b);
		table_note(out, "torch's load_nvprof would stop with 'duplicate key': the call at %lld inside range %lld (" STR_FMT ") launched " STR_FMT
		           " at %lld and " STR_FMT " at %lld; here both count", (long long)p->span.start_ns[l->span[i]],
		           (long long)span_ext_id(&p->span, in[i]), STR_ARG(range), STR_ARG(profile_str(p, g->name[l->first[i]])),
		           (long long)g->start_ns[l->first[i]], STR_ARG(profile_str(p, g->name[l->second[i]])), (long long)g->start_ns[l->second[i]]);
	}
	if (found > MOST_NOTES)
		table_note(out, "and %u more calls with several kernels", found - MOST_NOTES);
	buf_release(&b);
}

static int load_nvprof_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct load_nvprof_launchers l;
	struct functions f;
	if (!str_eqc(p->format, "nvprof"))
		return err_set(e, ERR_DATA, "load_nvprof reads databases of nvprof, this is an input of the format " STR_FMT "; see report key-averages or nvtx",
		               STR_ARG(p->format));
	launches_find(p, &l);
	functions_find(p, &l, &f);
	int rc = 0;
	if (!f.n) {
		rc = err_set(e, ERR_DATA, "the database holds no ranges; to record them: run the program in torch.autograd.profiler.emit_nvtx(), under nvprof "
		             "--profile-from-start off -o FILE");
	} else {
		uint32_t *in = holders(p, &l, &f);
		load_nvprof_put_functions(p, args, &f, l.fits, out);
		note_kernels(p, &l, in, out);
		note_other_calls(p, &l, in, out);
		note_equal_ids(p, out);
		note_equal_pairs(p, &l, in, out);
		if (diag_count(&p->diags, "range-without-end"))
			table_note(out, "%llu ranges had no end and end here with the capture; torch leaves them out",
			           (unsigned long long)diag_count(&p->diags, "range-without-end"));
		mem_free(in);
	}
	functions_release(&f);
	launches_release(&l);
	return rc;
}

const struct report report_load_nvprof = {
	.name = "load-nvprof",
	.title = "Ranges of an nvprof database as torch loads them",
	.asks = ASKS_INPUT,
	.help = "What torch.autograd.profiler.load_nvprof gives of a database of nvprof: every NVTX range with its host time, and the kernels that runtime "
	        "calls strictly inside it launched, whatever thread they ran on; in order of time. Where torch would stop with an error (a launch by another "
	        "call than cudaLaunchKernel, an id or a call that occurs twice), a note says so, names both rows, and the table goes on. Times are "
	        "nanoseconds; torch takes the same numbers for microseconds. Ranges nest, so that kernels count in each range around them.",
	.sections = (const struct section *const[]){&load_nvprof_section, NULL},
	.run = load_nvprof_run,
};
