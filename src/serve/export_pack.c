#include "serve/export_pack.h"

#include "base/hash.h"
#include "base/mem.h"

#include <zlib.h>

enum { BLOCK_BYTES = 512 << 10 }; /* before it is packed; longer answers have blocks of their own */

void export_base64(struct str s, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)s.p;
	char *to = buf_room(out, (s.n + 2) / 3 * 4), *begin = to;
	for (size_t i = 0; i < s.n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < s.n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < s.n ? p[i + 2] : 0);
		*to++ = digits[v >> 18];
		*to++ = digits[v >> 12 & 63];
		*to++ = i + 1 < s.n ? digits[v >> 6 & 63] : '=';
		*to++ = i + 2 < s.n ? digits[v & 63] : '=';
	}
	out->n += (size_t)(to - begin);
}

/* Of zlib: with memory that never comes back NULL, nothing here can fail. */
static void *serve_export_pack_take(void *opaque, unsigned n, unsigned size)
{
	return mem_alloc(n, size);
}

static void serve_export_pack_give(void *opaque, void *p)
{
	mem_free(p);
}

void export_pack_text(struct str json, struct buf *out)
{
	z_stream z = {.zalloc = serve_export_pack_take, .zfree = serve_export_pack_give};
	deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
	struct buf packed = {0};
	z.next_in = (Bytef *)(uintptr_t)json.p;
	int rc = Z_OK;
	for (size_t left = json.n; rc != Z_STREAM_END;) {
		uInt part = left > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uInt)left;
		if (!z.avail_in) {
			z.avail_in = part;
			left -= part;
		}
		z.next_out = (Bytef *)buf_room(&packed, 1 << 16);
		z.avail_out = 1 << 16;
		rc = deflate(&z, left ? Z_NO_FLUSH : Z_FINISH);
		packed.n += (size_t)(1 << 16) - z.avail_out;
	}
	deflateEnd(&z);
	export_base64(buf_view(&packed), out);
	buf_release(&packed);
}

void export_pack_end(struct export_pack *x)
{
	if (!x->in_open)
		return;
	buf_char(&x->open, ']');
	MEM_GROW(x->block, x->cap, x->n + 1);
	struct export_block *k = &x->block[x->n++];
	*k = (struct export_block){0};
	export_pack_text(buf_view(&x->open), &k->text);
	k->hash = hash_bytes(k->text.p, k->text.n);
	buf_release(&x->open);
	x->in_open = 0;
}

static void serve_export_pack_begin(struct export_pack *x, size_t bytes)
{
	if (x->in_open && x->open.n + bytes > BLOCK_BYTES)
		export_pack_end(x);
	buf_char(&x->open, x->in_open ? ',' : '[');
}

struct export_place export_pack_add(struct export_pack *x, struct str json)
{
	uint64_t hash = hash_bytes(json.p, json.n);
	for (unsigned i = 0; i < x->n_known; i++)
		if (x->known[i].hash == hash && x->known[i].bytes == json.n)
			return x->known[i].place;
	serve_export_pack_begin(x, json.n);
	struct export_place place = {x->n, x->in_open++};
	buf_str(&x->open, json);
	MEM_PUSH(x->known, x->n_known, x->cap_known, (struct export_known){hash, json.n, place});
	return place;
}

void export_pack_release(struct export_pack *x)
{
	for (unsigned i = 0; i < x->n; i++)
		buf_release(&x->block[i].text);
	mem_free(x->block);
	mem_free(x->known);
	buf_release(&x->open);
	*x = (struct export_pack){0};
}
