/* SHA-256 (FIPS 180-4), HMAC (RFC 2104) and Base64 (RFC 4648), for signing requests. */
#ifndef OPSCOPE_BASE_SHA256_H
#define OPSCOPE_BASE_SHA256_H

#include "base/buf.h"

enum { SHA256_BYTES = 32 };

void sha256(struct str text, uint8_t out[SHA256_BYTES]);
void sha256_hmac(struct str key, struct str text, uint8_t out[SHA256_BYTES]);

/* Appends the text of these bytes. */
void base64_put(struct buf *b, const uint8_t *p, size_t n);
/* Appends the bytes of a text; false, and *b holds some of them, where the text is none of Base64. */
bool base64_read(struct buf *b, struct str text);

#endif
