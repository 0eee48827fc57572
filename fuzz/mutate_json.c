/* Mutates JSON, whole or cut, and Python literals, as a list of values: members and events are repeated, deleted, exchanged and moved; keys become
 * other keys that a reader knows, numbers become edges of their range or another event's number, so that ids meet or miss each other. */
#include "mutate.h"

#include "base/buf.h"

#include <stdlib.h>

enum { MAX_VALUES = 1 << 13, MAX_OPEN = 64, NONE = UINT32_MAX };

enum value_type { OBJECT, ARRAY, STRING, WORD /* a number, true, null, ... */ };

struct value {
	uint32_t begin, end;   /* its text */
	uint32_t key;          /* where its key begins; NONE = it has none */
	uint32_t key_end;
	uint32_t in;           /* the container; NONE = it stands at the top */
	enum value_type type;
};

struct text {
	char *p;
	size_t n, max;
	uint64_t random;
	struct value *v;
	uint32_t n_values;
};

static uint32_t draw(struct text *t, uint32_t below)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(t->random >> 33) % below;
}

/* The index behind the token that begins at p[i]. */
static size_t token_end(const char *p, size_t n, size_t i)
{
	char quote = p[i];
	if (quote != '"' && quote != '\'') {
		while (i < n && !strchr(",:{}[]() \t\r\n\"'", p[i]))
			i++;
		return i;
	}
	for (i++; i < n && p[i] != quote; i++)
		i += p[i] == '\\';
	return i < n ? i + 1 : n;
}

/* Finds the values of the text; whatever is damaged in it, each is a part of it. */
static void scan(struct text *t)
{
	uint32_t open[MAX_OPEN], depth = 0, key = NONE, key_end = 0;
	t->n_values = 0;
	for (size_t i = 0; i < t->n && t->n_values < MAX_VALUES;) {
		char c = t->p[i];
		if (c && strchr("}])", c)) {
			if (depth)
				t->v[open[--depth]].end = (uint32_t)++i;
			else
				i++;
			continue;
		}
		if (c == ':' && t->n_values && t->v[t->n_values - 1].type == STRING && t->v[t->n_values - 1].key == NONE) {
			key = t->v[--t->n_values].begin;
			key_end = t->v[t->n_values].end;
		}
		if (!c || strchr(",: \t\r\n", c)) {
			i++;
			continue;
		}
		struct value *v = &t->v[t->n_values];
		bool opens = strchr("{[(", c) != NULL;
		size_t end = opens ? t->n : token_end(t->p, t->n, i);
		*v = (struct value){(uint32_t)i, (uint32_t)end, key, key_end, depth ? open[depth - 1] : NONE,
		                    c == '{' ? OBJECT : opens ? ARRAY : c == '"' || c == '\'' ? STRING : WORD};
		key = NONE;
		if (opens && depth < MAX_OPEN)
			open[depth++] = t->n_values;
		t->n_values++;
		i = opens ? i + 1 : end > i ? end : i + 1;
	}
}

/* p[from .. to) becomes `with`, as far as there is room. */
static void put(struct text *t, size_t from, size_t to, struct str with)
{
	if (t->n - (to - from) + with.n > t->max)
		return;
	memmove(t->p + from + with.n, t->p + to, t->n - to);
	if (with.n)
		memcpy(t->p + from, with.p, with.n);
	t->n = t->n - (to - from) + with.n;
}

/* The same of a piece of the text itself. */
static void put_piece(struct text *t, size_t from, size_t to, size_t begin, size_t end)
{
	char *copy = malloc(end - begin + 1);
	memcpy(copy, t->p + begin, end - begin);
	put(t, from, to, (struct str){copy, end - begin});
	free(copy);
}

static bool is_number(const struct text *t, const struct value *v)
{
	char c = t->p[v->begin];
	return v->type == WORD && ((c >= '0' && c <= '9') || c == '-');
}

static bool is_event(const struct text *t, const struct value *v)
{
	return v->type == OBJECT && v->in != NONE && t->v[v->in].type == ARRAY;
}

static bool is_any(const struct text *t, const struct value *v)
{
	return true;
}

static bool is_string(const struct text *t, const struct value *v)
{
	return v->type == STRING;
}

static bool has_key(const struct text *t, const struct value *v)
{
	return v->key != NONE;
}

static bool is_container(const struct text *t, const struct value *v)
{
	return v->type == OBJECT || v->type == ARRAY;
}

/* One of this kind, by chance; NULL = none was met. */
static const struct value *pick(struct text *t, bool (*is)(const struct text *, const struct value *))
{
	for (uint32_t i = 0, at = draw(t, t->n_values); i < t->n_values; i++) {
		const struct value *v = &t->v[(at + i) % t->n_values];
		if (is(t, v))
			return v;
	}
	return NULL;
}

