#!/usr/bin/env python3
"""Measures `opscope diff` against `report operators` of one of the two traces, in one run, on real traces scaled up with bench/scale.

usage: bench/diff.py [--build BUILD] [--write] [MEGABYTES...]      (default 250 1000)
  --write    put the table into docs/performance.md
Needs room in $TMPDIR for the largest trace twice. CPU time is user + system of the whole process; of 3 runs the best.
"""
import argparse
import os
import subprocess
import tempfile

from common import Cost, ROOT, machine, write_section

DATA = os.path.normpath(os.environ.get("OPSCOPE_DATA", os.path.join(ROOT, "..", "shared", "data")))
TRACES = [os.path.join(DATA, *x.split("/")) for x in
          ("tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz", "multirank/megatron_a100_tp8/megatron_kineto_0.json.gz")]


def make(scale, trace, megabytes, path):
    with open(path, "wb") as f:
        subprocess.run([scale, trace, str(megabytes)], stdout=f, stderr=subprocess.DEVNULL, check=True)


def measure(opscope, scale, trace, megabytes, folder):
    """A trace against a copy of another length: as many steps more as a tenth of it holds."""
    a, b = (os.path.join(folder, name) for name in ("a.json", "b.json"))
    make(scale, trace, megabytes, a)
    make(scale, trace, megabytes * 11 // 10, b)
    report, diff = Cost([opscope, "report", "operators", a], 3), Cost([opscope, "diff", "--force", a, b], 3)
    size = os.path.getsize(a) / 1e6
    for path in (a, b):
        os.unlink(path)
    return {"trace": os.path.basename(trace).split(".")[0], "mb": size, "report": report, "diff": diff}


def text(rows):
    out = [f"{machine()}, by", "", "```", "bench/diff.py --build build", "```", "",
           "`opscope diff A B`, where B is a tenth longer than A, against `opscope report operators A`. Wanted: 2.6 times the CPU at most, and under 1 GB for two traces of 1 GB.", "",
           "| trace | MB of A | report, CPU s | diff, CPU s | **ratio** | peak of diff, MB |", "|---|---|---|---|---|---|"]
    for r in rows:
        out.append(f"| {r['trace']} | {r['mb']:.0f} | {r['report'].cpu:.2f} | {r['diff'].cpu:.2f} | **{r['diff'].cpu / r['report'].cpu:.2f}** | {r['diff'].rss / 1e6:.0f} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("megabytes", nargs="*", type=int, default=[250, 1000])
    args = parser.parse_args()
    opscope, scale = os.path.join(args.build, "src", "cli", "opscope"), os.path.join(args.build, "bench", "scale")
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(opscope, scale, t, m, folder) for m in args.megabytes for t in TRACES if os.path.exists(t)]
    table = text(rows)
    print(table)
    if args.write:
        write_section("Two runs compared", table)


if __name__ == "__main__":
    main()
