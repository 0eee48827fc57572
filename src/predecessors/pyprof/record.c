/* The texts of one record, from its chain or from the arguments that a .dict left. */
#include "analysis/analysis.h"
#include "base/buf.h"
#include "base/mem.h"
#include "predecessors/pyprof/op/pyprof.h"
#include "predecessors/pyprof/path.h"

#include <limits.h>
#include <stdio.h>

/* Frames of these files say nothing of the user's program (PyProf's nsight.py). */
static const char *const own_files[] = {
	"/torch/nn/modules/", "/torch/nn/functional.py", "/torch/tensor.py", "/torch/autograd/__init__.py", "/torch/_jit_internal.py",
	"/pyprof/nvtx/nvmarker.py", "/apex/optimizers/", "/torch/_utils.py", "/torch/optim/",
};
/* Those that took their places since. */
static const char *const newer_files[] = {"/torch/_tensor.py", "/torch/utils/_", "/nvidia_dlprof_pytorch_nvtx/"};

static bool is_users(const struct pyprof_records *r, struct str frame)
{
	for (size_t i = 0; i < sizeof own_files / sizeof own_files[0]; i++)
		if (str_has(frame, str_from(own_files[i])))
			return false;
	for (size_t i = 0; r->rules == PYPROF_RECORDS_DEFAULT && i < sizeof newer_files / sizeof newer_files[0]; i++)
		if (str_has(frame, str_from(newer_files[i])))
			return false;
	return true;
}

static void pyprof_record_add(struct pyprof_texts *t, struct str s)
{
	t->v[t->n++] = s;
}

/* The text after the first ':', up to the next. */
static struct str layer_name(struct str text)
{
	struct str before, name = {0};
	if (str_split(&text, ':', &before))
		str_split(&text, ':', &name);
	return name.p ? name : STR("");
}

static void set_trace(const struct pyprof_records *r, struct str text, struct arena *a, struct pyprof_texts *out)
{
	struct str *frame;
	unsigned n;
	if (pyprof_strings_parse(text, "traceMarker", a, &frame, &n) < 0)
		return;
	*out = (struct pyprof_texts){.v = ARENA_ARRAY(a, n, struct str)};
	for (unsigned i = 0; i < n; i++)
		if (is_users(r, frame[i]))
			pyprof_record_add(out, frame[i]);
}

static void set_ids(const struct pyprof_records *r, uint32_t i, const struct pyprof_facts *f, struct arena *a, struct pyprof_record *out)
{
	int64_t *kept = ARENA_ARRAY(a, f->n_ids + 1, int64_t), *other = ARENA_ARRAY(a, f->n_ids, int64_t);
	pyprof_split_ids(r->rules, f->id, f->n_ids, r->seq[i], kept, &out->seq.n, other, &out->alt_seq.n);
	if (!out->seq.n && f->seq_left_out)
		kept[out->seq.n++] = r->seq[i]; /* its range is among those left out */
	out->seq.v = kept;
	out->alt_seq.v = other;
	out->alt_seq.gap = out->alt_seq.n;
	out->alt_seq.left_out = f->seq_left_out;
}

static struct pyprof_texts record_texts(struct arena *a, uint32_t n, unsigned most)
{
	uint32_t listed = n < most ? n : most;
	return (struct pyprof_texts){.v = listed ? ARENA_ARRAY(a, listed, struct str) : NULL, .gap = listed / 2, .left_out = n - listed};
}

/* The k-th text stands for this range of the list. */
static uint32_t record_span(const struct pyprof_spans *list, const struct pyprof_texts *t, unsigned k)
{
	return list->v[k < t->gap ? k : k + t->left_out];
}

