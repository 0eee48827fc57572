#include "analysis/steps/iterations_names.h"

#include <ctype.h>

#define NAMED false
#define OPTIMIZER true
#define HOLDS KEY_HOLDS
#define BEGINS KEY_BEGINS
#define ENDS KEY_ENDS
#define STEP_KEY(source, text, what, many) {source, text, what, many},
const struct step_key step_keys[] = {
#include "analysis/steps/step_keys.def"
};
#undef STEP_KEY
#undef NAMED
#undef OPTIMIZER
#undef HOLDS
#undef BEGINS
#undef ENDS
const unsigned n_step_keys = sizeof step_keys / sizeof step_keys[0];

/* "*" stands for any bytes. Going back to the last "*" alone is enough, so that this takes at most n x pattern steps. */
static bool iterations_names_fits(struct str s, const char *pattern)
{
	const char *star = NULL;
	size_t i = 0, back = 0;
	while (i < s.n) {
		if (*pattern == '*') {
			star = ++pattern;
			back = i;
		} else if (*pattern == s.p[i]) {
			pattern++;
			i++;
		} else if (star) {
			pattern = star;
			i = ++back;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* No name that marks a step is longer; of hostile ones not every byte is looked at many times. */
enum { LONGEST = 256 };

unsigned step_key_of(struct str name)
{
	unsigned i = 0;
	while (i < n_step_keys && (name.n > LONGEST || !iterations_names_fits(name, step_keys[i].pattern)))
		i++;
	return i;
}

static bool iterations_names_is_word(const char *p, size_t n, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == n && strncasecmp(p, *list, n) == 0)
			return true;
	return false;
}

/* Words in camelCase are divided as those with separators are. */
static size_t word_end(struct str s, size_t i)
{
	size_t at = i + 1;
	while (at < s.n && isalpha((unsigned char)s.p[at]) && !(isupper((unsigned char)s.p[at]) && islower((unsigned char)s.p[at - 1])))
		at++;
	return at;
}

bool name_means_step(struct str s)
{
	static const char *const steps[] = {"step", "steps", "iteration", "iter", "it", "batch", "minibatch", NULL};
	static const char *const others[] = {
		"train", "training", "trainer", "eval", "evaluation", "validation", "valid", "val", "test", "predict", "prediction", "infer",
		"inference", "decode", "prefill", "extend", "generate", "generation", "global", "run", "pl", "profile", "profiler", "mini", "num",
		"number", "no", "n", "id", "idx", "index", "bs", "size", "of", "to", "the", "main", "begin", "start", "epoch", "rank", "toks", "tokens",
		NULL,
	};
	bool step = false;
	for (size_t i = 0; i < s.n && s.n <= LONGEST;) {
		if (!isalpha((unsigned char)s.p[i])) {
			i++;
			continue;
		}
		size_t end = word_end(s, i);
		if (iterations_names_is_word(s.p + i, end - i, steps))
			step = true;
		else if (!iterations_names_is_word(s.p + i, end - i, others))
			return false;
		i = end;
	}
	return step;
}

static size_t skip_digits(struct str s, size_t i)
{
	while (i < s.n && isdigit((unsigned char)s.p[i]))
		i++;
	return i;
}

bool name_matches_numbers(struct str s, struct str pattern)
{
	size_t i = 0, k = 0;
	while (k < pattern.n) {
		if (i < s.n && pattern.p[k] == '#' && isdigit((unsigned char)s.p[i])) {
			i = skip_digits(s, i);
			k++;
		} else if (i < s.n && s.p[i] == pattern.p[k]) {
			i++;
			k++;
		} else {
			return false;
		}
	}
	return i == s.n;
}
