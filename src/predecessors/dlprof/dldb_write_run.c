/* The recording in a database of DLProf: ops, their calls, API calls and device work. */
#include "predecessors/dlprof/dldb_write.h"

#include "analysis/ranks/rank_place.h"
#include "base/buf.h"
#include "base/mem.h"
#include "op/model_config.h"
#include "predecessors/dlprof/experts/experts.h"
#include "predecessors/dlprof/op_table.h"
#include "report/parts/system_facts.h"

#include <math.h>

static const struct str none = {NULL, 0};

/* --- facts ------------------------------------------------------------------------------------------------------ */

/* What a database said stays, an empty text too; else what is known. */
static struct str dldb_write_fact(struct dldb_work *w, const char *key, enum system_fact fact)
{
	struct str stated;
	if (profile_meta(w->p, key, &stated))
		return stated;
	stated = fact == SYSTEM_FACTS ? none : system_fact(w->p, fact, &w->texts);
	return stated.n ? stated : none;
}

/* What the ops are of counts, whatever mode was asked for. */
static struct str dldb_write_mode(const struct dldb_work *w)
{
	struct str stated;
	if (profile_meta(w->p, "system_config:mode_string", &stated))
		return stated;
	if (dlprof_is_tensorflow(w->p))
		return str_starts(w->c->mode, STR("tensorflow")) ? w->c->mode : STR("tensorflow2");
	return dlprof_is_pytorch(w->p) ? STR("pytorch") : w->c->mode;
}

static int64_t mode_number(struct str mode)
{
	static const char *const modes[] = {"simple", "tensorflow1", "tensorflow2", "tensorrt", "pytorch"};
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (str_eqc(mode, modes[i]))
			return (int64_t)i;
	return ID_NONE;
}

static void dldb_write_put_system(struct dldb_work *w)
{
	struct str mode = dldb_write_mode(w), name = w->c->profile_name;
	struct str command = dldb_write_fact(w, "system_config:original_command", SYSTEM_FACTS);
	if (!name.p)
		name = dldb_write_fact(w, "system_config:profile_name", FACT_PROFILE_NAME);
	dldb_file_put(&w->f, DLDB_read_only_model_info, "iss", (int64_t)DLDB_DOMAIN, STR("default-domain"), name.p ? name : STR(""));
	dldb_file_put(&w->f, DLDB_read_only_system_config, "issssssssssnss", (int64_t)1, dldb_write_fact(w, "system_config:num_gpus", FACT_GPU_COUNT),
	              dldb_write_fact(w, "system_config:cpu_model", FACT_CPU), dldb_write_fact(w, "system_config:driver_version", FACT_DRIVER),
	              dldb_write_fact(w, "system_config:framework", FACT_FRAMEWORK), dldb_write_fact(w, "system_config:cuda_version", FACT_CUDA),
	              dldb_write_fact(w, "system_config:cudnn_version", FACT_CUDNN), dldb_write_fact(w, "system_config:nsys_version", FACT_NSYS),
	              dldb_write_fact(w, "system_config:dlprof_version", SYSTEM_FACTS), dldb_write_fact(w, "system_config:dlprof_build", SYSTEM_FACTS), name,
	              mode_number(mode), mode, command.p ? command : w->c->command);
	dldb_file_put(&w->f, DLDB_db_version, "ss", STR("1.8.0"), STR("1.8.0"));
}

/* What the markers of its module record. Where there are none, nothing is known, and there is no row. */
static void put_config(struct dldb_work *w)
{
	static const char *const keys[] = {"num_workers", "pin_memory", "cudnn_benchmark_disabled", "detect_anomaly", "gradcheck", "gradgradcheck", "profile",
	                                   "autograd_set_detect_anomaly", "emit_nvtx", "amp_enabled"};
	enum { KEYS = sizeof keys / sizeof keys[0], PROFILE = 6, EMIT_NVTX = 8 };
	int64_t v[KEYS];
	if (!model_config_any(w->p) && w->p->ops->origin != OPS_MARKERS)
		return;
	for (int i = 0; i < KEYS; i++) {
		struct str text;
		if (!model_config_find(w->p, keys[i], &text) && (i != PROFILE || !model_config_find(w->p, "autograd_profile", &text)))
			v[i] = 0; /* a marker stands where something is done */
		else if (!str_to_i64(text, &v[i]))
			v[i] = str_eqc(text, "true") || str_eqc(text, "True");
	}
	v[EMIT_NVTX] = v[EMIT_NVTX] || dlprof_has_emit_ranges(w->p);
	dldb_file_put(&w->f, DLDB_read_only_model_config, "iiiiiiiiii", v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9]);
}

