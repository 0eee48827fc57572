#include "input/marker.h"

#include "base/mem.h"
#include "base/search.h"
#include "input/marker_dict.h"
#include "input/marker_node.h"

enum domain_kind { DOMAIN_PLAIN, DOMAIN_OP, DOMAIN_XLA, DOMAIN_NODE };

enum { KNOWN = 1 << 12, NEXT = 4 /* a power of two */ };

/* Ranges of one op differ in their numbers only: what name and sizes say is kept, by the hash of both. */
struct known {
	uint64_t hash;             /* 0 = free */
	struct str name_text, sizes_text;
	uint32_t name, sizes, args;
	uint16_t next[NEXT];       /* the places of those that came after it; replaced in turn */
	uint8_t turn;
	bool seq, op_id;
	bool has_comma;            /* its name does */
	uint8_t kind;
};

struct markers {
	struct build *b;
	struct known known[KNOWN];
	uint16_t last;             /* the place of the one that was read last */
	struct idmap dicts;        /* interned text -> place in `read`; for dicts only */
	struct marker *read;
	size_t n_read, cap_read;
	uint32_t dims_key, layer_key;
};

struct markers *markers_new(struct build *b)
{
	struct markers *m = NEW(struct markers);
	m->b = b;
	idmap_init(&m->dicts, 1, 0, 64);
	m->dims_key = intern_str(&b->p->strings, str_from(arg_key_text[ARG_INPUT_DIMS]));
	m->layer_key = intern_str(&b->p->strings, str_from(arg_key_text[ARG_LAYER]));
	return m;
}

void markers_free(struct markers *m)
{
	if (!m)
		return;
	idmap_release(&m->dicts);
	mem_free(m->read);
	mem_free(m);
}

static enum domain_kind domain_kind(struct str domain)
{
#define NVTX_DOMAIN(name, kind) {name, DOMAIN_##kind},
	static const struct { const char *name; enum domain_kind kind; } domains[] = {
#include "input/nsys/nvtx_domains.def"
	};
	for (size_t i = 0; domain.n && i < sizeof domains / sizeof domains[0]; i++)
		if (str_eqc(domain, domains[i].name))
			return domains[i].kind;
	return DOMAIN_PLAIN;
}

static struct marker plain(struct markers *m, struct str name, enum span_kind kind)
{
	return (struct marker){.link_id = ID_NONE, .name = intern_str(&m->b->p->strings, name), .kind = (uint8_t)kind};
}

static struct marker read_dict(struct markers *m, struct str text, int64_t where)
{
	uint32_t raw = intern_str(&m->b->p->strings, text), known = idmap_get(&m->dicts, raw);
	if (known == IDMAP_NONE) {
		struct arena a = {0};
		struct marker out;
		bool damaged;
		marker_read_dict(m->b, &a, raw, &out, &damaged);
		arena_release(&a);
		MEM_GROW(m->read, m->cap_read, m->n_read + 1);
		m->read[m->n_read] = out;
		known = (uint32_t)m->n_read++;
		idmap_put(&m->dicts, raw, known);
		if (damaged)
			diag_add(&m->b->p->diags, "damaged-marker", DIAG_REPAIR, where, "'%.*s%s' is no marker in Python's notation: kept as text",
			         (int)(text.n < 60 ? text.n : 60), text.p, text.n < 60 ? "" : "...");
	}
	return m->read[known];
}

/* The fields that emit_nvtx puts behind a name. */
struct marker_fields {
	struct str name, sizes, input_ops;
	int64_t seq, op_id; /* ID_NONE = not there */
	const struct known *known; /* what is kept of name and sizes; NULL = not looked up */
};

static uint64_t marker_hash(struct str name, struct str sizes)
{
	return hash_bytes(name.p, name.n) + 3 * hash_bytes(sizes.p, sizes.n) + 1;
}

static bool marker_is_known(const struct known *k, uint64_t hash, const struct marker_fields *f)
{
	return k->hash == hash && k->seq == (f->seq != ID_NONE) && k->op_id == (f->op_id != ID_NONE) && str_eq(k->name_text, f->name) && str_eq(k->sizes_text, f->sizes);
}

