#include "analysis/recording.h"

const char *recording_how(const struct profile *p, enum record what)
{
	static const struct { const char *torch, *nvtx; } how[RECORDS] = {
#define RECORD(id, torch, nvtx) [RECORD_##id] = {torch, nvtx},
#include "analysis/recording.def"
#undef RECORD
	};
	static const char *const nvtx_formats[] = {"nsys", "nvprof", "pyprof-dict"};
	for (size_t i = 0; i < sizeof nvtx_formats / sizeof nvtx_formats[0]; i++)
		if (str_eqc(p->format, nvtx_formats[i]))
			return how[what].nvtx;
	return how[what].torch;
}
