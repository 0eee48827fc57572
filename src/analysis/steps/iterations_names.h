/* What a range's name says about steps (step_keys.def). */
#ifndef OPSCOPE_ANALYSIS_STEPS_ITERATIONS_NAMES_H
#define OPSCOPE_ANALYSIS_STEPS_ITERATIONS_NAMES_H

#include "store/profile.h"

/* How calls of a range make steps: it holds a whole one, stands at its begin or at its end. */
enum key_role { KEY_HOLDS, KEY_BEGINS, KEY_ENDS };

struct step_key {
	bool optimizer;
	const char *pattern;     /* "*" stands for anything */
	enum key_role role;
	bool several;            /* one step may call it several times in a row */
};
extern const struct step_key step_keys[];
extern const unsigned n_step_keys;

/* The first row whose pattern fits; n_step_keys = none. */
unsigned step_key_of(struct str name);

/* Is it a name by which people mark a step: "step 5", "train_step", "Iteration 3/100", "[pl][profile]run_training_batch"? Every word of it
 * must be one that such names are made of, so that "optimizer_step" or "batch_norm" is none. */
bool name_means_step(struct str name);

/* "Step # to #" fits "Step 10 to 20", digit runs standing for each other. */
bool name_matches_numbers(struct str name, struct str pattern);

/* The kinds of range that can be a key op. */
static inline bool key_kind(uint8_t kind)
{
	return kind == SPAN_OP || kind == SPAN_USER || kind == SPAN_RANGE || kind == SPAN_MARKER || kind == SPAN_CALL ||
	       kind == SPAN_PYTHON || kind == SPAN_OTHER;
}

#endif
