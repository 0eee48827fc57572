#include "nvml.h"
#include "cupti.h"
#include "glibc.h"
#include "sys.h"
#include "writer.h"

#include <stdio.h>
#include <string.h>

/* NVML's types and numbers (nvml.h of the driver's development files): all return 0 for success. */
typedef struct nvml_device *device_handle;
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };
struct nvml_memory { uint64_t total, free, used; };
struct nvml_utilization { unsigned gpu, memory; };

#define NVML_CALLS(X)                                                                       \
	X(Init_v2, (void))                                                                  \
	X(SystemGetDriverVersion, (char *text, unsigned n))                                 \
	X(DeviceGetHandleByPciBusId_v2, (const char *id, device_handle *))                  \
	X(DeviceGetIndex, (device_handle, unsigned *index))                                 \
	X(DeviceGetName, (device_handle, char *text, unsigned n))                           \
	X(DeviceGetUUID, (device_handle, char *text, unsigned n))                           \
	X(DeviceGetMemoryInfo, (device_handle, struct nvml_memory *))                       \
	X(DeviceGetUtilizationRates, (device_handle, struct nvml_utilization *))            \
	X(DeviceGetClockInfo, (device_handle, int clock, unsigned *mhz))                    \
	X(DeviceGetPowerUsage, (device_handle, unsigned *mw))                               \
	X(DeviceGetTemperature, (device_handle, int sensor, unsigned *degrees))             \
	X(DeviceGetCurrentClocksEventReasons, (device_handle, uint64_t *mask))              \
	X(DeviceGetCurrentClocksThrottleReasons, (device_handle, uint64_t *mask))

static struct {
#define CALL_(name, arguments) int (*name) arguments;
	NVML_CALLS(CALL_)
} call;

enum { DEVICES = 32 };
static struct {
	device_handle handle;        /* NULL = NVML does not know it */
	uint32_t index;
} devices[DEVICES];
static int n_devices;

/* pid << 2 | phase: a forked child of the process that opened NVML finds another pid, and leaves its handles alone. */
enum phase { NOT_WANTED = 0, WANTED, OPEN, FAILED };
static _Atomic int64_t state;

void nvml_start(void)
{
	if (!option("GPU_SAMPLES") || strcmp(option("GPU_SAMPLES"), "0") != 0)
		atomic_store(&state, (int64_t)getpid() << 2 | WANTED);
}

void nvml_end(void) { atomic_store(&state, NOT_WANTED); }

static bool nvml_load(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
	if (!library)
		return false;
	char name[64] = "nvml";
#define FIND_(function, arguments)                                \
	strcpy(name + 4, #function);                              \
	*(void **)&call.function = dlsym(library, name);
	NVML_CALLS(FIND_)
	return call.Init_v2 && call.DeviceGetHandleByPciBusId_v2 && call.Init_v2() == 0;
}

/* The 16 bytes of "GPU-" and five groups of hexadecimal digits. */
static void read_uuid(const char *text, uint8_t uuid[16])
{
	unsigned n = 0;
	for (const char *p = strchr(text, '-'); p && *p && n < 32; p++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, *p | 0x20);
		if (*p == '-' || !at || !*at)
			continue;
		uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 | (uint8_t)(at - digits));
		n++;
	}
}

static void nvml_describe(int device)
{
	char text[96] = "";
	struct nvml_memory memory;
	struct wire_device d = {.device = (uint32_t)device, .nvml_index = devices[device].index};
	if (call.DeviceGetMemoryInfo && call.DeviceGetMemoryInfo(devices[device].handle, &memory) == 0)
		d.memory_bytes = memory.total;
	if (call.DeviceGetUUID && call.DeviceGetUUID(devices[device].handle, text, sizeof text) == 0)
		read_uuid(text, d.uuid);
	text[0] = 0;
	if (call.DeviceGetName && call.DeviceGetName(devices[device].handle, text, sizeof text) != 0)
		text[0] = 0;
	text[sizeof text - 1] = 0;
	d.head = writer_head(WIRE_DEVICE, 0, intern_cstr(text), sizeof d);
	keep(&d, sizeof d, true);
}

