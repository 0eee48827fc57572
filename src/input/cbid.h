/* Names of CUDA API calls by the numbers that CUPTI gives them ("callback ids"). */
#ifndef OPSCOPE_INPUT_CBID_H
#define OPSCOPE_INPUT_CBID_H

#include <stdint.h>

/* NULL = a number that is not in the tables. */
const char *cbid_runtime(int64_t cbid);
const char *cbid_driver(int64_t cbid);

#endif
