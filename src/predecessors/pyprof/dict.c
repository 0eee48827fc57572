#include "predecessors/pyprof/dict.h"

#include "export/export.h"
#include "predecessors/pyprof/op/repr.h"

#include <limits.h>

static void put_key(struct buf *b, const char *key)
{
	buf_cstr(b, ", '");
	buf_cstr(b, key);
	buf_cstr(b, "': ");
}

static void pyprof_dict_put_texts(struct buf *b, const char *key, struct pyprof_texts t)
{
	put_key(b, key);
	pyprof_put_repr_list(b, t.v, t.n);
}

static void put_ids(struct buf *b, const char *key, struct pyprof_ids ids)
{
	put_key(b, key);
	pyprof_put_repr_ints(b, ids.v, ids.n, '[', ']');
}

static void put_int(struct buf *b, const char *key, int64_t v)
{
	put_key(b, key);
	buf_i64(b, v);
}

void pyprof_dict_put(struct buf *b, const struct pyprof_record *x)
{
	buf_cstr(b, "{'kShortName': ");
	pyprof_put_repr(b, x->short_name);
	put_int(b, "kDuration", x->duration_ns);
	pyprof_dict_put_texts(b, "layer", x->layer);
	pyprof_dict_put_texts(b, "trace", x->trace);
	pyprof_dict_put_texts(b, "reprMarkers", x->repr);
	pyprof_dict_put_texts(b, "marker", x->marker);
	pyprof_dict_put_texts(b, "seqMarker", x->seq_marker);
	put_ids(b, "seqId", x->seq);
	put_int(b, "subSeqId", x->sub);
	put_ids(b, "altSeqId", x->alt_seq);
	buf_cstr(b, x->backward ? ", 'dir': 'bprop'" : ", 'dir': 'fprop'");
	pyprof_dict_put_texts(b, "mod", x->mod);
	pyprof_dict_put_texts(b, "op", x->op);
	put_int(b, "tid", x->tid);
	put_int(b, "device", x->device);
	put_int(b, "stream", x->stream);
	buf_cstr(b, ", 'grid': ");
	pyprof_put_repr_ints(b, x->grid, 3, '(', ')');
	buf_cstr(b, ", 'block': ");
	pyprof_put_repr_ints(b, x->block, 3, '(', ')');
	buf_cstr(b, ", 'kLongName': ");
	pyprof_put_repr(b, x->long_name);
	buf_cstr(b, "}\n");
}

static enum pyprof_record_rules rules_of(const char *compat)
{
	return strcmp(compat, "pyprof") == 0 ? PYPROF_RECORDS_3 : strcmp(compat, "pyprof2") == 0 ? PYPROF_RECORDS_2 : PYPROF_RECORDS_DEFAULT;
}

static int write_dicts(const struct export_run *x, struct err *e)
{
	struct pyprof_records *r = pyprof_records_new(x->p, rules_of(x->value[0]));
	struct arena scratch = {0};
	if (!r->n)
		err_set(e, ERR_DATA, "there are no kernels: PyProf's dictionaries are about nothing else");
	for (uint32_t i = 0; i < r->n && sink_room(x->out) == 0; i++) {
		struct pyprof_record record;
		pyprof_record_get(r, i, UINT_MAX, &scratch, &record);
		pyprof_dict_put(&x->out->buf, &record);
		if (i % 256 == 255)
			arena_release(&scratch);
	}
	arena_release(&scratch);
	int rc = r->n ? 0 : -1;
	pyprof_records_free(r);
	return rc;
}

static const char *const compat_values[] = {"opscope", "pyprof", "pyprof2", NULL};
static const struct export_option options[] = {
	{"compat", "RULES", "opscope (default): right sequence numbers, sub ids and ops of any version; pyprof, pyprof2: as these had them",
	 compat_values},
	{0},
};

const struct export_format export_format_pyprof_dict = {
	.name = "pyprof-dict",
	.title = "PyProf's .dict: a Python dictionary a kernel",
	.help = "What PyProf's parse stage wrote and its prof stage reads: name, duration, markers, sequence numbers, direction, op and launch of "
	        "every kernel, one dictionary a line. It is an INPUT like any other. The command pyprof-parse prints the same with PyProf's own switches.",
	.suffix = "dict",
	.needs = PASS_NEST | PASS_CORRELATE,
	.options = EXPORT_OPTIONS(options),
	.write = write_dicts,
};
