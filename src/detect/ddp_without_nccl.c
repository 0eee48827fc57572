#include "base/search.h"
#include "detect/parts/shared.h"

/* Any trace of NCCL (or RCCL, which goes by the same names): collectives, kernels, or the backend as stated. */
static bool uses_nccl(const struct profile *p)
{
	struct str backend;
	if (profile_meta(p, "distributedInfo", &backend) && str_has(backend, STR("nccl")))
		return true;
	return ANY_WHERE(i, 0, p->strings.n, str_starts(profile_str(p, i), STR("nccl")));
}

/* NCCL needs compute capability 3.5. -1 = not stated. */
static int can_nccl(const struct profile *p)
{
	int answer = -1;
	for (uint32_t i = 0; i < p->device.rows.n; i++) {
		int32_t major = p->device.cc_major[i], minor = p->device.cc_minor[i];
		if (major < 0)
			continue;
		if (major > 3 || (major == 3 && minor >= 5))
			return 1;
		answer = 0;
	}
	return answer;
}

static void ddp_without_nccl_run(const struct profile *p, struct findings *f)
{
	uint32_t forward = intern_find(&p->strings, STR("DistributedDataParallel.forward"));
	if (forward == INTERN_NONE || uses_nccl(p))
		return;
	int can = can_nccl(p);
	if (can < 0)
		findings_missing(f, "the input does not state the GPUs' compute capability");
	if (can <= 0)
		return;
	struct finding *x = findings_add(f, FINDING_MEDIUM);
	x->problem = STR("DistributedDataParallel is used without the NCCL backend, though the GPUs support it");
	x->evidence = STR("DistributedDataParallel.forward is called, and neither a collective, nor a kernel, nor distributedInfo names NCCL");
	for (uint32_t i = 0; i < p->span.rows.n; i++)
		if (p->span.name[i] == forward)
			finding_looks_at(x, p->span.start_ns[i], span_end(p, i));
}

const struct detector detector_ddp_without_nccl = {
	.id = "ddp-without-nccl",
	.title = "DistributedDataParallel without NCCL",
	.why = "Gloo and MPI move gradients through host memory; NCCL moves them between the GPUs.",
	.fix = "Use init_process_group(backend=\"nccl\").",
	.disprove = "The process group is of NCCL, and the recording holds neither its collectives nor its kernels (a step without backward).",
	.run = ddp_without_nccl_run,
};
