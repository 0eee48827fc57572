#include "report/parts/operator_keys.h"

#include "base/buf.h"
#include "base/mem.h"

void operator_keys_init(struct operator_keys *k, const struct profile *p, enum operators_by by)
{
	*k = (struct operator_keys){.p = p, .by = by};
	intern_init(&k->keys);
	intern_init(&k->lines);
	k->last = NEW_ARRAY(p->strings.n, uint32_t);
	if (by == OPERATORS_BY_STACK || by == OPERATORS_BY_SHAPES_AND_STACK || by == OPERATORS_BY_LINE)
		k->stacks = stacks_new(p);
}

void operator_keys_release(struct operator_keys *k)
{
	intern_release(&k->keys);
	intern_release(&k->lines);
	stacks_free(k->stacks);
	mem_free(k->last);
	mem_free(k->v);
}

static uint32_t operator_detail(struct operator_keys *k, uint32_t span)
{
	switch (k->by) {
	case OPERATORS_BY_SHAPE:
		return profile_arg_id(k->p, k->p->span.args[span], ARG_INPUT_DIMS);
	case OPERATORS_BY_STACK:
	case OPERATORS_BY_SHAPES_AND_STACK:
		return stacks_of(k->stacks, span);
	case OPERATORS_BY_LINE:
		return intern_str(&k->lines, stacks_user_line(k->stacks, stacks_of(k->stacks, span)));
	case OPERATORS_BY_NAME:
		break;
	}
	return 0;
}

uint32_t operator_keys_row(struct operator_keys *k, uint32_t span)
{
	struct operator_key key = {k->by == OPERATORS_BY_LINE ? 0 : k->p->span.name[span], operator_detail(k, span), 0};
	if (k->by == OPERATORS_BY_SHAPES_AND_STACK)
		key.shapes = profile_arg_id(k->p, k->p->span.args[span], ARG_INPUT_DIMS);
	uint32_t *last = &k->last[key.name];
	if (*last && memcmp(&k->v[*last - 1], &key, sizeof key) == 0)
		return *last - 1;
	uint32_t row = intern_put_key(&k->keys, &key, sizeof key) - 1;
	*last = row + 1;
	if (row == k->n) {
		k->n++;
		MEM_GROW(k->v, k->cap, k->n);
		k->v[row] = key;
	}
	return row;
}

void operator_keys_put_stack(struct table *out, unsigned col, const struct operator_keys *k, uint32_t stack)
{
	struct buf text = {0};
	stacks_text(k->stacks, stack, &text);
	if (text.n)
		table_set_str_copy(out, col, buf_view(&text));
	buf_release(&text);
}