static void from_path(const struct pyprof_records *r, const struct pyprof_path *path, unsigned most, struct arena *a, struct pyprof_record *out)
{
	const struct profile *p = r->p;
	const struct pyprof_spans *layer = &path->list[PYPROF_LIST_LAYER], *repr = &path->list[PYPROF_LIST_REPR];
	const struct pyprof_spans *marker = &path->list[PYPROF_LIST_MARKER], *trace = &path->list[PYPROF_LIST_TRACE];
	out->layer = record_texts(a, layer->n, most);
	for (unsigned k = 0; k + out->layer.left_out < layer->n; k++)
		pyprof_record_add(&out->layer, layer_name(profile_str(p, p->span.name[record_span(layer, &out->layer, k)])));
	out->repr = record_texts(a, repr->n, most);
	for (unsigned k = 0; k + out->repr.left_out < repr->n; k++)
		pyprof_record_add(&out->repr, profile_str(p, p->span.name[record_span(repr, &out->repr, k)]));
	out->marker = record_texts(a, marker->n, most);
	out->mod = record_texts(a, marker->n, most);
	for (unsigned k = 0; k + out->marker.left_out < marker->n; k++) {
		uint32_t args = p->span.args[record_span(marker, &out->marker, k)];
		pyprof_record_add(&out->marker, profile_str(p, r->names->marker_of_args[args]));
		pyprof_record_add(&out->mod, profile_str(p, profile_arg_id(p, args, ARG_MARKER_MODULE)));
	}
	if (trace->n)
		set_trace(r, profile_str(p, p->span.name[trace->v[trace->n - 1]]), a, &out->trace);
}

/* "aten::mm, seq = 5" */
static struct str record_sequence(const struct pyprof_seq *seq, const struct profile *p, struct arena *a)
{
	const struct str name = profile_str(p, seq->name), between = STR(", seq = ");
	char *at = arena_bytes(a, name.n + between.n + I64_DIGITS), *to = at;
	to = mempcpy(to, name.p, name.n);
	to = mempcpy(to, between.p, between.n);
	return (struct str){at, (size_t)(i64_write(to, seq->seq) - at)};
}

static void from_chain(const struct pyprof_records *r, uint32_t i, unsigned most, struct arena *a, struct pyprof_record *out)
{
	const struct profile *p = r->p;
	if (r->rules != PYPROF_RECORDS_DEFAULT)
		most = UINT_MAX;
	pyprof_facts_of(r, r->path, r->chain[i], most, r->facts);
	const struct pyprof_facts f = *r->facts;
	from_path(r, r->path, most, a, out);
	out->seq_marker = (struct pyprof_texts){.v = ARENA_ARRAY(a, f.n_seq, struct str), .gap = f.n_seq / 2, .left_out = f.seq_left_out};
	for (uint32_t k = 0; k < f.n_seq; k++)
		pyprof_record_add(&out->seq_marker, record_sequence(&f.seq[k], p, a));
	out->op = (struct pyprof_texts){.v = ARENA_ARRAY(a, f.n_ops, struct str), .gap = f.n_ops / 2, .left_out = f.op_left_out};
	for (uint32_t k = 0; k < f.n_ops; k++)
		pyprof_record_add(&out->op, intern_get(&r->names->ops, f.op[k]));
	if (!f.n_markers) {
		out->mod = (struct pyprof_texts){.v = ARENA_ARRAY(a, f.n_ops + 1, struct str), .gap = f.n_ops / 2, .left_out = f.op_left_out};
		do
			pyprof_record_add(&out->mod, STR("na"));
		while (out->mod.n < f.n_ops);
	}
	set_ids(r, i, &f, a, out);
	out->sub = r->sub[i];
	out->backward = f.backward;
}

static int64_t pyprof_record_stated(int32_t v)
{
	return v == INT32_MIN ? -1 : v;
}

/* Lives as long as *r. */
static struct str record_short_name(const struct pyprof_records *r, uint32_t name)
{
	uint32_t *slot = &r->names->short_id[name];
	if (!*slot) {
		struct buf b = {0};
		pyprof_short_name(&b, profile_str(r->p, name));
		*slot = intern_put(&r->names->ops, b.p, b.n) + 1;
		buf_release(&b);
	}
	return intern_get(&r->names->ops, *slot - 1);
}

