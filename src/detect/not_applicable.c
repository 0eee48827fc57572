#include "detect/not_applicable.h"

#include "analysis/recording.h"

const char *not_applicable_remedy(const struct profile *p, struct str why, bool *aside)
{
	enum { SAY = -1, ASIDE = -2 };
	static const struct {
		const char *begin, *say;
		int record; /* enum record; SAY, ASIDE */
	} rows[] = {
#define RECORD_IT(begin, record) {begin, NULL, RECORD_##record},
#define SAY_IT(begin, say) {begin, say, SAY},
#define ASIDE_IT(begin, say) {begin, say, ASIDE},
#include "detect/not_applicable.def"
#undef RECORD_IT
#undef SAY_IT
#undef ASIDE_IT
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (str_starts(why, str_from(rows[i].begin))) {
			*aside = rows[i].record == ASIDE;
			return rows[i].record < 0 ? rows[i].say : recording_how(p, (enum record)rows[i].record);
		}
	return NULL;
}

/* The remedy that helps most detectors; of equals the first. */
static const char *best_remedy(const struct findings *f, unsigned *helped)
{
	const char *best = NULL;
	*helped = 0;
	for (unsigned i = 0; i < f->n_missing; i++) {
		unsigned n = 0;
		for (unsigned k = 0; k < f->n_missing && f->missing[i].remedy && !f->missing[i].aside; k++)
			n += f->missing[k].remedy && strcmp(f->missing[i].remedy, f->missing[k].remedy) == 0;
		if (n > *helped) {
			*helped = n;
			best = f->missing[i].remedy;
		}
	}
	return best;
}

struct str not_applicable_mostly(const struct findings *f, struct arena *a)
{
	unsigned all = 0, could_not = 0, most = 0;
	struct str why = STR("");
	for (const struct detector *const *d = detector_registry; *d; d++)
		all += !(*d)->experts;
	for (unsigned i = 0; i < f->n_missing; i++) {
		unsigned same = 0;
		for (unsigned k = 0; k < f->n_missing; k++)
			same += str_eq(f->missing[k].why, f->missing[i].why);
		could_not += i == 0 || strcmp(f->missing[i].detector, f->missing[i - 1].detector) != 0;
		if (same > most) {
			most = same;
			why = f->missing[i].why;
		}
	}
	return 2 * could_not < all ? STR("") : arena_printf(a, "%u of %u detectors could not look: " STR_FMT, could_not, all, STR_ARG(why));
}

void not_applicable_note(const struct findings *f, struct table *t)
{
	unsigned helped, n = f->n_missing;
	const char *remedy = best_remedy(f, &helped);
	if (!n)
		return;
	if (!remedy)
		table_note(t, "%u detector%s not applicable (opscope advise --all says why).", n, n == 1 ? " is" : "s are");
	else if (helped == n)
		table_note(t, "%u detector%s not applicable; would be with: %s (opscope advise --all says more).", n, n == 1 ? " is" : "s are", remedy);
	else
		table_note(t, "%u detectors are not applicable; %u would be with: %s (opscope advise --all says more).", n, helped, remedy);
}
