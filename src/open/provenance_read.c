#include "open/provenance_read.h"

#include "base/buf.h"
#include "base/folder.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "io/json.h"
#include "io/source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Limits against input that would fill the memory or never end; the code of the largest models has some MB.
 * TEXT_BYTES: of a line or a part; a longer one is left out and counts as damaged. DEPTH: of folders. MOST_FILES: names in all folders together. */
enum { PROVENANCE_TEXT_BYTES = 256 << 20, PROVENANCE_DEPTH = 8, PROVENANCE_MOST_FILES = 200000 };

/* Names of artifacts in logs, and of files without their ends. */
static const struct { const char *name; enum provenance_part part; } provenance_names[] = {
	{"dynamo_output_graph", PROVENANCE_PRE},
	{"before_pre_grad_graph", PROVENANCE_PRE},
	{"inductor_pre_grad_graph", PROVENANCE_PRE},
	{"inductor_post_grad_graph", PROVENANCE_POST},
	{"after_post_grad_graph", PROVENANCE_POST},
	{"fx_graph_transformed", PROVENANCE_POST},
	{"inductor_output_code", PROVENANCE_CODE},
	{"inductor_aot_wrapper_code", PROVENANCE_CODE},
	{"output_code", PROVENANCE_CODE},
	{"inductor_provenance_tracking_node_mappings", PROVENANCE_NODES},
	{"inductor_provenance_tracking_kernel_stack_traces", PROVENANCE_STACKS},
	{"fx_graph_cache_miss", PROVENANCE_KEY},
	{"fx_graph_cache_hit", PROVENANCE_KEY},
	{"fx_graph_cache_bypass", PROVENANCE_KEY},
	{"dynamo_graph_break_reason", PROVENANCE_BREAK},
	{"recompile_reasons", PROVENANCE_RECOMPILE},
};

static enum provenance_part part_of_name(struct str name)
{
	for (size_t i = 0; i < sizeof provenance_names / sizeof provenance_names[0]; i++)
		if (str_eqc(name, provenance_names[i].name))
			return provenance_names[i].part;
	return PROVENANCE_NONE;
}

/* ---- the graphs of one compilation ---- */

struct compilation {
	struct str id;           /* "0/1", in the arena of struct provenance; "" = not known */
	struct buf text[PROVENANCE_PARTS]; /* of the graph that is being read */
	int last;                /* enum provenance_part that came last, but PROVENANCE_PRE; -1 = none */
};

/* Adds the graph that was read, and begins the next. The graph of Dynamo stays. */
static void compilation_end_graph(struct compilation *c, struct provenance *v)
{
	struct str text[PROVENANCE_PARTS] = {{0}};
	bool any = false;
	for (unsigned i = 0; i < PROVENANCE_PARTS; i++) {
		if (c->text[i].n) {
			const size_t n = c->text[i].n;
			buf_fill(&c->text[i], 0, JSON_PADDING);
			c->text[i].n = n;
			text[i] = buf_view(&c->text[i]);
		}
		any |= i >= PROVENANCE_CODE && i < PROVENANCE_KEY && c->text[i].n;
	}
	if (any)
		provenance_add(v, text, c->id);
	for (unsigned i = PROVENANCE_POST; i < PROVENANCE_PARTS; i++)
		buf_release(&c->text[i]);
	c->last = -1;
}

/* A part that comes again, or after a later part, belongs to the next graph. */
static void compilation_put(struct compilation *c, struct provenance *v, enum provenance_part part, struct str text)
{
	if (part >= PROVENANCE_PARTS) {
		struct buf b = {0};
		buf_str(&b, text);
		buf_fill(&b, 0, JSON_PADDING);
		provenance_say(v, part, (struct str){b.p, text.n}, c->id);
		buf_release(&b);
		return;
	}
	if (part != PROVENANCE_PRE && c->last >= (int)part)
		compilation_end_graph(c, v);
	if (c->text[part].n + text.n > PROVENANCE_TEXT_BYTES) {
		v->damaged++;
		return;
	}
	buf_str(&c->text[part], text);
	if (part != PROVENANCE_PRE)
		c->last = part;
	if (part == PROVENANCE_KEY)
		compilation_end_graph(c, v);
}

