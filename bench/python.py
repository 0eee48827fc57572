#!/usr/bin/env python3
"""What opscope.torch costs a PyTorch program on one core, in nanoseconds of its thread's CPU time above the bare call, while `opscope record` records
it; beside it what PyProf's way costs: around the same functions as PyProf a wrapper in Python that formats the call stack and the arguments. Tensors are
tiny: the cost is that of calls. Then, without `opscope record`, the same step under opscope.profile(backend="opscope") and under torch.profiler.

usage: bench/python.py [--build BUILD] [--python PYTHON] [--slack PERCENT] [--write]        (PYTHON has torch; default /usr/bin/python3)
  --slack    how much more than wanted a figure may be, in percent (default 0)
  --write    put the table into docs/performance.md

Exit status: 0 where all wanted figures were reached, 1 where one was not, which is named.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

CALLS, ROUNDS, TURNS = 200, 150, 25

PYPROF, ALL = "PyProf's way", "all, `init()`"

# How it is annotated -> options of init().
MODES = {
    "shapes and types": dict(stacks=False, layers=False, links="none"),
    "and lines": dict(layers=False, links="none"),
    "and backward (hooks)": dict(layers=False),
    ALL: dict(),
    "all, with call ids": dict(capture_input_ops=True),
    "all, with function stacks": dict(enable_function_stack=True),
}
#: (what, how) -> at most so many ns.
WANTED = {("torch.add", "shapes and types"): 700, ("torch.add", "switched off"): 60, ("module", ALL): 250, ("training step", ALL): 25}


# Who profiles the step -> module, arguments of its profile(). The last of them are compared.
PROFILERS = {
    "`torch.profiler`": ("torch.profiler", {}),
    '`opscope.profile(backend="opscope")`': ("opscope", dict(backend="opscope")),
    "`torch.profiler`, shapes and stacks": ("torch.profiler", dict(record_shapes=True, with_stack=True)),
    '`opscope.profile(backend="opscope")`, shapes and stacks': ("opscope", dict(backend="opscope", with_stack=True)),
}
PROFILED = 20  # steps of a recording


def cheapest(work, calls=CALLS, rounds=ROUNDS):
    """Of many short runs: whatever else the machine does only adds."""
    best, numbers = float("inf"), range(calls)
    for _ in range(rounds):
        start = time.thread_time_ns()
        for _ in numbers:
            work()
        best = min(best, (time.thread_time_ns() - start) / calls)
    return best


def pyprof_marker(module, op, args, kwargs):
    """{'mod': M, 'op': O, 'args': [...]} as PyProf writes it, written anew by the description of its markers."""
    import torch
    out, scalars = [], (int, float, bool, str, type(None))

    def scalar(name, value):
        shown = str(value) if isinstance(value, float) and not math.isfinite(value) else value
        out.append({"name": name, "type": type(value).__name__, "value": shown})

    def describe(name, value):
        if isinstance(value, torch.Tensor) and value.dim() == 0:
            scalar(name, value.item())
        elif isinstance(value, torch.Tensor):
            out.append({"name": name, "type": "tensor", "shape": tuple(value.size()), "dtype": str(value.dtype).split(".")[-1]})
        elif type(value) in scalars:
            scalar(name, value)
        elif isinstance(value, (list, tuple)) and (not value or type(value[0]) in scalars):
            out.append({"name": name, "type": "list" if isinstance(value, list) else "tuple", "value": value if isinstance(value, list) else tuple(value)})
        elif isinstance(value, (list, tuple)):
            for one in value:
                describe(name, one)

    for value in args:
        describe("", value)
    for name, value in kwargs.items():
        describe(name, value)
    return str({"mod": module, "op": op, "args": out})


def pyprof_way(function, owner, name):
    """PyProf's wrapper: a range with the stack, for modules one with their arguments, one with those of the call."""
    import traceback
    from opscope import _annotate
    is_module = hasattr(owner, "extra_repr")

    def wrapper_func(*args, **kwargs):
        frames = traceback.extract_stack()[:-1]
        _annotate.push(str({"traceMarker": [f"{f.filename}:{f.lineno}" for f in frames]}))
        if is_module:
            _annotate.push(str({"mod": owner.__name__, "strRepr": args[0].extra_repr()}))
        _annotate.push(pyprof_marker(owner.__name__, name, args, kwargs))
        result = function(*args, **kwargs)
        _annotate.pop()
        if is_module:
            _annotate.pop()
        _annotate.pop()
        return result
    return wrapper_func


