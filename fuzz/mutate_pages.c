/* How databases are mutated: mostly one page alone, so that the rest stays a database; the length stays as it is. */
#include <stddef.h>
#include <stdint.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	enum { PAGE = 512 };
	if (seed % 8 == 0 || size < 2 * PAGE)
		return LLVMFuzzerMutate(data, size, max_size);
	size_t page = seed / 8 % (size / PAGE), at = page * PAGE;
	LLVMFuzzerMutate(data + at, PAGE, PAGE);
	return size;
}
