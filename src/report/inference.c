/* Prefill, decode and what lies between the iterations of an inference server: time, tokens, and what the GPUs did. */
#include "analysis/steps/serving.h"
#include "analysis/steps/steps.h"
#include "analysis/time/step_gpus.h"
#include "base/mem.h"
#include "base/round.h"
#include "query/report.h"
#include "report/parts/step_table.h"

/* Rows behind those of the phases. */
enum { INFERENCE_NO_PHASE = SERVING_PHASES, INFERENCE_BETWEEN, INFERENCE_ROWS };

enum {
	INFERENCE_NAME, INFERENCE_STEPS, INFERENCE_TIME, INFERENCE_SHARE, INFERENCE_STEP_TIME, INFERENCE_REQUESTS, INFERENCE_TOKENS, INFERENCE_TOKENS_STEP, INFERENCE_TOKEN_TIME, INFERENCE_TOKEN_RATE,
	INFERENCE_CONTEXT, INFERENCE_BUSY, INFERENCE_HOST, INFERENCE_QUEUED, INFERENCE_KERNELS_STEP, INFERENCE_KERNELS_TOKEN
};

static const struct section inference_section = {COLUMNS(
	[INFERENCE_NAME] = {COLUMN(TEXT, "phase", "Phase", "prefill: prompts are read; decode: tokens are generated; mixed: both in one batch; idle: iterations without requests; none: steps of which "
	                       "the server says nothing; between: from the end of a step to the begin of the next", .flags = COLUMN_ANSWER)},
	[INFERENCE_STEPS] = {COLUMN(COUNT, "steps", "Steps", "how many; of between: how many pauses", .flags = COLUMN_ANSWER)},
	[INFERENCE_TIME] = {COLUMN(NS, "time_ns", "Time", "sum of their lengths: the rows add up to the time from the first step's begin to the last one's end", .flags = COLUMN_ANSWER)},
	[INFERENCE_SHARE] = {COLUMN(PERCENT, "time_pct", "Time %", "of the time of all rows")},
	[INFERENCE_STEP_TIME] = {COLUMN(MEAN_NS, "step_ns", "Per step", "mean length of a step: in decode, how long a request waits for its next token, but for the pauses",
	                            .flags = COLUMN_ANSWER)},
	[INFERENCE_REQUESTS] = {COLUMN(REAL, "requests", "Requests", "in a step, mean; empty = the server does not tell", .digits = 1)},
	[INFERENCE_TOKENS] = {COLUMN(COUNT, "tokens", "Tokens", "prefill, mixed: tokens computed; decode: tokens generated, one of each request; empty = the server does not tell them of all steps",
	                         .flags = COLUMN_ANSWER)},
	[INFERENCE_TOKENS_STEP] = {COLUMN(REAL, "step_tokens", "Tokens per step", "mean", .digits = 1, .flags = COLUMN_MINOR)},
	[INFERENCE_TOKEN_TIME] = {COLUMN(MEAN_NS, "token_ns", "Per token", "time / tokens: of all requests together", .flags = COLUMN_ANSWER)},
	[INFERENCE_TOKEN_RATE] = {COLUMN(REAL, "tokens_per_s", "Tokens/s", "tokens / time", .digits = 1, .flags = COLUMN_MINOR)},
	[INFERENCE_CONTEXT] = {COLUMN(REAL, "step_context_tokens", "Context", "tokens that attention looks at in a step, over all requests: mean; empty = the server does not tell",
	                          .digits = 1, .flags = COLUMN_DETAIL)},
	[INFERENCE_BUSY] = {COLUMN(PERCENT, "gpu_busy_pct", "GPU busy %", "share of the time in which kernels, copies or sets ran; of several GPUs the mean", .flags = COLUMN_ANSWER),
	                .when = WHEN_DEVICE},
	[INFERENCE_HOST] = {COLUMN(MEAN_NS, "host_gap_ns", "Host gap", "mean of a step: a GPU had nothing to do, and the call that launched its next work had not begun; of several GPUs the mean",
	                       .flags = COLUMN_ANSWER), .when = WHEN_DEVICE},
	[INFERENCE_QUEUED] = {COLUMN(MEAN_NS, "queued_ns", "Queued", "mean of a step: a GPU had nothing to do, and the call that launched its next work had begun: launch delay, waits for other streams, pauses within a "
	                         "replayed graph; of several GPUs the mean"), .when = WHEN_DEVICE},
	[INFERENCE_KERNELS_STEP] = {COLUMN(REAL, "step_kernels", "Kernels per step", "that begin in it: mean; of several GPUs the mean", .digits = 1), .when = WHEN_DEVICE},
	[INFERENCE_KERNELS_TOKEN] = {COLUMN(REAL, "token_kernels", "Kernels per token", "kernels / tokens", .digits = 2), .when = WHEN_DEVICE},
)};

