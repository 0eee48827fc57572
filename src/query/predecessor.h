/* What a wing of src/predecessors/ adds to the reports of the core: their rows by a predecessor's rules. The core does not know which wings there are.
 *
 * Adding a wing: a folder src/predecessors/NAME with a variants.c that ends in `const struct predecessor predecessor_NAME = {...};`, and the word NAME in
 * src/predecessors/meson.build. Its meson.build adds what it has besides to the lists that src/predecessors/meson.build names. */
#ifndef OPSCOPE_QUERY_PREDECESSOR_H
#define OPSCOPE_QUERY_PREDECESSOR_H

#include "analysis/steps/slice.h"
#include "query/report.h"

/* A fact that a predecessor records of itself, for report summary. */
struct predecessor_fact {
	const char *id, *title;  /* as system_fact_row has them */
	const char *key;         /* of the store's table of facts */
};

/* How a predecessor's own databases state what it was asked before (query/stated.h). */
struct predecessor_stated {
	const char *version;     /* key of the fact that holds the predecessor's version */
	const char *list;        /* the table with a row for each aggregation */
	/* Columns of report aggregations: the table and the column that have them; ends with {0}. */
	const struct predecessor_cell {
		const char *column, *table, *stated;
	} *cells;
	/* The key op and iterations that an aggregation was made with; strings are borrowed. False: the tables do not have it. */
	bool (*args)(const struct table *stated, int64_t aggregation, struct report_args *args);
	/* Appends the section `differences`: where the stated numbers differ from those that opscope computes from the recording by the predecessor's
	 * rules, with the same key op and iterations. Says in notes what was compared and what was not. */
	void (*compare)(struct profile *p, const struct table *stated, struct table *out);
};

struct predecessor {
	const char *name, *title;              /* the name in --compat, and the name that people use; only a wing with one of the last three members needs them */
	const struct report_variant *variants; /* .report of each is the name of the report that the row belongs to; ends with {0} */
	/* The times of the iterations first..last that the predecessor counts in place of steps. NULL: it counts opscope's steps. Needs PASS_NEST and PASS_CORRELATE. ERR_DATA. */
	int (*window)(const struct profile *p, int64_t first, int64_t last, struct step_window *w, struct err *e);
	const struct predecessor_fact *facts;  /* ends with {0}; NULL = none */
	const struct predecessor_stated *stated; /* NULL: the predecessor has no databases */
};

/* The wing of this name; NULL = there is none. */
const struct predecessor *predecessor_find(const char *name);

/* All wings, in the order of meson.build, NULL-terminated (generated). */
extern const struct predecessor *const predecessor_registry[];

#endif
