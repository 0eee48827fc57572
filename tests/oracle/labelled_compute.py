"""Small traces with known problems of computing, as labelled.py has them of other kinds: attention that is written out, ... Importing this
adds them to labelled.CASES."""
from labelled import A100, ELEMENTWISE, TENSOR_CORE, Trace, case

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


@case()
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


@case()
def without_attention():
    """A softmax whose result no product takes as its left side: a gate of experts."""
    def layer(t):
        product(t, 100, [B, S, D], [B, D, 8])
        unary(t, 300, "aten::_softmax", [B, S, 8], SOFTMAX)
        product(t, 100, [B, S, D], [B, D, S])
    return model(layer)


@case()
def without_attention_but_a_loss():
    def layer(t):
        product(t, 100, [B, S, D], [B, D, S])
        unary(t, 300, "aten::_log_softmax", [B, S, S], SOFTMAX)
        product(t, 100, [B, S, S], [B, S, D])
    return model(layer)


@case()
def without_written_out_attention():
    def layer(t):
        with t.op("aten::scaled_dot_product_attention"), t.op("aten::_scaled_dot_product_flash_attention", 10, [[B, 1, S, D]] * 3,
                                                              **{"Input type": [BF16] * 3}):
            t.kernel(500, "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>(float)")
    return model(layer)


@case()
def without_much_attention():
    """Small beside the rest."""
    return model(attention, count=1, fill=30000)
