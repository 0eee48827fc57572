/* A DLProf database of any bytes: whatever the tables, types and pages say, it is read as far as it goes. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import("dldb", data, size);
	return 0;
}
