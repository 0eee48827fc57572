#include "io/json_scan.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* '[' and '{' differ only in bit 5, as do ']' and '}': setting it makes one comparison of two. */
#define SCANNER(NAME, TARGET, BYTES, LOAD, EQ, OR, SET1, MASK)                                         \
	TARGET static const char *string_##NAME(const char *p, const char *end)                        \
	{                                                                                              \
		for (; p < end; p += BYTES) {                                                          \
			__auto_type x = LOAD((const void *)p);                                         \
			unsigned m = (unsigned)MASK(OR(EQ(x, SET1('"')), EQ(x, SET1('\\'))));          \
			if (m) {                                                                       \
				p += __builtin_ctz(m);                                                 \
				return p < end ? p : end;                                              \
			}                                                                              \
		}                                                                                      \
		return end;                                                                            \
	}                                                                                              \
	TARGET static const char *structure_##NAME(const char *p, const char *end)                     \
	{                                                                                              \
		for (; p < end; p += BYTES) {                                                          \
			__auto_type x = LOAD((const void *)p);                                         \
			__auto_type y = OR(x, SET1(0x20));                                             \
			unsigned m = (unsigned)MASK(                                                   \
				OR(EQ(x, SET1('"')), OR(EQ(y, SET1('{')), EQ(y, SET1('}')))));         \
			if (m) {                                                                       \
				p += __builtin_ctz(m);                                                 \
				return p < end ? p : end;                                              \
			}                                                                              \
		}                                                                                      \
		return end;                                                                            \
	}

#define LOAD128(p) _mm_loadu_si128(p)
#define LOAD256(p) _mm256_loadu_si256(p)
SCANNER(sse2, , 16, LOAD128, _mm_cmpeq_epi8, _mm_or_si128, _mm_set1_epi8, _mm_movemask_epi8)
SCANNER(avx2, __attribute__((target("avx2"))), 32, LOAD256, _mm256_cmpeq_epi8, _mm256_or_si256, _mm256_set1_epi8,
        _mm256_movemask_epi8)

const char *json_scan_string(const char *p, const char *end)
{
	return __builtin_cpu_supports("avx2") ? string_avx2(p, end) : string_sse2(p, end);
}

const char *json_scan_structure(const char *p, const char *end)
{
	return __builtin_cpu_supports("avx2") ? structure_avx2(p, end) : structure_sse2(p, end);
}

#else

const char *json_scan_string(const char *p, const char *end)
{
	while (p < end && *p != '"' && *p != '\\')
		p++;
	return p;
}

const char *json_scan_structure(const char *p, const char *end)
{
	while (p < end && *p != '"' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
		p++;
	return p;
}

#endif
