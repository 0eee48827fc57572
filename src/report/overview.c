#include "analysis/ranks/job.h"
#include "base/round.h"
#include "report/parts/device_table.h"
#include "report/parts/step_table.h"

/* What one role takes a step on the GPU with least and on that with most of it. */
static void overview_put_range(const struct roles *r, enum role role, struct table *t, unsigned col)
{
	int64_t least = INT64_MAX, most = 0;
	for (unsigned g = 0; g < r->gpus; g++) {
		int64_t ns = r->gpu[g].sum.ns[role];
		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
	}
	table_set_i64(t, col, round_even((double)least / r->n));
	table_set_i64(t, col + 1, round_even((double)most / r->n));
}

/* `window`: there are no steps, and the one is the window that stands for them. */
static void overview_own_rows(const struct roles *r, bool window, struct table *t)
{
	bool several = r->gpus > 1;
	enum { ROLE, MEAN, SHARE, TOTAL, LEAST };
	TABLE_COLUMN(t, .id = "role", .title = "Role", .help = "what the time went to; the first of the list that was active", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "mean_ns", .title = window ? "Time" : "Mean per step", .help = "mean over the steps, and of several GPUs over these, rounded to the ns", .type = CELL_I64, .unit = UNIT_NS);
	TABLE_COLUMN(t, .id = "share_pct", .title = "Share", .help = "of the mean step", .type = CELL_F64, .unit = UNIT_PERCENT);
	TABLE_COLUMN(t, .id = "total_ns", .title = "Total", .help = "sum over the steps; of several GPUs the mean over these", .type = CELL_I64, .unit = UNIT_NS);
	if (several) {
		TABLE_COLUMN(t, .id = "min_ns", .title = "Least GPU", .help = "mean over the steps of the GPU with least of it", .type = CELL_I64, .unit = UNIT_NS);
		TABLE_COLUMN(t, .id = "max_ns", .title = "Most GPU", .help = "mean over the steps of the GPU with most of it", .type = CELL_I64, .unit = UNIT_NS);
	}
	table_row(t);
	table_set_str(t, ROLE, window ? STR("Time Looked At") : STR("Average Step Time"));
	table_set_i64(t, MEAN, round_even(roles_mean_step_ns(r)));
	table_set_f64(t, SHARE, 100);
	table_set_i64(t, TOTAL, r->sum.total_ns);
	for (int k = 0; k < ROLES; k++) {
		enum role i = roles_own.order[k];
		if (!r->shown[i])
			continue;
		table_row(t);
		table_set_str(t, ROLE, str_from(role_title[i]));
		table_set_i64(t, MEAN, round_even(roles_mean_ns(r, i)));
		table_set_f64(t, SHARE, roles_share_pct(r, i));
		table_set_i64(t, TOTAL, r->sum.ns[i]);
		if (several)
			overview_put_range(r, i, t, LEAST);
	}
}

static void main_table(const struct roles *r, const struct steps *s, struct table *t)
{
	overview_own_rows(r, s->whole_trace, t);
	t->whole = true;
	if (s->whole_trace)
		table_warn(t, STR_FMT " `opscope advise` says what to do about it.", STR_ARG(s->how));
	else
		table_note(t, "Mean over %u step%s. `opscope advise` says what to do about it.", r->n, r->n == 1 ? "" : "s");
}

static void overview_environment_table(const struct roles *r, const struct profile *p, struct table *t)
{
	TABLE_COLUMN(t, .id = "title", .title = "Environment", .help = "what", .type = CELL_STR);
	TABLE_COLUMN(t, .id = "value", .title = "Value", .help = "its value", .type = CELL_STR);
	table_row(t);
	table_set_str(t, 0, STR("Ranks"));
	table_set_fmt(t, 1, "%lld", job_of(p).world ? (long long)job_of(p).world : 1LL);
	table_row(t);
	table_set_str(t, 0, STR("Device Type"));
	table_set_str(t, 1, r->has_device ? STR("GPU") : STR("CPU"));
}

static int overview_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	struct roles *r = step_roles(p, p->steps, &roles_own, args, e);
	if (!r)
		return -1;
	main_table(r, p->steps, t);
	step_table(r, p, false, table_section(t, "steps", "Steps"));
	if (p->gpu_op.rows.n)
		device_table(p, args, true, table_section(t, "devices", "GPU summary"));
	if (str_eqc(p->format, "capture") && r->sum.ns[ROLE_CPU] && !r->sum.ns[ROLE_DATALOADER])
		table_note(t, "DataLoader is the time of ranges that begin with `enumerate(DataLoader)#`, as PyTorch calls its own; other ranges are CPU Exec: "
		           "`opscope report nvtx --group-by=path` has them by name");
	overview_environment_table(r, p, table_section(t, "environment", "Environment"));
	roles_free(r);
	return 0;
}

const struct report report_overview = {
	.name = "overview",
	.title = "Where the step time went",
	.also = "loader dataloader data-loader roles",
	.help = "The mean step, divided among what was active. Every nanosecond goes to the first of these that was active anywhere: "
	        "kernel, memset, communication, memcpy, runtime call, data loader, CPU op; what is left is Other. Of several GPUs each is divided by itself, and figures are means over these. So DataLoader is "
	        "the time in which the GPU had nothing to do because the CPU waited for data, and CPU Exec is the time in which "
	        "the GPU waited for the CPU to launch work. Below: the same per step, and how well each GPU was used.",
	.timeline = true,
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.run = overview_run,
};
