/* Facts about the machine and the software of a run, from whatever the input recorded: CPU, GPUs, driver, CUDA, cuDNN, framework, and what
 * recorded it. */
#ifndef OPSCOPE_REPORT_SYSTEM_FACTS_H
#define OPSCOPE_REPORT_SYSTEM_FACTS_H

#include "store/profile.h"

enum system_fact {
	FACT_PROFILE_NAME, FACT_GPU_COUNT, FACT_GPU_NAMES, FACT_CPU, FACT_DRIVER, FACT_FRAMEWORK, FACT_CUDA, FACT_CUDNN, FACT_NSYS,
	FACT_DLPROF, FACT_DLPROF_BUILD, SYSTEM_FACTS,
};
extern const char *const system_fact_title[SYSTEM_FACTS]; /* DLProf's titles, in its order: "GPU Count", "GPU Name(s)", ... */
extern const char *const system_fact_id[SYSTEM_FACTS];    /* "gpu_count", "gpu_names", ... */

/* In `a`; "" = not recorded. Versions are written as people do: "515.43.04", "11.7". */
struct str system_fact(const struct profile *p, enum system_fact f, struct arena *a);

#endif
