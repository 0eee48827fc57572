#include "detect/parts/compiler_runs.h"

#include "detect/parts/compiled.h"

/* A shorter range is of a frame that the compiler leaves alone. */
static const int64_t COMPILER_SHORTEST_NS = 1000 * 1000;
/* Ranges (guards, further compilation) that may stand between the compiler's and its frame's. */
enum { RANGES_BETWEEN = 8 };

uint8_t *compiler_runs_new(const struct profile *p)
{
	return inside_new(p, compiled_is_compiler, NULL);
}

bool compiler_run_starts(const struct profile *p, const uint8_t *mark, uint32_t span)
{
	uint32_t up = p->span.parent[span];
	return mark[span] && (up == ROW_NONE || !mark[up]) && p->span.dur_ns[span] >= COMPILER_SHORTEST_NS;
}

/* The compiled frame that runs when the compiler is done: "Torch-Compiled Region: 0/1"; ROW_NONE. */
static uint32_t frame_after(const struct profile *p, uint32_t compile)
{
	unsigned between = 0;
	for (uint32_t i = compile + 1; i < p->span.rows.n && p->span.track[i] == p->span.track[compile] && between < RANGES_BETWEEN; i++) {
		if (p->span.start_ns[i] < span_end(p, compile))
			continue;
		if (p->span.parent[i] != p->span.parent[compile])
			return ROW_NONE;
		if (compiled_is_frame(profile_str(p, p->span.name[i])))
			return i;
		between++;
	}
	return ROW_NONE;
}

void compiler_run_put_frame(const struct profile *p, uint32_t run, struct buf *out)
{
	uint32_t frame = frame_after(p, run);
	struct str name = frame != ROW_NONE ? profile_str(p, p->span.name[frame]) : (struct str){0};
	ptrdiff_t colon = str_find(name, STR(": "));
	size_t end = name.n;
	while (end && name.p[end - 1] != '/')
		end--;
	if (colon < 0 || end < (size_t)colon + 4) {
		buf_cstr(out, "a frame whose number is not recorded");
		return;
	}
	buf_cstr(out, "frame ");
	buf_put(out, name.p + colon + 2, end - 1 - (size_t)colon - 2);
}
