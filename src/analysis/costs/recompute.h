/* Activation checkpointing: the forward pass that runs again within the backward pass, by its frames of Python. */
#ifndef OPSCOPE_ANALYSIS_COSTS_RECOMPUTE_H
#define OPSCOPE_ANALYSIS_COSTS_RECOMPUTE_H

#include "store/profile.h"

/* By span: 1 inside recomputation, else 0. Needs PASS_NEST and recorded stacks (with_stack=True); without these all are 0. Free with mem_free. */
uint8_t *recompute_spans(const struct profile *p);

#endif
