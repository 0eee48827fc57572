"""Small traces with known problems of computing, as labelled.py has them of other kinds: attention that is written out, ... Importing this
adds them to labelled.CASES."""
from labelled import A100, ELEMENTWISE, REDUCE, TENSOR_CORE, Trace, case

SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*)"
SOFTMAX_BACKWARD = "void (anonymous namespace)::softmax_warp_backward<c10::BFloat16, c10::BFloat16, float, 10, false, false>(c10::BFloat16*)"
BF16 = "c10::BFloat16"

# Attention.

B, S, D = 16, 1024, 64


def product(t, us, a, b, kernel=TENSOR_CORE, dtype=BF16, op="aten::bmm", **more):
    with t.op(op, 10, [a, b], **{"Input type": [dtype, dtype]}):
        t.kernel(us, kernel, **more)


def unary(t, us, op, shape, kernel=ELEMENTWISE, dtype=BF16, **more):
    with t.op(op, 10, [shape, []], **{"Input type": [dtype, "Scalar"]}):
        t.kernel(us, kernel, **more)


def scores(t, s=S, b=B, **more):
    product(t, 100, [b, s, D], [b, D, s], **more)


def weighted(t, s=S, b=B, **more):
    product(t, 100, [b, s, s], [b, s, D], **more)


def attention(t, s=S, b=B, between=(), **more):
    """A layer: 100 + 300 + 100 us, and 50 for each op between the products."""
    scores(t, s, b, **more)
    for op in between:
        unary(t, 50, op, [b, s, s])
    unary(t, 300, "aten::_softmax", [b, s, s], SOFTMAX)
    weighted(t, s, b, **more)


def model(layer, count=4, fill=1000, **more):
    """Steps of some layers between good products."""
    t = Trace()
    for _ in t.steps(fill=fill):
        for _ in range(count):
            layer(t, **more)
            t.busy(200)
    return t


@case("unfused-attention")
def attention_written_out():
    return model(attention)


@case("unfused-attention")
def attention_masked():
    return model(attention, between=("aten::div", "aten::add"))


@case("unfused-attention")
def attention_with_softmax_written_out():
    """exp(x) / sum(exp(x)), as people write it."""
    def layer(t):
        scores(t)
        unary(t, 100, "aten::exp", [B, S, S])
        unary(t, 100, "aten::sum", [B, S, S])
        unary(t, 100, "aten::div", [B, S, S])
        weighted(t)
    return model(layer)


@case("unfused-attention")
def attention_backward():
    """Gradients of V and of the scores, the softmax's backward, gradients of Q and K."""
    def layer(t):
        product(t, 100, [B, S, S], [B, S, D])
        product(t, 100, [B, S, D], [B, D, S])
        unary(t, 300, "aten::_softmax_backward_data", [B, S, S], SOFTMAX_BACKWARD)
        product(t, 100, [B, S, S], [B, S, D])
        product(t, 100, [B, D, S], [B, S, S])
    return model(layer)


@case("unfused-attention")
def attention_not_aligned():
    """One cause: that rows of scores are not aligned is part of it."""
    return model(attention, s=1027, kernel="void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align1>")


@case("unfused-attention", "unaligned-gemm")
def attention_and_vocabulary_not_aligned():
    """Two causes."""
    def layer(t):
        attention(t)
        product(t, 400, [2048, 768], [768, 50257], "void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_nn_align1>", op="aten::mm")
    return model(layer)


@case("unfused-attention")
def attention_on_two_gpus():
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for _ in range(4):
            for device in range(2):
                product(t, 100, [B, S, D], [B, D, S], device=device)
                unary(t, 300, "aten::_softmax", [B, S, S], SOFTMAX, device=device)
                product(t, 100, [B, S, S], [B, S, D], device=device)
                product(t, 1200, [4096, 4096], [4096, 4096], op="aten::mm", device=device)
    return t


@case("unfused-attention")
def attention_with_values_between():
    """The product that makes the values runs between the others."""
    def layer(t):
        scores(t)
        unary(t, 300, "aten::_softmax", [B, S, S], SOFTMAX)
        product(t, 10, [B * S, D], [D, D], op="aten::mm")
        weighted(t)
    return model(layer)


