#include "report/parts/compile_lines.h"

#include "analysis/tree/sources.h"
#include "base/intern.h"
#include "base/mem.h"
#include "base/round.h"

enum { LINES_LINES, LINES_COUNT, LINES_GENERATED, LINES_CALLED, LINES_NS, LINES_PCT };

const struct section compile_lines_section = {.name = "lines", .title = "Lines of the program that compiled code came from", COLUMNS(
	[LINES_LINES] = {COLUMN(TEXT, "lines", "Lines", "innermost lines of your own code, file(line,line): function; where a kernel fuses ops of several lines, all of them, joined by +; "
	                        "empty = not known", .flags = COLUMN_ANSWER | COLUMN_WIDE | COLUMN_PATH)},
	[LINES_COUNT] = {COLUMN(COUNT, "count", "Pieces of work", "kernels, copies and sets")},
	[LINES_GENERATED] = {COLUMN(NS, "generated_ns", "Generated", "device time of kernels that Inductor generated")},
	[LINES_CALLED] = {COLUMN(NS, "called_ns", "Called", "device time of other kernels, copies and sets that the graph launched: products, convolutions, attention")},
	[LINES_NS] = {COLUMN(NS, "device_ns", "Device time", "generated + called", .flags = COLUMN_ANSWER)},
	[LINES_PCT] = {COLUMN(PERCENT, "lines_pct", "Of all rows %", "device time / that of all rows")},
)};

enum { SAID_KIND, SAID_FRAME, SAID_PLACE, SAID_REASON, SAID_N };

const struct section compile_said_section = {.name = "reasons", .title = "What torch.compile said", COLUMNS(
	[SAID_KIND] = {COLUMN(TEXT, "kind", "What", "graph break = it left its graph; recompile = it compiled a frame again, for what its guards refused", .flags = COLUMN_ANSWER)},
	[SAID_FRAME] = {COLUMN(TEXT, "frame", "Frame", "number of the compiled frame / which of its compilations, as in the names of regions")},
	[SAID_PLACE] = {COLUMN(TEXT, "place", "Where", "file:line of the program; empty = not stated", .flags = COLUMN_ANSWER | COLUMN_PATH)},
	[SAID_REASON] = {COLUMN(TEXT, "reason", "Reason", "in the compiler's words", .flags = COLUMN_ANSWER | COLUMN_WIDE)},
	[SAID_N] = {COLUMN(COUNT, "count", "Times", "how often it said so, while it compiled: before the recording, too", .flags = COLUMN_ANSWER)},
)};

struct lines_group {
	struct str lines;
	uint64_t n;
	int64_t ns[2];           /* [generated]: of called ops, of generated kernels */
};

struct compile_lines {
	const struct profile *p;
	struct intern keys;
	struct lines_group *v;
	uint32_t n, cap;
	int64_t all_ns;
	int64_t known_ns;        /* lines are known */
	int64_t several_ns;      /* of known_ns: work of more than one line */
	int64_t match_ns[SOURCE_MATCHES];
};

struct compile_lines *compile_lines_new(const struct profile *p)
{
	if (!sources_any(p))
		return NULL;
	struct compile_lines *l = NEW(struct compile_lines);
	l->p = p;
	intern_init(&l->keys);
	return l;
}

void compile_lines_free(struct compile_lines *l)
{
	if (!l)
		return;
	intern_release(&l->keys);
	mem_free(l->v);
	mem_free(l);
}

/* Whether a list names more than one line: "a.py(1,2): f", or "a.py(1): f + b.py(2): g". */
static bool lines_are_several(struct str lines)
{
	const char *open = memchr(lines.p, '(', lines.n), *close = open ? memchr(open, ')', (size_t)(lines.p + lines.n - open)) : NULL;
	return str_has(lines, STR(" + ")) || (close && memchr(open, ',', (size_t)(close - open)));
}

void compile_lines_add(struct compile_lines *l, uint32_t g, bool generated)
{
	const int64_t ns = l->p->gpu_op.dur_ns[g];
	const struct sources s = sources_of(l->p, l->p->gpu_op.args[g]);
	const uint32_t i = intern_put(&l->keys, s.lines.n ? s.lines.p : "\n", s.lines.n ? s.lines.n : 1) - 1;
	if (i == l->n)
		MEM_PUSH(l->v, l->n, l->cap, (struct lines_group){.lines = s.lines});
	l->v[i].n++;
	l->v[i].ns[generated] += ns;
	l->all_ns += ns;
	l->known_ns += s.lines.n ? ns : 0;
	l->several_ns += lines_are_several(s.lines) ? ns : 0;
	l->match_ns[s.match] += ns;
}

