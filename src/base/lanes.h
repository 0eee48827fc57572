/* Sixteen bytes at once: by SSE2, NEON, or plain C. LANES_PLAIN takes plain C on any machine.
 *
 *   lanes_at(p)                 the LANES bytes at `p`, which must be readable
 *   lanes_of(c)                 `c` in each byte
 *   lanes_equal(a, b)           mask of the bytes that are equal
 *   lanes_within(a, low, n)     mask of the bytes from `low` to `low` + `n`, both included
 *
 * A mask has LANE_BITS bits for each byte, those of byte 0 lowest; all of a byte's bits are set, or none. */
#ifndef OPSCOPE_BASE_LANES_H
#define OPSCOPE_BASE_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

#if defined(__SSE2__) && !defined(LANES_PLAIN)
#include <emmintrin.h>

typedef __m128i lanes;
enum { LANE_BITS = 1 };

static inline lanes lanes_at(const char *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline uint64_t lanes_equal(lanes a, lanes b)
{
	return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
}

static inline lanes lanes_of(char c)
{
	return _mm_set1_epi8(c);
}

static inline uint64_t lanes_within(lanes a, char low, char n)
{
	lanes above = _mm_sub_epi8(a, _mm_set1_epi8(low));
	return lanes_equal(_mm_min_epu8(above, _mm_set1_epi8(n)), above);
}

#elif defined(__ARM_NEON) && defined(__aarch64__) && !defined(LANES_PLAIN)
#include <arm_neon.h>

typedef uint8x16_t lanes;
enum { LANE_BITS = 4 };

static inline lanes lanes_at(const char *p)
{
	return vld1q_u8((const uint8_t *)p);
}

/* Each byte of `x` is 0 or 255: half of each is kept. */
static inline uint64_t lanes_mask(lanes x)
{
	return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(x), 4)), 0);
}

static inline uint64_t lanes_equal(lanes a, lanes b)
{
	return lanes_mask(vceqq_u8(a, b));
}

static inline lanes lanes_of(char c)
{
	return vdupq_n_u8((uint8_t)c);
}

static inline uint64_t lanes_within(lanes a, char low, char n)
{
	return lanes_mask(vcleq_u8(vsubq_u8(a, vdupq_n_u8((uint8_t)low)), vdupq_n_u8((uint8_t)n)));
}

#else

typedef struct {
	uint8_t byte[LANES];
} lanes;
enum { LANE_BITS = 1 };

static inline lanes lanes_at(const char *p)
{
	lanes x;
	memcpy(x.byte, p, LANES);
	return x;
}

static inline uint64_t lanes_equal(lanes a, lanes b)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < LANES; i++)
		mask |= (uint64_t)(a.byte[i] == b.byte[i]) << i;
	return mask;
}

static inline lanes lanes_of(char c)
{
	lanes x;
	memset(x.byte, c, LANES);
	return x;
}

static inline uint64_t lanes_within(lanes a, char low, char n)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < LANES; i++)
		mask |= (uint64_t)((uint8_t)(a.byte[i] - (uint8_t)low) <= (uint8_t)n) << i;
	return mask;
}

#endif

/* The first byte of a mask that is not 0. */
static inline unsigned lanes_first(uint64_t mask)
{
	return (unsigned)__builtin_ctzll(mask) / LANE_BITS;
}

/* The mask of the first `n` bytes, 1 to LANES. */
static inline uint64_t lanes_up_to(unsigned n)
{
	return UINT64_MAX >> (64 - n * LANE_BITS);
}

/* How many bytes from the first one on are in the mask, LANES when all are. */
static inline unsigned lanes_run(uint64_t mask)
{
	return mask == lanes_up_to(LANES) ? LANES : lanes_first(~mask);
}

/* Whether `n` bytes (1 or more) are equal. Both are read in whole steps of LANES bytes, up to the first step that differs. */
static inline bool lanes_same(const char *a, const char *b, unsigned n)
{
	for (; n > LANES; n -= LANES, a += LANES, b += LANES)
		if (lanes_equal(lanes_at(a), lanes_at(b)) != lanes_up_to(LANES))
			return false;
	return (~lanes_equal(lanes_at(a), lanes_at(b)) & lanes_up_to(n)) == 0;
}

/* Whether `n` bytes are equal, 8 or more. Nothing else is read. */
static inline bool lanes_same_within(const char *a, const char *b, size_t n)
{
	if (n < LANES) {
		uint64_t x[2], y[2];
		memcpy(&x[0], a, 8);
		memcpy(&y[0], b, 8);
		memcpy(&x[1], a + n - 8, 8);
		memcpy(&y[1], b + n - 8, 8);
		return x[0] == y[0] && x[1] == y[1];
	}
	for (size_t i = 0; i < n - LANES; i += LANES)
		if (lanes_equal(lanes_at(a + i), lanes_at(b + i)) != lanes_up_to(LANES))
			return false;
	return lanes_equal(lanes_at(a + n - LANES), lanes_at(b + n - LANES)) == lanes_up_to(LANES);
}

#endif