@case(about="unfused-attention")
def without_attention_in_the_steps():
    """It is in the warm-up alone."""
    t = Trace()
    for _ in range(4):
        attention(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            t.busy(1000)
    return t


@case(about="unfused-attention")
def without_attention():
    """A softmax whose result no product takes as its left side: a gate of experts."""
    def layer(t):
        product(t, 100, [B, S, D], [B, D, 8])
        unary(t, 300, "aten::_softmax", [B, S, 8], SOFTMAX)
        product(t, 100, [B, S, D], [B, D, S])
    return model(layer)


@case(about="unfused-attention")
def without_attention_but_a_loss():
    def layer(t):
        product(t, 100, [B, S, D], [B, D, S])
        unary(t, 300, "aten::_log_softmax", [B, S, S], SOFTMAX)
        product(t, 100, [B, S, S], [B, S, D])
    return model(layer)


@case(about="unfused-attention")
def without_written_out_attention():
    def layer(t):
        with t.op("aten::scaled_dot_product_attention"), t.op("aten::_scaled_dot_product_flash_attention", 10, [[B, 1, S, D]] * 3,
                                                              **{"Input type": [BF16] * 3}):
            t.kernel(500, "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>(float)")
    return model(layer)


@case(about="unfused-attention")
def without_much_attention():
    """Small beside the rest."""
    return model(attention, count=1, fill=30000)


# Chains of elementwise kernels.

TOKENS, WIDTH = 8192, 1024
X, ROWS = [TOKENS, WIDTH], [TOKENS, 1]


def op(t, us, name, dims, types, kernel=ELEMENTWISE, concrete=None, **more):
    with t.op(name, 10, dims, **{"Input type": types, **({"Concrete Inputs": concrete} if concrete else {})}):
        t.kernel(us, kernel, **more)


def rms_norm(t, **more):
    """x / rms(x) * weight in float32: 8 kernels, 230 us."""
    op(t, 30, "aten::copy_", [X, X, []], ["float", BF16, "Scalar"], **more)
    op(t, 40, "aten::pow", [X, []], ["float", "Scalar"], **more)
    op(t, 30, "aten::mean", [X, [], [], []], ["float", "ScalarList", "Scalar", ""], REDUCE, ["", "[-1]", "True", ""], **more)
    op(t, 5, "aten::add", [ROWS, [], []], ["float", "double", "Scalar"], **more)
    op(t, 5, "aten::rsqrt", [ROWS], ["float"], **more)
    op(t, 40, "aten::mul", [X, ROWS], ["float", "float"], **more)
    op(t, 40, "aten::copy_", [X, X, []], [BF16, "float", "Scalar"], **more)
    op(t, 40, "aten::mul", [[WIDTH], X], [BF16, BF16], **more)


def linear(t, us=600, wide=4096, **more):
    product(t, us, [TOKENS, WIDTH], [WIDTH, wide], op="aten::mm", **more)


def network(layer, count=4, **more):
    t = Trace()
    for _ in t.steps():
        for _ in range(count):
            layer(t, **more)
            linear(t)
    return t


@case("unfused-elementwise")
def norm_written_out():
    return network(rms_norm)


@case("unfused-elementwise")
def swiglu_written_out():
    """silu(x W) * (x V): a product lies between, which cannot read what silu wrote."""
    def layer(t):
        linear(t, 200, 2816)
        op(t, 100, "aten::silu", [[TOKENS, 2816]], [BF16])
        linear(t, 200, 2816)
        op(t, 120, "aten::mul", [[TOKENS, 2816], [TOKENS, 2816]], [BF16, BF16])
    return network(layer)


@case("unfused-elementwise")
def bias_gelu_dropout():
    def layer(t):
        wide = [TOKENS, 4096]
        op(t, 100, "aten::add", [wide, [4096], []], [BF16, BF16, "Scalar"])
        op(t, 100, "aten::gelu", [wide, []], [BF16, ""])
        op(t, 100, "aten::mul", [wide, wide], [BF16, BF16])
    return network(layer)


@case("unfused-elementwise", "unfused-attention")
def norm_and_attention_written_out():
    """Two causes, of different kernels."""
    def layer(t):
        rms_norm(t)
        linear(t, 100, 1024)
        attention(t)
    return network(layer, 2)


@case("unfused-elementwise")
def norm_written_out_on_two_gpus():
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for _ in range(4):
            for device in range(2):
                rms_norm(t, device=device)
                linear(t, device=device)
    return t


@case(about="unfused-elementwise")
def without_norm_in_the_steps():
    t = Trace()
    for _ in range(4):
        rms_norm(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            linear(t)
    return t


@case(about="unfused-elementwise")
def without_chains():
    """An activation between products, which read and write it."""
    def layer(t):
        linear(t, 300)
        op(t, 150, "aten::relu", [[TOKENS, 4096]], [BF16])
        product(t, 300, [TOKENS, 4096], [4096, WIDTH], op="aten::mm")
    return network(layer)


@case(about="unfused-elementwise")
def without_kernels_that_read_each_other():
    """Elementwise kernels beside each other, of tensors of different sizes."""
    def layer(t):
        for i in range(4):
            op(t, 50, "aten::mul", [[TOKENS, 512 + 64 * i], []], [BF16, "double"])
    return network(layer)


@case(about="unfused-elementwise")
def without_chains_of_an_optimizer():
    """Gradients are added one parameter after the other: all of one size, and none reads another."""
    def layer(t):
        for _ in range(4):
            with t.op("torch::autograd::AccumulateGrad", 2):
                op(t, 50, "aten::add_", [[1024, 1024], [1024, 1024], []], ["float", "float", "Scalar"])
    return network(layer)


@case(about="unfused-elementwise")
def without_unfused_kernels():
    """Triton has made one kernel of the chain; two such follow each other."""
    def layer(t):
        for _ in range(3):
            op(t, 80, "triton_poi_fused_add_mul_pow_0", [X, X], [BF16, BF16], "triton_poi_fused_add_mul_pow_0")
    return network(layer)


# Code that torch.compile made.

TRITON = "triton_poi_fused_add_mul_0"
CALL = "/tmp/torchinductor_me/ab/cabc.py(12): call"


def compiled(t, name="Torch-Compiled Region: 0/0", wrapper=True, kernels=20, us=5, host=50, kernel=TRITON):
    """A region whose wrapper needs longer for each launch than its kernel runs."""
    with t.frame("train.py(9): step"):
        t.simple("TorchDynamo Cache Lookup", 30)
        with t.op(name, 10):
            with t.frame(CALL) if wrapper else t.op("aten::add", 0):
                for _ in range(kernels):
                    if wrapper:
                        with t.frame("torch/_inductor/runtime/triton_heuristics.py(1242): run", host):
                            pass
                    else:
                        t.host(host)
                    with t.op(kernel, 5):
                        t.kernel(us, kernel)


@case("compile-wrapper", "gpu-starvation", "low-gpu-utilization")
def compiled_wrapper():
    t = Trace()
    for _ in t.steps(4, fill=500):
        compiled(t)
    return t


@case("compile-wrapper", "launch-bound")
def compiled_wrapper_in_part():
    """In most of the step the GPU has enough to do."""
    t = Trace()
    for _ in t.steps(4, fill=10000):
        t.now = max(t.free.values())
        compiled(t)
    return t


@case("recompiles", "gpu-starvation")
def compiled_again_in_the_steps():
    t = Trace()
    for _ in t.steps(2, fill=1000):
        t.now = max(t.free.values())
        with t.frame("torch/_dynamo/convert_frame.py(1350): __call__", 10), t.frame("torch/_inductor/graph.py(10): run", 8000):
            pass
        compiled(t, "Torch-Compiled Region: 0/1", host=0, kernels=2)
        t.busy(20000)
    return t


@case(about="compile-wrapper")
def without_waiting_for_compiled_code():
    """The wrapper runs far ahead of the GPU."""
    t = Trace()
    for _ in t.steps(4, fill=10000):
        compiled(t)
    return t


@case(about="compile-wrapper")
def without_compiled_code_in_the_steps():
    t = Trace()
    compiled(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            t.busy(1000)
    return t


# Kernels of few blocks.

def grid(blocks, threads=256):
    return {"grid": [blocks, 1, 1], "block": [threads, 1, 1]}


def sized(blocks, us=100, count=20, gpus=1, name=REDUCE, **more):
    """Kernels of so many blocks, between kernels that fill the GPU."""
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))
    for _ in t.steps():
        for _ in range(count):
            for device in range(gpus):
                with t.op("aten::sum"):
                    t.kernel(us, name, device=device, **grid(blocks), **more)
                with t.op("aten::mm"):
                    t.kernel(150, TENSOR_CORE, device=device, **grid(1080))
    return t


@case("few-blocks")
def few_blocks():
    return sized(27)


@case("few-blocks")
def few_blocks_on_two_gpus():
    return sized(1, gpus=2)


def sum_of_one_block(t, **more):
    with t.op("aten::sum", 2):
        t.kernel(100, REDUCE, **grid(1), **more)


def attention_on(t, **more):
    """Unlike attention(), its softmax is of the same GPU as its products."""
    scores(t, **more)
    unary(t, 300, "aten::_softmax", [B, S, S], SOFTMAX, **more)
    weighted(t, **more)


def on_gpus(layer, counts, good=TENSOR_CORE):
    """GPU i has counts[i] layers in each step, behind 500 us of good work."""
    t = Trace(*(dict(A100, id=i) for i in range(len(counts))))
    for _ in t.steps():
        for device, count in enumerate(counts):
            with t.op("aten::mul", 2):
                t.kernel(500, good, device=device, **grid(1080))
            for _ in range(count):
                layer(t, device=device)
    return t


def few_blocks_beside_each_other(gpus):
    """1.2 ms of each GPU's 10 ms of a step."""
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))
    for _ in t.steps():
        for device in range(gpus):
            for _ in range(12):
                sum_of_one_block(t, device=device)
            product(t, 8800, [4096, 4096], [4096, 4096], op="aten::mm", device=device, **grid(1080))
    return t


