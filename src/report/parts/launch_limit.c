#include "report/parts/launch_limit.h"

#include "gpu/occupancy.h"

#include <stdio.h>

static const struct { enum occupancy_limit bit; const char *name; } launch_limits[] = {
	{OCCUPANCY_BY_REGISTERS, "registers"}, {OCCUPANCY_BY_SHARED, "shared memory"}, {OCCUPANCY_BY_WARPS, "block size"}, {OCCUPANCY_BY_BLOCKS, "blocks"},
};

size_t launch_limit_text(const struct occupancy *o, char text[LAUNCH_LIMIT_TEXT])
{
	size_t n = 0;
	if (o->warps == o->most_warps)
		n = (size_t)snprintf(text, LAUNCH_LIMIT_TEXT, "none");
	for (size_t i = 0; o->warps < o->most_warps && i < sizeof launch_limits / sizeof *launch_limits; i++)
		if (o->by & launch_limits[i].bit)
			n += (size_t)snprintf(text + n, LAUNCH_LIMIT_TEXT - n, "%s%s", n ? ", " : "", launch_limits[i].name);
	return n;
}

void launch_limit_put(const struct profile *p, uint32_t launch, struct table *t, unsigned first)
{
	struct occupancy o;
	char text[LAUNCH_LIMIT_TEXT];
	if (occupancy_of_launch(p, launch, &o) != OCCUPANCY_KNOWN)
		return;
	table_set_f64(t, first + LAUNCH_LIMIT_PCT, o.pct);
	table_set_i64(t, first + LAUNCH_LIMIT_BLOCKS, o.blocks);
	table_set_str_copy(t, first + LAUNCH_LIMIT_BY, (struct str){text, launch_limit_text(&o, text)});
}

bool launch_limit_same(const struct profile *p, uint32_t a, uint32_t b)
{
	struct occupancy x, y;
	enum occupancy_known known = occupancy_of_launch(p, a, &x);
	return known == occupancy_of_launch(p, b, &y) && (known != OCCUPANCY_KNOWN || (x.blocks == y.blocks && x.by == y.by && x.most_warps == y.most_warps));
}
