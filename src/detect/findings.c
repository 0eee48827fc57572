#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "detect/detect.h"

struct finding *findings_add(struct findings *f, const struct detector *d, enum finding_severity s)
{
	MEM_GROW(f->v, f->cap, f->n + 1);
	f->v[f->n] = (struct finding){
		.detector = d->id, .report = d->report, .severity = s, .problem = STR(""), .evidence = STR(""), .advice = str_from(d->fix),
		.disprove = str_from(d->disprove), .bound = STR(""),
	};
	return &f->v[f->n++];
}

void findings_quote(struct findings *f, const struct detector *d, struct str problem, struct str recommendation)
{
	struct finding *x = findings_add(f, d, FINDING_INFO);
	x->problem = problem;
	x->advice = recommendation;
}

void findings_missing(struct findings *f, const struct detector *d, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	MEM_GROW(f->missing, f->cap_missing, f->n_missing + 1);
	f->missing[f->n_missing++] = (struct not_looked){d->id, arena_str(&f->arena, str_from(text)), NULL};
}

void findings_missing_aside(struct findings *f, const struct detector *d, const char *why, const char *how)
{
	MEM_GROW(f->missing, f->cap_missing, f->n_missing + 1);
	f->missing[f->n_missing++] = (struct not_looked){d->id, str_from(why), how, true};
}

void findings_note(struct findings *f, struct str text)
{
	MEM_GROW(f->note, f->cap_notes, f->n_notes + 1);
	f->note[f->n_notes++] = arena_str(&f->arena, text);
}
