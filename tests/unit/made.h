/* A small profile made by hand: made_begin, made_* in any order of time, made_finish, then the analysis; profile_free(m.p). */
#ifndef OPSCOPE_TESTS_UNIT_MADE_H
#define OPSCOPE_TESTS_UNIT_MADE_H

#include "test.h"

#include "analysis/analysis.h"
#include "store/build.h"

struct made {
	struct profile *p;
	struct build b;
};

static inline uint32_t made_id(struct made *m, const char *text)
{
	return intern_str(&m->p->strings, str_from(text));
}

static inline void made_begin(struct made *m)
{
	*m = (struct made){.p = profile_new()};
	build_init(&m->b, m->p);
}

static inline uint32_t made_thread(struct made *m, const char *pid, const char *tid)
{
	return build_track(&m->b, str_from(pid), str_from(tid));
}

static inline void made_span(struct made *m, uint32_t track, uint8_t kind, const char *name, int64_t start, int64_t end)
{
	build_span(&m->b, &(struct span_row){.start_ns = start, .dur_ns = end - start, .ext_id = ID_NONE, .link_id = ID_NONE, .aux_id = -1,
	                                     .name = made_id(m, name), .track = track, .cat = build_cat(&m->b, made_id(m, "cat")), .kind = kind});
}

static inline void made_finish(struct made *m, unsigned passes)
{
	struct err e = {0};
	assert_int_equal(build_finish(&m->b, &e), 0);
	assert_int_equal(analysis_run(m->p, passes, &e), 0);
}

#endif
