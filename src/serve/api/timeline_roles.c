#include "serve/api/timeline_roles.h"

#include "analysis/timeline/timeline_role.h"
#include "base/json_text.h"
#include "base/mem.h"

void timeline_names_begin(struct timeline_names *x, const struct profile *p)
{
	*x = (struct timeline_names){.p = p};
	for (int device = 0; device < 2; device++)
		x->of[device].met = NEW_ARRAY(p->strings.n / 64 + 1, uint64_t);
}

static bool timeline_names_has(const struct timeline_names_of *x, uint32_t id)
{
	return x->met[id >> 6] >> (id & 63) & 1;
}

void timeline_names_meet(struct timeline_names *x, bool device, uint32_t row)
{
	struct timeline_names_of *of = &x->of[device];
	uint32_t id = device ? x->p->gpu_op.name[row] : x->p->span.name[row];
	if (timeline_names_has(of, id))
		return;
	of->met[id >> 6] |= UINT64_C(1) << (id & 63);
	MEM_PUSH(of->v, of->n, of->cap, (struct timeline_name){id, row});
}

/* A member's name. */
static void timeline_names_put_number(struct buf *b, const char *comma, uint32_t number)
{
	buf_cstr(b, comma);
	buf_char(b, '"');
	buf_i64(b, number);
	buf_cstr(b, "\":");
}

void timeline_names_put(const struct timeline_names *x, struct buf *b)
{
	const char *comma = "";
	buf_cstr(b, "\"names\":{");
	for (int device = 0; device < 2; device++) {
		for (uint32_t i = 0; i < x->of[device].n; i++) {
			uint32_t id = x->of[device].v[i].id;
			if (device && timeline_names_has(&x->of[0], id))
				continue;
			timeline_names_put_number(b, comma, id);
			json_put_string(b, profile_str(x->p, id));
			comma = ",";
		}
	}
	buf_char(b, '}');
}

void timeline_names_put_roles(const struct timeline_names *x, struct texts *numbers, struct buf *b)
{
	buf_cstr(b, "\"roles\":{");
	for (int device = 0; device < 2; device++) {
		const struct timeline_names_of *of = &x->of[device];
		buf_cstr(b, device ? ",\"gpu\":{" : "\"span\":{");
		for (uint32_t i = 0; i < of->n; i++) {
			timeline_names_put_number(b, i ? "," : "", numbers ? texts_number(numbers, of->v[i].id) : of->v[i].id);
			buf_char(b, '"');
			buf_cstr(b, timeline_role(x->p, device, of->v[i].row));
			buf_char(b, '"');
		}
		buf_char(b, '}');
	}
	buf_char(b, '}');
}

void timeline_names_release(struct timeline_names *x)
{
	for (int device = 0; device < 2; device++) {
		mem_free(x->of[device].met);
		mem_free(x->of[device].v);
	}
}
