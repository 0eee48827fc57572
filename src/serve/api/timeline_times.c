#include "serve/api/timeline_times.h"

static int take_range(struct str word, uint32_t n, uint8_t *marks)
{
	struct str first, last = word;
	int64_t a, b;
	str_split(&last, '-', &first);
	if (!str_to_i64(first, &a) || a < 0 || a >= n)
		return -1;
	if (!last.p)
		last = first;
	if (!str_to_i64(last, &b) || b < a || b >= n)
		return -1;
	memset(marks + a, 1, (size_t)(b - a) + 1);
	return 0;
}

int timeline_take(const struct request *r, const char *name, uint32_t n, uint8_t *marks, struct err *e)
{
	struct str list = request_value(r, name), word;
	memset(marks, !list.p, n);
	while (str_split(&list, ',', &word))
		if (take_range(word, n, marks) < 0)
			return err_set(e, ERR_USAGE, "%s: numbers from 0 to %u with commas were expected, or ranges like 0-3", name, n ? n - 1 : 0);
	return 0;
}

void timeline_put_row(struct buf *b, const struct timeline *t, bool device, uint32_t row)
{
	const struct profile *p = t->p;
	uint32_t lane = device ? t->gpu_lane[row] : t->span_lane[row];
	buf_printf(b, "{\"kind\":\"%s\",", device ? "gpu" : "span");
	json_put_number(b, "row", row);
	buf_char(b, ',');
	json_put_number(b, "lane", lane);
	buf_char(b, ',');
	json_put_number(b, "track", t->lanes[lane].track);
	buf_char(b, ',');
	json_put_number(b, "start", (device ? p->gpu_op.start_ns[row] : p->span.start_ns[row]) - t->first_ns);
	buf_char(b, ',');
	json_put_number(b, "dur", device ? p->gpu_op.dur_ns[row] : p->span.dur_ns[row]);
	buf_char(b, ',');
	json_put_text(b, "name", profile_str(p, device ? p->gpu_op.name[row] : p->span.name[row]));
	buf_char(b, ',');
	json_put_text(b, "category", profile_cat(p, device ? p->gpu_op.cat[row] : p->span.cat[row]));
	buf_char(b, '}');
}

int timeline_window(const struct request *r, const struct timeline *t, int64_t *from_ns, int64_t *to_ns, struct err *e)
{
	int64_t all = t->last_ns - t->first_ns;
	if (request_number(r, "from", -TIMELINE_NS_MAX, TIMELINE_NS_MAX, 0, from_ns, e) < 0 ||
	    request_number(r, "to", -TIMELINE_NS_MAX, TIMELINE_NS_MAX, all, to_ns, e) < 0)
		return -1;
	if (*to_ns < *from_ns)
		return err_set(e, ERR_USAGE, "to=%lld: a time not before from=%lld was expected", (long long)*to_ns, (long long)*from_ns);
	*from_ns += t->first_ns;
	*to_ns += t->first_ns;
	return 0;
}

void timeline_put_launch(struct buf *b, const struct profile *p, uint32_t i)
{
	const struct launches *l = &p->launch;
	const struct { const char *name; int64_t v, none; } facts[] = {
		{"device", l->device[i], INT32_MIN}, {"stream", l->stream[i], ID_NONE}, {"context", l->context[i], ID_NONE},
		{"bytes", l->bytes[i], ID_NONE}, {"grid x", l->grid_x[i], INT32_MIN}, {"grid y", l->grid_y[i], INT32_MIN},
		{"grid z", l->grid_z[i], INT32_MIN}, {"block x", l->block_x[i], INT32_MIN}, {"block y", l->block_y[i], INT32_MIN},
		{"block z", l->block_z[i], INT32_MIN}, {"registers per thread", l->registers[i], INT32_MIN},
		{"shared memory", l->shared_bytes[i], INT32_MIN}, {"graph", l->graph_id[i], ID_NONE}, {"graph node", l->graph_node_id[i], ID_NONE},
	};
	bool any = false;
	buf_char(b, '{');
	for (unsigned k = 0; k < sizeof facts / sizeof facts[0]; k++) {
		if (facts[k].v == facts[k].none)
			continue;
		buf_cstr(b, any ? "," : "");
		json_put_number(b, facts[k].name, facts[k].v);
		any = true;
	}
	buf_char(b, '}');
}
