#include "input/cbid.h"

#include <stddef.h>

#define CBID(number, name) [number] = name,
static const char *const runtime[] = {
#include "input/cupti_runtime_cbid.def"
};
static const char *const driver[] = {
#include "input/cupti_driver_cbid.def"
};

const char *cbid_runtime(int64_t cbid)
{
	return cbid >= 0 && cbid < (int64_t)(sizeof runtime / sizeof runtime[0]) ? runtime[cbid] : NULL;
}

const char *cbid_driver(int64_t cbid)
{
	return cbid >= 0 && cbid < (int64_t)(sizeof driver / sizeof driver[0]) ? driver[cbid] : NULL;
}
