"""Small traces with known problems of how blocks lie on the GPU, as labelled.py has them of other kinds: few warps on an SM, last waves that are nearly
empty. Importing this adds them to labelled.CASES."""
from labelled import A100, ELEMENTWISE, REDUCE, TENSOR_CORE, Trace, case
from labelled_compute import BF16, sum_of_one_block

A10 = {"id": 0, "name": "NVIDIA A10", "totalGlobalMem": 24 << 30, "computeMajor": 8, "computeMinor": 6, "numSms": 72, "warpSize": 32}


def blocks(count, threads=256, registers=32, shared=0):
    return {"grid": [count, 1, 1], "block": [threads, 1, 1], "registers per thread": registers, "shared memory": shared}


GOOD = blocks(1080)


def good(t, us=150, device=0):
    with t.op("aten::mm", 2):
        t.kernel(us, TENSOR_CORE, device=device, **GOOD)


def steps(layer, count=10, gpus=(A100,), **more):
    """Steps of some kernels between good products."""
    t = Trace(*gpus)
    for _ in t.steps():
        for _ in range(count):
            layer(t, **more)
            good(t)
    return t


def of(layer, **more):
    """The layer with these arguments."""
    return lambda t: layer(t, **more)


# Few warps on an SM.

def reduction(t, us=300, device=0, name=REDUCE, op="aten::sum", sized=True, **more):
    """Of 1024 x 1024 float32, at least 2.7 us on an A100: 8 of 64 warps, by its registers."""
    with t.op(op, 2, [[1024, 1024], []] if sized else None, **({"Input type": ["float", ""]} if sized else {})):
        t.kernel(us, name, device=device, **{**blocks(4096, registers=255), **more})


@case("low-occupancy")
def low_occupancy_by_registers():
    return steps(reduction)


@case("low-occupancy")
def low_occupancy_by_shared_memory():
    return steps(reduction, **blocks(4096, shared=96 << 10))


def added(t, us=1000, device=0, **more):
    """a + b of 4096 x 4096 float32: at least 335.5 us on an A10."""
    with t.op("aten::add", 2, [[4096, 4096], [4096, 4096], []], **{"Input type": ["float", "float", "Scalar"]}):
        t.kernel(us, ELEMENTWISE, device=device, **{**blocks(4096, threads=32), **more})


@case("low-occupancy")
def low_occupancy_by_block_size():
    """An SM of 8.6 holds 16 blocks: 16 of 48 warps."""
    return steps(added, gpus=(A10,))


@case("low-occupancy")
def low_occupancy_of_two_kinds():
    """Most of it by registers."""
    def layer(t):
        reduction(t)
        reduction(t, us=100, **blocks(4096, shared=96 << 10))
    return steps(layer)


@case("low-occupancy")
def low_occupancy_of_an_unknown_kernel():
    return steps(reduction, name="void simulate(float*, int)", op="my::op", sized=False)


@case("low-occupancy")
def low_occupancy_without_sizes():
    return steps(reduction, name=ELEMENTWISE, sized=False)


@case("low-occupancy")
def low_occupancy_on_two_gpus():
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for _ in range(6):
            for device in range(2):
                reduction(t, device=device)
                good(t, device=device)
    return t


@case("low-occupancy", "few-blocks")
def low_occupancy_and_few_blocks():
    """Two causes."""
    def layer(t):
        reduction(t)
        sum_of_one_block(t)
    return steps(layer)


@case("low-occupancy")
def low_occupancy_without_steps():
    t = Trace()
    for _ in range(10):
        reduction(t)
    return t


@case()
def without_low_occupancy():
    """24 of 64 warps."""
    return steps(reduction, **blocks(4096, registers=80))


@case()
def without_low_occupancy_that_is_known():
    """20 of 64 warps, and how long it should take is not known."""
    return steps(reduction, sized=False, name=ELEMENTWISE, **blocks(4096, threads=128, registers=91))


@case()
def without_low_occupancy_that_slows():
    """Few warps, which read and write at 84 % of the bandwidth."""
    return steps(added, us=400, gpus=(A10,))


@case()
def without_low_occupancy_that_keeps_rows():
    """Kernels that keep their rows in registers or shared memory, of unknown sizes."""
    def layer(t):
        reduction(t, sized=False)
        reduction(t, name="void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(float)", sized=False, **blocks(256, 512, 80, 48 << 10))
        reduction(t, name="triton_per_fused_native_layer_norm_3", op="triton", sized=False)
        reduction(t, name="void cub::DeviceRadixSortOnesweepKernel<long>(int)", op="aten::sort", sized=False)
    return steps(layer, count=3)


@case()
def without_low_occupancy_but_products():
    """They hold their tiles in registers and shared memory."""
    def layer(t):
        reduction(t, name=TENSOR_CORE, op="aten::mm", sized=False)
        reduction(t, name="void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(int)", op="aten::_flash_attention_forward", sized=False)
        reduction(t, name="implicit_convolve_sgemm<float, float, 128>", op="aten::cudnn_convolution", sized=False)
        reduction(t, name="_matmul_kernel_of_mine", op="MyLinear", sized=False, **blocks(4096, registers=255, shared=48 << 10))
        reduction(t, name="void tuned(float*)", op="aten::mm", sized=False)
    return steps(layer, count=2)


