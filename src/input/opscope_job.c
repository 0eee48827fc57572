/* .opscope files of a job: what `opscope import` keeps of several ranks (store/save_job.h). They hold no recording that could be read as a profile. */
#include "input/input.h"
#include "store/load_job.h"

static int opscope_job_sniff(struct str head, const char *path, struct err *e)
{
	return load_job_sniff(head) ? 100 : 0;
}

static int opscope_job_read(struct source *s, struct profile *p, struct err *e)
{
	return err_set(e, ERR_USAGE, "%s is a job without its recordings: it answers reports of all ranks together, such as `opscope report ranks`, and `opscope advise`; give the folder of the ranks for all else",
	               source_path(s));
}

/* The file may lie in the folder of the ranks that it was made of: it is not a rank itself. */
static bool opscope_job_is_whole(const char *path, struct str root, void **known)
{
	return false;
}

const struct input input_opscope_job = {
	.name = "opscope-job",
	.help = "Files made by `opscope import` of several ranks: what reports of all ranks together need, without the recordings",
	.sniff = opscope_job_sniff,
	.read = opscope_job_read,
	.is_whole = opscope_job_is_whole,
};
