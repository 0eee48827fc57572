#include "predecessors/torch/tidy/tidy.h"

static bool torch_dataloader_is_loader(const struct tidy *t, uint32_t i, struct str function)
{
	return i != ROW_NONE && str_starts(tidy_name(t, i), STR("torch/utils/data/dataloader.py")) && str_ends(tidy_name(t, i), function);
}

/* With workers, the iterator first looks whether there are too many of them. */
static bool torch_dataloader_match(const struct tidy *t, uint32_t i)
{
	if (!torch_dataloader_is_loader(t, i, STR("__iter__")) || !torch_dataloader_is_loader(t, t->first_child[i], STR("_get_iterator")))
		return false;
	uint32_t first = t->first_child[t->first_child[i]];
	return first != ROW_NONE && !torch_dataloader_is_loader(t, first, STR("check_worker_number_rationality"));
}

static void torch_dataloader_run(const struct profile *p, struct findings *f)
{
	tidy_run(p, f, TIDY_STACKS, "Synchronized DataLoader Pattern",
	         "Detected DataLoader running with synchronized implementation. Please enable asynchronous dataloading by setting num_workers > 0 when "
	         "initializing DataLoader.", torch_dataloader_match);
}

const struct detector detector_tidy_dataloader = {
	.id = "synchronized_dataloader",
	.title = "A DataLoader without workers",
	.why = "The training loop makes the batches itself.",
	.fix = "num_workers > 0.",
	.disprove = "Batches are made in no time.",
	.experts = &tidy_experts,
	.run = torch_dataloader_run,
};
