#include "record/symbols.h"

#include "base/demangle.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "record/elf.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME_MOST = 1024, MAP_MOST = 4 << 20, MAP_BYTES_MAX = 256 << 20 }; /* bytes of a name; lines and bytes of a map */

void symbols_init(struct symbols *s)
{
	*s = (struct symbols){0};
	intern_init(&s->paths);
}

void symbols_release(struct symbols *s)
{
	for (unsigned i = 0; i < s->cap; i++)
		elf_close(s->file[i]);
	mem_free(s->file);
	mem_free(s->looked);
	intern_release(&s->paths);
}

static const struct elf *symbols_file_of(struct symbols *s, struct str path)
{
	uint32_t id = intern_str(&s->paths, path);
	unsigned before = s->cap, cap = s->cap;
	MEM_GROW(s->file, s->cap, id + 1);
	MEM_GROW(s->looked, cap, id + 1);
	for (unsigned i = before; i < s->cap; i++) {
		s->file[i] = NULL;
		s->looked[i] = false;
	}
	if (!s->looked[id])
		s->file[id] = elf_open(intern_get(&s->paths, id).p);
	s->looked[id] = true;
	return s->file[id];
}

/* --- maps of code that was made --------------------------------------------------------------------------------- */

static int symbols_by_start(const void *x, const void *y)
{
	const struct perf_map_entry *a = x, *b = y;
	return COMPARE(a->start, b->start);
}

/* "START BYTES NAME", the numbers in hexadecimal. */
static void take_line(struct perf_map *m, char *line)
{
	char *end, *name;
	uint64_t start = strtoull(line, &end, 16), bytes = end > line && *end == ' ' ? strtoull(end, &name, 16) : 0;
	if (!bytes || *name != ' ' || start + bytes < start)
		return;
	struct str text = str_from(name + 1);
	while (text.n && (unsigned char)text.p[text.n - 1] <= ' ')
		text.n--;
	MEM_PUSH(m->v, m->n, m->cap, (struct perf_map_entry){start, start + bytes, arena_str(&m->arena, text)});
}

/* NULL when there is none that can be trusted. */
static FILE *open_map(const char *path, int64_t *bytes)
{
	struct stat st;
	int fd = file_open_regular(path, O_NOFOLLOW, &st, NULL);
	bool trusted = fd >= 0 && (st.st_uid == geteuid() || st.st_uid == 0) && st.st_size <= MAP_BYTES_MAX;
	FILE *f = trusted ? fdopen(fd, "r") : NULL;
	if (!f && fd >= 0)
		close(fd);
	*bytes = f ? (int64_t)st.st_size : 0;
	return f;
}

/* A file that grows meanwhile is read no further than it was long. */
void perf_map_read(struct perf_map *m, const char *path)
{
	int64_t left;
	FILE *f = open_map(path, &left);
	char *line = NULL;
	size_t cap = 0;
	*m = (struct perf_map){0};
	for (ssize_t n; f && left > 0 && m->n < MAP_MOST && (n = getline(&line, &cap, f)) > 0; left -= n)
		take_line(m, line);
	free(line);
	if (f)
		fclose(f);
	if (m->n)
		qsort(m->v, m->n, sizeof *m->v, symbols_by_start);
}

struct str perf_map_name(const struct perf_map *m, uint64_t address)
{
	unsigned from = FIRST_WHERE(i, 0, m->n, m->v[i].start > address);
	return from && address < m->v[from - 1].end ? m->v[from - 1].name : (struct str){0};
}

void perf_map_release(struct perf_map *m)
{
	mem_free(m->v);
	arena_release(&m->arena);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* A stack is its frames with ';' between them. */
static void symbols_put_name(struct buf *out, struct str name)
{
	size_t from = out->n;
	utf8_put_valid(out, (struct str){name.p, name.n < NAME_MOST ? name.n : NAME_MOST});
	for (size_t i = from; i < out->n; i++)
		if (out->p[i] == ';' || (unsigned char)out->p[i] < ' ')
			out->p[i] = ':';
}

static struct str last_part(struct str path)
{
	for (size_t i = path.n; i > 0; i--)
		if (path.p[i - 1] == '/')
			return (struct str){path.p + i, path.n - i};
	return path;
}

/* CPython's "py::FUNCTION:FILE". */
static bool put_python(struct buf *out, struct str name)
{
	if (!str_starts(name, STR("py::")))
		return false;
	name = (struct str){name.p + 4, name.n - 4};
	ptrdiff_t colon = str_find(name, STR(":"));
	symbols_put_name(out, colon < 0 ? name : (struct str){name.p, (size_t)colon});
	if (colon >= 0) {
		buf_cstr(out, " (");
		symbols_put_name(out, (struct str){name.p + colon + 1, name.n - (size_t)colon - 1});
		buf_char(out, ')');
	}
	return true;
}

void symbols_name(struct symbols *s, const struct perf_map *m, struct str path, uint64_t offset, uint64_t address, struct buf *out)
{
	struct str made = perf_map_name(m, address);
	const struct elf *f = !made.n && path.n && *path.p == '/' ? symbols_file_of(s, path) : NULL;
	struct str name = made.n ? made : f ? elf_function(f, offset) : (struct str){0};
	struct buf readable = {0};
	if (made.n && put_python(out, made))
		return;
	if (name.n && demangle(name, &readable) == DEMANGLE_DONE)
		name = buf_view(&readable);
	symbols_put_name(out, name.n ? name : STR("??"));
	buf_release(&readable);
	buf_cstr(out, " (");
	symbols_put_name(out, made.n ? STR("made while it ran") : path.n ? last_part(path) : STR("unknown"));
	buf_char(out, ')');
}
