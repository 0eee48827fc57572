#!/usr/bin/env python3
"""What a training run pays for being ready to record on demand, while nobody asks: pairs of runs, one without opscope and one with it, one after the other; of
each the CPU time of the process for a step, and the ratio of both.

usage: bench/on_demand.py [--build BUILD] [--python PYTHON] [--pairs N] [--write]        (PYTHON has torch; default /usr/bin/python3, 15 pairs)
  --write    put the table into docs/performance.md
"""
import argparse
import os
import statistics
import subprocess
import tempfile

from common import ROOT, machine, write_section

STEPS = 500
PROGRAM = """
import statistics, sys, time
import torch
import torch.nn.functional as F
torch.set_num_threads(1)
torch.manual_seed(0)
way, steps = sys.argv[1], int(sys.argv[2])
demand = None
if way == "idle":
    import opscope.torch
    opscope.torch.init()
if way == "profiler":
    import opscope
    demand = opscope.on_demand("run")
net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 24 * 24, 10))
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(8, 3, 28, 28), torch.zeros(8, dtype=torch.int64)

def step():
    if demand:
        demand.step()
    sgd.zero_grad()
    F.cross_entropy(net(x), y).backward()
    sgd.step()

for _ in range(20):
    step()
took = []
for _ in range(steps):
    start = time.process_time_ns()
    step()
    took.append(time.process_time_ns() - start)
print(min(took), statistics.quantiles(took, n=10)[0])
"""
# title -> (the way of the program, whether `opscope record --on-demand` is in front of it)
WAYS = {
    "`opscope record --on-demand`": ("idle", True),
    "`opscope.on_demand()` in the program": ("profiler", False),
}


def run(a, way, recorded):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "runtime"), 0o700)
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPSCOPE_")}
        env.update(PYTHONPATH=os.path.join(a.build, "python"), XDG_RUNTIME_DIR=os.path.join(folder, "runtime"))
        front = [os.path.join(a.build, "src", "cli", "opscope"), "record", "--on-demand", "-o", "run", "--"] if recorded else []
        p = subprocess.run([*front, a.python, "-c", PROGRAM, way, str(STEPS)], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, text=True)
        if p.returncode:
            raise SystemExit(p.stderr)
        return [float(v) for v in p.stdout.split()]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--pairs", type=int, default=15)
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    lines = ["| ready by | a step, without | with, nobody asks | ratio of the least | of each pair's fastest tenth, the median |", "|---|---|---|---|---|"]
    for title, (way, recorded) in WAYS.items():
        pairs = []
        for i in range(a.pairs):
            order = [("bare", False), (way, recorded)]
            got = {w: run(a, w, r) for w, r in (order if i % 2 else order[::-1])}
            pairs.append((got["bare"], got[way]))
        least = min(b[0] for b, _ in pairs), min(w[0] for _, w in pairs)
        ratio = statistics.median(w[1] / b[1] for b, w in pairs)
        lines.append(f"| {title} | {least[0] / 1e6:.3f} ms | {least[1] / 1e6:.3f} ms | **{least[1] / least[0]:.3f}** | {ratio:.3f} |")
        print(lines[-1], flush=True)
    if a.write:
        write_section("Recording on demand", f"""{machine()}, which other work kept busy, by

```
bench/on_demand.py --build {os.path.basename(a.build)} --pairs {a.pairs} --write
```

{chr(10).join(lines)}

CPU time of the whole process, the threads of the library included, for a training step of a small CNN: forward, backward, SGD; {STEPS} steps a run, {a.pairs} pairs of runs in turns. In the first row the program
calls `opscope.torch.init()`, so that each function of torch goes through a wrapper; that is most of it.
""")


if __name__ == "__main__":
    main()
