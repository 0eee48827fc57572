/* read_FORMAT: any bytes are read as a file of FORMAT, or refused with a reason. Nothing is asked: many executions a second. */
#include "target.h"

const bool target_asks = false;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	profile_free(target_open(FORMAT, data, size, true));
	return 0;
}
