#include "facts.h"

#include "options.h"
#include "sys.h"
#include "writer.h"

#include "base/secret.h"

#include <string.h>

/* Of the one thread that opens a segment: the stack of whoever is the first to say something may be small. A little more than fits, so that
 * what is longer is flagged as cut. */
static char facts_text[WIRE_MAX_STRING + 8];

static void facts_keep_file(const char *key, const char *path)
{
	size_t n = sys_read_file(path, facts_text, sizeof facts_text);
	if (n)
		keep_meta(key, facts_text, n);
}

/* What the kernel calls the first processor; some architectures have no such line. */
static void facts_keep_processor(void)
{
	static const char line[] = "model name";
	size_t n = sys_read_file("/proc/cpuinfo", facts_text, sizeof facts_text - 1);
	facts_text[n < sizeof facts_text ? n : sizeof facts_text - 1] = '\0';
	const char *name = strstr(facts_text, line), *end = name ? strchr(name, '\n') : NULL;
	if (!end)
		return;
	for (name += sizeof line - 1; name < end && (*name == ' ' || *name == '\t' || *name == ':'); name++)
		;
	if (name < end)
		keep_meta("cpu_model", name, (size_t)(end - name));
}

/* The words of the command line, without the secrets among them. */
static void facts_keep_command(void)
{
	size_t n = sys_read_file("/proc/self/cmdline", facts_text, sizeof facts_text);
	if (n)
		keep_meta("argv", facts_text, secret_mask(facts_text, n));
}

static void facts_keep_link(const char *key, const char *path)
{
	long n = syscall(SYS_readlinkat, AT_FDCWD, path, facts_text, sizeof facts_text);
	if (n > 0)
		keep_meta(key, facts_text, (size_t)n);
}

/* What says which part of a job a process is. */
static const char *const facts_ranks[] = {
	"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_NAME", "ROLE_RANK", "TORCHELASTIC_RUN_ID",
	"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALRANKID",
	"MV2_COMM_WORLD_RANK", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NODEID", "CUDA_VISIBLE_DEVICES",
};

void facts_keep(void)
{
	facts_keep_command();
	facts_keep_processor();
	facts_keep_link("exe", "/proc/self/exe");
	facts_keep_link("cwd", "/proc/self/cwd");
	facts_keep_file("kernel", "/proc/sys/kernel/osrelease");
	for (size_t i = 0; i < sizeof facts_ranks / sizeof facts_ranks[0]; i++) {
		const char *v = sys_environment(facts_ranks[i]);
		char key[64] = "env.";
		if (v && *v)
			keep_meta(strcat(key, facts_ranks[i]), v, strlen(v));
	}
	const char *name, *value;
	for (int i = 0; options_at(i, &name, &value); i++) {
		char key[64] = "option.";
		if (strlen(name) < sizeof key - 8)
			keep_meta(strcat(key, name), value, strlen(value));
	}
	if (options_left_out()[0])
		note("option-left-out", true, options_left_out(), " was not looked at: variables OPSCOPE_* that are too long, or too many", NULL);
}