@case("few-blocks")
def few_blocks_on_one_of_one():
    return few_blocks_beside_each_other(1)


@case("few-blocks")
def few_blocks_on_eight_gpus():
    return few_blocks_beside_each_other(8)


@case("few-blocks", "unfused-elementwise")
def few_blocks_and_chains():
    """Two causes: the chains' kernels fill the GPU."""
    t = Trace()
    for _ in t.steps():
        for _ in range(4):
            rms_norm(t, **grid(8192))
            with t.op("aten::sum"):
                t.kernel(200, REDUCE, **grid(4))
            linear(t, 300, **grid(1080))
    return t


@case(about="few-blocks")
def without_few_blocks():
    return sized(108)


@case(about="few-blocks")
def without_long_kernels_of_few_blocks():
    return sized(1, us=4, count=100)


@case(about="few-blocks")
def without_few_blocks_alone():
    """They run beside a product that fills the GPU."""
    t = Trace()
    for _ in t.steps():
        for _ in range(10):
            with t.op("aten::mm"):
                t.kernel(1000, TENSOR_CORE, **grid(1080))
            with t.op("aten::sum"):
                t.kernel(300, REDUCE, stream=20, **grid(4))
    return t


@case(about="few-blocks")
def without_few_blocks_in_the_steps():
    t = Trace()
    for _ in range(10):
        with t.op("aten::sum"):
            t.kernel(100, REDUCE, **grid(1))
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            linear(t, **grid(1080))
    return t


