/* Search in anything that is numbered: an array, several of them, or what a function tells. */
#ifndef OPSCOPE_BASE_SEARCH_H
#define OPSCOPE_BASE_SEARCH_H

/* The first i in [lo, hi) for which the condition holds; hi if it holds for none. The condition must be false up to some i and true from there on, as
 * v[i].end > time is where the ends ascend. The condition is evaluated O(log(hi - lo)) times. lo and hi are evaluated once; i has the type of hi and exists in the condition
 * alone.
 *
 *     uint32_t at = FIRST_WHERE(i, 0, n, v[i].end > time);
 *
 * The last i for which P holds, where P is true first and then false: FIRST_WHERE(i, lo, hi, !P) - 1. */
#define FIRST_WHERE(i, lo, hi, condition)                                                              \
	({                                                                                             \
		__typeof__((hi) + 0) search_hi_ = (hi), search_lo_ = (lo);                             \
		while (search_lo_ < search_hi_) {                                                      \
			__typeof__(search_hi_) i = search_lo_ + (search_hi_ - search_lo_) / 2;         \
			if (condition)                                                                 \
				search_hi_ = i;                                                        \
			else                                                                           \
				search_lo_ = i + 1;                                                    \
		}                                                                                      \
		search_lo_;                                                                            \
	})

/* Whether the condition holds for any i in [lo, hi); looks from lo on, up to the first one. lo and hi are evaluated once; i is as above. */
#define ANY_WHERE(i, lo, hi, condition)                                                                \
	({                                                                                             \
		__typeof__((hi) + 0) any_hi_ = (hi), i = (lo);                                         \
		while (i < any_hi_ && !(condition))                                                    \
			i++;                                                                           \
		i < any_hi_;                                                                           \
	})

/* The address of the first of n elements of an array for which the condition holds; NULL if it holds for none. n is evaluated once, the array is not. */
#define ELEMENT_WHERE(i, array, n, condition)                                                          \
	({                                                                                             \
		__typeof__((n) + 0) element_n_ = (n), i = 0;                                           \
		while (i < element_n_ && !(condition))                                                 \
			i++;                                                                           \
		i < element_n_ ? &(array)[i] : NULL;                                                   \
	})

#endif
