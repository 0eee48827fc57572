/* An .opscope file of any bytes: a damaged one is refused with a message, never trusted. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import("opscope", data, size);
	return 0;
}
