#include "report/parts/compile_kernels.h"

#include "analysis/names/stacks.h"
#include "analysis/tree/generated.h"
#include "analysis/tree/layers.h"
#include "analysis/tree/sources.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "detect/parts/compiled.h"
#include "io/json.h"
#include "op/expr.h"
#include "op/inductor_name.h"
#include "op/op_args.h"
#include "report/parts/compile_lines.h"

enum {
	KERNELS_NAME, KERNELS_KIND, KERNELS_OPS, KERNELS_MORE, KERNELS_LINES, KERNELS_NODES, KERNELS_CALLS, KERNELS_NS, KERNELS_PCT, KERNELS_MEAN, KERNELS_SHAPES, KERNELS_BYTES, KERNELS_MOVED, KERNELS_RATE, KERNELS_FLOPS, KERNELS_REGION,
	KERNELS_LAYER, KERNELS_LINE, KERNELS_FILE, KERNELS_HASH
};

const struct section compile_kernels_section = {.name = "kernels", .title = "Generated kernels", COLUMNS(
	[KERNELS_NAME] = {COLUMN(TEXT, "kernel", "Kernel", "name of the generated kernel, by the op that launched it, else by the device's record", .flags = COLUMN_ANSWER)},
	[KERNELS_KIND] = {COLUMN(TEXT, "kind", "Kind", "by its name: pointwise (poi), reduction (red), persistent reduction (per), template (tem), foreach (for), scan (spl)")},
	[KERNELS_OPS] = {COLUMN(TEXT, "source_ops", "Source ops", "ops of the program that it fuses, each once however often it is in: as the compiler's provenance tells, else as its name names "
	                        "them; empty = it names none",
	                        .flags = COLUMN_WIDE | COLUMN_ANSWER)},
	[KERNELS_MORE] = {COLUMN(TEXT, "ops_are", "Ops are", "maybe more = it names ten, and Inductor names no more; ambiguous = they can be told apart in several ways; not all "
	                         "known = some are given as written, and may be several ops; empty = complete", .flags = COLUMN_MINOR)},
	[KERNELS_LINES] = {COLUMN(TEXT, "source_lines", "Source lines", "innermost lines of your own code that its ops are in, file(line,line): function; empty = not known",
	                          .flags = COLUMN_WIDE | COLUMN_PATH | COLUMN_ANSWER), .when = WHEN_SOURCES},
	[KERNELS_NODES] = {COLUMN(TEXT, "source_nodes", "Source nodes", "nodes of the graph that Dynamo traced; empty = not known, or not the same ones in all its calls",
	                          .flags = COLUMN_WIDE | COLUMN_DETAIL), .when = WHEN_SOURCES},
	[KERNELS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran", .flags = COLUMN_ANSWER)},
	[KERNELS_NS] = {COLUMN(NS, "device_ns", "Device time", "sum of its durations", .flags = COLUMN_ANSWER)},
	[KERNELS_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "device time / that of all device work")},
	[KERNELS_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "device time / calls", .flags = COLUMN_MINOR)},
	[KERNELS_SHAPES] = {COLUMN(TEXT, "input_dims", "Shapes", "sizes of the tensors that it was passed, what it writes among them", .flags = COLUMN_WIDE | COLUMN_MINOR), .when = WHEN_SHAPES},
	[KERNELS_BYTES] = {COLUMN(BYTES, "argument_bytes", "Bytes of arguments", "sum of the sizes of these tensors: it may read a part of one, or one of them twice",
	                          .flags = COLUMN_MINOR), .when = WHEN_SHAPES},
	[KERNELS_MOVED] = {COLUMN(BYTES, "estimated_bytes", "Est. bytes", "what one call reads and writes, as Inductor estimates; empty = not recorded (torch._inductor.config.profile_bandwidth, "
	                          "benchmark_kernel)", .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[KERNELS_RATE] = {COLUMN(REAL, "estimated_gb_per_s", "Est. GB/s", "these bytes x calls / device time, in 10^9 bytes", .digits = 2, .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[KERNELS_FLOPS] = {COLUMN(FLOPS, "estimated_flops", "Est. FLOPs", "FLOPs of one call, as Inductor estimates; empty = not recorded (benchmark_kernel)", .flags = COLUMN_DETAIL),
	                   .when = WHEN_RECORDED},
	[KERNELS_REGION] = {COLUMN(TEXT, "region", "Region", "compiled code that launched it; empty = its launch lies in no recorded region")},
	[KERNELS_LAYER] = {COLUMN(TEXT, "layer", "Layer", "innermost layer that is around all of its launches, or around those of its forward op; ops of several layers may be "
	                          "fused, and calls of modules inside compiled code leave no trace", .flags = COLUMN_PATH | COLUMN_MINOR), .when = WHEN_RECORDED},
	[KERNELS_LINE] = {COLUMN(TEXT, "line", "Called from", "innermost frame of your own Python around all of its launches: that which called the compiled code",
	                         .flags = COLUMN_PATH | COLUMN_MINOR), .when = WHEN_STACKS},
	[KERNELS_FILE] = {COLUMN(TEXT, "kernel_file", "File", "generated source file", .flags = COLUMN_WIDE | COLUMN_PATH | COLUMN_DETAIL)},
	[KERNELS_HASH] = {COLUMN(TEXT, "kernel_hash", "Hash", "hash of the generated code", .flags = COLUMN_DETAIL)},
)};

enum { SOURCES_OP, SOURCES_KERNELS, SOURCES_CALLS, SOURCES_NS, SOURCES_PCT };

const struct section compile_sources_section = {.name = "source_ops", .title = "Ops of the program in generated kernels", COLUMNS(
	[SOURCES_OP] = {COLUMN(TEXT, "op", "Op", "named by generated kernels; a word that is no known op as it is written", .flags = COLUMN_ANSWER)},
	[SOURCES_KERNELS] = {COLUMN(COUNT, "kernels", "Kernels", "rows of generated kernels that name it")},
	[SOURCES_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often these ran")},
	[SOURCES_NS] = {COLUMN(NS, "kernels_ns", "Time of these kernels", "their device time, which they spend on all ops they fuse: rows add up to more than all kernels",
	                       .flags = COLUMN_ANSWER)},
	[SOURCES_PCT] = {COLUMN(PERCENT, "generated_pct", "Generated %", "time of these kernels / that of all generated kernels")},
)};

enum { WORKS_NAME, WORKS_PART, WORKS_COUNT, WORKS_NS, WORKS_PCT };

const struct section compile_called_section = {.name = "called", .title = "Other device work of compiled regions", COLUMNS(
	[WORKS_NAME] = {COLUMN(TEXT, "op", "Op", "outermost op that the compiled code called; where there is none, the API call that launched the work", .flags = COLUMN_ANSWER)},
	[WORKS_PART] = {COLUMN(TEXT, "place", "Place", "graph = called by a graph; outside = in a region, outside of its graph: at a graph break, or around the graph", .flags = COLUMN_GROUP)},
	[WORKS_COUNT] = {COLUMN(COUNT, "count", "Pieces of work", "kernels, copies and sets")},
	[WORKS_NS] = {COLUMN(NS, "device_ns", "Device time", "sum of their durations", .flags = COLUMN_ANSWER)},
	[WORKS_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "device time / that of all device work")},
)};

const struct section compile_eager_section = {.name = "eager", .title = "Device work outside of compiled regions", COLUMNS(
	[WORKS_NAME] = {COLUMN(TEXT, "op", "Op", "op that launched it; where there is none, the API call; empty = neither is recorded", .flags = COLUMN_ANSWER)},
	[WORKS_PART] = {COLUMN(TEXT, "place", "Place", "eager", .flags = COLUMN_DETAIL)},
	[WORKS_COUNT] = {COLUMN(COUNT, "count", "Pieces of work", "kernels, copies and sets")},
	[WORKS_NS] = {COLUMN(NS, "device_ns", "Device time", "sum of their durations", .flags = COLUMN_ANSWER)},
	[WORKS_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "device time / that of all device work")},
)};

enum work_place { WORK_EAGER, WORK_OUTSIDE, WORK_GRAPH };
static const char *const work_place_name[] = {[WORK_EAGER] = "eager", [WORK_OUTSIDE] = "outside", [WORK_GRAPH] = "graph"};

struct work_group {
	uint32_t name;           /* string id; 0 = not known */
	enum work_place place;
	uint64_t n;
	int64_t ns;
};

struct generated {
	struct inductor_name name;
	bool is_inductors;       /* else written in Triton by hand, for which Inductor wrote the launch */
	uint32_t region, dims, op, layer, line; /* op: that of one of its launches. layer: LAYER_NONE; line: in compile_kernels.lines, 0 = none or several */
	struct sources sources;  /* nodes: "" where they differ from call to call */
	uint64_t calls;
	int64_t ns;
};

struct compile_kernels {
	const struct profile *p;
	const struct compile_regions *r;
	struct compile_device *device; /* by region */
	struct generated *v;
	struct work_group *w;
	uint32_t n, cap, n_works, cap_works;
	struct intern keys, work_keys, lines, ops;
	struct layers *layers;
	struct stacks *stacks;
	struct compile_lines *by_line; /* NULL = there is no provenance */
	int64_t all_ns;
	int64_t generated_ns;
	int64_t called_ns, outside_ns, eager_ns, unknown_ns; /* other work: of graphs; in regions and outside of graphs; outside of regions; of unrecorded launches */
	int64_t generated_elsewhere_ns, generated_unknown_ns; /* of generated_ns: launched in no region; of unrecorded launches */
};

struct generated_key {
	uint32_t name, region, dims, file, source_ops, source_lines;
};

/* What launched it; of a graph's replay, the op that captured it, where that is known. */
static uint32_t launcher_of(const struct profile *p, uint32_t g)
{
	const bool captured = gpu_is_replayed(&p->gpu_op, g) && p->gpu_op.op[g] != ROW_NONE;
	return p->gpu_op.call[g] != ROW_NONE && !captured ? p->gpu_op.call[g] : p->gpu_op.op[g];
}

/* The innermost frame of the user's own code, outside of the frames of generated code. */
static struct str line_of(const struct stacks *s, uint32_t stack)
{
	struct str line = stacks_user_line(s, stack), frame;
	while (line.n && compiled_is_wrapper(line)) {
		do
			if (!stacks_pop(s, &stack, &frame))
				return (struct str){0};
		while (!str_eq(frame, line));
		line = stacks_user_line(s, stack);
	}
	return line;
}

static void add_generated(struct compile_kernels *k, uint32_t g, const struct generated_kernel *kernel, uint32_t region)
{
	const struct profile *p = k->p;
	uint32_t at = launcher_of(p, g), op = kernel->op;
	uint32_t set = op == ROW_NONE ? 0 : p->span.args[op];
	struct generated_key key = {intern_str(&k->ops, kernel->name.name), region, profile_arg_id(p, set, ARG_INPUT_DIMS), profile_arg_id(p, set, ARG_KERNEL_FILE),
	                            profile_arg_id(p, p->gpu_op.args[g], ARG_SOURCE_OPS), profile_arg_id(p, p->gpu_op.args[g], ARG_SOURCE_LINES)};
	const struct sources sources = sources_of(p, p->gpu_op.args[g]);
	uint32_t i = intern_put_key(&k->keys, &key, sizeof key) - 1, layer = layers_of_gpu(k->layers, p, g);
	if (op != ROW_NONE && sources.lines.n) /* the op's own stack is that of its sources */
		at = p->span.parent[op];
	uint32_t line = at == ROW_NONE ? 0 : intern_str(&k->lines, line_of(k->stacks, stacks_of(k->stacks, at)));
	if (i == k->n)
		MEM_PUSH(k->v, k->n, k->cap, (struct generated){.name = kernel->name, .is_inductors = kernel->is_inductors, .region = region, .dims = key.dims, .op = op, .layer = layer, .line = line,
		                                                .sources = sources});
	struct generated *x = &k->v[i];
	x->calls++;
	x->ns += p->gpu_op.dur_ns[g];
	x->layer = x->layer == layer ? layer : LAYER_NONE;
	x->line = x->line == line ? line : 0;
	if (!str_eq(x->sources.nodes, sources.nodes))
		x->sources.nodes = STR("");
}

static void add_work(struct compile_kernels *k, uint32_t g, enum work_place place)
{
	const struct profile *p = k->p;
	uint32_t at = launcher_of(p, g), op = p->gpu_op.op[g];
	if (place != WORK_EAGER && k->r->root[at] != ROW_NONE)
		op = k->r->root[at];
	else if (place != WORK_EAGER)
		op = op != ROW_NONE ? k->r->root[op] : ROW_NONE;
	uint32_t key[] = {op != ROW_NONE ? p->span.name[op] : at != ROW_NONE ? p->span.name[at] : 0, place};
	uint32_t i = intern_put_key(&k->work_keys, key, sizeof key) - 1;
	if (i == k->n_works)
		MEM_PUSH(k->w, k->n_works, k->cap_works, (struct work_group){.name = key[0], .place = place});
	k->w[i].n++;
	k->w[i].ns += p->gpu_op.dur_ns[g];
}

static void compile_kernels_add(struct compile_kernels *k, uint32_t g)
{
	const struct profile *p = k->p;
	uint32_t at = launcher_of(p, g), region = at == ROW_NONE ? ROW_NONE : k->r->of_span[at];
	int64_t ns = p->gpu_op.dur_ns[g];
	struct generated_kernel kernel;
	const bool generated = generated_kernel_of(p, g, &kernel);
	k->all_ns += ns;
	if (region != ROW_NONE)
		k->device[region].works++;
	const enum work_place place = region == ROW_NONE ? WORK_EAGER : k->r->in_graph[at] && k->r->part[at] != COMPILE_COMPILER ? WORK_GRAPH : WORK_OUTSIDE;
	if (k->by_line && (generated || place == WORK_GRAPH))
		compile_lines_add(k->by_line, g, generated);
	if (generated) {
		add_generated(k, g, &kernel, region);
		k->generated_ns += ns;
		if (region != ROW_NONE)
			k->device[region].generated_ns += ns;
		else
			*(at == ROW_NONE ? &k->generated_unknown_ns : &k->generated_elsewhere_ns) += ns;
		return;
	}
	add_work(k, g, place);
	*(place == WORK_GRAPH ? &k->called_ns : place == WORK_OUTSIDE ? &k->outside_ns : at == ROW_NONE ? &k->unknown_ns : &k->eager_ns) += ns;
	if (region != ROW_NONE)
		*(place == WORK_GRAPH ? &k->device[region].called_ns : &k->device[region].eager_ns) += ns;
}

struct compile_kernels *compile_kernels_new(const struct profile *p, const struct compile_regions *r)
{
	struct compile_kernels *k = NEW(struct compile_kernels);
	*k = (struct compile_kernels){.p = p, .r = r, .device = NEW_ARRAY(r->n + 1, struct compile_device), .layers = layers_new(p), .stacks = stacks_new(p), .by_line = compile_lines_new(p)};
	intern_init(&k->keys);
	intern_init(&k->work_keys);
	intern_init(&k->lines);
	intern_init(&k->ops);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		compile_kernels_add(k, g);
	return k;
}

void compile_kernels_free(struct compile_kernels *k)
{
	intern_release(&k->keys);
	intern_release(&k->work_keys);
	intern_release(&k->lines);
	intern_release(&k->ops);
	layers_free(k->layers);
	stacks_free(k->stacks);
	compile_lines_free(k->by_line);
	mem_free(k->device);
	mem_free(k->v);
	mem_free(k->w);
	mem_free(k);
}

const struct compile_device *compile_kernels_of(const struct compile_kernels *k, uint32_t i) { return &k->device[i]; }
bool compile_kernels_any(const struct compile_kernels *k) { return k->n; }
bool compile_kernels_placed(const struct compile_kernels *k) { return !k->generated_unknown_ns; }

/* Words that are ops in the names of kernels: those that have a cost, and those that the recording has in any name space. */
struct vocabulary {
	struct intern words;
};

static void vocabulary_fill(struct vocabulary *v, const struct profile *p)
{
	intern_init(&v->words);
	for (uint32_t i = 1; i < p->strings.n; i++) {
		struct str s = profile_str(p, i);
		ptrdiff_t at = str_find(s, STR("::"));
		if (at < 0 || s.n > 128 || str_has(s, STR(" ")))
			continue;
		struct str word = {s.p + at + 2, s.n - (size_t)at - 2};
		if (word.n && !str_has(word, STR("::")) && !str_has(word, STR("(")))
			intern_str(&v->words, word);
	}
}

/* Ops that Inductor fuses, and whose cost no rule tells. */
static const char other_ops[] = "constant_pad_nd _assert_async _assert_scalar _fft_c2c _foreach_copy _log_softmax_backward_data _scaled_mm "
                                "_unsafe_masked_index _unsafe_masked_index_put_accumulate _unsafe_index_put as_strided_scatter bernoulli cumsum cumprod "
                                "diagonal_scatter fft_c2c inductor_force_stride_order inductor_lookup_seed inductor_random inductor_randint "
                                "inductor_seeds iota lift_fresh_copy prims_convert_element_type convert_element_type quantized_decomposed "
                                "select_backward select_scatter slice_backward squeeze unsqueeze view_copy _native_batch_norm_legit_functional "
                                "native_group_norm_backward native_batch_norm_backward sort topk";

static bool vocabulary_has(const void *of, struct str word)
{
	const struct vocabulary *v = of;
	char name[160];
	if (intern_find(&v->words, word) != INTERN_NONE || str_has_word(other_ops, word))
		return true;
	if (word.n > sizeof name - sizeof "aten::")
		return false;
	memcpy(name, "aten::", strlen("aten::"));
	memcpy(name + strlen("aten::"), word.p, word.n);
	struct arena a = {0};
	struct cost cost;
	cost_of(&(struct op_facts){.name = {name, word.n + strlen("aten::")}}, &cost_own, COST_FORWARD, NULL, &a, &cost);
	bool known = cost.class != OP_UNKNOWN;
	arena_release(&a);
	return known;
}

struct source_group {
	uint64_t kernels, calls;
	int64_t ns;
};

struct source_ops {
	struct vocabulary words;
	struct intern names;
	struct source_group *v;
	uint32_t n, cap;
	uint64_t strange, ambiguous, cut; /* kernels */
};

static void count_op(struct source_ops *s, struct str name, const struct generated *x)
{
	uint32_t at = intern_str(&s->names, name) - 1;
	if (at == s->n)
		MEM_PUSH(s->v, s->n, s->cap, (struct source_group){0});
	s->v[at].kernels++;
	s->v[at].calls += x->calls;
	s->v[at].ns += x->ns;
}

/* Puts the ops that the kernel's name tells into its row, and counts them. */
static void put_named_ops(struct source_ops *s, const struct generated *x, struct table *t)
{
	struct inductor_op op[INDUCTOR_OPS_MAX];
	bool ambiguous, strange = false;
	unsigned n = x->is_inductors ? inductor_ops(x->name.ops, vocabulary_has, &s->words, op, &ambiguous) : 0;
	struct buf b = {0};
	for (unsigned i = 0; i < n; i++) {
		count_op(s, op[i].name, x);
		strange |= !op[i].known;
		buf_cstr(&b, i ? ", " : "");
		buf_str(&b, op[i].name);
	}
	if (n)
		table_set_str_copy(t, KERNELS_OPS, buf_view(&b));
	buf_release(&b);
	bool cut = n >= INDUCTOR_MOST_OPS;
	ambiguous = n && ambiguous;
	s->strange += strange;
	s->ambiguous += ambiguous;
	s->cut += cut;
	if (strange || ambiguous || cut)
		table_set_fmt(t, KERNELS_MORE, "%s%s%s%s%s", cut ? "maybe more" : "", cut && (strange || ambiguous) ? ", " : "", ambiguous ? "ambiguous" : "",
		              ambiguous && strange ? ", " : "", strange ? "not all known" : "");
}

/* Puts the ops that provenance tells into the row, else those that the name tells; counts them. */
static void put_ops(struct source_ops *s, const struct generated *x, struct table *t)
{
	struct str rest = x->sources.ops, item;
	if (!rest.n) {
		put_named_ops(s, x, t);
		return;
	}
	table_set_str(t, KERNELS_OPS, rest);
	while (str_split(&rest, ',', &item))
		if (item = str_trim(item), item.n && !str_starts(item, STR("and "))) /* "and 3 more" */
			count_op(s, item, x);
}

/* Bytes of the tensors that an op was passed; -1 = not known. */
static int64_t argument_bytes(const struct profile *p, uint32_t op)
{
	struct op_args a = {0};
	struct op_facts f = {.name = profile_str(p, p->span.name[op])};
	char why[EXPR_WHY];
	int64_t bytes = -1;
	if (profile_arg(p, p->span.args[op], ARG_INPUT_DIMS, &f.dims) && profile_arg(p, p->span.args[op], ARG_INPUT_TYPES, &f.types) && op_args_parse(&a, &f, why) == 0)
		bytes = 0;
	for (unsigned i = 0; i < a.n && bytes >= 0; i++) {
		const struct op_arg *arg = &a.arg[i];
		int64_t elements = arg->kind == OP_ARG_TENSOR ? a.tensor[arg->tensor].elements : 0, bits = dtype_bits(arg->dtype), all_bits = 0;
		bool known = arg->kind == OP_ARG_NONE || (arg->kind == OP_ARG_TENSOR && elements >= 0 && bits && !__builtin_mul_overflow(elements, bits, &all_bits));
		if (!known || __builtin_add_overflow(bytes, all_bits / 8 + (all_bits % 8 != 0), &bytes))
			bytes = -1;
	}
	op_args_release(&a);
	return bytes;
}

/* A number that the compiler states of a kernel, times 10^digits; -1 = not stated. */
static int64_t stated_by_compiler(const struct profile *p, uint32_t op, enum arg_key key, int digits)
{
	struct str text;
	int64_t v;
	return op != ROW_NONE && profile_arg(p, p->span.args[op], key, &text) && json_to_scaled(text, digits, &v) && v >= 0 ? v : -1;
}

static void put_estimates(const struct profile *p, const struct generated *x, struct table *t)
{
	const int64_t bytes = stated_by_compiler(p, x->op, ARG_KERNEL_GB, 9), flops = stated_by_compiler(p, x->op, ARG_KERNEL_FLOP, 0);
	if (bytes >= 0)
		table_set_i64(t, KERNELS_MOVED, bytes);
	if (bytes >= 0 && x->ns)
		table_set_f64(t, KERNELS_RATE, (double)bytes * (double)x->calls / (double)x->ns);
	if (flops >= 0)
		table_set_i64(t, KERNELS_FLOPS, flops);
}

static void put_generated(const struct compile_kernels *k, const struct generated *x, struct source_ops *s, struct table *t)
{
	const struct profile *p = k->p;
	table_row(t);
	table_set_str(t, KERNELS_NAME, x->name.name);
	table_set_str(t, KERNELS_KIND, str_from(x->is_inductors ? inductor_kind_name[x->name.kind] : "the program's own"));
	put_ops(s, x, t);
	if (x->sources.lines.n)
		table_set_str(t, KERNELS_LINES, x->sources.lines);
	if (x->sources.nodes.n)
		table_set_str(t, KERNELS_NODES, x->sources.nodes);
	table_set_i64(t, KERNELS_CALLS, (int64_t)x->calls);
	table_set_i64(t, KERNELS_NS, x->ns);
	table_set_f64(t, KERNELS_PCT, percent((double)x->ns, (double)k->all_ns));
	table_set_f64(t, KERNELS_MEAN, (double)x->ns / (double)x->calls);
	if (x->region != ROW_NONE)
		table_set_str(t, KERNELS_REGION, profile_str(p, k->r->v[x->region].name));
	if (x->layer != LAYER_NONE)
		table_set_str_copy(t, KERNELS_LAYER, intern_get(&k->layers->names, k->layers->v[x->layer].name));
	if (x->line)
		table_set_str_copy(t, KERNELS_LINE, intern_get(&k->lines, x->line));
	if (x->op == ROW_NONE)
		return;
	put_estimates(p, x, t);
	int64_t bytes = argument_bytes(p, x->op);
	if (x->dims)
		table_set_str(t, KERNELS_SHAPES, profile_str(p, x->dims));
	if (bytes >= 0)
		table_set_i64(t, KERNELS_BYTES, bytes);
	for (unsigned i = KERNELS_FILE; i <= KERNELS_HASH; i++) {
		uint32_t id = profile_arg_id(p, p->span.args[x->op], i == KERNELS_FILE ? ARG_KERNEL_FILE : ARG_KERNEL_HASH);
		if (id)
			table_set_str(t, i, profile_str(p, id));
	}
}

/* Begins the section; columns of which nothing is recorded are left out. */
static struct table *begin_kernels(const struct compile_kernels *k, const struct report_args *args, struct table *first)
{
	const bool shapes = ANY_WHERE(i, 0u, k->n, k->v[i].dims != 0);
	const unsigned when = (shapes ? WHEN_SHAPES : 0) | (stacks_any(k->stacks) ? WHEN_STACKS : 0) | WHEN_RECORDED | (k->by_line ? WHEN_SOURCES : 0);
	struct table *t = section_add(&compile_kernels_section, args, when, first);
	if (k->layers->source == LAYERS_NONE)
		section_leave_out(&compile_kernels_section, KERNELS_LAYER, t);
	for (unsigned i = KERNELS_MOVED; i <= KERNELS_FLOPS; i++)
		if (!profile_has_arg(k->p, i == KERNELS_FLOPS ? ARG_KERNEL_FLOP : ARG_KERNEL_GB))
			section_leave_out(&compile_kernels_section, i, t);
	return t;
}

static void note_named_ops(const struct source_ops *s, struct table *t)
{
	if (s->strange)
		table_note(t, "rows whose names hold words that are no known op: %llu; these words stand as they are written, and may be several ops", (unsigned long long)s->strange);
	if (s->ambiguous)
		table_note(t, "rows whose names can be read as several lists of ops: %llu; the shortest list is given", (unsigned long long)s->ambiguous);
	if (s->cut)
		table_note(t, "rows that name %d ops: %llu; Inductor names no more by default, and these kernels may fuse others", INDUCTOR_MOST_OPS, (unsigned long long)s->cut);
}

static int put_source_ops(const struct compile_kernels *k, const struct source_ops *s, const struct report_args *args, struct table *first, struct err *e)
{
	struct table *t = section_add(&compile_sources_section, args, 0, first);
	for (uint32_t i = 0; i < s->n; i++) {
		table_row(t);
		table_set_str_copy(t, SOURCES_OP, intern_get(&s->names, i + 1));
		table_set_i64(t, SOURCES_KERNELS, (int64_t)s->v[i].kernels);
		table_set_i64(t, SOURCES_CALLS, (int64_t)s->v[i].calls);
		table_set_i64(t, SOURCES_NS, s->v[i].ns);
		table_set_f64(t, SOURCES_PCT, percent((double)s->v[i].ns, (double)k->generated_ns));
	}
	table_note(t, "a kernel's time is that of all ops it fuses: each of these has all of it, and the rows add up to more than the generated kernels' %lld ns",
	           (long long)k->generated_ns);
	return table_sort(t, STR("kernels_ns"), true, e);
}

static int put_kernels(const struct compile_kernels *k, const struct report_args *args, struct table *first, struct err *e)
{
	struct source_ops s = {0};
	struct table *t = begin_kernels(k, args, first);
	intern_init(&s.names);
	vocabulary_fill(&s.words, k->p);
	for (uint32_t i = 0; i < k->n; i++)
		put_generated(k, &k->v[i], &s, t);
	note_named_ops(&s, t);
	int rc = table_sort(t, STR("device_ns"), true, e);
	if (rc == 0 && s.n)
		rc = put_source_ops(k, &s, args, first, e);
	intern_release(&s.names);
	intern_release(&s.words.words);
	mem_free(s.v);
	return rc;
}

static int put_works(const struct compile_kernels *k, const struct report_args *args, bool eager, struct table *first, struct err *e)
{
	struct table *t = NULL;
	for (uint32_t i = 0; i < k->n_works; i++) {
		const struct work_group *w = &k->w[i];
		if ((w->place == WORK_EAGER) != eager)
			continue;
		t = t ? t : section_add(eager ? &compile_eager_section : &compile_called_section, args, 0, first);
		table_row(t);
		if (w->name)
			table_set_str(t, WORKS_NAME, profile_str(k->p, w->name));
		table_set_str(t, WORKS_PART, str_from(work_place_name[w->place]));
		table_set_i64(t, WORKS_COUNT, (int64_t)w->n);
		table_set_i64(t, WORKS_NS, w->ns);
		table_set_f64(t, WORKS_PCT, percent((double)w->ns, (double)k->all_ns));
	}
	if (t && eager && k->generated_elsewhere_ns)
		table_note(t, "generated kernels were launched outside of regions: other work here may be of compiled code, too");
	return t ? table_sort(t, STR("device_ns"), true, e) : 0;
}

int compile_kernels_put(const struct compile_kernels *k, const struct report_args *args, struct table *first, struct err *e)
{
	if (!k->p->gpu_op.rows.n)
		return 0;
	table_note(first, "device work %lld ns = generated kernels %lld + other work of graphs %lld + work in regions and outside of graphs %lld + work outside of regions %lld + work "
	           "whose launch is not recorded %lld", (long long)k->all_ns, (long long)k->generated_ns, (long long)k->called_ns, (long long)k->outside_ns, (long long)k->eager_ns,
	           (long long)k->unknown_ns);
	if (k->generated_elsewhere_ns)
		table_warn(first, "generated kernels of %lld ns were launched in no region that is recorded: as in a graph that the program replays itself, or in code without ranges",
		           (long long)k->generated_elsewhere_ns);
	if (k->generated_unknown_ns)
		table_warn(first, "the launches of generated kernels of %lld ns are not recorded: which region they belong to, and so the device time of regions, is not known",
		           (long long)k->generated_unknown_ns);
	if ((k->n && put_kernels(k, args, first, e) < 0) || compile_lines_put(k->by_line, args, first, e) < 0)
		return -1;
	return put_works(k, args, false, first, e) < 0 || put_works(k, args, true, first, e) < 0 ? -1 : 0;
}
