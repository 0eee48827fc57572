#include "base/sha256.h"

#include <string.h>

enum { BLOCK_BYTES = 64, ROUNDS = 64 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t sha256_k[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct sha256_state {
	uint32_t h[8];
	uint64_t bytes;
	uint8_t rest[BLOCK_BYTES];
	size_t n_rest;
};

static uint32_t rotated(uint32_t x, int by)
{
	return x >> by | x << (32 - by);
}

static void sha256_block(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[ROUNDS], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < ROUNDS; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];
		w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[i - 7] + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
	memcpy(v, h, sizeof v);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t a = v[0], e = v[4];
		uint32_t one = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + sha256_k[i] + w[i];
		uint32_t two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

static void sha256_begin(struct sha256_state *s)
{
	static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	*s = (struct sha256_state){0};
	memcpy(s->h, first, sizeof first);
}

static void sha256_add(struct sha256_state *s, const void *text, size_t n)
{
	const uint8_t *p = text;
	s->bytes += n;
	while (n) {
		size_t some = BLOCK_BYTES - s->n_rest < n ? BLOCK_BYTES - s->n_rest : n;
		memcpy(s->rest + s->n_rest, p, some);
		s->n_rest += some;
		p += some;
		n -= some;
		if (s->n_rest == BLOCK_BYTES) {
			sha256_block(s->h, s->rest);
			s->n_rest = 0;
		}
	}
}

static void sha256_end(struct sha256_state *s, uint8_t out[SHA256_BYTES])
{
	const uint64_t bits = s->bytes * 8;
	uint8_t tail[BLOCK_BYTES + 8] = {0x80};
	size_t n = (s->n_rest < 56 ? 56 : 120) - s->n_rest;
	for (int i = 0; i < 8; i++)
		tail[n + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
	sha256_add(s, tail, n + 8);
	for (int i = 0; i < SHA256_BYTES; i++)
		out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(struct str text, uint8_t out[SHA256_BYTES])
{
	struct sha256_state s;
	sha256_begin(&s);
	sha256_add(&s, text.p, text.n);
	sha256_end(&s, out);
}

void sha256_hmac(struct str key, struct str text, uint8_t out[SHA256_BYTES])
{
	uint8_t block[BLOCK_BYTES] = {0}, inner[SHA256_BYTES];
	struct sha256_state s;
	if (key.n > BLOCK_BYTES)
		sha256(key, block);
	else if (key.n)
		memcpy(block, key.p, key.n);
	for (int i = 0; i < BLOCK_BYTES; i++)
		block[i] ^= 0x36;
	sha256_begin(&s);
	sha256_add(&s, block, sizeof block);
	sha256_add(&s, text.p, text.n);
	sha256_end(&s, inner);
	for (int i = 0; i < BLOCK_BYTES; i++)
		block[i] ^= 0x36 ^ 0x5c;
	sha256_begin(&s);
	sha256_add(&s, block, sizeof block);
	sha256_add(&s, inner, sizeof inner);
	sha256_end(&s, out);
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(struct buf *b, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
		for (size_t k = 0; k < 4; k++)
			buf_char(b, i + k > n ? '=' : base64_digits[v >> (18 - 6 * k) & 63]);
	}
}

bool base64_read(struct buf *b, struct str text)
{
	uint32_t v = 0;
	unsigned bits = 0;
	while (text.n && text.p[text.n - 1] == '=')
		text.n--;
	for (size_t i = 0; i < text.n; i++) {
		const char *digit = text.p[i] ? strchr(base64_digits, text.p[i]) : NULL;
		if (!digit)
			return false;
		v = v << 6 | (uint32_t)(digit - base64_digits);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_char(b, (char)(v >> bits));
			v &= (1u << bits) - 1;
		}
	}
	return true;
}
