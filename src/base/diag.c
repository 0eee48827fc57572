#include "base/diag.h"

#include "base/mem.h"
#include "base/saturate.h"
#include "base/search.h"

#include <stdarg.h>
#include <stdio.h>

static struct diag_entry *diag_find(const struct diags *d, const char *kind)
{
	return ELEMENT_WHERE(i, d->entry, d->n, d->entry[i].kind == kind || strcmp(d->entry[i].kind, kind) == 0);
}

static void diag_add_(struct diags *d, const char *kind, enum diag_level level, uint64_t n, int64_t offset, const char *fmt,
                      va_list ap)
{
	int64_t more = n < INT64_MAX ? (int64_t)n : INT64_MAX;
	if (!n)
		return;
	struct diag_entry *known = diag_find(d, kind);
	if (known) {
		add_saturated(&known->count, more);
		return;
	}
	char message[1024];
	int length = vsnprintf(message, sizeof message, fmt, ap);
	size_t used = length < 0 ? 0 : (size_t)length < sizeof message ? (size_t)length : sizeof message - 1;
	MEM_PUSH(d->entry, d->n, d->cap, (struct diag_entry){
		.kind = arena_str(&d->arena, str_from(kind)).p,
		.level = level,
		.count = more,
		.first_offset = offset,
		.message = arena_str(&d->arena, (struct str){message, used}),
	});
}

void diag_add(struct diags *d, const char *kind, enum diag_level level, int64_t offset, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_add_(d, kind, level, 1, offset, fmt, ap);
	va_end(ap);
}

void diag_add_n(struct diags *d, const char *kind, enum diag_level level, uint64_t n, int64_t offset, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	diag_add_(d, kind, level, n, offset, fmt, ap);
	va_end(ap);
}

void diags_join(struct diags *to, const struct diags *from)
{
	for (unsigned i = 0; i < from->n; i++) {
		const struct diag_entry *d = &from->entry[i];
		diag_add_n(to, d->kind, d->level, (uint64_t)d->count, d->first_offset, STR_FMT, STR_ARG(d->message));
	}
}

uint64_t diag_count(const struct diags *d, const char *kind)
{
	const struct diag_entry *known = diag_find(d, kind);
	return known ? (uint64_t)known->count : 0;
}

void diags_release(struct diags *d)
{
	mem_free(d->entry);
	arena_release(&d->arena);
	*d = (struct diags){0};
}
