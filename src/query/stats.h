/* Durations by group: count, sum, extremes, median and deviation of each. Life cycle: {0}, stats_add..., stats_finish, read,
 * stats_release. O(n) in all. */
#ifndef OPSCOPE_QUERY_STATS_H
#define OPSCOPE_QUERY_STATS_H

#include "base/intern.h"
#include "query/section.h"

struct stats_group {
	uint64_t calls;
	int64_t total, min, max;
	uint64_t first;     /* of its values */
	uint32_t next;      /* the group of the value that came after one of its own */
};

struct stats {
	struct intern keys; /* group i has the bytes of id i + 1 */
	struct stats_group *v;
	int64_t *value;
	uint32_t *group_of; /* of each value; NULL after stats_finish */
	uint64_t n_values, cap_values, cap_of;
	uint32_t n, cap, last; /* last: the group of the last value */
	bool started;
	int64_t total;
};

/* Adds a value to the group with these key bytes (not empty; compared as bytes); makes the group where there is none. Returns its number. */
uint32_t stats_add(struct stats *s, const void *key, size_t key_size, int64_t value);
/* After the last value, before median and deviation are read. */
void stats_finish(struct stats *s);
void stats_release(struct stats *s);

/* Copies the bytes of the group's key. */
static inline void stats_key(const struct stats *s, uint32_t group, void *key, size_t key_size)
{
	memcpy(key, s->keys.entry[group + 1].p, key_size);
}
static inline double stats_mean(const struct stats *s, uint32_t g) { return (double)s->v[g].total / (double)s->v[g].calls; }
/* The k-th smallest (0 = the smallest) of a group; k < its calls. */
int64_t stats_kth(struct stats *s, uint32_t group, uint64_t k);
/* The smallest value that at least `percent` (0..100) of the group's values do not exceed. */
int64_t stats_percentile(struct stats *s, uint32_t group, double percent);
/* The median; of an even number of values the mean of the two in the middle, as `nsys stats` has it. */
double stats_median(struct stats *s, uint32_t group);
/* The standard deviation of a sample (n - 1), as `nsys stats` has it; 0 of a single value. */
double stats_stddev(const struct stats *s, uint32_t group);

/* The columns of a group; in a list of columns (query/section.h) as STATS_COLUMN_LIST(number of the first);
 * STATS_COLUMN_LIST_OF names what the share is of. */
enum { STATS_CALLS, STATS_TOTAL, STATS_SHARE, STATS_MEAN, STATS_MEDIAN, STATS_MIN, STATS_MAX, STATS_SD, STATS_COLUMNS };
#define STATS_COLUMN_LIST_OF(first, share, share_of)                                                                                                 \
	[(first) + STATS_CALLS] = {COLUMN(COUNT, "calls", "Calls", "how often")},                                                                      \
	[(first) + STATS_TOTAL] = {COLUMN(NS, "total_ns", "Total", "sum of the durations", .flags = COLUMN_ANSWER)},                                      \
	[(first) + STATS_SHARE] = {COLUMN(PERCENT, "total_pct", share, share_of, .flags = COLUMN_ANSWER)},                                                 \
	[(first) + STATS_MEAN] = {COLUMN(MEAN_NS, "mean_ns", "Mean", "mean duration")},                                                                \
	[(first) + STATS_MEDIAN] = {COLUMN(MEAN_NS, "median_ns", "Median", "median duration; of an even number the mean of the two in the middle",     \
	                                   .flags = COLUMN_MINOR)},                                                                                    \
	[(first) + STATS_MIN] = {COLUMN(NS, "min_ns", "Min", "shortest duration", .flags = COLUMN_MINOR)},                                             \
	[(first) + STATS_MAX] = {COLUMN(NS, "max_ns", "Max", "longest duration", .flags = COLUMN_MINOR)},                                              \
	[(first) + STATS_SD] = {COLUMN(MEAN_NS, "stddev_ns", "Std dev", "standard deviation of the durations as a sample (n - 1); 0 of one", .flags = COLUMN_DETAIL)}
#define STATS_COLUMN_LIST(first) STATS_COLUMN_LIST_OF(first, "Total %", "total / total of all rows")

/* Puts the figures of a group in the row that was begun last. */
void stats_put(struct table *t, unsigned first, struct stats *s, uint32_t group);

#endif
