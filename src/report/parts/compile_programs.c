#include "report/parts/compile_programs.h"

#include "analysis/analysis.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"

enum {
	PROGRAMS_NAME, PROGRAMS_COMPILER, PROGRAMS_ID, PROGRAMS_CALLS, PROGRAMS_NS, PROGRAMS_PCT, PROGRAMS_HOST, PROGRAMS_COMPILES, PROGRAMS_COMPILE_NS
};

const struct section compile_programs_section = {.name = "programs", .title = "Programs of XLA and TensorRT", COLUMNS(
	[PROGRAMS_NAME] = {COLUMN(TEXT, "program", "Program", "XLA: the HLO module; TensorRT: the call that runs an engine, and the first layer of the engine, whose name is not "
	                          "recorded; empty = its range is not recorded", .flags = COLUMN_ANSWER | COLUMN_WIDE)},
	[PROGRAMS_COMPILER] = {COLUMN(TEXT, "compiler", "Compiler", "XLA or TensorRT", .flags = COLUMN_GROUP)},
	[PROGRAMS_ID] = {COLUMN(TEXT, "program_id", "Id", "number by which XLA tells modules of one name apart; empty = not recorded", .flags = COLUMN_GROUP)},
	[PROGRAMS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran; empty = its range is not recorded", .flags = COLUMN_ANSWER)},
	[PROGRAMS_NS] = {COLUMN(NS, "device_ns", "Device time", "sum of the durations of what it launched", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[PROGRAMS_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "device time / that of all device work"), .when = WHEN_DEVICE},
	[PROGRAMS_HOST] = {COLUMN(NS, "host_ns", "Host time", "time of the host in its calls, without programs that run inside", .flags = COLUMN_ANSWER)},
	[PROGRAMS_COMPILES] = {COLUMN(COUNT, "compiles", "Compiles", "how often XLA compiled a module of this name and number in the recording", .flags = COLUMN_MINOR)},
	[PROGRAMS_COMPILE_NS] = {COLUMN(NS, "compiler_ns", "Compile time", "time of the host in these compilations", .flags = COLUMN_MINOR)},
)};

enum { OPS_PROGRAM, OPS_ID, OPS_OP, OPS_CALLS, OPS_WORKS, OPS_NS, OPS_PCT, OPS_HOST };

const struct section compile_program_ops_section = {.name = "program_ops", .title = "Ops of these programs", COLUMNS(
	[OPS_PROGRAM] = {COLUMN(TEXT, "program", "Program", "as above", .flags = COLUMN_WIDE)},
	[OPS_ID] = {COLUMN(TEXT, "program_id", "Id", "as above", .flags = COLUMN_DETAIL)},
	[OPS_OP] = {COLUMN(TEXT, "op", "Op", "XLA: the HLO op whose thunk ran; TensorRT: the layer, which may fuse several. The innermost one that has a range counts; empty = launched "
	                   "outside of such ranges",
	                   .flags = COLUMN_ANSWER | COLUMN_WIDE)},
	[OPS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often it ran; empty = launched outside of such ranges", .flags = COLUMN_ANSWER)},
	[OPS_WORKS] = {COLUMN(COUNT, "count", "Pieces of work", "kernels, copies and sets that it launched"), .when = WHEN_DEVICE},
	[OPS_NS] = {COLUMN(NS, "device_ns", "Device time", "sum of the durations of this work", .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[OPS_PCT] = {COLUMN(PERCENT, "device_pct", "Device %", "device time / that of all device work"), .when = WHEN_DEVICE},
	[OPS_HOST] = {COLUMN(NS, "host_ns", "Host time", "time of the host in it, without ops inside", .flags = COLUMN_ANSWER)},
)};

enum program_compiler { PROGRAM_XLA, PROGRAM_TENSORRT, PROGRAM_COMPILERS };
static const char *const program_compiler_name[PROGRAM_COMPILERS] = {[PROGRAM_XLA] = "XLA", [PROGRAM_TENSORRT] = "TensorRT"};

/* What a range is: a run of a program, an op or layer, a compilation. */
enum program_class { RANGE_NONE, RANGE_RUN, RANGE_OP, RANGE_COMPILE };
struct program_range {
	enum program_class class;
	enum program_compiler compiler;
};

struct program {
	struct str name, id;
	enum program_compiler compiler;
	uint64_t calls, compiles;
	int64_t device_ns, host_ns, compiler_ns;
};

struct program_op {
	uint32_t program;
	struct str name;         /* "" = launched outside of ranges of ops */
	uint64_t calls, works;   /* works: pieces of device work */
	int64_t device_ns, host_ns;
};

struct compile_programs {
	const struct profile *p;
	struct arena names;
	struct intern keys, op_keys; /* id i + 1 = v[i], op[i] */
	struct program *v;
	struct program_op *op;
	uint32_t *run;           /* by span: the innermost run around it; ROW_NONE */
	uint32_t *inner;         /* by span: the innermost op around it within that run; ROW_NONE */
	uint32_t *first;         /* by run, a span: its first op; ROW_NONE */
	uint32_t *of;            /* by run: its program, of v; by op: place in `op` */
	uint32_t n, cap, n_ops, cap_ops;
	int64_t all_ns, by_compiler[PROGRAM_COMPILERS]; /* device time: of all work; of the programs of each */
	bool no_layers;          /* engines ran whose layers have no ranges */
};

static struct str program_arg(const struct profile *p, uint32_t span, const char *name)
{
	struct str value;
	return p->span.args[span] && profile_arg_named(p, p->span.args[span], str_from(name), &value) ? value : (struct str){"", 0};
}

static struct program_range range_of(const struct profile *p, uint32_t i)
{
	const struct str domain = profile_cat(p, p->span.cat[i]), name = profile_str(p, p->span.name[i]);
	if (p->span.kind[i] != SPAN_OP)
		return (struct program_range){RANGE_NONE, PROGRAM_XLA};
	if (str_eqc(domain, "TSL")) {
		if (profile_arg_id(p, p->span.args[i], ARG_HLO_OP))
			return (struct program_range){str_starts(name, STR("Xla")) ? RANGE_NONE : RANGE_OP, PROGRAM_XLA};
		return (struct program_range){str_eqc(name, "XlaModule") ? RANGE_RUN : str_eqc(name, "XlaCompile") ? RANGE_COMPILE : RANGE_NONE, PROGRAM_XLA};
	}
	if (str_eqc(domain, "TensorRT"))
		return (struct program_range){str_starts(name, STR("ExecutionContext::")) || str_starts(name, STR("IExecutionContext::")) ? RANGE_RUN : RANGE_OP, PROGRAM_TENSORRT};
	return (struct program_range){str_eqc(name, "tensorrt::execute_engine") ? RANGE_RUN : RANGE_NONE, PROGRAM_TENSORRT};
}

/* Whether a run of TensorRT lies in another one: torch's op around TensorRT's own call. They are one run. */
static bool programs_is_same_run(const struct compile_programs *x, struct program_range r, uint32_t around)
{
	return r.compiler == PROGRAM_TENSORRT && around != ROW_NONE && range_of(x->p, around).compiler == PROGRAM_TENSORRT;
}

/* Fills run, inner and first. TensorRT also has ranges of building and loading, so that its layers count only within runs. */
static void programs_place(struct compile_programs *x)
{
	const struct profile *p = x->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (!span_nests(p->span.kind[i]))
			continue;
		const uint32_t up = p->span.parent[i];
		const struct program_range r = range_of(p, i);
		x->run[i] = up == ROW_NONE ? ROW_NONE : x->run[up];
		x->inner[i] = up == ROW_NONE ? ROW_NONE : x->inner[up];
		if (r.class == RANGE_RUN && !programs_is_same_run(x, r, x->run[i])) {
			x->run[i] = i;
			x->inner[i] = ROW_NONE;
		} else if (r.class == RANGE_OP && (x->run[i] != ROW_NONE || r.compiler == PROGRAM_XLA)) {
			x->inner[i] = i;
			if (x->run[i] != ROW_NONE && x->first[x->run[i]] == ROW_NONE)
				x->first[x->run[i]] = i;
		}
	}
}

/* The program of this name and number, of v; a new one for the first of them. */
static uint32_t program_put(struct compile_programs *x, enum program_compiler compiler, struct str name, struct str id)
{
	struct buf b = {0};
	buf_printf(&b, "%d ", (int)compiler);
	buf_str(&b, name);
	buf_char(&b, '\n');
	buf_str(&b, id);
	const uint32_t i = intern_str(&x->keys, buf_view(&b)) - 1;
	if (i == x->n)
		MEM_PUSH(x->v, x->n, x->cap, (struct program){.name = name, .id = id, .compiler = compiler});
	buf_release(&b);
	return i;
}

static uint32_t program_of_run(struct compile_programs *x, uint32_t run, enum program_compiler compiler)
{
	const struct profile *p = x->p;
	if (compiler == PROGRAM_XLA)
		return program_put(x, compiler, program_arg(p, run, "hlo_module"), program_arg(p, run, "program_id"));
	if (x->first[run] == ROW_NONE) {
		x->no_layers = true;
		return program_put(x, compiler, profile_str(p, p->span.name[run]), STR(""));
	}
	return program_put(x, compiler, arena_printf(&x->names, STR_FMT ": " STR_FMT, STR_ARG(profile_str(p, p->span.name[run])), STR_ARG(profile_str(p, p->span.name[x->first[run]]))), STR(""));
}

/* The op of a program, in `op`. span: of the op; ROW_NONE = for work that the program launched outside of ranges of ops. */
static uint32_t program_op_put(struct compile_programs *x, uint32_t program, uint32_t span)
{
	const uint32_t key[] = {program, span == ROW_NONE ? 0 : x->p->span.name[span]};
	const uint32_t i = intern_put(&x->op_keys, (const char *)key, sizeof key) - 1;
	if (i == x->n_ops)
		MEM_PUSH(x->op, x->n_ops, x->cap_ops, (struct program_op){.program = program, .name = profile_str(x->p, key[1])});
	return i;
}

static void programs_add_run(struct compile_programs *x, uint32_t i, enum program_compiler compiler)
{
	const struct profile *p = x->p;
	const uint32_t up = p->span.parent[i], around = up == ROW_NONE ? ROW_NONE : x->run[up];
	x->of[i] = program_of_run(x, i, compiler);
	struct program *v = &x->v[x->of[i]];
	v->calls++;
	v->host_ns += span_host_ns(p, i);
	if (around != ROW_NONE)
		x->v[x->of[around]].host_ns -= span_host_ns(p, i);
}

static void programs_add_op(struct compile_programs *x, uint32_t i)
{
	const struct profile *p = x->p;
	const uint32_t up = p->span.parent[i], around = up == ROW_NONE ? ROW_NONE : x->inner[up];
	const uint32_t program = x->run[i] != ROW_NONE ? x->of[x->run[i]] : program_put(x, PROGRAM_XLA, program_arg(p, i, "hlo_module"), program_arg(p, i, "program_id"));
	x->of[i] = program_op_put(x, program, i);
	struct program_op *v = &x->op[x->of[i]];
	v->calls++;
	v->host_ns += span_host_ns(p, i);
	if (around != ROW_NONE)
		x->op[x->of[around]].host_ns -= span_host_ns(p, i);
}

static void programs_add_ranges(struct compile_programs *x)
{
	const struct profile *p = x->p;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		if (x->run[i] == i)
			programs_add_run(x, i, range_of(p, i).compiler);
		else if (x->inner[i] == i)
			programs_add_op(x, i);
		else if (range_of(p, i).class == RANGE_COMPILE) {
			const uint32_t program = program_put(x, PROGRAM_XLA, program_arg(p, i, "module"), program_arg(p, i, "program_id"));
			struct program *v = &x->v[program];
			v->compiles++;
			v->compiler_ns += span_host_ns(p, i);
		}
	}
}

static void programs_add_work(struct compile_programs *x, uint32_t g)
{
	const struct profile *p = x->p;
	const uint32_t at = p->gpu_op.call[g] != ROW_NONE ? p->gpu_op.call[g] : p->gpu_op.op[g];
	const int64_t ns = p->gpu_op.dur_ns[g];
	x->all_ns += ns;
	if (at == ROW_NONE || (x->run[at] == ROW_NONE && x->inner[at] == ROW_NONE))
		return;
	const uint32_t op = x->inner[at] != ROW_NONE ? x->of[x->inner[at]] : program_op_put(x, x->of[x->run[at]], ROW_NONE);
	x->op[op].works++;
	x->op[op].device_ns += ns;
	x->v[x->op[op].program].device_ns += ns;
	x->by_compiler[x->v[x->op[op].program].compiler] += ns;
}

struct compile_programs *compile_programs_new(const struct profile *p)
{
	struct compile_programs *x = NEW(struct compile_programs);
	*x = (struct compile_programs){.p = p, .run = mem_filled(p->span.rows.n, ROW_NONE), .inner = mem_filled(p->span.rows.n, ROW_NONE),
	                               .first = mem_filled(p->span.rows.n, ROW_NONE), .of = mem_filled(p->span.rows.n, ROW_NONE)};
	intern_init(&x->keys);
	intern_init(&x->op_keys);
	programs_place(x);
	programs_add_ranges(x);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		programs_add_work(x, g);
	if (x->n)
		return x;
	compile_programs_free(x);
	return NULL;
}

void compile_programs_free(struct compile_programs *x)
{
	if (!x)
		return;
	arena_release(&x->names);
	intern_release(&x->keys);
	intern_release(&x->op_keys);
	mem_free(x->v);
	mem_free(x->op);
	mem_free(x->run);
	mem_free(x->inner);
	mem_free(x->first);
	mem_free(x->of);
	mem_free(x);
}

static void program_put_row(const struct compile_programs *x, const struct program *v, struct table *t)
{
	table_row(t);
	if (v->name.n)
		table_set_str_copy(t, PROGRAMS_NAME, v->name);
	table_set_str(t, PROGRAMS_COMPILER, str_from(program_compiler_name[v->compiler]));
	if (v->id.n)
		table_set_str(t, PROGRAMS_ID, v->id);
	if (v->calls) {
		table_set_i64(t, PROGRAMS_CALLS, (int64_t)v->calls);
		table_set_i64(t, PROGRAMS_HOST, v->host_ns);
	}
	table_set_i64(t, PROGRAMS_NS, v->device_ns);
	table_set_f64(t, PROGRAMS_PCT, percent((double)v->device_ns, (double)x->all_ns));
	if (v->compiler == PROGRAM_XLA) {
		table_set_i64(t, PROGRAMS_COMPILES, (int64_t)v->compiles);
		table_set_i64(t, PROGRAMS_COMPILE_NS, v->compiler_ns);
	}
}

static void program_op_put_row(const struct compile_programs *x, const struct program_op *v, struct table *t)
{
	const struct program *of = &x->v[v->program];
	table_row(t);
	if (of->name.n)
		table_set_str_copy(t, OPS_PROGRAM, of->name);
	if (of->id.n)
		table_set_str(t, OPS_ID, of->id);
	if (v->name.n)
		table_set_str(t, OPS_OP, v->name);
	if (v->calls) {
		table_set_i64(t, OPS_CALLS, (int64_t)v->calls);
		table_set_i64(t, OPS_HOST, v->host_ns);
	}
	table_set_i64(t, OPS_WORKS, (int64_t)v->works);
	table_set_i64(t, OPS_NS, v->device_ns);
	table_set_f64(t, OPS_PCT, percent((double)v->device_ns, (double)x->all_ns));
}

int compile_programs_put(const struct compile_programs *x, const struct report_args *args, struct table *first, struct err *e)
{
	const unsigned when = x->p->gpu_op.rows.n ? WHEN_DEVICE : 0;
	const struct str by = when ? STR("device_ns") : STR("host_ns");
	struct table *t = section_add(&compile_programs_section, args, when, first);
	for (uint32_t i = 0; i < x->n; i++)
		program_put_row(x, &x->v[i], t);
	if (when)
		table_note(t, "device work %lld ns = of XLA's programs %lld + of TensorRT's engines %lld + other %lld", (long long)x->all_ns, (long long)x->by_compiler[PROGRAM_XLA],
		           (long long)x->by_compiler[PROGRAM_TENSORRT], (long long)(x->all_ns - x->by_compiler[PROGRAM_XLA] - x->by_compiler[PROGRAM_TENSORRT]));
	if (x->no_layers)
		table_note(t, "layers of some engines of TensorRT have no ranges, and these engines are not told apart: build with profilingVerbosity DETAILED or "
		           "LAYER_NAMES_ONLY, and record NVTX");
	if (table_sort(t, by, true, e) < 0)
		return -1;
	if (!x->n_ops)
		return 0;
	struct table *ops = section_add(&compile_program_ops_section, args, when, first);
	for (uint32_t i = 0; i < x->n_ops; i++)
		program_op_put_row(x, &x->op[i], ops);
	return table_sort(ops, by, true, e);
}