enum {
	SERVED_STEP, SERVED_PHASE, SERVED_ITERATIONS, SERVED_START, SERVED_TIME, SERVED_BETWEEN, SERVED_PREFILL, SERVED_PREFILL_TOKENS, SERVED_DECODE, SERVED_DECODE_TOKENS, SERVED_TOKENS,
	SERVED_CONTEXT, SERVED_PAIRS, SERVED_PADDED, SERVED_BUSY, SERVED_HOST, SERVED_QUEUED, SERVED_KERNELS
};

static const struct section inference_steps_section = {.name = "steps", .title = "Steps", COLUMNS(
	[SERVED_STEP] = {COLUMN(NUMBER, "step", "Step", "its number", .flags = COLUMN_GROUP)},
	[SERVED_PHASE] = {COLUMN(TEXT, "phase", "Phase", "as above", .flags = COLUMN_ANSWER)},
	[SERVED_ITERATIONS] = {COLUMN(COUNT, "iterations", "Iterations", "of the server, that begin in the step: the numbers are their sums", .flags = COLUMN_DETAIL)},
	[SERVED_START] = {COLUMN(TIME, "start_ns", "Start", "on the trace's clock", .flags = COLUMN_DETAIL)},
	[SERVED_TIME] = {COLUMN(NS, "time_ns", "Time", "its length, the device work that it launched included", .flags = COLUMN_ANSWER)},
	[SERVED_BETWEEN] = {COLUMN(NS, "between_ns", "Until next", "from its end to the next step's begin")},
	[SERVED_PREFILL] = {COLUMN(COUNT, "prefill_requests", "Prefill", "requests whose prompts are read; empty here and below = the server does not tell")},
	[SERVED_PREFILL_TOKENS] = {COLUMN(COUNT, "prefill_tokens", "Prefill tokens", "of these requests that are computed")},
	[SERVED_DECODE] = {COLUMN(COUNT, "decode_requests", "Decode", "requests for which tokens are generated")},
	[SERVED_DECODE_TOKENS] = {COLUMN(COUNT, "decode_tokens", "Decode tokens", "of these requests that are computed: more than requests where drafts are verified")},
	[SERVED_TOKENS] = {COLUMN(COUNT, "tokens", "Tokens", "that are computed, of all requests", .flags = COLUMN_ANSWER)},
	[SERVED_CONTEXT] = {COLUMN(COUNT, "context_tokens", "Context", "tokens that attention looks at: sum over the requests")},
	[SERVED_PAIRS] = {COLUMN(COUNT, "attention_pairs", "Attention pairs", "sum over the requests of tokens computed x tokens looked at: what attention's FLOPs go by, where each sees all",
	                       .flags = COLUMN_DETAIL)},
	[SERVED_PADDED] = {COLUMN(COUNT, "padded_batch", "Padded", "requests that the batch was filled up to, where the server's range says so (ATOM); empty = not told", .flags = COLUMN_MINOR), .when = WHEN_RECORDED},
	[SERVED_BUSY] = {COLUMN(PERCENT, "gpu_busy_pct", "GPU busy %", "as above"), .when = WHEN_DEVICE},
	[SERVED_HOST] = {COLUMN(NS, "host_gap_ns", "Host gap", "as above"), .when = WHEN_DEVICE},
	[SERVED_QUEUED] = {COLUMN(NS, "queued_ns", "Queued", "as above"), .when = WHEN_DEVICE},
	[SERVED_KERNELS] = {COLUMN(REAL, "kernels", "Kernels", "that begin in it; of several GPUs the mean", .digits = 1), .when = WHEN_DEVICE},
)};

