/* The inner loops of the JSON reader: find the next byte of interest. SSE2 is the baseline of x86-64, AVX2 is chosen at run
 * time; other machines take the plain loop. Each may read up to 32 bytes from any position before `end`, which the padding
 * of the window covers. */
#ifndef OPSCOPE_IO_JSON_SCAN_H
#define OPSCOPE_IO_JSON_SCAN_H

/* First quote or back-slash at or after p; `end` when there is none. */
const char *json_scan_string(const char *p, const char *end);

/* First quote, bracket or brace at or after p; `end` when there is none. */
const char *json_scan_structure(const char *p, const char *end);

#endif
