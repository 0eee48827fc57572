"""PyProf's records as an input, field by field against python's own reading of them; and what is left of damaged ones."""
import ast
import gzip
import json
import os
import re
import tempfile

import oracle
from oracle import Case, data

KEPT = ("kShortName", "layer", "trace", "reprMarkers", "marker", "seqMarker", "seqId", "subSeqId", "altSeqId", "dir", "mod", "op", "tid")
FORMAT = "--input-format=pyprof-dict"


def source():
    return data("pyprof", "lm_nvprof", "expected_net.dict")


def sql(path, query, *args, stdin=None):
    code, out, err = oracle.run("sql", path, query, "--format=json", "--limit=0", *args, stdin=stdin)
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return [tuple(r) for r in json.loads(out)["rows"]]


def kernels(path, *args, stdin=None):
    """Kernels in the order of their starts, as PyProf would name what they state."""
    return sql(path, "SELECT g.start_ns, g.dur_ns, g.name, l.device, l.stream, l.grid_x, l.grid_y, l.grid_z, l.block_x, l.block_y, l.block_z "
               "FROM gpu_op g JOIN launch l ON l.rowid = g.launch ORDER BY g.start_ns, g.rowid", *args, stdin=stdin)


def expected(records):
    at, rows = 0, []
    for r in records:
        rows.append((at, r["kDuration"], r["kLongName"], r["device"], r["stream"], *r["grid"], *r["block"]))
        at += r["kDuration"]
    return rows


def diagnostics(path, *args):
    code, out, err = oracle.run("info", path, "--format=json", *args)
    if code:
        raise AssertionError(err.decode(errors="replace"))
    found = {}
    for kind, message in re.findall(r'\["([a-z-]+)","(?:lost|repaired|note)",\d+,(?:null|-?\d+),"((?:[^"\\]|\\.)*)"\]', out.decode()):
        found[kind] = json.loads(f'"{message}"')
    return found


