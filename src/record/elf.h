/* Names of functions in ELF files (64 bit). Files may be of any content: what does not fit is as if it had no symbols. */
#ifndef OPSCOPE_RECORD_ELF_H
#define OPSCOPE_RECORD_ELF_H

#include "base/str.h"

struct elf;

/* NULL when it cannot be read, or is no such file. */
struct elf *elf_open(const char *path);
void elf_close(struct elf *f);
/* The function, as the linker knows it, whose code is at this offset in the file; empty when none is known. Valid until elf_close. */
struct str elf_function(const struct elf *f, uint64_t offset);

#endif
