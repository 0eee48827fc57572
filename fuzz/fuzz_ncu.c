/* CSV of Nsight Compute, any bytes: launches have their values, and names of kernels stay within theirs. */
#include "open/counters_join.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_launch(const struct ncu *n, const struct ncu_launch *l)
{
	const struct str name = intern_get(&n->strings, l->name), base = counters_base_name(name);
	if (l->first > n->n_values || l->n > n->n_values - l->first || base.p < name.p || base.p + base.n > name.p + name.n)
		abort();
	for (uint32_t i = l->first; i < l->first + l->n; i++)
		if (!isfinite(n->value[i].value) || n->value[i].metric >= n->strings.n)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1); /* nothing stands behind the text */
	struct ncu n;
	struct err e = {0};
	if (size)
		memcpy(copy, data, size);
	(void)ncu_read_text(&n, (struct str){copy, size}, "counters.csv", &e);
	for (uint32_t i = 0; i < n.n; i++)
		check_launch(&n, &n.launch[i]);
	ncu_release(&n);
	free(copy);
	return 0;
}
