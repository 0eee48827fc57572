/* Parents of ranges, by a stack sweep over each thread. Rows are sorted by (track, start, -duration), so one pass over them is enough: O(n), however deep the nesting.
 *
 * A range that begins inside another and ends after it overlaps it partially: clocks and profilers do that. It is
 * repaired, not dropped, and counted. The Python frame that opens an annotation (__enter__, _record_function_enter) is left
 * while the annotation goes on: such a frame counts as over when the annotation begins, so that the annotation takes its
 * place beside it. Any other range becomes a child, as if it ended with its parent.
 * API calls never have children: with times rounded to microseconds a call can seem to contain the op that made it. */
#include "analysis/analysis.h"
#include "base/mem.h"

struct frame {
	int64_t end;
	uint32_t span; /* itself */
	uint32_t op;   /* itself if it is an op, else the nearest op around it */
};

int pass_nest(struct profile *p, struct err *e)
{
	const struct spans *s = &p->span;
	uint32_t *parent = rows_derive(&p->span, &store_tables[TABLE_span], offsetof(struct spans, parent));
	uint32_t *op = rows_derive(&p->span, &store_tables[TABLE_span], offsetof(struct spans, op));
	struct frame *stack = NULL;
	size_t depth = 0, cap = 0;
	uint64_t overlaps = 0;
	uint32_t first_overlap = ROW_NONE, first_other = ROW_NONE;

	for (uint32_t i = 0; i < s->rows.n; i++) {
		if (i && s->track[i] != s->track[i - 1])
			depth = 0;
		if (!span_nests(s->kind[i]))
			continue;
		while (depth && s->start_ns[i] >= stack[depth - 1].end)
			depth--;
		int64_t end = span_end(p, i);
		bool opened = s->kind[i] == SPAN_OP || s->kind[i] == SPAN_USER;
		while (opened && depth && end > stack[depth - 1].end && s->kind[stack[depth - 1].span] == SPAN_PYTHON) {
			if (!overlaps++)
				first_overlap = i, first_other = stack[depth - 1].span;
			depth--;
		}
		if (depth) {
			const struct frame *top = &stack[depth - 1];
			parent[i] = top->span;
			op[i] = top->op;
			if (end > top->end) {
				if (!overlaps++)
					first_overlap = i, first_other = top->span;
				end = top->end;
			}
		}
		if (s->kind[i] == SPAN_CALL)
			continue;
		MEM_GROW(stack, cap, depth + 1);
		stack[depth].end = end;
		stack[depth].span = i;
		stack[depth].op = s->kind[i] == SPAN_OP ? i : op[i];
		depth++;
	}
	mem_free(stack);
	if (overlaps)
		diag_add_n(&p->diags, "partial-overlap", DIAG_NOTE, overlaps, -1,
		           "'" STR_FMT "' begins inside '" STR_FMT "' and ends after it: the nesting was repaired",
		           STR_ARG(profile_str(p, s->name[first_overlap])), STR_ARG(profile_str(p, s->name[first_other])));
	return 0;
}
