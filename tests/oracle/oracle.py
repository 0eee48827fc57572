"""What every oracle test uses: run the program, read its JSON, find the data, speak TAP.

Environment (set by meson; by hand: OPSCOPE=build/src/cli/opscope python3 tests/oracle/test_x.py):
  OPSCOPE       the program; else that of the build folder, else that of build/
  OPSCOPE_BUILD the build folder, for what else is built
                (a test skips where these are not set and nothing is built; where they are, a missing file is a failure)
  OPSCOPE_SANITIZED is set for a program with AddressSanitizer
  OPSCOPE_ALL is set where there are hours: each question is asked of each input (`part`)
  OPSCOPE_DATA  folder of real traces with the numbers that other tools printed of them; tests skip where it is absent
"""
import gc
import glob
import gzip
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPSCOPE = os.path.abspath(os.environ.get("OPSCOPE", os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(ROOT, "build")), "src", "cli", "opscope")))
DATA = os.path.normpath(os.environ.get("OPSCOPE_DATA", os.path.join(ROOT, "..", "shared", "data")))
SYNTHETIC = os.path.join(ROOT, "tests", "data", "synthetic")
TIMEOUT = 120
ENVIRONMENT = ("OPSCOPE", "OPSCOPE_BUILD", "OPSCOPE_DATA", "OPSCOPE_SANITIZED", "PYTHONPATH", "LD_PRELOAD")  # what a test needs of it
# What a folder of src/predecessors answers: command lines and addresses. Without the folder they are not asked. (Exports have versions of torch by themselves.)
WINGS = {
    "dlprof": r"--compat=dlprof\b|^dlprof",
    "pyprof": r"--compat=pyprof|^pyprof|^(report|export) pyprof",
    "tb_plugin": r"--compat=tb-plugin\b|/data/plugin/",
    "torch": r"^(?!export|/api/export).*--compat=torch\b",
    "tracelens": r"--compat=tracelens\b",
}
ALL = "OPSCOPE_ALL" in os.environ
SANITIZED = "OPSCOPE_SANITIZED" in os.environ  # the program is ten times slower: what a smaller input shows as well is left to the plain build

# Traces are trees: to look for circles in them takes a third of the time in which they are read.
gc.set_threshold(1000000)

# A shell starts what it puts into the background with some signals ignored, nohup with another; programs started here must not inherit that.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


class Table:
    """One table of the JSON output, addressed by column id."""

    def __init__(self, doc):
        self.doc = doc
        self.ids = [c["id"] for c in doc["columns"]]
        self.rows = [dict(zip(self.ids, r)) for r in doc["rows"]]
        self.notes = doc.get("notes", [])

    def by(self, key):
        """Rows keyed by one column, which must be unique."""
        out = {}
        for r in self.rows:
            assert r[key] not in out, f"two rows with {key}={r[key]}"
            out[r[key]] = r
        return out

    def section(self, name):
        for s in self.doc.get("sections", []):
            if s.get("name", s.get("report")) == name:
                return Table(s)
        raise AssertionError(f"no section {name}")


def absent(predecessor):
    """Why a test of this folder of src/predecessors has to be left out; "" where the folder is there."""
    folder = os.path.join("src", "predecessors", predecessor)
    return "" if os.path.isdir(os.path.join(ROOT, folder)) else f"no {folder}"


def unanswered(question):
    """Why nobody answers this question; "" where somebody does."""
    return next((absent(wing) for wing, answers in WINGS.items() if absent(wing) and re.search(answers, question)), "")


def ask_wings(question):
    """Skips the rest of a test that asks a predecessor whose folder is not there: its questions stand behind the others of the test, or in a subTest."""
    if unanswered(question):
        raise unittest.SkipTest(unanswered(question))


def part(questions, of, at=0):
    """Every `of`-th question, beginning with that at `at`; all with OPSCOPE_ALL. Tests that ask the same of several inputs begin at different ones."""
    return list(questions) if ALL else list(questions)[at % of::of]


def run(*args, stdin=None, timeout=TIMEOUT):
    """(exit status, stdout, stderr), all bytes. A crash or a hang is an error of its own."""
    ask_wings(" ".join(map(str, args)))
    p = subprocess.run([OPSCOPE, *map(str, args)], input=stdin, capture_output=True, timeout=timeout)
    if p.returncode < 0 or p.returncode > 4:
        raise AssertionError(f"opscope {' '.join(map(str, args))} died with {p.returncode}: {p.stderr.decode(errors='replace')[-2000:]}")
    return p.returncode, p.stdout, p.stderr


def children_cpu_s():
    """CPU time of all programs that have ended by now: what other work on the machine does not change, unlike the time by the clock."""
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


OF_STEPS = {"overview", "steps", "summary", "devices"}  # always


