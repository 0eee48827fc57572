/* Where a libcupti may lie that neither the program has loaded nor the loader finds: beside the Python that runs, as wheels of torch and jax bring it. */
#include "record/own.h"

#include "base/program.h"

#include <glob.h>
#include <stdlib.h>

static void add_matches(struct words *folders, const char *prefix, const char *below)
{
	struct buf pattern = {0};
	glob_t found = {0};
	buf_printf(&pattern, "%s/%s", prefix, below);
	buf_char(&pattern, 0);
	if (glob(pattern.p, GLOB_ONLYDIR, NULL, &found) == 0)
		for (size_t i = found.gl_pathc; i > 0; i--) /* the newest first */
			if (!strchr(found.gl_pathv[i - 1], ':') && !words_has(folders, found.gl_pathv[i - 1]))
				words_printf(folders, "%s", found.gl_pathv[i - 1]);
	globfree(&found);
	buf_release(&pattern);
}

static void add_prefix(struct words *folders, const char *prefix)
{
	static const char *const below[] = {
		"lib/python3*/site-packages/nvidia/cu[1-9][0-9]/lib", "lib/python3*/site-packages/nvidia/cuda_cupti/lib",
		"lib/python3*/dist-packages/nvidia/cu[1-9][0-9]/lib", "lib/python3*/dist-packages/nvidia/cuda_cupti/lib",
		"extras/CUPTI/lib64",
	};
	for (size_t i = 0; prefix && *prefix && i < sizeof below / sizeof below[0]; i++)
		add_matches(folders, prefix, below[i]);
}

/* PREFIX of PREFIX/bin/PROGRAM. */
static void add_program(struct words *folders, const char *path)
{
	struct str s = str_from(path);
	for (int i = 0; i < 2; i++) {
		while (s.n && s.p[s.n - 1] != '/')
			s.n--;
		while (s.n > 1 && s.p[s.n - 1] == '/')
			s.n--;
	}
	struct words prefix = {0};
	words_printf(&prefix, STR_FMT, STR_ARG(s));
	add_prefix(folders, prefix.v[0]);
	words_release(&prefix);
}

void own_cupti_folders(const char *program, struct words *folders)
{
	static const char *const roots[] = {"VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"};
	struct buf path = {0};
	if (program_find(program, &path) == 0) {
		char *real = realpath(path.p, NULL);
		add_program(folders, path.p);
		if (real)
			add_program(folders, real);
		free(real);
	}
	for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
		add_prefix(folders, getenv(roots[i]));
	buf_release(&path);
}
