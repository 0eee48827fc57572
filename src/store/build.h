/* How an input fills a profile. Life cycle: build_init, then build_* in any order of time, then build_finish, which sorts
 * spans by (track, start, -duration) and device work by (track, start), and gives spare memory back.
 * Strings are interned by the caller (p->strings). Ids that are absent are ID_NONE. */
#ifndef OPSCOPE_STORE_BUILD_H
#define OPSCOPE_STORE_BUILD_H

#include "base/err.h"
#include "base/hash.h"
#include "store/profile.h"

/* One launch configuration, exactly the LAUNCH_COLUMNS in order. Start from launch_none(). */
#define BUILD_FIELD_(type, name, ...) type name;
struct launch_row {
	LAUNCH_COLUMNS(BUILD_FIELD_)
};
struct span_row {
	int64_t start_ns, dur_ns, ext_id, link_id;
	int32_t aux_id;
	int64_t op_id;       /* 0 = none */
	uint32_t input_ops;  /* 0 = none */
	uint32_t name, track, args;
	uint16_t cat;
	uint8_t kind;
};
struct gpu_row {
	int64_t start_ns, dur_ns, ext_id, corr_id;
	uint32_t name, track, launch, args;
	uint16_t cat;
	uint8_t kind, evidence;
};
struct memory_row {
	int64_t time_ns, addr, bytes, total_allocated, total_reserved;
	uint32_t track, name;
	uint16_t cat;
	int16_t device_type, device_id;
	uint32_t args;
};
struct memory_segment_row {
	SEGMENT_COLUMNS(BUILD_FIELD_)
};
struct memory_block_row {
	BLOCK_COLUMNS(BUILD_FIELD_)
};

struct arg_pair {
	uint32_t key, value;
	uint32_t is_string;
};

enum { BUILD_COUNTED = 32 };

/* Dedupe tables that live only while building. */
struct build {
	struct profile *p;
	struct intern launch_keys, arg_set_keys, track_keys;
	uint64_t span_ns, gpu_ns, memory_bytes, segment_bytes, block_bytes; /* so far, against BUILD_SUM_BITS */
	uint32_t expected_spans, expected_gpu_ops; /* how many rows there will be, as far as the input tells while it is read; 0 = not known */
	struct idmap cat_rows;                  /* name -> row of cat */
	struct idmap count_rows;                /* category << 8 | phase -> row of count */
	/* What was asked last of the two. */
	uint32_t cat_cache_name;
	uint16_t cat_cache_row;
	struct build_counted {
		int64_t key;
		uint32_t behind; /* the row + 1; 0 = none */
	} counted[BUILD_COUNTED];
};

/* No input may hold more than this in all: durations of one table, bytes of all allocations. Sums of them then cannot
 * overflow an int64. An event beyond it is left out and counted as lost. */
enum { BUILD_SUM_BITS = 58 }; /* 2^58 ns are nine years */

void build_init(struct build *b, struct profile *p);
int build_finish(struct build *b, struct err *e); /* also releases *b */
void build_release(struct build *b);              /* the latter alone */

/* Each returns the new row, or ROW_NONE when the event could not be kept (a diagnostic says why), or is left out (profile.left_out). */
uint32_t build_span(struct build *b, const struct span_row *r);
/* The two halves of build_span, for who decides later whether a range is kept. False: its duration is too much, and a diagnostic says so. */
bool build_admit_span(struct build *b, const struct span_row *r);
uint32_t build_put_span(struct build *b, const struct span_row *r);
/* The duration, 0 or more, of a span that was built with 0, since its end was not known. One beyond what a profile may hold in all is left out, and a
 * diagnostic says so. */
void build_span_dur(struct build *b, uint32_t span, int64_t dur_ns);
uint32_t build_gpu(struct build *b, const struct gpu_row *r);
uint32_t build_memory(struct build *b, const struct memory_row *r);
/* Sizes 0 or more; of a segment those inside are at most its size, and what a block was asked for is at most the block. A block is of a segment that was built, not before that of
 * the block before it. */
uint32_t build_memory_segment(struct build *b, const struct memory_segment_row *r);
uint32_t build_memory_block(struct build *b, const struct memory_block_row *r);
uint32_t build_flow(struct build *b, int64_t time_ns, int64_t id, uint32_t track, uint16_t cat, uint8_t phase);
uint32_t build_mark(struct build *b, int64_t time_ns, uint32_t name, uint32_t track, uint32_t args, uint16_t cat,
                    uint8_t phase);

struct launch_row launch_none(void);
uint32_t build_launch(struct build *b, const struct launch_row *r);
/* The set of these pairs, in this order; 0 for none. */
uint32_t build_args(struct build *b, const struct arg_pair *pairs, unsigned n);
/* The track of this pid and tid, both as text without quotes ("25738", "stream 7"). */
uint32_t build_track(struct build *b, struct str pid, struct str tid);
/* The same if there is one; else ROW_NONE. */
uint32_t build_find_track(const struct build *b, struct str pid, struct str tid);
uint16_t build_cat(struct build *b, uint32_t name);
void build_meta(struct build *b, uint32_t key, uint32_t value, bool is_string);
/* Counts one event of the input under its category and phase. */
void build_count(struct build *b, uint16_t cat, uint8_t phase, uint64_t n);

#endif
