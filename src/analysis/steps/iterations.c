/* Iterations from the calls of a key op, the user's or one of step_keys.def. */
#include "analysis/steps/iterations.h"

#include <ctype.h>
#include <math.h>

#include "analysis/analysis.h"
#include "analysis/names/names.h"
#include "analysis/recording.h"
#include "analysis/steps/iterations_names.h"
#include "analysis/steps/serving_steps.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sort.h"

void iterations_release(struct iterations *it)
{
	mem_free(it->v);
	it->v = NULL;
	it->n = it->cap = 0;
}

static void add_iteration(struct iterations *it, struct iteration x)
{
	MEM_PUSH(it->v, it->n, it->cap, x);
}

bool work_extent(const struct profile *p, int64_t *first, int64_t *last)
{
	*first = INT64_MAX;
	*last = INT64_MIN;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint8_t kind = p->span.kind[i];
		if (kind == SPAN_TRACE || kind == SPAN_OVERHEAD || kind == SPAN_SYNC || kind == SPAN_GPU_USER || kind == SPAN_OS)
			continue;
		*first = p->span.start_ns[i] < *first ? p->span.start_ns[i] : *first;
		*last = span_end(p, i) > *last ? span_end(p, i) : *last;
	}
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		*first = p->gpu_op.start_ns[g] < *first ? p->gpu_op.start_ns[g] : *first;
		*last = gpu_end(p, g) > *last ? gpu_end(p, g) : *last;
	}
	return *first <= *last;
}

static struct str number_text(struct arena *a, int64_t n)
{
	return arena_printf(a, "%lld", (long long)n);
}

/* From border to border; 0 is what is before the first. */
static unsigned cut_at_borders(const struct profile *p, const int64_t *border, uint32_t n, struct arena *a, struct iterations *it)
{
	int64_t first, last;
	if (!n || !recording_extent(p, &first, &last))
		return 0;
	if (first < border[0])
		add_iteration(it, (struct iteration){first, border[0], 0, STR("0"), ROW_NONE, true});
	for (uint32_t i = 0; i + 1 < n; i++)
		add_iteration(it, (struct iteration){border[i], border[i + 1], i + 1, number_text(a, i + 1), ROW_NONE, false});
	if (border[n - 1] < last)
		add_iteration(it, (struct iteration){border[n - 1], last + 1, n, number_text(a, n), ROW_NONE, true});
	return n - 1;
}

/* The first number in a name; -1 = none. */
static int64_t iterations_number_in(struct str s)
{
	size_t i = 0, end;
	int64_t v;
	while (i < s.n && !isdigit((unsigned char)s.p[i]))
		i++;
	for (end = i; end < s.n && isdigit((unsigned char)s.p[end]);)
		end++;
	return end > i && str_to_i64((struct str){s.p + i, end - i}, &v) ? v : -1;
}

/* The GPU with most calls. */
static uint32_t busiest_gpu(const struct key_calls *k)
{
	uint32_t *count = NEW_ARRAY(k->gpus, uint32_t), best = 0;
	for (uint32_t i = 0; i < k->n; i++)
		count[k->gpu[i]]++;
	for (uint32_t g = 1; g < k->gpus; g++)
		if (count[g] > count[best])
			best = g;
	mem_free(count);
	return best;
}

/* Ranges that hold a step each: the i-th of all GPUs together are one, from the first start to the last end. Where GPUs have different
 * numbers of them, those of the GPU that has most. */
static void join_ranges(const struct key_calls *k, struct iterations *it)
{
	uint32_t best = busiest_gpu(k), *place = NEW_ARRAY(k->gpus, uint32_t), *count = NEW_ARRAY(k->gpus, uint32_t);
	for (uint32_t i = 0; i < k->n; i++)
		count[k->gpu[i]]++;
	for (uint32_t i = 0; i < k->n; i++) {
		if (k->gpu[i] == best)
			add_iteration(it, (struct iteration){k->start_ns[i], k->end_ns[i], 0, {0}, k->span[i], false});
	}
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t g = k->gpu[i], at = place[g]++;
		if (count[g] != count[best])
			continue;
		it->v[at].start_ns = k->start_ns[i] < it->v[at].start_ns ? k->start_ns[i] : it->v[at].start_ns;
		it->v[at].end_ns = k->end_ns[i] > it->v[at].end_ns ? k->end_ns[i] : it->v[at].end_ns;
	}
	mem_free(place);
	mem_free(count);
}

