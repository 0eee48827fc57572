"""`opscope sql --format=csv` of a result that is longer than the memory: it is written piece by piece, and is the same table."""
import csv
import io
import json
import os
import resource
import subprocess
import tempfile

import oracle
from oracle import Case

LIMIT = 320 << 20
TRACE = os.path.join(oracle.ROOT, "tests", "data", "h200", "gpt_bf16.json.gz")

# 9,523 spans: of 200,000 rows and more the last ones make a column text, and another real
LONG = """SELECT a.rowid AS a, b.rowid AS b, CASE WHEN a.rowid = 23 THEN 'last' ELSE b.rowid END AS text, CASE WHEN a.rowid = 22 THEN 1.5 ELSE b.rowid END AS number,
          CASE WHEN a.rowid = 21 THEN b.name END AS name FROM span a, span b WHERE a.rowid < 24"""


def rows(query):
    code, out, err = oracle.run("sql", TRACE, query, "--format=json")
    if code:
        raise AssertionError(err.decode())
    return [list(r.values()) for r in oracle.Table(json.loads(out)).rows]


class Pieces(Case):
    def bounded(self, query, *options):
        return subprocess.run([oracle.OPSCOPE, "sql", TRACE, query, *options], capture_output=True, timeout=oracle.TIMEOUT,
                              preexec_fn=lambda: oracle.SANITIZED or resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))

    def test_same_rows(self):
        n = rows("SELECT count(*) FROM span")[0][0]
        want = rows(LONG)
        got = list(csv.reader(io.StringIO(self.bounded(LONG, "--format=csv").stdout.decode())))
        self.assertEqual(got[0], ["a", "b", "text", "number", "name"])
        self.assertEqual(len(got), 24 * n + 1)
        kinds = (int, int, str, float, lambda x: x or None)
        self.assertEqual([[k(x) for k, x in zip(kinds, row)] for row in got[1:]], [[k(x) if x is not None else None for k, x in zip(kinds, row)] for row in want])

    def test_longer_than_the_memory(self):
        """Two million rows with names: 400 MB of cells."""
        p = self.bounded("SELECT a.name AS x, b.name AS y, b.dur_ns FROM span a, span b WHERE a.rowid < 200", "--format=csv")
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        self.assertEqual(p.stdout.count(b"\n"), 200 * rows("SELECT count(*) FROM span")[0][0] + 1)

    def test_first_rows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "o.csv")
            p = self.bounded("SELECT a.rowid FROM span a, span b WHERE a.rowid < 30", "--limit=100000", "-o", path)
            self.assertEqual((p.returncode, p.stderr), (0, b""))
            with open(path) as f:
                self.assertEqual(len(f.readlines()), 100001)
            p = self.bounded("SELECT a.rowid, CASE WHEN a.rowid = 29 AND b.rowid = 9000 THEN abs(-9223372036854775807 - 1) END FROM span a, span b WHERE a.rowid < 30", "-o", path)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(b"integer overflow", p.stderr)
            with open(path) as f:
                self.assertEqual(len(f.readlines()), 100001, "what failed does not take the place of the file")

    def test_other_values_each_time(self):
        """A column that is text when its type is looked for, and a number later, or the other way round, is an error and no wrong number."""
        p = self.bounded("SELECT CASE WHEN random() % 1000 = 0 THEN 'x' || random() ELSE 1 END AS r, CASE WHEN random() % 400000 = 0 THEN 2.5 ELSE 1 END AS f "
                         "FROM span a, span b WHERE a.rowid < 30", "--format=csv")
        if p.returncode:
            self.assertIn(b"the query gives other values each time it runs", p.stderr)
        else:
            self.assertEqual(len(p.stdout.splitlines()), 30 * rows("SELECT count(*) FROM span")[0][0] + 1)


if __name__ == "__main__":
    oracle.main()