static void dldb_write_put_devices(struct dldb_work *w)
{
	const struct devices *d = &w->p->device;
	uint8_t *foreign = NEW_ARRAY(d->rows.n, uint8_t);
	rank_foreign_gpus(w->p, foreign);
	for (uint32_t i = 0; i < d->rows.n; i++)
		if (!foreign[i])
			w->device_row[i] = dldb_file_put(&w->f, DLDB_read_only_gpu_infos, "isnnn", (int64_t)d->id[i], profile_str(w->p, d->name[i]),
			                                 d->cc_major[i] < 0 ? ID_NONE : d->cc_major[i], d->cc_minor[i] < 0 ? ID_NONE : d->cc_minor[i],
			                                 d->sm_count[i] ? d->sm_count[i] : ID_NONE);
	mem_free(foreign);
	double used_pct = dlprof_memory_pct(w->p);
	int64_t total = used_pct >= 0 && d->rows.n && d->memory_bytes[0] > 0 ? d->memory_bytes[0] : 0; /* 0 is DLProf's word for unknown */
	dldb_file_put(&w->f, DLDB_gpu_memories, "ii", total, total ? (int64_t)ceil((double)total * used_pct / 100) : (int64_t)0);
}

/* --- ops and their calls ---------------------------------------------------------------------------------------- */

/* "<N:32, C:3>; <6>" as DLProf has it, "[[32,3],[6]]\n"; nothing is "null\n". */
static struct str sizes_json(struct arena *a, struct str text)
{
	struct buf b = {0};
	if (!text.n)
		return STR("null\n");
	buf_char(&b, '[');
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c == '<' || c == '>')
			buf_char(&b, c == '<' ? '[' : ']');
		else if (c == ',' || c == ';')
			buf_char(&b, ',');
		else if ((c >= '0' && c <= '9') || c == '-')
			buf_char(&b, c);
	}
	buf_cstr(&b, "]\n");
	struct str out = arena_str(a, buf_view(&b));
	buf_release(&b);
	return out;
}

/* The letters of "<N:32, C:3>; <6>": "N,C"; tensors without letters have none. */
static struct str format_of(struct arena *a, struct str text)
{
	struct buf b = {0};
	bool first = true;
	for (size_t i = 0; i < text.n; i++) {
		size_t n = 0;
		while (i + n < text.n && text.p[i + n] >= 'A' && text.p[i + n] <= 'Z')
			n++;
		if (n)
			buf_printf(&b, "%s%.*s", first ? b.n ? ";" : "" : ",", (int)n, text.p + i);
		first = text.p[i] == '<' || (first && !n);
		i += n;
	}
	struct str out = arena_str(a, b.n ? buf_view(&b) : STR(""));
	buf_release(&b);
	return out;
}

/* A name for each tensor; DLProf leaves them empty. */
static struct str names_json(struct arena *a, struct str sizes)
{
	struct buf b = {0};
	if (!sizes.n)
		return STR("null\n");
	for (size_t i = 0; i < sizes.n; i++)
		if (sizes.p[i] == '<')
			buf_cstr(&b, b.n ? ",\"\"" : "[\"\"");
	buf_cstr(&b, "]\n");
	struct str out = arena_str(a, buf_view(&b));
	buf_release(&b);
	return out;
}

/* What DLProf lists of a convolution, whether it knows the numbers or not. */
static struct str parameters_format(struct str type)
{
	static const struct { const char *type, *format; } formats[] = {
		{"conv1d", "SW;PW;DW;G"}, {"conv2d", "SH,SW;PH,PW;DH,DW;G"}, {"conv3d", "SD,SH,SW;PD,PH,PW;DD,DH,DW;G"},
	};
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
		if (str_eqc(type, formats[i].type))
			return str_from(formats[i].format);
	return STR("");
}

