/* Packed columns (store/packed.h): any bytes are unpacked or refused, and what any bytes are as a column comes back when it was packed. */
#include "../src/base/mem.h"
#include "../src/store/packed.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = PACKED_BLOCK + 300, HEAD = 4 };

/* As `bytes` repeated. */
static void fill(void *to, size_t n, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = size ? bytes[i % size] : 0;
}

static void *copy_with_padding(const char *bytes, size_t n)
{
	char *copy = calloc(n + PACKED_PADDING, 1);
	if (!copy)
		abort();
	if (n)
		memcpy(copy, bytes, n);
	return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t klass[ROWS];
	static int64_t like[ROWS];
	static uint32_t at[ROWS];
	if (size < HEAD)
		return 0;
	const uint8_t *bytes = data + HEAD;
	const size_t n_bytes = size - HEAD;
	struct packed_column c = {.size = 1u << data[0] % 4, .none = data[0] & 4 ? -1 : INT64_MIN};
	const uint32_t n = (data[1] | (uint32_t)data[2] << 8) % (ROWS + 1);
	c.n = n;
	fill(klass, sizeof klass, bytes, n_bytes < 7 ? n_bytes : 7);
	fill(like, sizeof like, bytes, n_bytes);
	for (unsigned i = 0; i < ROWS; i++)
		at[i] = i * data[3] % (2 * ROWS);
	struct packed_split *split = data[0] & 8 ? packed_split(klass, n) : NULL;
	c.split = split;
	c.like = data[0] & 16 ? like : NULL;
	c.at = data[0] & 32 ? at : NULL;

	/* Exactly the bytes of the rows, so that a sanitizer sees what is written behind them. */
	c.data = calloc(n ? n : 1, c.size);
	char *copy = copy_with_padding((const char *)bytes, n_bytes);
	packed_take(&c, 0, n, (struct str){copy, n_bytes});
	free(copy);

	struct buf out = {0};
	struct packed_column again = c;
	fill(c.data, (size_t)n * c.size, bytes, n_bytes);
	again.data = calloc(n ? n : 1, c.size);
	packed_put(&c, 0, n, &out);
	copy = copy_with_padding(out.p, out.n);
	if (!packed_take(&again, 0, n, (struct str){copy, out.n}) || memcmp(again.data, c.data, (size_t)n * c.size) != 0)
		abort();
	free(copy);
	buf_release(&out);
	free(again.data);
	free(c.data);
	mem_free(split);
	return 0;
}
