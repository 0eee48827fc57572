#!/usr/bin/env python3
"""What opscope.torch costs a PyTorch program on one core, in nanoseconds of its thread's CPU time above the bare call, while `opscope record` records
it; beside it what PyProf's way costs, a wrapper in Python that formats the call stack and three markers. Tensors are tiny: the cost is that of calls.

usage: bench/python.py [--build BUILD] [--python PYTHON] [--write]        (PYTHON has torch; default /usr/bin/python3)
  --write    put the table into docs/performance.md
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

CALLS, ROUNDS = 200, 150

# How it is annotated -> options of init().
MODES = {
    "shapes and types": dict(stacks=False, layers=False, links="none"),
    "and lines": dict(layers=False, links="none"),
    "and backward (hooks)": dict(layers=False),
    "all, `init()`": dict(),
    "all, with call ids": dict(capture_input_ops=True),
    "all, with function stacks": dict(enable_function_stack=True),
}
#: (what, how) -> at most so many ns.
WANTED = {("torch.add", "shapes and types"): 700, ("torch.add", "switched off"): 60, ("module", "all, `init()`"): 250, ("training step", "all, `init()`"): 25}


def cheapest(work, calls=CALLS, rounds=ROUNDS):
    """Of many short runs: whatever else the machine does only adds."""
    best, numbers = float("inf"), range(calls)
    for _ in range(rounds):
        start = time.thread_time_ns()
        for _ in numbers:
            work()
        best = min(best, (time.thread_time_ns() - start) / calls)
    return best


def pyprof_way(function, module, name):
    """A wrapper as PyProf's: written anew, by the description of its markers."""
    import traceback
    import torch
    from opscope import _annotate

    def arguments(args, kwargs):
        out = []
        for key, value in [("", a) for a in args] + list(kwargs.items()):
            if isinstance(value, torch.Tensor):
                out.append({"name": key, "type": "tensor", "shape": tuple(value.size()), "dtype": str(value.dtype).split(".")[-1]})
            else:
                out.append({"name": key, "type": type(value).__name__, "value": value})
        return out

    def wrapper(*args, **kwargs):
        frames = traceback.extract_stack()[:-1]
        _annotate.push(str({"traceMarker": [f"{f.filename}:{f.lineno}" for f in frames]}))
        _annotate.push(str({"mod": module, "op": name, "args": arguments(args, kwargs)}))
        result = function(*args, **kwargs)
        _annotate.pop()
        _annotate.pop()
        return result
    return wrapper


def training_step(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, target = torch.randn(8, 3, 16, 16), torch.arange(8)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), target).backward()
        optimizer.step()
    return step


def inside():
    """Within the recorded process: figures as JSON."""
    import torch
    import torch.nn.functional as F
    import opscope.torch
    from opscope import _annotate

    torch.set_num_threads(1)
    a, w, b, module = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4), torch.nn.Identity()
    step = training_step(torch)
    work = {"torch.add": lambda: torch.add(a, a), "F.linear": lambda: F.linear(a, w, b), "a + a": lambda: a + a, "module": lambda: module(a)}
    bare = {k: cheapest(f) for k, f in work.items()}
    figures = {"bare": bare}
    for mode, options in MODES.items():
        opscope.torch.init(**options)
        figures[mode] = {k: cheapest(f) - bare[k] for k, f in work.items()}
    _annotate.enable(False)
    figures["switched off"] = {k: cheapest(f) - bare[k] for k, f in work.items()}
    opscope.torch.close()
    # In turns, since a step is long and the machine's pace changes.
    steps = {m: [] for m in ("bare", "all, `init()`", "PyProf's way")}
    for _ in range(12):
        steps["bare"].append(cheapest(step, 5, 4))
        opscope.torch.init()
        steps["all, `init()`"].append(cheapest(step, 5, 4))
        opscope.torch.close()
    add, linear = torch.add, F.linear
    torch.add, F.linear = pyprof_way(add, "torch", "add"), pyprof_way(linear, "torch.nn.functional", "linear")
    _annotate.enable(True)
    figures["PyProf's way"] = {k: cheapest(work[k], 50) - bare[k] for k in ("torch.add", "F.linear")}
    _annotate.enable(False)
    torch.add, F.linear = add, linear
    figures["bare"]["training step"] = min(steps["bare"])
    figures["all, `init()`"]["training step"] = min(steps["all, `init()`"]) - min(steps["bare"])
    print(json.dumps(dict(figures=figures, torch=torch.__version__, python=sys.version.split()[0])))


def cell(what, how, figures):
    if what not in figures[how]:
        return "-"
    ns = figures[how][what]
    if how == "bare":
        return f"{ns:.0f} ns"
    share = 100 * ns / figures["bare"][what]
    return f"+{share:.0f} %" if what == "training step" else f"{ns:+.0f}"


def wanted(how):
    found = [f"{what} {most}{' %' if what == 'training step' else ''}" for (what, h), most in WANTED.items() if h == how]
    return "at most: " + ", ".join(found) if found else ""


def main():
    from common import ROOT, machine, write_section
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--python", default="/usr/bin/python3")
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    build = os.path.abspath(a.build)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": os.path.join(build, "python"), "OMP_NUM_THREADS": "1"}
        out = subprocess.run([os.path.join(build, "src", "cli", "opscope"), "record", "--no-report", "--max-size=256M,ring", "-o", os.path.join(folder, "run"), "--",
                              a.python, "-W", "ignore", os.path.abspath(__file__), "--inside"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    result = json.loads(out)
    figures, columns = result["figures"], ("torch.add", "F.linear", "a + a", "module", "training step")
    lines = ["| | " + " | ".join(columns) + " | wanted |", "|---" * (len(columns) + 2) + "|"]
    for how in ("bare", *MODES, "switched off", "PyProf's way"):
        lines.append(f"| {how} | " + " | ".join(cell(c, how, figures) for c in columns) + f" | {wanted(how)} |")
    ratio = figures["PyProf's way"]["torch.add"] / figures["all, `init()`"]["torch.add"]
    lines.append(f"\nPyProf's way costs **{ratio:.0f} times** as much as `init()` with everything on (`torch.add`).")
    print("\n".join(lines))
    if a.write:
        write_section("PyTorch annotated (`bench/python.py`)", f"""{machine()}, torch {result['torch']}, Python {result['python']}, one thread, by

```
bench/python.py --build {os.path.basename(build)} --write
```

What a call costs above the bare one, in ns of CPU time, while `opscope record` records: the least of {ROUNDS} runs of {CALLS} calls. The step: a small CNN, forward, backward and SGD.

{chr(10).join(lines)}
""")


if __name__ == "__main__":
    inside() if "--inside" in sys.argv else main()
