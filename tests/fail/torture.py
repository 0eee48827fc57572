#!/usr/bin/env python3
"""Torture: the Nth allocation, open, read, write, close, fsync, rename, ... of a run fails (fail.c), for every N. Each run must give the usual output and status 0,
or status 1 and one line that names the failure. A crash, a hang, a wrong number or a file left behind is a failure of the test.

    torture.py                              a sample of the points, as TAP
    torture.py --all                        all of them, with a table at the end
    torture.py --all --every=10             every tenth point, and all of the first and the last fifty
    torture.py --all --only=import          those of scenarios whose name has `import` in it
    torture.py import malloc:12:once        one point, and all that it printed

OPSCOPE, OPSCOPE_BUILD and OPSCOPE_DATA as for the tests beside (../oracle/oracle.py)."""
import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import http.client
import itertools
import os
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import scenarios  # which makes the next one known
from failing import BUILD, LIBRARY, Counter
from scenarios import SERVED, oracle

HANGS_S = 20
SHOWN = 3  # failures of a scenario and class
WORKERS = 2
SAMPLE_EDGE, SAMPLE_MIDDLE = 1, 2
SERVE_SAMPLE_MIDDLE = 1

# Words of which one has to stand in the line of a failure: of memory, and by error.
MEMORY = ("out of memory", "Cannot allocate memory", "Memory allocation failure", "more memory")
ERRORS = {  # class: ways to fail; the quick part takes the first, and short
    "malloc": ("",), "open": ("EIO", "EMFILE"), "read": ("EIO", "short"), "write": ("ENOSPC", "EIO", "short"), "close": ("EIO",), "fsync": ("EIO",), "rename": ("EIO",),
    "truncate": ("ENOSPC",), "mmap": ("ENODEV",), "stat": ("EIO",), "thread": ("EAGAIN",),
}
NOT_OURS = ("Error in GnuTLS initialization",)  # lines that a library prints while it is loaded, and goes on
SQLITE = ("disk I/O error", "unable to open database file")  # its words for any of these
WORDS = {"EIO": ("Input/output error", *SQLITE), "ENOSPC": ("No space left on device", "no space left"), "EMFILE": ("Too many open files", *SQLITE), "ENODEV": ("No such device",),
         "EAGAIN": ("Resource temporarily unavailable",), "": MEMORY}

Point = collections.namedtuple("Point", "kind at often error")  # kind: the class of calls
Seen = collections.namedtuple("Seen", "status out err files")


def text_of(point):
    return ":".join(filter(None, (point.kind, str(point.at), point.often, point.error)))


def point_of(text):
    kind, at, often, *error = text.split(":")
    return Point(kind, int(at), often, error[0] if error else "")


