#!/usr/bin/env python3
"""How long torch itself takes from recorded events to prof.key_averages().table(), against `opscope report key-averages` of the exported
trace of the same events: one training loop, profiled here and now, where a Python with torch is installed (Debian: python3-torch). And the same in one
process: opscope.profile against torch.profiler, both answering for one recording.

usage: bench/torch_post.py [--build=build] [--steps=N] [--python=/usr/bin/python3] [--write]

Both are measured in CPU time. --write puts the figures into docs/performance.md. The exit status is 1 where a whole answer is not 50 times sooner, or
opscope.profile's text is not torch's. Without torch it says so and exits with status 0.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import common

EXPECTED = 50

# Runs under the Python that has torch. What the C++ side does to stop recording is not counted: only what Python makes of its events.
LOOP = r"""
import json, sys, time
import torch, torch.autograd.profiler as ap

steps, path = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
torch.set_num_threads(1)
nn = torch.nn
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
stopped = [0.0]

def timed(name):
    plain = getattr(ap, name, None)
    if plain is None:
        return
    def f(*a, **k):
        start = time.process_time()
        try:
            return plain(*a, **k)
        finally:
            stopped[0] += time.process_time() - start
    setattr(ap, name, f)

for name in ("_disable_profiler", "_disable_profiler_legacy"):
    timed(name)
p = ap.profile(record_shapes=True)
p.__enter__()
for _ in range(steps):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data[0]), data[1]).backward()
    optimizer.step()
start = time.process_time()
p.__exit__(None, None, None)
parse = time.process_time() - start - stopped[0]
start = time.process_time()
averages = p.key_averages()
average = time.process_time() - start
start = time.process_time()
text = averages.table(row_limit=-1)
table = time.process_time() - start
start = time.process_time()
p.key_averages(group_by_input_shape=True).table(row_limit=-1)
by_shape = time.process_time() - start
p.export_chrome_trace(path)
print(json.dumps({"torch": torch.__version__, "events": len(p.function_events), "parse": parse, "average": average, "table": table,
                  "by_shape": by_shape, "lines": text.count("\n"), "calls": {e.key: e.count for e in averages}}))
"""


# The same recording, answered for by both. Of what torch's C++ does to stop, which both need, nothing is counted. Profilers and tables are made
# anew each time, the fastest of three counts.
BOTH = r"""
import gc, json, sys, time
import opscope, torch, torch.autograd.profiler as ap
from torch.autograd.profiler_util import EventList

steps, options = int(sys.argv[1]), json.loads(sys.argv[2])
torch.manual_seed(0)
torch.set_num_threads(1)
nn = torch.nn
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
data = torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
kept = []
plain = ap._disable_profiler

def keep():
    kept.append(plain())
    return kept[-1]

def timed(f):
    gc.collect()
    start = time.process_time()
    value = f()
    return time.process_time() - start, value

ap._disable_profiler = keep
with opscope.profile(**options) as prof:
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data[0]), data[1]).backward()
        optimizer.step()
result = kept[-1]
inner = ap.profile(**options)

def parse():
    events = EventList(inner._parse_kineto_results(result), use_cuda=False, profile_memory=options.get("profile_memory", False), with_flops=False)
    events._build_tree()
    return events

theirs = [timed(parse)]
events = theirs[0][1]
average, averages = timed(events.key_averages)
theirs = {"parse": theirs[0][0], "average": average, "table": timed(lambda: averages.table(row_limit=-1))[0]}
ours = {}
for _ in range(3):
    take, made = timed(lambda: prof._recorder.take(result))
    prof.recordings.append(made)
    first, _ = timed(prof.key_averages)
    again, mine = timed(prof.key_averages)
    table, text = timed(lambda: mine.table(row_limit=-1))
    now = {"take": take, "first": first, "again": again, "table": table}
    ours = now if not ours or take + first < ours["take"] + ours["first"] else ours
