/* Makes an Nsight Systems database (the tables and columns of a 2024.6 export) of the size and shape of a real complaint: by
 * default 15.9 M NVTX ranges, 7.06 M API calls and 2.2 M kernels of a training loop under emit_nvtx with shapes.
 *
 * usage: nsysgen FILE [PERCENT]      PERCENT of that size; 100 by default, fractions are fine
 *
 * Each kernel has its own group of ranges: a module range (registered string), an op, the ops inside it, and the API calls
 * of the launch; the first half of a step runs on the main thread, the second as its backward on another one. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS = 2200000, RANGES = 15900000, CALLS = 7060000, OPS_PER_STEP = 400, STEP_HALF = OPS_PER_STEP / 2, MODULES = 48 };
#define PID 4711ll
#define GLOBAL_PID ((1ll << 48) | (PID << 24))
#define TID_MAIN (GLOBAL_PID | 4711)
#define TID_BACKWARD (GLOBAL_PID | 4790)

enum string_id { S_LAUNCH = 1, S_CAPTURING, S_EVENT, S_PEEK, S_KERNEL, S_SHORT = S_KERNEL + 3, S_MODULE = S_SHORT + 3 };

static sqlite3 *db;

static void die(const char *what)
{
	fprintf(stderr, "nsysgen: %s: %s\n", what, db ? sqlite3_errmsg(db) : "");
	exit(1);
}

static void run(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *st;
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		die(sql);
	return st;
}

static void insert(sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE)
		die("insert");
	sqlite3_reset(st);
}

static const char *const schema[] = {
	"PRAGMA page_size=4096", "PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "BEGIN",
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
	"CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)",
	"INSERT INTO META_DATA_EXPORT VALUES('EXPORT_PRODUCT_VERSION','2024.6.2'),('EXPORT_SCHEMA_VERSION','3.16.1')",
	"CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER,"
	" clockRate INTEGER, smCount INTEGER, cuDevice INTEGER, threadsPerWarp INTEGER, maxWarpsPerSm INTEGER, computeMajor INTEGER,"
	" computeMinor INTEGER)",
	"INSERT INTO TARGET_INFO_GPU VALUES(0,0,'NVIDIA A100-SXM4-80GB',85899345920,2039000000000,1410000000,108,0,32,64,8,0)",
	"CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,"
	" color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,"
	" int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,"
	" jsonText TEXT, binaryData TEXT)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
	" globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER)",
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
	" contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,"
	" demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,"
	" registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,"
	" blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,"
	" dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,"
	" gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER)",
};

/* The kinds of groups: what their outer op is, the op that launches, and the kernel. */
static const struct kind {
	const char *outer, *op, *sizes, *node;
	int kernel;
} kinds[] = {
	{"aten::linear", "aten::addmm", "[[3072], [2048, 768], [768, 3072], [], []]", "AddmmBackward0", 0},
	{"aten::gelu", "aten::gelu", "[[4, 512, 3072], []]", "GeluBackward0", 1},
	{"aten::layer_norm", "aten::native_layer_norm", "[[4, 512, 768], [], [768], [768], []]", "NativeLayerNormBackward0", 2},
	{"aten::add", "aten::add", "[[4, 512, 768], [4, 512, 768], []]", "AddBackward0", 1},
};

