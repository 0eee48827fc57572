/* A list of words that grows: a command line, an environment, notes. */
#ifndef OPSCOPE_RECORD_WORDS_H
#define OPSCOPE_RECORD_WORDS_H

#include "base/arena.h"

struct words {
	char **v;            /* NULL-terminated once there is a word */
	int n, cap;
	struct arena arena;  /* owns what words_printf and words_split added */
};

/* The word itself must outlive the list. */
void words_add(struct words *w, const char *word);
void words_printf(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Words as a shell divides them, without expanding anything: '...', "...", and \ before a character. */
void words_split(struct words *w, const char *text);
bool words_has(const struct words *w, const char *word);
void words_release(struct words *w);

#endif
