/* A Kineto trace of any bytes, plain or gzip: import, passes, reports, detectors. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import("kineto", data, size);
	return 0;
}
