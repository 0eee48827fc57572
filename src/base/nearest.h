/* The word that somebody meant who typed another. */
#ifndef OPSCOPE_BASE_NEAREST_H
#define OPSCOPE_BASE_NEAREST_H

#include "base/str.h"

/* Of two words, each at most 63 bytes long: how many insertions, deletions, changes, and neighbours that changed places lie between
 * them, whatever the case; 64 for longer ones. */
unsigned nearest_distance(struct str a, struct str b);

/* How far a word may be from one of `n` bytes to be what was meant, plus one: a letter in three may be wrong. */
unsigned nearest_limit(size_t n);

/* Of `n` words, the one nearest to what was typed, or that starts with it; NULL when none is near. */
const char *nearest_word(const char *typed, const char *const *words, unsigned n);

#endif