static void compilation_release(struct compilation *c)
{
	for (unsigned i = 0; i < PROVENANCE_PARTS; i++)
		buf_release(&c->text[i]);
}

/* ---- logs ---- */

struct log_reading {
	struct provenance *v;
	int64_t rank;
	struct intern ids;       /* compilation, attempt, rank and autograd id; id i + 1 is of compilation[i] */
	struct compilation *compilation;
	uint32_t n, cap;
	struct buf line;         /* JSON of the header, padded */
	struct buf payload;      /* that is being read */
	struct buf begun;        /* the begin of a line whose end has not come */
	enum provenance_part part; /* of the payload; PROVENANCE_NONE = it is passed over */
	uint32_t of;             /* compilation of the payload */
	bool known;              /* a line of such a log has come */
	bool too_long;           /* the begun line is, and is passed over */
};

static void log_end_payload(struct log_reading *r)
{
	if (r->part != PROVENANCE_NONE && r->payload.n)
		compilation_put(&r->compilation[r->of], r->v, r->part, buf_view(&r->payload));
	buf_clear(&r->payload);
	r->part = PROVENANCE_NONE;
}

static uint32_t log_compilation(struct log_reading *r, struct str attempt, struct str id)
{
	const uint32_t i = intern_str(&r->ids, attempt) - 1;
	if (i == r->n)
		MEM_PUSH(r->compilation, r->n, r->cap, (struct compilation){.id = arena_str(&r->v->arena, id), .last = -1});
	return i;
}

/* By the member "name" of an artifact's description. */
static enum provenance_part part_of_artifact(struct str text)
{
	struct json j = {.end = text.p + text.n};
	struct json_value key, value;
	enum provenance_part part = PROVENANCE_NONE;
	bool first = true;
	const char *at = text.n && *text.p == '{' ? text.p + 1 : NULL;
	while (at && (at = json_member(&j, at, &first, &key)) && key.raw.p && (at = json_value(&j, at, &value)))
		if (str_eqc(key.raw, "name") && value.type == JSON_STRING)
			part = part_of_name(value.raw);
	return part;
}

struct log_line {
	enum provenance_part part;
	int64_t frame, compile, attempt, rank, autograd; /* -1 = not stated */
	bool has_payload;
};

static void log_take(struct log_line *l, struct str key, const struct json_value *v)
{
	static const struct { const char *key; size_t at; } numbers[] = {
		{"frame_id", offsetof(struct log_line, frame)},     {"frame_compile_id", offsetof(struct log_line, compile)},
		{"attempt", offsetof(struct log_line, attempt)},    {"rank", offsetof(struct log_line, rank)},
		{"compiled_autograd_id", offsetof(struct log_line, autograd)},
	};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		if (v->type == JSON_NUMBER && str_eqc(key, numbers[i].key)) {
			int64_t n;
			if (json_to_i64(v->raw, &n) && n >= 0)
				memcpy((char *)l + numbers[i].at, &n, sizeof n);
			return;
		}
	if (str_eqc(key, "has_payload"))
		l->has_payload = v->type == JSON_STRING;
	else if (v->type == JSON_OBJECT && (str_eqc(key, "artifact") || str_eqc(key, "graph_dump")))
		l->part = part_of_artifact(v->raw);
	else if (v->type == JSON_OBJECT && part_of_name(key) != PROVENANCE_NONE)
		l->part = part_of_name(key);
}

/* "V0521 11:53:00.355000 3076301 torch/_inductor/debug.py:690] {"artifact": {...}, "frame_id": 0, ...}" */
static void log_header(struct log_reading *r, struct str line)
{
	const ptrdiff_t at = str_find(line, STR("] {"));
	if (at < 0)
		return;
	buf_clear(&r->line);
	buf_put(&r->line, line.p + at + 2, line.n - (size_t)at - 2);
	const size_t n = r->line.n;
	buf_fill(&r->line, 0, JSON_PADDING);
	struct json j = {.end = r->line.p + n};
	struct json_value key, value;
	struct log_line l = {PROVENANCE_NONE, -1, -1, -1, -1, -1, false};
	const char *p = r->line.p + 1;
	bool first = true;
	while ((p = json_member(&j, p, &first, &key)) && key.raw.p && (p = json_value(&j, p, &value)))
		log_take(&l, key.raw, &value);
	if (!p)
		return;
	r->known = true;
	if (l.part == PROVENANCE_NONE || !l.has_payload || (r->rank >= 0 && l.rank >= 0 && l.rank != r->rank))
		return;
	struct buf id = {0};
	if (l.frame >= 0 && l.compile >= 0 && l.autograd >= 0)
		buf_printf(&id, "!%lld/", (long long)l.autograd);
	if (l.frame >= 0 && l.compile >= 0)
		buf_printf(&id, "%lld/%lld", (long long)l.frame, (long long)l.compile);
	const size_t compile = id.n;
	buf_printf(&id, " attempt %lld rank %lld autograd %lld", (long long)l.attempt, (long long)l.rank, (long long)l.autograd);
	r->of = log_compilation(r, buf_view(&id), (struct str){id.p, compile});
	r->part = l.part;
	buf_release(&id);
}

