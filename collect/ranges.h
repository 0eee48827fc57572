/* Ranges, marks and their texts, for all interfaces that have them: NVTX, ITT, trace.h. */
#ifndef OPSCOPE_COLLECT_RANGES_H
#define OPSCOPE_COLLECT_RANGES_H

#include "writer.h"

enum { DOMAINS_MOST = 4096, DEPTH_MOST = 2048 };

/* What an event says of itself. */
struct event {
	const char *text;         /* UTF-8; or `id` */
	size_t n;
	uint32_t id;              /* of a text that is known already; 0 = see `text` */
	uint32_t domain;
	uint32_t category, colour;
	enum wire_payload payload_kind;
	uint64_t payload;
	bool is_op;               /* an op, though the text does not say so */
	uint32_t sequence;        /* of such; UINT32_MAX = none */
};

/* Level of the range in its domain on this thread, from 0; -1 = the library is not running. */
int range_push(const struct event *e);
int range_pop(uint32_t domain); /* level of the range that ended; -1 = none was open */
uint64_t range_start(const struct event *e);
/* The same with a number of the program's own, even and not 0. */
uint64_t range_start_as(const struct event *e, uint64_t number);
void range_end(uint64_t range, uint32_t domain);
void range_mark(const struct event *e);
/* Whether the innermost range that is open on the thread stands in the file. */
bool range_is_written(const struct writer *w, uint32_t domain);

/* A domain by name; the same for the same name and interface. Where there is no place for more all further ones are one. */
uint32_t ranges_domain(const char *name, size_t n, enum wire_api api);
struct text ranges_domain_name(uint32_t domain); /* {NULL, 0} for the default one */
void ranges_category(uint32_t domain, uint32_t category, const char *name, size_t n);

/* UTF-32 as wchar_t to UTF-8, as many characters as there is room for; what is no character becomes U+FFFD. The bytes; `to` NULL = only counted. */
size_t utf8_of(const wchar_t *from, char *to, size_t room);

/* Whether a text ends as those of emit_nvtx and emit_itt do, with a number that makes it another one each time. */
bool range_text_is_numbered(const char *text, size_t n);

/* For threads.c: nothing that is open counts as recorded any more; the thread is gone. */
void ranges_unrecord(struct writer *w);
/* The same where it is not known what was pushed and popped since: nothing is open. */
void ranges_restart(struct writer *w);
void ranges_forget(struct writer *w);

#endif
