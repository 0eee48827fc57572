/* The recording in a DLProf database: the tables read_only_*. */
#include "input/dldb/dldb.h"

#include "base/search.h"
#include "base/sort.h"
#include "input/marker_dict.h"

#include <assert.h>
#include <stdio.h>

static uint32_t dldb_run_word(struct dldb *d, const char *text) { return intern_str(&d->p->strings, str_from(text)); }

static uint16_t dldb_run_cat(struct dldb *d, const char *name) { return build_cat(&d->b, dldb_run_word(d, name)); }

/* --- facts ------------------------------------------------------------------------------------------------------ */

/* Each column of the row becomes a fact "TABLE:COLUMN", without "read_only_". */
static void read_facts(struct dldb *d, const char *table, const char *const *columns)
{
	struct sqlscan s;
	uint64_t rows = 0;
	if (!dldb_scan(d, &s, table, columns))
		return;
	while (dldb_next(d, &s)) {
		for (int c = 0; columns[c] && !rows; c++) {
			struct dldb_cell v = dldb_cell(d, &s, c);
			struct buf key = {0};
			if (v.type == SQLPAGE_NULL)
				continue;
			buf_printf(&key, "%s:%s", strncmp(table, "read_only_", 10) == 0 ? table + 10 : table, columns[c]);
			build_meta(&d->b, intern_put(&d->p->strings, key.p, key.n), dldb_text(d, &v), v.type == SQLPAGE_TEXT);
			buf_release(&key);
		}
		rows++;
	}
	dldb_scan_end(d, &s);
	build_count(&d->b, dldb_run_cat(d, table), 'M', rows);
	if (rows > 1)
		diag_add_n(&d->p->diags, "several-rows", DIAG_NOTE, rows - 1, -1, "table %s should have one row: the first is taken", table);
}

/* When the recording ended, which may be behind its last op: where the last iteration does. A fact "iteration_list:stop_time". */
static void read_end(struct dldb *d)
{
	static const char *const columns[] = {"stop_time", NULL};
	struct sqlscan s;
	int64_t end = INT64_MIN;
	if (!dldb_scan(d, &s, "iteration_list", columns))
		return;
	while (dldb_next(d, &s)) {
		int64_t stop = dldb_int(d, &s, 0, INT64_MIN);
		end = stop > end ? stop : end;
	}
	dldb_scan_end(d, &s);
	struct dldb_cell v = {.type = SQLPAGE_INT, .i = end};
	if (end > 0)
		build_meta(&d->b, dldb_run_word(d, "iteration_list:stop_time"), dldb_text(d, &v), false);
}

static const char *const version_columns[] = {"current_version", "original_version", NULL};
static const char *const system_columns[] = {"num_gpus", "cpu_model", "driver_version", "framework", "cuda_version", "cudnn_version",
	"nsys_version", "dlprof_version", "dlprof_build", "profile_name", "mode_string", "original_command", NULL};
static const char *const config_columns[] = {"num_workers", "pin_memory", "cudnn_benchmark_disabled", "detect_anomaly", "gradcheck",
	"gradgradcheck", "autograd_profile", "autograd_set_detect_anomaly", "emit_nvtx", "amp_enabled", NULL};
static const char *const model_columns[] = {"domain_name", "profile_name", NULL};

static int32_t dldb_run_in_i32(int64_t v, int32_t absent) { return v >= 0 && v <= INT32_MAX ? (int32_t)v : absent; }

