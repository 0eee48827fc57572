#!/usr/bin/env python3
"""What the collector costs for a record of CUPTI's, and how many bytes of file it takes: the mock CUPTI hands over full buffers, and counts the
CPU time of the callback alone. No GPU is needed, and none is measured: what CUPTI itself costs is a matter of tools/gpu-check.

usage: bench/cupti.py [--build BUILD] [--records N] [--repeat R] [--write]        (default 1000000 records, 3 times)
  --write    put the table into docs/performance.md
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

from common import ROOT, machine, write_section

VERSIONS = ("11.2", "11.8", "12.4", "13.0", "future")
WANTED_NS = 150


def measure(build, version, records):
    """A record: ns of CPU time of the callback, of the library's own thread, bytes of file."""
    mock = os.path.join(build, "tests", "mock")
    library = os.path.join(build, "collect", "libopscope-inject.so")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(mock, f"libmock_cupti_{version}.so"), os.path.join(folder, "libcupti.so.13"))
        told = os.path.join(folder, "told")
        env = {**os.environ, "LD_LIBRARY_PATH": mock, "OPSCOPE_CUPTI": os.path.join(folder, "libcupti.so.13"), "CUDA_INJECTION64_PATH": library,
               "OPSCOPE_DIR": os.path.join(folder, "run"), "MOCK_CUPTI": f"flood={records // 2}", "MOCK_FLOOD_OUT": told}
        os.mkdir(env["OPSCOPE_DIR"])
        subprocess.run([os.path.join(mock, "guest_cuda"), "work=1"], env=env, check=True, timeout=600)
        words = open(told).read().split()
        size = sum(os.stat(os.path.join(env["OPSCOPE_DIR"], n)).st_blocks * 512 for n in os.listdir(env["OPSCOPE_DIR"]))
        if int(words[1]) < records:
            sys.exit(f"only {words[1]} of {records} records were taken")
        note = subprocess.run([os.path.join(build, "src", "cli", "opscope"), "sql", env["OPSCOPE_DIR"], "SELECT value FROM meta WHERE key = 'recording:note'", "--format=csv"],
                              stdout=subprocess.PIPE, check=True, text=True).stdout
        helper = float(re.search(r"([\d.]+) ms in a thread of its own", note).group(1)) * 1e6 / int(words[1])
        return float(words[3]), helper, size / int(words[1])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--records", type=int, default=1000000)
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--write", action="store_true")
    a = p.parse_args()
    build = os.path.abspath(a.build)
    lines = ["| CUPTI | ns a record | own thread, ns a record | bytes a record | wanted |", "|---|---|---|---|---|"]
    for version in VERSIONS:
        runs = [measure(build, version, a.records) for _ in range(a.repeat)]
        lines.append(f"| {version} | **{min(r[0] for r in runs):.0f}** | {min(r[1] for r in runs):.0f} | {runs[0][2]:.0f} | ≤ {WANTED_NS} ns |")
        print(lines[-1], flush=True)
    if a.write:
        write_section("Records of CUPTI", f"""{machine()}, by

```
bench/cupti.py --build {os.path.basename(build)} --records {a.records} --write
```

Half of the records are API calls, half kernels. CPU time of the callback that takes them, and of the library's own thread, which
touches the pages of the file beforehand, least of {a.repeat} runs each; a mock hands the records over, so that CUPTI's own cost is not in it (`tools/gpu-check` measures that where there is a GPU).

""" + "\n".join(lines))


main()
