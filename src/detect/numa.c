#include "detect/parts/copies.h"

/* Percent of the steps' time in copies that nothing hides: with less, it does not matter where host memory lies. */
static const double WORTH = 1;

static bool is_host_copy(const struct profile *p, uint32_t g)
{
	return copy_way(profile_str(p, p->gpu_op.name[g])) != COPY_NEITHER;
}

/* Nsight Systems states the CPUs of threads (--cpuctxsw), the sockets of CPUs and the bus of a GPU, but not to which socket a bus belongs; others state none
 * of it. So this detector never finds anything: where copies matter it says that it cannot know, and how the user can. */
static void numa_run(const struct profile *p, struct findings *f)
{
	const struct step_time *w = shared_steps(f);
	struct copies c;
	copies_measure(p, f, w, is_host_copy, &c);
	if (step_time_pct(w, c.exposed_ns) >= WORTH)
		findings_missing(f, "no recording states to which NUMA node a GPU belongs");
	copies_release(&c);
}

const struct detector detector_numa = {
	.id = "numa",
	.title = "Host memory on another socket than the GPU's",
	.why = "On a machine of several sockets a copy between a GPU and memory of the other socket crosses the link between them, which is slower. No recording "
	       "says so. Where copies matter, this detector says how to find out.",
	.fix = "Bind each process to the node of its GPU: numactl --cpunodebind=N --membind=N, or the launcher's option for it (torchrun --numa-binding=node).",
	.disprove = "Copies are as fast under numactl for each node.",
	.report = "memcpy",
	.where = DETECT_WINDOW,
	.run = numa_run,
};
