#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "detect/detect.h"

struct finding *findings_add(struct findings *f, enum finding_severity s)
{
	const struct detector *d = f->detector;
	MEM_GROW(f->v, f->cap, f->n + 1);
	f->v[f->n] = (struct finding){
		.detector = d->id, .report = d->report, .severity = s, .problem = STR(""), .evidence = STR(""), .advice = str_from(d->fix),
		.disprove = str_from(d->disprove), .bound = STR(""),
	};
	return &f->v[f->n++];
}

void findings_quote(struct findings *f, struct str problem, struct str recommendation)
{
	struct finding *x = findings_add(f, FINDING_INFO);
	x->problem = problem;
	x->advice = recommendation;
}

void findings_missing(struct findings *f, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	MEM_PUSH(f->missing, f->n_missing, f->cap_missing, (struct not_looked){f->detector->id, arena_str(&f->arena, str_from(text)), NULL});
}

void findings_missing_aside(struct findings *f, const char *why, const char *how)
{
	MEM_PUSH(f->missing, f->n_missing, f->cap_missing, (struct not_looked){f->detector->id, str_from(why), how, true});
}

void findings_note(struct findings *f, struct str text)
{
	MEM_PUSH(f->note, f->n_notes, f->cap_notes, arena_str(&f->arena, text));
}
