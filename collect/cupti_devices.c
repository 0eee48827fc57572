/* Devices, as the driver describes them: CUPTI tells of those that it sees being initialised, which a capture that begins later has missed. */
#include "cupti.h"
#include "writer.h"

#include <string.h>

/* The driver's numbers. */
enum attribute { WARP_SIZE = 10, CLOCK_KHZ = 13, SM_COUNT = 16, MEMORY_CLOCK_KHZ = 36, BUS_BITS = 37, THREADS_PER_SM = 39, CC_MAJOR = 75, CC_MINOR = 76 };

static struct {
	int (*get)(int *device, int ordinal);
	int (*count)(int *n);
	int (*name)(char *to, int n, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*memory)(size_t *bytes, int device);
	int (*uuid)(uint8_t uuid[16], int device);
} driver;

static bool find_driver(void)
{
	*(void **)&driver.get = cuda_function("cuDeviceGet");
	*(void **)&driver.count = cuda_function("cuDeviceGetCount");
	*(void **)&driver.name = cuda_function("cuDeviceGetName");
	*(void **)&driver.attribute = cuda_function("cuDeviceGetAttribute");
	*(void **)&driver.memory = cuda_function("cuDeviceTotalMem_v2");
	*(void **)&driver.uuid = cuda_function("cuDeviceGetUuid");
	return driver.get && driver.count && driver.name && driver.attribute;
}

/* 0 = unknown. */
static uint32_t cupti_devices_attribute(enum attribute which, int device)
{
	int v = 0;
	return driver.attribute(&v, (int)which, device) == 0 && v > 0 ? (uint32_t)v : 0;
}

static void cupti_devices_describe(int ordinal)
{
	char name[128] = "";
	size_t bytes = 0;
	int device;
	if (driver.get(&device, ordinal) != 0 || driver.name(name, sizeof name - 1, device) != 0)
		return;
	struct wire_device d = {.device = (uint32_t)ordinal, .nvml_index = UINT32_MAX, .cc_major = cupti_devices_attribute(CC_MAJOR, device), .cc_minor = cupti_devices_attribute(CC_MINOR, device),
	                        .sm_count = cupti_devices_attribute(SM_COUNT, device), .clock_khz = cupti_devices_attribute(CLOCK_KHZ, device), .threads_per_warp = cupti_devices_attribute(WARP_SIZE, device)};
	if (driver.memory && driver.memory(&bytes, device) == 0)
		d.memory_bytes = bytes;
	if (!driver.uuid || driver.uuid(d.uuid, device) != 0)
		memset(d.uuid, 0, sizeof d.uuid);
	/* Two transfers a clock, as CUPTI counts it. */
	d.memory_bandwidth = 2 * (uint64_t)cupti_devices_attribute(MEMORY_CLOCK_KHZ, device) * 1000 * (cupti_devices_attribute(BUS_BITS, device) / 8);
	if (d.threads_per_warp)
		d.max_warps_per_sm = cupti_devices_attribute(THREADS_PER_SM, device) / d.threads_per_warp;
	d.head = writer_head(WIRE_DEVICE, 0, intern_cstr(name), sizeof d);
	keep(&d, sizeof d, true);
}

void cupti_describe_devices(void)
{
	int n = 0;
	if (!find_driver() || driver.count(&n) != 0)
		return;
	for (int i = 0; i < n; i++)
		cupti_devices_describe(i);
}
