#include "serve/problems.h"

#include "base/json_text.h"

void problems_put(const struct diags *d, enum diag_level least, struct buf *out)
{
	static const char *const level[] = {[DIAG_NOTE] = "note", [DIAG_REPAIR] = "repaired", [DIAG_LOSS] = "lost"};
	const char *between = "";
	for (unsigned i = 0; i < d->n; i++) {
		const struct diag_entry *x = &d->entry[i];
		if (x->level < least)
			continue;
		buf_printf(out, "%s{\"kind\":\"%s\",\"level\":\"%s\",", between, x->kind, level[x->level]);
		json_put_number(out, "count", x->count);
		buf_char(out, ',');
		json_put_text(out, "message", x->message);
		buf_char(out, '}');
		between = ",";
	}
}
