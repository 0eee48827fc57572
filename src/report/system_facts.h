/* Facts about the machine and the software of a run, from whatever the input recorded: CPU, GPUs, driver, CUDA, cuDNN, framework, and what
 * recorded it. */
#ifndef OPSCOPE_REPORT_SYSTEM_FACTS_H
#define OPSCOPE_REPORT_SYSTEM_FACTS_H

#include "store/profile.h"

enum system_fact {
	FACT_PROFILE_NAME, FACT_GPU_COUNT, FACT_GPU_NAMES, FACT_CPU, FACT_DRIVER, FACT_FRAMEWORK, FACT_CUDA, FACT_CUDNN, FACT_NSYS,
	FACT_DLPROF, FACT_DLPROF_BUILD, SYSTEM_FACTS,
	/* What DLProf has not. FACT_CUDA is the version that the driver supports; the program may run on an older one. */
	FACT_CUDA_RUNTIME = SYSTEM_FACTS, FACT_HIP_DRIVER, FACT_HIP_RUNTIME, ALL_FACTS,
};
extern const char *const system_fact_title[SYSTEM_FACTS]; /* DLProf's titles, in its order: "GPU Count", "GPU Name(s)", ... */

/* All of them in the order in which people want them. */
extern const struct system_fact_row {
	enum system_fact fact;
	const char *id, *title; /* "cuda_driver_version", "CUDA Version (driver)" */
} system_fact_row[ALL_FACTS];

/* In `a`; "" = not recorded. Versions are written as people do: "515.43.04", "11.7". */
struct str system_fact(const struct profile *p, enum system_fact f, struct arena *a);

#endif