/* By the numbers in their names if these ascend, else 0, 1, 2, ... */
static void number_ranges(const struct profile *p, struct arena *a, struct iterations *it)
{
	bool ascending = it->n > 1; /* of one alone it may be a batch size */
	for (uint32_t i = 0; i < it->n; i++) {
		uint32_t span = it->v[i].span;
		it->v[i].number = span == ROW_NONE ? -1 : iterations_number_in(profile_str(p, p->span.name[span]));
		ascending = ascending && it->v[i].number >= 0 && (!i || it->v[i].number > it->v[i - 1].number);
	}
	for (uint32_t i = 0; i < it->n; i++) {
		if (!ascending)
			it->v[i].number = i;
		it->v[i].name = number_text(a, it->v[i].number);
	}
}

/* Do the calls themselves fill the time from the first to the last: at least half of it, on the GPU with most calls? */
static bool iterations_fills(const struct profile *p, const struct key_calls *k)
{
	uint32_t best = busiest_gpu(k), n = 0;
	int64_t first = INT64_MAX, last = INT64_MIN, sum = 0;
	for (uint32_t i = 0; i < k->n; i++) {
		if (k->gpu[i] != best)
			continue;
		first = k->start_ns[i] < first ? k->start_ns[i] : first;
		last = k->end_ns[i] > last ? k->end_ns[i] : last;
		sum += k->end_ns[i] - k->start_ns[i];
		n++;
	}
	if (n == 1 && !work_extent(p, &first, &last))
		return false;
	return n && sum >= (last - first) / 2;
}

/* How equal the lengths of the whole ones are, as the standard deviation in percent of the mean; -1 = nothing to compare. */
static double unevenness_pct(const struct iterations *it)
{
	double sum = 0, squares = 0, n = 0;
	for (uint32_t i = 0; i < it->n; i++) {
		double length = (double)(it->v[i].end_ns - it->v[i].start_ns);
		if (it->v[i].partial)
			continue;
		sum += length;
		squares += length * length;
		n++;
	}
	double mean = n ? sum / n : 0, variance = n ? squares / n - mean * mean : 0;
	return n > 1 && mean > 0 ? 100 * sqrt(variance > 0 ? variance : 0) / mean : -1;
}

/* 1 / (1 + v^2) with v, the standard deviation of the lengths divided by their mean: 1 for equal lengths, a half for what comes by chance. */
static double certainty_of(double uneven_pct)
{
	double v = uneven_pct > 0 ? uneven_pct / 100 : 0;
	return 1 / (1 + v * v);
}

static void iterations_describe(struct iterations *it, const struct key_calls *k, enum key_role role, bool equal, struct arena *a)
{
	struct buf b = {0};
	double uneven = unevenness_pct(it);
	if (role == KEY_HOLDS)
		buf_printf(&b, "Steps are the ranges `" STR_FMT "` (%u)", STR_ARG(it->key), k->n);
	else
		buf_printf(&b, "Steps go from %s to %s of `" STR_FMT "` (%u call%s); what is before the first and after the last is no whole "
		           "step and counts in no mean", role == KEY_ENDS ? "end" : "start", role == KEY_ENDS ? "end" : "start",
		           STR_ARG(it->key), k->n, k->n == 1 ? "" : "s");
	if (k->gpus > 1 && equal)
		buf_printf(&b, ". Each of %u GPUs has as many: number i of all together is one", k->gpus);
	else if (k->gpus > 1)
		buf_printf(&b, role == KEY_HOLDS ? ". GPUs have different numbers of them: those of the GPU with most are used"
		                                 : ". GPUs have different numbers of calls: each is a border");
	if (uneven >= 0)
		buf_printf(&b, ". Their lengths differ by %.1f %% (standard deviation)", uneven);
	buf_char(&b, '.');
	it->how = arena_str(a, buf_view(&b));
	buf_release(&b);
}

