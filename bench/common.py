"""What the measuring scripts share: the cost of a command, and the page the figures go to."""
import argparse
import datetime
import math
import os
import platform
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "performance.md")
DATA = os.path.normpath(os.environ.get("OPSCOPE_DATA", os.path.join(ROOT, "..", "shared", "data")))
# Real traces by the length of their events: 249, 298 and 421 bytes each.
TRACES = {
    "short events": "hta/df_index_resolver/df_index_resolver.json.gz",
    "middle events": "tracelens/mi300/resnet_act_checkpoint.json.gz",
    "long events": "verdicts/google_owlv2-large-patch14-ensemble__1016001.json.gz",
}


def traces():
    """(name, file) of those that are here; where none is, of the trace that comes with the sources."""
    here = [(name, os.path.join(DATA, path)) for name, path in TRACES.items() if os.path.exists(os.path.join(DATA, path))]
    return here or [("own", os.path.join(ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"))]


class Cost:
    def __init__(self, argv, repeat=3, stdin=None):
        self.cpu = self.wall = math.inf
        self.rss = 0
        for _ in range(repeat):
            with open(os.devnull, "wb") as null:
                start = time.perf_counter()
                p = subprocess.Popen(argv, stdout=null, stderr=subprocess.PIPE)
                err = p.stderr.read()
                _, status, use = os.wait4(p.pid, 0)
                wall = time.perf_counter() - start
            p.returncode = os.waitstatus_to_exitcode(status)
            if p.returncode:
                sys.exit(f"{' '.join(argv)}: status {p.returncode}: {err.decode(errors='replace')[-500:]}")
            self.cpu = min(self.cpu, use.ru_utime + use.ru_stime)
            self.wall = min(self.wall, wall)
            self.rss = max(self.rss, use.ru_maxrss * 1024)


def machine():
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    return (f"Measured {datetime.date.today().isoformat()} on {os.cpu_count()} cores of {cpu}, "
            f"Linux {platform.release().split('-')[0]}")


def python_arguments(doc, **more):
    """Of a script that measures the Python package: which build, which Python, whether the page gets the figures, and `more`, numbers by their name."""
    p = argparse.ArgumentParser(description=doc.split("\n")[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"), type=os.path.abspath)
    p.add_argument("--python", default="/usr/bin/python3")
    for name, default in more.items():
        p.add_argument("--" + name, type=type(default), default=default)
    p.add_argument("--write", action="store_true")
    return p.parse_args()


def growth(small, large, of):
    """x such that the cost grows as size^x; each argument is (size, cost)."""
    return math.log(of(large[1]) / of(small[1])) / math.log(large[0] / small[0])


def write_section(title, text):
    """Puts `text` under "## title" in docs/performance.md, in place of what stood there."""
    page = open(PAGE).read()
    section = f"## {title}\n\n{text.strip()}\n"
    old = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.M | re.S)
    page = old.sub(lambda _: section + "\n", page) if old.search(page) else page.rstrip() + "\n\n" + section
    with open(PAGE, "w") as f:
        f.write(page.rstrip() + "\n")
