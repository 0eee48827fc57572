#!/usr/bin/env python3
"""Runs the command-line tests: each NAME.sh under `bash -eu -o pipefail` in an empty folder, with

  opscope    the program, on PATH
  TRACES     the folder with the traces of the repository (tests/data)

Its stdout must be NAME.stdout, byte for byte; its stderr NAME.stderr (absent: nothing); it must end with status 0, so a
script that expects a failure says so: `opscope report nothing x.json || echo "status $?"`. Status 77: the program lacks what the script is about; the
last line on stderr says what. A folder holds the scripts of a predecessor, and has the name of its folder in src/predecessors: without that they are left out.

The program is $OPSCOPE, else that of the build folder $OPSCOPE_BUILD, else that of build/. Without a program no script runs: PATH may have
another opscope, which is not the one to be tested.

usage: run.py [--bless] [NAME...]     --bless writes what was printed as what is expected; not that of a script that failed
"""
import difflib
import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(ROOT, "build"))
OPSCOPE = os.path.abspath(os.environ.get("OPSCOPE", os.path.join(BUILD, "src", "cli", "opscope")))


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return b""


def write(path, content):
    if content:
        with open(path, "wb") as f:
            f.write(content)
    elif os.path.exists(path):
        os.unlink(path)


def run_script(name):
    with tempfile.TemporaryDirectory() as tmp:
        os.mkdir(os.path.join(tmp, "bin"))
        os.symlink(OPSCOPE, os.path.join(tmp, "bin", "opscope"))
        os.mkdir(os.path.join(tmp, "work"))
        env = {**os.environ, "PATH": os.path.join(tmp, "bin") + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8", "TRACES": os.path.join(ROOT, "tests", "data")}
        env.pop("COLUMNS", None)
        p = subprocess.run(["bash", "-eu", "-o", "pipefail", os.path.join(HERE, name + ".sh")], cwd=os.path.join(tmp, "work"),
                           env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        places = ((os.path.join(tmp, "work").encode(), b"$WORK"), (ROOT.encode(), b"$ROOT"))
        out, err = p.stdout, p.stderr
        for real, shown in places:
            out, err = out.replace(real, shown), err.replace(real, shown)
        return p.returncode, out, err


def diff(what, want, got):
    lines = difflib.unified_diff(want.decode(errors="replace").splitlines(), got.decode(errors="replace").splitlines(),
                                 "expected " + what, "printed " + what, lineterm="")
    return list(lines)[:60] or [f"{what}: differs in bytes that do not show"]


SKIPPED = 77


class Skipped(Exception):
    """Why a script cannot run with this program."""


def check(name, bless):
    """What is wrong, as lines."""
    base = os.path.join(HERE, name)
    predecessor = os.path.join("src", "predecessors", os.path.dirname(name))
    if not os.path.isdir(os.path.join(ROOT, predecessor)) and os.path.dirname(name):
        raise Skipped("no " + predecessor)
    status, out, err = run_script(name)
    if status == SKIPPED:
        raise Skipped((err.decode(errors="replace").splitlines() or ["the script says no reason"])[-1])
    if bless and not status:
        write(base + ".stdout", out)
        write(base + ".stderr", err)
    trouble = []
    if status:
        trouble.append(f"status {status}; stderr: {err.decode(errors='replace')[-500:]}")
    for what, got in (("stdout", out), ("stderr", err)):
        want = read(f"{base}.{what}")
        if want != got:
            trouble += diff(what, want, got)
    return trouble


def main():
    args = sys.argv[1:]
    bless = "--bless" in args
    names = [a for a in args if a != "--bless"] or sorted(f[:-3] for f in glob.glob("**/*.sh", root_dir=HERE, recursive=True))
    failed = 0
    if not os.path.isfile(OPSCOPE):
        print(f"Bail out! {OPSCOPE} is missing: build it, or set OPSCOPE or OPSCOPE_BUILD")
        return 1
    print(f"1..{len(names)}")
    for i, name in enumerate(names, 1):
        trouble, why = [], ""
        try:
            trouble = check(name, bless)
        except Skipped as e:
            why = f" # SKIP {e}"
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {i} - {name}{why}", *("# " + t for t in trouble), sep="\n", flush=True)
    return 1 if failed else 0


sys.exit(main())