/* Whether the rest of a text is a list of sizes that was read before, of a range of that name: then it is one to its end. */
static bool marker_sizes_known(const struct markers *m, struct marker_fields *f, struct str rest)
{
	struct marker_fields whole = *f;
	whole.sizes = rest;
	uint64_t hash = rest.n ? marker_hash(f->name, rest) : 0;
	const struct known *k = &m->known[hash % KNOWN];
	if (!hash || !marker_is_known(k, hash, &whole))
		return false;
	f->sizes = rest;
	f->known = k;
	return true;
}

/* A number of up to seven digits, with a comma behind it, all at once. Returns how many digits; 0 = something else stands there. */
static unsigned marker_digits(struct str s, int64_t *v)
{
	uint64_t x;
	if (s.n < sizeof x)
		return 0;
	memcpy(&x, s.p, sizeof x);
	x ^= 0x3030303030303030u;
	const uint64_t others = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u; /* the highest bit of each byte that is not a digit */
	const unsigned n = others ? (unsigned)__builtin_ctzll(others) / 8 : 0;
	if (!n || s.p[n] != ',')
		return 0;
	x <<= 64 - 8 * n; /* the last digit becomes the highest byte */
	x = x * (10 << 8 | 1) >> 8;
	x = (x & 0x00ff00ff00ff00ffu) * (100 << 16 | 1) >> 16;
	*v = (int64_t)((x & 0x0000ffff0000ffffu) * ((uint64_t)10000 << 32 | 1) >> 32);
	return n;
}

static bool marker_take_number(struct str *s, int64_t *v)
{
	enum { DIGITS_THAT_FIT = 18 };
	size_t i = marker_digits(*s, v);
	if (i) {
		s->p += i;
		s->n -= i;
		return true;
	}
	int64_t x = 0;
	for (size_t end = s->n < DIGITS_THAT_FIT ? s->n : DIGITS_THAT_FIT; i < end; i++) {
		unsigned digit = (unsigned char)s->p[i] - (unsigned)'0';
		if (digit > 9)
			break;
		x = 10 * x + digit;
	}
	if (i && (i == s->n || s->p[i] == ',')) {
		*v = x;
		s->p += i;
		s->n -= i;
		return true;
	}
	i = s->n && s->p[0] == '-';
	while (i < s->n && s->p[i] >= '0' && s->p[i] <= '9')
		i++;
	bool ok = str_to_i64((struct str){s->p, i}, v);
	s->p += i;
	s->n -= i;
	return ok;
}

/* A list in brackets of sizes, or of anything; false when it does not close. */
static bool marker_take_list(struct str *s, bool sizes, struct str *list)
{
	enum { OTHER, SIZE, OPEN, CLOSE };
	static const uint8_t class[256] = {
		['['] = OPEN, [']'] = CLOSE, [','] = SIZE, [' '] = SIZE, ['-'] = SIZE, ['0'] = SIZE, ['1'] = SIZE, ['2'] = SIZE,
		['3'] = SIZE, ['4'] = SIZE, ['5'] = SIZE, ['6'] = SIZE, ['7'] = SIZE, ['8'] = SIZE, ['9'] = SIZE,
	};
	size_t depth = 0, i = 0;
	do {
		if (i == s->n)
			return false;
		uint8_t c = class[(uint8_t)s->p[i++]];
		depth += c == OPEN;
		if (!depth || (sizes && c == OTHER))
			return false;
		depth -= c == CLOSE;
	} while (depth);
	*list = (struct str){s->p, i};
	s->p += i;
	s->n -= i;
	return true;
}

/* The fields from `rest`, which begins with ", ", to its end; false when there is something else. */
static bool take_fields(const struct markers *m, struct str rest, struct marker_fields *f)
{
	while (rest.n) {
		if (str_skip(&rest, STR(", seq = "))) {
			if (!marker_take_number(&rest, &f->seq))
				return false;
		} else if (str_skip(&rest, STR(", op_id = "))) {
			if (!marker_take_number(&rest, &f->op_id))
				return false;
		} else if (str_skip(&rest, STR(", sizes = "))) {
			if (marker_sizes_known(m, f, rest))
				return true;
			if (!marker_take_list(&rest, true, &f->sizes))
				return false;
		} else if (!str_skip(&rest, STR(", input_op_ids = ")) || !marker_take_list(&rest, false, &f->input_ops)) {
			return false;
		}
	}
	return true;
}

