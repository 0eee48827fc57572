/* Reading an .opscope file (store/save.h says what is in it). The file may come from anyone: every length, id and enum is
 * checked before it becomes part of a profile, and so is every checksum.
 *
 * What is left out (profile.left_out: tables, and span.aux_id) is held against its checksums and stays packed: a value out of range is not noticed, and
 * nothing of it is in the profile. The tables are without rows, the column is absent. */
#ifndef OPSCOPE_STORE_LOAD_H
#define OPSCOPE_STORE_LOAD_H

#include "base/buf.h"
#include "base/err.h"
#include "store/profile.h"

/* True when these first bytes of a file are those of an .opscope file, whatever its version. */
bool load_sniff(struct str head);

/* Fills *p, fresh from profile_new, but for p->left_out; left_memory and left_bytes say what that was. A column that an older opscope did not have yet gets the value that means "not
 * recorded"; when it is one that analysis derives, all of analysis is left to be done again. ERR_FORMAT when the file is
 * damaged or of a newer version, ERR_IO when it cannot be read; *p can then only be freed. */
int load_profile(const char *path, struct profile *p, struct err *e);

/* Of the file no more than the list of aggregations, into p->aggregation. */
int load_aggregation_list(const char *path, struct profile *p, struct err *e);

/* Appends one text of the table meta to *out; nothing where the file has none of this key. */
int load_fact(const char *path, const char *key, struct buf *out, struct err *e);

/* ERR_FORMAT, in one line, unless files of this version are read. */
int load_check_version(int64_t version, const char *path, struct err *e);

/* profile->content from the chunks' ids and checksums, in order of id; start with 0. */
uint64_t load_content(uint64_t content, int64_t id, int64_t checksum);

/* What files of version 1 hold, made by this version of opscope. Strings are borrowed. */
struct aggregation load_first_aggregation(struct str opscope);

/* The checks that need no file: do all rows point at rows that exist, are times and enums in range, do sums stay within
 * BUILD_SUM_BITS, is what must be sorted sorted (device events, memory), and what load_check_events asks. It holds of all that inputs and passes
 * make; what a file states may be otherwise. ERR_FORMAT with the table, and its row where that is known. */
int load_check(const struct profile *p, struct err *e);

/* Are host events sorted? And of the DERIVED columns that are there: is each range's parent the innermost around it, and its op the nearest, but for
 * calls, whose op may be one with their external id? Is device work of a call with its correlation id, and of the op of this call? Are allocations
 * of ops around their time? Columns must be in range. */
int load_check_events(const struct profile *p, struct err *e);

#endif
