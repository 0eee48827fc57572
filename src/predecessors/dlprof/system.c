#include "predecessors/dlprof/system.h"

#include "report/parts/system_facts.h"

const struct predecessor_fact dlprof_facts[] = {
	{"dlprof_version", "DLProf Version", "system_config:dlprof_version"},
	{"dlprof_build", "DLProf Build", "system_config:dlprof_build"},
	{0},
};

static void dlprof_system_put_fact(struct table *t, const char *title, struct str value)
{
	if (!value.n)
		return;
	table_row(t);
	table_set_str(t, 0, str_from(title));
	table_set_str(t, 1, value);
}

void dlprof_system_rows(const struct profile *p, struct table *t)
{
	static const struct {
		enum system_fact fact;
		const char *title;
	} rows[] = {
		{FACT_PROFILE_NAME, "Profile Name"}, {FACT_GPU_COUNT, "GPU Count"}, {FACT_GPU_NAMES, "GPU Name(s)"}, {FACT_CPU, "CPU Model"},
		{FACT_DRIVER, "GPU Driver Version"}, {FACT_FRAMEWORK, "Framework"}, {FACT_CUDA, "CUDA Version"}, {FACT_CUDNN, "cuDNN Version"},
		{FACT_NSYS, "NSys Version"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		dlprof_system_put_fact(t, rows[i].title, system_fact(p, rows[i].fact, &t->arena));
	for (const struct predecessor_fact *f = dlprof_facts; f->id; f++)
		dlprof_system_put_fact(t, f->title, system_text(p, f->key));
}