static bool make_iterations(const struct profile *p, const struct key_calls *k, enum key_role role, struct arena *a,
                            struct iterations *it)
{
	unsigned whole;
	it->key = arena_str(a, k->name);
	it->calls = k->n;
	it->certainty = 1;
	if (role == KEY_HOLDS) {
		join_ranges(k, it);
		number_ranges(p, a, it);
		whole = it->n;
	} else {
		uint32_t n;
		int64_t *border = key_borders(k, role == KEY_ENDS, &n);
		whole = cut_at_borders(p, border, n, a, it);
		mem_free(border);
	}
	iterations_describe(it, k, role, key_calls_even(k), a);
	return whole > 0;
}

bool iterations_of_key(const struct profile *p, struct str key, struct arena *a, struct iterations *it)
{
	struct key_calls k;
	if (!key_calls_find(p, key, &k))
		return false;
	unsigned row = step_key_of(k.name);
	enum key_role role = iterations_fills(p, &k) ? KEY_HOLDS : row < n_step_keys && step_keys[row].role == KEY_ENDS ? KEY_ENDS : KEY_BEGINS;
	bool found = make_iterations(p, &k, role, a, it);
	if (role != KEY_HOLDS)
		it->certainty = certainty_of(unevenness_pct(it));
	key_calls_release(&k);
	return found;
}

/* Calls that stand close together are one: several in a row make one end. They are divided where the pause is at least a quarter of the
 * longest. */
static void join_neighbours(struct key_calls *k)
{
	int64_t longest = 0;
	for (uint32_t i = 1; i < k->n; i++)
		if (k->gpu[i] == k->gpu[i - 1] && k->start_ns[i] - k->end_ns[i - 1] > longest)
			longest = k->start_ns[i] - k->end_ns[i - 1];
	uint32_t n = 0, *last = NEW_ARRAY(k->gpus, uint32_t); /* of this GPU, +1 */
	for (uint32_t i = 0; i < k->n; i++) {
		uint32_t g = k->gpu[i], before = last[g];
		if (before && k->start_ns[i] - k->end_ns[before - 1] < longest / 4) {
			k->end_ns[before - 1] = k->end_ns[i];
			continue;
		}
		k->start_ns[n] = k->start_ns[i];
		k->end_ns[n] = k->end_ns[i];
		k->span[n] = k->span[i];
		k->gpu[n] = g;
		last[g] = ++n;
	}
	k->n = n;
	mem_free(last);
}

/* By name, how many outermost calls of the names that fit begin outside [from, to), and when the first of them does. */
struct name_calls {
	uint32_t *n;
	int64_t *first;
};

static struct name_calls iterations_count_calls(const struct profile *p, const uint8_t *fit, int64_t from, int64_t to)
{
	struct name_calls c = {NEW_ARRAY(p->strings.n, uint32_t), NEW_ARRAY(p->strings.n, int64_t)};
	int64_t open_until = INT64_MIN;
	uint32_t track = ROW_NONE;
	for (uint32_t i = 0; i < p->span.rows.n; i++) {
		uint32_t name = p->span.name[i];
		int64_t start = p->span.start_ns[i];
		if (!fit[name] || !key_kind(p->span.kind[i]))
			continue;
		if (track != p->span.track[i])
			open_until = INT64_MIN;
		track = p->span.track[i];
		if (start < open_until)
			continue;
		open_until = span_end(p, i);
		if (start >= from && start < to)
			continue;
		c.first[name] = !c.n[name] || start < c.first[name] ? start : c.first[name];
		c.n[name]++;
	}
	return c;
}

static void name_calls_release(struct name_calls *c)
{
	mem_free(c->n);
	mem_free(c->first);
}

/* Which of the names that fit a row makes the steps: the one called least often (of a GAN's or a nested optimizer's steps that which is
 * once in each), but more than once; of several, the last to begin when it ends steps, else the first. */
static uint32_t choose_name(const struct profile *p, const uint8_t *fit, enum key_role role)
{
	struct name_calls c = iterations_count_calls(p, fit, 0, 0);
	uint32_t best = 0;
	for (uint32_t s = 0; s < p->strings.n; s++) {
		if (c.n[s] < 2)
			continue;
		bool fewer = !best || c.n[s] < c.n[best];
		bool later = best && c.n[s] == c.n[best] && (role == KEY_ENDS ? c.first[s] > c.first[best] : c.first[s] < c.first[best]);
		if (fewer || later)
			best = s;
	}
	name_calls_release(&c);
	return best;
}

