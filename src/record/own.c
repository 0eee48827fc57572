#include "record/own.h"

#include "base/saturate.h"
#include "record/ask_signal.h"
#include "record/paths.h"
#include "record/sample.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* --- the library ------------------------------------------------------------------------------------------------ */

static bool try_path(struct buf *path, struct str dir, const char *below, struct buf *tried)
{
	char *real;
	buf_clear(path);
	buf_printf(path, STR_FMT "/%s" OWN_LIBRARY, STR_ARG(dir), below);
	buf_end_text(path);
	buf_printf(tried, "%s" STR_FMT, tried->n ? ", " : "", STR_ARG(buf_view(path)));
	real = realpath(path->p, NULL); /* the program may change its folder */
	if (!real)
		return false;
	buf_clear(path);
	buf_cstr(path, real);
	buf_end_text(path);
	free(real);
	return true;
}

static struct str folder_of_program(char self[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	while (n > 0 && self[n - 1] != '/')
		n--;
	return (struct str){self, n > 1 ? (size_t)n - 1 : 0};
}

int own_find_library(struct buf *path, struct err *e)
{
	/* beside the program; in the build tree; where it is installed, relative to the program, and as configured */
	static const char *const below[] = {"", "../../collect/", "../" OPSCOPE_LIBDIR_NAME "/"};
	const char *given = getenv("OPSCOPE_INJECT");
	char self[PATH_MAX];
	struct str dir = folder_of_program(self);
	struct buf tried = {0};
	bool found = false;
	if (given && *given) {
		char *real = realpath(given, NULL);
		buf_clear(path);
		buf_cstr(path, real ? real : given);
		buf_end_text(path);
		free(real);
		return real ? 0 : err_set(e, ERR_IO, "OPSCOPE_INJECT=%s: %s", given, strerror(errno));
	}
	for (size_t i = 0; i < sizeof below / sizeof below[0] && !found && dir.n; i++)
		found = try_path(path, dir, below[i], &tried);
	found = found || try_path(path, str_from(OPSCOPE_LIBDIR), "", &tried);
	if (!found)
		err_set(e, ERR_IO, OWN_LIBRARY " was not found, which records inside the program; looked for " STR_FMT, STR_ARG(buf_view(&tried)));
	buf_release(&tried);
	return found ? 0 : -1;
}

/* --- the environment -------------------------------------------------------------------------------------------- */

static const char *own_value_of(char *const *env, const char *name)
{
	size_t n = strlen(name);
	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return getenv(name);
}

int own_check_environment(char *const *env, struct err *e)
{
	static const char *const names[] = {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "QUADD_INJECTION_CONFIG"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = own_value_of(env, names[i]);
		if (!v || !*v)
			continue;
		if (strstr(v, OWN_LIBRARY))
			return err_set(e, ERR_DATA, "%s=%s: this already runs under opscope record", names[i], v);
		return err_set(e, ERR_DATA, "%s=%s: another profiler is set up to record this program (nsys, for one), and only one can; unset %s to record "
		               "without it", names[i], v, names[i]);
	}
	return 0;
}

static void own_put_number(struct words *env, const char *name, int64_t v)
{
	if (v)
		words_printf(env, "%s=%lld", name, (long long)v);
}

static void own_put_text(struct words *env, const char *name, const char *value)
{
	if (value)
		words_printf(env, "%s=%s", name, value);
}

/* Options of an earlier run in our environment must not reach this one: every variable is set, or taken out. */
static void clear_options(struct words *env)
{
	static const char *const names[] = {"OPSCOPE_ASK", "OPSCOPE_DELAY_NS", "OPSCOPE_DURATION_NS", "OPSCOPE_RANGE", "OPSCOPE_CUDA_PROFILER", "OPSCOPE_STEPS", "OPSCOPE_STEP_RANGE",
	                                    "OPSCOPE_MEMORY", "OPSCOPE_SYNC", "OPSCOPE_GRAPH", "OPSCOPE_MAX_SIZE", "OPSCOPE_FULL"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		words_add(env, names[i]);
}

/* What the user set comes first. */
static void put_cupti_path(struct words *env, const struct record_spec *s)
{
	const char *given = own_value_of(s->env.v, "OPSCOPE_CUPTI_PATH");
	struct words folders = {0};
	struct buf b = {0};
	if (given && *given)
		buf_cstr(&b, given);
	own_cupti_folders(s->argv[0], &folders);
	for (int i = 0; i < folders.n; i++)
		buf_printf(&b, "%s%s", b.n ? ":" : "", folders.v[i]);
	if (b.n)
		words_printf(env, "OPSCOPE_CUPTI_PATH=" STR_FMT, STR_ARG(buf_view(&b)));
	words_release(&folders);
	buf_release(&b);
}

void own_environment(const struct record_spec *s, const char *library, struct words *env)
{
	clear_options(env);
	for (int i = 0; i < s->env.n; i++)
		words_add(env, s->env.v[i]);
	own_put_text(env, "CUDA_INJECTION64_PATH", library);
	own_put_text(env, "NVTX_INJECTION64_PATH", library);
	const char *itt = own_value_of(s->env.v, "INTEL_LIBITTNOTIFY64");
	if (!itt || !*itt)
		own_put_text(env, "INTEL_LIBITTNOTIFY64", library);
	own_put_text(env, "OPSCOPE_DIR", s->dir);
	own_put_text(env, "OPSCOPE_ASK", s->ask_folder);
	put_cupti_path(env, s);
	if (!s->ask_folder) { /* else they are about what a signal asks for */
		own_put_number(env, "OPSCOPE_DELAY_NS", s->delay_ns);
		own_put_number(env, "OPSCOPE_DURATION_NS", s->duration_ns);
	}
	if (s->range && strcmp(s->range, RECORD_API_RANGE) == 0)
		own_put_number(env, "OPSCOPE_CUDA_PROFILER", 1);
	else
		own_put_text(env, "OPSCOPE_RANGE", s->range);
	own_put_text(env, "OPSCOPE_STEPS", s->steps);
	own_put_text(env, "OPSCOPE_STEP_RANGE", s->ask_folder ? NULL : s->key_range);
	own_put_number(env, "OPSCOPE_MEMORY", s->memory);
	own_put_number(env, "OPSCOPE_SYNC", s->sync);
	own_put_text(env, "OPSCOPE_GRAPH", s->graph);
	own_put_number(env, "OPSCOPE_MAX_SIZE", s->max_bytes);
	if (s->max_bytes)
		own_put_text(env, "OPSCOPE_FULL", s->ring ? "ring" : "stop");
}

/* --- running ---------------------------------------------------------------------------------------------------- */

struct own_work {
	const struct record_spec *spec;
	struct sampler *sampler;
	struct err why; /* there is none */
	struct ask_signal asking;
};

static void own_signalled(void *context)
{
	struct own_work *w = context;
	ask_signal_came(&w->asking);
}

static void start_sampling(void *context, pid_t pid)
{
	struct own_work *w = context;
	w->sampler = sampler_start(pid, w->spec->dir, w->spec->sample_hz, w->spec->max_bytes, w->spec->ring, &w->why);
}

static void end_sampling(struct own_work *w, struct record_result *r)
{
	struct sampled done;
	if (!w->sampler) {
		words_printf(&r->notes, "--sample=cpu: no stacks were recorded: %s", w->why.msg);
		return;
	}
	sampler_finish(w->sampler, &done);
	if (done.broken)
		words_printf(&r->warnings, "--sample=cpu: stacks could not be written into %s: a part of them is lost", w->spec->dir);
	else if (!done.samples)
		words_add(&r->notes, "--sample=cpu: no stacks were recorded: the program hardly ran on the CPU");
}

int own_run(const struct record_spec *s, const char *library, struct record_result *r, struct err *e)
{
	struct words env = {0};
	struct own_work w = {.spec = s, .asking.request = &s->asked};
	int64_t end_ns = s->delay_ns;
	add_saturated(&end_ns, s->duration_ns);
	own_environment(s, library, &env);
	const struct launch l = {.argv = s->argv, .env = env.v, .term_after_ns = s->kill ? end_ns : 0, .context = &w,
	                         .ready = s->sample_cpu ? start_sampling : NULL, .own_signal = s->ask_signal, .signalled = own_signalled};
	int rc = launch_run(&l, &r->launched, e);
	if (s->sample_cpu)
		end_sampling(&w, r);
	ask_signal_end(&w.asking, &r->notes);
	r->wait_status = r->launched.wait_status;
	buf_clear(&r->capture);
	buf_cstr(&r->capture, s->dir);
	buf_end_text(&r->capture);
	words_release(&env);
	return rc;
}
