#!/usr/bin/env python3
"""What a training run pays for being ready to record on demand, while nobody asks: steps with it and steps without it take turns in one process, so that whatever
else the machine does meets both; of each the CPU time of the thread, and what the threads that wait have taken.

usage: bench/on_demand.py [--build BUILD] [--python PYTHON] [--turns N] [--write]        (PYTHON has torch; default /usr/bin/python3, 20 turns)
  --write    put the table into docs/performance.md
"""
import os
import subprocess
import tempfile

from common import machine, python_arguments, write_section

PROGRAM = """
import glob, sys, time
import torch
import torch.nn.functional as F
import opscope, opscope.torch
torch.set_num_threads(1)
way, turns = sys.argv[1], int(sys.argv[2])
demand = opscope.on_demand("run") if way == "profiler" else None
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
sgd = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(4, 8), torch.zeros(4, dtype=torch.int64)

def step(ready):
    if ready and demand:
        demand.step()
    sgd.zero_grad()
    F.cross_entropy(net(x), y).backward()
    sgd.step()

def turn(ready):
    if way == "library" and ready:
        opscope.torch.init()
    least = 1e18
    for _ in range(60):
        start = time.thread_time_ns()
        for _ in range(10):
            step(ready)
        least = min(least, (time.thread_time_ns() - start) / 10)
    if way == "library" and ready:
        opscope.torch.close()
    return least

def waiting():
    # In clock ticks, of the threads that wait.
    ticks = 0
    for path in glob.glob("/proc/self/task/*/stat"):
        name, _, rest = open(path).read().rpartition(")")
        if name.split("(")[1].startswith("opscope"):
            ticks += sum(int(v) for v in rest.split()[11:13])
    return ticks

began = time.monotonic()
took = {True: [], False: []}
for i in range(turns):
    for ready in (False, True):
        took[ready].append(turn(ready))
print(min(took[False]), min(took[True]), waiting(), time.monotonic() - began)
"""
# title -> (the way of the program, whether `opscope record --on-demand` is in front of it)
WAYS = {
    "`opscope record --on-demand`, of a program that calls `opscope.torch.init()`": ("library", True),
    "`opscope.on_demand()` in the program": ("profiler", False),
}


def run(a, way, recorded):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "runtime"), 0o700)
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPSCOPE_")}
        env.update(PYTHONPATH=os.path.join(a.build, "python"), XDG_RUNTIME_DIR=os.path.join(folder, "runtime"))
        front = [os.path.join(a.build, "src", "cli", "opscope"), "record", "--on-demand", "-o", "run", "--"] if recorded else []
        p = subprocess.run([*front, a.python, "-c", PROGRAM, way, str(a.turns)], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, text=True)
        if p.returncode:
            raise SystemExit(p.stderr)
        return [float(v) for v in p.stdout.split()]


def main():
    a = python_arguments(__doc__, turns=20)
    lines = ["| ready by | a step, without | with, nobody asks | more | threads that wait |", "|---|---|---|---|---|"]
    for title, (way, recorded) in WAYS.items():
        without, ready, ticks, seconds = run(a, way, recorded)
        lines.append(f"| {title} | {without / 1e3:.1f} us | {ready / 1e3:.1f} us | **{(ready - without) / 1e3:.1f} us** | {ticks * 1000 / os.sysconf('SC_CLK_TCK'):.0f} ms in {seconds:.0f} s |")
        print(lines[-1], flush=True)
    if a.write:
        write_section("Recording on demand", f"""{machine()}, which other work kept busy, by

```
bench/on_demand.py --build {os.path.basename(a.build)} --turns {a.turns} --write
```

{chr(10).join(lines)}

CPU time of the thread that trains: the least of 60 times 10 steps, a turn; steps with it and steps without it take turns in one process. The model is two layers of 8 numbers, so that a step is nothing but calls: the figure is what each
step of a program pays, whatever its size. In the first row it is for the wrappers around functions of torch, most of it for the ranges of the optimizer, and no more than `opscope record` takes outside of its `--steps`. A program that does not
call `opscope.torch.init()` pays for its ranges alone ([above](#ranges-of-a-recorded-program)).
""")


if __name__ == "__main__":
    main()