static bool may_be_field(struct str rest)
{
	return rest.n >= 8 && rest.p[1] == ' ' && (rest.p[2] == 's' || rest.p[2] == 'i' || rest.p[2] == 'o');
}

/* What tells in one step where a list ends. */
struct brackets {
	uint32_t *close; /* per '[': its ']'; 0 = none */
	uint32_t *other; /* per byte: the first at or behind it that no list of sizes has */
};

static void match_brackets(struct str text, struct brackets *b)
{
	b->close = NEW_ARRAY(text.n, uint32_t);
	b->other = NEW_ARRAY_RAW(text.n, uint32_t);
	uint32_t open = UINT32_MAX, other = (uint32_t)text.n;
	for (uint32_t i = 0; i < text.n; i++) {
		if (text.p[i] == '[') { /* until it closes, it says which one is open around it */
			b->close[i] = open;
			open = i;
		} else if (text.p[i] == ']' && open != UINT32_MAX) {
			uint32_t around = b->close[open];
			b->close[open] = i;
			open = around;
		}
	}
	while (open != UINT32_MAX) {
		uint32_t around = b->close[open];
		b->close[open] = 0;
		open = around;
	}
	for (uint32_t i = (uint32_t)text.n; i-- > 0;)
		b->other[i] = other = memchr("[], -0123456789", text.p[i], 15) ? other : i;
}

/* Where the field that begins at `at` ends; 0 = there is none. */
static size_t field_end(struct str text, const struct brackets *b, size_t at)
{
	struct str rest = {text.p + at, text.n - at};
	int64_t v;
	if (str_skip(&rest, STR(", seq = ")) || str_skip(&rest, STR(", op_id = ")))
		return marker_take_number(&rest, &v) ? text.n - rest.n : 0;
	bool sizes = str_skip(&rest, STR(", sizes = "));
	if ((!sizes && !str_skip(&rest, STR(", input_op_ids = "))) || !rest.n || rest.p[0] != '[')
		return 0;
	size_t open = text.n - rest.n, close = b->close[open];
	return close && (!sizes || b->other[open] > close) ? close + 1 : 0;
}

/* From the last comma to the first: the first from which on there are only fields; text.n = none. Linear in the text. */
static size_t first_field(struct str text)
{
	struct brackets b;
	match_brackets(text, &b);
	uint8_t *only = NEW_ARRAY(text.n, uint8_t); /* per comma: there are only fields from it on */
	size_t first = text.n;
	for (size_t i = text.n; i-- > 0;) {
		if (text.p[i] != ',' || !may_be_field((struct str){text.p + i, text.n - i}))
			continue;
		size_t end = field_end(text, &b, i);
		only[i] = end && (end == text.n || only[end]);
		first = only[i] ? i : first;
	}
	mem_free(only);
	mem_free(b.close);
	mem_free(b.other);
	return first;
}

static bool fields_at(const struct markers *m, struct str text, size_t at, struct marker_fields *f)
{
	struct marker_fields got = {.name = {text.p, at}, .seq = ID_NONE, .op_id = ID_NONE};
	if (!take_fields(m, (struct str){text.p + at, text.n - at}, &got))
		return false;
	*f = got;
	return true;
}

/* Names may hold commas themselves: the fields begin at the first comma from which on there is nothing but fields. Each comma
 * that is tried may cost the rest of the text: after a few the answer is worked out from the end. */
