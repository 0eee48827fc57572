/* Which layer of the model each range and each piece of device work counts for: forward, backward, optimizer. layers_new builds it, layers_free frees it;
 * needs PASS_NEST and PASS_CORRELATE. O(n log n).
 *
 * Layers come from the first of these sources that the input has:
 *   ranges   "layer:NAME" (NVTX, record_function): the text after the colon up to the next one; nested ones are joined by ':'
 *   modules  nn.Module frames, Lightning's ranges, TorchScript's hierarchy (modules.h); joined by '/', Lightning's by '.'
 *   markers  PyProf's module markers: what the module prints of itself, else its class with its arguments, "LSTM(64, 128)"; joined by '/'
 *   stacks   DLProf's function stacks, "/<module>/Net::_call_impl/Net::forward/Linear::_call_impl(2)/...": the calls of modules, as
 *            "Net/Linear(2)"
 *
 * Forward work belongs to the innermost layer around the op that launched it. Backward work belongs to the layer of its forward op (direction.h), however
 * often the forward op was recomputed; work of a second derivative, to the layer of the first forward op; work of AccumulateGrad, to the layer of the
 * backward op that ran before it. A layer range inside a backward op (recomputation by activation checkpointing) has the work inside the range. Optimizer
 * work belongs to no layer: its ops mix the parameters of all layers. */
#ifndef OPSCOPE_ANALYSIS_TREE_LAYERS_H
#define OPSCOPE_ANALYSIS_TREE_LAYERS_H

#include "analysis/tree/direction.h"
#include "base/intern.h"

enum layer_source { LAYERS_NONE, LAYERS_RANGES, LAYERS_MODULES, LAYERS_MARKERS, LAYERS_STACKS };

struct layer {
	uint32_t parent;   /* the layer around this one; LAYER_NONE */
	uint32_t type;     /* in layers.names: the module's class; 0 = not known */
	uint32_t name;     /* in layers.names: the layer's path */
};

#define LAYER_NONE UINT32_MAX

struct layers {
	enum layer_source source;
	struct intern names;
	struct layer *v;       /* a parent stands before its children */
	uint32_t n, cap;
	uint32_t *of_span;     /* by span: the layer that the span counts for; LAYER_NONE */
	uint8_t *is_call;      /* by span: 1 = the span is a call of the layer that it names (never with TorchScript and stacks, which have no ranges of layers) */
	struct directions *dir;
	bool is_kept;          /* store/reuse.h */
};

struct layers *layers_new(const struct profile *p);
void layers_free(struct layers *l);

/* Whether the input has what layers, modules or lines of Python are told by: false = report modules and report layers have nothing, by whatever they are
 * grouped. No pass is needed. O(ranges). */
bool layers_may_be_told(const struct profile *p);

/* The layer of device work; LAYER_NONE = outside all layers, or of the optimizer. */
uint32_t layers_of_gpu(const struct layers *l, const struct profile *p, uint32_t gpu);

#endif