@case("unbucketed-collectives", about="few-blocks")
def without_few_blocks_but_collectives():
    return sized(8, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", us=10)


# Memory that the allocator gives back and takes again.

def retries(steps=4, frees=1, allocates=1, only=None, idle=True, gpus=1):
    """Steps of 20 ms, each with calls of 500 us that free and 300 us that allocate, while the GPU has no work."""
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))
    for n in t.steps(steps):
        for device in range(gpus):
            t.work("kernel", TENSOR_CORE, 10000, "cudaLaunchKernel", device=device)
        if idle:
            t.now = max(t.free.values())
        if only is None or n in only:
            with t.op("aten::empty"):
                for _ in range(frees):
                    t.memory(6 << 30)
                    t.events[-1]["args"]["Total Reserved"] = 8 << 30
                    t.call("cudaFree", 500)
                for _ in range(allocates):
                    t.call("cudaMalloc", 300)
        for device in range(gpus):
            t.work("kernel", TENSOR_CORE, 10000, "cudaLaunchKernel", device=device)
    return t


@case("allocator-retries")
def allocator_retries():
    return retries()


@case("allocator-retries")
def allocator_retries_on_two_gpus():
    return retries(gpus=2)


@case("allocator-retries", "unfused-attention")
def allocator_retries_and_attention():
    t = Trace()
    for _ in t.steps(4, fill=10000):
        for _ in range(4):
            attention(t)
        t.now = max(t.free.values())
        t.call("cudaFree", 300)
        t.call("cudaMalloc", 200)
        t.busy(10000)
    return t


