/* A mock of libnvidia-ml: two GPUs, whose figures change from call to call by a fixed rule, so that a test knows them all.
 * Sample n (0, 1, ...) of GPU d: utilisation 10*d + n%10 and 5*d + n%5 percent, memory (1 + d + n%4) GiB used of 8, SM clock 1980 - 10*(n%8)
 * MHz, memory clock 2619, power 100000*(d+1) + 1000*(n%50) mW, temperature 40 + d + n%20 degrees, and reasons by MOCK_NVML.
 *
 * MOCK_NVML holds words, separated by commas:
 *   broken       nvmlInit fails with 9 (driver not loaded)
 *   thermal=P    P of 100 samples report a hardware slowdown for heat;  power=P: a software power cap;  else the GPU runs free
 *   partial      utilisation and throttle reasons are not supported (3), as on MIG devices
 *   stop         after 20 samples the first GPU is lost (15)
 * Built with MOCK_OLD_NAMES it has nvmlDeviceGetCurrentClocksThrottleReasons, else nvmlDeviceGetCurrentClocksEventReasons. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { GPUS = 2, OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_DRIVER = 9, LOST = 15 };
static struct gpu { unsigned ordinal; uint64_t n; } gpu[GPUS] = {{.ordinal = 0}, {.ordinal = 1}};

static const char *mode(const char *word)
{
	const char *m = getenv("MOCK_NVML");
	size_t n = strlen(word);
	for (; m && *m; m = strchr(m, ',') ? strchr(m, ',') + 1 : NULL)
		if (strncmp(m, word, n) == 0 && (m[n] == '=' || m[n] == ',' || m[n] == 0))
			return m[n] == '=' ? m + n + 1 : m + n;
	return NULL;
}

EXPORT int nvmlInit_v2(void) { return mode("broken") ? NO_DRIVER : OK; }
EXPORT int nvmlShutdown(void) { return OK; }

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *id, struct gpu **d)
{
	unsigned bus;
	if (sscanf(id, "0000:%x:00.0", &bus) != 1 || bus < 0x1a || bus >= 0x1a + GPUS)
		return NOT_FOUND;
	*d = &gpu[bus - 0x1a];
	return OK;
}

EXPORT int nvmlDeviceGetIndex(struct gpu *d, unsigned *index)
{
	*index = d->ordinal;
	return OK;
}

EXPORT int nvmlDeviceGetName(struct gpu *d, char *text, unsigned n)
{
	(void)d;
	snprintf(text, n, "NVIDIA H200");
	return OK;
}

EXPORT int nvmlDeviceGetUUID(struct gpu *d, char *text, unsigned n)
{
	snprintf(text, n, "GPU-00010203-0405-0607-0809-0a0b0c0d0e%02x", d->ordinal);
	return OK;
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned n)
{
	snprintf(text, n, "580.95.05");
	return OK;
}

/* The first call of each round: the others speak of the same sample. */
EXPORT int nvmlDeviceGetMemoryInfo(struct gpu *d, uint64_t memory[3])
{
	if (mode("stop") && d == gpu && d->n >= 20)
		return LOST;
	uint64_t gib = 1 << 30;
	memory[0] = 8 * gib;
	memory[2] = (1 + d->ordinal + d->n % 4) * gib;
	memory[1] = memory[0] - memory[2];
	d->n++;
	return OK;
}

EXPORT int nvmlDeviceGetUtilizationRates(struct gpu *d, unsigned rate[2])
{
	if (mode("partial"))
		return NOT_SUPPORTED;
	uint64_t n = d->n - 1;
	rate[0] = 10 * d->ordinal + (unsigned)(n % 10);
	rate[1] = 5 * d->ordinal + (unsigned)(n % 5);
	return OK;
}

EXPORT int nvmlDeviceGetClockInfo(struct gpu *d, int type, unsigned *mhz)
{
	*mhz = type == 1 ? 1980 - 10 * (unsigned)((d->n - 1) % 8) : type == 2 ? 2619 : 0;
	return type == 1 || type == 2 ? OK : INVALID;
}

EXPORT int nvmlDeviceGetPowerUsage(struct gpu *d, unsigned *mw)
{
	*mw = 100000 * (d->ordinal + 1) + 1000 * (unsigned)((d->n - 1) % 50);
	return OK;
}

EXPORT int nvmlDeviceGetTemperature(struct gpu *d, int sensor, unsigned *degrees)
{
	*degrees = 40 + d->ordinal + (unsigned)((d->n - 1) % 20);
	return sensor == 0 ? OK : INVALID;
}

static int reasons(struct gpu *d, uint64_t *mask)
{
	uint64_t n = d->n - 1;
	if (mode("partial"))
		return NOT_SUPPORTED;
	*mask = 0;
	if (mode("thermal") && n % 100 < strtoull(mode("thermal"), NULL, 10))
		*mask |= 0x8 | 0x40;
	if (mode("power") && n % 100 < strtoull(mode("power"), NULL, 10))
		*mask |= 0x4;
	return OK;
}

#if defined(MOCK_OLD_NAMES)
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(struct gpu *d, uint64_t *mask) { return reasons(d, mask); }
#else
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(struct gpu *d, uint64_t *mask) { return reasons(d, mask); }
#endif