class RealFile(Case):
    """284 kernels that PyProf itself printed."""

    def setUp(self):
        super().setUp()
        self.path = source()
        with open(self.path) as f:
            self.text = f.read()
        self.lines = [line for line in self.text.split("\n") if line]
        self.records = [ast.literal_eval(line) for line in self.lines]

    def test_every_kernel(self):
        self.assertEqual(len(self.records), 284)
        got = kernels(self.path)
        self.assertEqual(len(got), 284)
        for i, (g, w) in enumerate(zip(got, expected(self.records))):
            with self.subTest(line=i + 1):
                self.assertEqual(g, w)

    def test_fields_are_kept_as_written(self):
        sets = [r[0] for r in sql(self.path, "SELECT first FROM arg_set")]
        args = sql(self.path, "SELECT key, value, is_string FROM arg")
        of_kernel = [r[0] for r in sql(self.path, "SELECT args FROM gpu_op ORDER BY start_ns, rowid")]
        bounds = sets + [len(args)]
        self.assertEqual(len(of_kernel), len(self.lines))
        for line, record, s in zip(self.lines, self.records, of_kernel):
            mine = args[bounds[s]:bounds[s + 1]]
            self.assertEqual({k for k, _, _ in mine}, {"pyprof." + k for k in KEPT})
            self.assertEqual({string for _, _, string in mine}, {1})
            for key, value, _ in mine:
                name = key[len("pyprof."):]
                self.assertEqual(ast.literal_eval(value), record[name])
                self.assertIn(f"{name!r}: {value}", line)

    def test_launches(self):
        """Each kernel has one call on the thread that the record names, inside an op."""
        rows = sql(self.path, "SELECT g.dur_ns, t.tid, o.kind FROM gpu_op g JOIN span c ON c.rowid = g.call "
                   "JOIN track t ON t.rowid = c.track JOIN span o ON o.rowid = g.op ORDER BY g.start_ns, g.rowid")
        self.assertEqual(rows, [(r["kDuration"], r["tid"], "op") for r in self.records])

    def test_sequence_numbers(self):
        """Every number of a record stands at an op around its kernel."""
        numbers = {n for (n,) in sql(self.path, "SELECT DISTINCT link_id FROM span WHERE kind = 'op' AND link_id IS NOT NULL")}
        self.assertEqual(numbers, {int(m.split(", seq = ")[1]) for r in self.records for m in r["seqMarker"]})

    def test_gzip_and_stdin(self):
        want = expected(self.records)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "net.dict.gz")
            with gzip.open(path, "wt") as f:
                f.write(self.text)
            self.assertEqual(kernels(path), want)
            with open(path, "rb") as f:
                self.assertEqual(kernels("-", stdin=f.read()), want)
        self.assertEqual(kernels("-", stdin=self.text.encode()), want)

    def test_no_times(self):
        """What needs times is refused; what needs durations adds up."""
        for name in ("overview", "gpu-timeline", "steps", "devices"):
            code, _, err = oracle.run("report", name, self.path)
            self.assertEqual(code, 1, name)
            self.assertIn(b"durations but no times", err)
        self.assertIn("durations-only", diagnostics(self.path))
        (total,), = sql(self.path, "SELECT sum(dur_ns) FROM gpu_op")
        self.assertEqual(total, 8270633)
        self.assertEqual(total, sum(r["kDuration"] for r in self.records))

    def test_ops_of_the_database(self):
        """Which op each nanosecond of kernels belongs to, against the database that PyProf made the file from. Three pairs of nested
        ops must differ: the file does not hold which of the two is inside."""
        query = "SELECT o.name, sum(g.dur_ns) FROM gpu_op g JOIN span o ON o.rowid = g.op WHERE g.kind = 'kernel' GROUP BY o.name"
        got, want = dict(sql(self.path, query)), dict(sql(data("pyprof", "lm_nvprof", "net.sql"), query))
        for lost, inner, why in (
            ("layer_norm", "native_layer_norm", "same number, and one name holds the other: PyProf drops the second"),
            ("nll_loss", "nll_loss_forward", "the same"),
            ("reshape", "clone", "both have the number 0 and are sorted by name"),
        ):
            with self.subTest(op=inner, why=why):
                self.assertEqual(got.pop(lost, 0) + got.pop(inner, 0), want.pop(lost, 0) + want.pop(inner, 0))
        self.assertGreater(len(got), 20)
        self.assertEqual(got, want)

    def test_each_line_damaged(self):
        """A line cut short costs that line and no other."""
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "net.dict")
            for k in (0, 1, 141, 283):
                with open(path, "w") as f:
                    f.write("\n".join(line[:-30] if i == k else line for i, line in enumerate(self.lines)) + "\n")
                with self.subTest(line=k + 1):
                    self.assertEqual(kernels(path), expected(self.records[:k] + self.records[k + 1:]))
                    self.assertIn(f"line {k + 1} ", diagnostics(path)["damaged-line"])


def record(**change):
    r = {"kShortName": "gemm", "kDuration": 100, "layer": [], "trace": [], "reprMarkers": [], "marker": [], "seqMarker": ["mm, seq = 5"],
         "seqId": [5], "subSeqId": 0, "altSeqId": [], "dir": "fprop", "mod": ["na"], "op": ["mm"], "tid": 77, "device": 0, "stream": 7,
         "grid": (2, 3, 4), "block": (64, 1, 1), "kLongName": "void gemm<float>(float*)"}
    r.update(change)
    return r


