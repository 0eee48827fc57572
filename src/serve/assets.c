#include "serve/assets.h"

#include "base/mem.h"

#include <stdio.h>
#include <zlib.h>

static const struct asset *serve_assets_find(struct str path)
{
	for (const struct asset *a = asset_registry; a->path; a++)
		if (str_eqc(path, a->path))
			return a;
	return NULL;
}

static const struct asset *find_page(struct str path)
{
	return serve_assets_find(str_eqc(path, "/") ? STR("/index.html") : path);
}

bool asset_is_there(struct str path)
{
	return find_page(path) != NULL;
}

const struct asset *asset_of(const char *path)
{
	return serve_assets_find(str_from(path));
}

int asset_unpack(const struct asset *a, struct buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)a->packed, .avail_in = (uInt)a->packed_bytes};
	size_t begin = out->n;
	buf_fill(out, 0, a->bytes);
	z.next_out = (Bytef *)out->p + begin;
	z.avail_out = (uInt)a->bytes;
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		mem_fail(0);
	int rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	if (rc == Z_MEM_ERROR)
		mem_fail(0);
	return rc == Z_STREAM_END && z.avail_out == 0 ? 0 : -1;
}

struct answer *asset_find(struct str path)
{
	const struct asset *a = find_page(path);
	struct buf body = {0};
	if (!a || asset_unpack(a, &body) < 0) {
		buf_release(&body);
		return NULL;
	}
	struct answer *x = NEW(struct answer);
	*x = (struct answer){.status = 200, .type = a->type, .body = buf_view(&body), .owned = body.p, .users = 1,
	                     .packed = {(const char *)a->packed, a->packed_bytes}};
	snprintf(x->etag, sizeof x->etag, "%s", a->etag);
	return x;
}
