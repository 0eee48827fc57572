/* Makes the recordings of a job of any size from that of one real rank, with a planted truth, which it writes beside them.
 *
 * usage: jobgen BASE.json[.gz] FOLDER [OPTION...]
 *
 * BASE is a Kineto trace with a ProfilerStep and NCCL kernels. Each rank plays its steps again and again, with its own kernels, launches and operators; where the base had a
 * collective, the rank waits for its group. FOLDER gets a file for each rank and truth.json. The same options give the same bytes.
 *
 *   --tp=N --dp=N --pp=N      ranks in a tensor- and data-parallel group, and stages: the job has TP x DP x PP ranks, rank 0 and its TP neighbours first
 *   --rounds=N                how often the base is played (1)
 *   --collectives=N           only the first N collectives of the base: small files
 *   --stages=F,F,...          by stage: how many times as long its kernels take
 *   --late=RANK:CAUSE:MS[:FIRST[-LAST]]   the rank is late by MS in each step, or in these steps; "turns" for RANK: another rank in each step. CAUSE: slower (each kernel
 *                             takes longer), more (more kernels), copies, data (a data loader before the step's first collective), gc, host (nothing says why), backward
 *                             (as host, in the backward, if the base has one). Where nothing else is said, the delay is in front of the step's longest work
 *   --stacks=RANKS            these were recorded with stacks, and their host takes longer for it: --stacks-cost=PERCENT (10)
 *   --offsets=MS --drifts=PPM clocks differ by at most so much
 *   --jitter=US --end-skew=US by how much ranks come and leave apart by chance (50, 5)
 *   --missing=RANKS --damaged=RANKS --empty=RANKS --repeated=RANKS   no file; a file cut short; one of no bytes; two files. RANKS: 3,7-9
 *   --old=RANKS               as torch 2.2 wrote: absolute times, no data about collectives with their kernels
 *   --months=RANKS            their time base is three months later than that of the others
 *   --gzip --hidden           .json.gz; names that do not tell the rank
 *   --seed=N */
#include "jobgen.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"

const char *const jobgen_cause_name[CAUSES] = {"slower", "more", "copies", "data", "gc", "host", "backward"};

void jobgen_die(const char *what, const char *of)
{
	fprintf(stderr, "jobgen: %s%s%s\n", what, *of ? " " : "", of);
	exit(1);
}

static int64_t jobgen_number(const char *text, int64_t least, int64_t most, const char *option)
{
	char *end;
	int64_t v = strtoll(text, &end, 10);
	if (end == text || *end || v < least || v > most)
		jobgen_die("not a number that goes:", option);
	return v;
}

static int64_t jobgen_thousandths(const char *text, const char *option)
{
	char *end;
	double v = strtod(text, &end);
	if (end == text || *end || !(v >= 0) || v > 1e12)
		jobgen_die("not a number that goes:", option);
	return (int64_t)(v * 1000 + 0.5);
}

static void jobgen_ranks(uint8_t *set, int64_t n, char *text, const char *option)
{
	for (char *rest = text, *one; (one = strtok_r(rest, ",", &rest));) {
		char *dash = strchr(one, '-');
		if (dash)
			*dash = 0;
		int64_t from = jobgen_number(one, 0, n - 1, option), to = dash ? jobgen_number(dash + 1, from, n - 1, option) : from;
		memset(set + from, 1, (size_t)(to - from + 1));
	}
}

static void jobgen_late(struct jobgen_options *o, char *text, const char *option)
{
	char *rest = text, *rank = strtok_r(rest, ":", &rest), *cause = strtok_r(rest, ":", &rest), *ms = strtok_r(rest, ":", &rest), *steps = strtok_r(rest, ":", &rest);
	struct jobgen_late l = {.cause = CAUSES, .first = 0, .last = INT64_MAX};
	if (!ms || o->n_lates == JOBGEN_LATES)
		jobgen_die("not RANK:CAUSE:MS, or too many:", option);
	for (int c = 0; c < CAUSES; c++)
		l.cause = strcmp(cause, jobgen_cause_name[c]) ? l.cause : (enum jobgen_cause)c;
	if (l.cause == CAUSES)
		jobgen_die("no such cause:", option);
	l.rank = strcmp(rank, "turns") ? jobgen_number(rank, 0, o->n - 1, option) : -1;
	l.ns = jobgen_thousandths(ms, option) * 1000;
	char *dash = steps ? strchr(steps, '-') : NULL;
	if (dash)
		*dash = 0;
	if (steps)
		l.first = l.last = jobgen_number(steps, 0, INT32_MAX, option);
	if (dash)
		l.last = jobgen_number(dash + 1, l.first, INT32_MAX, option);
	o->late[o->n_lates++] = l;
}

static void jobgen_stages(struct jobgen_options *o, char *text, const char *option)
{
	for (char *rest = text, *one; (one = strtok_r(rest, ",", &rest)) && o->n_stages < sizeof o->stage / sizeof *o->stage;)
		o->stage[o->n_stages++] = (double)jobgen_thousandths(one, option) / 1000;
}