static void dldb_run_read_devices(struct dldb *d)
{
	enum { ID, NAME, MAJOR, MINOR, SMS };
	static const char *const columns[] = {"device_id", "gpu_name", "compute_capability_major", "compute_capability_minor", "sm_count", NULL};
	struct sqlscan s;
	struct devices *dev = &d->p->device;
	if (!dldb_scan(d, &s, "read_only_gpu_infos", columns))
		return;
	while (dldb_next(d, &s)) {
		int64_t id = dldb_int(d, &s, ID, -1);
		bool known = id < 0 || id > INT32_MAX;
		for (uint32_t i = 0; i < dev->rows.n && i < 64 && !known; i++)
			known = dev->id[i] == id;
		if (known)
			continue;
		struct dldb_cell name = dldb_cell(d, &s, NAME);
		uint32_t i = rows_push(dev, &store_tables[TABLE_device]);
		dev->id[i] = (int32_t)id;
		dev->name[i] = dldb_text(d, &name);
		dev->memory_bytes[i] = 0;
		dev->max_threads_per_sm[i] = dev->warp_size[i] = 0;
		dev->cc_major[i] = dldb_run_in_i32(dldb_int(d, &s, MAJOR, -1), -1);
		dev->cc_minor[i] = dldb_run_in_i32(dldb_int(d, &s, MINOR, -1), -1);
		dev->sm_count[i] = dldb_run_in_i32(dldb_int(d, &s, SMS, 0), 0);
	}
	build_count(&d->b, dldb_run_cat(d, "read_only_gpu_infos"), 'M', (uint64_t)s.row);
	dldb_scan_end(d, &s);
}

/* --- ops and their calls ---------------------------------------------------------------------------------------- */

static bool dldb_run_has_ops(const struct dldb *d, int64_t domain)
{
	return ANY_WHERE(i, 0, d->ops.n, dldb_i64(dldb_at(&d->ops, i, OP_DOMAIN), ID_NONE) == domain);
}

/* DLProf could cut a recording into domains of NVTX, whose ops then claim the same kernels: one of them is read, the default one, else
 * the first, where they have ops; else that of the first op. */
static void choose_domain(struct dldb *d)
{
	enum { NAME = 1 };
	static const char *const columns[] = {"id", "domain_name_id", NULL};
	struct dldb_rows domains;
	dldb_load(d, &domains, "read_only_domains", columns);
	build_count(&d->b, dldb_run_cat(d, "read_only_domains"), 'M', domains.n);
	d->domain = domains.n ? dldb_at(&domains, 0, 0)->i : ID_NONE;
	for (uint32_t i = domains.n; i-- > 0;)
		if (str_eq(profile_str(d->p, dldb_word(d, dldb_at(&domains, i, NAME))), STR("default-domain")))
			d->domain = dldb_at(&domains, i, 0)->i;
	if (d->ops.n && !dldb_run_has_ops(d, d->domain))
		d->domain = dldb_i64(dldb_at(&d->ops, 0, OP_DOMAIN), ID_NONE);
	dldb_rows_release(&domains);
}

static void load_ops(struct dldb *d)
{
	static const char *const columns[] = {"id", "domain_id", "op_id", "op_name", "op_type_id", "tc_support_status", "data_type_id",
	                                      "direction_id", "stack_trace", NULL};
	uint64_t other = 0;
	dldb_load(d, &d->ops, "read_only_ops", columns);
	build_count(&d->b, dldb_run_cat(d, "read_only_ops"), 'M', d->ops.n);
	choose_domain(d);
	d->op = NEW_ARRAY(d->ops.n, struct dldb_op);
	for (uint32_t i = 0; i < d->ops.n; i++) {
		d->op[i].other_domain = !dldb_own_domain(d, dldb_i64(dldb_at(&d->ops, i, OP_DOMAIN), ID_NONE));
		d->op[i].unassociated = str_starts(profile_str(d->p, dldb_text(d, dldb_at(&d->ops, i, OP_NAME))), STR("unassociated_"));
		other += d->op[i].other_domain;
	}
	d->has_others = other > 0;
	if (other)
		diag_add_n(&d->p->diags, "other-domains", DIAG_NOTE, other, -1, "ops of other NVTX domains than the one that is read are left out: they "
		           "claim the same kernels again");
}

/* Calls refer to "instance 3 of op 12": instances are numbered from 0 in stored order. */
static void group_instances(struct dldb *d)
{
	uint32_t *at = NEW_ARRAY(d->ops.n + 1, uint32_t);
	d->by_op = NEW_ARRAY(d->instances.n, uint32_t);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < d->instances.n; i++) {
			uint32_t op = dldb_find(&d->ops, dldb_i64(dldb_at(&d->instances, i, INST_OP), ID_NONE));
			if (op == ROW_NONE)
				continue;
			if (pass)
				d->by_op[at[op]++] = i;
			else
				d->op[op].n++;
		}
		for (uint32_t i = 0, first = 0; i < d->ops.n && !pass; first += d->op[i++].n)
			at[i] = d->op[i].first = first;
	}
	mem_free(at);
}

