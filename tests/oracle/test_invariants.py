"""What holds of every table of every input, whatever it is about: of all real inputs (OPSCOPE_ALL), or of every twentieth.

  - a percentage lies between 0 and 100, a time and a count are not negative;
  - min <= median, mean <= max; p95 <= p99 <= max; total = calls x mean; self <= total;
  - of a column with its share, the share is the same part of the column's sum in each row;
  - a report from the imported file, of a run on one processor, and of the same run again is the same to the byte."""
import json
import os
import re
import shutil
import tempfile

import oracle
from test_opscope_file import reports
from test_verdicts import inputs

EACH = 1 if oracle.ALL else 20  # of the inputs
ALWAYS = ("streams/blocking.json.gz", "trace_100Kpar_4exp")  # of which an invariant was broken once
COMPARED = 40 if oracle.ALL else 3  # reports of each input that are run from the source as well
SIGNED = re.compile(r"(size_increase|memory)_bytes$|_to_first|since_first|gain|skew|delay|^curve|overhead|idle|beyond_mean")
# Columns of rates against a peak: clocks can be above the nominal one, and bytes of a model below those that were moved.
BEYOND_100 = re.compile(r"(peak|bandwidth|efficiency|mfu|utilization|cpu)_pct$")
EPSILON = 1e-6


def tables(doc):
    yield doc
    for section in doc.get("sections") or []:
        yield from tables(section)


def family(ids, i):
    """{"min": column, "mean": ...} of the columns that differ from `i` in this word alone."""
    out = {}
    for word in ("total", "mean", "median", "min", "max", "p95", "p99"):
        name = re.sub(r"(?:^|(?<=_))mean(?=_)", word, i, count=1)
        if name in ids:
            out[word] = name
    return out


class Invariants(oracle.Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def values(self, table):
        columns = {c["id"]: c for c in table["columns"]}
        for r in table["rows"]:
            yield columns, dict(zip(columns, r))

    def in_range(self, where, table):
        for columns, row in self.values(table):
            for i, v in row.items():
                if not isinstance(v, (int, float)) or isinstance(v, bool) or SIGNED.search(i):
                    continue
                unit = columns[i]["unit"]
                if unit in ("percent", "ns", "count", "bytes", "flops"):
                    self.assertGreaterEqual(v, 0, f"{where}: {i} of {row}")
                if unit == "percent" and not BEYOND_100.search(i):
                    self.assertLessEqual(v, 100 + EPSILON, f"{where}: {i} of {row}")

    def in_order(self, where, table):
        ids = {c["id"] for c in table["columns"]}
        families = [f for f in (family(ids, i) for i in ids if re.search(r"(?:^|_)mean_", i)) if len(f) > 1]
        for _, row in self.values(table):
            for f in families:
                v = {word: row[i] for word, i in f.items() if row[i] is not None}
                at = f"{where}: {v} of {row}"
                for low, high in (("min", "median"), ("min", "mean"), ("median", "max"), ("mean", "max"), ("median", "p95"), ("p95", "p99"), ("p99", "max")):
                    if low in v and high in v:
                        self.assertLessEqual(v[low], v[high] + 1, at)
            for low in ids:
                for high in (low.replace("_self_", "_total_"), re.sub(r"^self_", "total_", low)):
                    if high != low and low.endswith("_ns") and high in ids and row[low] is not None and row[high] is not None and not SIGNED.search(low):
                        self.assertLessEqual(row[low], row[high], f"{where}: {low} of {row}")

    def means(self, where, table):
        """A mean is rounded to a whole number by half of one at most."""
        ids = {c["id"] for c in table["columns"]}
        for mean in [i for i in ids if i.startswith("mean_") and "calls" in ids]:
            total = mean.replace("mean_", "total_", 1)
            for _, row in self.values(table) if total in ids else ():
                if row[mean] is not None and row[total] is not None and row["calls"]:
                    self.assertLessEqual(abs(row[mean] * row["calls"] - row[total]), row["calls"] * 0.51 + EPSILON * abs(row[total]), f"{where}: {mean} of {row}")

    def shares(self, where, table):
        """The share is that of one whole, which is the same for all rows."""
        ids = {c["id"] for c in table["columns"]}
        for share in [i for i in ids if i in ("total_pct", "device_self_pct", "gpu_pct", "share_pct", "host_self_pct")]:
            of = next((i for i in (share.replace("_pct", "_ns"), "total_gpu_ns", "gpu_ns", "total_ns", "bytes") if i in ids), None)
            wholes = [(row[of] * 100 / row[share], row) for _, row in self.values(table) if of and row[of] and row[share] and row[share] > 1]
            for whole, row in wholes[1:]:
                self.assertLessEqual(abs(whole - wholes[0][0]), 1e-6 * wholes[0][0] + 1, f"{where}: {share} of {of} in {row} and {wholes[0][1]}")

    def same(self, path, kept, name):
        args = ("report", name, "--format=json")
        code, said, _ = oracle.run(*args, kept)
        for what, run in (("source", lambda: oracle.run(*args, path)), ("again", lambda: oracle.run(*args, path)), ("one processor", lambda: self.on_one(args, path))):
            with self.subTest(report=name, compared=what):
                got = run()
                self.assertEqual(got[0], code, got[2])
                self.assertTrue(got[1] == said, f"report {name} of {path}: {what} differs from the imported file")

    def on_one(self, args, path):
        had = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(had)})
        try:
            return oracle.run(*args, path)
        finally:
            os.sched_setaffinity(0, had)

    def check(self, path, at):
        kept = os.path.join(self.tmp, "run.opscope")
        code, _, err = oracle.run("import", path, "-o", kept, timeout=300)
        if code and path.endswith(".json"):
            with open(path, encoding="utf-8") as f:
                if '"ph"' not in f.read():
                    self.skipTest("no event is in it, so that it is no trace")
        self.assertEqual(code, 0, err)
        names = [name for name, _ in reports()]
        for name in names:
            code, out, err = oracle.run("report", name, kept, "--format=json")
            if code:
                self.assertEqual((code, out, err.count(b"\n") > 0), (1, b"", True), err)
                continue
            for table in tables(json.loads(out)):
                where = f"report {name} of {path}, table {table.get('name') or table.get('report')}"
                with self.subTest(where=where):
                    self.in_range(where, table)
                    self.in_order(where, table)
                    self.means(where, table)
                    self.shares(where, table)
        for k in range(min(COMPARED, len(names))):
            self.same(path, kept, names[(at * COMPARED + k) % len(names)])


def case(path, at):
    def test(self):
        self.check(path, at)
    return test


for n, trace in enumerate(inputs()):
    # Numbers that another tool printed lie beside the traces.
    if (n % EACH == 0 or any(a in trace for a in ALWAYS)) and not os.path.basename(trace).startswith("expected_"):
        setattr(Invariants, "test " + os.path.relpath(trace, oracle.DATA).replace(".", "_"), case(trace, n))

if not oracle.data_glob("*"):
    def absent(self):
        self.skipTest("no real traces (they are not part of the repository)")
    Invariants.test_real_traces = absent

if __name__ == "__main__":
    oracle.main()