static bool split_fields(const struct markers *m, struct str text, struct marker_fields *f)
{
	enum { TRIES = 8 };
	*f = (struct marker_fields){.name = text, .seq = ID_NONE, .op_id = ID_NONE};
	const char *end = text.p + text.n;
	unsigned tries = 0;
	for (const char *p = text.p; p < end && (p = memchr(p, ',', (size_t)(end - p))); p++) {
		if (!may_be_field((struct str){p, (size_t)(end - p)}))
			continue;
		if (fields_at(m, text, (size_t)(p - text.p), f))
			return true;
		if (++tries == TRIES && text.n < UINT32_MAX) {
			size_t at = first_field(text);
			return at < text.n && fields_at(m, text, at, f);
		}
	}
	return false;
}

static bool marker_is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

/* "aten" of "aten::mm"; {0} when the name is not of that form. */
static struct str scope_of(struct str name)
{
	size_t i = 0;
	while (i < name.n && marker_is_lower(name.p[i]))
		i++;
	return i && i + 2 < name.n && name.p[i] == ':' && name.p[i + 1] == ':' ? (struct str){name.p, i} : (struct str){0};
}

static bool framework_scope(struct str scope)
{
	static const char *const known[] = {
		"aten", "prim", "prims", "torch", "c10d", "c10", "quantized", "autograd", "mkldnn", "mkldnn_prepacked", "onednn",
		"inductor", "triton", "xformers", "flash_attn", "vllm", "sgl_kernel", "aiter", "fbgemm", "torchvision", "torchaudio",
		"torch_npu", "tensorrt", "transformer_engine", "profiler",
	};
	bool is_own = scope.n && scope.p[0] == '_'; /* _c10d_functional, _quantized, ... */
	return is_own || ANY_WHERE(i, 0, sizeof known / sizeof known[0], str_eqc(scope, known[i]));
}

/* "AddmmBackward0", "torch::autograd::AccumulateGrad": nodes of the autograd graph. */
static bool autograd_node(struct str name)
{
	while (name.n && name.p[name.n - 1] >= '0' && name.p[name.n - 1] <= '9')
		name.n--;
	return (str_ends(name, STR("Backward")) && !str_has(name, STR(" "))) || str_has(name, STR("torch::autograd::")) ||
	       str_starts(name, STR("autograd::engine::"));
}

/* A range of record_function may have an op_id too; only ops have a sequence number or a scope. */
static bool marker_is_op(const struct marker_fields *f)
{
	struct str scope = scope_of(f->name);
	if (f->seq != ID_NONE || framework_scope(scope) || autograd_node(f->name))
		return true;
	bool in_place = f->name.n > 1 && str_ends(f->name, STR("_")) && marker_is_lower(f->name.p[0]) && !str_has(f->name, STR(" "));
	return f->op_id != ID_NONE ? scope.n || in_place || str_eq(f->name, STR("detach")) : f->sizes.n && !f->name.n;
}

static const struct known *marker_keep(struct markers *m, const struct marker_fields *f)
{
	uint64_t hash = marker_hash(f->name, f->sizes);
	struct known *k = &m->known[hash % KNOWN];
	if (!marker_is_known(k, hash, f)) {
		struct intern *t = &m->b->p->strings;
		*k = (struct known){.hash = hash, .name = intern_str(t, f->name), .sizes = intern_str(t, f->sizes), .seq = f->seq != ID_NONE, .op_id = f->op_id != ID_NONE, .has_comma = str_has(f->name, STR(",")),
		                    .kind = marker_is_op(f) ? SPAN_OP : SPAN_USER};
		k->name_text = intern_get(t, k->name);
		k->sizes_text = intern_get(t, k->sizes);
		struct arg_pair dims = {m->dims_key, k->sizes, 0};
		k->args = f->sizes.n ? build_args(m->b, &dims, 1) : 0;
	}
	return k;
}

static struct marker read_emit_nvtx(struct markers *m, const struct marker_fields *f)
{
	const struct known *k = f->known ? f->known : marker_keep(m, f);
	m->last = (uint16_t)(k - m->known);
	return (struct marker){.link_id = f->seq, .op_id = f->op_id > 0 ? f->op_id : 0, .input_ops = f->input_ops.n ? intern_str(&m->b->p->strings, f->input_ops) : 0,
	                       .name = k->name, .args = k->args, .kind = k->kind};
}

