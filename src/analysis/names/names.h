/* What the names of an input say. The pass (PASS_NAMES; analysis_run always runs it) looks at each name of a range and of device work once; after it
 * the facts of a name are asked by its string id.
 *
 * Facts are by our own rules. What a predecessor knew under another rule is a part of ours: its code asks first here, then restricts the answer. */
#ifndef OPSCOPE_ANALYSIS_NAMES_NAMES_H
#define OPSCOPE_ANALYSIS_NAMES_NAMES_H

#include "analysis/names/autograd_names.h"
#include "base/mem.h"
#include "op/kernels.h"
#include "store/profile.h"

enum name_fact {
	/* of a range of the host */
	NAME_STEP = 1 << 0,             /* torch.profiler's step: "ProfilerStep#7" */
	NAME_MODULE = 1 << 1,           /* the frame of a module: "nn.Module: Linear_3" */
	NAME_MODULE_ANNOTATED = 1 << 2, /* "[module]layer1.0" */
	NAME_MODULE_LIGHTNING = 1 << 3, /* "[pl][module]torch.nn.modules.linear.Linear: layer1.0" */
	NAME_ENGINE = 1 << 4,           /* autograd's engine runs a node: "autograd::engine::evaluate_function: MmBackward0" */
	NAME_OPTIMIZER_STEP = 1 << 5,   /* "Optimizer.step#SGD.step" */
	NAME_WRAPPER = 1 << 6,          /* what is around the ops of a whole program: "Optimizer.zero_grad#...", "DataParallel.forward", ... */
	NAME_SCOPED = 1 << 7,           /* in a namespace, as ops with a schema are: "aten::mm" */
	NAME_COMM = 1 << 8,             /* an op or annotation of a collective: "nccl:all_reduce", "c10d::allreduce_" */
	NAME_COMM_BY_HOST = 1 << 9,     /* one that the host does by itself: "gloo:all_reduce" */
	NAME_TC_ELIGIBLE = 1 << 10,     /* an op that could use Tensor Cores */
	NAME_FILE_IO = 1 << 11,         /* a call of the C library that reads or writes files: "fread" */
	/* of a kernel */
	NAME_COMM_KERNEL = 1 << 12,     /* a collective: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)" */
	NAME_TC_LISTED = 1 << 13,       /* on the list by which the first profilers told that Tensor Cores are used */
};

/* What a call or range of the host does while it keeps the GPU waiting (host_names.def). */
enum host_kind { HOST_PLAIN, HOST_SYNC, HOST_SYNC_COPY, HOST_ALLOC, HOST_LOAD, HOST_GC, HOST_DATA };

struct name_facts {
	uint32_t *facts;            /* by string id: enum name_fact */
	uint8_t *autograd, *host;   /* by string id: enum autograd_name, enum host_kind */
	uint32_t *kernel;           /* by string id: its place in info; 0 = no kernel has this name */
	struct kernel_info *info;   /* by kernel's name; info[0] says nothing */
};

/* Whether any of these facts holds. */
static inline bool name_is(const struct profile *p, uint32_t id, unsigned facts) { return p->names->facts[id] & facts; }
static inline enum autograd_name name_autograd(const struct profile *p, uint32_t id) { return (enum autograd_name)p->names->autograd[id]; }
static inline enum host_kind name_host_kind(const struct profile *p, uint32_t id) { return (enum host_kind)p->names->host[id]; }
static inline bool name_is_dataloader(const struct profile *p, uint32_t id) { return name_host_kind(p, id) == HOST_DATA; }
/* Of the name of a kernel; of another name, what is known of none. */
static inline const struct kernel_info *name_kernel(const struct profile *p, uint32_t id) { return &p->names->info[p->names->kernel[id]]; }

/* The same of a text. */
bool name_says_dataloader(struct str name);
/* Of the name of a kernel: whether it uses Tensor Cores, by the list, then by the rules of kernels.def. */
static inline enum tri name_tensor_core(const struct profile *p, uint32_t id)
{
	return name_is(p, id, NAME_TC_LISTED) ? TRI_YES : name_kernel(p, id)->tensor_core;
}
/* Of a row of device work. */
static inline const struct kernel_info *gpu_kernel(const struct profile *p, uint32_t g) { return name_kernel(p, p->gpu_op.name[g]); }

/* A question that one module alone has, asked once for each name. `ask` answers less than 255. */
struct name_memo {
	const struct profile *p;
	uint8_t (*ask)(struct str name);
	uint8_t *known;             /* by string id: the answer + 1; 0 = not asked */
};

static inline struct name_memo name_memo_new(const struct profile *p, uint8_t (*ask)(struct str name))
{
	return (struct name_memo){p, ask, NEW_ARRAY(p->strings.n, uint8_t)};
}
static inline uint8_t name_memo_of(const struct name_memo *m, uint32_t id)
{
	if (!m->known[id])
		m->known[id] = (uint8_t)(1 + m->ask(profile_str(m->p, id)));
	return (uint8_t)(m->known[id] - 1);
}
static inline void name_memo_release(struct name_memo *m) { mem_free(m->known); }

#endif