@case(about="allocator-retries")
def without_retries_but_a_cache_that_grows():
    return retries(frees=0)


@case(about="allocator-retries")
def without_retries_after_the_first_step():
    return retries(only=[1])


@case(about="allocator-retries")
def without_cost_of_retries():
    """The GPU has enough to do."""
    return retries(idle=False)


@case(about="allocator-retries")
def without_retries_in_the_steps():
    t = Trace()
    for _ in range(4):
        t.call("cudaFree", 500)
        t.call("cudaMalloc", 300)
    for _ in t.steps(4, fill=10000):
        t.busy(10000)
    return t


# Conversions between types.

def convert(t, us, to, given, shape=(TOKENS, WIDTH), **more):
    with t.op("aten::to", 2), t.op("aten::_to_copy", 2):
        op(t, us, "aten::copy_", [list(shape), list(shape), []], [to, given, "Scalar"], **more)


def forth_and_back(t, us=50, **more):
    """A layer that wants bfloat16 among others that want float32."""
    convert(t, us, BF16, "float", **more)
    linear(t, 300, **more)
    convert(t, us, "float", BF16, **more)
    linear(t, 300, **more)


@case("dtype-conversions")
def converted_forth_and_back():
    return network(forth_and_back, us=100)


@case("dtype-conversions")
def converted_on_two_gpus():
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for _ in range(4):
            for device in range(2):
                forth_and_back(t, 100, device=device)
    return t


@case("dtype-conversions", "few-blocks")
def converted_and_few_blocks():
    def layer(t):
        forth_and_back(t, 150, **grid(8192))
        with t.op("aten::sum"):
            t.kernel(600, REDUCE, **grid(4))
    return network(layer)


@case(about="dtype-conversions")
def without_way_back():
    """Weights are converted before each use, and nothing is converted back."""
    def layer(t):
        convert(t, 100, BF16, "float")
        linear(t, 300)
    return network(layer)


@case(about="dtype-conversions")
def without_many_conversions():
    return network(forth_and_back, us=20, count=3)


@case(about="dtype-conversions")
def without_conversions_of_floating_point():
    """Copies into the same type, and of masks."""
    def layer(t):
        convert(t, 100, BF16, BF16)
        linear(t, 100)
        convert(t, 100, BF16, "bool")
        linear(t, 100)
    return network(layer)


