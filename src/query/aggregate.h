/* Aggregations of an .opscope file (store/aggregation.h): making them from a profile. Nothing is printed; files change whole or not at all. */
#ifndef OPSCOPE_QUERY_AGGREGATE_H
#define OPSCOPE_QUERY_AGGREGATE_H

#include "base/buf.h"
#include "query/report.h"

/* What to aggregate. {0} = the whole recording. Strings are borrowed. */
struct aggregate_spec {
	struct str name;         /* for people; "" = none */
	struct str created;      /* "2026-01-31T12:00:00Z" */
	struct str rules;        /* what other rules than opscope's own made the numbers, as a text that differs where they do; "" = none */
	struct report_args args; /* key_op and steps count; the rest is not heeded */
};

/* Writes a new file: the profile, and what it held before if it is itself from an .opscope file, else one aggregation. */
int aggregate_import(struct profile *p, const char *path, const struct aggregate_spec *spec, struct err *e);

/* Adds one to the file at `path`, from which *p was loaded; *made (may be NULL) is what is now in the file, its strings borrowed from *p
 * and *spec. 1: another program has added it since *p was loaded; *made has its number and what it is of. ERR_USAGE and ERR_DATA as reports give them for a
 * key op or steps that are not there. */
int aggregate_add(struct profile *p, const char *path, const struct aggregate_spec *spec, struct aggregation *made, struct err *e);

/* Whether aggregate_add can do that; nothing is written. As reports do it leaves p->key_op and steps by this key op. ERR_USAGE, ERR_DATA, and
 * ERR_LIMIT when there are as many as there can be. */
int aggregate_check(struct profile *p, const struct aggregate_spec *spec, struct err *e);

/* The aggregation of *p that this version of opscope made of the same key op, steps and rules; NULL = none. */
const struct aggregation *aggregate_find(const struct profile *p, const struct aggregate_spec *spec);

/* Its number and what it is of, for messages: "2 (\"warm\", key op mm, steps 3..5)". */
void aggregate_describe(const struct aggregation *a, struct buf *out);

/* What the command and the viewer do: adds it to the file at `path`, from which *p was loaded, unless it is there. *same is then the one that
 * is there (of the pool of *p where another program has just added it), else NULL and *made as aggregate_add gives it. ERR_FORMAT when *p is of no .opscope file; else as aggregate_check and aggregate_add. */
int aggregate_once(struct profile *p, const char *path, const struct aggregate_spec *spec, const struct aggregation **same, struct aggregation *made,
                   struct err *e);

/* Removes an aggregation. ERR_USAGE when the file has none of this number, or the input itself states it. */
int aggregate_delete(const struct profile *p, const char *path, int64_t id, struct err *e);

/* The highest number of an aggregation that the input itself states (a DLProf database); 0 = none. */
int64_t aggregate_stated_max(const struct profile *p);

#endif
