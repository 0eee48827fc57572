"""The start page of `opscope serve DIR`: which runs there are, and a row for each, whose figures are those that the reports print."""
import json
import os
import re
import shutil
import time

import oracle
import test_serve
from served import Server

INPUTS = [oracle.synthetic("training_gpu"), oracle.synthetic("two_steps_overlap"), os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"),
          os.path.join(oracle.ROOT, "tests", "data", "h200", "gpt_bf16.json.gz"), os.path.join(oracle.DATA, "nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite"),
          os.path.join(oracle.DATA, "tracelens", "triton", "trace.json.gz"), os.path.join(oracle.DATA, "dlprof", "w_relu", "dlprof_dldb.sqlite")]
JOB = os.path.join(oracle.ROOT, "tests", "data", "h200", "ddp_gloo_late_backward")
DETECTORS = [f for f in os.listdir(os.path.join(oracle.ROOT, "src", "detect")) if f.endswith(".c") and
             "\nconst struct detector detector_" in open(os.path.join(oracle.ROOT, "src", "detect", f), encoding="utf-8").read()]
TP8 = os.path.join(oracle.DATA, "multirank", "megatron_a100_tp8")


def cells(doc):
    return [dict(zip([c["id"] for c in doc["columns"]], r)) for r in doc["rows"]]


def mean(values):
    return sum(values) / len(values) if values and None not in values else None


def whole_rows(doc):
    """Of each GPU the row of all steps, which is its last."""
    return list({r.get("device"): r for r in cells(doc)}.values())


