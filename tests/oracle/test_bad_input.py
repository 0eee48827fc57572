"""What bad input gets: one clear line and status 1, or what could be saved, with diagnostics and status 0. Never a crash, a
hang, a trace back, or an error inside the output."""
import contextlib
import gzip
import json
import os
import random
import sqlite3
import subprocess
import tempfile
import unittest

import nsys_db
import oracle
from oracle import OPSCOPE, Case, info, run

OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"External id": 1}}


def op(**change):
    return {**OP, **change}


def trace(*events, **top):
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": list(events)}).encode()


class BadInput(Case):
    def setUp(self):
        super().setUp()
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = tmp.name

    def file(self, content, name="trace.json"):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(content)
        return path

    def refused(self, path, *words, args=("report", "operators")):
        status, out, err = run(*args, path)
        text = err.decode()
        self.assertEqual(status, 1, text)
        self.assertEqual(out, b"")
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("opscope: "), text)
        for w in words:
            self.assertIn(w, text)
        return text

    def saved(self, path, events, *kinds):
        """`events` of the input were used; each of `kinds` is among the diagnostics. Every report then says something or
        refuses in one line."""
        doc = info(path)
        self.assertEqual(total_events(doc), events)
        found = diagnostics(doc)
        for k in kinds:
            self.assertIn(k, found)
        self.every_report(path)
        return found

    def every_report(self, path):
        """Under the sanitizers `opscope import` makes nearly all of them, by every grouping, in one process; the others are asked for, and what they print is
        looked at in the plain build."""
        names = self.imported(path) if oracle.SANITIZED else report_names()
        for name in names:
            status, out, err = run("report", name, path, "--format=json")
            if status == 0:
                json.loads(out)
            else:
                self.assertEqual((status, out), (1, b""), name)

    def imported(self, path):
        """The reports that an import leaves to whoever asks."""
        kept = os.path.join(self.dir, "every.opscope")
        status, out, err = run("import", path, "-o", kept)
        self.assertEqual((status, out), (0, b""), err)
        with contextlib.closing(sqlite3.connect(kept)) as db:
            left = [name for name, reason in db.execute("SELECT name, reason FROM report_missing") if reason.startswith("one row an event")]
        os.unlink(kept)
        return [name for name in report_names() if "report_" + name.replace("-", "_") in left]

    # Nothing to read.

    def test_missing_file(self):
        self.refused(os.path.join(self.dir, "none.json"), "none.json", "No such file")

    def test_empty_file(self):
        self.refused(self.file(b""), "trace.json")

    def test_only_white_space(self):
        self.refused(self.file(b" \n\t\r\n"))

    def test_empty_directory(self):
        self.refused(self.dir, self.dir)

    def test_directory_without_traces(self):
        self.file(b"hello", "notes.txt")
        self.refused(self.dir, self.dir)

    def test_empty_stdin(self):
        status, out, err = run("report", "operators", "-", stdin=b"")
        self.assertEqual((status, out), (1, b""))
        self.assertEqual(err.count(b"\n"), 1)

    def test_not_json(self):
        self.refused(self.file(b"hello, world\n"))

    def test_html_error_page(self):
        self.refused(self.file(b"<!DOCTYPE html><html><body>404 Not Found</body></html>"))

    def test_binary(self):
        self.refused(self.file(b"\x7fELF" + random.Random(1).randbytes(100000)))

    def test_zeros(self):
        self.refused(self.file(bytes(100000)))

    def test_device(self):
        self.refused("/dev/null")

    def test_missing_trace_events(self):
        self.refused(self.file(b'{"schemaVersion": 1, "deviceProperties": []}'), "traceEvents")

    def test_trace_events_of_wrong_type(self):
        self.refused(self.file(b'{"schemaVersion": 1, "traceEvents": 7}'), "traceEvents")

    def test_other_json(self):
        self.refused(self.file(b'{"name": "a package", "version": "1.0"}'))
        self.refused(self.file(b"[1, 2, 3]"))
        self.refused(self.file(b'"a string"'))
        self.refused(self.file(b"null"))

    def test_objects_that_are_no_events(self):
        """Rows of key_averages(), lists of events(), lists of files: neither a phase nor a time in any of them."""
        for objects, *words in (([{"key": "aten::mm", "count": 3, "cpu_time_total": 5}] * 4, "not a trace", "(4)", "key_averages()"),
                                ([{"name": "aten::mm", "thread": 1, "start": 1.5, "end": 3}], "not a trace", "events()"),
                                ([{"file": "x.pt.trace.json.gz", "batch_size": 32}], "not a trace", "list of files"),
                                ([{}, {"a": 1}], "not a trace", "other keys")):
            with self.subTest(objects=str(objects)[:40]):
                self.refused(self.file(json.dumps(objects).encode()), *words)
                self.refused(self.file(json.dumps({"traceEvents": objects}).encode()), *words)
        self.refused(self.file(b'{"traceEvents": [[1, 2], [3]]}'), "not a trace", "not objects")
        self.refused(self.file(b"[[1, 2], [3]]"), "no event could be read", "memory timeline")

    def test_files_beside_traces(self):
        """What torch and others write that is not a trace."""
        for path in (("torch", "torch214_cpu", "lstm_full.key_averages.json"), ("torch", "torch113_cpu", "resnet_full.events.json.gz"),
                     ("graphs", "vllm_decode_full", "capture_traces", "execution_details.json"), ("torch", "torch26_cpu", "VERSIONS.json"),
                     ("more", "execution_trace", "dlrm_linked", "dlrm_eg_0_plus.json.gz")):
            with self.subTest(path=path[-1]):
                self.refused(oracle.data(*path), "not a trace", args=("info",))

    def test_one_event_is_enough(self):
        """Odd objects beside events cost themselves alone."""
        code, out, _ = run("report", "operators", self.file(json.dumps([{"key": 1}, OP, {"file": "x"}]).encode()), "--format=json")
        self.assertEqual(code, 0)
        self.assertIn("aten::mm", out.decode())

    def test_empty_gzip(self):
        self.refused(self.file(gzip.compress(b""), "trace.json.gz"))

    def test_gzip_of_nonsense(self):
        self.refused(self.file(gzip.compress(b"hello"), "trace.json.gz"))

    def test_gzip_header_only(self):
        self.refused(self.file(b"\x1f\x8b\x08\x00", "trace.json.gz"))

    def test_broken_gzip_from_the_start(self):
        self.refused(self.file(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 1000, "trace.json.gz"))

    def test_damaged_opscope_file(self):
        self.refused(self.file(b"SQLite format 3\0" + bytes(5000), "run.opscope"))

    # Bombs.

    def test_deep_member(self):
        """A fact about the run that is nested too deep is left out, and told; the events behind it count."""
        for depth in 600, 100_000:
            deep = b'{"schemaVersion": 1, "odd": ' + b'[{"a": "]"},' * depth + b"1" + b"]" * depth + b', "traceEvents": ' + json.dumps([OP]).encode() + b"}"
            doc = info(self.file(deep))
            self.assertEqual(total_events(doc), 1)
            self.assertIn("deep-metadata", diagnostics(doc))
        self.refused(self.file(deep[:-200]), "no traceEvents array")

    def test_depth_bomb(self):
        deep = b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a", "args": {"x": ' + b"[" * 1000000
        status, out, err = run("report", "operators", self.file(deep))
        self.assertIn(status, (0, 1))
        self.assertLess(len(err.splitlines()), 6)

    def test_depth_bomb_outside(self):
        self.refused(self.file(b"[" * 1000000))
        self.refused(self.file(b'{"a":' * 1000000))

    def test_depth_bomb_in_one_event_keeps_the_others(self):
        bad = b'{"ph":"X","name":"a","args":{"x":' + b"[" * 5000 + b"]" * 5000 + b"}}"
        good = json.dumps(OP).encode()
        path = self.file(b'{"schemaVersion":1,"traceEvents":[' + good + b"," + bad + b"," + good + b"]}")
        status, out, err = run("info", path)
        self.assertEqual(status, 0, err)

    def test_one_long_string(self):
        """80 MB without an end, through a pipe: answered in bounded time and memory."""
        with subprocess.Popen([OPSCOPE, "report", "operators", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as p:
            try:
                p.stdin.write(b'{"schemaVersion": 1, "traceEvents": [' + json.dumps(OP).encode() + b', {"ph": "X", "name": "')
                block = b"x" * (1 << 20)
                for _ in range(80):
                    p.stdin.write(block)
                p.stdin.close()
            except BrokenPipeError:
                pass
            p.stdin = None
            out, err = p.communicate(timeout=60)
        self.assertIn(p.returncode, (0, 1), err[-500:])
        self.assertLess(len(err), 5000)

    def test_long_string_that_ends(self):
        path = self.file(trace(op(name="n" * 3000000), OP))
        self.saved(path, 2)

    def test_gzip_bomb(self):
        path = self.file(gzip.compress(trace(OP)[:-2] + b" " * 100000000 + b"]}"), "trace.json.gz")
        self.saved(path, 1)

    # Truncated.

    def test_cut_at_many_places(self):
        events = [op(ts=10 * i, name=f"aten::op{i}", args={"External id": i, "Input Dims": [[i, 2], []]}) for i in range(40)]
        whole = trace(*events)
        first = whole.index(b'{"ph"')
        ends, decoder, text, at = [], json.JSONDecoder(), whole.decode(), first
        for _ in events:
            at = decoder.raw_decode(text, at)[1]
            ends.append(at)
            at += 2
        for cut in sorted(random.Random(2).sample(range(first + 1, len(whole) - 1), 40)) + [len(whole) - 1, len(whole) - 2]:
            complete = sum(e <= cut for e in ends)
            path = self.file(whole[:cut])
            with self.subTest(cut=cut, complete=complete):
                if complete == 0:
                    self.refused(path)
                elif cut < len(whole) - 1:
                    doc = info(path)
                    self.assertEqual(total_events(doc), complete)
                    self.assertIn("truncated-file", diagnostics(doc))

    def test_cut_database(self):
        path = os.path.join(self.dir, "cut.sqlite")
        nsys_db.make(path, nsys_db.sample())
        bytes_whole = os.path.getsize(path)
        for left in (bytes_whole - 1, bytes_whole // 2, 4096):
            os.truncate(path, left)
            with self.subTest(left=left):
                code, out, err = oracle.run("report", "kernels", path)
                self.assertEqual((code, out, err.decode()), (1, b"", f"opscope: {path}: the database is cut off: {left} of its {bytes_whole} bytes are there; copy or export it again\n"))

    def test_work_without_calls(self):
        """Kernels whose launch was not recorded are kept, and counted as such."""
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 1}}
        for kernels in (1, 3):
            work = [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 20 + 20 * i, "dur": 10, "args": {"correlation": 1 + i, "device": 0, "stream": 7}}
                    for i in range(kernels)]
            doc = info(self.file(trace(call, *work)))
            problems = [t for t in doc.doc["sections"] if t["name"] == "problems"]
            met = {r["kind"]: r["count"] for t in problems for r in oracle.Table(t).rows}
            self.assertEqual(met, {"no-launch-call": kernels - 1} if kernels > 1 else {})

    def test_cut_gzip(self):
        events = [op(ts=10 * i, name=f"aten::op{i * 7919 % 1009}", args={"External id": i}) for i in range(3000)]
        packed = gzip.compress(trace(*events))
        status, out, err = run("report", "operators", self.file(packed[: len(packed) // 2], "trace.json.gz"), "--format=json")
        self.assertEqual(status, 0, err)
        self.assertGreater(len(json.loads(out)["rows"]), 50)
        self.assertNotEqual(err, b"") # it says that something was lost

    def test_gzip_with_bad_checksum(self):
        packed = bytearray(gzip.compress(trace(OP, OP)))
        packed[-8] ^= 0xff
        status, out, err = run("report", "operators", self.file(bytes(packed), "trace.json.gz"))
        self.assertIn(status, (0, 1))
        self.assertNotEqual(err, b"")

    def test_damage_in_the_middle(self):
        good = json.dumps(OP).encode()
        path = self.file(b'{"schemaVersion":1,"traceEvents":[' + good + b"," + good + b",}]!{\"x\"," + good + b"]}")
        doc = info(path)
        self.assertGreaterEqual(total_events(doc), 2)
        self.assertTrue(diagnostics(doc))

    # Known damage that is repaired.

    def test_control_characters(self):
        path = self.file(trace(op(name="aten::AB")).replace(b"::AB", b"::A\x01\nB"))
        self.saved(path, 1)

    def test_bare_words(self):
        path = self.file(trace(op(args={"External id": 1, "x": "@", "y": "@", "z": "@"}), OP)
                         .replace(b'"@"', b"N/A", 1).replace(b'"@"', b"NaN", 1).replace(b'"@"', b"-Infinity", 1))
        self.saved(path, 2)

    def test_bare_word_as_time(self):
        path = self.file(trace(op(ts="@"), OP).replace(b'"@"', b"N/A"))
        status, out, err = run("report", "operators", path)
        self.assertEqual(status, 0, err)

    def test_late_end_of_the_window(self):
        """A "Record Window End" days behind the last event, as some versions of Kineto wrote: an instant, which lengthens nothing."""
        trace = oracle.load(oracle.synthetic("all_categories"))
        last = max(e["ts"] for e in trace["traceEvents"] if "ts" in e)
        begin = {"name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": 1}
        end = {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": last + 10 * 24 * 3600 * 10**6}
        text = json.dumps({**trace, "traceEvents": trace["traceEvents"] + [begin, end]}).encode()
        for report in ("overview", "gpu-timeline", "devices"):
            self.assertEqual(oracle.report(report, "-", "--steps=all", stdin=text).rows, oracle.report(report, oracle.synthetic("all_categories"), "--steps=all").rows, report)

    def test_windows_back_slashes(self):
        path = self.file(trace(op(args={"Call stack": "@"})).replace(b"@", b"C:\\Users\\new\\train.py(7): main"))
        self.saved(path, 1)

    def test_trailing_commas(self):
        good = json.dumps(OP).encode()
        self.saved(self.file(b'{"schemaVersion":1,"traceEvents":[' + good + b"," + good + b",],}"), 2)

    def test_byte_order_mark(self):
        self.saved(self.file(b"\xef\xbb\xbf" + trace(OP)), 1)

    def test_not_utf8(self):
        self.saved(self.file(trace(op(name="@"), OP).replace(b"@", b"\xff\xfe\x80")), 2)

    def test_bytes_behind_the_end(self):
        self.saved(self.file(trace(OP) + b"\n\n"), 1)
        status, out, err = run("report", "operators", self.file(trace(OP) + b"garbage"))
        self.assertEqual(status, 0, err)

    # Odd values.

    def test_negative_durations(self):
        self.saved(self.file(trace(op(dur=-5), OP)), 2)

    def test_huge_numbers(self):
        for value in (2**63, 2**63 - 1, -(2**63), 2**64, 10**30, 1e308, -1e308):
            for key in ("ts", "dur"):
                with self.subTest(key=key, value=value):
                    self.every_report(self.file(trace(op(**{key: value}), OP)))

    def test_huge_ids(self):
        for value in (2**63, -1, 2**31, 2**32, 10**30, "seven", None, [1], {}):
            with self.subTest(value=value):
                k = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 5,
                     "args": {"correlation": value, "External id": value, "device": value, "stream": value, "grid": value}}
                r = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 11, "dur": 1,
                     "args": {"correlation": value, "External id": value}}
                self.every_report(self.file(trace(op(args={"External id": value}), r, k)))

    def test_duplicate_ids(self):
        r = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 11, "dur": 1,
             "args": {"correlation": 7, "External id": 1}}
        k = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 20, "dur": 5, "args": {"correlation": 7, "device": 0}}
        self.saved(self.file(trace(OP, op(ts=11), r, {**r, "ts": 12}, k, {**k, "ts": 30})), 6)

    def test_fields_of_wrong_type(self):
        for key in ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args"):
            for value in (None, [], {}, [[]], True, "", "x", 1.5, -1):
                with self.subTest(key=key, value=value):
                    self.every_report_of_two(self.file(trace(op(**{key: value}), OP)))

    def every_report_of_two(self, path):
        for name in ("operators", "overview"):
            status, out, err = run("report", name, path, "--format=json")
            self.assertIn(status, (0, 1))

    def test_missing_fields(self):
        for key in OP:
            with self.subTest(key=key):
                self.every_report_of_two(self.file(trace({k: v for k, v in OP.items() if k != key}, OP)))

    def test_events_that_are_no_objects(self):
        path = self.file(b'{"schemaVersion":1,"traceEvents":[1,null,"x",[],' + json.dumps(OP).encode() + b"]}")
        status, out, err = run("report", "operators", path, "--format=json")
        self.assertEqual(status, 0, err)
        self.assertEqual(len(json.loads(out)["rows"]), 1)

    def test_unmatched_begin_and_end(self):
        b = {"ph": "B", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1}
        e = {"ph": "E", "pid": 1, "tid": 1, "ts": 2}
        self.every_report(self.file(trace(e, b, b, e, OP)))

    def test_partial_overlap(self):
        self.saved(oracle.synthetic("partial_overlap"), 3)

    # The output side.

    def test_output_is_never_half_written(self):
        path = self.file(trace(OP))
        target = os.path.join(self.dir, "no", "such", "folder", "x.csv")
        status, out, err = run("report", "operators", path, "-o", target)
        self.assertEqual(status, 1)
        self.assertEqual(err.count(b"\n"), 1)
        self.assertEqual(sorted(os.listdir(self.dir)), ["trace.json"])

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "wb") as full:
            p = subprocess.run([OPSCOPE, "report", "operators", self.file(trace(OP))], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stderr.count(b"\n"), 1)

    # Wrong usage.

    def test_usage(self):
        path = self.file(trace(OP))
        for args in ((), ("nonsense",), ("report", "nonsense", path), ("report", "operators"),
                     ("report", "operators", path, "--format=nonsense"), ("report", "operators", path, "--columns=nonsense"),
                     ("report", "operators", path, "--sort=nonsense"), ("report", "operators", path, "--group-by=nonsense"),
                     ("report", "operators", path, "--compat=nonsense"), ("report", "operators", path, "--limit=x"),
                     ("report", "operators", path, "--nonsense")):
            with self.subTest(args=args[:1] + args[2:]):
                status, out, err = run(*args)
                self.assertEqual(status, 2, err)
                self.assertEqual(out, b"")
                self.assertTrue(err)


def report_names():
    if not report_names.cache:
        status, out, err = run("report", "--format=json")
        report_names.cache = [r[0] for r in json.loads(out)["rows"]]
    return report_names.cache


report_names.cache = []


def total_events(doc):
    return sum(r["events"] for r in doc.section("events").rows)


def diagnostics(doc):
    return {r["kind"] for r in doc.section("problems").rows}


if __name__ == "__main__":
    oracle.main()