static bool says_something(struct str s) { return s.n && !str_eq(s, STR("null")) && !str_eq(s, STR("[\"\"]")); }

static struct str trimmed(struct str s)
{
	while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == ' '))
		s.n--;
	return s;
}

/* Each argument that instance_args adds, at most once. */
enum { PAIRS_MAX = 15 };

struct dldb_run_pairs {
	struct dldb *d;
	struct arg_pair v[PAIRS_MAX];
	unsigned n;
};

static void dldb_run_add(struct dldb_run_pairs *x, const char *key, struct str value, bool is_string)
{
	value = trimmed(value);
	if (!says_something(value))
		return;
	assert(x->n < PAIRS_MAX);
	x->v[x->n++] = (struct arg_pair){dldb_run_word(x->d, key), intern_str(&x->d->p->strings, value), is_string};
}

/* Outermost first, a line each, as DLProf has them -> innermost first, "; " between, as Kineto has them. */
static void add_call_stack(struct dldb_run_pairs *x, struct str stack)
{
	struct buf b = {0};
	for (size_t end = stack.n, i = stack.n; end; i--) {
		if (i && stack.p[i - 1] != '\n')
			continue;
		if (end > i)
			buf_printf(&b, "%s" STR_FMT, b.n ? ";" : "", (int)(end - i), stack.p + i);
		end = i ? i - 1 : 0;
		if (!i)
			break;
	}
	if (b.n)
		dldb_run_add(x, arg_key_text[ARG_CALL_STACK], buf_view(&b), true);
	buf_release(&b);
}

/* What DLProf says of the whole op, for each tensor of the call. */
static void add_types(struct dldb_run_pairs *x, struct str shapes, struct str type)
{
	unsigned tensors = 0, depth = 0;
	if (!says_something(type) || str_has(type, STR(",")))
		return;
	for (size_t i = 0; i < shapes.n; i++) {
		depth += shapes.p[i] == '[';
		tensors += shapes.p[i] == '[' && depth == 2;
		depth -= shapes.p[i] == ']' && depth;
	}
	struct buf b = {0};
	struct str name = marker_kineto_type(type);
	for (unsigned i = 0; i < tensors; i++)
		buf_printf(&b, "%s\"" STR_FMT "\"", i ? ", " : "[", STR_ARG(name));
	buf_cstr(&b, tensors ? "]" : "");
	dldb_run_add(x, arg_key_text[ARG_INPUT_TYPES], b.n ? buf_view(&b) : STR(""), false);
	buf_release(&b);
}

