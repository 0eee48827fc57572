/* A segment of a capture of any bytes: whatever its header, chunks and records say, it is read as far as it goes. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import("capture", data, size);
	return 0;
}