static void strings(void)
{
	sqlite3_stmt *st = prepare("INSERT INTO StringIds VALUES(?1, ?2)");
	static const char *const fixed[] = {
		[S_LAUNCH] = "cudaLaunchKernel_v7000", [S_CAPTURING] = "cudaStreamIsCapturing_v10000",
		[S_EVENT] = "cudaEventQuery_v3020", [S_PEEK] = "cudaPeekAtLastError_v3020",
		[S_KERNEL] = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x5_tn_align8>(cutlass::Params)",
		[S_KERNEL + 1] = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::Functor<c10::BFloat16>>(int, T2)",
		[S_KERNEL + 2] = "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)",
		[S_SHORT] = "Kernel2", [S_SHORT + 1] = "vectorized_elementwise_kernel", [S_SHORT + 2] = "vectorized_layer_norm_kernel",
	};
	for (int i = 1; i < S_MODULE + MODULES; i++) {
		char module[64];
		snprintf(module, sizeof module, "layer:transformer.h.%d.mlp", i - S_MODULE);
		sqlite3_bind_int(st, 1, i);
		sqlite3_bind_text(st, 2, i < S_MODULE ? fixed[i] : module, -1, SQLITE_TRANSIENT);
		insert(st);
	}
	sqlite3_finalize(st);
}

struct generator {
	sqlite3_stmt *range, *call, *kernel;
	int64_t ranges, calls, kernels;           /* still to make */
	int64_t now, gpu, op_id, corr;
};

static void put_range(struct generator *g, int64_t start, int64_t end, const char *text, int id, int64_t tid)
{
	if (g->ranges-- <= 0)
		return;
	sqlite3_bind_int64(g->range, 1, start);
	sqlite3_bind_int64(g->range, 2, end);
	if (text)
		sqlite3_bind_text(g->range, 3, text, -1, SQLITE_STATIC), sqlite3_bind_null(g->range, 5);
	else
		sqlite3_bind_null(g->range, 3), sqlite3_bind_int(g->range, 5, id);
	sqlite3_bind_int64(g->range, 4, tid);
	insert(g->range);
}

static void put_op(struct generator *g, int64_t start, int64_t end, const char *name, int64_t seq, const char *sizes, int64_t tid)
{
	char text[256];
	int n = snprintf(text, sizeof text, "%s", name);
	if (seq >= 0)
		n += snprintf(text + n, sizeof text - (size_t)n, ", seq = %" PRId64, seq);
	n += snprintf(text + n, sizeof text - (size_t)n, ", op_id = %" PRId64, ++g->op_id);
	if (sizes)
		snprintf(text + n, sizeof text - (size_t)n, ", sizes = %s", sizes);
	put_range(g, start, end, text, 0, tid);
}

static int64_t put_call(struct generator *g, int64_t start, int64_t end, int name, int64_t tid)
{
	if (g->calls-- <= 0)
		return 0;
	sqlite3_bind_int64(g->call, 1, start);
	sqlite3_bind_int64(g->call, 2, end);
	sqlite3_bind_int64(g->call, 3, tid);
	sqlite3_bind_int64(g->call, 4, ++g->corr);
	sqlite3_bind_int(g->call, 5, name);
	insert(g->call);
	return g->corr;
}

static void put_kernel(struct generator *g, int64_t corr, int which, int64_t launched)
{
	static const int dur[] = {48000, 9000, 12000};
	g->gpu = g->gpu > launched ? g->gpu + 800 : launched + 3000;
	sqlite3_bind_int64(g->kernel, 1, g->gpu);
	sqlite3_bind_int64(g->kernel, 2, g->gpu + dur[which]);
	sqlite3_bind_int64(g->kernel, 3, corr);
	sqlite3_bind_int(g->kernel, 4, S_KERNEL + which);
	sqlite3_bind_int(g->kernel, 5, S_SHORT + which);
	sqlite3_bind_int(g->kernel, 6, which == 0 ? 384 : 1536);
	insert(g->kernel);
	g->gpu += dur[which];
}

