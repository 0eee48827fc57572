/* Which layer of the model each range and each piece of device work counts for: forward, backward, optimizer. Built on demand and freed
 * by its user; needs PASS_NEST and PASS_CORRELATE. O(n log n).
 *
 * Where layers come from, first that is there:
 *   ranges   "layer:NAME" (NVTX, record_function): the text after the colon up to the next one; nested ones are joined by ':'
 *   modules  nn.Module frames, Lightning's ranges, TorchScript's hierarchy (modules.h); joined by '/', Lightning's by '.'
 *   markers  PyProf's module markers: what the module prints of itself, else its class with its arguments, "LSTM(64, 128)"; joined by '/'
 *   stacks   DLProf's function stacks, "/<module>/Net::_call_impl/Net::forward/Linear::_call_impl(2)/...": the calls of modules, as
 *            "Net/Linear(2)"
 *
 * Work belongs to the innermost layer around the op that launched it. Backward work belongs to the layer of the forward op whose
 * backward it is (direction.h), however often it was recomputed, and of the second derivative to that of the first forward op;
 * AccumulateGrad to the layer of the backward op that ran before it. Inside a backward op a layer range of its own (recomputation by
 * activation checkpointing) goes first. Optimizer work belongs to no layer: its ops mix the parameters of all. */
#ifndef OPSCOPE_ANALYSIS_TREE_LAYERS_H
#define OPSCOPE_ANALYSIS_TREE_LAYERS_H

#include "analysis/tree/direction.h"
#include "base/intern.h"

enum layer_source { LAYERS_NONE, LAYERS_RANGES, LAYERS_MODULES, LAYERS_MARKERS, LAYERS_STACKS };

struct layer {
	uint32_t parent;   /* layer around it; LAYER_NONE */
	uint32_t type;     /* in layers.names: the module's class; 0 = not known */
	uint32_t name;     /* in layers.names: its path */
};

#define LAYER_NONE UINT32_MAX

struct layers {
	enum layer_source source;
	struct intern names;
	struct layer *v;       /* a parent stands before its children */
	uint32_t n, cap;
	uint32_t *of_span;     /* span -> layer that it counts for; LAYER_NONE */
	uint8_t *is_call;      /* span -> 1: a call of the layer that it names (none with TorchScript and stacks, which have no ranges of layers) */
	struct directions *dir;
};

struct layers *layers_new(const struct profile *p);
void layers_free(struct layers *l);

/* The layer of device work; LAYER_NONE = outside all layers, or of the optimizer. */
uint32_t layers_of_gpu(const struct layers *l, const struct profile *p, uint32_t gpu);

#endif
