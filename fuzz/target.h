/* What the targets that read whole files share. Such a target is read_FORMAT, ask_FORMAT or same_opscope. */
#ifndef OPSCOPE_FUZZ_TARGET_H
#define OPSCOPE_FUZZ_TARGET_H

#include "open/trace_open.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer's own mutator; in replay.c a small one in its place. It returns the new size, at most max_size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Whether the target's inputs end in a question (question.h): the mutator then changes that too. */
extern const bool target_asks;

/* A file of these bytes: a name in memory, since SQLite opens nothing without a name. */
struct target_file { char path[32]; };
void target_file_make(struct target_file *f, const uint8_t *data, size_t size);
void target_file_remove(const struct target_file *f);

/* Reads the bytes; format NULL = recognised by content; as_written: as in input.h. NULL when they are refused; aborts when they are
 * refused without a word. */
struct profile *target_open(const char *format, const uint8_t *data, size_t size, bool as_written);

#endif