@case(about="dtype-conversions")
def without_conversions_in_the_steps():
    t = Trace()
    forth_and_back(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            linear(t)
    return t


# Small products in a row.

def small(t, a=(256, 64), b=(64, 256), blocks=16, count=16, between=False, us=4, **more):
    for _ in range(count):
        with t.op("aten::mm", 5, [list(a), list(b)], **{"Input type": [BF16, BF16]}):
            t.kernel(us, TENSOR_CORE, **grid(blocks), **more)
        if between:
            with t.op("aten::relu", 5):
                t.kernel(2, **grid(1000), **more)


def rows(count=8, **more):
    """The GPU is behind the host, so that the launches cost nothing."""
    t = Trace()
    for _ in t.steps(fill=6000):
        for _ in range(count):
            small(t, **more)
            linear(t, 200, **grid(1080))
    return t


@case("many-small-gemms")
def small_products():
    return rows()


@case("many-small-gemms", "few-blocks")
def small_products_that_last():
    """Two aspects: the same kernels leave SMs without work."""
    return rows(us=30)


@case("many-small-gemms")
def small_products_on_two_gpus():
    t = Trace(A100, dict(A100, id=1))
    for _ in t.steps():
        for device in range(2):
            t.work("kernel", TENSOR_CORE, 6000, "cudaLaunchKernel", device=device)
        for _ in range(8):
            for device in range(2):
                small(t, device=device)
                linear(t, 200, device=device, **grid(1080))
    return t


@case("many-small-gemms", "unfused-attention")
def small_products_and_attention():
    t = Trace()
    for _ in t.steps(fill=3000):
        for _ in range(8):
            small(t)
            attention(t, **grid(1080))
    return t


@case(about="many-small-gemms")
def without_small_products_that_stand_apart():
    """The result may be an operand of the next: a recurrent layer."""
    return rows(a=(256, 256), b=(256, 256))


@case(about="many-small-gemms")
def without_small_products_in_a_row():
    return rows(between=True)


@case(about="many-small-gemms")
def without_small_products():
    return rows(blocks=216)


@case(about="many-small-gemms")
def without_small_products_in_the_steps():
    t = Trace()
    for _ in range(8):
        small(t)
    t.now = max(t.free.values()) + 100
    for _ in t.steps():
        for _ in range(8):
            linear(t, **grid(1080))
    return t


# Memory that is held in pieces.

GIB = 1 << 30


def held(*sizes, gpus=1, device=0, steps=2, outside=False):
    """Steps in which a GPU's allocator says, event by event, what it allocates: (bytes, allocated after, reserved after)."""
    t = Trace(*(dict(A100, id=i) for i in range(gpus)))

    def say():
        for nbytes, allocated, reserved in sizes:
            t.memory(allocated, device)
            t.events[-1]["args"].update({"Bytes": nbytes, "Total Reserved": reserved})
            t.now += 1
    for n in t.steps(steps, fill=20000):
        if n == 1 and not outside:
            say()
    if outside:
        say()
    return t


FITS_NOT = ((GIB, 20 * GIB, 20 * GIB), (-8 * GIB, 12 * GIB, 20 * GIB), (2 * GIB, 14 * GIB, 22 * GIB), (2 * GIB, 16 * GIB, 24 * GIB))


@case("memory-fragmentation")
def fragmentation():
    """8 of 20 GiB are free, and no 2 GiB of them lie together: 4 GiB more are taken."""
    return held(*FITS_NOT)


@case("memory-fragmentation", "memory-nearly-full")
def fragmentation_near_the_limit():
    return held((GIB, 37 * GIB, 37 * GIB), (-5 * GIB, 32 * GIB, 37 * GIB), (2 * GIB, 34 * GIB, 39 * GIB))


@case("memory-fragmentation")
def fragmentation_of_the_second_gpu():
    return held(*FITS_NOT, gpus=2, device=1)


@case("memory-fragmentation")
def fragmentation_after_the_steps():
    """Memory stays as it is, so it does not matter when it came about."""
    return held(*FITS_NOT, outside=True)


@case("memory-fragmentation", "allocator-retries")
def fragmentation_and_retries():
    t = retries()
    for nbytes, allocated, reserved in FITS_NOT:
        t.memory(allocated)
        t.events[-1]["args"].update({"Bytes": nbytes, "Total Reserved": reserved})
        t.now += 1
    return t


@case("memory-fragmentation")
def fragmentation_without_steps():
    t = Trace()
    for n in range(40):
        t.busy(1000 + 300 * (n % 7))
    for nbytes, allocated, reserved in FITS_NOT:
        t.memory(allocated)
        t.events[-1]["args"].update({"Bytes": nbytes, "Total Reserved": reserved})
        t.now += 1
    return t


@case()
def without_fragmentation_but_a_cache_that_is_too_small():
    """4 GiB are free and 6 are asked for."""
    return held((GIB, 20 * GIB, 20 * GIB), (-4 * GIB, 16 * GIB, 20 * GIB), (6 * GIB, 22 * GIB, 26 * GIB))


@case()
def without_fragmentation_but_unused_memory():
    """Held from before, and enough for what is asked."""
    return held((GIB, 12 * GIB, 24 * GIB), (2 * GIB, 14 * GIB, 24 * GIB), (-4 * GIB, 10 * GIB, 24 * GIB), (2 * GIB, 12 * GIB, 24 * GIB))


@case()
def without_fragmentation_but_roundings():
    """The allocator takes 20 MiB for 4, as it does for all small pieces, while little is unused."""
    return held((GIB, 20 * GIB, 20 * GIB), (-(100 << 20), 20 * GIB - (100 << 20), 20 * GIB), (4 << 20, 20 * GIB - (96 << 20), 20 * GIB + (20 << 20)))


@case(about="memory-fragmentation")
def without_fragmentation_but_a_small_tensor():
    """Small tensors have pieces of their own: the first one takes 2 MiB, whatever is free of larger ones."""
    return held((GIB, 20 * GIB, 20 * GIB), (-9 * GIB, 11 * GIB, 20 * GIB), (512, 11 * GIB + 512, 20 * GIB + (2 << 20)), (-2 * GIB, 9 * GIB + 512, 20 * GIB + (2 << 20)),
                (512, 9 * GIB + 1024, 21 * GIB))


@case(about="memory-fragmentation")
def without_fragmentation_but_events_that_lack():
    """More is allocated than the event says: others came between, of which one may have needed the new memory."""
    return held((GIB, 20 * GIB, 20 * GIB), (-9 * GIB, 11 * GIB, 20 * GIB), (4 << 20, 22 * GIB, 24 * GIB))


@case(about="memory-fragmentation")
def without_fragmentation_of_more_than_there_is():
    return held((GIB, 60 * GIB, 60 * GIB), (-20 * GIB, 40 * GIB, 60 * GIB), (2 * GIB, 42 * GIB, 62 * GIB))


# Kernels far from the roofline.

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 80 << 30, "computeMajor": 9, "computeMinor": 0, "numSms": 132, "warpSize": 32}
HOPPER = "nvjet_tst_64x32_64x16_1x2_h_bz_TNT"