static void dldb_write_put_ops(struct dldb_work *w)
{
	enum { ELIGIBLE = 0, OUTSIDE = 2, NOT_ELIGIBLE = 3 };
	const struct ops *o = w->p->ops;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct op *op = &o->op[w->order[i].op];
		const struct dlprof_op_names *names = &w->order[i].names;
		struct op_shapes s;
		op_instance_shapes(o, w->p, op->first, &w->texts, &s);
		w->op_row[w->order[i].op] =
			dldb_file_put(&w->f, DLDB_read_only_ops, "iwsswwiwwwwws", (int64_t)DLDB_DOMAIN, names->id, names->id, names->name, names->type, STR(""),
			              (int64_t)(op->tc_eligible ? ELIGIBLE : op->unassociated ? OUTSIDE : NOT_ELIGIBLE), op->data_type, format_of(&w->texts, s.inputs),
			              format_of(&w->texts, s.outputs), parameters_format(s.inputs.n ? op->type : STR("")), dlprof_direction(op), op->stack);
	}
}

static void dldb_write_put_instances(struct dldb_work *w)
{
	const struct ops *o = w->p->ops;
	int64_t *calls = NEW_ARRAY(o->n_ops, int64_t);
	for (uint32_t k = 0; k < o->n_instances; k++) {
		const struct op_instance *x = &o->instance[k];
		struct op_shapes s;
		struct arena a = {0};
		if (!w->op_row[x->op])
			continue;
		op_instance_shapes(o, w->p, k, &a, &s);
		uint32_t track = w->p->span.track[x->span];
		w->number[k] = calls[x->op]++;
		dldb_file_put(&w->f, DLDB_read_only_op_instances, "iiinnwwwww", w->op_row[x->op], x->start_ns - w->zero_ns, x->end_ns - w->zero_ns, w->p->track.pid[track],
		              w->p->track.tid[track], names_json(&a, s.inputs), sizes_json(&a, s.inputs), names_json(&a, s.outputs), sizes_json(&a, s.outputs),
		              sizes_json(&a, s.parameters));
		arena_release(&a);
	}
	mem_free(calls);
}

/* --- API calls and device work ---------------------------------------------------------------------------------- */

static struct str dldb_write_call_name(struct dldb_work *w, uint32_t call)
{
	struct str name = profile_str(w->p, w->p->span.name[call]), version = profile_str(w->p, profile_arg_id(w->p, w->p->span.args[call], ARG_API_VERSION));
	return version.n ? arena_printf(&w->texts, STR_FMT "_" STR_FMT, STR_ARG(name), STR_ARG(version)) : name;
}


static int64_t grid_row(struct dldb_work *w, struct intern *seen, int32_t x, int32_t y, int32_t z)
{
	int32_t key[] = {x, y, z};
	if (x == INT32_MIN)
		return ID_NONE;
	uint32_t before = seen->n, id = intern_put(seen, (const char *)key, sizeof key);
	if (seen->n > before)
		dldb_file_put(&w->f, DLDB_read_only_grid_block, "iii", (int64_t)x, (int64_t)y, (int64_t)z);
	return id; /* an interner has "" as 0, a table no row 0 */
}

