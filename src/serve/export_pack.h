/* Answers in blocks, and the index that says where each is. */
#ifndef OPSCOPE_SERVE_EXPORT_PACK_H
#define OPSCOPE_SERVE_EXPORT_PACK_H

#include "base/buf.h"

#include <stdint.h>

/* A block: a JSON array, packed by gzip, as base64. */
struct export_block {
	struct buf text;
	uint64_t hash;           /* of its text */
};

struct export_place {
	unsigned block, at;      /* element `at` of that block */
};

struct export_pack {
	struct export_block *block;
	unsigned n, cap;
	struct buf open;         /* the array in the making: block number n */
	unsigned in_open;
	struct export_known {    /* so that what is the same is there once */
		uint64_t hash;
		size_t bytes;
		struct export_place place;
	} *known;
	unsigned n_known, cap_known;
};

/* Puts a JSON value into the block in the making, which is ended when it is long enough. */
struct export_place export_pack_add(struct export_pack *x, struct str json);
/* Ends the block in the making; what is added later stands in another one. */
void export_pack_end(struct export_pack *x);
/* Appends a JSON value as a block's text. */
void export_pack_text(struct str json, struct buf *out);
void export_base64(struct str s, struct buf *out);
void export_pack_release(struct export_pack *x);

#endif
