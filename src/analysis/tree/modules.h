/* Time per nn.Module, forward and backward.
 *
 * Where modules come from, first that is there:
 *   annotated  ranges `[module]Type: Model.dotted.name` (opscope.torch, python/annotate/layer.c); the dots are the hierarchy
 *   Lightning  ranges `[pl][module]Type: dotted.name`; the dots are the hierarchy
 *   Python     frames `nn.Module: X` (with_stack=True); the hierarchy is nesting in time, and that of the Python parent ids
 *              where a frame was called from another thread
 *   TorchScript argument `Module Hierarchy` of ops (with_modules=True)
 *
 * What belongs to a module: the ranges of its frames' own thread inside them. A thread that holds module frames but no op
 * (frames recorded under another thread id than the ops) lends its frames to the one thread whose ops lie in them; if that
 * is not exactly one, to none. Device work belongs to the module of the op that launched it (else of the API call).
 * A backward op belongs to the module of its forward op (fwdbwd.h), with all inside it; AccumulateGrad, which has no
 * forward op, to the backward op run before it on its thread (the engine runs it right after); collectives launched in
 * it, by hooks for a bucket of gradients, belong to no module. Module frames inside a backward op are recomputation
 * (activation checkpointing) and count as backward. */
#ifndef OPSCOPE_ANALYSIS_TREE_MODULES_H
#define OPSCOPE_ANALYSIS_TREE_MODULES_H

#include "analysis/steps/slice.h"
#include "analysis/tree/fwdbwd.h"
#include "analysis/tree/module_tree.h"
#include "store/profile.h"

enum module_source { MODULES_NONE, MODULES_ANNOTATED, MODULES_LIGHTNING, MODULES_PYTHON, MODULES_TORCHSCRIPT };

/* Modules are called by their place in the model ("layer1.0.conv1") and have a type beside it. */
static inline bool modules_are_dotted(enum module_source source) { return source == MODULES_ANNOTATED || source == MODULES_LIGHTNING; }

struct optree_rules;

/* What is otherwise for the numbers of another tool. */
struct module_rules {
	bool parent_ids;     /* a frame was called from the one with its recorded parent id, also if that has ended; what else is inside a frame is so by time */
	bool forward_only;   /* no backward pass; recomputation counts as any call */
	bool calls_are_own;  /* API calls directly inside are the module's own time */
	const struct optree_rules *optree; /* device work is what this op tree gives to the ops inside; NULL = by PASS_CORRELATE */
};
extern const struct module_rules modules_own;

enum module_phase { PHASE_OUTSIDE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_ACCUMULATE, PHASE_RECOMPUTE, PHASE_OPTIMIZER };

struct modules {
	enum module_source source;
	struct module_tree tree;
	struct fwdbwd *links;
	/* One per span; NULL without modules. */
	uint32_t *place;         /* the module it counts for, a node of the tree (module_tree_live); MODULE_NONE */
	uint8_t *phase;          /* enum module_phase */
	uint8_t *is_module;      /* 1: a call of a module */
	/* All device work in the window, once each. */
	int64_t dev_forward, dev_backward, dev_gradient_comm, dev_optimizer, dev_outside, dev_unattributed;
	int64_t dev_backward_unlinked; /* of dev_outside: in backward ops whose module is not known */
	uint64_t accumulated;    /* AccumulateGrad ranges given to the backward op before them */
	uint64_t joined;         /* recomputing calls joined to their module in the forward tree */
	uint64_t lent_tracks;    /* threads that took their modules from another */
	uint64_t unlent_tracks;  /* threads with modules, without ops, that fit none or several */
	struct step_window in;   /* the window, if one was asked for */
	bool is_kept;            /* store/reuse.h */
};

/* Only what starts in *in on the host counts; NULL = everything, also device work whose launch was not recorded. A profile without modules gives source MODULES_NONE and an
 * empty tree. Needs PASS_NEST and PASS_CORRELATE. Free with modules_free. */
struct modules *modules_new(const struct profile *p, const struct module_rules *rules, const struct step_window *in);
void modules_free(struct modules *m);

/* For each track the track that lends it its module frames, ROW_NONE = none. `is_module` has one byte a span. Counts in
 * *lent and *unlent. The array is the caller's. */
uint32_t *module_tracks(const struct profile *p, const uint8_t *is_module, uint64_t *lent, uint64_t *unlent);

#endif