/* Sums of a row; SERVING_NOT_TOLD where one of its steps does not tell. */
struct inference_sums {
	uint64_t n;
	struct step_gpus_use use;
	int64_t requests, tokens, keys;
};

struct inference {
	const struct profile *p;
	struct step_gpus g;
	struct inference_sums row[INFERENCE_ROWS];
	int64_t all_ns;
	unsigned told, drafts, no_tokens, padded; /* steps of which a server says anything; that compute drafts; whose tokens are not told; whose padding is told */
};

static void inference_count(int64_t *sum, int64_t v)
{
	if (*sum == SERVING_NOT_TOLD || v == SERVING_NOT_TOLD || __builtin_add_overflow(*sum, v, sum))
		*sum = SERVING_NOT_TOLD;
}

static void inference_add_use(struct inference *x, struct inference_sums *s, const struct step_gpus_use *u)
{
	s->n++;
	s->use.ns += u->ns;
	s->use.busy_ns += u->busy_ns;
	s->use.host_ns += u->host_ns;
	s->use.queued_ns += u->queued_ns;
	s->use.unknown_ns += u->unknown_ns;
	s->use.kernels += u->kernels;
	s->use.graphs += u->graphs;
	x->all_ns += u->ns;
}

static const struct serving *inference_said(const struct inference *x, unsigned i)
{
	return x->p->steps->v[x->g.step[i]].serving;
}

/* What `tokens` are of a phase. */
static int64_t inference_tokens(const struct serving *v)
{
	return v->phase == SERVING_DECODE ? serving_generated(v) : v->all.tokens;
}

static void inference_add_step(struct inference *x, unsigned i)
{
	const struct serving *v = inference_said(x, i);
	struct inference_sums *s = &x->row[v ? v->phase : INFERENCE_NO_PHASE];
	inference_add_use(x, s, &x->g.use[2 * i]);
	if (i + 1 < x->g.n && x->g.use[2 * i + 1].ns > 0)
		inference_add_use(x, &x->row[INFERENCE_BETWEEN], &x->g.use[2 * i + 1]);
	if (!v)
		return;
	int64_t tokens = inference_tokens(v);
	x->told++;
	x->padded += v->padded != SERVING_NOT_TOLD;
	x->drafts += v->phase == SERVING_DECODE && v->decode.tokens > v->decode.requests;
	x->no_tokens += tokens == SERVING_NOT_TOLD;
	inference_count(&s->requests, v->all.requests);
	inference_count(&s->tokens, tokens);
	inference_count(&s->keys, v->all.keys);
}

static void inference_put_counts(const struct inference_sums *s, struct table *t)
{
	double n = (double)s->n;
	if (s->requests >= 0)
		table_set_f64(t, INFERENCE_REQUESTS, (double)s->requests / n);
	if (s->keys >= 0)
		table_set_f64(t, INFERENCE_CONTEXT, (double)s->keys / n);
	if (s->tokens < 0)
		return;
	table_set_i64(t, INFERENCE_TOKENS, s->tokens);
	table_set_f64(t, INFERENCE_TOKENS_STEP, (double)s->tokens / n);
	if (s->tokens && s->use.ns) {
		table_set_f64(t, INFERENCE_TOKEN_TIME, (double)s->use.ns / (double)s->tokens);
		table_set_f64(t, INFERENCE_TOKEN_RATE, (double)s->tokens / (double)s->use.ns * 1e9);
	}
}