static uint32_t instance_args(struct dldb *d, uint32_t op, uint32_t inst)
{
	struct dldb_run_pairs x = {.d = d};
	const struct profile *p = d->p;
	struct str stack = profile_str(p, dldb_text(d, dldb_at(&d->ops, op, OP_STACK)));
	struct str shapes = trimmed(profile_str(p, dldb_word(d, dldb_at(&d->instances, inst, INST_INPUT_SHAPES))));
	struct str type = profile_str(p, dldb_word(d, dldb_at(&d->ops, op, OP_DATA_TYPE)));
	dldb_run_add(&x, arg_key_text[ARG_OP_ID], profile_str(p, dldb_text(d, dldb_at(&d->ops, op, OP_ID))), true);
	dldb_run_add(&x, arg_key_text[ARG_OP_NAME], profile_str(p, dldb_text(d, dldb_at(&d->ops, op, OP_NAME))), true);
	dldb_run_add(&x, arg_key_text[ARG_OP_TYPE], profile_str(p, dldb_word(d, dldb_at(&d->ops, op, OP_TYPE))), true);
	dldb_run_add(&x, arg_key_text[ARG_OP_DIRECTION], profile_str(p, dldb_word(d, dldb_at(&d->ops, op, OP_DIRECTION))), true);
	dldb_run_add(&x, arg_key_text[ARG_OP_TENSOR_CORES], profile_str(p, dldb_text(d, dldb_at(&d->ops, op, OP_TC))), false);
	dldb_run_add(&x, arg_key_text[ARG_OP_DATA_TYPE], type, true);
	dldb_run_add(&x, arg_key_text[ARG_OP_STACK], stack, true);
	add_call_stack(&x, trimmed(stack));
	dldb_run_add(&x, arg_key_text[ARG_OP_INPUTS], shapes, false);
	dldb_run_add(&x, arg_key_text[ARG_INPUT_DIMS], shapes, false);
	add_types(&x, shapes, type);
	dldb_run_add(&x, "input_names", profile_str(p, dldb_word(d, dldb_at(&d->instances, inst, INST_INPUT_NAMES))), false);
	dldb_run_add(&x, arg_key_text[ARG_OP_OUTPUTS], profile_str(p, dldb_word(d, dldb_at(&d->instances, inst, INST_OUTPUT_SHAPES))), false);
	dldb_run_add(&x, "output_names", profile_str(p, dldb_word(d, dldb_at(&d->instances, inst, INST_OUTPUT_NAMES))), false);
	dldb_run_add(&x, arg_key_text[ARG_OP_PARAMETERS], profile_str(p, dldb_word(d, dldb_at(&d->instances, inst, INST_PARAMETERS))), false);
	return build_args(&d->b, x.v, x.n);
}

/* The number of the instance is its external id: PASS_CORRELATE then gives it the calls that the file says it made. */
static int64_t instance_id(uint32_t inst) { return (int64_t)inst + 1; }

static void load_instances(struct dldb *d)
{
	static const char *const columns[] = {"id", "read_only_ops_id", "cpu_start", "cpu_stop", "process_id", "thread_id", "input_names_id",
	                                      "input_shapes_id", "output_names_id", "output_shapes_id", "parameters_id", NULL};
	dldb_load(d, &d->instances, "read_only_op_instances", columns);
	group_instances(d);
	d->called = NEW_ARRAY(d->instances.n, bool);
}

/* Ranges of all instances, but for those of calls outside every op whose call is in the file: that is the op. */
static void add_instances(struct dldb *d)
{
	uint16_t of = dldb_run_cat(d, "op_instances");
	d->table = "read_only_op_instances";
	build_count(&d->b, of, 'X', d->instances.n);
	for (uint32_t i = 0; i < d->instances.n; i++) {
		struct span_row r = {.ext_id = instance_id(i), .link_id = ID_NONE, .aux_id = -1, .kind = SPAN_OP, .cat = of};
		uint32_t op = dldb_find(&d->ops, dldb_i64(dldb_at(&d->instances, i, INST_OP), ID_NONE));
		d->row = (int64_t)i + 1;
		if (op == ROW_NONE)
			DLDB_DIAG(d, "missing-op", DIAG_LOSS, " is a call of an op that is not there: it is left out");
		if (op == ROW_NONE || d->op[op].other_domain || (d->op[op].unassociated && d->called[i]) ||
		    !dldb_times(d, dldb_at(&d->instances, i, INST_START), dldb_at(&d->instances, i, INST_STOP), &r.start_ns, &r.dur_ns))
			continue;
		r.name = dldb_word(d, dldb_at(&d->ops, op, OP_TYPE));
		r.args = instance_args(d, op, i);
		r.track = dldb_thread_track(d, dldb_i64(dldb_at(&d->instances, i, INST_PID), 0), dldb_i64(dldb_at(&d->instances, i, INST_TID), 0));
		build_span(&d->b, &r);
	}
}

