/* Files of torch's export_memory_timeline, of one device: what memory was used for, over time. Two forms:
 *   raw    [[time in ns, action, bytes, category], ...], of each change; bytes are negative where they are given back, and the time is -1 of what was held before
 *   json   [[time in us, ...], [[0, bytes of each category], ...]], what each category holds from each time on; the first two times are equal where the first
 *          entry is what was held before
 * A change becomes an allocation or a free without an address, whose category of the trace is the one of the memory. */
#include "input/input.h"

#include "base/mem.h"
#include "io/json.h"
#include "store/build.h"

#include <stdio.h>

enum { TIMELINE_CATEGORIES = 8, C10_CUDA = 1 };
/* torch's names in torch's order, as analysis/memory/memory_categories.h has them. */
static const char *const timeline_category[TIMELINE_CATEGORIES] = {"PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "Unknown"};

struct timeline_change {
	int64_t time_ns, bytes;
	unsigned category;
};

struct timeline_read {
	struct profile *p;
	struct build b;
	struct json j;
	const char *start;
	struct timeline_change *v;
	uint32_t n, cap, n_before;   /* the first n_before were held before */
	bool sums;                   /* the second form: of single blocks nothing is known */
	uint64_t damaged;            /* entries that are no changes */
};

static void timeline_add(struct timeline_read *r, int64_t time_ns, int64_t bytes, int64_t category, bool before)
{
	if (category < 0 || category >= TIMELINE_CATEGORIES) {
		r->damaged++;
		category = TIMELINE_CATEGORIES - 1;
	}
	if (!bytes || bytes == INT64_MIN)
		return;
	MEM_PUSH(r->v, r->n, r->cap, (struct timeline_change){time_ns, bytes, (unsigned)category});
	r->n_before += before;
}

/* The numbers of an array, which stands at `at`: up to `most`, in v. Returns the position behind it, or NULL; *n counts them all. */
static const char *timeline_numbers(struct timeline_read *r, const char *at, int64_t *v, unsigned most, unsigned *n)
{
	bool first = true, done = false;
	*n = 0;
	if (*at != '[')
		return json_fail(&r->j, at, "an array of numbers");
	at++;
	while ((at = json_element(&r->j, at, &first, &done)) && !done) {
		struct json_value x;
		int64_t number;
		at = json_value(&r->j, at, &x);
		if (!at)
			return NULL;
		if (x.type != JSON_NUMBER || !json_to_i64(x.raw, &number))
			return json_fail(&r->j, x.raw.p, "a number");
		if (*n < most)
			v[*n] = number;
		++*n;
	}
	return at;
}

static void timeline_read_raw(struct timeline_read *r, const char *at)
{
	bool first = true, done = false;
	while ((at = json_element(&r->j, at, &first, &done)) && !done) {
		int64_t v[4];
		unsigned n;
		at = timeline_numbers(r, at, v, 4, &n);
		if (!at)
			return;
		if (n != 4)
			r->damaged++;
		else
			timeline_add(r, v[0], v[2], v[3], v[0] < 0);
	}
}

/* `times` and `sizes` are whole arrays. */
static void timeline_read_sums(struct timeline_read *r, struct str times, struct str sizes)
{
	const char *t = times.p + 1, *s = sizes.p + 1;
	bool first_t = true, first_s = true, done = false;
	int64_t held[1 + TIMELINE_CATEGORIES] = {0}, last = -1;
	for (uint32_t i = 0; (t = json_element(&r->j, t, &first_t, &done)) && !done; i++) {
		struct json_value x;
		int64_t us, now[1 + TIMELINE_CATEGORIES], ns;
		unsigned n;
		if (!(t = json_value(&r->j, t, &x)) || !(s = json_element(&r->j, s, &first_s, &done)) || done || !(s = timeline_numbers(r, s, now, 1 + TIMELINE_CATEGORIES, &n)))
			return;
		if (n != 1 + TIMELINE_CATEGORIES || !json_to_i64(x.raw, &us) || __builtin_mul_overflow(us, 1000, &ns)) {
			r->damaged++;
			continue;
		}
		if (i == 1 && us == last) /* the entry before was of what was held before */
			r->n_before = r->n;
		last = us;
		for (unsigned c = 1; c <= TIMELINE_CATEGORIES; c++) {
			int64_t change;
			if (__builtin_sub_overflow(now[c], held[c], &change))
				r->damaged++;
			else
				timeline_add(r, ns, change, c - 1, false);
			held[c] = now[c];
		}
	}
}

static void timeline_put(struct timeline_read *r)
{
	struct intern *strings = &r->p->strings;
	uint32_t name = intern_str(strings, STR("[memory]")), track = build_track(&r->b, STR("memory timeline"), STR("device"));
	int64_t first_ns = r->n > r->n_before ? r->v[r->n_before].time_ns : 0;
	uint16_t cat[TIMELINE_CATEGORIES];
	char before[16];
	for (unsigned c = 0; c < TIMELINE_CATEGORIES; c++)
		cat[c] = build_cat(&r->b, intern_str(strings, str_from(timeline_category[c])));
	for (uint32_t i = 0; i < r->n; i++) {
		struct memory_row row = {.time_ns = i < r->n_before ? first_ns : r->v[i].time_ns, .addr = ID_NONE, .bytes = r->v[i].bytes, .total_allocated = ID_NONE,
		                         .total_reserved = ID_NONE, .track = track, .name = name, .cat = cat[r->v[i].category], .device_type = C10_CUDA};
		build_memory(&r->b, &row);
		build_count(&r->b, row.cat, 'i', 1);
	}
	snprintf(before, sizeof before, "%u", r->n_before);
	build_meta(&r->b, intern_str(strings, STR("memory timeline, held before")), intern_str(strings, str_from(before)), false);
	build_meta(&r->b, intern_str(strings, STR("memory timeline, form")), intern_str(strings, r->sums ? STR("json") : STR("raw")), true);
	diag_add(&r->p->diags, "device-not-stated", DIAG_NOTE, -1, "a memory timeline does not say of which device it is: it counts as GPU 0");
	if (r->damaged)
		diag_add_n(&r->p->diags, "damaged-change", DIAG_LOSS, r->damaged, -1, "entries of the memory timeline that are not as torch writes them");
	if (r->j.status != JSON_OK)
		diag_add(&r->p->diags, "damaged-json", DIAG_LOSS, r->j.bad ? r->j.bad - r->start : -1, "the memory timeline is read up to here: %s was expected",
		         r->j.expected ? r->j.expected : "more");
}

/* The two arrays of the second form; false: it is the first. */
static bool timeline_has_sums(struct timeline_read *r, const char *at, struct str *times, struct str *sizes)
{
	struct json j = r->j;
	struct json_value a, b;
	bool first = true, done = false;
	at = json_element(&j, at, &first, &done);
	if (!at || done || !(at = json_value(&j, at, &a)) || !(at = json_element(&j, at, &first, &done)) || done || *at != '[' || *json_space(at + 1) != '[' ||
	    !json_value(&j, at, &b))
		return false;
	*times = a.raw;
	*sizes = b.raw;
	return a.type == JSON_ARRAY;
}

static int timeline_read_all(struct source *s, struct profile *p, struct err *e)
{
	struct buf bytes = {0};
	struct str times, sizes;
	for (bool end = false; !end;)
		buf_str(&bytes, source_next(s, (struct str){NULL, 0}, &end));
	p->input_bytes = bytes.n;
	buf_fill(&bytes, 0, JSON_PADDING);
	struct timeline_read r = {.p = p, .start = bytes.p, .j = {.end = bytes.p + bytes.n - JSON_PADDING}};
	const char *at = json_space(bytes.p);
	int rc = 0;
	if (*at != '[') {
		rc = err_set(e, ERR_DATA, "no memory timeline: an array was expected at byte %td", at - bytes.p);
	} else {
		build_init(&r.b, p);
		r.sums = timeline_has_sums(&r, at + 1, &times, &sizes);
		if (r.sums)
			timeline_read_sums(&r, times, sizes);
		else
			timeline_read_raw(&r, at + 1);
		timeline_put(&r);
		rc = build_finish(&r.b, e);
	}
	mem_free(r.v);
	buf_release(&bytes);
	return rc;
}

/* "[[1726077563878112, ..." or "[[-1, 1, 4096, 0], ...". */
static int timeline_sniff(struct str head, const char *path, struct err *e)
{
	size_t i = 0;
	(void)path;
	(void)e;
	for (unsigned brackets = 0; brackets < 2; brackets++) {
		while (i < head.n && (unsigned char)head.p[i] <= ' ')
			i++;
		if (i >= head.n || head.p[i++] != '[')
			return 0;
	}
	while (i < head.n && (unsigned char)head.p[i] <= ' ')
		i++;
	return i < head.n && (head.p[i] == '-' || (head.p[i] >= '0' && head.p[i] <= '9')) ? 70 : 0;
}

const struct input input_memory_timeline = {
	.name = "memory-timeline",
	.help = "Files of torch's `export_memory_timeline` (.json, .raw.json, plain or gzip): what the memory of a device was used for, over time, for `memory-categories`",
	.sniff = timeline_sniff,
	.read = timeline_read_all,
};