class Synthetic(Case):
    def write(self, content):
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        path = os.path.join(d.name, "net.dict")
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else "".join(repr(r) + "\n" for r in content).encode())
        return path

    def test_streams(self):
        """Streams and devices are told apart; starts go on over all of them."""
        records = [record(), record(stream=8, kDuration=5), record(device=1), record(stream=8, kDuration=7)]
        path = self.write(records)
        self.assertEqual(kernels(path), expected(records))
        self.assertEqual(sql(path, "SELECT count(DISTINCT track) FROM gpu_op"), [(3,)])

    def test_durations(self):
        """One that is none leaves the kernel out."""
        for bad in (-1, 2**58 + 1, 2**63, 2**70, 1.5, "100", None, True):
            with self.subTest(duration=bad):
                path = self.write([record(), record(kDuration=bad), record(kDuration=3)])
                self.assertEqual([(s, d) for s, d, *_ in kernels(path)], [(0, 100), (100, 3)])
                self.assertIn("line 2 ", diagnostics(path)["damaged-line"])

    def test_fields_of_another_type(self):
        """The kernel is kept, the field is told."""
        for key in record():
            for bad in ({},) if oracle.SANITIZED else (None, {}, 1.5):
                if key == "kDuration":
                    continue
                with self.subTest(field=key, value=bad):
                    path = self.write([record(), record(**{key: bad})])
                    self.assertEqual([r[1] for r in kernels(path)], [100, 100])
                    message = diagnostics(path)["damaged-field"]
                    self.assertIn("line 2: ", message)
                    self.assertIn(f"'{key}'", message)

    def test_missing_fields(self):
        for key in record():
            if key == "kDuration":
                continue
            with self.subTest(field=key):
                r = record()
                del r[key]
                path = self.write([record(), r])
                got = kernels(path)
                self.assertEqual([k[1] for k in got], [100, 100])
                self.assertIn(f"line 2 has no '{key}'", diagnostics(path)["missing-field"])
                unstated = {"device": [3], "stream": [4], "grid": [5, 6, 7], "block": [8, 9, 10]}.get(key, [])
                self.assertEqual([i for i in range(3, 11) if got[1][i] is None], unstated)
                if key == "kLongName":
                    self.assertEqual(got[1][2], "gemm")

    def test_lines(self):
        """Blank lines, Windows' ends of lines, a byte order mark, no newline at the end, lines that are something else."""
        a, b = repr(record()).encode(), repr(record(kDuration=7)).encode()
        for content, durations in (
            (a + b"\n\n  \n" + b, [100, 7]),
            (a + b"\r\n" + b + b"\r\n", [100, 7]),
            (b"\xef\xbb\xbf" + a + b"\n" + b, [100, 7]),
            (a + b"\n[1, 2]\n" + b, [100, 7]),
            (a + b"\n" + b"\x00\xff" * 50 + b"\n" + b, [100, 7]),
            (a + b"\n" + b"[" * 5000 + b"\n" + b, [100, 7]),
            (a + b"\n" + b"'" * (9 << 20) + b"\n" + b, [100, 7]),
            (a + b"\n" + b[:-9], [100]),
        ):
            with self.subTest(content=content[:12], n=len(content)):
                self.assertEqual([r[1] for r in kernels(self.write(content))], durations)

    def test_refused(self):
        """Nothing to read is an error, not an empty answer."""
        for content in (b"", b"\n\n", b"{'kShortName': kDuration\n"):
            with self.subTest(content=content):
                code, _, err = oracle.run("info", self.write(content), FORMAT)
                self.assertEqual(code, 1)
                self.assertIn(b"empty" if not content.strip() else b"line 1 ", err)

    def test_damaged_gzip(self):
        """What came before the damage is used, and the damage is told."""
        packed = gzip.compress("".join(repr(record(kDuration=i, kLongName=f"k{i * 7919 % 10007}")) + "\n" for i in range(1, 3000)).encode())
        path = self.write(packed[:len(packed) // 2])
        got = [r[1] for r in kernels(path)]
        self.assertGreater(len(got), 100)
        self.assertEqual(got, list(range(1, len(got) + 1)))
        self.assertIn("truncated-file", diagnostics(path))


if __name__ == "__main__":
    oracle.main()