/* One kernel with its ranges and calls: `i` counts the kernels. */
static void put_group(struct generator *g, int64_t i)
{
	int64_t step = i / OPS_PER_STEP, at = i % OPS_PER_STEP, t = g->now;
	int backward = at >= STEP_HALF;
	int64_t op = backward ? OPS_PER_STEP - 1 - at : at, seq = step * STEP_HALF + op;
	const struct kind *k = &kinds[op % (int)(sizeof kinds / sizeof kinds[0])];
	int64_t tid = backward ? TID_BACKWARD : TID_MAIN;
	char node[128];
	snprintf(node, sizeof node, "autograd::engine::evaluate_function: %s", k->node);
	if (backward) {
		put_op(g, t, t + 30000, node, -1, NULL, tid);
		put_op(g, t + 500, t + 29000, k->node, seq, NULL, tid);
	} else {
		put_range(g, t, t + 30000, NULL, S_MODULE + (int)(op / 4 % MODULES), tid);
		put_op(g, t + 500, t + 29000, k->outer, seq, k->sizes, tid);
	}
	int64_t own = backward ? -1 : seq; /* no gradient of the gradient: ops of the backward pass have no number */
	put_op(g, t + 1000, t + 4000, "aten::t", own, "[[768, 3072]]", tid);
	put_op(g, t + 1500, t + 3500, "aten::transpose", own, "[[768, 3072], [], []]", tid);
	put_op(g, t + 2000, t + 3000, "aten::as_strided", -1, "[[768, 3072], [], [], []]", tid);
	put_op(g, t + 5000, t + 28000, backward ? "aten::mm" : k->op, own,
	       backward ? "[[2048, 3072], [3072, 768]]" : k->sizes, tid);
	put_op(g, t + 6000, t + 8000, "aten::empty", -1, "[[], [], [], [], [], []]", tid);
	put_call(g, t + 9000, t + 9500, S_CAPTURING, tid);
	if (i % 1000 < 227)
		put_op(g, t + 10000, t + 11000, "aten::resize_", -1, "[[0], [], []]", tid);
	int64_t corr = put_call(g, t + 12000, t + 17000, S_LAUNCH, tid);
	put_kernel(g, corr, k->kernel, t + 17000);
	put_call(g, t + 17100, t + 17300, S_PEEK, tid);
	if (i % 1000 < 210)
		put_call(g, t + 18000, t + 18900, S_EVENT, tid);
	g->now = t + 31000;
}

int main(int argc, char **argv)
{
	double share = argc > 2 ? atof(argv[2]) / 100 : 1;
	if (argc < 2 || argc > 3 || !(share > 0 && share <= 10)) {
		fprintf(stderr, "usage: nsysgen FILE [PERCENT]\n");
		return 2;
	}
	remove(argv[1]);
	if (sqlite3_open(argv[1], &db) != SQLITE_OK)
		die(argv[1]);
	for (size_t i = 0; i < sizeof schema / sizeof schema[0]; i++)
		run(schema[i]);
	strings();
	struct generator g = {
		.range = prepare("INSERT INTO NVTX_EVENTS(start,end,eventType,text,globalTid,textId,domainId) VALUES(?1,?2,59,?3,?4,?5,0)"),
		.call = prepare("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(?1,?2,1,?3,?4,?5,0,NULL)"),
		.kernel = prepare("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(?1,?2,0,1,NULL,7,?3,281554014175232,?4,?5,NULL,1,1,64,"
		                  "?6,1,1,128,1,1,0,49152,0,127401984,1,102400,NULL,0)"),
		.ranges = (int64_t)(RANGES * share), .calls = (int64_t)(CALLS * share), .kernels = (int64_t)(KERNELS * share),
		.now = 1000000000,
	};
	for (int64_t i = 0; i < g.kernels; i++)
		put_group(&g, i);
	while (g.ranges > 0)
		put_op(&g, g.now, g.now + 500, "aten::empty", -1, NULL, TID_MAIN), g.now += 1000;
	while (g.calls > 0)
		put_call(&g, g.now, g.now + 500, S_PEEK, TID_MAIN), g.now += 1000;
	sqlite3_finalize(g.range);
	sqlite3_finalize(g.call);
	sqlite3_finalize(g.kernel);
	run("COMMIT");
	sqlite3_close(db);
	return 0;
}
