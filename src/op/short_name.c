/* The short form of one kernel's name. */
#include "op/short_name.h"

#include "base/demangle.h"
#include "base/search.h"
#include "op/kernels.h"

/* What a C++ function's name is made of, without return type and parameters. */
struct short_name_head {
	struct str space;     /* the name space or class before it; empty = none */
	struct str name, args; /* "f" and "int, 4" of "f<int, 4>" */
	struct str applied;   /* the template arguments of an operator() of it: of a functor that is a kernel's body */
};

/* Without anonymous name spaces, whose brackets are none of templates or parameters. */
static void drop_anonymous(struct buf *out, struct str name)
{
	static const char *const anonymous[] = {"(anonymous namespace)::", "<unnamed>::"};
	for (size_t i = 0; i < name.n;) {
		struct str rest = {name.p + i, name.n - i};
		size_t skip = 0;
		for (size_t k = 0; k < sizeof anonymous / sizeof anonymous[0] && !skip; k++)
			skip = str_starts(rest, str_from(anonymous[k])) ? strlen(anonymous[k]) : 0;
		if (!skip)
			buf_char(out, name.p[i]);
		i += skip ? skip : 1;
	}
}

/* Behind the bracket that closes the one at `i`; s.n when none does. Comparisons stand in round brackets. */
static size_t group_end(struct str s, size_t i)
{
	unsigned angle = 0, round = 0;
	for (; i < s.n; i++) {
		char c = s.p[i];
		if (c == '(' || c == '{' || c == '[')
			round++;
		else if (round && (c == ')' || c == '}' || c == ']'))
			round--;
		else if (!round && c == '<')
			angle++;
		else if (!round && angle && c == '>' && s.p[i - 1] != '-')
			angle--;
		if (!round && !angle)
			return i + 1;
	}
	return s.n;
}

/* Length of "operator()" or "operator ()" at `i`, else 0. */
static size_t call_operator(struct str s, size_t i)
{
	struct str rest = {s.p + i, s.n - i};
	return str_starts(rest, STR("operator()")) ? 10 : str_starts(rest, STR("operator ()")) ? 11 : 0;
}

static struct str slice(struct str s, size_t from, size_t to)
{
	return from < to ? (struct str){s.p + from, to - from} : (struct str){"", 0};
}

static struct str inside(struct str s, size_t open, size_t end)
{
	return slice(s, open + 1, end > open + 1 && s.p[end - 1] == '>' ? end - 1 : end);
}

/* Up to the parameters: the first round bracket outside template arguments. */
static struct short_name_head short_name_head_of(struct str s)
{
	static const char *const inner[] = {"impl", "detail", "internal", "device", "kernel", "kernels"}; /* name spaces that say nothing */
	struct short_name_head h = {.name = STR("")}, before = h;
	size_t begin = 0, i = 0;
	while (i < s.n) {
		size_t op = i == begin ? call_operator(s, i) : 0;
		if (op) {
			bool has_args = i + op < s.n && s.p[i + op] == '<';
			h = before;
			if (has_args)
				h.applied = inside(s, i + op, group_end(s, i + op));
			return h;
		}
		char c = s.p[i];
		if (c == '<') {
			size_t end = group_end(s, i);
			if (!h.name.n) {
				h.name = slice(s, begin, i);
				h.args = inside(s, i, end);
			}
			i = end;
		} else if ((c == '(' || c == '{' || c == '[') && (i > begin || before.name.n)) {
			break;
		} else if (c == ' ' || (c == ':' && i + 1 < s.n && s.p[i + 1] == ':')) {
			if (!h.name.n)
				h.name = slice(s, begin, i);
			before = h;
			h = (struct short_name_head){.space = c == ' ' ? STR("") : STR_IN(h.name, inner) ? h.space : h.name, .name = STR("")};
			i += c == ' ' ? 1 : 2;
			begin = i;
		} else {
			i++;
		}
	}
	if (!h.name.n)
		h.name = slice(s, begin, i);
	return h.name.n ? h : before; /* "f<int> (int)" */
}

