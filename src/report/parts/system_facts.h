/* Facts about the machine and the software of a run, from whatever the input recorded: CPU, GPUs, driver, CUDA, cuDNN, framework, and what
 * recorded it. */
#ifndef OPSCOPE_REPORT_PARTS_SYSTEM_FACTS_H
#define OPSCOPE_REPORT_PARTS_SYSTEM_FACTS_H

#include "store/profile.h"

/* FACT_CUDA is the version that the driver supports; the program may run on an older one. */
enum system_fact {
	FACT_PROFILE_NAME, FACT_GPU_COUNT, FACT_GPU_NAMES, FACT_CPU, FACT_DRIVER, FACT_FRAMEWORK, FACT_CUDA, FACT_CUDNN, FACT_NSYS,
	FACT_CUDA_RUNTIME, FACT_HIP_DRIVER, FACT_HIP_RUNTIME, SYSTEM_FACTS,
};

/* All facts in the order in which people want them. */
extern const struct system_fact_row {
	enum system_fact fact;
	const char *id, *title; /* "cuda_driver_version", "CUDA Version (driver)" */
} system_fact_row[SYSTEM_FACTS];

/* In `a`; "" = not recorded. Versions are written as people do: "515.43.04", "11.7". */
struct str system_fact(const struct profile *p, enum system_fact f, struct arena *a);

/* A fact as it was recorded; "" = not recorded, or recorded as unknown. */
struct str system_text(const struct profile *p, const char *key);

#endif
