#include "analysis/names.h"

#include "analysis/analysis.h"
#include "store/torch_names.h"

enum match { MATCH_IS, MATCH_STARTS, MATCH_ENDS, MATCH_HAS };

static const struct host_row {
	enum host_kind kind;
	enum match match;
	struct str text;
} host_rows[] = {
#define HOST_NAME(kind, match, text) {HOST_##kind, MATCH_##match, {(text), sizeof(text) - 1}},
#include "analysis/host_names.def"
#undef HOST_NAME
};

static bool matches(const struct host_row *r, struct str name)
{
	switch (r->match) {
	case MATCH_IS: return str_eq(name, r->text);
	case MATCH_STARTS: return str_starts(name, r->text);
	case MATCH_ENDS: return str_ends(name, r->text);
	default: return str_has(name, r->text);
	}
}

static enum host_kind host_kind_of(struct str name)
{
	for (size_t i = 0; i < sizeof host_rows / sizeof host_rows[0]; i++)
		if (matches(&host_rows[i], name))
			return host_rows[i].kind;
	return HOST_PLAIN;
}

bool name_says_dataloader(struct str name)
{
	return host_kind_of(name) == HOST_DATA;
}

static bool is_wrapper(struct str name)
{
	return str_starts(name, STR("Optimizer.")) || str_eq(name, STR("DataParallel.forward")) || str_eq(name, STR("DistributedDataParallel.forward"));
}

static bool is_by_host(struct str name)
{
	return str_starts(name, STR("gloo:")) || str_starts(name, STR("mpi:")) || str_starts(name, STR("ucc:"));
}

static bool is_file_io(struct str name)
{
	static const char *const calls[] = {"fread", "fwrite", "fread_unlocked", "fwrite_unlocked", "pread", "pread64", "pwrite", "pwrite64", "preadv",
		                            "pwritev", "readv", "writev", "sendfile", "fsync", "fdatasync"};
	return STR_IN(name, calls);
}

static uint32_t facts_of_range(struct str name)
{
	static const struct {
		struct str prefix;
		enum name_fact fact;
	} prefixes[] = {
		{{TORCH_STEP, sizeof TORCH_STEP - 1}, NAME_STEP},
		{{TORCH_MODULE, sizeof TORCH_MODULE - 1}, NAME_MODULE},
		{{TORCH_ENGINE, sizeof TORCH_ENGINE - 1}, NAME_ENGINE},
		{{"[module]", 8}, NAME_MODULE_ANNOTATED},
		{{"[pl][module]", 12}, NAME_MODULE_LIGHTNING},
		{{TORCH_OPTIMIZER_STEP, sizeof TORCH_OPTIMIZER_STEP - 1}, NAME_OPTIMIZER_STEP},
	};
	uint32_t facts = 0;
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
		facts |= str_starts(name, prefixes[i].prefix) ? prefixes[i].fact : 0;
	facts |= str_has(name, STR("::")) ? NAME_SCOPED : 0;
	return facts | (is_wrapper(name) ? NAME_WRAPPER : 0) | (op_is_comm(name) ? NAME_COMM : 0) | (is_by_host(name) ? NAME_COMM_BY_HOST : 0) |
	       (op_tc_eligible(name) ? NAME_TC_ELIGIBLE : 0) | (is_file_io(name) ? NAME_FILE_IO : 0);
}

/* While names are looked at: a name may be that of ranges and of kernels. */
enum { RANGE = 1, KERNEL = 2 };

static void look_at_range(struct name_facts *n, const struct profile *p, uint32_t id)
{
	struct str name = profile_str(p, id);
	n->facts[id] |= facts_of_range(name);
	n->autograd[id] = (uint8_t)autograd_classify(name);
	n->host[id] = (uint8_t)host_kind_of(name);
}

static void look_at_kernel(struct name_facts *n, const struct profile *p, uint32_t id, uint32_t place)
{
	struct str name = profile_str(p, id);
	n->kernel[id] = place;
	n->info[place] = kernel_classify(name);
	n->facts[id] |= (n->info[place].class == KERNEL_COMM ? NAME_COMM_KERNEL : 0) | (kernel_uses_tc_compat(name) ? NAME_TC_LISTED : 0);
}

int pass_names(struct profile *p, struct err *e)
{
	(void)e;
	struct name_facts *n = ARENA_ARRAY(&p->arena, 1, struct name_facts);
	uint32_t strings = p->strings.n, kernels = 1;
	uint8_t *of = NEW_ARRAY(strings, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		of[p->span.name[i]] |= RANGE;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint8_t *x = &of[p->gpu_op.name[g]];
		kernels += p->gpu_op.kind[g] == GPU_KERNEL && !(*x & KERNEL);
		*x |= p->gpu_op.kind[g] == GPU_KERNEL ? KERNEL : 0;
	}
	n->facts = ARENA_ARRAY(&p->arena, strings, uint32_t);
	n->autograd = ARENA_ARRAY(&p->arena, strings, uint8_t);
	n->host = ARENA_ARRAY(&p->arena, strings, uint8_t);
	n->kernel = ARENA_ARRAY(&p->arena, strings, uint32_t);
	n->info = ARENA_ARRAY(&p->arena, kernels, struct kernel_info);
	n->info[0] = kernel_classify(STR(""));
	for (uint32_t id = 0, place = 1; id < strings; id++) {
		if (of[id] & RANGE)
			look_at_range(n, p, id);
		if (of[id] & KERNEL)
			look_at_kernel(n, p, id, place++);
	}
	mem_free(of);
	p->names = n;
	return 0;
}