/* The next of the arguments before a ',' outside brackets; false when none is left. */
static bool next_argument(struct str *args, struct str *one)
{
	size_t i = 0;
	if (!args->n)
		return false;
	while (i < args->n && args->p[i] != ',')
		i = strchr("<({[", args->p[i]) ? group_end(*args, i) : i + 1;
	*one = slice(*args, 0, i);
	*args = slice(*args, i + 1, args->n);
	while (args->n && args->p[0] == ' ')
		*args = slice(*args, 1, args->n);
	return true;
}

/* Arguments that say how, not what: numbers, types of elements, ways of addressing. */
static bool short_name_is_plain(struct str argument, struct str name)
{
	static const char *const plain[] = {
		"void", "bool", "true", "false", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "half", "float2", "double2",
		"__half", "__half2", "__nv_bfloat16", "__hip_bfloat16", "Half", "BFloat16", "complex", "const", "Array", "array", "OpaqueType",
		"OffsetCalculator", "TrivialOffsetCalculator", "LoadWithCast", "LoadWithoutCast", "StoreWithCast", "StoreWithoutCast",
		"TensorListMetadata", "TensorListScalarListMetadata", "FusedOptimizerTensorListMetadata", "int8_t", "uint8_t", "int16_t", "int32_t",
		"uint32_t", "int64_t", "uint64_t", "size_t", "half_t", "bfloat16_t", "tuple", "nullptr",
	};
	char first = argument.n ? argument.p[0] : '0', last = argument.n ? argument.p[argument.n - 1] : '0';
	bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_';
	return !letter || last == '*' || last == '&' || !name.n || STR_IN(name, plain);
}

/* The first of the template arguments that says what is done, with what only carries it taken off; empty = none. Names are input: what is nested
 * deeper than names are is not looked at. */
static struct str functor_of(struct str args, unsigned depth)
{
	enum { DEEPEST = 8 };
	static const char *const wrapper[] = {
		"gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel", "gpu_kernel_with_index", "ReduceOp", "func_wrapper_t", "BinaryFunctor",
		"AUnaryFunctor", "BUnaryFunctor", "gpu_kernel_with_scalars", "gpu_kernel", "opmath_gpu_kernel_with_scalars", "opmath_symmetric_gpu_kernel_with_scalars", "ParallelForAgent",
	};
	struct str best = STR(""), argument;
	while (depth < DEEPEST && next_argument(&args, &argument)) {
		struct short_name_head h = short_name_head_of(argument);
		if (short_name_is_plain(argument, h.name))
			continue;
		struct str applied = h.applied.n ? functor_of(h.applied, depth + 1) : STR("");
		if (applied.n)
			return applied;
		best = h.name;
		if (!STR_IN(h.name, wrapper) || !h.args.n)
			break;
		args = h.args;
		depth++;
	}
	return best;
}

/* Functions that are but the shell of a functor, and what they are called then. NULL = by their own name. */
static const struct shell {
	const char *name, *shown;
} shells[] = {
	{"vectorized_elementwise_kernel", "elementwise"}, {"unrolled_elementwise_kernel", "elementwise"}, {"elementwise_kernel", "elementwise"},
	{"elementwise_kernel_manual_unroll", "elementwise"}, {"elementwise_kernel_with_index", "elementwise"},
	{"vectorized_templated_elementwise_kernel", "elementwise"}, {"unrolled_elementwise_kernel_for_multi_outputs", "elementwise"},
	{"index_elementwise_kernel", "elementwise"},
	{"kernelPointwiseApply1", "elementwise"}, {"kernelPointwiseApply2", "elementwise"}, {"kernelPointwiseApply3", "elementwise"},
	{"_scatter_gather_elementwise_kernel", "scatter_gather"}, {"reduce_kernel", "reduce"}, {"multi_tensor_apply_kernel", "multi_tensor_apply"},
	{"Kernel", NULL}, {"Kernel2", NULL}, {"device_kernel", NULL}, {"DeviceKernel", NULL}, {"_kernel_agent", NULL}, {"trampoline_kernel", NULL},
	{"kentry", NULL}, {"bare_kernel", NULL}, {"for_each_kernel", NULL}, {"static_kernel", NULL},
};

