#!/usr/bin/env python3
"""Measures the speed and memory claims for Nsight Systems databases on generated ones (bench/nsysgen): the size of a real
complaint, a tenth and a hundredth of it.

usage: bench/nsys.py [--build BUILD] [--write] [PERCENT...]      (default 1 10 100)
  --write    put the table into docs/performance.md
Needs 3 GB in $TMPDIR for the largest.
"""
import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile

from common import Cost, ROOT, growth, machine, write_section

TABLES = ("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL")
SUMS = "; ".join(f"select sum(end-start) from {t}" for t in TABLES)


def measure(opscope, nsysgen, percent, folder):
    path = os.path.join(folder, f"n{percent}.sqlite")
    subprocess.run([nsysgen, path, str(percent)], check=True)
    db = sqlite3.connect(path)
    rows = [db.execute(f"select count(*) from {t}").fetchone()[0] for t in TABLES]
    db.close()
    repeat = 3 if percent <= 10 else 2
    kept = os.path.join(folder, "n.opscope")
    row = {"rows": rows, "mb": os.path.getsize(path) / 1e6,
           "sums": Cost(["sqlite3", path, SUMS], repeat),
           "pyprof": Cost([opscope, "report", "pyprof", path], repeat),
           "csv": Cost([opscope, "report", "pyprof", "--format=csv", path], 1),
           "kernels": Cost([opscope, "report", "kernels", path], repeat),
           "nvtx": Cost([opscope, "report", "nvtx", path], repeat),
           "import": Cost([opscope, "import", path, "-o", kept], 1),
           "kept": Cost([opscope, "report", "pyprof", kept], repeat)}
    os.unlink(path)
    os.unlink(kept)
    return row


def table(rows):
    text = "| |" + "".join(f" {r['mb']:.0f} MB |" for r in rows) + " wanted |\n|---|" + "---|" * (len(rows) + 1) + "\n"

    def line(what, value, wanted=""):
        return f"| {what} |" + "".join(f" {value(r)} |" for r in rows) + f" {wanted} |\n"

    for i, name in enumerate(("NVTX ranges", "API calls", "kernels")):
        text += line(name, lambda r: f"{r['rows'][i]:,}")
    text += line("`sqlite3` sums of three tables, CPU s", lambda r: f"{r['sums'].cpu:.2f}")
    text += line("`report pyprof`, CPU s", lambda r: f"{r['pyprof'].cpu:.2f}")
    text += line("**ratio**", lambda r: f"**{r['pyprof'].cpu / r['sums'].cpu:.2f}**", "≤ 4")
    text += line("**peak memory, MB**", lambda r: f"**{r['pyprof'].rss / 1e6:.0f}**", "≤ 1500")
    for key, what in (("csv", "`report pyprof --format=csv`, every kernel"), ("kernels", "`report kernels`"), ("nvtx", "`report nvtx`"),
                      ("import", "`import`"), ("kept", "`report pyprof` from .opscope")):
        text += line(f"{what}, CPU s", lambda r: f"{r[key].cpu:.2f}")
        text += line("peak memory, MB", lambda r: f"{r[key].rss / 1e6:.0f}")
    if len(rows) > 1:
        ends = [(sum(r["rows"]), r["pyprof"]) for r in (rows[0], rows[-1])]
        text += f"\nGrowth exponent of CPU time of `report pyprof`, smallest to largest: **{growth(*ends, lambda c: c.cpu):.3f}** (wanted ≤ 1.1)\n"
    return text


def section(text, args):
    return f"""{machine()}, by

```
meson setup build-bench -Dbuildtype=release -Dtests=disabled && ninja -C build-bench src/cli/opscope bench/nsysgen
bench/nsys.py --build build-bench --write {' '.join(map(str, args.percent))}
```

from databases that `bench/nsysgen` makes: a training loop under `emit_nvtx` with shapes, at the size of a real complaint, a tenth
and a hundredth of it. The yardstick is `sqlite3 FILE "{SUMS}"`.

{text}"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("percent", nargs="*", type=int, default=[1, 10, 100])
    args = parser.parse_args()
    opscope, nsysgen = os.path.join(args.build, "src", "cli", "opscope"), os.path.join(args.build, "bench", "nsysgen")
    rows = []
    with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
        for percent in args.percent:
            print(f"measuring {percent} % ...", file=sys.stderr, flush=True)
            rows.append(measure(opscope, nsysgen, percent, folder))
    text = table(rows)
    print(text)
    if args.write:
        write_section("Nsight Systems databases", section(text, args))


main()
