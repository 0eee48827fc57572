"""Files of torch's export_memory_timeline as inputs: what torch wrote comes out of `export memory-timeline` as it was; the peaks of a file of a real training run; and damaged ones."""
import gzip
import json
import os
import tempfile

import oracle
from oracle import Case, data, report, run

BROKEN = ("more", "memory_timeline", "train_batch128_broken.json.gz")
RAW = [[-1, 1, 1000, 0], [-1, 1, 50, 7], [5000, 2, 300, 4], [6000, 3, -300, 4], [6000, 3, 300, 5], [9000, 4, -300, 5]]
CATEGORIES = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "Unknown"]


def moving(doc):
    """[times, sizes] without the points at which nothing changes, which are those of changes that cancel within a microsecond."""
    rows = list(zip(*doc))
    return [r for i, r in enumerate(rows) if not i or r[1] != rows[i - 1][1]]


class Torch(Case):
    def export(self, path, form):
        code, out, err = run("export", "memory-timeline", path, f"--form={form}")
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_json(self):
        for path in (data("torch", "torch214_cpu", "lstm_full.memory.json.gz"), data("torch", "torch214_cpu", "resnet_full.memory.json.gz"), data(*BROKEN)):
            with gzip.open(path, "rt") as f:
                want = json.load(f)
            self.assertEqual(moving(self.export(path, "json")), moving(want), path)

    def test_raw(self):
        trace = data("torch", "torch214_cpu", "resnet_full.json.gz")
        with tempfile.TemporaryDirectory() as tmp:
            for form in ("raw", "json"):
                path, kept = os.path.join(tmp, form + ".json"), os.path.join(tmp, form + ".opscope")
                want = self.export(trace, form)
                with open(path, "w", encoding="utf-8") as f:
                    f.write(json.dumps(want))
                self.assertEqual(run("import", path, "-o", kept)[0], 0)
                for p in (path, kept):
                    self.assertEqual(self.export(p, form) if form == "raw" else moving(self.export(p, form)), want if form == "raw" else moving(want))
                for column in ("category", "at_peak_bytes", "peak_bytes", "end_bytes"):
                    names = [[r[column] for r in sorted(report("memory-categories", x).rows, key=lambda r: r["category"]) if not r["category"].startswith(("Unknown", "held"))] for x in (trace, path)]
                    self.assertEqual(*names)

    def test_peaks(self):
        table = report("memory-categories", data(*BROKEN))
        self.assertEqual(sum(r["at_peak_bytes"] for r in table.rows), 11_423_056_264)
        self.assertEqual(table.by("category")["ACTIVATION"]["peak_bytes"], 10_937_364_992)
        with gzip.open(data(*BROKEN), "rt") as f:
            times, sizes = json.load(f)
        for i, name in enumerate(CATEGORIES, 1):
            if max(s[i] for s in sizes):
                self.assertEqual(table.by("category")[name]["peak_bytes"], max(s[i] for s in sizes))
        self.assertEqual({r["blocks"] for r in table.rows}, {0})


class Small(Case):
    def ask(self, text, *args):
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "t.raw.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            return run(*args, path, "--format=json")

    def rows(self, text):
        code, out, err = self.ask(text, "report", "memory-categories")
        self.assertEqual(code, 0, err)
        return oracle.Table(json.loads(out)).by("category")

    def test_raw(self):
        for text in (json.dumps(RAW), json.dumps(RAW, indent=1), json.dumps(RAW).replace("], [", "],[")):
            rows = self.rows(text)
            self.assertEqual({k: (r["at_peak_bytes"], r["peak_bytes"], r["end_bytes"], r["blocks"]) for k, r in rows.items()},
                             {"PARAMETER": (1000, 1000, 1000, 0), "ACTIVATION": (300, 300, 0, 1), "GRADIENT": (0, 300, 0, 1), "Unknown": (50, 50, 50, 0)})

    def test_cut_off(self):
        """All before the damage counts, and the damage is said."""
        rows = self.rows(json.dumps(RAW)[:-14])
        self.assertEqual(rows["GRADIENT"]["end_bytes"], 300)
        self.assertIn(b"memory timeline is read up to here", self.ask(json.dumps(RAW)[:-14], "info")[1])

    def test_damaged_entries(self):
        rows = self.rows(json.dumps(RAW[:3] + [[5500, 2, 7], [5600, 2, 11, 99]]))
        self.assertEqual(rows["Unknown"]["end_bytes"], 61)

    def test_no_timeline(self):
        for text in ("[[", "[[1", "[[1]]", '[[1], ["x"]]', "[[-1, 1, 5, 0], {}]", "[[1, 2], [[0, 1, 2], [0]]]", "[[9223372036854775807, 2, 9223372036854775807, 0], [1, 2, 9223372036854775807, 0]]"):
            code, _, err = self.ask(text, "report", "memory-categories")
            self.assertIn(code, (0, 1), (text, err))
            self.assertLessEqual(err.count(b"\n"), 2, (text, err))


if __name__ == "__main__":
    oracle.main()
