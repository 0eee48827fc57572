/* Python lines: `operators --group-by=line` under the name that people look for. */
#include "analysis/names/stacks.h"
#include "analysis/recording.h"
#include "report/parts/operators.h"

static int lines_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct stacks *stacks = stacks_new(p);
	bool any = stacks_any(stacks);
	stacks_free(stacks);
	if (!any)
		return err_set(e, ERR_DATA, "the trace holds no call stacks, without which no line of Python is known; to record them: %s",
		               recording_how(p, RECORD_STACKS));
	if (operators_run(p, args, out, e) < 0)
		return -1;
	table_note(out, "rows are of ops: Python that calls none (a data loader's transforms) is in no row; `opscope advise` names it where the GPU waits for it");
	return 0;
}

static const struct report_variant lines_variants[] = {
	{.by = OPERATORS_BY_LINE, .run = lines_run},
	{0},
};

const struct report report_lines = {
	.name = "lines",
	.title = "Time by function of Python, with its recorded line",
	.asks = ASKS_PART,
	.also = "line python stacks stack source",
	.help = "Which functions of your Python code the time went to: the device work that their ops launched, in the forward pass, in the backward pass of what a "
	        "function called and in the optimizer, and the ops' own time on the host. A row is a function with the line that the recording names: in "
	        "frames of torch.profiler the line of its def, not that of a call inside it; some older recordings name the line of the call. Calls counts "
	        "the ops that were launched from it, not how often the function ran. The function is the innermost frame of your own code, not of torch, an "
	        "installed package or the standard library, else of these. The same as `operators --group-by=line`.",
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_STEPS | REPORT_OF_STEPS,
	.variants = lines_variants,
	.sections = (const struct section *const[]){&operators_section, NULL},
};
