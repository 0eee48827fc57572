/* CUDA and HIP graphs: what each replayed, what its work is attributed by, and when the GPU did nothing within a replay. */
#include "analysis/graph/graph_join.h"
#include "analysis/graph/graph_period.h"
#include "analysis/recording.h"
#include "analysis/time/interval.h"
#include "base/mem.h"
#include "base/round.h"
#include "base/search.h"
#include "query/report.h"

#include <string.h>

enum {
	GRAPHS_NUMBER, GRAPHS_ID, GRAPHS_LAUNCHES, GRAPHS_PIECES, GRAPHS_STREAMS, GRAPHS_TOTAL, GRAPHS_SHARE, GRAPHS_MEAN, GRAPHS_GAP, GRAPHS_GAPS, GRAPHS_LONGEST, GRAPHS_PLACE, GRAPHS_BEFORE, GRAPHS_KNOWN, GRAPHS_AMBIGUOUS, GRAPHS_EVIDENCE,
	GRAPHS_BLOCKS, GRAPHS_BLOCK, GRAPHS_ODD,
};
static const struct section graphs_section = {COLUMNS(
	[GRAPHS_NUMBER] = {COLUMN(NUMBER, "graph", "Graph", "in order of first launch", .flags = COLUMN_GROUP)},
	[GRAPHS_ID] = {COLUMN(NUMBER, "graph_id", "Id", "as recorded; empty = not recorded: launches that replay the same work are then of one graph", .flags = COLUMN_DETAIL)},
	[GRAPHS_LAUNCHES] = {COLUMN(COUNT, "launches", "Launches", "calls that launched the graph", .flags = COLUMN_ANSWER)},
	[GRAPHS_PIECES] = {COLUMN(COUNT, "pieces", "Work of each", "kernels, copies and sets that most of its launches replay", .flags = COLUMN_ANSWER)},
	[GRAPHS_STREAMS] = {COLUMN(COUNT, "streams", "Streams", "that its work ran on", .flags = COLUMN_MINOR)},
	[GRAPHS_TOTAL] = {COLUMN(NS, "total_ns", "Device time", "sum of the durations of all that it replayed", .flags = COLUMN_ANSWER)},
	[GRAPHS_SHARE] = {COLUMN(PERCENT, "share_pct", "Of device time", "device time / that of all device work")},
	[GRAPHS_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Each", "from the first to the last work of a launch, mean")},
	[GRAPHS_GAP] = {COLUMN(MEAN_NS, "gap_ns", "Gaps of each", "of that, the time in which none of the work of the launch ran, mean: a replay waits for nothing on the host", .flags = COLUMN_ANSWER)},
	[GRAPHS_GAPS] = {COLUMN(REAL, "gaps", "How many", "gaps of a launch, mean; of about 1 ns each, they are the rounding of the recorded times", .digits = 1, .flags = COLUMN_MINOR)},
	[GRAPHS_LONGEST] = {COLUMN(NS, "longest_gap_ns", "Longest gap", "the longest single one of all launches", .flags = COLUMN_MINOR)},
	[GRAPHS_PLACE] = {COLUMN(NUMBER, "gap_place", "Gap before place", "which piece of work of the launch, from 1 on, began behind the longest gap", .flags = COLUMN_MINOR)},
	[GRAPHS_BEFORE] = {COLUMN(TEXT, "gap_kernel", "Gap before", "kernel or kind of copy of that piece", .flags = COLUMN_KERNEL | COLUMN_MINOR)},
	[GRAPHS_KNOWN] = {COLUMN(PERCENT, "known_pct", "Op known", "device time of work whose op is known / device time", .flags = COLUMN_ANSWER)},
	[GRAPHS_AMBIGUOUS] = {COLUMN(PERCENT, "ambiguous_pct", "Ambiguous", "device time of work that fits several ops / device time", .flags = COLUMN_MINOR)},
	[GRAPHS_EVIDENCE] = {COLUMN(TEXT, "evidence", "By", "what most of the time is attributed by: node (the recording has the call that made the node), sequence (the same names in the same order as a capture), aligned (in a stretch "
	                            "that it shares with a capture), position (a capture without names has as many calls of the same kinds), unknown",
	                            .flags = COLUMN_ANSWER)},
	[GRAPHS_BLOCKS] = {COLUMN(COUNT, "blocks", "Blocks", "how often a block of work repeats, one after the other: of a model of equal layers a block is one layer, or several that alternate; empty = no block repeats and makes up 80 % of the work")},
	[GRAPHS_BLOCK] = {COLUMN(COUNT, "block_pieces", "Work of a block", "kernels, copies and sets of one block", .flags = COLUMN_MINOR)},
	[GRAPHS_ODD] = {COLUMN(COUNT, "odd_launches", "Others", "launches that replayed other work than most: the graph was changed, or the recording was cut", .flags = COLUMN_MINOR)},
)};

enum { EVIDENCE_BY, EVIDENCE_PIECES, EVIDENCE_TIME, EVIDENCE_OF_GRAPHS, EVIDENCE_OF_ALL };
static const struct section graphs_evidence = {.name = "evidence", .title = "What replayed work is attributed by", COLUMNS(
	[EVIDENCE_BY] = {COLUMN(TEXT, "evidence", "By", "as above", .flags = COLUMN_ANSWER | COLUMN_GROUP)},
	[EVIDENCE_PIECES] = {COLUMN(COUNT, "pieces", "Work", "kernels, copies and sets")},
	[EVIDENCE_TIME] = {COLUMN(NS, "total_ns", "Device time", "sum of their durations", .flags = COLUMN_ANSWER)},
	[EVIDENCE_OF_GRAPHS] = {COLUMN(PERCENT, "of_graphs_pct", "Of graphs", "device time / that of all replayed work", .flags = COLUMN_ANSWER)},
	[EVIDENCE_OF_ALL] = {COLUMN(PERCENT, "of_all_pct", "Of device time", "device time / that of all device work", .flags = COLUMN_ANSWER)},
)};

enum { BLOCK_GRAPH, BLOCK_PLACE, BLOCK_KERNEL, BLOCK_OP, BLOCK_RUNS, BLOCK_TOTAL, BLOCK_SHARE, BLOCK_MEAN, BLOCK_MIN, BLOCK_MAX };
static const struct section graphs_blocks = {.name = "blocks", .title = "What a block runs", COLUMNS(
	[BLOCK_GRAPH] = {COLUMN(NUMBER, "graph", "Graph", "as above", .flags = COLUMN_GROUP)},
	[BLOCK_PLACE] = {COLUMN(NUMBER, "place", "Place", "in the block, from 1 on")},
	[BLOCK_KERNEL] = {COLUMN(TEXT, "kernel", "Kernel", "or kind of copy", .flags = COLUMN_KERNEL | COLUMN_ANSWER)},
	[BLOCK_OP] = {COLUMN(TEXT, "operator", "Operator", "that captured it in the first block; empty = not known")},
	[BLOCK_RUNS] = {COLUMN(COUNT, "runs", "Runs", "in all blocks of all launches", .flags = COLUMN_MINOR)},
	[BLOCK_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum of its durations there", .flags = COLUMN_ANSWER)},
	[BLOCK_SHARE] = {COLUMN(PERCENT, "share_pct", "Of the blocks", "total / that of all places of the graph's blocks")},
	[BLOCK_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "of a run", .flags = COLUMN_ANSWER)},
	[BLOCK_MIN] = {COLUMN(NS, "min_ns", "Min", "shortest run", .flags = COLUMN_MINOR)},
	[BLOCK_MAX] = {COLUMN(NS, "max_ns", "Max", "longest run", .flags = COLUMN_MINOR)},
)};

struct graphs_sums {
	int64_t ns[GPU_EVIDENCES];
	uint64_t n[GPU_EVIDENCES];
	int64_t within_ns, gap_ns, longest_ns; /* of all launches */
	uint64_t gaps;
	uint32_t place, before;  /* the piece of a launch that began behind the longest gap, and its row of gpu_op */
};

static void graphs_add_gap(const struct profile *p, const struct graph_launch *l, const struct interval *before, const struct interval *behind, struct graphs_sums *s)
{
	const int64_t gap = behind->start - before->end;
	s->gaps++;
	if (gap <= s->longest_ns)
		return;
	s->longest_ns = gap;
	s->place = 0;
	while (p->gpu_op.start_ns[l->work.row[s->place]] != behind->start)
		s->place++;
	s->before = l->work.row[s->place];
}

static void graphs_add_launch(const struct profile *p, const struct graph_launch *l, struct graphs_sums *s)
{
	struct intervals busy = {0};
	for (uint32_t i = 0; i < l->work.n; i++) {
		const uint32_t g = l->work.row[i];
		const enum gpu_evidence by = gpu_evidence(&p->gpu_op, g) ?: EVIDENCE_UNKNOWN;
		s->ns[by] += p->gpu_op.dur_ns[g];
		s->n[by]++;
		intervals_add(&busy, p->gpu_op.start_ns[g], gpu_end(p, g));
	}
	intervals_normalise(&busy);
	for (uint32_t i = 1; i < busy.n; i++)
		graphs_add_gap(p, l, &busy.v[i - 1], &busy.v[i], s);
	s->within_ns += l->end_ns - l->start_ns;
	s->gap_ns += l->end_ns - l->start_ns - intervals_length(&busy);
	intervals_release(&busy);
}

static int64_t graphs_total(const struct graphs_sums *s)
{
	int64_t ns = 0;
	for (int by = 0; by < GPU_EVIDENCES; by++)
		ns += s->ns[by];
	return ns;
}

static int64_t graphs_known(const struct graphs_sums *s)
{
	int64_t ns = 0;
	for (int by = EVIDENCE_NODE; by < GPU_EVIDENCES; by++)
		ns += s->ns[by];
	return ns;
}

static void graphs_put(const struct profile *p, const struct graph *g, uint32_t pieces, const struct graph_period *period, const struct graphs_sums *s, uint32_t number, int64_t all_ns, struct table *t)
{
	const double total = (double)graphs_total(s);
	enum gpu_evidence most = EVIDENCE_UNKNOWN;
	for (int by = EVIDENCE_UNKNOWN; by < GPU_EVIDENCES; by++)
		most = s->ns[by] > s->ns[most] ? (enum gpu_evidence)by : most;
	table_row(t);
	table_set_i64(t, GRAPHS_NUMBER, number);
	if (g->id != ID_NONE)
		table_set_i64(t, GRAPHS_ID, g->id);
	table_set_i64(t, GRAPHS_LAUNCHES, g->launches);
	table_set_i64(t, GRAPHS_PIECES, pieces);
	table_set_i64(t, GRAPHS_STREAMS, g->streams);
	table_set_i64(t, GRAPHS_TOTAL, graphs_total(s));
	table_set_f64(t, GRAPHS_SHARE, percent(total, (double)all_ns));
	table_set_f64(t, GRAPHS_MEAN, (double)s->within_ns / g->launches);
	table_set_f64(t, GRAPHS_GAP, (double)s->gap_ns / g->launches);
	table_set_f64(t, GRAPHS_GAPS, (double)s->gaps / g->launches);
	table_set_i64(t, GRAPHS_LONGEST, s->longest_ns);
	if (s->gaps) {
		table_set_i64(t, GRAPHS_PLACE, s->place + 1);
		table_set_str(t, GRAPHS_BEFORE, profile_str(p, p->gpu_op.name[s->before]));
	}
	table_set_f64(t, GRAPHS_KNOWN, percent((double)graphs_known(s), total));
	table_set_f64(t, GRAPHS_AMBIGUOUS, percent((double)s->ns[EVIDENCE_AMBIGUOUS], total));
	table_set_str(t, GRAPHS_EVIDENCE, str_from(gpu_evidence_name[most]));
	if (period->pieces) {
		table_set_i64(t, GRAPHS_BLOCKS, period->blocks);
		table_set_i64(t, GRAPHS_BLOCK, period->pieces);
	}
	table_set_i64(t, GRAPHS_ODD, g->odd);
}

static void graphs_put_evidence(const struct graphs_sums *all, int64_t all_ns, const struct report_args *args, struct table *out)
{
	struct table *t = section_add(&graphs_evidence, args, 0, out);
	for (int by = EVIDENCE_UNKNOWN; by < GPU_EVIDENCES; by++) {
		if (!all->n[by])
			continue;
		table_row(t);
		table_set_str(t, EVIDENCE_BY, str_from(gpu_evidence_name[by]));
		table_set_i64(t, EVIDENCE_PIECES, (int64_t)all->n[by]);
		table_set_i64(t, EVIDENCE_TIME, all->ns[by]);
		table_set_f64(t, EVIDENCE_OF_GRAPHS, percent((double)all->ns[by], (double)graphs_total(all)));
		table_set_f64(t, EVIDENCE_OF_ALL, percent((double)all->ns[by], (double)all_ns));
	}
}

struct graphs_place {
	int64_t ns, min_ns, max_ns;
	uint64_t runs;
};

static void graphs_put_place(const struct profile *p, uint32_t first, uint32_t graph, uint32_t place, const struct graphs_place *x, int64_t all_ns, struct table *t)
{
	table_row(t);
	table_set_i64(t, BLOCK_GRAPH, graph + 1);
	table_set_i64(t, BLOCK_PLACE, place + 1);
	table_set_str(t, BLOCK_KERNEL, profile_str(p, p->gpu_op.name[first]));
	if (gpu_is_replayed(&p->gpu_op, first) && p->gpu_op.op[first] != ROW_NONE)
		table_set_str(t, BLOCK_OP, profile_str(p, p->span.name[p->gpu_op.op[first]]));
	table_set_i64(t, BLOCK_RUNS, (int64_t)x->runs);
	table_set_i64(t, BLOCK_TOTAL, x->ns);
	table_set_f64(t, BLOCK_SHARE, percent((double)x->ns, (double)all_ns));
	table_set_f64(t, BLOCK_MEAN, (double)x->ns / (double)x->runs);
	table_set_i64(t, BLOCK_MIN, x->min_ns);
	table_set_i64(t, BLOCK_MAX, x->max_ns);
}

/* Of launches that replay all of the graph. */
static void graphs_put_block(const struct profile *p, const struct graphs *x, uint32_t graph, const struct graph_period *period, struct table *t)
{
	const struct graph_sequence *typical = &x->launch[x->graph[graph].typical].work;
	struct graphs_place *place = NEW_ARRAY(period->pieces, struct graphs_place);
	int64_t all_ns = 0;
	for (uint32_t l = x->graph[graph].first; l != ROW_NONE; l = x->launch[l].next)
		for (uint32_t i = 0; i < period->blocks * period->pieces && graph_is_typical(x, &x->launch[l]); i++) {
			const int64_t ns = p->gpu_op.dur_ns[x->launch[l].work.row[period->first + i]];
			struct graphs_place *at = &place[i % period->pieces];
			at->min_ns = at->runs == 0 || ns < at->min_ns ? ns : at->min_ns;
			at->max_ns = ns > at->max_ns ? ns : at->max_ns;
			at->ns += ns;
			at->runs++;
			all_ns += ns;
		}
	for (uint32_t i = 0; i < period->pieces; i++)
		graphs_put_place(p, typical->row[period->first + i], graph, i, &place[i], all_ns, t);
	mem_free(place);
}

static void graphs_put_blocks(const struct profile *p, const struct graphs *x, const struct graph_period *period, const struct report_args *args, struct table *out)
{
	struct table *t = section_add(&graphs_blocks, args, 0, out);
	for (uint32_t k = 0; k < x->n_graphs; k++)
		if (period[k].pieces)
			graphs_put_block(p, x, k, &period[k], t);
}

static void graphs_notes(const struct profile *p, const struct graphs *x, const struct graphs_sums *all, int64_t all_ns, struct table *t)
{
	const double known = (double)graphs_known(all), total = (double)graphs_total(all);
	if (x->n)
		table_note(t, "graphs replay %.2f %% of the device time; of that, the op is known of %.2f %%", percent(total, (double)all_ns), percent(known, total));
	if (all->ns[EVIDENCE_UNKNOWN]) {
		const struct diags *met = &(p->whole ? p->whole : p)->diags;
		const struct diag_entry *vain = ELEMENT_WHERE(i, met->entry, met->n, strcmp(met->entry[i].kind, DIAG_CAPTURE_IN_VAIN) == 0);
		table_warn(t, "of %.2f %% of replayed time the op is unknown: " STR_FMT, percent((double)all->ns[EVIDENCE_UNKNOWN], total),
		           STR_ARG(vain ? vain->message : STR("the recording has no capture of the graph that fits; a trace of the capture (--capture=PATH, or capture_traces/ beside the trace) tells")));
	}
	if (all->ns[EVIDENCE_POSITION])
		table_warn(t, "position: the calls that captured the graph do not name their kernels, so that the op of a kernel follows from its place alone");
	if (x->whole)
		table_warn(t, "%u launch%s of graphs %s recorded as one piece of work each, which cannot be opened: record with nsys profile --cuda-graph-trace=node", x->whole, x->whole == 1 ? "" : "es", x->whole == 1 ? "is" : "are");
}

static int graphs_run(const struct profile *p, const struct report_args *args, struct table *out, struct err *e)
{
	struct graphs *x = graphs_new(p);
	struct graphs_sums all = {0};
	int64_t all_ns = 0;
	if (!x->n && !x->whole) {
		graphs_free(x);
		return err_set(e, ERR_DATA, "no graph was launched: calls as cudaGraphLaunch or hipGraphLaunch, with their device work, were expected%s%s", p->gpu_op.rows.n ? "" : "; to record device work: ",
		               p->gpu_op.rows.n ? "" : recording_how(p, RECORD_DEVICE_WORK));
	}
	struct graph_period *period = NEW_ARRAY(x->n_graphs, struct graph_period);
	section_start(&graphs_section, args, 0, out);
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++)
		all_ns += p->gpu_op.dur_ns[g];
	for (uint32_t k = 0; k < x->n_graphs; k++) {
		struct graphs_sums s = {0};
		for (uint32_t i = x->graph[k].first; i != ROW_NONE; i = x->launch[i].next) {
			graphs_add_launch(p, &x->launch[i], &s);
			graphs_add_launch(p, &x->launch[i], &all);
		}
		period[k] = graph_period_find(&x->launch[x->graph[k].typical].work);
		graphs_put(p, &x->graph[k], x->launch[x->graph[k].typical].work.n, &period[k], &s, k + 1, all_ns, out);
	}
	graphs_put_blocks(p, x, period, args, out);
	mem_free(period);
	graphs_put_evidence(&all, all_ns, args, out);
	graphs_notes(p, x, &all, all_ns, out);
	graphs_free(x);
	return table_sort(out, STR("total_ns"), true, e);
}

const struct report report_graphs = {
	.name = "graphs",
	.title = "CUDA and HIP graphs",
	.asks = ASKS_PART,
	.also = "cuda_graphs graph_launch replay capture attribution",
	.help = "Each graph that was launched: how often, how much work it replays, how long the GPU does nothing within a replay, and of how much of its time the op is known. One call launches all work of a graph, so that the "
	        "recording does not tell which op a kernel belongs to; the capture of the graph does. Reports by op, module, layer and line count replayed work as they count other work.",
	.sections = (const struct section *const[]){&graphs_section, &graphs_blocks, &graphs_evidence, NULL},
	.needs = PASS_NEST | PASS_CORRELATE,
	.takes = REPORT_OF_STEPS,
	.run = graphs_run,
};
