"""Which detectors of computing are right about which real inputs: (glob below the data folder, detector, whether it must fire, why). The
first row that fits a path holds; each detector has a last row for all other inputs."""
import fnmatch

LABELS = [
    # (path, detector, fires, why)
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
    ("hta/df_index_resolver/*", "unfused-elementwise", False, "shapes were not recorded: it says that it could not look"),
    ("nsys/*", "unfused-elementwise", False, "no ops and no shapes: it says that it could not look, or nothing elementwise runs"),
    ("*", "unfused-elementwise", False, "chains take less than a tenth of the device time above their least, or shapes are not known"),
]


def label(path, detector):
    """Of an input, by its path below the data folder."""
    return next(fires for glob, name, fires, _ in LABELS if name == detector and fnmatch.fnmatch(path, glob))


def fires(path):
    """The detectors that must fire."""
    return {name for name in {row[1] for row in LABELS} if label(path, name)}