static void inference_put_row(const struct inference *x, unsigned row, struct table *t)
{
	const struct inference_sums *s = &x->row[row];
	const char *name = row == INFERENCE_BETWEEN ? "between" : row == INFERENCE_NO_PHASE ? "none" : serving_phase_name[row];
	double n = (double)s->n, gpus = x->g.gpus;
	table_row(t);
	table_set_str(t, INFERENCE_NAME, str_from(name));
	table_set_i64(t, INFERENCE_STEPS, (int64_t)s->n);
	table_set_i64(t, INFERENCE_TIME, s->use.ns);
	table_set_f64(t, INFERENCE_SHARE, percent((double)s->use.ns, (double)x->all_ns));
	table_set_f64(t, INFERENCE_STEP_TIME, (double)s->use.ns / n);
	table_set_f64(t, INFERENCE_BUSY, percent((double)s->use.busy_ns, (double)s->use.ns * gpus));
	if (gpus > 0) {
		table_set_f64(t, INFERENCE_HOST, (double)s->use.host_ns / n / gpus);
		table_set_f64(t, INFERENCE_QUEUED, (double)s->use.queued_ns / n / gpus);
	}
	if (gpus > 0 && !s->use.graphs)
		table_set_f64(t, INFERENCE_KERNELS_STEP, (double)s->use.kernels / n / gpus);
	if (row >= INFERENCE_NO_PHASE)
		return;
	inference_put_counts(s, t);
	if (gpus > 0 && !s->use.graphs && s->tokens > 0)
		table_set_f64(t, INFERENCE_KERNELS_TOKEN, (double)s->use.kernels / (double)s->tokens / gpus);
}

static void inference_put_count(struct table *t, unsigned column, int64_t v)
{
	if (v != SERVING_NOT_TOLD)
		table_set_i64(t, column, v);
}

static void inference_put_step(const struct inference *x, unsigned i, struct table *t)
{
	const struct step *step = &x->p->steps->v[x->g.step[i]];
	const struct step_gpus_use *u = &x->g.use[2 * i];
	const struct serving *v = step->serving;
	double gpus = x->g.gpus;
	table_row(t);
	table_set_i64(t, SERVED_STEP, step->number);
	table_set_str(t, SERVED_PHASE, v ? str_from(serving_phase_name[v->phase]) : STR("none"));
	table_set_i64(t, SERVED_ITERATIONS, v ? v->iterations : 0);
	table_set_i64(t, SERVED_START, step->start_ns);
	table_set_i64(t, SERVED_TIME, u->ns);
	if (i + 1 < x->g.n)
		table_set_i64(t, SERVED_BETWEEN, u[1].ns);
	table_set_f64(t, SERVED_BUSY, percent((double)u->busy_ns, (double)u->ns * gpus));
	if (gpus > 0) {
		table_set_i64(t, SERVED_HOST, u->host_ns / x->g.gpus);
		table_set_i64(t, SERVED_QUEUED, u->queued_ns / x->g.gpus);
	}
	if (gpus > 0 && !u->graphs)
		table_set_f64(t, SERVED_KERNELS, (double)u->kernels / gpus);
	if (!v)
		return;
	inference_put_count(t, SERVED_PREFILL, v->prefill.requests);
	inference_put_count(t, SERVED_PREFILL_TOKENS, v->prefill.tokens);
	inference_put_count(t, SERVED_DECODE, v->decode.requests);
	inference_put_count(t, SERVED_DECODE_TOKENS, v->decode.tokens);
	inference_put_count(t, SERVED_TOKENS, v->all.tokens);
	inference_put_count(t, SERVED_CONTEXT, v->all.keys);
	inference_put_count(t, SERVED_PAIRS, v->all.pairs);
	inference_put_count(t, SERVED_PADDED, v->padded);
}