static const struct shell *shell_of(struct str name)
{
	return ELEMENT_WHERE(i, shells, sizeof shells / sizeof shells[0], str_eqc(name, shells[i].name));
}

static size_t short_name_digits(struct str s, size_t i)
{
	size_t n = 0;
	while (i + n < s.n && is_digit(s.p[i + n]))
		n++;
	return n;
}

/* "128x256x64" of "..._128x256x64_..." and of "..._128x256_64x3_...", where 3 is how many stages there are. Returns whether there is one. */
static bool short_name_put_tile(struct buf *out, struct str s)
{
	for (size_t i = 1; i < s.n; i++) {
		struct str before = {s.p, i};
		size_t a = short_name_digits(s, i), at = i + a + 1;
		bool starts = s.p[i - 1] == '_' || str_ends(before, STR("tilesize")) || str_ends(before, STR("MT")) || str_ends(before, STR("bt"));
		size_t b = starts && a && at < s.n && s.p[at - 1] == 'x' ? short_name_digits(s, at) : 0;
		if (!b)
			continue;
		buf_put(out, s.p + i, a + 1 + b);
		at += b;
		bool third = at < s.n && s.p[at] == 'x';
		size_t k = at < s.n && (third || s.p[at] == '_') ? short_name_digits(s, at + 1) : 0;
		if (k && (third || (at + 1 + k < s.n && s.p[at + 1 + k] == 'x'))) {
			buf_char(out, 'x');
			buf_put(out, s.p + at + 1, k);
		}
		return true;
	}
	return false;
}

static void short_name_put_word(struct buf *out, const char *word)
{
	if (*word)
		buf_printf(out, " %s", word);
}

/* As people who read kernels write it. A float32 product on Tensor Cores is one in TF32; AMD's matrix cores have float32 itself. */
static const char *short_name_type_of(struct kernel_info k)
{
	static const struct {
		const char *name, *shown;
	} types[] = {{"bfloat16", "bf16"}, {"float16", "fp16"}, {"float64", "fp64"}};
	const char *name = k.dtype ? dtype_name(k.dtype) : "";
	if (strcmp(name, "float32") == 0)
		return k.tensor_core == TRI_YES && !str_starts(str_from(k.arch), STR("gfx")) ? "tf32" : "fp32";
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strcmp(name, types[i].name) == 0)
			return types[i].shown;
	return name;
}

/* Names that spell all settings of a product of matrices or a convolution out. Returns whether it was one. */
static bool put_product(struct buf *out, struct str name, struct str full)
{
	static const struct {
		const char *prefix, *library;
	} libraries[] = {{"cutlass", "cutlass"}, {"Cijk_", "tensile"}, {"igemm_", "igemm"}, {"sm70_xmma_", "xmma"}, {"sm75_xmma_", "xmma"}, {"sm80_xmma_", "xmma"},
	                 {"sm86_xmma_", "xmma"}, {"sm89_xmma_", "xmma"}, {"sm90_xmma_", "xmma"}, {"sm100_xmma_", "xmma"}};
	static const char *const directions[] = {"fprop", "dgrad", "wgrad", "_fwd_", "_bwd_", "_wrw_"};
	static const char *const shown[] = {"fprop", "dgrad", "wgrad", "fprop", "dgrad", "wgrad"};
	const char *library = NULL;
	for (size_t i = 0; i < sizeof libraries / sizeof libraries[0] && !library; i++)
		if (str_starts(name, str_from(libraries[i].prefix)))
			library = libraries[i].library;
	struct kernel_info k = {0};
	if (library)
		k = kernel_classify(full, NULL); /* the text tells what it spells, whatever the user takes it for */
	struct buf tile = {0};
	bool known = (k.class == KERNEL_GEMM || k.class == KERNEL_CONV) && short_name_put_tile(&tile, name);
	if (known) {
		buf_cstr(out, library);
		short_name_put_word(out, kernel_class_name[k.class]);
		for (size_t i = 0; i < sizeof directions / sizeof directions[0] && k.class == KERNEL_CONV; i++)
			short_name_put_word(out, str_has(name, str_from(directions[i])) ? shown[i] : "");
		short_name_put_word(out, short_name_type_of(k));
		buf_printf(out, " " STR_FMT, STR_ARG(buf_view(&tile)));
		short_name_put_word(out, k.arch);
	}
	buf_release(&tile);
	return known;
}

