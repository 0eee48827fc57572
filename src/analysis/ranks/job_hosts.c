/* On which hosts the ranks of a job ran: by the names that recordings state, and by being of one recording; else, where every process saw the same number n of GPUs
 * and worked on that of its rank modulo n, n ranks are a host. */
#include "analysis/ranks/job.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/search.h"

/* Ranks of one recording are on one machine, named or not. */
static void job_hosts_put_key(const struct job *j, uint32_t r, struct buf *key)
{
	const struct rank *x = j->rank[r];
	bool shared = (r && str_eq(j->rank[r - 1]->path, x->path)) || (r + 1 < j->n && str_eq(j->rank[r + 1]->path, x->path));
	buf_clear(key);
	if (x->host.n)
		buf_printf(key, "host " STR_FMT, STR_ARG(x->host));
	else if (shared)
		buf_printf(key, "file " STR_FMT, STR_ARG(x->path));
}

/* False: a rank's recording does not tell. */
static bool job_hosts_recorded(struct job *j)
{
	struct intern keys;
	struct buf key = {0};
	bool all = true;
	intern_init(&keys);
	for (uint32_t r = 0; r < j->n; r++) {
		job_hosts_put_key(j, r, &key);
		j->host[r] = key.n ? intern_str(&keys, buf_view(&key)) - 1 : JOB_HOST_UNKNOWN;
		all &= key.n > 0;
	}
	j->n_hosts = all ? keys.n - 1 : 0;
	buf_release(&key);
	intern_release(&keys);
	return all;
}

static bool job_hosts_by_gpus(struct job *j)
{
	const uint32_t seen = j->rank[0]->gpus_seen;
	for (uint32_t r = 0; r < j->n; r++) {
		const struct rank *x = j->rank[r];
		if (seen < 2 || x->gpus_seen != seen || x->number < 0 || x->device != (int64_t)(x->number % seen))
			return false;
	}
	for (uint32_t r = 0; r < j->n; r++) {
		j->n_hosts += !r || j->rank[r]->number / seen != j->rank[r - 1]->number / seen; /* ranks are in order of their numbers */
		j->host[r] = j->n_hosts - 1;
	}
	return true;
}

/* How many hosts a group is on. Members that are not here count where hosts follow from the number of a rank. */
static uint32_t job_hosts_of_group(const struct job *j, const struct job_group *g, uint8_t *seen)
{
	uint32_t n = 0;
	if (j->hosts_by == JOB_HOSTS_BY_GPUS && g->member) {
		const int64_t size = j->rank[0]->gpus_seen;
		for (uint32_t i = 0; i < g->n_members; i++)
			n += !i || g->member[i] / size != g->member[i - 1] / size;
		return n;
	}
	if (!j->n_hosts || g->n_ranks < g->n_members)
		return 0;
	memset(seen, 0, j->n_hosts);
	for (uint32_t i = g->first; i < g->first + g->n; i++)
		for (uint32_t k = 0; k < j->instance[i].n; k++) {
			uint32_t host = j->host[j->instance[i].part[k].rank];
			n += !seen[host];
			seen[host] = 1;
		}
	return n;
}

void job_find_hosts(struct job *j)
{
	mem_free(j->host);
	j->n_hosts = 0;
	j->host = NEW_ARRAY(j->n, uint32_t);
	j->hosts_by = job_hosts_recorded(j) ? JOB_HOSTS_RECORDED : JOB_HOSTS_UNKNOWN;
	if (j->hosts_by == JOB_HOSTS_UNKNOWN && job_hosts_by_gpus(j))
		j->hosts_by = JOB_HOSTS_BY_GPUS;
	uint8_t *seen = NEW_ARRAY(j->n + 1, uint8_t);
	for (uint32_t g = 0; g < j->n_groups; g++)
		j->group[g].hosts = job_hosts_of_group(j, &j->group[g], seen);
	mem_free(seen);
}

uint32_t job_rank_of(const struct job *j, int64_t number)
{
	uint32_t at = FIRST_WHERE(i, 0, j->n, j->rank[i]->number == RANK_UNKNOWN || j->rank[i]->number >= number);
	return at < j->n && j->rank[at]->number == number ? at : j->n;
}

int job_share_host(const struct job *j, int64_t a, int64_t b)
{
	uint32_t x = job_rank_of(j, a), y = job_rank_of(j, b);
	if (j->hosts_by == JOB_HOSTS_BY_GPUS)
		return a / j->rank[0]->gpus_seen == b / j->rank[0]->gpus_seen;
	if (x == j->n || y == j->n || j->host[x] == JOB_HOST_UNKNOWN || j->host[y] == JOB_HOST_UNKNOWN)
		return -1;
	return j->host[x] == j->host[y];
}
