#include "io/gzip.h"

#include "base/mem.h"

#ifdef HAVE_ISAL
#include <isa-l/igzip_lib.h>

/* Into out[0..room-1]; 0 = no room. */
static size_t gzip_pack_(struct str s, char *out, size_t room)
{
	struct isal_zstream z;
	uint8_t *level = mem_alloc(ISAL_DEF_LVL1_DEFAULT, 1);
	isal_deflate_stateless_init(&z);
	z.level = 1;
	z.level_buf = level;
	z.level_buf_size = ISAL_DEF_LVL1_DEFAULT;
	z.gzip_flag = IGZIP_GZIP;
	z.end_of_stream = 1;
	z.next_in = (uint8_t *)(uintptr_t)s.p;
	z.avail_in = (uint32_t)s.n;
	z.next_out = (uint8_t *)out;
	z.avail_out = (uint32_t)room;
	int rc = isal_deflate_stateless(&z);
	mem_free(level);
	return rc == COMP_OK ? room - z.avail_out : 0;
}
#else
#include <zlib.h>

static size_t gzip_pack_(struct str s, char *out, size_t room)
{
	enum { LEVEL = 1, WINDOW = 15 + 16, MEMORY = 9 };
	z_stream z = {0};
	if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	z.next_in = (Bytef *)(uintptr_t)s.p;
	z.avail_in = (uInt)s.n;
	z.next_out = (Bytef *)out;
	z.avail_out = (uInt)room;
	int rc = deflate(&z, Z_FINISH);
	deflateEnd(&z);
	return rc == Z_STREAM_END ? room - z.avail_out : 0;
}
#endif

struct str gzip_pack(struct str s)
{
	if (!s.n || s.n > UINT32_MAX / 2)
		return (struct str){0};
	char *out = mem_alloc(s.n, 1);
	size_t n = gzip_pack_(s, out, s.n - 1);
	if (n)
		return (struct str){mem_realloc(out, n, 1), n};
	mem_free(out);
	return (struct str){0};
}