int compile_lines_put(const struct compile_lines *l, const struct report_args *args, struct table *first, struct err *e)
{
	if (!l || !l->n)
		return 0;
	struct table *t = section_add(&compile_lines_section, args, 0, first);
	for (uint32_t i = 0; i < l->n; i++) {
		const struct lines_group *x = &l->v[i];
		table_row(t);
		if (x->lines.n)
			table_set_str(t, LINES_LINES, x->lines);
		table_set_i64(t, LINES_COUNT, (int64_t)x->n);
		table_set_i64(t, LINES_GENERATED, x->ns[1]);
		table_set_i64(t, LINES_CALLED, x->ns[0]);
		table_set_i64(t, LINES_NS, x->ns[0] + x->ns[1]);
		table_set_f64(t, LINES_PCT, percent((double)(x->ns[0] + x->ns[1]), (double)l->all_ns));
	}
	table_note(t, "work of graphs and generated kernels %lld ns = lines known %lld (of it kernels of several lines %lld, whose time is not divided among them) + not known "
	           "%lld", (long long)l->all_ns, (long long)l->known_ns, (long long)l->several_ns, (long long)(l->all_ns - l->known_ns));
	if (l->match_ns[SOURCE_AMBIGUOUS])
		table_note(t, "several calls of the compiler's code may have launched work of %lld ns: what differs between these calls is left out",
		           (long long)l->match_ns[SOURCE_AMBIGUOUS]);
	if (l->match_ns[SOURCE_BY_NAME])
		table_warn(t, "work of %lld ns was told by the names of kernels and ops alone: provenance of another run, or of a graph that is not in it, would fit as well",
		           (long long)l->match_ns[SOURCE_BY_NAME]);
	if (l->match_ns[SOURCE_ALL_CALLS])
		table_note(t, "of %lld ns the lines are those of all calls of the kernel in its graph: the compiler did not tell these calls apart",
		           (long long)l->match_ns[SOURCE_ALL_CALLS]);
	return table_sort(t, STR("device_ns"), true, e);
}

/* Equal facts. */
struct said_group {
	uint32_t meta;           /* row of the first one */
	bool recompiles;
	int64_t n;
};

static void said_put_row(const struct profile *p, const struct said_group *x, struct table *t)
{
	struct str rest = profile_str(p, p->meta.value[x->meta]), piece;
	table_row(t);
	table_set_str(t, SAID_KIND, str_from(x->recompiles ? "recompile" : "graph break"));
	for (unsigned i = SAID_FRAME; i <= SAID_REASON && str_split(&rest, '\t', &piece); i++)
		if (piece.n)
			table_set_str(t, i, piece);
	table_set_i64(t, SAID_N, x->n);
}

int compile_said_put(const struct profile *p, const struct report_args *args, struct table *first, struct err *e)
{
	const uint32_t breaks = intern_find(&p->strings, STR(SOURCE_BREAK)), recompiles = intern_find(&p->strings, STR(SOURCE_RECOMPILE));
	struct said_group *v = NULL;
	struct intern seen;
	uint32_t n = 0, cap = 0;
	intern_init(&seen);
	for (uint32_t i = 0; i < p->meta.rows.n; i++) {
		const uint32_t key[] = {p->meta.key[i], p->meta.value[i]};
		if (!key[0] || (key[0] != breaks && key[0] != recompiles))
			continue;
		const uint32_t at = intern_put(&seen, (const char *)key, sizeof key) - 1;
		if (at == n)
			MEM_PUSH(v, n, cap, (struct said_group){i, key[0] == recompiles, 0});
		v[at].n++;
	}
	struct table *t = n ? section_add(&compile_said_section, args, 0, first) : NULL;
	for (uint32_t i = 0; i < n; i++)
		said_put_row(p, &v[i], t);
	mem_free(v);
	intern_release(&seen);
	return t ? table_sort(t, STR("count"), true, e) : 0;
}
