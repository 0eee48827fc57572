/* What fuzzing a whole import does: read the bytes as that format, run every pass, report, detector and export. */
#ifndef OPSCOPE_FUZZ_IMPORT_H
#define OPSCOPE_FUZZ_IMPORT_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void fuzz_import(const char *format, const uint8_t *data, size_t size);

#endif