/* Lines of a payload begin with a tab. */
static void log_line(struct log_reading *r, struct str line)
{
	if (!line.n || line.p[0] != '\t') {
		log_end_payload(r);
		log_header(r, line);
		return;
	}
	if (r->part == PROVENANCE_NONE)
		return;
	if (r->payload.n + line.n > PROVENANCE_TEXT_BYTES) {
		r->v->damaged++;
		r->part = PROVENANCE_NONE;
		return;
	}
	buf_put(&r->payload, line.p + 1, line.n - 1);
	buf_char(&r->payload, '\n');
}

/* The next piece of the log, which may end within a line. */
static void log_piece(struct log_reading *r, struct str text)
{
	while (text.n) {
		const char *newline = memchr(text.p, '\n', text.n);
		const size_t n = newline ? (size_t)(newline - text.p) : text.n;
		struct str line = {text.p, n};
		if (r->begun.n + n > PROVENANCE_TEXT_BYTES) {
			r->v->damaged += !r->too_long;
			r->too_long = true;
			buf_clear(&r->begun);
		}
		if (!r->too_long && (r->begun.n || !newline)) {
			buf_str(&r->begun, line);
			line = buf_view(&r->begun);
		}
		if (newline) {
			if (!r->too_long)
				log_line(r, line);
			r->too_long = false;
			buf_clear(&r->begun);
		}
		text = (struct str){text.p + n + (newline != NULL), text.n - n - (newline != NULL)};
	}
}

static void log_begin(struct log_reading *r, struct provenance *v, int64_t rank)
{
	*r = (struct log_reading){.v = v, .rank = rank, .part = PROVENANCE_NONE};
	intern_init(&r->ids);
}

static bool log_end(struct log_reading *r)
{
	if (r->begun.n)
		log_line(r, buf_view(&r->begun));
	log_end_payload(r);
	for (uint32_t i = 0; i < r->n; i++) {
		compilation_end_graph(&r->compilation[i], r->v);
		compilation_release(&r->compilation[i]);
	}
	mem_free(r->compilation);
	intern_release(&r->ids);
	buf_release(&r->line);
	buf_release(&r->payload);
	buf_release(&r->begun);
	return r->known;
}

bool provenance_read_log(struct provenance *v, struct str text, int64_t rank)
{
	struct log_reading r;
	log_begin(&r, v, rank);
	log_piece(&r, text);
	return log_end(&r);
}

/* ---- files ---- */

/* A damaged file was read as far as it goes, and counts. A file that the system could not read is an error. */
static int file_end(struct provenance *v, const struct source *s, struct err *e)
{
	v->damaged += source_error(s) != NULL;
	return source_failed(s) == ERR_NONE ? 0 : err_set(e, source_failed(s), "%s: %s", source_path(s), source_error(s));
}

static int log_read_file(struct provenance *v, struct source *s, int64_t rank, struct err *e)
{
	struct log_reading r;
	bool end = false;
	log_begin(&r, v, rank);
	while (!end)
		log_piece(&r, source_next(s, (struct str){NULL, 0}, &end));
	const bool known = log_end(&r);
	if (file_end(v, s, e) < 0)
		return -1;
	return known ? 0 : err_set(e, ERR_FORMAT, "%s: no line of a log of TORCH_TRACE, nor a file of tlparse or of TORCH_COMPILE_DEBUG, as was expected", source_path(s));
}