/* The value of an option NAME=VALUE; NULL = it is another one. */
static char *jobgen_value(char *arg, const char *name)
{
	size_t n = strlen(name);
	return strncmp(arg, name, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

/* How large the job is has to be known before ranks can be named. */
static bool jobgen_size_option(struct jobgen_options *o, char *arg)
{
	const struct { const char *name; int64_t *to; int64_t least; } numbers[] = {
		{"--tp", &o->tp, 1}, {"--dp", &o->dp, 1}, {"--pp", &o->pp, 1}, {"--rounds", &o->rounds, 1}, {"--collectives", &o->collectives, 1}, {"--seed", &o->seed, 0},
		{"--stacks-cost", &o->stacks_pct, 0},
	};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		char *v = jobgen_value(arg, numbers[i].name);
		if (v)
			*numbers[i].to = jobgen_number(v, numbers[i].least, 100000, arg);
		if (v)
			return true;
	}
	return false;
}

static bool jobgen_other_option(struct jobgen_options *o, char *arg)
{
	const struct { const char *name; int64_t *to, unit; } times[] = {
		{"--offsets", &o->offset_ns, 1000}, {"--drifts", &o->drift_ppb, 1}, {"--jitter", &o->jitter_ns, 1}, {"--end-skew", &o->end_skew_ns, 1},
	};
	const struct { const char *name; uint8_t *to; } sets[] = {
		{"--missing", o->missing}, {"--damaged", o->damaged}, {"--empty", o->empty}, {"--repeated", o->repeated}, {"--stacks", o->stacks}, {"--old", o->old}, {"--months", o->months},
	};
	char *v;
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if ((v = jobgen_value(arg, times[i].name))) {
			*times[i].to = jobgen_thousandths(v, arg) * times[i].unit;
			return true;
		}
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		if ((v = jobgen_value(arg, sets[i].name))) {
			jobgen_ranks(sets[i].to, o->n, v, arg);
			return true;
		}
	if ((v = jobgen_value(arg, "--late")))
		jobgen_late(o, v, arg);
	else if ((v = jobgen_value(arg, "--stages")))
		jobgen_stages(o, v, arg);
	else if (!strcmp(arg, "--gzip"))
		o->gzip = true;
	else if (!strcmp(arg, "--hidden"))
		o->hidden = true;
	else
		return false;
	return true;
}

static void jobgen_read_options(struct jobgen_options *o, int argc, char **argv)
{
	*o = (struct jobgen_options){.base = argv[1], .folder = argv[2], .tp = 1, .dp = 1, .pp = 1, .rounds = 1, .jitter_ns = 50000, .end_skew_ns = 5000, .stacks_pct = 10};
	bool *done = NEW_ARRAY(argc, bool);
	for (int i = 3; i < argc; i++)
		done[i] = jobgen_size_option(o, argv[i]);
	o->n = o->tp * o->dp * o->pp;
	if (o->n > 100000)
		jobgen_die("more than 100000 ranks", "");
	uint8_t **sets[] = {&o->missing, &o->damaged, &o->empty, &o->repeated, &o->stacks, &o->old, &o->months};
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		*sets[i] = NEW_ARRAY(o->n, uint8_t);
	for (int i = 3; i < argc; i++)
		if (!done[i] && !jobgen_other_option(o, argv[i]))
			jobgen_die("unknown option", argv[i]);
	mem_free(done);
}

/* What is asked of the base and it does not have. */
static void jobgen_check(const struct jobgen_options *o, const struct jobgen_base *b)
{
	for (unsigned i = 0; i < o->n_lates; i++)
		if (o->late[i].cause == CAUSE_BACKWARD && b->step[0].backward == UINT32_MAX)
			jobgen_die("no backward with a collective behind it in", o->base);
}

int main(int argc, char **argv)
{
	struct jobgen_options o;
	struct jobgen_base b = {0};
	if (argc < 3) {
		fprintf(stderr, "usage: jobgen BASE.json[.gz] FOLDER [OPTION...]      (bench/jobgen/jobgen.c lists the options)\n");
		return 2;
	}
	jobgen_read_options(&o, argc, argv);
	jobgen_read(&b, &o);
	jobgen_check(&o, &b);
	mkdir(o.folder, 0777);
	struct jobgen_play p = {.o = &o, .b = &b};
	jobgen_play(&p);
	jobgen_write(&p);
	fprintf(stderr, "jobgen: %lld ranks, %lld steps, %u collectives and messages in each round\n", (long long)o.n, (long long)(o.rounds * b.n_steps), b.n_items);
	jobgen_release(&b);
	mem_free(p.part);
	mem_free(p.begin);
	mem_free(p.wait_ns);
	mem_free(p.kept_ns);
	uint8_t *sets[] = {o.missing, o.damaged, o.empty, o.repeated, o.stacks, o.old, o.months};
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		mem_free(sets[i]);
	return 0;
}
