#!/usr/bin/env python3
"""Plays nsys (Nsight Systems) for tests: takes the options of a chosen release and no others, runs the program, leaves the files that the real one
leaves, and misbehaves where the real one does. How, STAND_IN says, a JSON object:

  release     2020, 2022, 2023 or 2024 (which options there are, the suffix of reports); default 2024
  database    what `export` makes of a report: a file to copy
  log         a file to which each command line is appended, as JSON
  and, true when wanted:
  broken      --version fails                      breaks_program  the program cannot start: status 127 (2020.4 on a new glibc)
  importer_fails  a .qdstrm is left, no report     export_fails, export_empty
  never       the capture range is never entered   early           the program ends before --delay
  unwritable  the report cannot go where it should: it stays in TMPDIR
  spins       its agent never ends, and it waits for that (2022.4); leaves: its agent never ends, and it does not wait

`nsys-agent`, a program beside this one that sleeps, is the agent.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HOW = json.loads(os.environ.get("STAND_IN", "{}"))
RELEASE = HOW.get("release", 2024)
VERSION = {2020: "2020.4.3.7-10543b6", 2022: "2022.4.2.1-df9881f", 2023: "2023.4.4.54-234433681190v0", 2024: "2024.2.3.38-242334140272v0"}[RELEASE]
SUFFIX = "qdrep" if RELEASE == 2020 else "nsys-rep"
TRACES = ["cuda", "nvtx", "osrt", "opengl", "mpi", "none"] + ["cublas", "cudnn"] * (RELEASE >= 2022)

# Long name, short name, whether it takes a value, in which releases, what the help says beyond.
OPTIONS = [
    ("capture-range", "c", True, 2020, "none, cudaProfilerApi, nvtx"),
    ("stop-on-range-end", None, True, (2020, 2020), "true, false"),
    ("capture-range-end", None, True, 2022, "none, stop, stop-shutdown, repeat[:N]"),
    ("nvtx-capture", "p", True, 2020, "range@domain, range, range@*"),
    ("delay", "y", True, 2020, "seconds"),
    ("duration", "d", True, 2020, "seconds"),
    ("kill", None, True, 2020, "none, sigkill, sigterm"),
    ("output", "o", True, 2020, "base name"),
    ("force-overwrite", "f", True, 2020, "true, false"),
    ("sample", "s", True, 2020, "cpu, none" if RELEASE == 2020 else "process-tree, system-wide, none"),
    ("trace", "t", True, 2020, ", ".join(TRACES)),
    ("cpuctxsw", None, True, 2022, "process-tree, system-wide, none"),
    ("cuda-graph-trace", None, True, 2022, "graph, node"),
    ("cuda-memory-usage", None, True, 2020, "true, false"),
    ("trace-fork-before-exec", None, True, 2020, "true, false"),
    ("show-output", "w", True, 2020, "true, false"),
    ("export", None, True, 2020, "none, sqlite"),
]


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def there(since):
    first, last = since if isinstance(since, tuple) else (since, 9999)
    return first <= RELEASE <= last


def profile_help():
    print("usage: nsys profile [<args>] [application] [<application args>]\n")
    for name, short, _, since, more in OPTIONS:
        if there(since):
            print(f"\t{'-' + short + ', ' if short else ''}--{name}=\n\t   Possible values: {more}\n")


def parse(args):
    """({long name: value}, the program and its arguments)."""
    known = {n: o for o in OPTIONS if there(o[3]) for n in (o[0], o[1]) if n}
    got = {}
    while args and args[0].startswith("-"):
        word = args.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if name not in known or (len(name) == 1) == word.startswith("--"):
            fail(f"unrecognised option '{word}'\nusage: nsys profile [<args>] [application]")
        if not equals:
            value = args.pop(0) if args else fail(f"the required argument for option '{word}' is missing")
        got[known[name][0]] = value
    return got, args


def write_report(base, force):
    """Where it went, or None."""
    path = f"{base}.{SUFFIX}"
    if HOW.get("importer_fails"):
        with open(base + ".qdstrm", "w") as f:
            f.write("raw")
        print("Importer error status: Importation failed.")
        return None
    if HOW.get("unwritable") or (os.path.exists(path) and not force):
        print(f"Failed to create '{path}': File exists.")
        path = tempfile.mkstemp(prefix="nsys-report-", suffix="." + SUFFIX)[1]
    with open(path, "w") as f:
        f.write("report")
    return path


def agent(wait):
    p = subprocess.Popen([os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "nsys-agent"), "infinity"], start_new_session=True)
    if wait:
        p.wait()


class Stop(Exception):
    pass


def interrupted(*_):
    raise Stop


def run_program(app, kill):
    """The program's status as nsys gives it."""
    p = subprocess.Popen(app, start_new_session=True)
    try:
        if kill:
            p.send_signal(signal.SIGTERM)
        status = p.wait()
    except Stop:
        p.send_signal(signal.SIGTERM)
        status = p.wait()
    return status if status >= 0 else 128 - status


