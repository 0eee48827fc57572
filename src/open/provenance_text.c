#include "open/provenance_text.h"

static struct str text_trim(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = (struct str){s.p + 1, s.n - 1};
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
		s.n--;
	return s;
}

/* The text before and behind the first `mark`; false if there is none. */
static bool text_divide(struct str s, struct str mark, struct str *before, struct str *behind)
{
	ptrdiff_t at = str_find(s, mark);
	if (at < 0)
		return false;
	*before = (struct str){s.p, (size_t)at};
	*behind = (struct str){s.p + at + mark.n, s.n - (size_t)at - mark.n};
	return true;
}

static bool text_between(struct str s, struct str from, struct str to, struct str *out)
{
	struct str inside, before, rest;
	if (!text_divide(s, from, &before, &rest) || !text_divide(rest, to, &inside, &rest))
		return false;
	*out = inside;
	return true;
}

bool provenance_line(struct str *text, struct str *line)
{
	if (!text->n)
		return false;
	const char *end = memchr(text->p, '\n', text->n);
	size_t n = end ? (size_t)(end - text->p) : text->n;
	*line = text_trim((struct str){text->p, n});
	n += end != NULL;
	*text = (struct str){text->p + n, text->n - n};
	return true;
}

bool provenance_item(struct str *list, struct str *item)
{
	while (list->n) {
		const char *comma = memchr(list->p, ',', list->n);
		size_t n = comma ? (size_t)(comma - list->p) : list->n;
		*item = text_trim((struct str){list->p, n});
		n += comma != NULL;
		*list = (struct str){list->p + n, list->n - n};
		if (item->n)
			return true;
	}
	return false;
}

bool provenance_frame_of_trace(struct str line, struct provenance_frame *out)
{
	struct str number, rest;
	if (!str_skip(&line, STR("File \"")) || !text_divide(line, STR("\", line "), &out->path, &rest))
		return false;
	if (!text_divide(rest, STR(", in "), &number, &out->function))
		number = rest, out->function = STR("");
	return out->path.n && str_to_i64(number, &out->line) && out->line >= 0;
}

/* The code behind ", code: " may hold anything, and is cut off first. A path may hold colons: the last one ends it. */
bool provenance_frame_of_comment(struct str line, struct provenance_frame *out)
{
	struct str place, rest;
	if (!str_skip(&line, STR("# File: ")))
		return false;
	if (!text_divide(line, STR(", code: "), &place, &rest))
		place = line;
	if (!text_divide(place, STR(" in "), &rest, &out->function))
		return false;
	const char *colon = memrchr(rest.p, ':', rest.n);
	if (!colon)
		return false;
	out->path = (struct str){rest.p, (size_t)(colon - rest.p)};
	return out->path.n && str_to_i64((struct str){colon + 1, (size_t)(rest.p + rest.n - colon - 1)}, &out->line) && out->line >= 0;
}

static bool text_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static struct str text_identifier(struct str s)
{
	size_t n = 0;
	while (n < s.n && (text_is_letter(s.p[n]) || (n && is_digit(s.p[n]))))
		n++;
	return (struct str){s.p, n};
}

/* A name with dots in it: "extern_kernels.mm". */
static struct str text_dotted(struct str s)
{
	size_t n = 0;
	while (n < s.n && (text_is_letter(s.p[n]) || (n && (is_digit(s.p[n]) || s.p[n] == '.'))))
		n++;
	return (struct str){s.p, n};
}

bool provenance_node_of(struct str line, struct str *name)
{
	*name = text_identifier(line);
	struct str rest = {line.p + name->n, line.n - name->n};
	return name->n && (str_starts(rest, STR(": \"")) || str_starts(rest, STR(" = ")) || str_starts(rest, STR(": ")));
}

static bool code_is_sources(struct str line, struct str *nodes, struct str *ops)
{
	*nodes = *ops = STR("");
	const bool has_nodes = text_between(line, STR("Source Nodes: ["), STR("]"), nodes);
	return text_between(line, STR("Original ATen: ["), STR("]"), ops) || has_nodes;
}

static bool code_is_call(struct str line, struct str *name)
{
	struct str rest = line, before, left;
	if (text_divide(rest, STR(" = "), &before, &left) && text_identifier(before).n == before.n)
		rest = left;
	*name = text_dotted(rest);
	if (name->n == rest.n || rest.p[name->n] != '(')
		return false;
	if (str_ends(*name, STR(".run"))) {
		name->n -= strlen(".run");
		return true;
	}
	return str_starts(*name, STR("extern_kernels.")) || str_starts(*name, STR("torch.ops.")) || str_starts(*name, STR("cpp_fused"));
}

enum provenance_code provenance_code_of(struct str line, struct str *name, struct str *nodes, struct str *ops)
{
	struct str rest;
	if (str_starts(line, STR("#")) || str_starts(line, STR("//"))) {
		if (text_divide(line, STR("[Provenance debug handles] "), &rest, name))
			return CODE_HANDLES;
		if (text_divide(line, STR("kernel path: "), &rest, name)) {
			const char *slash = memrchr(name->p, '/', name->n);
			if (slash)
				*name = (struct str){slash + 1, (size_t)(name->p + name->n - slash - 1)};
			if (str_ends(*name, STR(".py")))
				name->n -= strlen(".py");
			return CODE_PATH;
		}
		return code_is_sources(line, nodes, ops) ? CODE_SOURCES : CODE_COMMENT;
	}
	if (text_divide(line, STR(" = async_compile."), name, &rest) && text_identifier(*name).n == name->n)
		return CODE_KERNEL;
	return code_is_call(line, name) ? CODE_CALL : CODE_OTHER;
}

void provenance_called_name(struct str called, struct str *space, struct str *name)
{
	*space = STR("");
	*name = called;
	if (str_skip(name, STR("extern_kernels."))) {
		*space = STR("aten");
		(void)str_skip(name, STR("bias_")); /* bias_addmm: Inductor's form of addmm */
	} else if (str_skip(name, STR("torch.ops."))) {
		struct str rest;
		if (text_divide(*name, STR("."), space, &rest)) {
			const char *dot = memchr(rest.p, '.', rest.n);
			*name = (struct str){rest.p, dot ? (size_t)(dot - rest.p) : rest.n};
		}
	} else if (str_skip(name, STR("aoti_torch_"))) {
		struct str device, op;
		*space = STR("aten");
		if (text_divide(*name, STR("_"), &device, &op))
			*name = op;
		if (str_ends(*name, STR("_out")))
			name->n -= strlen("_out");
	}
}
