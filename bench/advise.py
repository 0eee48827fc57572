#!/usr/bin/env python3
"""Measures what `advise` costs against `report operators`, which reads the same file: CPU time and memory, on three real traces (short, middle, long
events) that bench/scale makes as large as wished.

usage: bench/advise.py [--build BUILD] [--write] [MEGABYTES]      (default 250)
  --write    put the table into docs/performance.md
Needs room in $TMPDIR for one such trace. CPU time is user + system of the whole process; of 3 runs the best.
"""
import argparse
import os
import subprocess
import tempfile

from common import Cost, ROOT, machine, write_section

DATA = os.path.normpath(os.environ.get("OPSCOPE_DATA", os.path.join(ROOT, "..", "shared", "data")))
TRACES = (("short events", ("hta", "df_index_resolver", "df_index_resolver.json.gz")),
          ("middle", ("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")),
          ("long events", ("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz")))
MOST = 1.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build-bench"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("megabytes", nargs="?", type=int, default=250)
    o = parser.parse_args()
    opscope, scale = os.path.join(o.build, "src", "cli", "opscope"), os.path.join(o.build, "bench", "scale")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        for name, parts in TRACES:
            with open(path, "wb") as f:
                subprocess.run([scale, os.path.join(DATA, *parts), str(o.megabytes)], stdout=f, stderr=subprocess.DEVNULL, check=True)
            operators, advise = (Cost([opscope, *words, path]) for words in (["report", "operators"], ["advise"]))
            rows.append((name, os.path.getsize(path) / 1e6, operators, advise))
    text = f"{machine()}; {o.megabytes} MB asked for, by `bench/advise.py`. At most {MOST} times `report operators` is wanted.\n\n"
    text += "| trace | MB | `report operators`, s | `advise`, s | ratio | peak MB |\n|---|---|---|---|---|---|\n"
    for name, size, operators, advise in rows:
        text += f"| {name} | {size:.0f} | {operators.cpu:.2f} | {advise.cpu:.2f} | {advise.cpu / operators.cpu:.2f} | {advise.rss / 1e6:.0f} |\n"
    print(text)
    if o.write:
        write_section("What advise costs (`bench/advise.py`)", text)


if __name__ == "__main__":
    main()
