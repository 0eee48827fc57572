/* The viewer's pages: files of web/ in the program. */
#ifndef OPSCOPE_SERVE_ASSETS_H
#define OPSCOPE_SERVE_ASSETS_H

#include "serve/answers.h"

/* A generated list (tools/embed.py), ended by a row without path. */
struct asset {
	const char *path;          /* "/index.html" */
	const char *type;
	const char *etag;          /* as of struct answer */
	const char *sha256;        /* base64, for a Content-Security-Policy */
	const unsigned char *packed; /* gzip */
	size_t packed_bytes, bytes;
};
extern const struct asset asset_registry[];

/* The page at a path, "/" being "/index.html"; to be released like any answer. NULL = none. */
struct answer *asset_find(struct str path);
bool asset_is_there(struct str path);

/* As it is in the program; NULL = none. */
const struct asset *asset_of(const char *path);

/* The unpacked bytes, for exports; in *out. -1 when they are damaged. */
int asset_unpack(const struct asset *a, struct buf *out);

#endif
