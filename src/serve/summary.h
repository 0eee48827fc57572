/* What the start page says of a run in one row. Every figure is a cell of a report: `overview` has the step and how busy the GPUs were, `mfu` the MFU, and the findings
 * are those of `advise`. */
#ifndef OPSCOPE_SERVE_SUMMARY_H
#define OPSCOPE_SERVE_SUMMARY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/table.h"
#include "store/profile.h"

/* A figure; `why` says why it is not known. */
struct summary_figure {
	double value;            /* NAN = not known */
	struct str why;
};

struct summary_gpu {
	int64_t device;
	struct str name;         /* n == 0: the input does not tell */
	double busy_pct, mfu_pct; /* NAN = not known */
	double peak_tflops_per_s; /* of which the MFU is a share */
	struct str peak_of;      /* type and cores of that peak */
};

struct summary {
	struct str format;       /* of the input: "kineto"; of a job's ranks, that of the first */
	struct summary_figure step_ns, busy_pct, mfu_pct; /* of several GPUs or ranks, the mean over them */
	struct str step_note;    /* what the mean step is a mean of */
	struct summary_gpu *gpu; /* those that ran kernels */
	unsigned n_gpus;
	int64_t findings;        /* how many; -1 = not known */
	struct str findings_why; /* why not */
	struct str severity, problem; /* of the first finding */
	struct str others;       /* the problems of the others, a line for each */
	struct str losses;       /* what of the input could not be used, as problems_put has it */
	unsigned ranks, left_out; /* of a job: how many recordings were read, and how many could not be; 0 and 0 of an input */
};

/* Fills *out with the figures of one input. Its texts are in the arena. Runs passes and reports on *p. */
void summary_of(struct profile *p, struct arena *a, struct summary *out);

/* Fills *out with the figures of a job: means over those of its n ranks that have the figure. The findings stay unset. */
void summary_of_ranks(const struct summary *rank, unsigned n, struct arena *a, struct summary *out);
/* Sets the findings from the table that `advise` gave; t == NULL: it gave none, and *why says why. Nothing found where detectors could not look is not known. */
void summary_set_findings(struct summary *s, struct arena *a, const struct table *t, const struct err *why);

/* Appends it as an object of JSON. */
void summary_put(const struct summary *s, struct buf *out);

#endif
