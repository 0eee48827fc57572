"""Kernels one by one, and DLProf's iteration and kernel reports of the same capture, cell by cell."""
import csv

import oracle
from oracle import Case, data, report

W_RELU = ("dlprof", "w_relu")


def sheet(name):
    with open(data(*W_RELU, name), newline="") as f:
        return list(csv.reader(f))[1:]


def cell(text):
    """A cell of DLProf's CSV as a value."""
    if text in ("yes", "no"):
        return text == "yes"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


@oracle.of("dlprof")
class DLProf(Case):
    def compare(self, got, want):
        """Rows of values; averages are printed with one decimal."""
        self.assertEqual(len(got), len(want))
        cells = 0
        for i, (g, w) in enumerate(zip(got, want)):
            self.assertEqual(len(g), len(w), i)
            for k, (a, b) in enumerate(zip(g, map(cell, w))):
                cells += 1
                if isinstance(b, float):
                    self.assertEqual(f"{a:.1f}", f"{b:.1f}", (i, k))
                else:
                    self.assertEqual("" if a is None else a, b, (i, k))
        return cells

    def table(self, grouping):
        t = report("kernels", "--compat=dlprof", "--group-by=" + grouping, data(*W_RELU, "nsys_profile.sqlite"))
        return [[r[c] for c in t.ids] for r in t.rows], [c["title"] for c in t.doc["columns"]]

    def test_iteration(self):
        got, titles = self.table("instance")
        want = sheet("dlprof_iteration.csv")
        self.assertEqual(titles, want[0])
        self.assertEqual(self.compare(got, want[1:]), 59 * 23)

    def test_kernel(self):
        got, titles = self.table("op")
        want = sheet("dlprof_kernel.csv")
        self.assertEqual(titles, want[0])
        self.assertEqual(self.compare(got, want[1:]), 49 * 13)


class Everywhere(Case):
    def inputs(self):
        for pattern in ("tb_plugin/*/*.json.gz", "tracelens/*/*.json.gz", "nsys/*/*.sqlite", "pyprof/*/net.sql*", "dlprof/*/nsys*.sqlite"):
            yield from oracle.data_glob(pattern)

    def test_kernels_one_by_one(self):
        oracle.data("tb_plugin")
        seen = 0
        for path in self.inputs():
            code, _, _ = oracle.run("report", "kernels", path, "--format=json")
            if code:
                continue
            rows = report("kernels", path, "--group-by=instance").rows
            whole = report("kernels", path).rows
            self.assertEqual(len(rows), sum(r["calls"] for r in whole), path)
            self.assertEqual(sum(r["dur_ns"] for r in rows), sum(r["total_ns"] for r in whole), path)
            self.assertEqual([r["start_ns"] for r in rows], sorted(r["start_ns"] for r in rows), path)
            self.assertEqual(report("kernels", path, "--group-by=instance", "--limit=2").rows, rows[:2], path)
            seen += 1
        self.assertGreater(seen, 10)


if __name__ == "__main__":
    oracle.main()
