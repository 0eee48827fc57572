#include "base/nearest.h"

#include <sys/param.h>

enum { LONGEST = 63 };

static char nearest_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

unsigned nearest_distance(struct str a, struct str b)
{
	unsigned rows[3][LONGEST + 1];
	if (a.n > LONGEST || b.n > LONGEST)
		return LONGEST + 1;
	for (unsigned j = 0; j <= b.n; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= a.n; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
		char c = nearest_lower(a.p[i - 1]), last = i > 1 ? nearest_lower(a.p[i - 2]) : 0;
		row[0] = i;
		for (unsigned j = 1; j <= b.n; j++) {
			char d = nearest_lower(b.p[j - 1]);
			row[j] = MIN(above[j - 1] + (c != d), MIN(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && c == nearest_lower(b.p[j - 2]) && last == d)
				row[j] = MIN(row[j], before[j - 2] + 1);
		}
	}
	return rows[a.n % 3][b.n];
}

unsigned nearest_limit(size_t n)
{
	return n >= 9 ? 4 : (unsigned)n / 3 + 1;
}

const char *nearest_word(const char *typed, const char *const *words, unsigned n)
{
	const char *best = NULL;
	size_t length = strlen(typed);
	unsigned nearest = nearest_limit(length);
	for (unsigned i = 0; i < n; i++) {
		const char *w = words[i];
		bool prefix = length >= 3 && strncasecmp(w, typed, length) == 0;
		unsigned d = prefix ? 1 : nearest_distance(str_from(typed), str_from(w));
		if (d < nearest && d < strlen(w)) {
			nearest = d;
			best = w;
		}
	}
	return best;
}