class Runs(test_serve.ServeCase):
    def near(self, got, want, what):
        if want is None or got is None:
            self.assertEqual(got, want, what)
        else:
            self.assertAlmostEqual(got, want, delta=1e-9 * abs(want), msg=what)

    def equal_findings(self, got, path):
        want = test_serve.printed("advise", path)
        if isinstance(want, str):
            self.assertIsNone(got["findings"])
            self.assertIn(got["findings_why"], want)
            return
        rows = cells(want)
        notes = [n.split(" not applicable: ") for n in want["notes"] if " not applicable: " in n]
        idle = {name for n in notes for name in n[0].split(", ")}
        if not rows and 2 * len(idle) >= len(DETECTORS):
            self.assertIsNone(got["findings"])
            most = max(notes, key=lambda n: n[0].count(", "))
            why = re.fullmatch(r"(\d+) of (\d+) detectors could not look: (.*)", got["findings_why"])
            self.assertEqual((int(why[1]), int(why[2])), (len(idle), len(DETECTORS)))
            self.assertTrue(most[1].startswith(why[3]), (most[1], why[3]))
            return
        self.assertEqual(got["findings"], len(rows))
        self.assertEqual(got["others"], "\n".join(r["problem"] for r in rows[1:]))
        self.assertEqual((got["severity"], got["problem"]), (rows[0]["severity"], rows[0]["problem"]) if rows else ("", ""))

    def equal_row(self, got, path):
        overview, mfu = test_serve.printed("report", "overview", path), test_serve.printed("report", "mfu", path)
        step = cells(overview)[0] if isinstance(overview, dict) else {"role": ""}
        devices = next((cells(s) for s in overview["sections"] if s["name"] == "devices"), []) if isinstance(overview, dict) else []
        if step["role"] == "Average Step Time":
            self.near(got["step_ns"], step["mean_ns"], "step")
        else:
            self.assertIsNone(got["step_ns"])
            self.assertGreater(len(got["step_why"]), 20)
        self.assertEqual([(g["device"], g["name"], g["busy_pct"]) for g in got["gpus"]], [(d["device"], d["name"] or "", d["busy_pct"]) for d in devices])
        self.near(got["busy_pct"], mean([d["busy_pct"] for d in devices]), "busy")
        rows = whole_rows(mfu) if isinstance(mfu, dict) else []
        self.near(got["mfu_pct"], mean([r["mfu_pct"] for r in rows]), "mfu")
        if got["mfu_pct"] is None:
            self.assertIn(got["mfu_why"], [r["why"] for r in rows] if rows else mfu)
        self.equal_findings(got, path)

    def test_figures(self):
        paths = [p for p in INPUTS if os.path.exists(p)]
        s = Server(self, *paths)
        of = {i["path"]: i["input"] for r in s.get("/api/runs")["runs"] for i in r["inputs"]}
        known = 0
        for path in oracle.part(paths, 3 if oracle.SANITIZED else 1):
            with self.subTest(path=path):
                got = s.get("/api/summary", of=of[path])
                self.equal_row(got, path)
                known += got["step_ns"] is not None and got["mfu_pct"] is not None
                self.assertEqual(got, s.get("/api/summary", of=of[path]))
        self.assertTrue(known or oracle.SANITIZED)
        # Nothing was kept in memory for it; what is there already gives the same.
        self.assertEqual({x["state"] for x in s.inputs().values()}, {"found"})
        self.assertEqual(s.get("/api/report/overview", input=of[paths[0]])["report"], "overview")
        fresh = Server(self, *paths)
        fresh.get("/api/report/overview", input=of[paths[0]])
        self.assertEqual(fresh.get("/api/summary", of=of[paths[0]]), s.get("/api/summary", of=of[paths[0]]))

    def equal_job(self, folder):
        s = Server(self, folder)
        (run,) = s.get("/api/runs")["runs"]
        self.assertTrue(run["job"])
        got = s.get("/api/summary", run=run["run"])
        ranks = [s.get("/api/summary", of=i["input"]) for i in run["inputs"]]
        self.assertEqual((got["ranks"], got["left_out"]), (len(run["inputs"]), 0))
        for i, one in zip(run["inputs"], ranks):
            self.equal_row(one, i["path"])
        self.near(got["step_ns"], cells(test_serve.printed("report", "overview", folder))[0]["mean_ns"], "step")
        self.near(got["busy_pct"], mean([r["busy_pct"] for r in ranks]), "busy")
        self.near(got["mfu_pct"], whole_rows(test_serve.printed("report", "mfu", folder))[-1]["mfu_pct"], "mfu")
        self.equal_findings(got, folder)
        return got

    def test_job(self):
        folder = os.path.join(self.tmp, "job")
        shutil.copytree(JOB, folder)
        found = self.equal_job(folder)
        kept = os.path.join(self.tmp, "one.opscope")
        self.assertEqual(oracle.run("import", folder, "-o", kept)[0], 0)
        s = Server(self, kept)
        (run,) = s.get("/api/runs")["runs"]
        self.assertEqual((run["job"], run["inputs"][0]["keeps_job"]), (False, True))
        got = s.get("/api/summary", of=run["inputs"][0]["input"])
        self.near(got["step_ns"], mean([r["step_ns"] for r in cells(test_serve.printed("report", "ranks", kept))]), "step")
        self.assertIsNone(got["busy_pct"])
        self.assertEqual((got["findings"], got["problem"]), (found["findings"], found["problem"]))
        # Beside the recordings, given by themselves, it is a copy of them.
        s = Server(self, kept, *(os.path.join(folder, f) for f in os.listdir(folder)))
        (run,) = s.get("/api/runs")["runs"]
        self.assertEqual((run["run"], run["job"], sorted(i["keeps_job"] for i in run["inputs"])), ("", True, [False] * 4 + [True]))
        self.assertEqual(s.get("/api/summary"), found)

    def test_large_job(self):
        if oracle.SANITIZED or not os.path.exists(TP8):
            self.skipTest("test_job asks the same of a smaller one")
        self.equal_job(TP8)

    def test_what_there_is(self):
        """Sizes and dates as the file system has them; which runs are jobs; what was removed is no longer there, also while it is in memory."""
        for name in ("a/trace.json", "b/other.json", "b/rank.json"):
            os.makedirs(os.path.dirname(os.path.join(self.tmp, name)), exist_ok=True)
            self.copy(test_serve.SMALL, name)
        shutil.copytree(JOB, os.path.join(self.tmp, "job"))
        with open(os.path.join(self.tmp, "job", "rank7.pt.trace.json"), "w", encoding="utf-8") as f:
            f.write('{"traceEvents": nonsense')
        s = Server(self, self.tmp)
        runs = s.get("/api/runs")
        self.assertEqual(runs["looked_at"], [self.tmp])
        self.assertEqual([(r["run"], r["job"], len(r["inputs"])) for r in runs["runs"]], [("a", False, 1), ("b", False, 2), ("job", True, 5)])
        for i in (i for r in runs["runs"] for i in r["inputs"]):
            at = os.stat(i["path"])
            self.assertEqual((i["bytes"], i["changed_ns"]), (at.st_size, at.st_mtime_ns))
        job = s.get("/api/summary", run="job")
        self.assertEqual((job["ranks"], job["left_out"]), (4, 1))
        self.assertIn("rank7", s.get("/api/summary", 422, of="job/rank7/default")["error"])
        # One without a byte is an input that cannot be read.
        with open(os.path.join(self.tmp, "a", "nothing.json"), "w", encoding="utf-8"):
            pass
        self.assertIn("the file is empty", Server(self, self.tmp).get("/api/summary", 422, of="a/nothing/default")["error"])
        self.assertIn("/api/runs lists them", s.get("/api/summary", 404, of="nothing")["error"])
        self.assertIn("/api/runs lists them", s.get("/api/summary", 404, run="nothing")["error"])
        self.assertIn("not both", s.get("/api/summary", 400, of="a/trace/default", run="b")["error"])
        before = s.get("/api/summary", of="b/other/default")
        s.get("/api/report/steps", input="a/trace/default")
        self.copy(test_serve.TRAINING, "b/other.json")
        shutil.rmtree(os.path.join(self.tmp, "a"))
        self.copy(test_serve.SMALL, "job/new.json")
        until = time.time() + 20
        while [(r["run"], r["job"], len(r["inputs"])) for r in s.get("/api/runs")["runs"]] != [("b", False, 2), ("job", False, 6)]:
            self.assertLess(time.time(), until, json.dumps(s.get("/api/runs")))
            time.sleep(0.1)
        after = s.get("/api/summary", of="b/other/default")
        self.assertNotEqual(after["step_ns"], before["step_ns"])
        self.equal_row(after, os.path.join(self.tmp, "b", "other.json"))
        self.assertTrue(s.inputs()["a/trace/default"]["absent"])

    def test_empty_folder(self):
        runs = Server(self, self.tmp).get("/api/runs")
        self.assertEqual((runs["runs"], runs["looked_at"]), ([], [self.tmp]))
        self.assertIn("*.json.gz", runs["looked_for"])


if __name__ == "__main__":
    oracle.main()