/* Of the names that fit, but were not chosen, the one most of whose calls, and most calls of all, lie outside the steps: it makes steps
 * in another part of the run, as an optimizer of an earlier phase does. 0 = none. */
static uint32_t find_rival(const struct profile *p, const uint8_t *fit, uint32_t chosen, int64_t from, int64_t to, uint32_t *calls)
{
	struct name_calls all = iterations_count_calls(p, fit, 0, 0), outside = iterations_count_calls(p, fit, from, to);
	uint32_t best = 0;
	for (uint32_t s = 0; s < p->strings.n; s++)
		if (s != chosen && outside.n[s] >= 2 && outside.n[s] > all.n[s] / 2 && (!best || outside.n[s] > outside.n[best]))
			best = s;
	*calls = outside.n[best];
	name_calls_release(&all);
	name_calls_release(&outside);
	return best;
}

/* Says which part of the run the steps are, where another name of the row makes steps in the rest. */
static void describe_rival(const struct profile *p, const uint8_t *fit, uint32_t chosen, struct arena *a, struct iterations *it)
{
	int64_t from = INT64_MAX, to = INT64_MIN, sum = 0, first, last;
	for (uint32_t i = 0; i < it->n; i++) {
		if (it->v[i].partial)
			continue;
		from = it->v[i].start_ns < from ? it->v[i].start_ns : from;
		to = it->v[i].end_ns > to ? it->v[i].end_ns : to;
		sum += it->v[i].end_ns - it->v[i].start_ns;
	}
	uint32_t calls, rival = find_rival(p, fit, chosen, from, to, &calls);
	if (!rival || !recording_extent(p, &first, &last) || last == first)
		return;
	struct str name = profile_str(p, rival);
	it->how = arena_printf(a, STR_FMT " They cover %.1f %% of the recording: `" STR_FMT "` is called %u times outside them; --key-op='" STR_FMT
	                       "' shows the steps that it makes.", STR_ARG(it->how), 100 * (double)sum / ((double)last - (double)first), STR_ARG(name),
	                       calls, STR_ARG(name));
}

/* What ranges are called. */
static uint8_t *names_of_ranges(const struct profile *p)
{
	uint8_t *used = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_OP || p->span.kind[i] == SPAN_USER || p->span.kind[i] == SPAN_RANGE)
			used[p->span.name[i]] = 1;
	return used;
}

static bool try_row(const struct profile *p, unsigned row, const uint8_t *row_of, struct arena *a, struct iterations *it)
{
	const struct step_key *key = &step_keys[row];
	uint8_t *fit = NEW_ARRAY(p->strings.n, uint8_t), *one = NULL;
	uint32_t any = 0, chosen = 0;
	for (uint32_t s = 0; s < p->strings.n; s++)
		if (row_of[s] == row + 1) {
			fit[s] = 1;
			any = s;
		}
	if (any && key->role != KEY_HOLDS) { /* numbers tell ranges that hold steps apart, other names do not belong together */
		chosen = choose_name(p, fit, key->role);
		one = NEW_ARRAY(p->strings.n, uint8_t);
		one[chosen] = chosen != 0;
	}
	struct key_calls k = {0};
	if (any)
		key_calls_of_names(p, one ? one : fit, profile_str(p, one ? chosen : any), &k);
	if (key->several)
		join_neighbours(&k);
	bool found = k.n && make_iterations(p, &k, key->role, a, it);
	if (!found)
		iterations_release(it);
	else if (one)
		describe_rival(p, fit, chosen, a, it);
	key_calls_release(&k);
	mem_free(fit);
	mem_free(one);
	return found;
}