static void set_launch(const struct pyprof_records *r, uint32_t gpu, struct pyprof_record *out)
{
	const struct profile *p = r->p;
	uint32_t row = p->gpu_op.launch[gpu], call = p->gpu_op.call[gpu];
	out->duration_ns = p->gpu_op.dur_ns[gpu];
	out->long_name = profile_str(p, p->gpu_op.name[gpu]);
	out->short_name = record_short_name(r, p->gpu_op.name[gpu]);
	out->tid = out->device = out->stream = -1;
	for (int k = 0; k < 3; k++)
		out->grid[k] = out->block[k] = -1;
	if (call != ROW_NONE && p->track.tid[p->span.track[call]] != ID_NONE)
		out->tid = p->track.tid[p->span.track[call]] & 0xffffffff;
	if (row == ROW_NONE)
		return;
	const struct launches *l = &p->launch;
	out->device = pyprof_record_stated(l->device[row]);
	out->stream = l->stream[row] == ID_NONE ? -1 : l->stream[row];
	const int32_t grid[] = {l->grid_x[row], l->grid_y[row], l->grid_z[row]}, block[] = {l->block_x[row], l->block_y[row], l->block_z[row]};
	for (int k = 0; k < 3; k++) {
		out->grid[k] = pyprof_record_stated(grid[k]);
		out->block[k] = pyprof_record_stated(block[k]);
	}
}

struct str pyprof_dict_field(const struct pyprof_records *r, uint32_t gpu, const char *key)
{
	char name[64];
	int n = snprintf(name, sizeof name, "pyprof.%s", key);
	struct str value = {0};
	if (!profile_arg_named(r->p, r->p->gpu_op.args[gpu], (struct str){name, (size_t)n}, &value))
		return (struct str){0};
	return value;
}

static struct pyprof_texts dict_texts(const struct pyprof_records *r, uint32_t gpu, const char *key, struct arena *a)
{
	struct pyprof_texts t = {0};
	struct str text = pyprof_dict_field(r, gpu, key);
	if (text.p && pyprof_strings_parse(text, NULL, a, &t.v, &t.n) < 0)
		t.n = 0;
	return t;
}

static struct pyprof_ids dict_ids(const struct pyprof_records *r, uint32_t gpu, const char *key, struct arena *a)
{
	struct pyprof_ids t = {0};
	struct str text = pyprof_dict_field(r, gpu, key);
	if (text.p && pyprof_ints_parse(text, a, &t.v, &t.n) < 0)
		t.n = 0;
	return t;
}

static void from_dict(const struct pyprof_records *r, uint32_t gpu, struct arena *a, struct pyprof_record *out)
{
	out->layer = dict_texts(r, gpu, "layer", a);
	out->trace = dict_texts(r, gpu, "trace", a);
	out->repr = dict_texts(r, gpu, "reprMarkers", a);
	out->marker = dict_texts(r, gpu, "marker", a);
	out->seq_marker = dict_texts(r, gpu, "seqMarker", a);
	out->seq = dict_ids(r, gpu, "seqId", a);
	out->alt_seq = dict_ids(r, gpu, "altSeqId", a);
	out->mod = dict_texts(r, gpu, "mod", a);
	out->op = dict_texts(r, gpu, "op", a);
	out->backward = str_eqc(pyprof_string_parse(pyprof_dict_field(r, gpu, "dir"), a), "bprop");
	if (!str_to_i64(pyprof_dict_field(r, gpu, "subSeqId"), &out->sub))
		out->sub = 0;
	int64_t tid;
	if (str_to_i64(pyprof_dict_field(r, gpu, "tid"), &tid))
		out->tid = tid;
	struct str name = pyprof_dict_field(r, gpu, "kShortName");
	if (name.p)
		out->short_name = pyprof_string_parse(name, a);
}

void pyprof_record_get(const struct pyprof_records *r, uint32_t i, unsigned most, struct arena *scratch, struct pyprof_record *out)
{
	*out = (struct pyprof_record){0};
	set_launch(r, r->gpu[i], out);
	if (r->from_dict)
		from_dict(r, r->gpu[i], scratch, out);
	else
		from_chain(r, i, most, scratch, out);
}

bool pyprof_record_attributed(const struct pyprof_records *r, uint32_t i)
{
	if (r->from_dict) {
		struct str op = pyprof_dict_field(r, r->gpu[i], "op");
		return op.n > 2 && !str_eqc(op, "[]");
	}
	pyprof_path_go(r->path, r, r->chain[i]);
	return pyprof_path_says(r->path);
}
