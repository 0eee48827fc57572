#!/usr/bin/env python3
"""What a range costs a program that is recorded: a push and its pop, in CPU time of the whole process, and bytes of file. No GPU is needed.

usage: bench/capture.py [--build BUILD] [--pairs N] [--repeat R] [--write]        (default 1000000 pairs, 3 times)
  --write    put the table into docs/performance.md
"""
import argparse
import os
import subprocess
import tempfile

from common import ROOT, machine, write_section

# title, kind, threads, listening (ASKED: when somebody asks, and nobody does), wanted ns, wanted bytes
ASKED = "asked"
CASES = (
    ("NVTX, one text of 66 characters", "nvtx", 1, True, 110, 40),
    ("the same by 2 threads", "nvtx", 2, True, 110, 40),
    ("the same by 4 threads", "nvtx", 4, True, 110, 40),
    ("NVTX, another number in each text (`emit_nvtx`)", "emit_nvtx", 1, True, None, 40),
    ("trace.h, a text", "trace", 1, True, 110, 40),
    ("trace.h, a name", "trace_name", 1, True, 110, 40),
    ("NVTX, on demand, nobody asks", "nvtx", 1, ASKED, 20, 0),
    ("trace.h, on demand, nobody asks", "trace", 1, ASKED, 20, 0),
    ("trace.h, nobody listens", "trace", 1, False, 5, 0),
)


def measure(build, kind, threads, listening, pairs):
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPSCOPE_")}
        if listening:
            os.mkdir(os.path.join(folder, "sockets"), 0o700)
            env.update({"OPSCOPE_ASK": os.path.join(folder, "sockets")} if listening == ASKED else {}, OPSCOPE_DIR=folder, NVTX_INJECTION64_PATH=os.path.join(build, "collect", "libopscope-inject.so"))
        out = subprocess.run([os.path.join(build, "bench", "capture_loop"), kind, str(threads), str(pairs // threads)], env=env, stdout=subprocess.PIPE, check=True,
                             timeout=600, text=True).stdout.split()
        size = sum(os.stat(os.path.join(folder, n)).st_blocks * 512 for n in os.listdir(folder) if n.endswith(".seg"))
        return float(out[0]), size / (pairs // threads * threads * 5)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--pairs", type=int, default=1000000)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    build = os.path.abspath(a.build)
    subprocess.run(["ninja", "-C", build, "--quiet", "bench/capture_loop", "collect/libopscope-inject.so"], check=True)
    lines = ["| a push and its pop | CPU ns | bytes | wanted |", "|---|---|---|---|"]
    for title, kind, threads, listening, ns, size in CASES:
        runs = [measure(build, kind, threads, listening, a.pairs) for _ in range(a.repeat)]
        wanted = ("at most " + " and ".join(w for w in (f"{ns} ns" if ns else "", f"{size} bytes" if size else "") if w)) if ns or size else "-"
        lines.append(f"| {title} | **{min(r[0] for r in runs):.1f}** | {min(r[1] for r in runs):.1f} | {wanted} |")
        print(lines[-1], flush=True)
    if a.write:
        write_section("Ranges of a recorded program", f"""{machine()}, by

```
bench/capture.py --build {os.path.basename(build)} --pairs {a.pairs} --repeat {a.repeat} --write
```

{chr(10).join(lines)}

CPU time is that of the whole process, with the thread of the library that has pages ready before they are written to. Two readings of the clock are most of
it. A text that a thread says again from the same place is compared with what it was there the last time; only another one is looked up among all of them.
""")


if __name__ == "__main__":
    main()
