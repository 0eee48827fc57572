"""CSV of reports with a row for each event: it is written while the rows are made, and is the same table as any other format's."""
import csv
import io
import json
import os
import subprocess
import tempfile

import nsys_db
import oracle
from nsys_db import call, kernel, nvtx, strings
from oracle import Case

KERNELS = 2060  # more than two pieces
REPORTS = (("pyprof",), ("kernels", "--group-by=instance"), ("queues", "--group-by=change"), ("function-events",),
           ("key-averages", "--group-by=event"))


def tables():
    texts = ["void at::native::vectorized_elementwise_kernel<(int)4, \"x\">(int, T2)", "cudaLaunchKernel_v7000", "=cmd, 'a'"]
    ranges, calls, kernels = [], [], []
    for i in range(KERNELS):
        at = 1000 * i
        ranges.append(nvtx(at, at + 900, f"aten::mm, seq = {i}, op_id = {i + 1}, sizes = [[{i % 7 + 1}, 64], [64, 32]]", 5, 5))
        calls.append(call(at + 100, at + 200, i + 1, 5, 5))
        kernels.append(kernel(at + 300, at + 301 + i % 613, i + 1, 5, name=1 if i % 3 else 3))
    return {"StringIds": strings(*texts), "NVTX_EVENTS": ranges, "CUPTI_ACTIVITY_KIND_RUNTIME": calls, "CUPTI_ACTIVITY_KIND_KERNEL": kernels}


class Pieces(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "a.sqlite")
        nsys_db.make(cls.path, tables())

    def ask(self, *words):
        code, out, err = oracle.run("report", words[0], self.path, *words[1:])
        self.assertEqual((code, err), (0, b""), words)
        return out.decode()

    def test_as_json(self):
        """Cell by cell, null and empty text apart."""
        for words in REPORTS:
            with self.subTest(report=words):
                doc = json.loads(self.ask(*words, "--format=json"))
                lines = self.ask(*words, "--format=csv").splitlines()
                got = list(csv.reader(lines))
                self.assertEqual(got[0], [c["id"] for c in doc["columns"]])
                self.assertGreater(len(doc["rows"]), KERNELS - 1)
                self.assertEqual(len(got) - 1, len(doc["rows"]))
                for row, cells in zip(doc["rows"], got[1:]):
                    want = ["" if v is None else str(v).lower() if isinstance(v, bool) else v if isinstance(v, str) else None for v in row]
                    for v, text, cell in zip(row, want, cells):
                        if text is None:
                            self.assertEqual(type(v)(cell), v)
                        else:
                            self.assertEqual(cell, "'" + text if text[:1] == "=" else text)

    def test_options(self):
        """What chooses rows and columns gives a part of the whole, whether it needs all rows or not."""
        whole = self.ask("pyprof", "--format=csv").splitlines(keepends=True)
        for n in (1024, 1025, 2048, KERNELS + 1):
            self.assertEqual(self.ask("pyprof", "--format=csv", f"--limit={n}"), "".join(whole[:n + 1]), n)
        rows = list(csv.DictReader(io.StringIO("".join(whole))))
        self.assertEqual(list(csv.reader(self.ask("pyprof", "--format=csv", "--columns=sil_ns,idx").splitlines()))[1:],
                         [[r["sil_ns"], r["idx"]] for r in rows])
        self.assertEqual([r["idx"] for r in csv.DictReader(io.StringIO(self.ask("pyprof", "--format=csv", "--sort=-sil_ns")))],
                         [r["idx"] for r in sorted(rows, key=lambda r: -int(r["sil_ns"]))])
        path = os.path.join(self.folder.name, "o.csv")
        self.assertEqual(self.ask("pyprof", "-o", path), "")
        with open(path) as f:
            self.assertEqual(f.read(), "".join(whole))

    def test_refused(self):
        """An option that the table cannot have is refused before anything is written; a reader that has enough is no error."""
        path = os.path.join(self.folder.name, "refused.csv")
        code, out, err = oracle.run("report", "pyprof", self.path, "--columns=nothing", "-o", path)
        self.assertEqual((code, out), (2, b""))
        self.assertIn(b"nothing", err)
        self.assertFalse(os.path.exists(path))
        p = subprocess.Popen([oracle.OPSCOPE, "report", "function-events", self.path, "--format=csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.readline()
        p.stdout.close()
        self.assertEqual((p.stderr.read(), p.wait(oracle.TIMEOUT)), (b"", 0))
        p.stderr.close()


if __name__ == "__main__":
    oracle.main()
