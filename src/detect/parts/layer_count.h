/* In how many layers of the model something happens, for the evidence of findings. */
#ifndef OPSCOPE_DETECT_PARTS_LAYER_COUNT_H
#define OPSCOPE_DETECT_PARTS_LAYER_COUNT_H

#include "analysis/tree/layers.h"
#include "base/buf.h"
#include "detect/detect.h"

struct layer_count {
	const struct profile *p;
	const struct layers *layers;
	uint8_t *seen;           /* by layer */
	uint32_t n, first;       /* layers seen; the first of them */
};

/* Needs PASS_NEST and PASS_CORRELATE. O(n log n): only for what is found. Release it. */
void layer_count_init(struct layer_count *c, const struct profile *p, struct findings *f);
void layer_count_release(struct layer_count *c);
/* The layer of this device work. */
void layer_count_add(struct layer_count *c, uint32_t gpu);
/* Appends ". In 36 layers, the first Model_0/Encoder_0/Attention_0"; nothing where the input does not say which layers there are. */
void layer_count_text(const struct layer_count *c, struct buf *out);

#endif