/* Parts of an op: on the thread of the call of it that they are in. */
static void read_sub_ops(struct dldb *d)
{
	enum { OP, START, STOP };
	static const char *const columns[] = {"op_id", "start_time", "stop_time", NULL};
	struct sqlscan s;
	if (!dldb_scan(d, &s, "read_only_sub_ops", columns))
		return;
	uint16_t of = dldb_run_cat(d, "sub_ops");
	while (dldb_next(d, &s)) {
		struct span_row r = {.ext_id = ID_NONE, .link_id = ID_NONE, .aux_id = -1, .kind = SPAN_RANGE, .cat = of};
		struct dldb_cell start = dldb_cell(d, &s, START), stop = dldb_cell(d, &s, STOP);
		uint32_t op = dldb_find(&d->ops, dldb_int(d, &s, OP, ID_NONE)), lo = 0;
		if (op == ROW_NONE || !d->op[op].n || d->op[op].other_domain || !dldb_times(d, &start, &stop, &r.start_ns, &r.dur_ns))
			continue;
		/* The last call that starts no later; stored order is the order of time. */
		for (uint32_t n = d->op[op].n; n > 1;) {
			uint32_t half = n / 2, inst = d->by_op[d->op[op].first + lo + half];
			if (dldb_i64(dldb_at(&d->instances, inst, INST_START), INT64_MAX) <= r.start_ns)
				lo += half;
			n -= half;
		}
		uint32_t inst = d->by_op[d->op[op].first + lo];
		r.track = dldb_thread_track(d, dldb_i64(dldb_at(&d->instances, inst, INST_PID), 0),
		                            dldb_i64(dldb_at(&d->instances, inst, INST_TID), 0));
		r.name = dldb_word(d, dldb_at(&d->ops, op, OP_TYPE));
		build_span(&d->b, &r);
	}
	build_count(&d->b, of, 'X', (uint64_t)s.row);
	dldb_scan_end(d, &s);
}

/* --- API calls and device work ---------------------------------------------------------------------------------- */

/* Of these names the first columns of every such table. */
enum { OPS_ID, OP_INSTANCE, NAME, API_START, API_STOP, PID, TID, DEVICE, GPU_START, GPU_STOP, OWN };
#define COMMON_COLUMNS "read_only_ops_id", "op_instance", "name_id", "api_start", "api_stop", "process_id", "thread_id", "device_id", \
	"gpu_start", "gpu_stop"

static bool is_of_other_domain(const struct dldb *d, const struct sqlscan *s)
{
	int64_t id;
	uint32_t op = sqlscan_i64(s, OPS_ID, &id) ? dldb_find(&d->ops, id) : ROW_NONE;
	return op != ROW_NONE && d->op[op].other_domain;
}

/* What a row says about its call: the op, and the id of the instance as its external id. */
static void dldb_run_owner_of(struct dldb *d, const struct sqlscan *s, uint32_t *op, int64_t *ext_id)
{
	int64_t k = dldb_int(d, s, OP_INSTANCE, 0), start, stop;
	*op = dldb_find(&d->ops, dldb_int(d, s, OPS_ID, ID_NONE));
	*ext_id = ID_NONE;
	if (*op == ROW_NONE || k < 0 || k >= d->op[*op].n) {
		DLDB_DIAG(d, "missing-op", DIAG_REPAIR, " is of a call of an op that is not there: it goes to the op around it in time, if there is one");
		return;
	}
	uint32_t inst = d->by_op[d->op[*op].first + (uint32_t)k];
	d->called[inst] = true;
	*ext_id = instance_id(inst);
	if (sqlscan_i64(s, API_START, &start) && sqlscan_i64(s, API_STOP, &stop) &&
	    (start < dldb_i64(dldb_at(&d->instances, inst, INST_START), start) || stop > dldb_i64(dldb_at(&d->instances, inst, INST_STOP), stop)))
		DLDB_DIAG(d, "outside-its-op", DIAG_NOTE, ": the API call is not within the time of the op that is said to have made it: it stays there");
}

/* The name of an API call without its version, which becomes an argument, as in databases of Nsight Systems. */
static uint32_t dldb_run_call_name(struct dldb *d, uint32_t full, uint32_t *args)
{
	struct str s = profile_str(d->p, full);
	*args = 0;
	bool version = s.n > 6 && s.p[s.n - 6] == '_' && s.p[s.n - 5] == 'v';
	for (size_t i = s.n - 4; version && i < s.n; i++)
		version = s.p[i] >= '0' && s.p[i] <= '9';
	if (!version)
		return full;
	struct arg_pair pair = {dldb_run_word(d, arg_key_text[ARG_API_VERSION]), intern_put(&d->p->strings, s.p + s.n - 5, 5), 1};
	*args = build_args(&d->b, &pair, 1);
	return intern_put(&d->p->strings, s.p, s.n - 6);
}

