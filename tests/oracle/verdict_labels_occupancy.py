"""Which detectors of how blocks lie on the GPU are right about which real inputs; as verdict_labels_compute.py has it. Waves are those of the largest
launches, counted by python from grid, block, registers and shared memory."""

LABELS = [
    # (path, detector, fires, why)
    ("multirank/megatron_a100_tp8/*", "low-occupancy", False, "causal softmax by 91 registers on 20 of 64 warps, 4.6 % of the time: 400 MB in 425 us is half the bandwidth"),
    ("hta/*", "low-occupancy", False, "12 to 31 % only in convolutions and products, which hold their tiles in registers"),
    ("tb_plugin/*", "low-occupancy", False, "19 to 31 % only in convolutions: dgrad_engine, volta_scudnn, winograd"),
    ("tracelens/h100/*", "low-occupancy", False, "12 to 19 % only in flash_fwd_kernel, convolutions and products"),
    ("tracelens/b200/*", "low-occupancy", False, "12 to 28 % only in products of experts, nvjet and attention"),
    ("verdicts/google_owlv2*", "low-occupancy", False, "softmax and elementwise kernels have 25 and more of 64 warps on an SM"),
    ("nsys/2024.6_fuser_h100/*", "low-occupancy", False, "nvfuser_none is a product of 128 blocks on 132 SMs: 12 warps hold its tile"),
    ("more/kineto_pairs/particle_transformer_a100/*", "low-occupancy", False, "gemvx and scudnn alone: 0.3 and 1.5 % of the time"),
    ("*", "low-occupancy", False, "no long kernel but products on fewer than 23 of 64 warps, or launches, limits of the GPU or times are not known"),

    ("pyprof/mmagic_nsys/net.sqlite", "wave-quantisation", False, "conv of 256 blocks, 1.19 waves of 216: 0.4 of 9 ms of device time, but of 1.17 s in which the GPU is idle"),
    ("pyprof/lm_nvprof/net.sql", "wave-quantisation", False, "sgemm of 336 blocks, 1.05 waves of 320, but 4.2 for each of 80 SMs: 2.5 % of the time"),
    ("more/puzzlers/streams/*", "wave-quantisation", False, "sgemm of 640 blocks, split in 5 for that: 5.93 for each of 108 SMs"),
    ("more/kineto_pairs/switch_transformer_moe_a100/*", "wave-quantisation", False, "sgemm of 512 blocks, 4.74 for each of 108 SMs: 5 % of its time"),
    ("hta/critical_path/*", "wave-quantisation", False, "conv of 338 blocks, 1.56 waves of 216: 0.6 % of the time"),
    ("hta/nccl_parser_config/*", "wave-quantisation", False, "256, 120 and 128 blocks on 108 SMs: 0.9 % of the time"),
    ("hta/ns_resolution_trace/*", "wave-quantisation", False, "convolutions of 416 blocks, 1.30 waves of 320: 0.5 % of the time"),
    ("more/nsys/2026.3_ddp_2gpu_nccl/*", "wave-quantisation", False, "96 and 112 blocks on 82 SMs, most of them beside all-reduces; alone 0.8 %"),
    ("more/nsys/2026.3_gpt_small_a100/*", "wave-quantisation", False, "288 blocks, 1.33 waves of 216, in 6 % of the time: 1.0 %"),
    ("multirank/megatron_a100_tp8/*", "wave-quantisation", False, "products of 4.78 and 9.48 waves; bmm of 512 blocks, 2.37 waves of 216, but 4.74 for each of 108 SMs"),
    ("tb_plugin/*", "wave-quantisation", False, "896 blocks, 1.12 waves of 800, but 11.2 for each of 80 SMs"),
    ("tracelens/h100/*", "wave-quantisation", False, "products of one wave or part of one, attention of 4.85 waves"),
    ("verdicts/google_owlv2*", "wave-quantisation", False, "bmm of 656 blocks, 2.48 waves of 264, but 4.97 for each of 132 SMs"),
    ("*", "wave-quantisation", False, "products of many waves, of one, or none, or launches, limits of the GPU or times are not known"),
]
