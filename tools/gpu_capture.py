#!/usr/bin/env python3
"""Makes the traces of tests/data/h200/: small trainings and replays on this machine's GPU, recorded by torch.profiler and by `opscope record`.

usage: tools/gpu_capture.py OUT [--build BUILD] [TRACE...]
  OUT            a folder, made where it is missing
  --build BUILD  the build folder (default: build); without one only torch.profiler records
  TRACE          only these, by name

Each trace NAME leaves
  NAME.json.gz       what torch.profiler exports: shapes, stacks, modules, memory
  NAME.table.txt     torch's own key_averages().table of the same profile, all rows
  NAME.facts.json    what the program knows of itself: versions, parameters, loss, CUDA events around the recorded steps
and, from a second run of the same program, NAME.opscope, what `opscope record` sees. A job leaves NAME/rank<N>.json.gz.
"""
import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WAIT, WARMUP, ACTIVE, REPLAYS = 2, 2, 2, 10
RANKS, LATE_RANK, LATE_S, JOB_STEPS = 4, 2, 0.02, 4
TIMEOUT_S = 150

# name: (what is trained or replayed, precision, options)
TRACES = {
    "resnet18_fp32": ("resnet", "fp32", {}),
    "resnet18_bf16": ("resnet", "bf16", {}),
    "gpt_fp32": ("gpt", "fp32", {}),
    "gpt_bf16": ("gpt", "bf16", {}),
    "gpt_bf16_graph": ("gpt", "bf16", {"graph": True}),
    "gpt_bf16_compiled": ("gpt", "bf16", {"compile": "default"}),
    "gpt_bf16_compiled_graphs": ("gpt", "bf16", {"compile": "reduce-overhead"}),
}
JOB = "ddp_gloo_late_backward"


def model_of(kind):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            n, t, width = x.shape
            q, k, v = (part.reshape(n, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self, words=8192, width=768, length=512, layers=4, heads=12):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
            self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, x):
            x = self.words(x) + self.places
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    if kind == "gpt":
        return GPT()
    import torchvision
    return torchvision.models.resnet18(num_classes=100)


def batches_of(kind, n):
    """Batches on the host, as a data loader gives them."""
    import torch
    g = torch.Generator().manual_seed(1)
    for _ in range(n):
        if kind == "gpt":
            x = torch.randint(8192, (8, 512), generator=g)
            yield x, x.roll(-1, 1)
        else:
            yield torch.randn(32, 3, 128, 128, generator=g), torch.randint(100, (32,), generator=g)


