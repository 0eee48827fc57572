"""How exact the verdicts are on all real inputs: which findings are right, wrong and missed by the labels of verdict_labels_*.py; what must hold of every
finding on every input; and that one quantity has one value in all reports. `test_verdicts.py --write` keeps the scores in tests/data/detector_scores.json,
from which docs/detectors.md has its table."""
import collections
import fnmatch
import json
import os
import re
import sys

import oracle
import verdict_labels_compute
import verdict_labels_occupancy
import verdict_labels_waiting
from oracle import Case

SCORES = os.path.join(oracle.ROOT, "tests", "data", "detector_scores.json")
PATTERNS = ("**/*.json.gz", "**/*.json", "**/*.sqlite", "**/*.nvvp", "**/*.sql", "**/*.dict")
OUTLOOK = re.compile(r"(?:Step|Time looked at) ([\d.]+) (us|ms|s) -> at least ([\d.]+) (us|ms|s) if .*")
UNIT = {"us": 1e3, "ms": 1e6, "s": 1e9}
EACH = 3  # of the inputs, by what asks more of them than their verdicts (OPSCOPE_ALL: each)


def inputs():
    """Everything in the data folder that the program takes for a recording."""
    return sorted({p for pattern in PATTERNS for p in oracle.data_glob(pattern)
                   if not re.search(r"/(expected|recorders|memory_snapshot|execution_trace)/|_csvs/|key_averages|events\.json|perf_csvs", p)})


def ask(*args):
    """None where the input lacks what the command is about."""
    code, out, err = oracle.run(*args, "--format=json", timeout=300)
    if code == 1:
        return None
    if code:
        raise AssertionError(f"{args}: exit {code}: {err.decode(errors='replace')}")
    return oracle.Table(json.loads(out))


def labels_of(name):
    """{detector: (must fire, why)} of one input; of the rows for one detector the first that fits holds."""
    out = {}
    for glob, detector, fires, why in verdict_labels_compute.LABELS + verdict_labels_occupancy.LABELS + verdict_labels_waiting.LABELS:
        if detector not in out and fnmatch.fnmatch(name, glob):
            out[detector] = (fires, why)
    return out


class Answers:
    """What advise says of each input, asked once."""
    known = {}

    @classmethod
    def of(cls, path):
        if path not in cls.known:
            cls.known[path] = ask("advise", path)
        return cls.known[path]


def scores():
    """{detector: [right, false, missed, inputs labelled]}, and the wrong ones."""
    count, wrong = collections.defaultdict(lambda: [0, 0, 0, 0]), []
    for path in inputs():
        table = Answers.of(path)
        if table is None:
            continue
        name = os.path.relpath(path, oracle.DATA)
        found = {r["detector"] for r in table.rows}
        for detector, (fires, why) in labels_of(name).items():
            c = count[detector]
            c[3] += 1
            c[0] += fires and detector in found
            c[1] += detector in found and not fires
            c[2] += fires and detector not in found
            if fires != (detector in found):
                wrong.append((name, detector, "missed" if fires else "false", why))
    return dict(sorted(count.items())), wrong


