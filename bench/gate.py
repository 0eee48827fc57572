#!/usr/bin/env python3
"""Compares a build with an earlier revision by the instructions that both take: the same on a busy machine as on an idle one.

usage: bench/gate.py [--base REVISION] [--limit PERCENT] [--megabytes N]      (default: HEAD~1, 3 %, 8 MB)
Builds the revision in a folder of its own and the tree as it is, both as release. callgrind counts the instructions of each question
about the first N MB of three real traces, of short, middle and long events. Ends with 1 when a question takes more than PERCENT more.
Needs valgrind, and the traces in $OPSCOPE_DATA; without these it asks the trace that comes with the sources.
"""
import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

from common import ROOT, traces

QUESTIONS = (("report", "operators"), ("report", "key-averages"), ("advise",), ("import",))


def build(source, folder):
    def run(*argv):
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)

    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run("meson", "setup", folder, source, "-Dbuildtype=release", "-Dtests=disabled", "-Dviewer=disabled")
    run("ninja", "-C", folder, "--quiet", "src/cli/opscope")
    return os.path.join(folder, "src", "cli", "opscope")


def beginning(trace, to, megabytes):
    """The first events of the trace, as a whole trace."""
    with gzip.open(trace, "rb") as f:
        text = f.read(megabytes * 1_000_000)
    if len(text) == megabytes * 1_000_000:
        end = text.rindex(b"},") + 1
        text = text[:end] + (b"]" if text.lstrip()[:1] == b"[" else b"]}")
    with open(to, "wb") as f:
        f.write(text)
    return to


def instructions(opscope, question, trace, folder):
    out = ["-o", os.path.join(folder, "kept.opscope"), "--force"] if question == ("import",) else []
    argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={os.path.join(folder, 'callgrind.out')}", opscope, *question, trace, *out]
    p = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    count = re.search(r"refs:\s+([\d,]+)", p.stderr)
    if p.returncode or not count:
        sys.exit(f"gate.py: {' '.join(argv)}: status {p.returncode}: {p.stderr[-300:]}")
    return int(count[1].replace(",", ""))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--base", default="HEAD~1")
    p.add_argument("--limit", type=float, default=3)
    p.add_argument("--megabytes", type=int, default=8)
    p.add_argument("--build", default=os.path.join(ROOT, "build-gate"), type=os.path.abspath)
    args = p.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("gate.py: valgrind is not installed (Debian: valgrind)")
    slower = 0
    with tempfile.TemporaryDirectory(prefix="opscope-gate-") as folder:
        base = os.path.join(folder, "base")
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", base, args.base], check=True)
        try:
            old, new = build(base, os.path.join(folder, "build")), build(ROOT, args.build)
            print(f"{'':40}{args.base[:14]:>16}{'now':>16}{'':>9}")
            for name, trace in traces():
                cut = beginning(trace, os.path.join(folder, name + ".json"), args.megabytes)
                for question in QUESTIONS:
                    a, b = (instructions(program, question, cut, folder) for program in (old, new))
                    more = 100 * (b / a - 1)
                    slower += more > args.limit
                    print(f"{name:16}{' '.join(question):24}{a:16,}{b:16,}{more:+8.1f} %{'  MORE' if more > args.limit else ''}", flush=True)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", base], check=False)
    print(f"{slower} questions take more than {args.limit:g} % more instructions" if slower else f"no question takes more than {args.limit:g} % more instructions")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