class Place:
    """A folder of its own for one run at a time."""

    def __init__(self, root, inputs, number):
        self.inputs = inputs
        self.root = os.path.join(root, f"place{number}")
        os.mkdir(self.root)
        self.counter = Counter(os.path.join(root, f"state{number}"))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("FAIL_", "LD_PRELOAD"))}
        self.env.update(SOURCE_DATE_EPOCH="86400", TMPDIR=self.root, HOME=self.root, COLUMNS="120", LC_ALL="C.UTF-8", NO_COLOR="1", FAIL_STATE=self.counter.path,
                        FAIL_UNDER=f"{inputs}:{self.root}")
        self.held = None  # a server

    def args(self, scenario):
        return [a.replace("IN/", self.inputs + "/").replace("OUT/", self.root + "/out/") for a in scenario.args]

    def environment(self, point, **more):
        return {**self.env, "FAIL_AT": text_of(point), "LD_PRELOAD": LIBRARY, **more}

    def begin(self, scenario):
        shutil.rmtree(self.root)
        os.makedirs(os.path.join(self.root, "out"))
        for source, to in scenario.copies.items():
            shutil.copy(os.path.join(self.inputs, source), os.path.join(self.root, "out", to))
        self.counter.clear()

    def files(self):
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, self.root)] = hashlib.sha256(f.read()).hexdigest()
        return found

    def named(self, text):
        return text.decode(errors="replace").replace(self.root, "PLACE")

    def run(self, scenario, point):
        self.begin(scenario)
        before = self.files()
        p = subprocess.Popen([oracle.OPSCOPE, *self.args(scenario)], cwd=self.root, env=self.environment(point), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        try:
            out, err = p.communicate(timeout=HANGS_S)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            return before, Seen("hangs", self.named(out), self.named(err), {})
        return before, Seen(p.returncode, self.named(out), self.named(err), self.files())


def differs(what, want, got):
    return [f"{what}: {len(want)} bytes expected, {len(got)} found", *("  " + x for x in first_difference(want, got))]


def first_difference(want, got):
    for a, b in zip(want.splitlines() + [""], got.splitlines() + [""]):
        if a != b:
            return ["expected " + a[:300], "found    " + b[:300]]
    return ["more or fewer lines"]


def names_failure(point, err):
    words = WORDS.get(point.error or default_error(point.kind), ())
    return any(w in err for w in words)


def default_error(kind):
    return ERRORS[kind][0]


def judge(point, reference, before, seen, delivered):
    """What is wrong about a run: lines, none when nothing is."""
    if seen.status == "hangs" or seen.status < 0 or seen.status > 2:
        how = "it does not end" if seen.status == "hangs" else f"it died with status {seen.status}"
        return [how, *seen.err.splitlines()[:5]]
    if seen.status == 0 or not delivered or point.error == "short":
        return judge_success(reference, seen, point if delivered else None)
    wrong = []
    if seen.status != 1:
        wrong.append(f"status {seen.status}: {seen.err.strip()[:300]}")
    usual = reference.err.splitlines()
    lines = [x for x in seen.err.splitlines() if x not in usual]
    if len(lines) != 1 or not lines[0].startswith("opscope: "):
        wrong.append("one line about the failure was expected: " + repr(seen.err[:500]))
    elif not names_failure(point, lines[0]):
        wrong.append("the failure is not named: " + lines[0][:300])
    for name, digest in seen.files.items():
        if digest not in (before.get(name), reference.files.get(name)):
            wrong.append(("left: " if name not in before else "changed: ") + re.sub(r"[0-9a-f]{16}", "HEX", name))
    return wrong + [f"gone: {name}" for name in before if name not in seen.files]


def tells_failure(reference, seen, point):
    more = [x for x in seen.err.splitlines() if x not in reference.err.splitlines()]
    return point is not None and len(more) == 1 and more[0].startswith("opscope: ") and names_failure(point, more[0])


def judge_success(reference, seen, point=None):
    """The same output. Of a failure that the command can do without, one line more may tell."""
    wrong = []
    if seen.status:
        return [f"status {seen.status} without a failure: {seen.err.strip()[:300]}"]
    if seen.out != reference.out:
        wrong += ["status 0, and another output", *differs("stdout", reference.out, seen.out), *("  stderr: " + x[:300] for x in seen.err.splitlines()[:3])]
    elif seen.err != reference.err and not tells_failure(reference, seen, point):
        wrong += ["status 0, and other words", *differs("stderr", reference.err, seen.err)]
    if seen.files != reference.files:
        wrong += ["status 0, and other files: " + name for name in sorted({name for name, _ in set(seen.files.items()) ^ set(reference.files.items())})]
    return wrong


# ---- the ways to run a scenario: each gives the reference, the number of calls, and what is wrong about a point ----

class Command:
    middle = SAMPLE_MIDDLE
    parts = (None,)

    def __init__(self, scenario):
        self.scenario = scenario

    def reference(self, place, kind, part=None):
        _, seen = place.run(self.scenario, Point(kind, 0, "once", ""))
        if seen.status != 0:
            raise AssertionError(f"{self.scenario.name} does not work without faults: status {seen.status}: {seen.err}")
        return seen, place.counter.get("count")

    def wrong(self, place, point, reference, part=None):
        before, seen = place.run(self.scenario, point)
        delivered = place.counter.get("delivered")
        return delivered, judge(point, reference, before, seen, delivered)

    def release(self, place):
        pass


class Server:
    """`opscope serve` with the library in it. `env`: FAIL_WAIT, for one that counts when it is told to. Without a port it has not started."""

    def __init__(self, place, scenario, point, **env):
        place.begin(scenario)
        self.log = open(os.path.join(place.root, "log"), "w+b")
        self.process = subprocess.Popen([oracle.OPSCOPE, *place.args(scenario)], cwd=place.root, env=place.environment(point, **env), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.log)
        url = self.process.stdout.readline() if select.select([self.process.stdout], [], [], HANGS_S)[0] else b""
        self.port = int(url.split(b":")[-1].split(b"/")[0]) if url else None

    def ask(self, path):
        """(status, body); status 0 for a closed connection, "hangs" for no answer."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS_S)
        try:
            c.request("GET", "/api/" + path)
            a = c.getresponse()
            return a.status, a.read()
        except TimeoutError:
            return "hangs", b""
        except (http.client.HTTPException, ConnectionError) as e:
            return 0, type(e).__name__.encode()
        finally:
            c.close()

    def words(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()[-300:]

    def dead(self):
        status = self.process.poll()
        return None if status is None else f"the server ended with status {status}: {self.words()}"

    def stop(self):
        """Its exit status."""
        self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(HANGS_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "hangs"
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
        return status


UNREADABLE = 422  # an input that could not be read stays so until its file changes
ENDED = 422  # an SQL query that went beyond its limits


def judge_answers(path, want, got, again, reading=False):
    """`got` under faults, `again` behind them. `reading`: what failed was a call that reads the input."""
    wrong = []
    if got[0] == 200 and got[1] != want[1]:
        wrong += [f"/api/{path}: status 200, and another answer", *differs("body", want[1].decode(errors="replace"), got[1].decode(errors="replace"))]
    elif got[0] == ENDED and b"it took too much memory" in got[1]:
        pass  # the process of an SQL query had none
    elif got[0] not in (0, 200, 500, 503) + ((UNREADABLE,) if reading else ()):
        wrong.append(f"/api/{path}: status {got[0]}: {got[1][:300]}")
    if again != want and not (reading and again == got):
        wrong.append(f"/api/{path}, asked again without faults: status {again[0]}: {again[1][:300]}")
    return wrong


class Requests:
    """A server that has been asked the same before; one process for many points."""
    middle = SERVE_SAMPLE_MIDDLE
    parts = SERVED

    def __init__(self, scenario):
        self.scenario = scenario
        self.asked = itertools.count(1000)

    def anew(self, part):
        """A question that was not asked before, with the same answer: the server keeps answers."""
        return part.replace("{n}", str(next(self.asked)))

    def server(self, place, kind):
        if not place.held:
            place.held = Server(place, self.scenario, Point(kind, 0, "once", ""), FAIL_WAIT="1")
        return place.held

    def reference(self, place, kind, part):
        server = self.server(place, kind)
        server.ask(self.anew(part))
        place.counter.set(count=0, at=0, armed=1)
        want = server.ask(self.anew(part))
        place.counter.set(armed=0)
        if want[0] != 200:
            raise AssertionError(f"/api/{part}: status {want[0]} without faults: {want[1][:300]}")
        return want, place.counter.get("count")

    def wrong(self, place, point, reference, part):
        server = self.server(place, point.kind)
        server.ask(self.anew(part))
        place.counter.set(count=0, delivered=0, at=point.at, **{"from": point.often == "from"}, armed=1)
        got = server.ask(self.anew(part))
        place.counter.set(armed=0)
        delivered = place.counter.get("delivered")
        wrong = [] if server.dead() else judge_answers(part, reference, got, server.ask(self.anew(part)))
        wrong = [f"/api/{part}: {server.dead()}"] if server.dead() else wrong
        if wrong:
            self.release(place)
        return delivered, wrong

    def release(self, place):
        if place.held:
            place.held.stop()
        place.held = None


class FirstRequest:
    """A new server for each point: starting it and reading the input count, too."""
    middle = SERVE_SAMPLE_MIDDLE
    parts = ("report/operators",)

    def __init__(self, scenario):
        self.scenario = scenario

    def reference(self, place, kind, part):
        server = Server(place, self.scenario, Point(kind, 0, "once", ""))
        want = server.ask(part)
        count = place.counter.get("count")
        server.stop()
        if want[0] != 200:
            raise AssertionError(f"{self.scenario.name} does not work without faults: {want}")
        return want, count

    def wrong(self, place, point, reference, part):
        server = Server(place, self.scenario, point)
        got = server.ask(part) if server.port else None
        delivered = place.counter.get("delivered")
        place.counter.set(armed=0)
        if not got:
            wrong = self.not_started(server, point)
        else:
            wrong = [] if server.dead() else judge_answers(part, reference, got, server.ask(part), point.kind != "malloc")
            wrong = [server.dead()] if server.dead() else wrong
        words, ended = server.words(), server.stop()
        return delivered, wrong + ([f"told to end: {ended}: {words}"] if got and not wrong and ended else [])

    @staticmethod
    def not_started(server, point):
        try:
            status = server.process.wait(HANGS_S)
        except subprocess.TimeoutExpired:
            return ["it does not start, and does not end"]
        words = "\n".join(x for x in server.words().splitlines() if not x.startswith(NOT_OURS))
        good = status == 1 and words.count("\n") == 0 and names_failure(point, words)
        return [] if good else [f"the server does not start: status {status}: {words}"]

    def release(self, place):
        pass


# Counts only while opscope works, and prints what it answered, or the exception; then whether it still works.
LOADER = """
import mmap, struct, sys
import opscope
with open(sys.argv[2], "r+b") as f:
    memory = mmap.mmap(f.fileno(), 48)
def arm(on): struct.pack_into("<Q", memory, 0, on)
def work():
    with opscope.load(sys.argv[1]) as trace:
        return list(trace.report("operators")), list(trace.sql("SELECT count(*) FROM span"))
sound = work()
said = None
try:
    arm(1)
    said = work()
    arm(0)
except Exception as e:
    arm(0)
    said = f"raised {type(e).__name__}: {e}"
print(said)
print("again", work() == sound)
"""


class Python(Command):
    middle = 1

    def run(self, place, point):
        place.begin(self.scenario)
        place.counter.set(at=point.at, **{"from": point.often == "from"})
        env = place.environment(point, FAIL_WAIT="1", PYTHONPATH=os.path.join(BUILD, "python"), PYTHONDONTWRITEBYTECODE="1", PYTHONMALLOC="pymalloc")
        p = subprocess.run([sys.executable, "-c", LOADER, *place.args(self.scenario), place.counter.path], cwd=place.root, env=env, capture_output=True, timeout=HANGS_S)
        return Seen(p.returncode, place.named(p.stdout), place.named(p.stderr), place.files())

    def reference(self, place, kind, part=None):
        seen = self.run(place, Point(kind, 0, "once", ""))
        if seen.status or "raised" in seen.out:
            raise AssertionError(f"{self.scenario.name} does not work without faults: {seen.out} {seen.err}")
        return seen, place.counter.get("count")

    def wrong(self, place, point, reference, part=None):
        try:
            seen = self.run(place, point)
        except subprocess.TimeoutExpired:
            return place.counter.get("delivered"), ["it does not end"]
        delivered = place.counter.get("delivered")
        if seen.status:
            return delivered, [f"Python ended with status {seen.status}", *seen.err.splitlines()[-3:]]
        said, again = seen.out.splitlines()
        named = said.startswith("raised MemoryError") if point.kind == "malloc" else said.startswith("raised ") and names_failure(point, said)
        if seen.out != reference.out and not (delivered and named and again == "again True"):
            return delivered, [f"{point.kind} failed: {said[:300]}", again, *first_difference(reference.out, seen.out)]
        return delivered, ["left: " + name for name in seen.files]


WAYS = {"cli": Command, "serve": Requests, "load": FirstRequest, "python": Python}


def sample(count, middle):
    """The first, the last, and some between: always the same."""
    chosen = set(range(1, min(count, SAMPLE_EDGE) + 1)) | set(range(max(1, count - SAMPLE_EDGE + 1), count + 1))
    return sorted(chosen | {1 + (count - 1) * (i + 1) // (middle + 1) for i in range(middle)} if count else ())


def each(count, every):
    """Every Nth; of the first and the last fifty all."""
    return [at for at in range(1, count + 1) if at % every == 0 or at <= 50 or at > count - 50]


def points_of(way, kind, count, every):
    for error in ERRORS[kind] if every else (x for x in ERRORS[kind] if x in (default_error(kind), "short")):
        for often in ("once", "from"):
            for at in each(count, every) if every else sample(count, way.middle):
                yield Point(kind, at, often, error)


class Tally:
    def __init__(self, scenario, kind):
        self.scenario, self.kind = scenario, kind
        self.points = self.delivered = self.failed = 0
        self.reasons = collections.Counter()
        self.shown = []

    def add(self, point, delivered, wrong):
        self.points += 1
        self.delivered += bool(delivered)
        if wrong:
            self.failed += 1
            self.reasons[wrong[0][:100].splitlines()[0]] += 1
            if self.reasons[wrong[0][:100].splitlines()[0]] == 1 and len(self.shown) < SHOWN:
                again = f"python3 {os.path.relpath(__file__, oracle.ROOT)} {self.scenario.name} {text_of(point)}"
                self.shown += [[again, *wrong]]

    def broken(self, why):
        self.points += 1
        self.failed += 1
        self.shown.append([why])

    def print(self, number):
        print(f"{'not ok' if self.failed else 'ok'} {number} - {self.scenario.name} {self.kind}: {self.points} points, {self.delivered} delivered, {self.failed} failures")
        for lines in self.shown:
            print("\n".join("# " + x for text in lines for x in text.splitlines()))
        for reason, times in self.reasons.most_common(8):
            print(f"#   {times} x {reason}")
        sys.stdout.flush()


class Torture:
    def __init__(self, root, every):
        self.every = every
        inputs = os.path.join(root, "in")
        os.mkdir(inputs)
        scenarios.make_inputs(inputs)
        two = os.path.join(inputs, "two.opscope")
        shutil.copy(os.path.join(inputs, "kept.opscope"), two)
        subprocess.run([oracle.OPSCOPE, "aggregate", two, "--steps=1"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
        self.inputs = inputs
        self.idle = queue.SimpleQueue()
        self.places = [Place(root, inputs, i) for i in range(WORKERS)]
        for p in self.places:
            self.idle.put(p)

    def absent(self, scenario):
        """Why a scenario cannot be run; "" if it can."""
        for a in scenario.args:
            if a == "IN/?":
                return "no input of which there is something to report"
            if a.startswith("IN/") and not os.path.exists(os.path.join(self.inputs, a[3:])):
                return f"no {a[3:]} (real traces are not part of the repository)"
        if scenario.kind == "python" and not os.path.isdir(os.path.join(BUILD, "python", "opscope")):
            return "the Python package is not built"
        return oracle.unanswered(" ".join(scenario.args))

    def working(self, scenario):
        """The scenario with an input for which it works."""
        for name in scenario.inputs:
            args = [a.replace("IN/?", "IN/" + name) for a in scenario.args]
            if os.path.exists(os.path.join(self.inputs, name)):
                tried = dataclasses.replace(scenario, args=args, inputs=())
                if self.at_place(Place.run, tried, Point("malloc", 0, "once", ""))[1].status == 0:
                    return tried
        return scenario

    def at_place(self, work, *args):
        place = self.idle.get()
        try:
            return work(place, *args)
        finally:
            self.idle.put(place)

    def run(self, pool, tally):
        scenario, kind = tally.scenario, tally.kind
        way = WAYS[scenario.kind](scenario)
        for part in way.parts:
            reference, count = self.at_place(way.reference, kind, part)
            points = list(points_of(way, kind, count, self.every))
            for point, (delivered, wrong) in zip(points, pool.map(lambda p: self.at_place(way.wrong, p, reference, part), points)):
                tally.add(point, delivered, wrong)
        for p in self.places:
            way.release(p)

    def one(self, scenario, point):
        """Prints all about one point."""
        way, place = WAYS[scenario.kind](scenario), self.places[0]
        failed = False
        for part in way.parts:
            reference, count = way.reference(place, point.kind, part)
            delivered, wrong = way.wrong(place, point, reference, part)
            failed |= bool(wrong)
            print(f"{part or scenario.name}: {count} calls, {delivered} failed:", "as it should be" if not wrong else "\n  " + "\n  ".join(wrong))
        if scenario.kind == "cli":
            _, seen = place.run(scenario, point)
            print(f"status {seen.status}\n--- stdout\n{seen.out}\n--- stderr\n{seen.err}\n--- files\n" + "\n".join(seen.files))
        way.release(place)
        return failed


def run_all(torture, only):
    n, tallies = 0, []
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for scenario in scenarios.rows():
            if only not in scenario.name or not (torture.every or scenario.quick or only):
                continue
            scenario = torture.working(scenario)
            why = torture.absent(scenario)
            if why:
                n += 1
                print(f"ok {n} - {scenario.name} # SKIP {why}", flush=True)
                continue
            for kind in scenario.classes or ERRORS:
                t = Tally(scenario, kind)
                try:
                    torture.run(pool, t)
                except (AssertionError, ValueError) as e:
                    t.broken(str(e))
                if t.points and not t.delivered and not t.failed:
                    t.broken("no point was reached")
                if t.points:
                    n += 1
                    tallies.append(t)
                    t.print(n)
    print(f"1..{n}")
    return tallies


def print_table(tallies):
    print(f"# {'scenario':28} {'class':10} {'points':>7} {'delivered':>9} {'failures':>8}")
    for t in tallies:
        print(f"# {t.scenario.name:28} {t.kind:10} {t.points:7} {t.delivered:9} {t.failed:8}")
    print(f"# {'all':28} {'':10} {sum(t.points for t in tallies):7} {sum(t.delivered for t in tallies):9} {sum(t.failed for t in tallies):8}")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--all", action="store_true", help="every point, not a sample")
    a.add_argument("--every", type=int, default=1, metavar="N", help="with --all: every Nth point")
    a.add_argument("--only", default="", metavar="TEXT", help="scenarios whose name has this in it")
    a.add_argument("scenario", nargs="?")
    a.add_argument("point", nargs="?", help="CLASS:N:once or CLASS:N:from, and :ERRNO behind it")
    args = a.parse_args()
    if bool(args.scenario) != bool(args.point):
        a.error("SCENARIO and POINT go together; --only=TEXT chooses scenarios")
    if args.every != 1 and not args.all:
        a.error("--every=N goes with --all")
    try:
        oracle.built(oracle.OPSCOPE, "OPSCOPE")
        oracle.built(LIBRARY, "OPSCOPE_BUILD")
    except oracle.unittest.SkipTest as e:
        print(f"1..1\nok 1 - torture # SKIP {e}")
        return 0
    with tempfile.TemporaryDirectory() as root:
        torture = Torture(os.path.realpath(root), args.every if args.all else 0)
        if args.point:
            named = [s for s in scenarios.rows() if s.name == args.scenario]
            return torture.one(torture.working(named[0]), point_of(args.point)) if named else f"no scenario {args.scenario}"
        tallies = run_all(torture, args.only)
    if args.all:
        print_table(tallies)
    return any(t.failed for t in tallies)


if __name__ == "__main__":
    sys.exit(main())