@case()
def without_low_occupancy_but_spinning():
    return steps(reduction, name="at::cuda::(anonymous namespace)::spin_kernel(long)", us=10)


@case()
def without_low_occupancy_that_lasts():
    t = Trace()
    for _ in t.steps(fill=1000):
        for _ in range(50):
            reduction(t, us=4)
            good(t, 20)
    return t


@case()
def without_low_occupancy_that_matters():
    return steps(reduction, us=8)


@case()
def without_low_occupancy_in_the_steps():
    t = Trace()
    for _ in range(10):
        reduction(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            good(t, 1000)
    return t


# Last waves that are nearly empty.

ONE = {"registers": 255}                       # of 256 threads, an SM holds one block
TWO = {"threads": 128, "registers": 250}       # two
FOUR = {"threads": 128, "registers": 122}      # four


def tiled(t, count, us=300, device=0, name=TENSOR_CORE, dims=None, stream=7, **sm):
    with t.op("aten::mm", 2, dims, **({"Input type": [BF16, BF16]} if dims else {})):
        t.kernel(us, name, device=device, stream=stream, **blocks(count, **(sm or ONE)))


@case("wave-quantisation")
def last_wave_nearly_empty():
    """120 blocks on 108 SMs."""
    return steps(of(tiled, count=120))


@case("wave-quantisation")
def last_wave_of_two_blocks_on_an_sm():
    return steps(of(tiled, count=256, **TWO))


@case("wave-quantisation")
def last_wave_on_two_gpus():
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for _ in range(6):
            for device in range(2):
                tiled(t, 120, device=device)
                good(t, device=device)
    return t


@case("wave-quantisation", "few-blocks")
def last_wave_and_few_blocks():
    """Two causes: no launch counts in both."""
    def layer(t):
        tiled(t, 120)
        tiled(t, 60)
    return steps(layer)


@case("wave-quantisation", "low-occupancy")
def last_wave_and_low_occupancy():
    def layer(t):
        tiled(t, 120)
        reduction(t)
    return steps(layer)


@case("wave-quantisation")
def last_wave_without_steps():
    t = Trace()
    for _ in range(10):
        tiled(t, 120)
    return t


@case("wave-quantisation")
def last_wave_near_the_peak():
    """1024 x 8192 by 8192 x 6144: 330.4 us at 312 TFLOP/s, of 400."""
    return steps(of(tiled, count=120, us=400, dims=[[1024, 8192], [8192, 6144]]))


FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(pytorch_flash::Flash_fwd_params)"


def flash(t, causal, us=300):
    q = [8, 15, 128, 64]
    with t.op("aten::_scaled_dot_product_flash_attention", 2, [q, q, q, [], [], [], []],
              **{"Input type": ["c10::BFloat16"] * 3 + ["Scalar"] * 4, "Concrete Inputs": ["", "", "", "0.", str(causal), "False", ""]}):
        t.kernel(us, FLASH, **blocks(120, registers=255))


@case("wave-quantisation")
def last_wave_of_attention():
    return steps(of(flash, causal=False))


@case()
def without_last_wave_of_equal_blocks():
    """Under a causal mask they take different times."""
    return steps(of(flash, causal=True))


@case()
def without_last_wave_of_blocks_that_are_known():
    return steps(of(tiled, count=120, name=FLASH))


@case()
def without_last_wave_below_the_peak():
    """The same in 340 us: whatever its waves, it loses 3 %."""
    return steps(of(tiled, count=120, us=340, dims=[[1024, 8192], [8192, 6144]]))


@case()
def without_part_of_a_wave():
    return steps(of(tiled, count=216))


@case()
def without_part_of_a_wave_persistent():
    """As many blocks as SMs, which take the next tile when one is done; and one whose name tells it."""
    def layer(t):
        tiled(t, 108)
        tiled(t, 120, name="cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_streamk")
    return steps(layer)


@case()
def without_few_waves():
    return steps(of(tiled, count=2000))


@case()
def without_uneven_sms():
    """640 blocks, of which an SM holds 4: 1.48 waves, but 5.93 blocks for each SM."""
    return steps(of(tiled, count=640, **FOUR))


@case()
def without_a_whole_wave():
    """All blocks run at once."""
    return steps(of(tiled, count=120, **FOUR))


@case()
def without_products_in_waves():
    """Elementwise kernels and products with a vector share the bandwidth of the GPU."""
    def layer(t):
        tiled(t, 120, name=ELEMENTWISE, threads=1024, registers=60)
        tiled(t, 120, name="void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(int)")
    return steps(layer)


@case()
def without_last_wave_alone():
    """Another kernel runs beside it."""
    t = Trace()
    for _ in t.steps():
        for _ in range(10):
            tiled(t, 120, us=300)
            with t.op("aten::relu", 2):
                t.kernel(300, ELEMENTWISE, stream=20, **blocks(4096))
    return t


@case()
def without_last_wave_in_the_steps():
    t = Trace()
    for _ in range(10):
        tiled(t, 120)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            good(t, 1000)
    return t


@case()
def without_last_wave_that_matters():
    """44 % of 2 % of the time."""
    def layer(t):
        tiled(t, 120, us=8)
        good(t, 300)
    return steps(layer)