static int text_read_file(struct compilation *c, struct provenance *v, struct source *s, enum provenance_part part, struct err *e)
{
	struct buf b = {0};
	bool end = false;
	while (!end && b.n <= PROVENANCE_TEXT_BYTES)
		buf_str(&b, source_next(s, (struct str){NULL, 0}, &end));
	compilation_put(c, v, part, buf_view(&b));
	buf_release(&b);
	return file_end(v, s, e);
}

/* The number at the end of a name, behind '_': "inductor_output_code_cabc_7". Cuts it off; -1 = there is none. */
static int64_t file_cut_number(struct str *name)
{
	int64_t number;
	const char *bar = memrchr(name->p, '_', name->n);
	if (!bar || !str_to_i64((struct str){bar + 1, (size_t)(name->p + name->n - bar - 1)}, &number) || number < 0)
		return -1;
	name->n = (size_t)(bar - name->p);
	return number;
}

/* By the name of a file. *number: the number at its end, by which tlparse puts files in order; -1 = none. */
static enum provenance_part part_of_file(struct str name, int64_t *number)
{
	if (str_ends(name, STR(".gz")))
		name.n -= strlen(".gz");
	static const char *const ends[] = {".json", ".txt", ".py"};
	struct str stem = name;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0] && stem.n == name.n; i++)
		if (str_ends(name, str_from(ends[i])))
			stem.n -= strlen(ends[i]);
	*number = -1;
	if (stem.n == name.n)
		return PROVENANCE_NONE;
	*number = file_cut_number(&stem);
	if (str_starts(stem, STR("inductor_output_code_")))
		return PROVENANCE_CODE;
	return part_of_name(stem);
}

/* Of a file whose name tells nothing, by its first bytes: JSON of nodes or stacks. */
static enum provenance_part part_of_content(struct str begin)
{
	while (begin.n && (begin.p[0] == ' ' || begin.p[0] == '\n' || begin.p[0] == '\r' || begin.p[0] == '\t'))
		begin = (struct str){begin.p + 1, begin.n - 1};
	if (!begin.n || begin.p[0] != '{')
		return PROVENANCE_NONE;
	return str_has(begin, STR("cppCodeToPost")) || str_has(begin, STR("postToPre")) || str_has(begin, STR("preToPost")) ? PROVENANCE_NODES :
	       str_has(begin, STR("File \\\"")) ? PROVENANCE_STACKS : PROVENANCE_NONE;
}

static struct str file_name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return str_from(slash ? slash + 1 : path);
}

static int read_file(struct provenance *v, const char *path, int64_t rank, struct err *e)
{
	struct compilation c = {.last = -1};
	int64_t number;
	int rc;
	struct source *s = source_open_regular(path, e);
	if (!s)
		return -1;
	enum provenance_part part = part_of_file(file_name_of(path), &number);
	part = part == PROVENANCE_NONE ? part_of_content(source_peek(s)) : part;
	if (part == PROVENANCE_NONE)
		rc = log_read_file(v, s, rank, e);
	else
		rc = text_read_file(&c, v, s, part, e);
	source_close(s);
	compilation_end_graph(&c, v);
	compilation_release(&c);
	return rc;
}

/* ---- folders ---- */

struct provenance_file {
	struct str path;
	int64_t number;
	enum provenance_part part; /* PROVENANCE_NONE = a log */
};

struct folder_reading {
	struct provenance *v;
	struct arena arena;
	int64_t rank;
	unsigned left;           /* of PROVENANCE_MOST_FILES */
};

static int files_by_number(const void *a, const void *b)
{
	const struct provenance_file *x = a, *y = b;
	return COMPARE(x->number, y->number) ?: COMPARE(x->part, y->part) ?: str_cmp(x->path, y->path);
}

static int names_by_text(const void *a, const void *b) { return str_cmp(*(const struct str *)a, *(const struct str *)b); }

static bool log_is_of_rank(struct str name, int64_t rank)
{
	const ptrdiff_t at = str_find(name, STR("_rank_"));
	int64_t of;
	if (rank < 0 || at < 0)
		return true;
	const char *digits = name.p + at + strlen("_rank_"), *end = digits;
	while (end < name.p + name.n && is_digit(*end))
		end++;
	return !str_to_i64((struct str){digits, (size_t)(end - digits)}, &of) || of == rank;
}