/* The devices that CUDA shows to this process, in its order. False = CUDA is not ready yet. */
static bool nvml_find_devices(void)
{
	int (*count)(int *) = NULL, (*bus_id)(char *, int, int) = NULL, n = 0;
	*(void **)&count = cuda_function("cuDeviceGetCount");
	*(void **)&bus_id = cuda_function("cuDeviceGetPCIBusId");
	if (!count || !bus_id || count(&n) != 0)
		return false;
	n_devices = n < 0 ? 0 : n > DEVICES ? DEVICES : n;
	for (int d = 0; d < n_devices; d++) {
		char id[32] = "";
		unsigned index;
		if (bus_id(id, sizeof id, d) != 0 || call.DeviceGetHandleByPciBusId_v2(id, &devices[d].handle) != 0) {
			devices[d].handle = NULL;
			continue;
		}
		devices[d].index = call.DeviceGetIndex && call.DeviceGetIndex(devices[d].handle, &index) == 0 ? index : (uint32_t)d;
		nvml_describe(d);
	}
	return true;
}

static void open_nvml(void)
{
	static bool loaded;
	int64_t pid = (int64_t)getpid() << 2;
	if (!loaded && !nvml_load()) {
		note("nvml-not-available", false, "no samples of the GPU's clocks, memory and temperature: libnvidia-ml.so.1 cannot be used", NULL);
		atomic_store(&state, pid | FAILED);
		return;
	}
	loaded = true;
	if (!nvml_find_devices())
		return;
	char text[96] = "";
	if (call.SystemGetDriverVersion && call.SystemGetDriverVersion(text, sizeof text) == 0) {
		text[sizeof text - 1] = 0;
		keep_meta("version.driver", text, strlen(text));
	}
	atomic_store(&state, pid | OPEN);
}

enum { GPU_PCT, MEMORY_PCT, SM_MHZ, MEMORY_MHZ, POWER, TEMPERATURE, MEMORY_USED, THROTTLE };

/* What the device answers now; bits of wire_gpu_sample.head.id. */
static void nvml_ask(device_handle d, struct wire_gpu_sample *s)
{
	struct nvml_memory memory;
	struct nvml_utilization rate;
	unsigned v;
	uint64_t mask;
	uint32_t have = 0;
	if (call.DeviceGetMemoryInfo && call.DeviceGetMemoryInfo(d, &memory) == 0)
		s->memory_used_bytes = memory.used, have |= 1u << MEMORY_USED;
	if (call.DeviceGetUtilizationRates && call.DeviceGetUtilizationRates(d, &rate) == 0)
		s->gpu_pct = rate.gpu, s->memory_pct = rate.memory, have |= 1u << GPU_PCT | 1u << MEMORY_PCT;
	if (call.DeviceGetClockInfo && call.DeviceGetClockInfo(d, NVML_CLOCK_SM, &v) == 0)
		s->sm_mhz = v, have |= 1u << SM_MHZ;
	if (call.DeviceGetClockInfo && call.DeviceGetClockInfo(d, NVML_CLOCK_MEM, &v) == 0)
		s->memory_mhz = v, have |= 1u << MEMORY_MHZ;
	if (call.DeviceGetPowerUsage && call.DeviceGetPowerUsage(d, &v) == 0)
		s->power_mw = v, have |= 1u << POWER;
	if (call.DeviceGetTemperature && call.DeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &v) == 0)
		s->temperature_c = v, have |= 1u << TEMPERATURE;
	/* The same function: renamed in CUDA 12.2, the old name is to go. */
	if ((call.DeviceGetCurrentClocksEventReasons && call.DeviceGetCurrentClocksEventReasons(d, &mask) == 0) ||
	    (call.DeviceGetCurrentClocksThrottleReasons && call.DeviceGetCurrentClocksThrottleReasons(d, &mask) == 0))
		s->throttle = mask, have |= 1u << THROTTLE;
	s->head = writer_head(WIRE_GPU_SAMPLE, 0, have, sizeof *s);
}

static void sample(int device)
{
	struct wire_gpu_sample s = {.time_ns = now_ns(), .nvml_index = devices[device].index};
	nvml_ask(devices[device].handle, &s);
	struct writer *w = s.head.id ? writer_enter() : NULL;
	if (w) {
		writer_append(w, &s, sizeof s);
		writer_leave(w);
	}
}

/* Where CUPTI tells, only devices that the process has a context on: another rank of the job asks for the others. */
void nvml_tick(void)
{
	int64_t now = atomic_load(&state);
	if (now >> 2 != getpid() || (now & 3) == NOT_WANTED || (now & 3) == FAILED)
		return;
	if ((now & 3) == WANTED)
		open_nvml();
	if ((atomic_load(&state) & 3) != OPEN)
		return;
	uint64_t used = cupti_is_on() ? atomic_load_explicit(&cupti.devices, memory_order_relaxed) : UINT64_MAX;
	for (int d = 0; d < n_devices; d++)
		if (devices[d].handle && used >> d & 1)
			sample(d);
}