class PyProf:
    """All that PyProf wraps, in its way."""

    def __init__(self):
        import torch
        from opscope import _compat
        from opscope.torch import _Patch
        owners = [torch, torch.Tensor, torch.nn.functional, *([torch.distributed] if torch.distributed.is_available() else [])]
        names = [(o, n) for o in owners for n in _compat.functions(o)] + [(getattr(torch.nn, c), "forward") for c in _compat.RNN]
        self.patches = [_Patch(o, n, pyprof_way(getattr(o, n), o, n)) for o, n in names]

    def __enter__(self):
        for patch in self.patches:
            patch.put()

    def __exit__(self, *unused):
        for patch in reversed(self.patches):
            patch.take()


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
    work = {"torch.add": lambda: torch.add(a, a), "F.linear": lambda: F.linear(a, w, b), "linalg.vector_norm": lambda: torch.linalg.vector_norm(a), "a + a": lambda: a + a,
            "module": lambda: module(a)}
    figures = {"bare": {k: cheapest(f) for k, f in work.items()}}
    for mode, options in MODES.items():
        opscope.torch.init(**options)
        figures[mode] = {k: cheapest(f) for k, f in work.items()}
    _annotate.enable(False)
    figures["switched off"] = {k: cheapest(f) for k, f in work.items()}
    opscope.torch.close()
    pyprof = PyProf()
    with pyprof:
        figures[PYPROF] = {k: cheapest(work[k], 50) for k in ("torch.add", "F.linear", "a + a")}
    # Once more at the end: what the machine did at the beginning would be in all figures.
    bare = figures["bare"] = {k: min(ns, cheapest(work[k])) for k, ns in figures["bare"].items()}
    for how in figures:
        if how != "bare":
            figures[how] = {k: ns - bare[k] for k, ns in figures[how].items()}
    # In turns, since a step is long and the machine's pace changes: each against the bare one of its turn.
    steps = {m: [] for m in ("bare", ALL, PYPROF)}
    for _ in range(TURNS):
        steps["bare"].append(cheapest(step, 5, 4))
        opscope.torch.init()
        steps[ALL].append(cheapest(step, 5, 4))
        opscope.torch.close()
        with pyprof:
            steps[PYPROF].append(cheapest(step, 5, 1))
    bare["training step"] = statistics.median(steps["bare"])
    for how in (ALL, PYPROF):
        figures[how]["training step"] = bare["training step"] * (statistics.median(a / b for a, b in zip(steps[how], steps["bare"])) - 1)
    print(json.dumps(dict(figures=figures, pyprof=len(pyprof.patches), torch=torch.__version__, python=sys.version.split()[0])))


def table_of(prof, shapes):
    return prof.key_averages(group_by_input_shape=shapes, group_by_stack_n=5 if shapes else 0).table(sort_by="self_cpu_time_total")