static bool dldb_run_add_call(struct dldb *d, const struct sqlscan *s, uint32_t full_name, int64_t ext_id, int64_t corr)
{
	struct span_row r = {.ext_id = ext_id, .link_id = corr, .aux_id = -1, .kind = SPAN_CALL, .cat = d->cat_call};
	struct dldb_cell start = dldb_cell(d, s, API_START), stop = dldb_cell(d, s, API_STOP);
	if (!dldb_times(d, &start, &stop, &r.start_ns, &r.dur_ns))
		return false;
	r.name = dldb_run_call_name(d, full_name, &r.args);
	r.track = dldb_thread_track(d, dldb_int(d, s, PID, 0), dldb_int(d, s, TID, 0));
	return build_span(&d->b, &r) != ROW_NONE;
}

/* The correlation id of the call that launched this row's work; one call may launch several. ID_NONE: it has no time. */
static int64_t launching_call(struct dldb *d, const struct sqlscan *s, uint32_t full_name, int64_t ext_id)
{
	int64_t key[] = {dldb_int(d, s, PID, 0), dldb_int(d, s, TID, 0), dldb_int(d, s, API_START, 0), dldb_int(d, s, API_STOP, 0)};
	uint32_t before = d->calls.n, id = intern_put(&d->calls, (const char *)key, sizeof key);
	if (d->calls.n > before && !dldb_run_add_call(d, s, full_name, ext_id, (int64_t)id + 1))
		return ID_NONE;
	return (int64_t)id + 1;
}

static struct launch_row dldb_run_launch_of(struct dldb *d, const struct sqlscan *s)
{
	struct launch_row l = launch_none();
	int64_t device = dldb_int(d, s, DEVICE, -1);
	l.device = device >= 0 && device <= INT32_MAX ? (int32_t)device : INT32_MIN;
	l.pid = dldb_int(d, s, PID, ID_NONE);
	return l;
}

static void dldb_run_add_work(struct dldb *d, const struct sqlscan *s, struct gpu_row *r, const struct launch_row *l)
{
	struct dldb_cell start = dldb_cell(d, s, GPU_START), stop = dldb_cell(d, s, GPU_STOP);
	if (!dldb_times(d, &start, &stop, &r->start_ns, &r->dur_ns))
		return;
	r->track = dldb_device_track(d, l->device == INT32_MIN ? -1 : l->device);
	r->launch = build_launch(&d->b, l);
	build_gpu(&d->b, r);
}

/* Blocks of the kernel / SMs of the device, where the file describes it. */
static void per_sm(const struct dldb *d, struct launch_row *l)
{
	const struct devices *dev = &d->p->device;
	if (l->grid_x == INT32_MIN || l->grid_y == INT32_MIN || l->grid_z == INT32_MIN)
		return;
	for (uint32_t i = 0; i < dev->rows.n && i < 64; i++)
		if (dev->id[i] == l->device && dev->sm_count[i])
			l->blocks_per_sm = (double)l->grid_x * l->grid_y * l->grid_z / dev->sm_count[i];
}

static void grid_of(struct dldb *d, int64_t id, int32_t *x, int32_t *y, int32_t *z)
{
	uint32_t at = dldb_find(&d->grid, id);
	int32_t *const to[] = {x, y, z};
	for (int c = 0; at != ROW_NONE && c < 3; c++)
		*to[c] = dldb_run_in_i32(dldb_i64(dldb_at(&d->grid, at, c + 1), -1), INT32_MIN);
}

/* DLProf keeps kernels' calls without their names; those outside every op it names after the call. */
static uint32_t kernel_call_name(struct dldb *d, uint32_t op)
{
	return op != ROW_NONE && d->op[op].unassociated ? dldb_word(d, dldb_at(&d->ops, op, OP_TYPE)) : dldb_run_word(d, "kernel launch");
}

