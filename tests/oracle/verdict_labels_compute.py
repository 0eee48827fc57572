"""Which detectors of computing are right about which real inputs: (glob below the data folder, detector, whether it must fire, why). The
first row that fits a path holds; each detector has a last row for all other inputs."""
import fnmatch

LABELS = [
    # (path, detector, fires, why)
    ("hta/nccl_parser_config/*", "layout-conversions", True, "211 nchwToNhwcKernel and nhwcToNchwKernel a step in cudnn_convolution and its backward: 13 % of kernel time"),
    ("hta/ns_resolution_trace/*", "layout-conversions", False, "0.8 of 468 ms of kernels"),
    ("hta/critical_path/*", "layout-conversions", False, "275 us of 10.7 ms of kernels"),
    ("tracelens/h100/Falconsai*", "layout-conversions", False, "the first convolution of a vision transformer: 23 us of 1.2 ms of kernels"),
    ("verdicts/google_owlv2*", "layout-conversions", False, "the first convolution of a vision transformer: 0.3 of 551 ms of kernels"),
    ("tracelens/mi300/resnet_act_checkpoint*", "layout-conversions", False, "MIOpen's batched_transpose, whose layouts its name does not tell"),
    ("*", "layout-conversions", False, "no kernel that turns the layout of a convolution's tensors, or few"),

    ("verdicts/google_owlv2*.gz", "unfused-attention", True, "180 _softmax between bmm of 5185 x 5185 scores: 492 of 567 ms of device work"),
    ("multirank/megatron_a100_tp8/*", "unfused-attention", True, "40 core attentions a rank: baddbmm, scaled_upper_triang_masked_softmax, bmm: 36 of 120 ms"),
    ("more/kineto_pairs/particle_transformer_a100/*", "unfused-attention", True, "10 layers of baddbmm, _softmax, bmm: 8 to 15 % of device time"),
    ("more/kineto_pairs/switch_transformer_moe_a100/trace_100Kpar*", "unfused-attention", True, "bmm, masked_fill, softmax, bmm over 1024 tokens: 5.8 % of device time"),
    ("more/kineto_pairs/transformer_h100/*", "unfused-attention", True, "MultiheadAttention by bmm, softmax, bmm: 54 of 391 us"),
    ("more/nsys/2026.3_gpt_small_a100/*", "unfused-attention", True, "bmm, exp, sum, div, bmm over 512 tokens in 12 layers"),
    ("more/kineto_pairs/switch_transformer_moe_a100/trace.json.gz", "unfused-attention", False, "attention over few tokens: below 5 % of device time"),
    ("*", "unfused-attention", False, "no softmax between two batched products whose sizes fit: none at all, a loss, a gate, or a fused kernel already"),

    ("tracelens/h100/Qwen*.gz", "unfused-elementwise", True, "RMSNorm by 8 kernels, rotary embedding by 5 and SwiGLU by 2: 54 % of device time"),
    ("more/kineto_pairs/particle_transformer_a100/*", "unfused-elementwise", True, "scale, mask and casts of autocast around each product: 18 to 25 % of device time"),
    ("tracelens/b200/*", "unfused-elementwise", False, "chains take less than a tenth of the device time"),
    ("hta/df_index_resolver/*", "unfused-elementwise", False, "shapes were not recorded: it says that it is not applicable"),
    ("nsys/*", "unfused-elementwise", False, "no ops and no shapes: it says that it is not applicable, or nothing elementwise runs"),
    ("*", "unfused-elementwise", False, "chains take less than a tenth of the device time above their least, or shapes are not known"),

    ("more/puzzlers/fusion/*", "compile-wrapper", True, "two CompiledFunction of 859 and 299 us whose Triton kernels run for 5 us each, of 7 ms in all"),
    ("hta/triton_example/*", "compile-wrapper", False, "a compiled region of 1.4 ms in a step of 13 s"),
    ("multirank/megatron_a100_tp8/*", "compile-wrapper", False, "120 regions of 0.15 ms a step of 600 ms, most of them while the GPU works"),
    ("hta/df_index_resolver/*", "compile-wrapper", False, "CompiledFunctionBackward calls aten ops: no wrapper of Inductor, no Triton kernel"),
    ("tracelens/b200/*", "compile-wrapper", False, "one compiled region of 0.6 ms"),
    ("*", "compile-wrapper", False, "no compiled code, or the GPU is not kept waiting by it"),

    ("*", "recompiles", False, "no range or frame of the compiler, or none within the steps"),
    ("more/puzzlers/fusion/*", "graph-breaks", True, "<resume in unfused> and <resume in fused>: a layer norm is made inside both compiled functions"),
    ("multirank/megatron_a100_tp8/*", "graph-breaks", False, "120 compiled functions a step, one after the other: without Python frames it says that it is not applicable"),
    ("*", "graph-breaks", False, "no compiled frame inside another one, and no frame that Dynamo went on with"),

    ("more/kineto_pairs/particle_transformer_a100/forward_batch_002*", "few-blocks", True, "2 jets: copies of 1 and 27 blocks on 108 SMs, 56 % of the SMs' time"),
    ("more/kineto_pairs/particle_transformer_a100/forward_batch_016*", "few-blocks", True, "copies of 1, products of 34 blocks on 108 SMs, 26 %"),
    ("more/tracelens/normalization_mi300/*", "few-blocks", True, "norms of 8 and 32 blocks on 304 compute units, 46 %"),
    ("nsys/2022.2_pipit_saxpy*", "few-blocks", True, "saxpy of 2 blocks on 108 SMs for 17.7 ms each"),
    ("pyprof/lm_nvprof/net.sql", "few-blocks", True, "reduce_kernel of 1 block, sgemm of 38 and 56 blocks on 80 SMs, 11 %"),
    ("tracelens/h100/Falconsai*", "few-blocks", True, "one image: products of 78 to 104 blocks on 132 SMs, 22 %"),
    ("tracelens/h100/gaunernst_bert*", "few-blocks", True, "one sentence: products of 80, attention of 16 blocks on 132 SMs, 34 %"),
    ("more/kineto_pairs/transformer_h100/*", "few-blocks", False, "128 blocks on 132 SMs: 0.7 % of the SMs' time"),
    ("*", "few-blocks", False, "grids fill the GPU, kernels last under 5 us, run beside others, or grids and SMs are not stated"),

    ("more/kineto_pairs/particle_transformer_a100/*", "dtype-conversions", True, "autocast: 197 copies between float32 and float16, 20 to 34 % of device time"),
    ("tracelens/h100/Qwen*.gz", "dtype-conversions", False, "RMSNorm in float32: 5 % of device time"),
    ("*", "dtype-conversions", False, "no or few conversions, or the types were not recorded"),

    ("more/puzzlers/launch_queue/*", "many-small-gemms", False, "its products are square: each may read the one before"),
    ("*", "many-small-gemms", False, "no four small products of the same sizes in a row whose results are of another size than their operands"),

    ("graphs/vllm_decode_full/graph_execution*", "far-from-roofline", True, "experts: 23 calls, 7.0 ms, read 10 GB where 32 tokens choose evenly: 28 % of an MI300X's 5.3 TB/s"),
    ("more/kineto_pairs/particle_transformer_a100/forward_batch_128*", "far-from-roofline", True, "copies between float32 and float16: 40 % of an A100's bandwidth"),
    ("tracelens/h100/Qwen*.gz", "far-from-roofline", True, "copies of the heads of attention, 2.8 ms, and rotary embedding: 44 and 41 % of the bandwidth"),
    ("tracelens/inference/sglang_decode/sglang*", "far-from-roofline", True, "products with 32 rows: 15.2 GB of weights in 5.8 ms, 50 % of an MI300X's bandwidth"),
    ("tracelens/triton/*", "far-from-roofline", True, "one flash attention of 3.7 ms: 23 % of the arithmetic"),
    ("verdicts/google_owlv2*", "far-from-roofline", True, "products of attention over 5185 tokens by an align1 kernel: 28 % of the bandwidth"),
    ("*", "far-from-roofline", False, "kernels reach six tenths of the bandwidth or four of the arithmetic, are short or few, or shapes or the GPU's peaks are not known"),

    ("*", "allocator-retries", False, "no step but the first frees device memory and allocates it again, or there are no steps"),

    ("*", "memory-fragmentation", False, "no event took more from the driver while a tenth of what was held lay unused; most hold no totals"),

    ("tracelens/h100/gaunernst_bert*", "unaligned-gemm", True, "the product with 30522 words runs an align2 kernel"),
    ("verdicts/google_owlv2*", "unaligned-gemm", False, "the products over 5185 tokens are those of attention that is written out: one cause, told once"),
    ("*", "unaligned-gemm", False, "16-bit products are aligned, few, or their shapes were not recorded"),

    ("hta/critical_path/*simple_add*", "tf32-off", True, "addmm by sgemm kernels on an A100: 25 % of the kernel time"),
    ("hta/critical_path/end_to_end/*", "tf32-off", True, "the same run"),
    ("more/kineto_pairs/switch_transformer_moe_a100/*", "tf32-off", True, "addmm by ampere_sgemm: 83 and 91 % of the kernel time"),
    ("more/nsys/2026.3_gpt_small_a100/*", "tf32-off", True, "float32 products by ampere_sgemm: 73 and 76 % of the kernel time"),
    ("more/puzzlers/streams/*", "tf32-off", True, "float32 matmul by ampere_sgemm: 95 % of the kernel time"),
    ("*", "tf32-off", False, "no float32 products on ordinary cores of a GPU that has TF32, or few"),

    ("pyprof/lm_nvprof/net.sql", "no-tensor-cores", True, "float32 products by volta_sgemm on a V100"),
    ("dlprof/w_relu/*", "no-tensor-cores", True, "float32 convolutions on a Turing GPU, none on Tensor Cores"),
    ("hta/df_index_resolver/*", "no-tensor-cores", True, "float32 on a V100: 414 ms of kernels under products and convolutions"),
    ("hta/ns_resolution_trace/*", "no-tensor-cores", True, "float32 convolutions on a V100"),
    ("more/kineto_pairs/switch_transformer_moe_a100/*", "no-tensor-cores", True, "all products by ampere_sgemm"),
    ("more/nsys/2026.3_gpt_small_a100/*", "no-tensor-cores", True, "all products by ampere_sgemm"),
    ("more/puzzlers/streams/*", "no-tensor-cores", True, "all products by ampere_sgemm"),
    ("tb_plugin/*", "no-tensor-cores", True, "float32 ResNet-50 on a V100, no Tensor Core kernel"),
    ("*", "no-tensor-cores", False, "Tensor Cores are used, nothing could use them, or the GPU is not known"),
]


def label(path, detector):
    """Of an input, by its path below the data folder."""
    return next(fires for glob, name, fires, _ in LABELS if name == detector and fnmatch.fnmatch(path, glob))


def fires(path):
    """The detectors that must fire."""
    return {name for name in {row[1] for row in LABELS} if label(path, name)}
