/* .opscope files: traces read before by `opscope import` (store/save.h). */
#include "input/discover.h"
#include "input/input.h"
#include "store/load.h"

static int opscope_sniff(struct str head, const char *path, struct err *e)
{
	return load_sniff(head) ? 100 : 0;
}

/* SQLite reads by itself, and wants to jump about in the file. */
static int opscope_read_file(struct source *s, struct profile *p, struct err *e)
{
	const char *path = source_path(s);
	if (strcmp(path, "-") == 0)
		return err_set(e, ERR_USAGE, "an .opscope file cannot be read from a pipe: give its name");
	if (source_is_compressed(s))
		return err_set(e, ERR_FORMAT, "%s: an .opscope file that was compressed: unpack it first", path);
	return load_profile(path, p, e);
}

/* As the recording said. */
static bool opscope_rank(const char *path, int64_t *rank)
{
	struct buf job = {0};
	struct err e;
	buf_cstr(&job, "\"distributedInfo\":");
	bool found = load_fact(path, "distributedInfo", &job, &e) == 0 && discover_rank_in_head(buf_view(&job), rank);
	buf_release(&job);
	return found;
}

const struct input input_opscope = {
	.name = "opscope",
	.help = "Files made by `opscope import`: a trace read and analysed before, opened many times faster",
	.sniff = opscope_sniff,
	.read = opscope_read_file,
	.rank = opscope_rank,
	.leaves_out = LEFT_FLOWS | LEFT_MEMORY | LEFT_MARKS | LEFT_AUX_IDS,
	.tells_left = true,
};