static void inference_put_notes(const struct inference *x, struct table *t)
{
	int64_t steps_ns = x->all_ns - x->row[INFERENCE_BETWEEN].use.ns, unknown_ns = 0;
	uint64_t graphs = 0;
	for (unsigned i = 0; i < INFERENCE_ROWS; i++) {
		unknown_ns += x->row[i].use.unknown_ns;
		graphs += x->row[i].use.graphs;
	}
	if (x->g.n && x->g.step[0] == 0)
		step_table_note_begin(x->p->steps, t);
	table_note(t, "from the first step to the last %lld ns = steps %lld + between %lld", (long long)x->all_ns, (long long)steps_ns,
	           (long long)x->row[INFERENCE_BETWEEN].use.ns);
	if (x->g.gpus > 1)
		table_note(t, "%u GPUs worked: busy, gaps and kernels are the means of them", x->g.gpus);
	if (x->told < x->g.n)
		table_note(t, "%u of %u steps hold no iteration that the server marks: row none", x->g.n - x->told, x->g.n);
	if (x->drafts)
		table_warn(t, "%u decode step%s computed more tokens than %s requests: drafts are verified. How many of them were kept is not recorded, and so the generated tokens are unknown",
		           x->drafts, x->drafts == 1 ? "" : "s", x->drafts == 1 ? "it has" : "they have");
	if (x->no_tokens > x->drafts)
		table_warn(t, "of %u step%s the server's annotation does not tell the tokens, and so they are unknown for the whole phase", x->no_tokens - x->drafts,
		           x->no_tokens - x->drafts == 1 ? "" : "s");
	if (graphs)
		table_warn(t, "%llu replay%s of whole CUDA graphs: their kernels were not recorded one by one, and so the kernels per step are unknown", (unsigned long long)graphs,
		           graphs == 1 ? "" : "s");
	if (unknown_ns)
		table_warn(t, "%lld ns in which a GPU had nothing to do lie before work whose launch was not recorded: whether they waited for the host is unknown", (long long)unknown_ns);
	if (!x->g.gpus)
		table_note(t, "no device work was recorded: steps are as long as their ranges on the host");
}

static int inference_run(const struct profile *p, const struct report_args *args, struct table *t, struct err *e)
{
	int64_t first = args->has_steps ? args->step_first : INT64_MIN, last = args->has_steps ? args->step_last : INT64_MAX;
	struct inference x = {.p = p};
	int rc = -1;
	step_gpus_find(p, first, last, &x.g);
	for (unsigned i = 0; i < x.g.n; i++)
		inference_add_step(&x, i);
	if (x.g.n && x.told) {
		unsigned have = (x.g.gpus ? WHEN_DEVICE : 0) | (x.padded ? WHEN_RECORDED : 0);
		section_start(&inference_section, args, have, t);
		for (unsigned row = 0; row < INFERENCE_ROWS; row++)
			if (x.row[row].n)
				inference_put_row(&x, row, t);
		inference_put_notes(&x, t);
		struct table *steps = section_add(&inference_steps_section, args, have, t);
		for (unsigned i = 0; i < x.g.n; i++)
			inference_put_step(&x, i, steps);
		rc = 0;
	} else if (!x.g.n && p->steps->n) {
		err_set(e, ERR_DATA, "%s: the input has steps %lld to %lld", steps_range_text(first, last).s, (long long)p->steps->v[0].number,
		        (long long)p->steps->v[p->steps->n - 1].number);
	} else {
		err_set(e, ERR_DATA, "no inference server marks its iterations in the input: ranges such as vLLM's `execute_context_2(512)_generation_0(0)`, SGLang's `step[DECODE bs=32]`, "
		        "TensorRT-LLM's `[Executor] _forward_step ...` or ATOM's `decode[bs=32 tok=32]` were expected, which these servers write when they are profiled");
	}
	step_gpus_release(&x.g);
	return rc;
}

const struct report report_inference = {
	.name = "inference",
	.title = "Inference: prefill, decode, and between",
	.also = "serving vllm sglang tensorrt-llm prefill decode tokens ttft tpot",
	.help = "What an inference server's time went into: prefill, decode, batches of both, and the pauses between its iterations; for each phase the requests and tokens of a step, the time per step "
	        "and per token, how busy the GPUs were, how many kernels ran, and how long the GPUs waited for the host. Phases and counts are those that the server writes in the names of its "
	        "ranges (vLLM, SGLang, TensorRT-LLM, ATOM); what it does not tell is empty. A step that is slow and busy is the kernels' matter (`kernels`, `roofline`), one with long host gaps the host's "
	        "(`waits`, `api`); pauses between steps are the scheduler's and the sampler's.",
	.sections = (const struct section *const[]){&inference_section, &inference_steps_section, NULL},
	.needs = PASS_NEST | PASS_CORRELATE | PASS_STEPS,
	.takes = REPORT_STEPS,
	.timeline = true,
	.run = inference_run,
};