class Verdicts(Case):
    def setUp(self):
        super().setUp()
        if not inputs():
            self.skipTest("no real traces")

    def test_scores(self):
        """Precision and recall of each detector over the labelled inputs, as they stand in the documentation."""
        count, wrong = scores()
        print(f"# {'detector':28} right false missed inputs precision recall")
        for detector, (right, false, missed, n) in count.items():
            share = [f"{right / (right + k):.2f}" if right + k else "-" for k in (false, missed)]
            print(f"# {detector:28} {right:5} {false:5} {missed:6} {n:6} {share[0]:>9} {share[1]:>6}")
            if right + false:
                self.assertGreaterEqual(right / (right + false), 0.95, (detector, wrong))
            if right + missed:
                self.assertGreaterEqual(right / (right + missed), 0.95, (detector, wrong))
        with open(SCORES) as f:
            self.assertEqual(json.load(f), count, "test_verdicts.py --write, then tools/gen_docs.py")

    def test_every_finding(self):
        """Its place in time is within the recording, its gain within the step, and parts name a finding that stands by itself."""
        looked = 0
        for path in oracle.part(inputs(), EACH, 0):
            table = Answers.of(path)
            if table is None or not table.rows:
                continue
            looked += 1
            steps = ask("report", "steps", path)
            first = min(r["start_ns"] for r in steps.rows)
            last = max(r["start_ns"] + r["total_ns"] for r in steps.rows)
            whole = [r["total_ns"] for r in steps.rows if r.get("whole") is not False]
            mean = sum(whole) / len(whole)
            alone = {r["detector"] for r in table.rows if r["part_of"] is None}
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                for r in table.rows:
                    if r["part_of"] is not None:
                        self.assertIn(r["part_of"], alone, r["detector"])
                    if r["gain_ns_per_step"] is not None and len(whole) and "key_op" not in table.ids:
                        self.assertLessEqual(r["gain_ns_per_step"], mean * 1.0001 + 1, r["detector"])
                        self.assertGreaterEqual(r["gain_ns_per_step"], 0, r["detector"])
                    if r["from_ns"] is not None:
                        self.assertLess(r["from_ns"], r["to_ns"], r["detector"])
                        self.assertLessEqual(r["from_ns"], last, r["detector"])
                        self.assertGreaterEqual(r["to_ns"], first, r["detector"])
        self.assertGreater(looked, 50 // (1 if oracle.ALL else EACH))

    def test_outlook(self):
        """The step cannot become shorter than nothing, nor by more than all gains together, and becomes shorter by no less than the largest of them."""
        looked = 0
        for path in inputs():
            table = Answers.of(path)
            lines = [m for m in (OUTLOOK.match(n) for n in (table.notes if table else ())) if m]
            if not lines:
                continue
            looked += 1
            step, least = (float(lines[0][i]) * UNIT[lines[0][i + 1]] for i in (1, 3))
            gains = [r["gain_ns_per_step"] for r in table.rows if r["gain_ns_per_step"]]
            slack = 0.002 * step + 200  # figures of the line are rounded
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                self.assertGreaterEqual(least, 0)
                self.assertLessEqual(least, step)
                self.assertLessEqual(step - least, sum(gains) + slack)
                self.assertLessEqual(step - least, step + slack)
                for r in table.rows:
                    if r["part_of"] is None and r["gain_ns_per_step"]:
                        self.assertIn(r["detector"], lines[0][0])
        self.assertGreater(looked, 40)

    def test_exposed_communication(self):
        """overview, gpu-timeline and the finding: one value."""
        looked = 0
        for path in oracle.part(inputs(), EACH, 1):
            overview, timeline = ask("report", "overview", path), ask("report", "gpu-timeline", path)
            if not overview or not timeline:
                continue
            role = {r["role"]: r["total_ns"] for r in overview.rows}
            mean = next(r["time_ns"] for r in timeline.rows if r["kind"] == "exposed_communication")
            with self.subTest(path=os.path.relpath(path, oracle.DATA)):
                if "Communication" in role and mean:
                    looked += 1
                    self.assertAlmostEqual(role["Communication"], mean, delta=len(role))
        self.assertGreater(looked, 10 // (1 if oracle.ALL else EACH))

    def test_mfu(self):
        """devices, overview and mfu: one value."""
        looked = 0
        for path in oracle.part(inputs(), EACH, 2):
            devices, mfu = ask("report", "devices", path), ask("report", "mfu", path)
            if not devices or not mfu:
                continue
            of_all = {r["device"]: r["mfu_pct"] for r in mfu.rows if r["step"] in ("all", "first to last device work")}
            overview = ask("report", "overview", path)
            for table in (devices, overview.section("devices")):
                for r in table.rows:
                    if r["mfu_pct"] is not None:
                        looked += 1
                        self.assertAlmostEqual(r["mfu_pct"], of_all[r["device"]], places=6, msg=path)
        self.assertGreater(looked, 10 // (1 if oracle.ALL else EACH))

    def test_mfu_by_hand(self):
        """29.444 TFLOP in 1.211 s on a GPU of 989.5 TFLOP/s."""
        r, = ask("report", "devices", oracle.data("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz")).rows
        self.assertAlmostEqual(r["mfu_pct"], 100 * 29.444 / 1.2112 / 989.5, places=2)


if __name__ == "__main__":
    if "--write" in sys.argv:
        with open(SCORES, "w") as f:
            json.dump(scores()[0], f, indent=1)
            f.write("\n")
    else:
        oracle.main()