static const struct value *pick_element(struct text *t)
{
	const struct value *v = draw(t, 3) ? pick(t, is_event) : NULL;
	return v ? v : pick(t, is_any);
}

static size_t whole_begin(const struct value *v)
{
	return v->key == NONE ? v->begin : v->key;
}

static void put_behind(struct text *t, const struct value *at, struct str what)
{
	struct buf b = {0};
	bool line = at->in == NONE;
	buf_char(&b, line ? '\n' : ',');
	buf_str(&b, what);
	put(t, at->end, at->end, buf_view(&b));
	buf_release(&b);
}

static void repeat(struct text *t)
{
	const struct value *v = pick_element(t);
	struct buf b = {0};
	for (uint32_t i = draw(t, 8) ? 1 : 2 + draw(t, 30); i; i--) {
		buf_str(&b, (struct str){t->p + whole_begin(v), v->end - whole_begin(v)});
		if (i > 1)
			buf_char(&b, ',');
	}
	put_behind(t, v, buf_view(&b));
	buf_release(&b);
}

static void delete(struct text *t)
{
	const struct value *v = pick_element(t);
	size_t end = v->end;
	while (end < t->n && strchr(" \t\r\n", t->p[end]) && t->p[end])
		end++;
	put(t, whole_begin(v), end < t->n && t->p[end] == ',' ? end + 1 : v->end, STR(""));
}

/* The values change places, not their keys. */
static void exchange(struct text *t)
{
	bool events = draw(t, 2);
	const struct value *a = pick(t, events ? is_event : is_any), *b = pick(t, events ? is_event : is_any);
	if (!a || !b || a->begin == b->begin)
		return;
	if (a->begin > b->begin) {
		const struct value *c = a;
		a = b;
		b = c;
	}
	if (b->begin < a->end) {
		put_piece(t, a->begin, a->end, b->begin, b->end); /* one lies in the other, and takes its place */
		return;
	}
	struct buf first = {0};
	buf_str(&first, (struct str){t->p + a->begin, a->end - a->begin});
	size_t begin = b->begin, end = b->end, from = a->begin, to = a->end;
	char *second = malloc(end - begin);
	memcpy(second, t->p + begin, end - begin);
	put(t, begin, end, buf_view(&first)); /* the later one first: what stands before it keeps its place */
	put(t, from, to, (struct str){second, end - begin});
	free(second);
	buf_release(&first);
}

/* A value, or a whole event, becomes what another is. */
static void copy_value(struct text *t)
{
	const struct value *to = pick(t, is_any), *from = pick(t, draw(t, 2) ? has_key : is_any);
	if (from)
		put_piece(t, to->begin, to->end, from->begin, from->end);
}

static void move_into(struct text *t)
{
	const struct value *to = pick(t, is_container), *what = pick_element(t);
	if (!to)
		return;
	struct buf b = {0};
	buf_str(&b, (struct str){t->p + whole_begin(what), what->end - whole_begin(what)});
	if (to->end > to->begin + 2)
		buf_char(&b, ',');
	put(t, to->begin + 1, to->begin + 1, buf_view(&b));
	buf_release(&b);
}

static const char *const edges[] = {
	"0", "-0", "1", "-1", "2", "0.001", "0.0005", "-0.001", "127", "255", "256", "32767", "65535", "65536", "2147483647", "2147483648", "-2147483648",
	"4294967295", "4294967296", "9007199254740993", "9223372036854775.807", "9223372036854775.808", "9223372036854775807", "9223372036854775808",
	"-9223372036854775808", "18446744073709551615", "18446744073709551616", "1e3", "1e18", "1e19", "-1e19", "1e308", "1e400", "-1e308", "1e-308",
	"1.7976931348623157e308", "0x7f", "1700000000000000.123", "123456789012345678901234567890", "NaN", "Infinity", "-Infinity", "null", "true",
	"\"0\"", "\"-1\"", "\"9223372036854775807\"", "\"stream 7\"", "\"\"", "[]", "{}", "[0,0,0]", "[2147483647,2147483647,2147483647]",
};