static bool try_rows(const struct profile *p, bool optimizer, struct arena *a, struct iterations *it)
{
	uint8_t *row_of = names_of_ranges(p), present[64] = {0};
	bool found = false;
	for (uint32_t s = 0; s < p->strings.n; s++) {
		unsigned row = row_of[s] ? step_key_of(profile_str(p, s)) : n_step_keys;
		row_of[s] = row < n_step_keys ? (uint8_t)(row + 1) : 0;
		if (row < sizeof present)
			present[row] = 1;
	}
	for (unsigned row = 0; row < n_step_keys && !found; row++)
		if (present[row] && step_keys[row].optimizer == optimizer)
			found = try_row(p, row, row_of, a, it);
	mem_free(row_of);
	return found;
}

/* Digits become "#". */
static struct str iterations_without_numbers(struct str s, struct arena *a)
{
	struct buf b = {0};
	for (size_t i = 0; i < s.n; i++)
		if (!isdigit((unsigned char)s.p[i]))
			buf_char(&b, s.p[i]);
		else if (!i || !isdigit((unsigned char)s.p[i - 1]))
			buf_char(&b, '#');
	struct str out = arena_str(a, buf_view(&b));
	buf_release(&b);
	return out;
}

struct worded {
	struct str pattern;
	int64_t ns;              /* sum of its ranges */
};

/* Of the names that mean a step, the pattern that takes most time; of one around another, the inner where it is called more often. */
static bool iterations_worded(const struct profile *p, struct arena *a, struct iterations *it)
{
	enum { MOST = 32 };
	struct worded w[MOST];
	unsigned n = 0, best = 0;
	uint8_t *wanted = NEW_ARRAY(p->strings.n, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.kind[i] == SPAN_USER || p->span.kind[i] == SPAN_RANGE)
			wanted[p->span.name[i]] = 1;
	for (uint32_t s = 0; s < p->strings.n; s++) {
		struct str name = profile_str(p, s);
		if (!wanted[s])
			continue;
		wanted[s] = 0;
		if (!name_means_step(name) || name_is(p, s, NAME_STEP))
			continue;
		unsigned at = 0;
		while (at < n && !name_matches_numbers(name, w[at].pattern))
			at++;
		if (at == MOST)
			continue;
		if (at == n)
			w[n++] = (struct worded){iterations_without_numbers(name, a), 0};
		wanted[s] = (uint8_t)(at + 1);
	}
	for (uint32_t i = 0; n && i < p->span.rows.n; i++)
		if (wanted[p->span.name[i]])
			w[wanted[p->span.name[i]] - 1].ns += p->span.dur_ns[i];
	for (unsigned i = 1; i < n; i++)
		if (w[i].ns > w[best].ns)
			best = i;
	for (uint32_t s = 0; s < p->strings.n; s++)
		wanted[s] = n && wanted[s] == best + 1;
	struct key_calls k = {0};
	bool found = false;
	if (n) {
		key_calls_of_names(p, wanted, w[best].pattern, &k);
		found = iterations_fills(p, &k) && make_iterations(p, &k, KEY_HOLDS, a, it);
	}
	key_calls_release(&k);
	mem_free(wanted);
	return found;
}

/* Numbers in a server's names are sizes of batches: iterations are numbered in order of time. */
static bool iterations_served(const struct profile *p, struct arena *a, struct iterations *it)
{
	bool any;
	uint8_t *wanted = serving_names(p, &any);
	uint32_t first = p->strings.n;
	struct key_calls k = {0};
	for (uint32_t s = p->strings.n; s-- > 0;) {
		wanted[s] = wanted[s] == SERVING_ITERATION;
		first = wanted[s] ? s : first;
	}
	any = first < p->strings.n;
	if (any)
		key_calls_of_names(p, wanted, iterations_without_numbers(profile_str(p, first), a), &k);
	bool found = k.n && make_iterations(p, &k, KEY_HOLDS, a, it);
	for (uint32_t i = 0; found && i < it->n; i++) {
		it->v[i].number = i;
		it->v[i].name = number_text(a, i);
	}
	key_calls_release(&k);
	mem_free(wanted);
	return found;
}

bool iterations_named(const struct profile *p, struct arena *a, struct iterations *it)
{
	return iterations_served(p, a, it) || iterations_worded(p, a, it) || try_rows(p, false, a, it);
}

bool iterations_optimizer(const struct profile *p, struct arena *a, struct iterations *it)
{
	return try_rows(p, true, a, it);
}
