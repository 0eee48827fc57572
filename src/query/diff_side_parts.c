/* The parts of a side, whatever it was taken of, and how sides of ranks are joined. */
#include "query/diff_side.h"

#include "base/mem.h"
#include "base/search.h"
#include "base/sort.h"
#include "query/diff_scatter.h"

#include <assert.h>

const char *const diff_kind_name[DIFF_KINDS] = {"compute", "comm", "copy", "idle", "host", "wait"};

static_assert(sizeof(struct diff_key) == 7 * sizeof(uint32_t) + 2 * sizeof(uint8_t) + sizeof(uint16_t), "keys are compared as bytes");

/* So many of the steps are left at least. */
enum { DIFF_FEWEST_STEPS = 2 };

struct diff_part *diff_side_add(struct diff_side *s, const struct diff_key *key, uint64_t calls, int64_t ns)
{
	uint32_t i = intern_put(&s->keys, (const char *)key, sizeof *key) - 1;
	if (i == s->n_parts) {
		MEM_GROW(s->part, s->cap_parts, i + 1);
		s->part[s->n_parts++] = (struct diff_part){.key = *key};
	}
	s->part[i].calls += calls;
	s->part[i].ns += ns;
	return &s->part[i];
}

unsigned diff_side_warm_up(const int64_t *ns, unsigned n)
{
	unsigned warm_up = 0;
	if (n <= DIFF_FEWEST_STEPS)
		return 0;
	int64_t *sorted = memcpy(NEW_ARRAY_RAW(n, int64_t), ns, n * sizeof *ns);
	const int64_t median = sort_median_i64(sorted, n);
	mem_free(sorted);
	while (warm_up + DIFF_FEWEST_STEPS < n && (double)ns[warm_up] > DIFF_WARM_UP * (double)median)
		warm_up++;
	return warm_up;
}

double diff_side_per(const struct diff_side *s)
{
	return (double)s->n_steps * (s->gpus ? s->gpus : 1);
}

struct str diff_side_place(const struct diff_side *s)
{
	size_t n = s->n_recordings > 1 ? s->path.n : 0;
	while (n && s->path.p[n - 1] != '/')
		n--;
	return n > 1 ? (struct str){s->path.p, n - 1} : s->path;
}

bool diff_side_has_shapes(const struct diff_side *s)
{
	return ANY_WHERE(i, 0, s->n_parts, s->part[i].key.shapes != 0);
}

bool diff_side_has_lines(const struct diff_side *s)
{
	return ANY_WHERE(i, 0, s->n_parts, s->part[i].key.line != 0);
}

/* ---- jobs ---- */

static uint32_t diff_joined_text(struct diff_side *job, const struct diff_side *rank, uint32_t text)
{
	return text ? intern_str(&job->texts, intern_get(&rank->texts, text)) : 0;
}

static struct diff_key diff_joined_key(struct diff_side *job, const struct diff_side *rank, struct diff_key k)
{
	k.name = diff_joined_text(job, rank, k.name);
	k.type = diff_joined_text(job, rank, k.type);
	k.shapes = diff_joined_text(job, rank, k.shapes);
	k.kernel = diff_joined_text(job, rank, k.kernel);
	k.around = diff_joined_text(job, rank, k.around);
	k.line = diff_joined_text(job, rank, k.line);
	k.waited_for = diff_joined_text(job, rank, k.waited_for);
	return k;
}

/* GPUs of all ranks; of other facts, those of the first rank. */
static void diff_join_gpu(struct diff_side *job, const struct diff_side *rank)
{
	struct diff_fact *mine = &job->fact[DIFF_FACT_GPU];
	const struct str other = rank->fact[DIFF_FACT_GPU].value;
	if (other.n && !str_has(mine->value, other))
		mine->value = arena_printf(&job->arena, STR_FMT "%s" STR_FMT, STR_ARG(mine->value), mine->value.n ? ", " : "", STR_ARG(other));
}

