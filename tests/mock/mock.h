/* The mock of a CUDA driver (cuda.c) and of CUPTI (cupti.c), which together do on any machine what the collector would see beside a GPU.
 * A guest calls the functions below instead of CUDA's; each plants one event, says so in the file $MOCK_TRUTH (one JSON object a line),
 * and hands it to the mock CUPTI, if the collector loaded one.
 *
 * What else the mocks heed: see the top of cuda.c, cupti.c and nvml.c. */
#ifndef MOCK_H
#define MOCK_H

#include <stdint.h>

struct mock_event {
	uint32_t kind;              /* CUPTI's number of the activity */
	uint64_t start, end;        /* CLOCK_REALTIME, ns */
	uint32_t correlation, device, context, stream, thread, cbid, result;
	const char *name;
	int32_t grid[3], block[3], registers, fixed_shared, dynamic_shared;
	uint64_t bytes, address;
	uint32_t from, to, copy;    /* kinds of memory and of copy */
	uint32_t type, event;       /* of a wait; operation of a memory event; kind of overhead */
	uint64_t node;
	uint32_t graph;
};

/* What the mock CUPTI tells the mock driver of itself. */
struct mock_cupti {
	void (*event)(const struct mock_event *e);
	void (*graph_node)(void *node, void *original);
	uint64_t (*node_id)(void *node);
	/* A function of the runtime begins (site 0) or ends (1). */
	void (*call)(uint32_t cbid, uint32_t site);
};

void mock_cuda_attach(const struct mock_cupti *cupti);

int cuInit(unsigned flags);
/* Handles of streams are numbers here: device << 8 | number of the stream. Their contexts are MOCK_CONTEXT + device. */
enum { MOCK_CONTEXT = 0x1000 };
int cuStreamGetCtx(void *stream, void **context);

/* The innermost range of the calling thread, which the truth then names. The guest opens it itself. NULL = none. */
void mock_range_is(const char *name);

/* A kernel launched by cudaLaunchKernel; the correlation id. */
uint32_t mock_launch(const char *name, uint32_t stream, int64_t ns);
/* The same with a grid and block of one dimension; 0 = some. */
uint32_t mock_launch_grid(const char *name, uint32_t stream, int64_t ns, int32_t grid, int32_t block);
/* Until the stream is empty. */
void mock_wait(uint32_t stream);
uint32_t mock_memcpy(uint32_t copy_kind, uint64_t bytes, uint32_t stream);
uint32_t mock_peer_copy(uint64_t bytes, uint32_t stream);
uint32_t mock_memset(uint64_t bytes, uint32_t stream);
/* type: 1 event, 2 stream waits for an event, 3 stream, 4 context */
uint32_t mock_sync(uint32_t type, uint32_t stream);
void mock_event_record(uint32_t stream, uint32_t event);
/* A call that says nothing, as cudaGetLastError. */
void mock_call(uint32_t cbid);
/* cudaProfilerStart, or Stop. */
void mock_profiler(int start);
uint64_t mock_malloc(uint64_t bytes);
void mock_free(uint64_t address, uint64_t bytes);
void mock_overhead(uint32_t overhead_kind, int64_t ns);
void mock_jit(int64_t ns);
/* The devices, the context and `streams` streams that CUPTI tells of. */
void mock_devices(uint32_t devices, uint32_t streams);

/* A graph: nodes are kernels, added under the range of the moment; instantiating clones them; a launch runs all. */
struct mock_graph;
struct mock_graph *mock_graph_begin(void);
void mock_graph_kernel(struct mock_graph *g, const char *name, int64_t ns);
void mock_graph_instantiate(struct mock_graph *g);
uint32_t mock_graph_launch(struct mock_graph *g, uint32_t stream);

#endif