/* CUPTI's numbers of the directions of copies. */
static int64_t copy_kind(struct str name)
{
	static const char *const kinds[] = {"", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
	for (size_t i = 1; i < sizeof kinds / sizeof kinds[0]; i++)
		if (str_has(name, str_from(kinds[i])))
			return (int64_t)i;
	return 0;
}

static void dldb_write_put_work(struct dldb_work *w, uint32_t g, struct intern *grids)
{
	const struct profile *p = w->p;
	const struct launches *l = &p->launch;
	uint32_t k = p->ops->of_gpu[g], at = p->gpu_op.launch[g], call = p->gpu_op.call[g];
	int64_t op = w->op_row[p->ops->instance[k].op], start = p->gpu_op.start_ns[g] - w->zero_ns, stop = gpu_end(p, g) - w->zero_ns;
	int64_t device = l->device[at] == INT32_MIN ? ID_NONE : l->device[at];
	struct str name = profile_str(p, p->gpu_op.name[g]);
	if (!op || call == ROW_NONE)
		return;
	int64_t api_start = p->span.start_ns[call] - w->zero_ns, api_stop = span_end(p, call) - w->zero_ns;
	int64_t pid = p->track.pid[p->span.track[call]], tid = p->track.tid[p->span.track[call]];
	if (p->gpu_op.kind[g] == GPU_KERNEL)
		w->kernel_row[g] = dldb_file_put(&w->f, DLDB_read_only_kernels, "iiwwiiiiinnnnn", op, w->number[k], kernel_function_name(name), name,
		                                 (int64_t)(op_tc_of(w->tc, g) == TRI_YES), api_start, api_stop, start, stop,
		                                 grid_row(w, grids, l->grid_x[at], l->grid_y[at], l->grid_z[at]),
		                                 grid_row(w, grids, l->block_x[at], l->block_y[at], l->block_z[at]), device, pid, tid);
	else if (p->gpu_op.kind[g] == GPU_MEMSET)
		dldb_file_put(&w->f, DLDB_read_only_memsets, "iiwiiiinnnn", op, w->number[k], dldb_write_call_name(w, call), api_start, api_stop, start, stop, l->bytes[at], device,
		              pid, tid);
	else
		dldb_file_put(&w->f, DLDB_read_only_memcpys, "iiwiiiininnn", op, w->number[k], dldb_write_call_name(w, call), api_start, api_stop, start, stop, l->bytes[at],
		              copy_kind(name), device, pid, tid);
}

/* Which of DLProf's three kinds of waiting a call is; 0 = it waits for nothing. */
static int64_t sync_type(struct str name)
{
	static const struct { const char *part; int64_t type; } kinds[] = {
		{"StreamWaitEvent", 3}, {"StreamSynchronize", 3}, {"EventSynchronize", 2}, {"EventQuery", 2}, {"DeviceSynchronize", 1}, {"CtxSynchronize", 1},
		{"ThreadSynchronize", 1},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (str_has(name, str_from(kinds[i].part)))
			return kinds[i].type;
	return 0;
}

/* Calls that launched nothing. */
static void dldb_write_put_calls(struct dldb_work *w)
{
	const struct spans *s = &w->p->span;
	bool *launched = NEW_ARRAY(s->rows.n, bool);
	for (uint32_t g = 0; g < w->p->gpu_op.rows.n; g++)
		if (w->p->gpu_op.call[g] != ROW_NONE)
			launched[w->p->gpu_op.call[g]] = true;
	for (uint32_t i = 0; i < s->rows.n; i++) {
		uint32_t k = s->kind[i] == SPAN_CALL && !launched[i] ? w->p->ops->of_span[i] : ROW_NONE;
		if (k == ROW_NONE || !w->op_row[w->p->ops->instance[k].op])
			continue;
		struct str name = dldb_write_call_name(w, i);
		int64_t start = s->start_ns[i] - w->zero_ns, stop = span_end(w->p, i) - w->zero_ns, op = w->op_row[w->p->ops->instance[k].op];
		int64_t pid = w->p->track.pid[s->track[i]], tid = w->p->track.tid[s->track[i]], type = sync_type(name);
		if (type)
			dldb_file_put(&w->f, DLDB_read_only_cuda_syncs, "iiwiiiii00nn", op, w->number[k], name, start, stop, (int64_t)0, (int64_t)0, type, pid, tid);
		else
			dldb_file_put(&w->f, DLDB_read_only_cuda_calls, "iiwiinn", op, w->number[k], name, start, stop, pid, tid);
	}
	mem_free(launched);
}

void dldb_write_run(struct dldb_work *w)
{
	struct intern grids;
	dldb_file_put(&w->f, DLDB_read_only_domains, "w", STR("default-domain"));
	dldb_write_put_system(w);
	put_config(w);
	dldb_write_put_devices(w);
	dldb_write_put_ops(w);
	dldb_write_put_instances(w);
	intern_init(&grids);
	for (uint32_t k = 0; k < w->p->ops->n_instances; k++)
		for (uint32_t i = 0; i < w->p->ops->instance[k].gpu_n; i++)
			dldb_write_put_work(w, w->p->ops->gpu[w->p->ops->instance[k].gpu_first + i], &grids);
	intern_release(&grids);
	dldb_write_put_calls(w);
}