/* A name that says nothing without what it belongs to. */
static bool is_vague(struct str name)
{
	static const char *const vague[] = {"kernel", "Kernel", "globalKernel", "global_kernel", "run", "main", "launch", "operator()"};
	return STR_IN(name, vague);
}

static void short_name_put_function(struct buf *out, const struct short_name_head *h, struct str full)
{
	const struct shell *shell = shell_of(h->name);
	bool lambda = str_has(h->args, STR("lambda"));
	struct str functor = shell || lambda ? functor_of(h->args, 0) : STR("");
	if (put_product(out, shell && functor.n ? functor : h->name, full))
		return;
	if (shell && shell->shown)
		buf_cstr(out, shell->shown);
	else if (h->space.n && is_vague(h->name))
		buf_printf(out, STR_FMT "::" STR_FMT, STR_ARG(h->space), STR_ARG(h->name));
	else
		buf_str(out, h->name);
	if (functor.n && !(shell && !shell->shown && is_vague(functor)))
		buf_printf(out, "<" STR_FMT ">", STR_ARG(functor));
}

/* Whether it has the brackets of a C++ signature; other names may hold blanks and anything else. */
static bool is_signature(struct str s)
{
	return s.n && (memchr(s.p, '<', s.n) || memchr(s.p, '(', s.n) || str_has(s, STR("::")));
}

static struct str without_clone(struct str s)
{
	static const char *const tails[] = {" [clone .kd]", ".kd"};
	for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
		if (str_ends(s, str_from(tails[i])) && s.n > strlen(tails[i]))
			s.n -= strlen(tails[i]);
	return s;
}

/* Names are input: what stands behind so many bytes does not make a name shorter. */
enum { LONGEST = 4096 };

/* The function of a mangled name that the demangler does not know, as those with types newer than it: the last of the names that it begins with,
 * "_ZN5aiter24add_rmsnorm_quant_kernelI..." is add_rmsnorm_quant_kernel. Empty: the name is not mangled so. */
static struct str short_name_of_mangled(struct str s)
{
	struct str last = {0};
	bool nested;
	if (!str_skip(&s, STR("_Z")))
		return last;
	nested = str_skip(&s, STR("N"));
	while (s.n && s.p[0] >= '0' && s.p[0] <= '9' && (nested || !last.n)) {
		size_t digits = short_name_digits(s, 0), length = 0;
		for (size_t i = 0; i < digits && length <= s.n; i++)
			length = 10 * length + (size_t)(s.p[i] - '0');
		if (!length || length > s.n - digits)
			return (struct str){0};
		last = (struct str){s.p + digits, length};
		s = (struct str){last.p + length, s.n - digits - length};
	}
	return last;
}

void kernel_short_name(struct buf *out, struct str name)
{
	struct buf readable = {0}, plain = {0};
	struct str full = without_clone(demangle(name, &readable) == DEMANGLE_DONE ? buf_view(&readable) : name);
	full.n = full.n < LONGEST ? full.n : LONGEST;
	size_t before = out->n;
	if (is_signature(full)) {
		drop_anonymous(&plain, full);
		struct short_name_head h = plain.n ? short_name_head_of(buf_view(&plain)) : (struct short_name_head){.name = STR("")};
		if (h.name.n)
			short_name_put_function(out, &h, full);
	} else if (!put_product(out, full, full)) {
		struct str mangled = short_name_of_mangled(full);
		buf_str(out, mangled.n ? mangled : full);
	}
	if (out->n == before)
		buf_str(out, full);
	buf_release(&readable);
	buf_release(&plain);
}
