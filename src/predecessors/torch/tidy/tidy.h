/* What torch's own anti-patterns (torch/profiler/_pattern_matcher.py of torch 2, report_all_anti_patterns) look at: the tree of ops, annotations and
 * Python frames of each thread, and the line of the user's code that an event comes from. */
#ifndef OPSCOPE_PREDECESSORS_TORCH_TIDY_TIDY_H
#define OPSCOPE_PREDECESSORS_TORCH_TIDY_TIDY_H

#include "detect/detect.h"

extern const struct expert_system tidy_experts;

/* By span; ROW_NONE = none, also for spans that are no part of the tree. Children stand in order of time; roots of one thread are siblings. */
struct tidy {
	const struct profile *p;
	struct findings *f;
	uint32_t *parent, *before, *after, *first_child, *last_child;
	uint8_t *zeroed;               /* tidy_zero_grad.c's; NULL until it looks */
	bool stacks, shapes;           /* recorded at all */
};

/* How far up or down to look: nests of real programs are some hundred deep, those of hostile files are not worth the time. */
enum { TIDY_DEPTH = 4096 };

enum tidy_wants { TIDY_STACKS = 1, TIDY_SHAPES = 2 };

/* The tree, made when the first detector asks and owned by f->shared. NULL where the input lacks one of `wants` (enum tidy_wants bits):
 * as torch, it does not look, and says so. */
struct tidy *tidy_ready(const struct profile *p, struct findings *f, unsigned wants);
/* Runs `match` on each event of the tree, in order. What matched becomes a finding in torch's words, its misspellings included:
 * "NAME: N events matched.", with `description` and the places. */
void tidy_look(const struct tidy *t, const char *name, const char *description,
               bool (*match)(const struct tidy *t, uint32_t span));
/* Both. */
void tidy_run(const struct profile *p, struct findings *f, unsigned wants, const char *name, const char *description,
              bool (*match)(const struct tidy *t, uint32_t span));

static inline struct str tidy_name(const struct tidy *t, uint32_t span) { return profile_str(t->p, t->p->span.name[span]); }
bool tidy_is(const struct tidy *t, uint32_t span, const char *name); /* false for ROW_NONE */
/* The text of argument `at` in a JSON list of texts or lists (ARG_INPUT_TYPES, ARG_INPUT_DIMS); false when there are not so many. */
bool tidy_item(const struct tidy *t, uint32_t span, enum arg_key key, unsigned at, struct str *item);

#endif