static const char *const keys[] = {
#define ARG(text, ...) text,
#define ALIAS ARG
#define DROP ARG
#include "input/kineto/kineto_args.def"
#undef ARG
#undef ALIAS
#undef DROP
	"ph", "cat", "name", "ts", "dur", "pid", "tid", "id", "bp", "s", "args", "traceEvents", "deviceProperties", "schemaVersion", "distributedInfo", "displayTimeUnit",
	"baseTimeNanoseconds", "cuda_runtime_version", "rank", "world_size", "pg_config", "ranks", "backend", "traceName", "labels", "sort_index",
	"computeMajor", "computeMinor", "numSms", "maxThreadsPerMultiprocessor", "totalGlobalMem", "warpSize", "sharedMemPerBlock", "regsPerMultiprocessor",
	"Input Dims", "Input type", "Input Strides", "Concrete Inputs", "Call stack", "Module Hierarchy", "Collective name", "In msg nelems", "Out msg nelems",
	"In split size", "Out split size", "Group size", "dtype", "Process Group Name", "Process Group Description", "Process Group Ranks", "Src Rank", "Dst Rank",
	"Rank", "Seq", "kernel_file", "kernel_hash", "kernel_backend", "num_warps", "grid", "stream", "wait_on_stream", "wait_on_cuda_event_id",
	"flow", "src", "dst", "context", "op count", "fwd_thread", "is_async",
	"kShortName", "kLongName", "kDuration", "layer", "trace", "reprMarkers", "marker", "seqMarker", "seqId", "subSeqId", "altSeqId", "dir", "mod", "op",
};

static const char *const words[] = {
	"X", "B", "E", "i", "I", "s", "f", "t", "b", "e", "n", "M", "C", "P", "O", "R",
	"kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "user_annotation", "gpu_user_annotation", "cuda_runtime", "cuda_driver", "cuda_sync", "python_function",
	"ac2g", "fwdbwd", "cpu_instant_event", "Trace", "overhead", "hpu_op", "mtia_ccp_events", "Operator", "Kernel", "Memcpy", "Runtime",
	"process_name", "thread_name", "process_labels", "process_sort_index", "thread_sort_index", "[memory]", "[OutOfMemory]", "Record Window End", "Iteration Start: PyTorch Profiler",
	"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#99999999999999999999", "nn.Module: Linear_0", "nn.Module: Linear_1", "Optimizer.step#SGD.step",
	"Optimizer.zero_grad#SGD.zero_grad", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "autograd::engine::evaluate_function: MmBackward0",
	"aten::mm", "aten::linear", "aten::convolution", "aten::add_", "aten::item", "aten::to", "aten::_scaled_dot_product_flash_attention", "record_param_comms",
	"c10d::allreduce_", "nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "ampere_sgemm_128x64_tn", "triton_poi_fused_add_0",
	"cudaLaunchKernel", "cudaMemcpyAsync", "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventRecord", "cudaGraphLaunch", "cudaMalloc", "hipLaunchKernel",
	"Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", "Memset (Device)", "CompiledFunctionBackward", "Torch-Compiled Region: 0/0", "## Call CompiledFxGraph x ##",
	"allreduce", "_allgather_base", "all_to_allv", "BFloat16", "Float", "float", "c10::BFloat16", "nccl", "gloo", "-1", "0", "7", "GPU 0", "stream 7", "thread 1",
	"[[128, 64], [64, 32]]", "[\"float\", \"float\"]", "m.py(3): forward;m.py(9): <module>", "\\ud800", "\\u0000", "=1+1", "", "</script>",
};

#define DRAW_OF(t, list) str_from((list)[draw(t, sizeof(list) / sizeof(list)[0])])

static void put_quoted(struct text *t, size_t from, size_t to, struct str word)
{
	struct buf b = {0};
	char quote = t->p[from] == '\'' ? '\'' : '"';
	buf_char(&b, quote);
	buf_str(&b, word);
	buf_char(&b, quote);
	put(t, from, to, buf_view(&b));
	buf_release(&b);
}

static void edge(struct text *t)
{
	const struct value *v = pick(t, draw(t, 8) ? is_number : is_any);
	if (v)
		put(t, v->begin, v->end, DRAW_OF(t, edges));
}

/* A little more or less, or in other units: times and ids that nearly fit. */
static void nearby(struct text *t)
{
	const struct value *v = pick(t, is_number);
	char number[40] = "";
	struct buf b = {0};
	if (!v || v->end - v->begin >= sizeof number)
		return;
	memcpy(number, t->p + v->begin, v->end - v->begin);
	long long n = strtoll(number, NULL, 10);
	if (draw(t, 4))
		buf_i64(&b, (int64_t)((uint64_t)n + draw(t, 7) - 3));
	else
		buf_i64(&b, (int64_t)((uint64_t)n * (draw(t, 2) ? 1000 : UINT64_MAX)));
	put(t, v->begin, v->end, buf_view(&b));
	buf_release(&b);
}