/* The compile id of a folder of tlparse: "0/1" of "-_0_1_0", its first attempt; "" = another folder. */
static struct str folder_compile_id(struct arena *a, struct str name)
{
	struct str frame, compile;
	int64_t n;
	(void)str_skip(&name, STR("-_"));
	if (!str_split(&name, '_', &frame) || !str_split(&name, '_', &compile) || !str_to_i64(frame, &n) || !str_to_i64(compile, &n))
		return (struct str){0};
	return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(frame), STR_ARG(compile));
}

static int read_part(struct folder_reading *r, struct compilation *c, const struct provenance_file *file, struct err *e)
{
	struct source *s = source_open_regular(file->path.p, e);
	if (!s)
		return -1;
	int rc = file->part != PROVENANCE_NONE ? text_read_file(c, r->v, s, file->part, e) : log_read_file(r->v, s, r->rank, e);
	if (rc < 0 && e->code == ERR_FORMAT) { /* a *.log of something else */
		r->v->damaged++;
		rc = 0;
	}
	source_close(s);
	return rc;
}

static int read_parts(struct folder_reading *r, struct str folder, struct provenance_file *file, uint32_t n, struct err *e)
{
	struct compilation c = {.id = folder_compile_id(&r->v->arena, file_name_of(folder.p)), .last = -1};
	int rc = 0;
	qsort(file, n, sizeof *file, files_by_number);
	for (uint32_t i = 0; i < n && rc == 0; i++)
		rc = read_part(r, &c, &file[i], e);
	compilation_end_graph(&c, r->v);
	compilation_release(&c);
	return rc;
}

/* What one folder holds. */
struct folder_entries {
	struct provenance_file *file;
	struct str *below;
	uint32_t n, cap, n_below, cap_below;
};

static int folder_list(struct folder_reading *r, struct str path, struct folder_entries *x, struct err *e)
{
	struct folder f;
	const char *entry;
	int rc = 0;
	folder_open(&f, path.p);
	while (rc == 0 && r->left && (entry = folder_next(&f))) {
		const struct str name = str_from(entry);
		struct provenance_file file = {.number = -1};
		struct stat st;
		if (name.p[0] == '.')
			continue;
		r->left--;
		file.part = part_of_file(name, &file.number);
		const bool is_log = file.part == PROVENANCE_NONE && (str_ends(name, STR(".log")) || str_ends(name, STR(".log.gz")));
		file.path = arena_printf(&r->arena, STR_FMT "/%s", STR_ARG(path), entry);
		if (lstat(file.path.p, &st) < 0)
			rc = errno == ENOENT ? 0 : err_set(e, ERR_IO, "%s: %s", file.path.p, strerror(errno));
		else if (S_ISDIR(st.st_mode))
			MEM_PUSH(x->below, x->n_below, x->cap_below, file.path);
		else if (file.part != PROVENANCE_NONE || (is_log && log_is_of_rank(name, r->rank)))
			MEM_PUSH(x->file, x->n, x->cap, file);
	}
	if (rc == 0 && f.error)
		rc = err_set(e, ERR_IO, "%s: %s", path.p, strerror(f.error));
	folder_close(&f);
	return rc;
}

static int read_folder(struct folder_reading *r, struct str path, unsigned depth, struct err *e)
{
	struct folder_entries x = {0};
	int rc = folder_list(r, path, &x, e);
	if (rc == 0 && x.n)
		rc = read_parts(r, path, x.file, x.n, e);
	if (x.n_below)
		qsort(x.below, x.n_below, sizeof *x.below, names_by_text);
	for (uint32_t i = 0; i < x.n_below && depth < PROVENANCE_DEPTH && rc == 0; i++)
		rc = read_folder(r, x.below[i], depth + 1, e);
	mem_free(x.file);
	mem_free(x.below);
	return rc;
}

int provenance_read(struct provenance *v, const char *path, int64_t rank, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return read_file(v, path, rank, e);
	struct folder_reading r = {.v = v, .rank = rank, .left = PROVENANCE_MOST_FILES};
	struct str top = str_from(path);
	while (top.n > 1 && top.p[top.n - 1] == '/')
		top.n--;
	const int rc = read_folder(&r, arena_str(&r.arena, top), 0, e);
	arena_release(&r.arena);
	return rc;
}