def whole(name, *args):
    """The numbers of other tools, and independent counts, are of the whole file; reports are of the steps unless they are told otherwise."""
    chosen = any(str(a).startswith(("--steps", "--compat", "--aggregation")) for a in args)
    return (name, *args) if chosen or name in OF_STEPS else (name, *args, "--steps=all")


def report(name, *args, **kw):
    """Of the whole file; what a user gets without --steps is `steps_report`."""
    return steps_report(*whole(name, *args), **kw)


def steps_report(name, *args, **kw):
    code, out, err = run("report", name, *args, "--format=json", **kw)
    if code:
        raise AssertionError(f"report {name} {args}: exit {code}: {err.decode(errors='replace')}")
    return Table(json.loads(out))


def diff(a, b, *args):
    """What `opscope diff` says of two sides, each a path or a list of it and its options: (verdict row, rows, notes)."""
    code, out, err = run("diff", *([a] if isinstance(a, str) else a), *([b] if isinstance(b, str) else b), *args, "--format=json")
    if code:
        raise AssertionError(f"diff {a} {b}: exit {code}: {err.decode(errors='replace')}")
    doc = json.loads(out)
    verdict = Table(next(s for s in doc["sections"] if s["name"] == "verdict")).rows[0]
    return verdict, Table(doc).rows, "\n".join(Table(doc).notes)


def info(*args):
    code, out, err = run("info", *args, "--format=json")
    if code:
        raise AssertionError(f"info {args}: exit {code}: {err.decode(errors='replace')}")
    return Table(json.loads(out))


def synthetic(name):
    return os.path.join(SYNTHETIC, name + ".json")


def data(*parts):
    """A path in the data folder; the test is skipped where it is absent."""
    path = os.path.join(DATA, *parts)
    if not os.path.exists(path):
        raise unittest.SkipTest(f"no {os.path.join(*parts)} (real traces are not part of the repository)")
    return path


def data_glob(pattern):
    return sorted(glob.glob(os.path.join(DATA, pattern), recursive=True))


def of(predecessor):
    """Decorates a test, or a class of tests, of what a folder of src/predecessors brings: without the folder it is left out."""
    return unittest.skipIf(absent(predecessor), absent(predecessor))


def load(path):
    """A trace by python's own reader."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return json.loads(f.read().decode("utf-8", "surrogatepass"), strict=False)


def events(doc):
    return doc if isinstance(doc, list) else doc["traceEvents"]


def built(path, variable):
    """A file that the build makes. Where `variable` says that there is a build, it has to be there."""
    if os.path.exists(path):
        return path
    if variable in os.environ:
        raise AssertionError(f"{path} is missing ({variable} is set: there should be a build)")
    raise unittest.SkipTest(f"{path} is not built")


def browser():
    """A Chromium, as tests/web takes one. Without it the test is skipped, or fails where OPSCOPE_BROWSER is `required`."""
    found = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None)
    if not found and os.environ.get("OPSCOPE_BROWSER") == "required":
        raise AssertionError("no chromium (OPSCOPE_BROWSER is `required`)")
    if not found:
        raise unittest.SkipTest("no chromium (Debian: chromium-headless-shell); CHROMIUM=PATH names another browser")
    return found


class Case(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        built(OPSCOPE, "OPSCOPE")


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = 0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        took = time.monotonic() - self.began
        if took >= 1:
            print(f"# {took:.1f} s", flush=True)

    def line(self, ok, test, tail=""):
        self.n += 1
        print(f"{'ok' if ok else 'not ok'} {self.n} - {test.id().split('.', 1)[-1]}{tail}", flush=True)

    def addSuccess(self, test):
        self.line(True, test)

    def addSkip(self, test, reason):
        self.line(True, test, f" # SKIP {reason}")

    def failed(self, test, err):
        """Why: on stderr, too, because a log of `meson test` has nothing else of a program that speaks TAP."""
        self.line(False, test)
        name = getattr(test, "test_case", test).id().split(".", 1)[-1]
        alone = f"alone: {' '.join(f'{v}={shlex.quote(os.environ[v])}' for v in ENVIRONMENT if v in os.environ)} python3 {shlex.quote(os.path.abspath(sys.argv[0]))} {shlex.quote(name)}"
        for text in [*self._exc_info_to_string(err, test).splitlines(), alone]:
            print("# " + text, flush=True)
            print(text, file=sys.stderr, flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed(subtest, err)


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:], sys.modules["__main__"])
    result = TapResult()
    suite.run(result)
    print(f"1..{result.n}")
    if not result.n:
        print("no test was found: a program without tests shows nothing", file=sys.stderr)
    sys.exit(0 if result.wasSuccessful() and result.n else 1)
