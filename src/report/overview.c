/* Where the time of a mean step went: which share each role (kernel, communication, data loader, ...) has, each step by itself, and how busy each GPU was.
 *
 * The roles come from analysis/steps/roles.h, which gives each moment of a step to the first role that was active; the steps from PASS_STEPS. Where no
 * step was found, the time from the first to the last device work stands in for one. The tables of steps and devices are those of the reports `steps` and
 * `devices` (report/parts/). */
#include "analysis/ranks/rank.h"
#include "analysis/ranks/rank_place.h"
#include "base/round.h"
#include "report/parts/device_table.h"
#include "report/parts/step_table.h"

enum { OVERVIEW_ROLE, OVERVIEW_MEAN, OVERVIEW_SHARE, OVERVIEW_TOTAL, OVERVIEW_LEAST, OVERVIEW_MOST };

static const struct section overview_section = {COLUMNS(
	[OVERVIEW_ROLE] = {COLUMN(TEXT, "role", "Role", "what the time went to: the first role of the list that was active")},
	[OVERVIEW_MEAN] = {COLUMN(NS, "mean_ns", "Mean per step", "mean over the steps and the GPUs, rounded to the ns")},
	[OVERVIEW_SHARE] = {COLUMN(PERCENT, "share_pct", "Share", "of the mean step")},
	[OVERVIEW_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum over the steps; where there are several GPUs, the mean over them")},
	[OVERVIEW_LEAST] = {COLUMN(NS, "min_ns", "Least GPU, per step", "mean over the steps, of the GPU with least of it"), .when = WHEN_SEVERAL_GPUS},
	[OVERVIEW_MOST] = {COLUMN(NS, "max_ns", "Most GPU, per step", "mean over the steps, of the GPU with most of it"), .when = WHEN_SEVERAL_GPUS},
)};

enum { OVERVIEW_FACT, OVERVIEW_VALUE };

static const struct section overview_environment = {.name = "environment", .title = "Environment", COLUMNS(
	[OVERVIEW_FACT] = {COLUMN(TEXT, "title", "Environment", "what")},
	[OVERVIEW_VALUE] = {COLUMN(TEXT, "value", "Value", "its value")},
)};

/* The time of a role in a mean step, on the GPU that has least of it and on the GPU that has most. */
static void overview_put_range(const struct roles *r, enum role role, struct table *t)
{
	int64_t least = INT64_MAX, most = 0;
	for (unsigned g = 0; g < r->gpus; g++) {
		int64_t ns = r->gpu[g].sum.ns[role];
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	table_set_i64(t, OVERVIEW_LEAST, round_even((double)least / r->n));
	table_set_i64(t, OVERVIEW_MOST, round_even((double)most / r->n));
}

/* `window`: there are no steps, and the only step is the window that stands in for them. */
static void overview_own_rows(const struct roles *r, bool window, struct table *t)
{
	table_row(t);
	table_set_str(t, OVERVIEW_ROLE, window ? STR("Time Looked At") : STR("Average Step Time"));
	table_set_i64(t, OVERVIEW_MEAN, round_even(roles_mean_step_ns(r)));
	table_set_f64(t, OVERVIEW_SHARE, 100);
	table_set_i64(t, OVERVIEW_TOTAL, r->sum.total_ns);
	for (int k = 0; k < ROLES; k++) {
		enum role i = roles_own.order[k];
		if (!r->shown[i])
			continue;
		table_row(t);
		table_set_str(t, OVERVIEW_ROLE, str_from(role_title[i]));
		table_set_i64(t, OVERVIEW_MEAN, round_even(roles_mean_ns(r, i)));
		table_set_f64(t, OVERVIEW_SHARE, roles_share_pct(r, i));
		table_set_i64(t, OVERVIEW_TOTAL, r->sum.ns[i]);
		if (r->gpus > 1)
			overview_put_range(r, i, t);
	}
}

static void main_table(const struct roles *r, const struct profile *p, const struct report_args *args, struct table *t)
{
	const struct steps *s = p->steps;
	const char *loader = step_table_without_loader(p);
	section_start(&overview_section, args, r->gpus > 1 ? WHEN_SEVERAL_GPUS : 0, t);
	if (s->whole_trace) {
		t->data[OVERVIEW_MEAN].col.title = "Time";
		t->data[OVERVIEW_LEAST].col.title = "Least GPU";
		t->data[OVERVIEW_MOST].col.title = "Most GPU";
	}
	overview_own_rows(r, s->whole_trace, t);
	t->whole = true;
	struct buf means = {0};
	if (r->gpus > 1)
		buf_printf(&means, "Means over the %u GPUs, in Total, too. ", r->gpus);
	if (!s->whole_trace && s->doubtful)
		table_warn(t, STR_FMT, STR_ARG(s->how));
	if (s->whole_trace)
		table_warn(t, STR_FMT STR_FMT " `opscope advise` says what to do about it.%s", STR_ARG(buf_view(&means)), STR_ARG(s->how), loader);
	else
		table_note(t, STR_FMT "Mean over %u step%s. `opscope advise` says what to do about it.%s", STR_ARG(buf_view(&means)), r->n, r->n == 1 ? "" : "s", loader);
	buf_release(&means);
}

static void overview_environment_table(const struct roles *r, const struct profile *p, struct table *t)
{
	table_row(t);
	table_set_str(t, OVERVIEW_FACT, STR("Ranks"));
	table_set_fmt(t, OVERVIEW_VALUE, "%lld", rank_place_of(p).world ? (long long)rank_place_of(p).world : (long long)rank_count(p));
	table_row(t);
	table_set_str(t, OVERVIEW_FACT, STR("Device Type"));
	table_set_str(t, OVERVIEW_VALUE, r->has_device ? STR("GPU") : STR("CPU"));
}

static int overview_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct roles *r = step_roles(p, p->steps, &roles_own, args, e);
	if (!r)
		return -1;
	main_table(r, p, args, t);
	step_table(r, p, args, false, table_section(t, step_table_times.name, step_table_times.title));
	if (p->gpu_op.rows.n)
		device_table(p, args, true, section_add(&device_summary_section, args, 0, t));
	if (str_eqc(p->format, "capture") && r->sum.ns[ROLE_CPU] && !r->sum.ns[ROLE_DATALOADER])
		table_note(t, "DataLoader is the time of ranges that begin with `enumerate(DataLoader)#`, as PyTorch calls its own; other ranges are CPU Exec: "
		           "`opscope report nvtx --group-by=path` has them by name");
	overview_environment_table(r, p, section_add(&overview_environment, args, 0, t));
	roles_free(r);
	return 0;
}

const struct report report_overview = {
	.name = "overview",
	.title = "Where the step time went",
	.also = "loader dataloader data-loader roles",
	.help = "The mean step, divided among what was active. Every nanosecond goes to the first of these that was active anywhere: kernel, memset, "
	        "communication, memcpy, runtime call, data loader, CPU op; what is left is Other. Where there are several GPUs, each is divided by itself, and "
	        "figures are means over the GPUs. So DataLoader is the time in which the GPU had nothing to do because the CPU waited for data, and CPU Exec is "
	        "the time in which the GPU waited for the CPU to launch work. Below: the same per step, and how well each GPU was used.",
	.sections = (const struct section *const[]){&overview_section, &step_table_number, &step_table_times, &device_summary_section, &overview_environment, NULL},
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.ignores = LEFT_MEMORY | LEFT_OP_IDS,
	.run = overview_run,
};
