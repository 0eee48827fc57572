#include "record/job.h"

#include <stdio.h>
#include <stdlib.h>

/* A launcher that starts every rank by itself. The variables: its rank, how many there are (more than one: else this is a program like any
 * other), and what together tells the job from others; "!": it must be there. */
struct launcher {
	const char *name, *rank, *size;
	const char *id[4];
};

static const struct launcher launchers[] = {
	{"torchrun", "RANK", "WORLD_SIZE", {"!TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}},
	{"slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"!SLURM_JOB_ID", "SLURM_STEP_ID"}},
	{"mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"!PMIX_NAMESPACE"}},
	{"mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"!OMPI_MCA_ess_base_jobid"}},
	{"mpi", "PMI_RANK", "PMI_SIZE", {"!PMI_PORT"}},
	{"mpi", "PMI_RANK", "PMI_SIZE", {"!PMI_JOBID"}},
};
enum { N_LAUNCHERS = sizeof launchers / sizeof launchers[0] };

static bool job_number(const char *name, int64_t *v)
{
	const char *text = getenv(name);
	return text && str_to_i64(str_from(text), v) && *v >= 0;
}

static bool is_rank(const struct launcher *l, struct record_job *j)
{
	int64_t rank, size;
	if (!job_number(l->rank, &rank) || !job_number(l->size, &size) || size < 2 || rank >= size)
		return false;
	const char *restart = getenv("TORCHELASTIC_RESTART_COUNT");
	bool again = restart && *restart && strcmp(restart, "0") != 0;
	j->has_rank = true;
	j->rank = rank;
	j->size = size;
	snprintf(j->member, sizeof j->member, "rank %lld%s%.20s", (long long)rank, again ? ", restart " : "", again ? restart : "");
	return true;
}

static void name_job(const struct launcher *l, struct record_job *j)
{
	size_t n = (size_t)snprintf(j->id, sizeof j->id, "%s", l->name);
	for (int i = 0; i < 4 && l->id[i] && n < sizeof j->id; i++) {
		bool must = *l->id[i] == '!';
		const char *value = getenv(l->id[i] + must);
		if (must && !(value && *value)) {
			*j->id = 0;
			return;
		}
		if (value && *value)
			n += (size_t)snprintf(j->id + n, sizeof j->id - n, "-%s", value);
	}
}

void record_job(struct record_job *j)
{
	const char *given = getenv("OPSCOPE_JOB");
	*j = (struct record_job){0};
	for (int i = 0; i < N_LAUNCHERS && !*j->id; i++) {
		struct record_job other = {0};
		if (!is_rank(&launchers[i], &other))
			continue;
		if (!j->has_rank)
			*j = other;
		name_job(&launchers[i], j);
	}
	if (j->has_rank && given && *given)
		snprintf(j->id, sizeof j->id, "%s", given);
}
