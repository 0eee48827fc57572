/* parts_kineto: a trace that several threads read in parts gives what one thread gives, on any bytes. */
#include "../tests/unit/parts_same.h"
#include "target.h"

#include <stdlib.h>

const bool target_asks = false;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target_file f;
	unsigned joined = 0;
	target_file_make(&f, data, size);
	for (unsigned threads = 2; threads <= 8; threads = threads == 2 ? 3 : threads + 5)
		if (!parts_same_file(f.path, threads, 1, &joined))
			abort();
	target_file_remove(&f);
	return 0;
}