def decoded(us, gpu=H100, rows=32, op="aten::mm", count=40, dtype=BF16, **more):
    """Steps of decoding: products with weights of 4096 x 4096, 33.8 MB a product, which take an H100 (3.35 TB/s) 10.1 us, and an A100 (1.56 TB/s) 21.7 us."""
    t = Trace(gpu)
    for _ in t.steps(fill=20):
        for _ in range(count):
            product(t, us, [rows, 4096], [4096, 4096], HOPPER, op=op, dtype=dtype, grid=[264, 1, 1], **more)
    return t


@case("far-from-roofline")
def products_at_a_quarter_of_the_bandwidth():
    return decoded(40)


@case(about="far-from-roofline")
def without_far_but_products_near_the_bandwidth():
    return decoded(13)


@case(about="far-from-roofline")
def without_far_but_products_of_few_bytes():
    """2.1 MB take 0.6 us: how long a kernel takes to start rules them."""
    t = Trace(H100)
    for _ in t.steps(fill=20):
        for _ in range(40):
            product(t, 12, [32, 1024], [1024, 1024], HOPPER, op="aten::mm", grid=[264, 1, 1])
    return t


@case(about="far-from-roofline")
def without_far_of_an_unknown_gpu():
    return decoded(40, dict(H100, name="NVIDIA X9000", totalGlobalMem=123 << 30))


@case(about="far-from-roofline")
def without_far_of_large_products_at_half_the_arithmetic():
    """4096^3: 137 GFLOP take 139 us at 989 TFLOP/s."""
    return decoded(280, rows=4096)


@case("far-from-roofline")
def large_products_at_a_quarter_of_the_arithmetic():
    return decoded(560, rows=4096)
