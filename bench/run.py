#!/usr/bin/env python3
"""Measures the speed and memory claims, each as a ratio within one run, on three real traces scaled up with bench/scale: of short, middle and
long events.

usage: bench/run.py [--build BUILD] [--trace TRACE.json.gz] [--write] [MEGABYTES...]      (default 50 500)
  --trace    this trace instead of the three
  --write    put the tables into docs/performance.md
Needs room in $TMPDIR for the largest trace twice. CPU time is user + system of the whole process; of several runs the best.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile

from common import Cost, ROOT, growth, machine, traces, write_section

LOAD_JSON = "import json,sys; json.load(open(sys.argv[1], 'rb'))"


def make_trace(scale, trace, megabytes, folder):
    plain = os.path.join(folder, f"t{megabytes}.json")
    with open(plain, "wb") as f:
        said = subprocess.run([scale, trace, str(megabytes)], stdout=f, stderr=subprocess.PIPE, check=True, text=True).stderr
    packed = plain + ".gz"
    with open(packed, "wb") as f:
        subprocess.run(["gzip", "-6", "-c", plain], stdout=f, check=True)
    return plain, packed, int(said.split(" events")[0].split()[-1])


def measure(opscope, scale, trace, megabytes, folder):
    plain, packed, events = make_trace(scale, trace, megabytes, folder)
    kept = os.path.join(folder, f"t{megabytes}.opscope")
    repeat = 8 if megabytes < 100 else 4
    gunzip = Cost(["gzip", "-dc", packed], repeat)
    loads = Cost([sys.executable, "-c", LOAD_JSON, plain], 1)
    from_gz = Cost([opscope, "report", "operators", packed], repeat)
    from_plain = Cost([opscope, "report", "operators", plain], repeat)
    averages = Cost([opscope, "report", "key-averages", "--group-by=name,shape", plain], repeat)
    imported = Cost([opscope, "import", plain, "-o", kept, "--force"], repeat)
    from_kept = Cost([opscope, "report", "operators", kept], 3)
    info = Cost([opscope, "info", kept], 3)
    row = {
        "mb": os.path.getsize(plain) / 1e6, "events": events, "gz": from_gz, "plain": from_plain, "kept": from_kept,
        "averages": averages, "info": info, "gunzip": gunzip, "loads": loads, "imported": imported,
        "opscope_mb": os.path.getsize(kept) / 1e6,
    }
    for path in (plain, packed, kept):
        os.unlink(path)
    return row


def small_latency(opscope, trace, folder):
    """A trace of about 100 KB: the first events of the real one."""
    doc = json.loads(gzip.open(trace).read())
    events = doc["traceEvents"] if isinstance(doc, dict) else doc
    small = os.path.join(folder, "small.json")
    with open(small, "w") as f:
        json.dump({"schemaVersion": 1, "traceEvents": events[: max(1, 100000 * len(events) // len(json.dumps(events)))]}, f)
    return os.path.getsize(small), Cost([opscope, "report", "operators", small], 10)


def table(rows):
    head = "| |" + "".join(f" {r['mb']:.0f} MB |" for r in rows) + " wanted |\n|---|" + "---|" * (len(rows) + 1) + "\n"
    lines = []

    def line(what, value, wanted=""):
        lines.append(f"| {what} |" + "".join(f" {value(r)} |" for r in rows) + f" {wanted} |\n")

    line("events", lambda r: f"{r['events']:,}")
    line("`gzip -dc`, CPU s", lambda r: f"{r['gunzip'].cpu:.2f}")
    line("`report operators` from .json.gz, CPU s", lambda r: f"{r['gz'].cpu:.2f}")
    line("**ratio to `gzip -dc`**", lambda r: f"**{r['gz'].cpu / r['gunzip'].cpu:.2f}**", "≤ 0.4 (short 0.45)")
    line("the same, wall s", lambda r: f"{r['gz'].wall:.2f}")
    line("python `json.load`, CPU s", lambda r: f"{r['loads'].cpu:.2f}")
    line("`report operators` from .json, CPU s", lambda r: f"{r['plain'].cpu:.2f}")
    line("**ratio to `json.load`**", lambda r: f"**{r['plain'].cpu / r['loads'].cpu:.3f}**", "≤ 0.06")
    line("`report key-averages --group-by=name,shape`, the same", lambda r: f"{r['averages'].cpu:.2f}")
    line("**ratio to `report operators`**", lambda r: f"**{r['averages'].cpu / r['plain'].cpu:.2f}**", "≤ 1.3")
    line("**MB/s of CPU time from .json**", lambda r: f"**{r['mb'] / r['plain'].cpu:.0f}**", "≥ 1,000")
    line("peak memory, MB (.json)", lambda r: f"{r['plain'].rss / 1e6:.0f}")
    line("**peak bytes per event**", lambda r: f"**{r['plain'].rss / r['events']:.0f}**", "≤ 40")
    line("peak memory, MB (.json.gz)", lambda r: f"{r['gz'].rss / 1e6:.0f}")
    line("`import`, CPU s", lambda r: f"{r['imported'].cpu:.2f}")
    line("**ratio to `report operators`**", lambda r: f"**{r['imported'].cpu / r['plain'].cpu:.1f}**", "≤ 1.5")
    line("`.opscope` file, bytes per event", lambda r: f"{r['opscope_mb'] * 1e6 / r['events']:.0f}", "≤ 16")
    line("`report operators` from .opscope, wall s", lambda r: f"{r['kept'].wall:.3f}")
    line("the same for 1 M events, wall s", lambda r: f"{r['kept'].wall / r['events'] * 1e6:.3f}" if r["events"] > 500000 else "", "< 0.1")
    line("`info` from .opscope, wall s", lambda r: f"{r['info'].wall:.3f}")
    line("**re-reading .json / opening .opscope** (wall)", lambda r: f"**{r['plain'].wall / r['info'].wall:.1f}**", "≥ 5")
    text = head + "".join(lines)
    if len(rows) > 1:
        a, b = rows[0], rows[-1]
        for name in ("plain", "gz"):
            x = growth((a["mb"], a[name]), (b["mb"], b[name]), lambda c: c.cpu)
            text += f"\nGrowth exponent of CPU time, {a['mb']:.0f} to {b['mb']:.0f} MB, {'.json' if name == 'plain' else '.json.gz'}: **{x:.3f}** (wanted ≤ 1.02)\n"
    return text


def section(text, args, asked):
    return f"""{machine()}, by