static void diff_join_scatter(struct diff_side *job, const struct diff_side *rank, const uint32_t *part)
{
	job->scatter_dropped |= !rank->n_part_steps;
	for (uint32_t i = 0; i < rank->n_part_steps; i++)
		diff_scatter_count(job, part[i / rank->n_steps], i % rank->n_steps, rank->part_step_ns[i]);
	diff_scatter_end(job);
}

int diff_side_join(struct diff_side *job, const struct diff_side *rank, struct err *e)
{
	if (!job->gpus != !rank->gpus)
		return err_set(e, ERR_DATA, "of the job, " STR_FMT " %s, other ranks %s", STR_ARG(rank->path), rank->gpus ? "has device work" : "has no device work", rank->gpus ? "have none" : "have some");
	if (job->n_steps != rank->n_steps)
		return err_set(e, ERR_DATA, "of the job, " STR_FMT " has %u step%s to compare, other ranks %u: --steps=A..B chooses steps that all have", STR_ARG(rank->path), rank->n_steps,
		               rank->n_steps == 1 ? "" : "s", job->n_steps);
	if (__builtin_add_overflow(job->total_ns, rank->total_ns, &job->total_ns))
		return err_set(e, ERR_DATA, STR_FMT ": the steps of all GPUs are longer than 64 bits hold of ns: a time is damaged", STR_ARG(rank->path));
	for (unsigned i = 0; i < job->n_steps; i++)
		job->step_ns[i] = __builtin_add_overflow(job->step_ns[i], rank->step_ns[i], &job->step_ns[i]) ? INT64_MAX : job->step_ns[i];
	uint32_t *part = NEW_ARRAY_RAW(rank->n_parts, uint32_t);
	for (uint32_t i = 0; i < rank->n_parts; i++) {
		const struct diff_part *x = &rank->part[i];
		const struct diff_key key = diff_joined_key(job, rank, x->key);
		struct diff_part *mine = diff_side_add(job, &key, x->calls, x->ns);
		mine->wait_unknown_ns += x->wait_unknown_ns;
		mine->maybe_wait_ns += x->maybe_wait_ns;
		part[i] = (uint32_t)(mine - job->part);
		if (!mine->short_kernel)
			mine->short_kernel = diff_joined_text(job, rank, x->short_kernel);
	}
	diff_join_scatter(job, rank, part);
	for (uint32_t i = 0; i < rank->n_exposed; i++) {
		struct diff_exposed x = rank->exposed[i];
		x.part = part[x.part];
		x.input = job->n_recordings;
		MEM_PUSH(job->exposed, job->n_exposed, job->cap_exposed, x);
	}
	mem_free(part);
	diff_join_gpu(job, rank);
	job->gpus += rank->gpus;
	job->n_recordings++;
	job->warm_up = job->warm_up > rank->warm_up ? job->warm_up : rank->warm_up;
	job->peak_bytes = job->peak_bytes > rank->peak_bytes ? job->peak_bytes : rank->peak_bytes;
	job->has_steps &= rank->has_steps;
	job->frames |= rank->frames;
	job->thinned |= rank->thinned;
	return 0;
}

void diff_side_join_end(struct diff_side *job)
{
	for (unsigned i = 0; i < job->n_steps; i++)
		job->step_ns[i] /= job->n_recordings;
	job->path = arena_printf(&job->arena, STR_FMT " and %u more", STR_ARG(job->path), job->n_recordings - 1);
}

void diff_side_disown(const struct diff_side *s)
{
	intern_disown(&s->texts);
	intern_disown(&s->keys);
	arena_disown(&s->arena);
	mem_disown(s->part);
	mem_disown(s->exposed);
	mem_disown(s->step_ns);
	mem_disown(s->part_step_ns);
	mem_disown(s->fact);
	mem_disown((void *)(uintptr_t)s);
}

void diff_side_free(struct diff_side *s)
{
	if (!s)
		return;
	intern_release(&s->texts);
	intern_release(&s->keys);
	arena_release(&s->arena);
	mem_free(s->part);
	mem_free(s->exposed);
	mem_free(s->step_ns);
	mem_free(s->part_step_ns);
	mem_free(s->fact);
	mem_free(s);
}
