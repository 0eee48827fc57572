/* What an inference server says of an iteration in the name of the range around it (serving_formats.def): "step[DECODE bs=32]". */
#ifndef OPSCOPE_ANALYSIS_STEPS_SERVING_H
#define OPSCOPE_ANALYSIS_STEPS_SERVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Prefill: tokens of prompts, many of each request. Decode: the tokens that are generated, mostly one of each request. */
enum serving_phase {
	SERVING_UNKNOWN,         /* the server does not tell */
	SERVING_PREFILL, SERVING_DECODE,
	SERVING_MIXED,           /* both in one batch, or several iterations of both */
	SERVING_IDLE,            /* no requests: a server of a group that waits for others runs such iterations */
	SERVING_CAPTURE,         /* a graph is captured: no iteration */
	SERVING_PHASES,
};
extern const char *const serving_phase_name[SERVING_PHASES]; /* "prefill", ... */

#define SERVING_NOT_TOLD INT64_C(-1)
enum { SERVING_FORMATS = 31 }; /* at most */

/* Counts are SERVING_NOT_TOLD where the name does not tell them. */
struct serving_part {
	int64_t requests;
	int64_t tokens;          /* that are computed: queries */
	int64_t keys;            /* the tokens that queries look at: sum of the requests' contexts */
	int64_t queries2;        /* sum over requests of queries squared */
	int64_t pairs;           /* sum over requests of queries x keys: what attention has to do */
};

struct serving {
	enum serving_phase phase;
	struct serving_part all, prefill, decode; /* what a phase does not have is 0, not unknown */
	int64_t padded;          /* requests, or sequences, that the batch is padded to */
	struct str mode;         /* of a captured graph: "FULL", "PIECEWISE"; a slice of the name, else empty */
	uint32_t iterations;     /* of which this is the sum */
	unsigned format;         /* the name's row in serving_formats.def, below SERVING_FORMATS */
};

/* False when `name` is not such a name, from its first to its last byte. */
bool serving_parse(struct str name, struct serving *out);

/* Takes what `from` tells and *x does not; the phase, if *x has none. For two ranges around one iteration. */
void serving_fill(struct serving *x, const struct serving *from);
/* Adds another iteration; a count that one of them does not tell, or whose sum does not fit, is not told. */
void serving_add(struct serving *x, const struct serving *more);

/* The tokens that decode generated: one of each request. Not told where more are computed than there are requests: of drafts the server
 * keeps what it finds right, and the name does not say how many. */
int64_t serving_generated(const struct serving *x);

#endif
