#include "cli/share.h"

void cli_share_begin(int *argc, char ***argv)
{
}

int cli_share_count(void) { return 1; }

int cli_share_me(void) { return 0; }

bool cli_share_is_relayed(void) { return false; }

void cli_share_list(struct trace_list *l)
{
}

void cli_share_work(const struct trace_list *l, struct job_inputs *in)
{
}

void cli_share_end(struct job_inputs *in)
{
}
