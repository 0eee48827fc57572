#include "analysis/names/names.h"

#include "analysis/analysis.h"
#include "store/torch_names.h"

enum names_match_ { MATCH_IS, MATCH_STARTS, MATCH_ENDS, MATCH_HAS };

static const struct host_row {
	enum host_kind kind;
	enum names_match_ match;
	struct str text;
} names_host_rows[] = {
#define HOST_NAME(kind, match, text) {HOST_##kind, MATCH_##match, {(text), sizeof(text) - 1}},
#include "analysis/names/host_names.def"
#undef HOST_NAME
};

static bool names_match(const struct host_row *r, struct str name)
{
	switch (r->match) {
	case MATCH_IS: return str_eq(name, r->text);
	case MATCH_STARTS: return str_starts(name, r->text);
	case MATCH_ENDS: return str_ends(name, r->text);
	default: return str_has(name, r->text);
	}
}

static enum host_kind names_host_kind_of(struct str name)
{
	for (size_t i = 0; i < sizeof names_host_rows / sizeof names_host_rows[0]; i++)
		if (names_match(&names_host_rows[i], name))
			return names_host_rows[i].kind;
	return HOST_PLAIN;
}

bool name_says_dataloader(struct str name)
{
	return names_host_kind_of(name) == HOST_DATA;
}

static bool names_is_wrapper(struct str name)
{
	return str_starts(name, STR("Optimizer.")) || str_eq(name, STR("DataParallel.forward")) || str_eq(name, STR("DistributedDataParallel.forward"));
}

static bool names_is_by_host(struct str name)
{
	return str_starts(name, STR("gloo:")) || str_starts(name, STR("mpi:")) || str_starts(name, STR("ucc:"));
}

static bool names_is_file_io(struct str name)
{
	static const char *const calls[] = {"fread", "fwrite", "fread_unlocked", "fwrite_unlocked", "pread", "pread64", "pwrite", "pwrite64", "preadv",
		                            "pwritev", "readv", "writev", "sendfile", "fsync", "fdatasync"};
	return STR_IN(name, calls);
}

static const struct {
	enum name_fact fact;
	struct str text;
} names_prefixes[] = {
#define PREFIX(fact, text) {NAME_##fact, {(text), sizeof(text) - 1}}
	PREFIX(STEP, TORCH_STEP), PREFIX(MODULE, TORCH_MODULE), PREFIX(ENGINE, TORCH_ENGINE), PREFIX(OPTIMIZER_STEP, TORCH_OPTIMIZER_STEP),
	PREFIX(MODULE_ANNOTATED, "[module]"), PREFIX(MODULE_LIGHTNING, "[pl][module]"),
#undef PREFIX
};

static uint32_t names_facts_of_range(struct str name)
{
	uint32_t facts = 0;
	for (size_t i = 0; i < sizeof names_prefixes / sizeof names_prefixes[0]; i++)
		facts |= str_starts(name, names_prefixes[i].text) ? names_prefixes[i].fact : 0;
	return facts | (names_is_wrapper(name) ? NAME_WRAPPER : 0) | (str_has(name, STR("::")) ? NAME_SCOPED : 0) | (op_is_comm(name) ? NAME_COMM : 0) |
	       (names_is_by_host(name) ? NAME_COMM_BY_HOST : 0) | (op_tc_eligible(name) ? NAME_TC_ELIGIBLE : 0) | (names_is_file_io(name) ? NAME_FILE_IO : 0);
}

/* While names are looked at: a name may be that of ranges and of kernels. */
enum { NAMES_RANGE = 1, NAMES_KERNEL = 2 };

static void names_look_at_range(struct name_facts *n, const struct profile *p, uint32_t id)
{
	struct str name = profile_str(p, id);
	n->facts[id] |= names_facts_of_range(name);
	n->autograd[id] = (uint8_t)autograd_classify(name);
	n->host[id] = (uint8_t)names_host_kind_of(name);
}

static void names_look_at_kernel(struct name_facts *n, const struct profile *p, uint32_t id, uint32_t place)
{
	struct str name = profile_str(p, id);
	n->kernel[id] = place;
	n->info[place] = kernel_classify(name, p->user_rules);
	n->facts[id] |= (n->info[place].class == KERNEL_COMM ? NAME_COMM_KERNEL : 0) | (kernel_uses_tc_listed(name) ? NAME_TC_LISTED : 0);
}

int pass_names(struct profile *p, struct err *e)
{
	struct name_facts *n = ARENA_ARRAY(&p->arena, 1, struct name_facts);
	uint32_t strings = p->strings.n, kernels = 1;
	uint8_t *of = NEW_ARRAY(strings, uint8_t);
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		of[p->span.name[i]] |= NAMES_RANGE;
	for (uint32_t g = 0; g < p->gpu_op.rows.n; g++) {
		uint8_t *x = &of[p->gpu_op.name[g]];
		kernels += p->gpu_op.kind[g] == GPU_KERNEL && !(*x & NAMES_KERNEL);
		*x |= p->gpu_op.kind[g] == GPU_KERNEL ? NAMES_KERNEL : 0;
	}
	n->facts = ARENA_ARRAY(&p->arena, strings, uint32_t);
	n->autograd = ARENA_ARRAY(&p->arena, strings, uint8_t);
	n->host = ARENA_ARRAY(&p->arena, strings, uint8_t);
	n->kernel = ARENA_ARRAY(&p->arena, strings, uint32_t);
	n->info = ARENA_ARRAY(&p->arena, kernels, struct kernel_info);
	n->info[0] = kernel_classify(STR(""), p->user_rules);
	for (uint32_t id = 0, place = 1; id < strings; id++) {
		if (of[id] & NAMES_RANGE)
			names_look_at_range(n, p, id);
		if (of[id] & NAMES_KERNEL)
			names_look_at_kernel(n, p, id, place++);
	}
	mem_free(of);
	p->names = n;
	return 0;
}