class Training:
    def __init__(self, kind, precision, options, device="cuda"):
        import torch
        torch.manual_seed(1)
        self.device, self.kind = device, kind
        self.dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        self.model = model_of(kind).to(device)
        mode = options.get("compile")
        self.run = torch.compile(self.model, mode=mode) if mode else self.model
        self.loss = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4) if kind == "gpt" else torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.options = options

    def step(self, x, target):
        import torch
        x, target = x.to(self.device), target.to(self.device)
        self.optimizer.zero_grad()
        with torch.autocast(self.device, dtype=self.dtype, enabled=self.dtype != torch.float32):
            y = self.run(x)
            loss = self.loss(y.flatten(0, -2), target.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Replay:
    """Inference by a CUDA graph: each step copies the input in, and launches the graph."""

    def __init__(self, kind, precision, options, device="cuda"):
        import torch
        torch.manual_seed(1)
        self.model = model_of(kind).to(device).to(torch.bfloat16 if precision == "bf16" else torch.float32).eval()
        self.x = next(iter(batches_of(kind, 1)))[0].to(device)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            for _ in range(3):
                self.model(self.x)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()

    def capture(self):
        import torch
        with torch.cuda.graph(self.graph), torch.no_grad():
            self.y = self.model(self.x)

    def step(self, x, target):
        self.x.copy_(x)
        self.graph.replay()
        return float(self.y[0, 0, 0])


def make(name):
    kind, precision, options = TRACES[name]
    return (Replay if options.get("graph") else Training)(kind, precision, options)


def record_torch(name, out):
    """Under torch.profiler. The CUDA graph is captured inside of the recording, so that the ops that made its nodes are there."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule
    kind = TRACES[name][0]
    work = make(name)
    base, steps = os.path.join(out, name), WAIT + WARMUP + ACTIVE
    facts = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name(0), "loss": [], "step_ms": []}
    facts["parameters"] = sum(p.numel() for p in work.model.parameters())
    graph = isinstance(work, Replay)
    plan = schedule(wait=0, warmup=1, active=REPLAYS + 1, repeat=1) if graph else schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    if not graph and work.options.get("compile"):
        for x, t in batches_of(kind, 3):  # compiles
            work.step(x, t)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=plan, record_shapes=True, with_stack=True,
                 with_modules=True, profile_memory=True, acc_events=True) as prof:
        if graph:
            prof.step()
            work.capture()
            prof.step()
        for x, t in batches_of(kind, REPLAYS if graph else steps):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            facts["loss"].append(work.step(x, t))
            end.record()
            torch.cuda.synchronize()
            facts["step_ms"].append(begin.elapsed_time(end))
            prof.step()
    facts["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
    prof.export_chrome_trace(base + ".json")
    pack(base + ".json")
    with open(base + ".table.txt", "w") as f:
        f.write(prof.key_averages().table(sort_by="cuda_time_total", row_limit=-1, max_name_column_width=200) + "\n")
    with open(base + ".facts.json", "w") as f:
        json.dump(facts, f, indent=1)


def run_plain(name):
    """The same program for `opscope record`, with opscope.torch where it can be imported."""
    import torch
    try:
        import opscope.torch
        opscope.torch.init()
    except ImportError as e:
        print("opscope.torch:", e)
    work = make(name)
    if isinstance(work, Replay):
        work.capture()
    for i, (x, t) in enumerate(batches_of(TRACES[name][0], WAIT + ACTIVE)):
        with torch.autograd.profiler.record_function(f"ProfilerStep#{i}"):
            print("loss", work.step(x, t))
    torch.cuda.synchronize()


def run_rank(rank, out):
    """A rank of a job that trains with gloo on one GPU: rank LATE_RANK sleeps in each backward pass."""
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    torch.manual_seed(1)
    net = torch.nn.Sequential(*(layer for _ in range(6) for layer in (torch.nn.Linear(1024, 1024), torch.nn.GELU()))).cuda()
    model = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if rank == LATE_RANK:
        net[6].register_full_backward_hook(lambda *_: time.sleep(LATE_S))
    x = torch.randn(256, 1024, device="cuda")

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
    for _ in range(3):
        step()
    dist.barrier()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True, schedule=torch.profiler.schedule(wait=0, warmup=1, active=JOB_STEPS, repeat=1)) as prof:
        for _ in range(JOB_STEPS + 1):
            step()
            prof.step()
    path = os.path.join(out, JOB, f"rank{rank}.json")
    prof.export_chrome_trace(path)
    pack(path)
    dist.destroy_process_group()


def pack(path):
    with open(path, "rb") as f, gzip.GzipFile(path + ".gz", "wb", 9, mtime=0) as g:
        shutil.copyfileobj(f, g)
    os.remove(path)


def run(argv, env=None):
    begin = time.monotonic()
    p = subprocess.run(argv, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
    print(f"{time.monotonic() - begin:6.1f} s, status {p.returncode}: {' '.join(argv[1:])}", flush=True)
    if p.returncode:
        print(p.stdout[-3000:], flush=True)
    return p.returncode


def capture(name, out, build):
    this = os.path.abspath(__file__)
    status = run([sys.executable, this, "--torch", name, out])
    if build:
        opscope = os.path.join(build, "src", "cli", "opscope")
        folder = os.path.join(out, name + ".capture")
        status |= run([opscope, "record", "-o", folder, "--", sys.executable, this, "--plain", name], {"PYTHONPATH": os.path.join(build, "python")})
        status |= run([opscope, "import", folder, "-o", os.path.join(out, name + ".opscope")])
        shutil.rmtree(folder, ignore_errors=True)
    return status


def capture_job(out):
    os.makedirs(os.path.join(out, JOB), exist_ok=True)
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "--rank", str(i), out]) for i in range(RANKS)]
    return max(p.wait(TIMEOUT_S) for p in ranks)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--torch":
        return record_torch(sys.argv[2], sys.argv[3])
    if len(sys.argv) == 3 and sys.argv[1] == "--plain":
        return run_plain(sys.argv[2])
    if len(sys.argv) == 4 and sys.argv[1] == "--rank":
        return run_rank(int(sys.argv[2]), sys.argv[3])
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("trace", nargs="*")
    a = p.parse_intermixed_args()
    unknown = set(a.trace) - set(TRACES) - {JOB}
    if unknown:
        p.error(f"no trace {', '.join(sorted(unknown))}; there are: {', '.join([*TRACES, JOB])}")
    os.makedirs(a.out, exist_ok=True)
    build = os.path.abspath(a.build) if os.path.exists(os.path.join(a.build, "src", "cli", "opscope")) else None
    failed = 0
    for name in [*TRACES, JOB]:
        if a.trace and name not in a.trace:
            continue
        try:
            failed += (capture_job(a.out) if name == JOB else capture(name, a.out, build)) != 0
        except subprocess.TimeoutExpired:
            print(f"{name}: did not end within {TIMEOUT_S} s", flush=True)
            failed += 1
    return failed


sys.exit(main())
