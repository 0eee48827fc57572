/* PyProf's records of any bytes, plain or gzip: import, passes, reports, detectors. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import("pyprof-dict", data, size);
	return 0;
}
