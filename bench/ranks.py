#!/usr/bin/env python3
"""Measures what a job costs: the reports of all its ranks together against `report operators` of each file, on jobs that bench/jobgen makes of a real rank.

usage: bench/ranks.py [--build BUILD] [--trace TRACE.json.gz] [--write] [--megabytes=20] [RANKS...]      (default 60 200; each a multiple of 4)
  --write    put the table into docs/performance.md
Needs room in $TMPDIR for the largest job. CPU time is user + system of the whole process, with all its threads.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

from common import Cost, ROOT, growth, machine, write_section

DATA = os.path.normpath(os.environ.get("OPSCOPE_DATA", os.path.join(ROOT, "..", "shared", "data")))
TRACE = os.path.join(DATA, "multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz")
REPORTS = ("ranks", "stragglers", "collectives")


def make(jobgen, trace, ranks, megabytes, folder):
    def run(rounds, n, to):
        shutil.rmtree(to, ignore_errors=True)
        subprocess.run([jobgen, trace, to, "--tp=4", f"--dp={n // 4}", f"--rounds={rounds}", "--offsets=50", "--drifts=20", "--late=1:gc:20"], check=True, stderr=subprocess.DEVNULL)
        os.unlink(os.path.join(to, "truth.json"))
    run(1, 4, folder)
    one = os.path.getsize(os.path.join(folder, "rank0.json"))
    run(max(1, round(megabytes * 1e6 / one)), ranks, folder)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def measure(opscope, jobgen, trace, ranks, megabytes, folder):
    files = make(jobgen, trace, ranks, megabytes, folder)
    alone = [Cost([opscope, "report", "operators", f], 1) for f in files]
    row = {"ranks_n": len(files), "mb": sum(map(os.path.getsize, files)) / 1e6, "alone_cpu": sum(c.cpu for c in alone), "alone_wall": sum(c.wall for c in alone),
           "alone_rss": max(c.rss for c in alone)}
    for name in REPORTS:
        row[name] = Cost([opscope, "report", name, folder], 1)
    shutil.rmtree(folder)
    return row


def table(rows):
    text = "| |" + "".join(f" {r['ranks_n']} ranks |" for r in rows) + " wanted |\n|---|" + "---|" * (len(rows) + 1) + "\n"

    def line(what, value, wanted=""):
        return f"| {what} |" + "".join(f" {value(r)} |" for r in rows) + f" {wanted} |\n"
    text += line("MB", lambda r: f"{r['mb']:.0f}")
    text += line("`report operators` of each file, CPU s", lambda r: f"{r['alone_cpu']:.2f}")
    text += line("the same, wall s", lambda r: f"{r['alone_wall']:.2f}")
    for name in REPORTS:
        text += line(f"`report {name}` of the job, CPU s", lambda r: f"{r[name].cpu:.2f}")
        text += line("**ratio**", lambda r: f"**{r[name].cpu / r['alone_cpu']:.2f}**", "≤ 1.3")
        text += line("the same, wall s", lambda r: f"{r[name].wall:.2f}")
        text += line("**ratio**", lambda r: f"**{r[name].wall / r['alone_wall']:.2f}**", "≤ 1.3")
        text += line("peak memory, MB", lambda r: f"{r[name].rss / 1e6:.0f}")
    if len(rows) > 1:
        a, b = rows[0], rows[-1]
        x = growth((a["ranks_n"], a["ranks"]), (b["ranks_n"], b["ranks"]), lambda c: c.cpu)
        more = (b["ranks"].rss - a["ranks"].rss) / (b["ranks_n"] - a["ranks_n"])
        text += f"\nGrowth exponent of CPU time of `report ranks`, smallest to largest: **{x:.3f}**. A further rank takes {max(more, 0) / 1e3:.0f} KB: 1000 ranks would take "
        text += f"{(b['ranks'].cpu * (1000 / b['ranks_n']) ** max(x, 1)):.0f} s of CPU time and {(b['ranks'].rss + max(more, 0) * (1000 - b['ranks_n'])) / 1e6:.0f} MB (extrapolated; wanted < 1000 MB)\n"
    return text


def section(text, args):
    return f"""{machine()}, by

```
meson setup build-bench -Dbuildtype=release -Dtests=disabled && ninja -C build-bench src/cli/opscope bench/jobgen/jobgen
bench/ranks.py --build build-bench --write --megabytes={args.megabytes:g} {' '.join(map(str, args.ranks))}
```

on jobs that `bench/jobgen` makes of `{os.path.basename(args.trace)}`, a real rank, by as many threads as there are cores. The files are in the page cache. The output does not depend on the number of threads.

{text}"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--trace", default=TRACE)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("ranks", nargs="*", type=int, default=[60, 200])
    args = parser.parse_args()
    opscope, jobgen = os.path.join(args.build, "src", "cli", "opscope"), os.path.join(args.build, "bench", "jobgen", "jobgen")
    rows = []
    with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
        for ranks in args.ranks:
            print(f"measuring {ranks} ranks ...", file=sys.stderr, flush=True)
            rows.append(measure(opscope, jobgen, args.trace, ranks, args.megabytes, os.path.join(folder, "job")))
    print(table(rows))
    if args.write:
        write_section("Jobs of many ranks", section(table(rows), args))


main()
