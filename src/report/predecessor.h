/* What a wing of src/predecessors/ adds to the reports of the core: their rows by a predecessor's rules. The core does not know which wings there are.
 *
 * Adding a wing: a folder src/predecessors/NAME with a variants.c that ends in `const struct predecessor predecessor_NAME = {...};`, and the word NAME in
 * src/predecessors/meson.build. Its meson.build adds what it has besides to `reports`, `detectors`, `endpoints` and `commands`. */
#ifndef OPSCOPE_REPORT_PREDECESSOR_H
#define OPSCOPE_REPORT_PREDECESSOR_H

#include "report/report.h"

struct predecessor {
	const struct report_variant *variants; /* each has .report, the name of the report that it is a row of; ends with {0} */
};

/* All wings, in the order of meson.build, NULL-terminated (generated). */
extern const struct predecessor *const predecessor_registry[];

#endif