```
meson setup build-bench -Dbuildtype=release -Dtests=disabled && ninja -C build-bench src/cli/opscope bench/scale
bench/run.py --build build-bench --write {' '.join(map(str, args.megabytes))}
```

from {', '.join(f'`{os.path.basename(trace)}` ({name})' for name, trace in asked)}: real traces, each repeated by `bench/scale` until it had the size.
`bench/gate.py` compares a build with an earlier revision by instructions, question by question.

{text}"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--trace")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("megabytes", nargs="*", type=int, default=[50, 500])
    args = parser.parse_args()
    opscope, scale = os.path.join(args.build, "src", "cli", "opscope"), os.path.join(args.build, "bench", "scale")
    asked, text = [("given", args.trace)] if args.trace else traces(), ""
    with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
        for name, trace in asked:
            rows = []
            for megabytes in args.megabytes:
                print(f"measuring {name}, {megabytes} MB ...", file=sys.stderr, flush=True)
                rows.append(measure(opscope, scale, trace, megabytes, folder))
            text += f"### {name.capitalize()}\n\n{table(rows)}\n"
        size, cost = small_latency(opscope, asked[0][1], folder)
    text += f"A trace of {size / 1000:.0f} KB is answered in **{cost.wall * 1000:.1f} ms** (wanted ≤ 20 ms).\n"
    print(text)
    if args.write:
        write_section("Kineto traces", section(text, args, asked))


main()
