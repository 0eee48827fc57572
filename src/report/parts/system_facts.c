#include "report/parts/system_facts.h"

#include "analysis/ranks/rank_place.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"

const struct system_fact_row system_fact_row[SYSTEM_FACTS] = {
	{FACT_PROFILE_NAME, "profile_name", "Profile Name"}, {FACT_GPU_COUNT, "gpu_count", "GPU Count"}, {FACT_GPU_NAMES, "gpu_names", "GPU Name(s)"},
	{FACT_CPU, "cpu_model", "CPU Model"}, {FACT_DRIVER, "gpu_driver_version", "GPU Driver Version"}, {FACT_CUDA, "cuda_driver_version", "CUDA Version (driver)"},
	{FACT_CUDA_RUNTIME, "cuda_runtime_version", "CUDA Version (runtime)"}, {FACT_HIP_DRIVER, "hip_driver_version", "HIP Version (driver)"},
	{FACT_HIP_RUNTIME, "hip_runtime_version", "HIP Version (runtime)"}, {FACT_CUDNN, "cudnn_version", "cuDNN Version"}, {FACT_FRAMEWORK, "framework", "Framework"},
	{FACT_NSYS, "nsys_version", "NSys Version"},
};

/* How a recorder writes a version. */
enum form {
	AS_IT_STANDS,
	DRIVER_NUMBER,  /* 5154304 is 515.43.04, 52510517 525.105.17, 59584 595.84; newer recorders write it out */
	CUDA_NUMBER,    /* 11070 is 11.7 */
	HIP_NUMBER,     /* 70051831 is 7.0.51831 */
	OF_PYTORCH,     /* 2.6.0+cu124 */
	CUDNN_NUMBER,   /* 90100 is 9.1.0, 8902 is 8.9.2 */
};

/* Where a fact may be recorded, the best source first. */
static const struct system_facts_source {
	enum system_fact fact;
	const char *key;
	enum form form;
} sources[] = {
	{FACT_PROFILE_NAME, "system_config:profile_name", AS_IT_STANDS},
	{FACT_CPU, "system_config:cpu_model", AS_IT_STANDS},
	{FACT_CPU, "system:CpuDescription", AS_IT_STANDS},
	{FACT_CPU, "capture:cpu_model", AS_IT_STANDS},
	{FACT_DRIVER, "system_config:driver_version", AS_IT_STANDS},
	{FACT_DRIVER, "system:NvDriverVersion", DRIVER_NUMBER},
	{FACT_DRIVER, "capture:version.driver", AS_IT_STANDS},
	{FACT_FRAMEWORK, "system_config:framework", AS_IT_STANDS},
	{FACT_FRAMEWORK, "torch", OF_PYTORCH},
	{FACT_CUDA, "system_config:cuda_version", AS_IT_STANDS},
	{FACT_CUDA, "system:CudaDriverVersion", CUDA_NUMBER},
	{FACT_CUDA, "cuda_driver_version", CUDA_NUMBER},
	{FACT_CUDA_RUNTIME, "cuda_runtime_version", CUDA_NUMBER},
	{FACT_HIP_DRIVER, "hip_driver_version", HIP_NUMBER},
	{FACT_HIP_RUNTIME, "hip_runtime_version", HIP_NUMBER},
	{FACT_CUDNN, "system_config:cudnn_version", AS_IT_STANDS},
	{FACT_CUDNN, "cudnn", CUDNN_NUMBER},
	{FACT_NSYS, "system_config:nsys_version", AS_IT_STANDS},
	{FACT_NSYS, "EXPORT_PRODUCT_VERSION", AS_IT_STANDS},
};

static struct str in_form(struct str s, enum form form, struct arena *a)
{
	int64_t v;
	if (form == OF_PYTORCH)
		return arena_printf(a, "PyTorch " STR_FMT, STR_ARG(s));
	if (form == AS_IT_STANDS || !str_to_i64(s, &v) || v < 0)
		return s;
	if (form == CUDNN_NUMBER && v >= 90000)
		return arena_printf(a, "%lld.%lld.%lld", (long long)(v / 10000), (long long)(v / 100 % 100), (long long)(v % 100));
	if (form == CUDNN_NUMBER)
		return arena_printf(a, "%lld.%lld.%lld", (long long)(v / 1000), (long long)(v / 100 % 10), (long long)(v % 100));
	if (form == CUDA_NUMBER)
		return arena_printf(a, "%lld.%lld", (long long)(v / 1000), (long long)(v % 1000 / 10));
	if (form == HIP_NUMBER)
		return arena_printf(a, "%lld.%lld.%lld", (long long)(v / 10000000), (long long)(v / 100000 % 100), (long long)(v % 100000));
	if (s.n < 5 || s.n > 8) /* major: 3 digits; minor: 2 or 3; patch: 2, or none */
		return s;
	int minor = s.n == 5 || s.n == 7 ? 2 : 3;
	if (s.n < 7)
		return arena_printf(a, "%.3s.%.*s", s.p, minor, s.p + 3);
	return arena_printf(a, "%.3s.%.*s.%.2s", s.p, minor, s.p + 3, s.p + 3 + minor);
}

/* Rows of p->device in order of their numbers. */
static struct str gpu_names(const struct profile *p, struct arena *a)
{
	uint32_t n = p->device.rows.n;
	struct sort_item *item = NEW_ARRAY_RAW(n, struct sort_item);
	uint8_t *foreign = NEW_ARRAY(n, uint8_t);
	struct buf b = {0};
	rank_foreign_gpus(p, foreign);
	for (uint32_t i = 0; i < n; i++)
		item[i] = (struct sort_item){sort_key_i64(p->device.id[i]), i, 0};
	sort_items(item, n);
	for (uint32_t i = 0; i < n; i++)
		if (!foreign[item[i].row])
			buf_printf(&b, "%s" STR_FMT, b.n ? ", " : "", STR_ARG(profile_str(p, p->device.name[item[i].row])));
	struct str out = b.n ? arena_str(a, buf_view(&b)) : STR("");
	mem_free(item);
	mem_free(foreign);
	buf_release(&b);
	return out;
}

/* How many GPUs: those that the input lists and that are not of other ranks; those that did something, where the list has fewer. */
static uint32_t gpu_count(const struct profile *p)
{
	struct idmap seen;
	uint32_t n = 0;
	idmap_init(&seen, INT32_MIN, INT32_MAX, p->launch.rows.n);
	for (uint32_t i = 0; i < p->launch.rows.n; i++)
		if (idmap_get(&seen, p->launch.device[i]) == IDMAP_NONE)
			idmap_put(&seen, p->launch.device[i], n++);
	idmap_release(&seen);
	return n > rank_own_gpus(p) ? n : rank_own_gpus(p);
}

struct str system_text(const struct profile *p, const char *key)
{
	struct str v;
	return profile_meta(p, key, &v) && !str_eqc(v, "unknown") ? v : STR("");
}

struct str system_fact(const struct profile *p, enum system_fact f, struct arena *a)
{
	if (f == FACT_GPU_COUNT)
		return gpu_count(p) ? arena_printf(a, "%u", gpu_count(p)) : STR("");
	if (f == FACT_GPU_NAMES)
		return gpu_names(p, a);
	for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
		if (sources[i].fact == f && system_text(p, sources[i].key).n)
			return in_form(system_text(p, sources[i].key), sources[i].form, a);
	return STR("");
}
