#include "predecessors/dlprof/iterations.h"

#include <math.h>
#include <string.h>
#include <sys/param.h>

#include "analysis/analysis.h"
#include "analysis/steps/iterations_names.h"
#include "analysis/tree/op_instances.h"
#include "base/mem.h"

void dlprof_iterations_release(struct dlprof_iterations *d)
{
	mem_free(d->start_ns);
	mem_free(d->stop_ns);
	*d = (struct dlprof_iterations){0};
}

int64_t dlprof_zero_ns(const struct profile *p)
{
	int64_t first, last;
	while (p->whole)
		p = p->whole;
	return p->zero_is_start || !work_extent(p, &first, &last) ? 0 : first;
}

static bool counts_steps(struct str name)
{
	unsigned row = str_has(name, STR("global_step")) ? step_key_of(name) : n_step_keys;
	return row < n_step_keys && strstr(step_keys[row].pattern, "global_step");
}

/* In a database of DLProf ranges have the types of ops; their names are those of the ops. */
static bool find_default_op(const struct profile *p, struct key_calls *k)
{
	for (uint32_t i = 0; i < p->ops->n_ops; i++)
		if (counts_steps(p->ops->op[i].name))
			return key_calls_find(p, p->ops->op[i].id, k);
	return false;
}

/* TensorFlow's node that counts steps, under each name that it goes by. */
static bool find_default(const struct profile *p, struct key_calls *k)
{
	if (p->ops && p->ops->origin == OPS_STATED)
		return find_default_op(p, k);
	uint8_t *wanted = NEW_ARRAY(p->strings.n, uint8_t);
	struct str name = {0};
	for (uint32_t s = 1; s < p->strings.n; s++) {
		wanted[s] = counts_steps(profile_str(p, s));
		name = wanted[s] ? profile_str(p, s) : name;
	}
	if (name.n)
		key_calls_of_names(p, wanted, name, k);
	mem_free(wanted);
	return k->n > 0;
}

/* A database of DLProf says when the recording ended; of a slice the events do. */
static int64_t stated_end(const struct profile *p, int64_t last)
{
	enum { TOO_FAR = 62 }; /* as of the times of events: the distance of any two fits an int64 */
	struct str text;
	int64_t end;
	bool stated = !p->whole && profile_meta(p, "iteration_list:stop_time", &text) && str_to_i64(text, &end);
	return stated && end > last && end < 1ll << TOO_FAR ? end : last;
}

void dlprof_iterations_of(const struct profile *p, struct str key, struct dlprof_iterations *out)
{
	struct key_calls k = {0};
	int64_t first, last;
	uint32_t n = 0;
	int64_t *border = NULL;
	*out = (struct dlprof_iterations){.key = key.n ? key : STR("global_step")};
	if (key.n ? key_calls_find(p, key, &k) : find_default(p, &k))
		border = key_borders(&k, true, &n);
	if (!work_extent(p, &first, &last))
		first = last = 0;
	last = stated_end(p, last);
	if (p->zero_is_start && first > 0)
		first = 0;
	out->calls = k.n;
	out->n = n + 1;
	out->start_ns = NEW_ARRAY(out->n, int64_t);
	out->stop_ns = NEW_ARRAY(out->n, int64_t);
	for (uint32_t i = 0; i <= n; i++) {
		out->start_ns[i] = i ? border[i - 1] : first;
		out->stop_ns[i] = i < n ? border[i] - 1 : last;
		if (out->stop_ns[i] < out->start_ns[i]) /* the last event is the key op's */
			out->stop_ns[i] = out->start_ns[i];
	}
	mem_free(border);
	key_calls_release(&k);
}

/* Lengths sum to the length of the whole. */
static double dlprof_iterations_length_of(const struct dlprof_iterations *d, uint32_t i)
{
	int64_t end = i + 1 < d->n ? d->start_ns[i + 1] : d->stop_ns[i];
	return (double)(end - d->start_ns[i]);
}

void dlprof_iterations_mean(const struct dlprof_iterations *d, uint32_t first, uint32_t last, double *mean, double *deviation)
{
	double sum = 0, squares = 0;
	uint32_t n = 0;
	for (uint32_t i = first; i <= last && i < d->n; i++, n++)
		sum += dlprof_iterations_length_of(d, i);
	*mean = n ? sum / n : 0;
	for (uint32_t i = first; i <= last && i < d->n; i++)
		squares += (dlprof_iterations_length_of(d, i) - *mean) * (dlprof_iterations_length_of(d, i) - *mean);
	*deviation = n ? sqrt(squares / n) : 0;
}

int dlprof_window(const struct profile *p, int64_t first, int64_t last, struct step_window *w, struct err *e)
{
	struct dlprof_iterations d;
	dlprof_iterations_of(p, p->key_op, &d);
	int64_t most = (int64_t)d.n - 1, from = MAX(first, 0), to = MIN(last, most);
	*w = (struct step_window){0};
	if (from <= to) {
		int64_t end = d.stop_ns[to] < INT64_MAX ? d.stop_ns[to] + 1 : INT64_MAX;
		*w = (struct step_window){.start_ns = d.start_ns[from], .end_ns = end, .device_start_ns = d.start_ns[from], .device_end_ns = end,
		                          .steps = (unsigned)(to - from + 1)};
	}
	dlprof_iterations_release(&d);
	if (w->steps)
		return 0;
	return err_set(e, ERR_DATA, "%s: DLProf's iterations of this input are 0 to %lld", steps_range_text(first, last).s, (long long)most);
}
