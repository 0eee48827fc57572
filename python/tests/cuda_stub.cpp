// Takes the place of CUDA in torch's profiler on a machine without: its ranges go to the NVTX tool of the process, as those of torch for CUDA do; with
// the mock of a driver (tests/mock), each range launches a kernel, too. For torch 1.13, whose headers Debian has.
#include <torch/csrc/profiler/api.h>

#include "../annotate/nvtx.h"

namespace {

nvtx tool;
enum { STREAM = 7, KERNEL_NS = 1000 };

uint32_t (*launch)(const char *name, uint32_t stream, int64_t ns);
int64_t launched_ns;

using namespace torch::profiler::impl;

struct Stubs : ProfilerStubs {
	void record(int *, ProfilerEventStub *, int64_t *) const override {}
	float elapsed(const ProfilerEventStub *, const ProfilerEventStub *) const override { return 0; }
	void mark(const char *) const override {}
	void rangePush(const char *name) const override
	{
		tool.push(name);
		if (!launch)
			return;
		launch("work_of_an_op", STREAM, KERNEL_NS);
		launched_ns += KERNEL_NS;
	}
	void rangePop() const override { tool.pop(); }
	bool enabled() const override { return true; }
	void onEachDevice(std::function<void(int)>) const override {}
	void synchronize() const override {}
};

} // namespace

// 0: no tool listens.
extern "C" int install_cuda_stub()
{
	static Stubs stubs;
	tool = nvtx_find();
	if (!tool.push || !tool.pop)
		return 0;
	registerCUDAMethods(&stubs);
	return 1;
}

// From here on with kernels, by the driver in that file; 0: it cannot be used.
extern "C" int launch_by(const char *driver)
{
	void *library = dlopen(driver, RTLD_NOW);
	auto init = library ? reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit")) : nullptr;
	auto devices = library ? reinterpret_cast<void (*)(uint32_t, uint32_t)>(dlsym(library, "mock_devices")) : nullptr;
	auto found = library ? reinterpret_cast<decltype(launch)>(dlsym(library, "mock_launch")) : nullptr;
	if (!init || init(0) || !devices || !found)
		return 0;
	devices(1, 1);
	launch = found;
	return 1;
}

// One kernel outside of all ranges, which takes this part of the time of all since the last such.
extern "C" void launch_outside(int percent)
{
	if (percent)
		launch("work_of_no_op", STREAM, launched_ns * percent / 100);
	launched_ns = 0;
}