enum { LONG_NAME = OWN, USES_TC, GRID, BLOCK };
static const char *const kernel_columns[] = {COMMON_COLUMNS, "long_name_id", "uses_tc", "grid_id", "block_id", NULL};

static void dldb_run_kernel_row(struct dldb *d, const struct sqlscan *s, uint32_t op, int64_t ext_id)
{
	struct gpu_row r = {.kind = GPU_KERNEL, .ext_id = ext_id, .cat = dldb_run_cat(d, "kernel")};
	struct launch_row l = dldb_run_launch_of(d, s);
	struct dldb_cell name = dldb_cell(d, s, NAME), long_name = dldb_cell(d, s, LONG_NAME);
	struct dldb_run_pairs x = {.d = d};
	uint32_t small = dldb_word(d, &name);
	r.name = dldb_word(d, &long_name);
	r.name = r.name ? r.name : small;
	grid_of(d, dldb_int(d, s, GRID, ID_NONE), &l.grid_x, &l.grid_y, &l.grid_z);
	grid_of(d, dldb_int(d, s, BLOCK, ID_NONE), &l.block_x, &l.block_y, &l.block_z);
	per_sm(d, &l);
	dldb_run_add(&x, "short_name", profile_str(d->p, small), true);
	struct dldb_cell tc = dldb_cell(d, s, USES_TC);
	dldb_run_add(&x, "uses_tc", profile_str(d->p, dldb_text(d, &tc)), false);
	r.args = build_args(&d->b, x.v, x.n);
	r.corr_id = launching_call(d, s, kernel_call_name(d, op), ext_id);
	dldb_run_add_work(d, s, &r, &l);
}

enum { BYTES = OWN, COPY_KIND };
static const char *const memcpy_columns[] = {COMMON_COLUMNS, "num_bytes", "copy_kind", NULL};
static const char *const memset_columns[] = {COMMON_COLUMNS, "num_bytes", NULL};

static void memory_row(struct dldb *d, const struct sqlscan *s, int64_t ext_id, struct gpu_row r)
{
	struct launch_row l = dldb_run_launch_of(d, s);
	struct dldb_cell call = dldb_cell(d, s, NAME);
	l.bytes = dldb_int(d, s, BYTES, ID_NONE);
	r.ext_id = ext_id;
	r.corr_id = launching_call(d, s, dldb_word(d, &call), ext_id);
	dldb_run_add_work(d, s, &r, &l);
}