/* The number, or text, that another member of the same key has. */
static void same_as_another(struct text *t)
{
	const struct value *v = pick(t, has_key);
	if (!v)
		return;
	struct str key = {t->p + v->key, v->key_end - v->key};
	for (uint32_t i = 0, at = draw(t, t->n_values); i < t->n_values; i++) {
		const struct value *w = &t->v[(at + i) % t->n_values];
		if (w != v && w->key != NONE && str_eq(key, (struct str){t->p + w->key, w->key_end - w->key})) {
			put_piece(t, v->begin, v->end, w->begin, w->end);
			return;
		}
	}
}

static void other_key(struct text *t)
{
	const struct value *v = pick(t, has_key);
	if (v)
		put_quoted(t, v->key, v->key_end, DRAW_OF(t, keys));
}

static void other_word(struct text *t)
{
	const struct value *v = pick(t, is_string);
	if (v)
		put_quoted(t, v->begin, v->end, DRAW_OF(t, words));
}

static void new_member(struct text *t)
{
	const struct value *v = pick(t, has_key);
	if (!v)
		return;
	struct buf b = {0};
	char quote = t->p[v->key];
	buf_char(&b, quote);
	buf_str(&b, DRAW_OF(t, keys));
	buf_char(&b, quote);
	buf_char(&b, ':');
	buf_str(&b, DRAW_OF(t, edges));
	put_behind(t, v, buf_view(&b));
	buf_release(&b);
}

static void nest(struct text *t)
{
	const struct value *v = pick(t, is_any);
	bool object = draw(t, 2);
	uint32_t levels = 1 + (draw(t, 4) ? draw(t, 3) : draw(t, 2000));
	struct buf b = {0};
	for (uint32_t i = 0; i < levels; i++)
		buf_cstr(&b, object ? "{\"args\":" : "[");
	buf_str(&b, (struct str){t->p + v->begin, v->end - v->begin});
	for (uint32_t i = 0; i < levels; i++)
		buf_char(&b, object ? '}' : ']');
	put(t, v->begin, v->end, buf_view(&b));
	buf_release(&b);
}

static void cut(struct text *t)
{
	const struct value *v = pick(t, is_any);
	size_t at = draw(t, 2) ? v->end : v->begin + draw(t, v->end - v->begin + 1);
	t->n = at ? at : 1;
}

/* The bytes of one string or number alone. */
static void bytes_of_one(struct text *t)
{
	enum { LONGEST = 4096 };
	const struct value *v = pick(t, draw(t, 2) ? is_string : is_number);
	uint8_t piece[LONGEST];
	if (!v || v->end - v->begin > LONGEST / 2)
		return;
	size_t n = v->end - v->begin;
	memcpy(piece, t->p + v->begin, n);
	n = LLVMFuzzerMutate(piece, n, n * 2 + 8 < LONGEST ? n * 2 + 8 : LONGEST);
	put(t, v->begin, v->end, (struct str){(char *)piece, n});
}

static void (*const edits[])(struct text *) = {
	repeat, repeat, delete, delete, exchange, copy_value, move_into, edge, edge, nearby, nearby, same_as_another, same_as_another,
	other_key, other_key, other_word, other_word, new_member, new_member, nest, cut, bytes_of_one, bytes_of_one,
};
enum { EDITS = sizeof edits / sizeof edits[0] };

size_t mutate_json(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	struct text t = {(char *)data, size, max_size, seed, malloc(sizeof(struct value) * MAX_VALUES), 0};
	draw(&t, 1);
	for (uint32_t i = 1 + draw(&t, 3); i; i--) {
		scan(&t);
		if (t.n_values)
			edits[draw(&t, EDITS)](&t);
	}
	free(t.v);
	return t.n;
}

size_t cross_json(struct str into, struct str from, uint8_t *out, size_t max_size, unsigned seed)
{
	if (!into.n || into.n > max_size)
		return 0;
	memcpy(out, into.p, into.n);
	struct value *values = malloc(sizeof(struct value) * MAX_VALUES);
	struct text f = {(char *)(uintptr_t)from.p, from.n, from.n, seed, values, 0};
	struct text t = {(char *)out, into.n, max_size, seed, NULL, 0};
	struct str what = {0};
	draw(&f, 1);
	scan(&f);
	if (f.n_values) {
		const struct value *v = pick_element(&f);
		what = (struct str){from.p + v->begin, v->end - v->begin};
	}
	t.v = values;
	t.random = f.random;
	scan(&t);
	if (t.n_values && what.p) {
		const struct value *at = pick_element(&t);
		if (draw(&t, 2))
			put_behind(&t, at, what);
		else
			put(&t, at->begin, at->end, what);
	}
	free(values);
	return t.n;
}