static bool marker_skip(struct str *rest, const char *text, size_t n)
{
	if (!n) /* there may be no text at all */
		return true;
	if (rest->n < n || memcmp(rest->p, text, n) != 0)
		return false;
	rest->p += n;
	rest->n -= n;
	return true;
}

/* Whether the text says what k says, but for the numbers. A name without a comma ends where the fields begin. */
static bool marker_is_another(const struct known *k, struct str text, struct marker_fields *f)
{
	if (!k->hash || k->has_comma || !marker_skip(&text, k->name_text.p, k->name_text.n))
		return false;
	*f = (struct marker_fields){.name = k->name_text, .sizes = k->sizes_text, .seq = ID_NONE, .op_id = ID_NONE, .known = k};
#define SKIP(literal) marker_skip(&text, literal, sizeof(literal) - 1)
	if (k->seq && !(SKIP(", seq = ") && marker_take_number(&text, &f->seq) && f->seq != ID_NONE))
		return false;
	if (k->op_id && !(SKIP(", op_id = ") && marker_take_number(&text, &f->op_id) && f->op_id != ID_NONE))
		return false;
	return (!k->sizes_text.n || SKIP(", sizes = ")) && str_eq(text, k->sizes_text);
#undef SKIP
}

/* Ranges come in the order in which others came before: those are tried that then came next. */
static struct marker read_ranges(struct markers *m, struct str text)
{
	struct marker_fields f;
	struct known *last = &m->known[m->last];
	if (ANY_WHERE(i, 0, NEXT, marker_is_another(&m->known[last->next[i]], text, &f)))
		return read_emit_nvtx(m, &f);
	split_fields(m, text, &f);
	const struct marker out = read_emit_nvtx(m, &f);
	last->next[last->turn++ % NEXT] = m->last;
	return out;
}

/* "Name:#key=value,key=value#": XLA names what it does, and the HLO op that it does it for. */
static struct marker read_xla(struct markers *m, struct str text)
{
	ptrdiff_t at = str_find(text, STR(":#"));
	if (at < 0 || !str_ends(text, STR("#")) || (size_t)at + 3 > text.n)
		return plain(m, text, SPAN_OP);
	struct str name = {text.p, (size_t)at}, rest = {text.p + at + 2, text.n - (size_t)at - 3}, piece;
	struct intern *t = &m->b->p->strings;
	struct arg_pair pair[8];
	unsigned n = 0;
	while (n < 8 && str_split(&rest, ',', &piece)) {
		ptrdiff_t eq = str_find(piece, STR("="));
		if (eq <= 0)
			continue;
		struct str key = {piece.p, (size_t)eq}, v = {piece.p + eq + 1, piece.n - (size_t)eq - 1};
		if (str_eqc(key, arg_key_text[ARG_HLO_OP]) && v.n)
			name = v;
		pair[n++] = (struct arg_pair){intern_str(t, key), intern_str(t, v), 1};
	}
	struct marker out = plain(m, name, SPAN_OP);
	out.args = build_args(m->b, pair, n);
	return out;
}

static struct marker read_layer(struct markers *m, struct str text)
{
	struct str name = {text.p + 6, text.n - 6}, first;
	struct marker out = plain(m, text, SPAN_USER);
	if (!str_split(&name, ':', &first))
		first = (struct str){"", 0};
	struct arg_pair pair = {m->layer_key, intern_str(&m->b->p->strings, first), 1};
	out.args = build_args(m->b, &pair, 1);
	return out;
}

struct marker marker_read(struct markers *m, struct str text, struct str domain, int64_t where)
{
	switch (domain_kind(domain)) {
	case DOMAIN_OP: return plain(m, text, SPAN_OP);
	case DOMAIN_XLA: return read_xla(m, text);
	case DOMAIN_NODE: return marker_read_node(m->b, text);
	case DOMAIN_PLAIN: break;
	}
	if (text.n && text.p[0] == '{')
		return read_dict(m, text, where);
	if (str_starts(text, STR("layer:")))
		return read_layer(m, text);
	return read_ranges(m, text);
}
