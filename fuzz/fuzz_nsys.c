/* An Nsight Systems database of any bytes: whatever the tables, types and pages say, it is read as far as it goes. */
#include "import.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_import("nsys", data, size);
	return 0;
}

/* Mostly one page alone, so that the rest stays a database; the length stays as it is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	enum { PAGE = 512 };
	if (seed % 8 == 0 || size < 2 * PAGE)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t page = seed / 8 % (size / PAGE), at = page * PAGE;
	LLVMFuzzerMutate(data + at, PAGE, PAGE);
	return size;
}
