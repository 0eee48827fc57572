"""No event is lost: every trace at hand loads, and its events by (phase, category) are those that python's json counts."""
import collections
import os

import oracle
from oracle import Case, info

PATTERNS = ("hta/**/*.json.gz", "torch/**/*.json.gz", "multirank/**/*.json.gz", "tracelens/**/*.json.gz", "tb_plugin/**/*.json.gz")
NO_TRACES = (".events.json.gz", ".memory.json.gz")


def traces():
    own = [os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")]
    return own + [p for pattern in PATTERNS for p in oracle.data_glob(pattern) if not p.endswith(NO_TRACES)]


def counted(path):
    counts = collections.Counter()
    for e in oracle.events(oracle.load(path)):
        counts[str(e.get("ph") or ""), str(e.get("cat") or "")] += 1
    return dict(counts)


class Counts(Case):
    pass


def check(path):
    def test(self):
        table = info(path)
        got = {(r["phase"] or "", r["category"] or ""): r["events"] for r in table.section("events").rows}
        self.assertEqual(got, counted(path))
        lost = [r for r in table.section("problems").rows if r["level"] == "lost"]
        self.assertEqual(lost, [])
    return test


for trace in traces():
    name = "tests/data" if trace.startswith(oracle.ROOT) else os.path.dirname(os.path.relpath(trace, oracle.DATA))
    setattr(Counts, f"test {name}/{os.path.basename(trace)}", check(trace))

if not oracle.data_glob("*"):
    def absent(self):
        self.skipTest("no real traces (they are not part of the repository)")
    Counts.test_real_traces = absent

if __name__ == "__main__":
    oracle.main()