print(json.dumps({"events": len(events), "torch": theirs, "opscope": ours, "same": text == averages.table(row_limit=-1), "version": torch.__version__}))
"""


def both(python, build, steps):
    """Text about opscope.profile, and what is not as wanted; None where the package is not built."""
    path = os.path.join(build, "python")
    if not os.path.exists(os.path.join(path, "opscope", "profiler.py")):
        return None
    rows, trouble, version = [], [], ""
    for name, options in (("times alone", {}), ("record_shapes", {"record_shapes": True}),
                          ("record_shapes, profile_memory, with_stack", {"record_shapes": True, "profile_memory": True, "with_stack": True})):
        p = subprocess.run([python, "-W", "ignore", "-c", BOTH, str(steps), json.dumps(options)], capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": path})
        if p.returncode:
            sys.exit(f"opscope.profile failed: {p.stderr[-2000:]}")
        d = json.loads(p.stdout)
        t, o, version = d["torch"], d["opscope"], d["version"]
        theirs, ours = t["parse"] + t["average"] + t["table"], o["take"] + o["first"] + o["table"]
        if theirs / ours <= EXPECTED:
            trouble.append(f"{name}: {theirs / ours:.1f} times sooner")
        if not d["same"]:
            trouble.append(f"{name}: another text than torch's")
        rows.append(f"| {name} | {d['events']:,} | {theirs:.2f} | {ours:.3f} | **{theirs / ours:.0f}** | {t['average']:.2f} | {o['again']:.3f} | "
                    f"**{t['average'] / o['again']:.0f}** | {'yes' if d['same'] else 'NO'} |")
    text = [f"{common.machine()}: torch {version}, a training loop of {steps} steps on the CPU in `opscope.profile(...)`; torch's own functions then answer for the same "
            "recording in the same process. From recorded events to the text of `key_averages().table()`: torch makes Python objects of all events, adds them up "
            "and writes the table; opscope reads the events, writes its file, opens it, adds up and writes the table. `key_averages()` alone is what each further question "
            "costs. CPU seconds.", "",
            "| recorded | events | torch | opscope | ratio | `key_averages()` of torch | of opscope | ratio | same text |", "|---|---|---|---|---|---|---|---|---|", *rows]
    return "\n".join(text), trouble


def find_python(asked):
    """The first Python that has torch, or None."""
    for python in filter(None, (asked, os.environ.get("TORCH_PYTHON"), sys.executable, "/usr/bin/python3")):
        try:
            if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
                return python
        except OSError:
            pass
    return None


def same_calls(opscope, trace, theirs):
    """How many names have the same number of calls in both, of how many."""
    out = subprocess.run([opscope, "report", "key-averages", trace, "--format=json", "--limit=0"], capture_output=True, check=True).stdout
    doc = json.loads(out)
    ids = [c["id"] for c in doc["columns"]]
    ours = {r[ids.index("name")]: r[ids.index("calls")] for r in doc["rows"]}
    return sum(ours.get(name) == n for name, n in theirs.items()), len(theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(common.ROOT, "build"))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--profile-steps", type=int, default=600, help="of the loop in opscope.profile")
    parser.add_argument("--python")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    opscope = os.path.join(args.build, "src", "cli", "opscope")
    if not os.path.exists(opscope):
        sys.exit(f"{opscope} is missing: ninja -C {args.build}")
    python = find_python(args.python)
    if not python:
        print("torch is not installed (Debian: apt-get install python3-torch): nothing measured")
        return 0
    with tempfile.TemporaryDirectory() as d:
        trace = os.path.join(d, "trace.json")
        p = subprocess.run([python, "-W", "ignore", "-c", LOOP, str(args.steps), trace], capture_output=True, text=True)
        if p.returncode:
            sys.exit(f"the training loop failed: {p.stderr[-2000:]}")
        t = json.loads(p.stdout)
        mb = os.path.getsize(trace) / 1e6
        by_name = common.Cost([opscope, "report", "key-averages", trace, "--limit=0"])
        by_shape = common.Cost([opscope, "report", "key-averages", "--group-by=shape", trace, "--limit=0"])
        same, names = same_calls(opscope, trace, t["calls"])
    rows = [("by name", t["parse"] + t["average"] + t["table"], by_name), ("by name and shape", t["parse"] + t["by_shape"], by_shape)]
    text = [f"{common.machine()}: torch {t['torch']}, a training loop of {args.steps} steps on the CPU, {t['events']:,} events, {mb:.1f} MB of JSON. torch: from its "
            f"recorded events to the text of `key_averages().table()`, in the process that has them (parsing them into Python objects "
            f"{t['parse']:.2f} s, averaging {t['average']:.2f} s, the table {t['table']:.2f} s). opscope: the whole program, reading the exported "
            f"trace included. Both in CPU time, which other work on the machine does not change. Calls are the same for {same} of {names} names.", "",
            "| table | torch, CPU s | opscope, CPU s | ratio |", "|---|---|---|---|"]
    text += [f"| {name} | {theirs:.2f} | {ours.cpu:.3f} | {theirs / ours.cpu:.0f} |" for name, theirs, ours in rows]
    print("\n".join(text))
    trouble = [f"the program, {name}: {theirs / ours.cpu:.1f} times sooner" for name, theirs, ours in rows if theirs / ours.cpu <= EXPECTED]
    profile = both(python, args.build, args.profile_steps)
    if profile:
        print("\n" + profile[0])
        trouble += profile[1]
    print(f"\nwanted: whole answers more than {EXPECTED} times sooner, the same text: " + ("yes" if not trouble else "NO: " + "; ".join(trouble)))
    if args.write:
        common.write_section("Against torch's own post-processing (`bench/torch_post.py`)", "\n".join(text))
        if profile:
            common.write_section("`opscope.profile` against torch.profiler (`bench/torch_post.py`)", profile[0])
    return 1 if trouble else 0


if __name__ == "__main__":
    sys.exit(main())