static void dldb_run_memcpy_row(struct dldb *d, const struct sqlscan *s, uint32_t op, int64_t ext_id)
{
	static const char *const name[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
	int64_t kind = dldb_int(d, s, COPY_KIND, 0);
	char text[32];
	snprintf(text, sizeof text, "Memcpy %s", name[kind > 0 && kind < (int64_t)(sizeof name / sizeof name[0]) ? kind : 0]);
	memory_row(d, s, ext_id, (struct gpu_row){.kind = GPU_MEMCPY, .name = dldb_run_word(d, text), .cat = dldb_run_cat(d, "gpu_memcpy")});
}

static void dldb_run_memset_row(struct dldb *d, const struct sqlscan *s, uint32_t op, int64_t ext_id)
{
	memory_row(d, s, ext_id, (struct gpu_row){.kind = GPU_MEMSET, .name = dldb_run_word(d, "Memset"), .cat = dldb_run_cat(d, "gpu_memset")});
}

static const char *const call_columns[] = {COMMON_COLUMNS, NULL};

static void dldb_run_call_row(struct dldb *d, const struct sqlscan *s, uint32_t op, int64_t ext_id)
{
	struct dldb_cell name = dldb_cell(d, s, NAME);
	dldb_run_add_call(d, s, dldb_word(d, &name), ext_id, d->next_corr++);
}

/* As seen by the device only in some versions; else its times are 0. */
static void dldb_run_sync_row(struct dldb *d, const struct sqlscan *s, uint32_t op, int64_t ext_id)
{
	struct span_row r = {.ext_id = ID_NONE, .link_id = d->next_corr, .aux_id = -1, .kind = SPAN_SYNC, .cat = dldb_run_cat(d, "cuda_sync")};
	struct dldb_cell name = dldb_cell(d, s, NAME), start = dldb_cell(d, s, GPU_START), stop = dldb_cell(d, s, GPU_STOP);
	uint32_t args;
	dldb_run_call_row(d, s, op, ext_id);
	if ((start.type == SQLPAGE_INT && start.i == 0) || !dldb_times(d, &start, &stop, &r.start_ns, &r.dur_ns))
		return;
	r.name = dldb_run_call_name(d, dldb_word(d, &name), &args);
	r.track = dldb_device_track(d, dldb_int(d, s, DEVICE, -1));
	build_span(&d->b, &r);
}

static const struct run_table {
	const char *name, *counted_as;
	const char *const *columns;
	void (*row)(struct dldb *d, const struct sqlscan *s, uint32_t op, int64_t ext_id);
} run_tables[] = {
	{"read_only_kernels", "kernel", kernel_columns, dldb_run_kernel_row},
	{"read_only_memcpys", "gpu_memcpy", memcpy_columns, dldb_run_memcpy_row},
	{"read_only_memsets", "gpu_memset", memset_columns, dldb_run_memset_row},
	{"read_only_cuda_calls", "cuda_runtime", call_columns, dldb_run_call_row},
	{"read_only_cuda_syncs", "cuda_sync", call_columns, dldb_run_sync_row},
};

/* Where there are several domains: whether a row of this table with the same times, thread, device and name was there before. */
static bool was_seen(struct dldb *d, const struct sqlscan *s, const struct run_table *t)
{
	int64_t key[OWN] = {t - run_tables};
	for (int c = NAME; c < OWN; c++)
		sqlscan_i64(s, c, &key[c]);
	uint32_t before = d->work_seen.n;
	intern_put(&d->work_seen, (const char *)key, sizeof key);
	return d->work_seen.n == before;
}

/* First what is of the domain that is read; then of the others what it does not have, without their ops. */
static void read_run_table(struct dldb *d, const struct run_table *t)
{
	struct sqlscan s;
	uint32_t op;
	int64_t ext_id;
	uint64_t repeated = 0;
	for (int others = 0; others <= d->has_others; others++) {
		if (!dldb_scan(d, &s, t->name, t->columns))
			return;
		while (dldb_next(d, &s)) {
			if (is_of_other_domain(d, &s) != (bool)others)
				continue;
			op = ROW_NONE;
			ext_id = ID_NONE;
			if (!others)
				dldb_run_owner_of(d, &s, &op, &ext_id);
			if (d->has_others && was_seen(d, &s, t) && others)
				repeated++;
			else
				t->row(d, &s, op, ext_id);
		}
		if (!others)
			build_count(&d->b, dldb_run_cat(d, t->counted_as), 'X', (uint64_t)s.row);
		dldb_scan_end(d, &s);
	}
	if (repeated)
		diag_add_n(&d->p->diags, "repeated-work", DIAG_NOTE, repeated, -1, "rows of other NVTX domains repeat calls and work of the one that is read");
}

void dldb_read_run(struct dldb *d)
{
	static const char *const grid_columns[] = {"id", "x", "y", "z", NULL};
	read_facts(d, "db_version", version_columns);
	read_facts(d, "read_only_system_config", system_columns);
	read_facts(d, "read_only_model_config", config_columns);
	read_facts(d, "read_only_model_info", model_columns);
	read_end(d);
	dldb_run_read_devices(d);
	load_ops(d);
	dldb_load(d, &d->grid, "read_only_grid_block", grid_columns);
	build_count(&d->b, dldb_run_cat(d, "read_only_grid_block"), 'M', d->grid.n);
	load_instances(d);
	read_sub_ops(d);
	d->cat_call = dldb_run_cat(d, "cuda_runtime");
	d->next_corr = 1ll << 40; /* apart from those of d->calls */
	for (size_t i = 0; i < sizeof run_tables / sizeof run_tables[0]; i++)
		read_run_table(d, &run_tables[i]);
	add_instances(d);
}