def profilers():
    """Within a process that nobody records, as JSON: each profiler's steps against bare ones just before, since the machine's pace changes; s from the end of the
    recording to the table."""
    import importlib
    import torch

    torch.set_num_threads(1)
    step, bare, ratios, answers = training_step(torch), [], {}, {}
    for _ in range(16):
        for who, (module, options) in PROFILERS.items():
            bare.append(cheapest(step, 5, PROFILED // 5))
            prof = importlib.import_module(module).profile(**options)
            prof.start()
            ratios.setdefault(who, []).append(cheapest(step, 5, PROFILED // 5) / bare[-1])
            start = time.perf_counter()
            prof.stop()
            table_of(prof, "with_stack" in options)
            answers.setdefault(who, []).append(time.perf_counter() - start)
    print(json.dumps(dict(bare=min(bare), ratios={k: statistics.median(v) for k, v in ratios.items()}, answers={k: min(v) for k, v in answers.items()})))


def profilers_lines(found):
    lines = ["| the step under | CPU time | stop() and the table |", "|---|---|---|", f"| nobody | {found['bare'] / 1e3:.0f} us | |"]
    for who in PROFILERS:
        lines.append(f"| {who} | {100 * (found['ratios'][who] - 1):+.0f} % | {1e3 * found['answers'][who]:.0f} ms |")
    return lines


def share(what, how, figures):
    return 100 * figures[how][what] / figures["bare"][what]


def cell(what, how, figures):
    if what not in figures[how]:
        return "-"
    if what == "training step" and how != "bare":
        return f"{round(share(what, how, figures)):+d} %"
    return f"{figures[how][what]:.0f} ns" if how == "bare" else f"{figures[how][what]:+.0f}"


def wanted(how):
    found = [f"{what} {most}{' %' if what == 'training step' else ''}" for (what, h), most in WANTED.items() if h == how]
    return "at most: " + ", ".join(found) if found else ""


def missed(figures, slack):
    """Of what is wanted, what was not reached, in words."""
    out = []
    for (what, how), most in WANTED.items():
        found, unit = (share(what, how, figures), "%") if what == "training step" else (figures[how][what], "ns")
        if found > most * (1 + slack / 100):
            out.append(f"{what}, {how}: {found:.0f} {unit}, wanted at most {most} {unit}")
    return out


def main():
    from common import machine, python_arguments, write_section
    a = python_arguments(__doc__, slack=0.0)
    build = a.build
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": os.path.join(build, "python"), "OMP_NUM_THREADS": "1"}
        out = subprocess.run([os.path.join(build, "src", "cli", "opscope"), "record", "--no-report", "--max-size=256M,ring", "-o", os.path.join(folder, "run"), "--",
                              a.python, "-W", "ignore", os.path.abspath(__file__), "--inside"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
        alone = subprocess.run([a.python, "-W", "ignore", os.path.abspath(__file__), "--profilers"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               check=True, text=True).stdout
    result, beside = json.loads(out), profilers_lines(json.loads(alone))
    figures, columns = result["figures"], ("torch.add", "F.linear", "linalg.vector_norm", "a + a", "module", "training step")
    lines = ["| | " + " | ".join(columns) + " | wanted |", "|---" * (len(columns) + 2) + "|"]
    for how in ("bare", *MODES, "switched off", PYPROF):
        lines.append(f"| {how} | " + " | ".join(cell(c, how, figures) for c in columns) + f" | {wanted(how)} |")
    ratio = figures[PYPROF]["torch.add"] / figures[ALL]["torch.add"]
    lines.append(f"\nPyProf's way costs **{ratio:.0f} times** as much as `init()` with everything on (`torch.add`); it wraps {result['pyprof']} functions, and a step takes "
                 f"**{1 + share('training step', PYPROF, figures) / 100:.1f} times** as long as without it, with `init()` {1 + share('training step', ALL, figures) / 100:.2f} times.")
    print("\n".join([*lines, "", *beside]))
    if a.write:
        write_section("PyTorch annotated (`bench/python.py`)", f"""{machine()}, torch {result['torch']}, Python {result['python']}, one thread, by

```
bench/python.py --build {os.path.basename(build)} --write
```

What a call costs above the bare one, in ns of CPU time, while `opscope record` records: the least of {ROUNDS} runs of {CALLS} calls. The step: a small CNN, forward, backward and SGD; the median of {TURNS} turns, each against the bare step beside it.

{chr(10).join(lines)}

The same step where nobody records, under a profiler (16 recordings of {PROFILED} steps each, the median against the bare steps just before):

{chr(10).join(beside)}
""")
    bad = missed(figures, a.slack)
    for what in bad:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(inside() if "--inside" in sys.argv else profilers() if "--profilers" in sys.argv else main())