def profile(args):
    o, app = parse(args)
    for t in o.get("trace", "").split(","):
        if t not in TRACES:
            fail(f"Illegal --trace argument '{t}'.")
    if "sample" in o and o["sample"] not in next(x for x in OPTIONS if x[0] == "sample")[4].split(", "):
        fail(f"Illegal --sample argument '{o['sample']}'.")
    if not app or not shutil.which(app[0]):
        fail(f"Executable not found: {app[0] if app else ''}")
    if HOW.get("breaks_program"):
        print("symbol lookup error: libToolsInjectionProxy64.so: undefined symbol: __libc_dlsym", file=sys.stderr)
        sys.exit(127)
    signal.signal(signal.SIGINT, interrupted)
    range_ends = o.get("capture-range", "none") != "none" and not HOW.get("never")
    stops_program = o.get("capture-range-end", "stop-shutdown" if RELEASE >= 2022 else "stop") == "stop-shutdown"
    kill = (range_ends and stops_program) or ("duration" in o and o.get("kill", "sigterm") != "none")
    status = run_program(app, kill)
    seen = not HOW.get("early") and not HOW.get("never")
    if o.get("capture-range") == "nvtx" and os.environ.get("NSYS_NVTX_PROFILER_REGISTER_ONLY") != "0":
        seen = False
    if HOW.get("spins") or HOW.get("leaves"):
        path = write_report(o["output"], o.get("force-overwrite") == "true") if seen else None
        agent(HOW.get("spins"))
    else:
        path = write_report(o["output"], o.get("force-overwrite") == "true") if seen else None
    print("Generated:" + (f"\n    {path}" if path else ""))
    sys.exit(status)


def export(args):
    o = {}
    while args and args[0].startswith("-"):
        o[args.pop(0)] = args.pop(0)
    if len(args) != 1 or not os.path.exists(args[0]):
        fail(f"Failed to open '{args[0] if args else ''}'")
    out = o.get("-o", args[0].rsplit(".", 1)[0] + ".sqlite")
    if os.path.exists(out) and o.get("-f") != "true":
        fail(f"File already exists: {out}")
    print("Processing events...\r", "=" * 20, "50%\r", end="")
    if HOW.get("export_fails"):
        with open(out, "w") as f:
            f.write("half")
        fail("Export failed: the report is damaged.")
    if not HOW.get("export_empty"):
        shutil.copyfile(HOW["database"], out)
    print("done")


def main():
    args = sys.argv[1:]
    if HOW.get("log"):
        with open(HOW["log"], "a") as f:
            f.write(json.dumps(args) + "\n")
    if args == ["--version"]:
        if HOW.get("broken"):
            fail("nsys: error while loading shared libraries: libstdc++.so.6")
        print(f"NVIDIA Nsight Systems version {VERSION}")
    elif args == ["profile", "--help"]:
        profile_help()
    elif args[:1] == ["profile"]:
        profile(args[1:])
    elif args[:1] == ["export"]:
        export(args[1:])
    else:
        fail(f"unrecognised command '{args[:1]}'")


main()
