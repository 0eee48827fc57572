"""Dumps of torch's flight recorder: where a job hangs and who is to blame, of real hangs whose faults are known, of planted ones; and pickles that are no plain data."""
import ast
import glob
import json
import os
import pickle
import re
import shutil
import tempfile

import oracle
from oracle import Case, data, info, report, run

FOLDER = ("recorders", "nccl_fr")
REAL = "lock_gil_2nd", "gpu_error_1st"


def ranks(text):
    """"0-2, 5" -> [0, 1, 2, 5]."""
    out = []
    for piece in (text or "").split(", "):
        first, _, last = piece.partition("-")
        out += range(int(first), int(last or first) + 1) if piece else []
    return out


def load(path):
    with open(path, "rb") as f:
        return pickle.load(f)


def blamed(notes):
    return sorted(r for n in notes for m in re.findall(r"ranks? ([0-9, -]+) (?:did not come|do(?:es)? not complete)", n) for r in ranks(m))


class Real(Case):
    def test_against_the_reference(self):
        """NVIDIA's analyser lists groups in which ranks are missing; all of these are missing here, too."""
        for name in REAL:
            rows = report("stragglers", data(*FOLDER, name)).rows
            with open(data(*FOLDER, name, "reference.txt"), encoding="utf-8") as f:
                for line in f.read().splitlines()[1:]:
                    _, about, op, size, dtype, missing = (x.strip() for x in line.split("|"))
                    row, = [r for r in rows if ranks(r["missing"]) == [int(x) for x in missing.split(",")] and r["group"].startswith(about.split(",")[0])
                            and r["op"] == op.replace("nccl:", "")]
                    self.assertEqual(row["sizes"], f"[[{size.replace('x', ',')}]] {dtype}")

    def test_against_the_faults(self):
        for name in REAL:
            with open(data(*FOLDER, name, "fault_injection.log"), encoding="utf-8") as f:
                fault = ast.literal_eval(re.search(r"Fault ranks: (\[.*\])", f.read()).group(1))
            self.assertEqual(blamed(report("hangs", data(*FOLDER, name)).notes), fault, name)

    def test_where_the_host_stopped(self):
        table = report("stragglers", data(*FOLDER, "lock_gil_2nd"))
        got = [(r["op"], r["seq"], r["group"], r["missing"], r["waiting"], r["state"]) for r in table.rows[:2]]
        self.assertEqual(sorted(got), [("all_to_all", 20947, "EXPERT_MODEL_PARALLEL_GROUP (ranks 12-15)", "15", "12-14", "scheduled"),
                                       ("all_to_all", 20947, "EXPERT_MODEL_PARALLEL_GROUP (ranks 8-11)", "10", "8, 9, 11", "scheduled")])
        for r in table.rows[2:]:  # stages of the pipeline that wait for these
            self.assertRegex(r["op"], "^(send|recv) ")
            self.assertRegex(r["why"], "hangs before|did not come")

    def test_where_the_gpu_is_stuck(self):
        rows = report("hangs", data(*FOLDER, "gpu_error_1st")).rows
        stuck = {r["waiting"]: r["done"] for r in rows if "stuck" in r["why"]}
        self.assertEqual(stuck, {"12": "13", "14": "15"})
        row, = [r for r in rows if r["missing"]]
        self.assertEqual((row["op"], row["seq"], row["missing"], row["waiting"], row["elsewhere"]), ("all_to_all", 20537, "12", "13, 15", "14"))

    def test_every_waiting_rank_stands_once(self):
        for name in REAL:
            waiting = [r for row in report("hangs", data(*FOLDER, name)).rows for r in ranks(row["waiting"])]
            dumps = [load(p) for p in glob.glob(data(*FOLDER, name) + "/_dump_*")]
            self.assertEqual(len(waiting), len(set(waiting)))
            self.assertEqual(len(waiting), sum(bool(d["entries"]) for d in dumps))

    def test_first_look(self):
        """The first lines say where and who."""
        code, out, err = run(data(*FOLDER, "lock_gil_2nd"))
        self.assertEqual(code, 0, err)
        top = "\n".join(out.decode().splitlines()[:6])
        self.assertIn("all_to_all", top)
        self.assertIn("rank 10 did not come", top)
        self.assertIn("rank 15 did not come", top)
        self.assertIn(b"ranks 10, 15 did not come", out)

    def test_info(self):
        code, out, err = run("info", data(*FOLDER, "lock_gil_2nd", "_dump_12"))
        self.assertEqual(code, 0, err)
        self.assertIn("flight-recorder", out.decode())
        code, out, err = run("info", data(*FOLDER, "lock_gil_2nd"))
        self.assertEqual(code, 0, err)
        self.assertIn("_dump_12", out.decode())

    def test_what_dumps_do_not_tell(self):
        """No times, so no steps and no findings: what leads to the answer is said."""
        for asked in (("report", "ranks"), ("report", "collectives"), ("report", "overlap"), ("advise",)):
            code, _, err = run(*asked, data(*FOLDER, "lock_gil_2nd"))
            self.assertEqual((code, err.count(b"\n")), (1, 1), err)
            self.assertIn(b"report hangs", err)

    def test_one_dump(self):
        row, = report("hangs", data(*FOLDER, "lock_gil_2nd", "_dump_12")).rows
        self.assertEqual((row["waiting"], row["no_dump"], row["why"]), ("12", "13-15", "unknown: no dump of ranks 13-15"))
        self.assertEqual(report("hangs", data(*FOLDER, "lock_gil_2nd", "_dump_10")).rows, [])


class Planted(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def dump(self, rank, groups, calls, status=None, name="nccl_trace_rank_%d", write=pickle.dumps, **more):
        """groups: {name: (description, ranks)}; calls: [(group, op, seq, state)] of what the rank had recorded, in order."""
        entries = [{"record_id": i, "pg_id": list(groups).index(g), "process_group": (g, groups[g][0]), "collective_seq_id": seq, "p2p_seq_id": seq, "op_id": seq,
                    "profiling_name": "nccl:" + op, "time_created_ns": 1_700_000_000_000_000_000 + i * 1000, "input_sizes": [[4, 5]], "input_dtypes": ["Float"],
                    "output_sizes": [[4, 5]], "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": None, "time_discovered_completed_ns": None,
                    "retired": False, "timeout_ms": 600000, "is_p2p": op.startswith(("send", "recv"))} for i, (g, op, seq, state) in enumerate(calls)]
        doc = {"version": "2.9", "nccl_version": "2.27.3", "pg_config": {g: {"name": g, "desc": d, "ranks": str(r)} for g, (d, r) in groups.items()},
               "pg_status": {str(list(groups).index(g)): {"last_enqueued_collective": e, "last_started_collective": -1, "last_completed_collective": c}
                             for g, (e, c) in (status or {}).items()}, "entries": entries, **more}
        with open(os.path.join(self.tmp, name % rank), "wb") as f:
            f.write(write(doc))

    def job(self, ranks_, calls, status, **more):
        for r in ranks_:
            self.dump(r, {"0": ("default_pg", [0, 1, 2]), str(r + 1): ("own", [r])}, calls(r), {"0": status(r)}, **more)
        return report("hangs", self.tmp)

    def test_all_protocols_and_json(self):
        """The same dump in each form has the same answer."""
        want = report("hangs", data(*FOLDER, "gpu_error_1st")).rows
        forms = [(f"p{p}", lambda d, p=p: pickle.dumps(d, p)) for p in range(6)] + [("json", lambda d: json.dumps(d).encode())]
        for form, write in forms:
            folder = os.path.join(self.tmp, form)
            os.mkdir(folder)
            for path in glob.glob(data(*FOLDER, "gpu_error_1st") + "/_dump_*"):
                with open(os.path.join(folder, os.path.basename(path) + (".json" if form == "json" else "")), "wb") as f:
                    f.write(write(load(path)))
            with self.subTest(form=form):
                self.assertEqual(report("hangs", folder).rows, want)

    def test_rank_is_not_the_file_name(self):
        """Its groups tell the rank: names may be of the machines' ordinals."""
        for i, path in enumerate(sorted(glob.glob(data(*FOLDER, "lock_gil_2nd") + "/_dump_*"))):
            shutil.copy(path, os.path.join(self.tmp, f"host_{99 - i}"))
        table = report("hangs", self.tmp)
        self.assertEqual(blamed(table.notes), [10, 15])

    def test_missing_and_unreadable_dumps(self):
        for path in glob.glob(data(*FOLDER, "lock_gil_2nd") + "/_dump_*"):
            if not path.endswith(("_3", "_10")):
                shutil.copy(path, self.tmp)
        open(os.path.join(self.tmp, "_dump_10"), "wb").close()
        table = report("hangs", self.tmp)
        self.assertIn("14 of 16 ranks have a dump that can be read; missing: 3, 10.", "\n".join(table.notes))
        self.assertEqual(blamed(table.notes), [15])
        row, = [r for r in table.rows if r["no_dump"] == "10" and r["op"] == "all_to_all"]
        self.assertEqual(row["why"], "unknown: no dump of rank 10")

    def test_started(self):
        table = self.job(range(3), lambda r: [("0", "all_reduce", 5, ("started", "scheduled", "started")[r])], lambda r: (5, 4))
        row, = table.rows
        self.assertEqual((row["state"], row["why"], row["waiting"], row["missing"]), ("started on 2 of 3", "unknown: all ranks came", "0-2", None))

    def test_another_collective(self):
        """One rank took another branch: it calls another collective with the same number."""
        row, = self.job(range(3), lambda r: [("0", "broadcast" if r == 2 else "all_reduce", 5, "scheduled")], lambda r: (5, 4)).rows
        self.assertEqual(row["why"], "rank 2 called broadcast")

    def test_circle(self):
        """Two groups, called in two orders: no one is idle, and no one is to blame alone."""
        groups = {"1": ("a", [0, 1]), "2": ("b", [0, 1])}
        self.dump(0, {**groups, "3": ("own", [0])}, [("1", "all_reduce", 7, "scheduled")], {"1": (7, 6), "2": (3, 3), "3": (-1, -1)})
        self.dump(1, {**groups, "4": ("own", [1])}, [("2", "all_reduce", 4, "scheduled")], {"1": (6, 6), "2": (4, 3), "4": (-1, -1)})
        table = report("hangs", self.tmp)
        self.assertEqual([(r["waiting"], r["missing"], r["why"]) for r in table.rows], [("0", "1", "rank 1 waits itself"), ("1", "0", "rank 0 waits itself")])
        self.assertTrue(any("circle" in n for n in table.notes))
        self.assertEqual(blamed(table.notes), [])

    def test_a_receive_without_a_send(self):
        groups = {"0": ("pp", [0, 1])}
        self.dump(0, {**groups, "1": ("own", [0])}, [("0", "recv 0<-1", 9, "scheduled")], {"0": (9, 8), "1": (-1, -1)})
        self.dump(1, {**groups, "2": ("own", [1])}, [], {"0": (30, 30), "2": (-1, -1)})
        row, = report("hangs", self.tmp).rows
        self.assertEqual((row["op"], row["missing"], row["waiting"], row["why"]), ("recv 0<-1", "1", "0", "rank 1 did not come"))

    def test_completed_calls_are_not_pending(self):
        """torch keeps completed calls, too; without pg_status these tell how far a group has come."""
        done = [("0", "all_reduce", s, "completed") for s in range(1, 5)]
        table = self.job(range(3), lambda r: done + ([] if r == 1 else [("0", "all_reduce", 5, "scheduled")]), lambda r: None if r > 5 else (5 - (r == 1), 4))
        self.assertEqual(blamed(table.notes), [1])
        for r in range(3):
            self.dump(r, {"0": ("default_pg", [0, 1, 2]), str(r + 1): ("own", [r])}, done + ([] if r == 1 else [("0", "all_reduce", 5, "scheduled")]))
        self.assertEqual(blamed(report("hangs", self.tmp).notes), [1])

    def test_nothing_pending(self):
        table = self.job(range(3), lambda r: [], lambda r: (5, 5))
        self.assertEqual(table.rows, [])
        self.assertTrue(any("no call is pending in 3 dumps" in n for n in table.notes), table.notes)

    def test_no_dump(self):
        code, _, err = run("report", "hangs", data("multirank", "megatron_a100_tp8"))
        self.assertEqual(code, 1)
        self.assertIn(b"no dump of a flight recorder", err)


class Hostile(Case):
    """A pickle may hold code: none is ever run, and no bytes crash or hang the reader."""
    STEP = 7 if oracle.SANITIZED else 1  # fuzz/ask does the same under the sanitizers, without starting the program each time

    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.path = os.path.join(self.tmp, "_dump_0")
        with open(data(*FOLDER, "lock_gil_2nd", "_dump_12"), "rb") as f:
            self.sound = f.read()

    def ask(self, content, *args):
        with open(self.path, "wb") as f:
            f.write(content)
        code, out, err = run(*(args or ("report", "hangs")), self.path, "--format=json")
        self.assertIn(code, (0, 1), err)
        if code:
            self.assertEqual(err.count(b"\n"), 1, err)
        return code, out, err

    def test_code_is_not_run(self):
        made = os.path.join(self.tmp, "made")

        class Evil:
            def __reduce__(self):
                return os.mkdir, (made,)
        for protocol in range(6):
            for doc in ({"version": "2.9", "pg_config": Evil(), "entries": []}, {"version": "2.9", "pg_config": {}, "entries": [Evil()]}):
                self.ask(pickle.dumps(doc, protocol))
                _, out, err = self.ask(pickle.dumps(doc, protocol), "info")
                self.assertIn(b"nothing in a pickle is run", out + err)
                self.assertFalse(os.path.exists(made))

    def test_cut_anywhere(self):
        for n in [*range(0, 200, self.STEP), *range(200, len(self.sound), 197 * self.STEP)]:
            self.ask(self.sound[:n])
        code, out, _ = self.ask(self.sound[:-300], "info")
        self.assertIn(b"damaged-pickle", out)
        self.assertEqual(len(report("hangs", self.path).rows), 1)

    def test_changed_bytes(self):
        for i in range(0, len(self.sound), 139 * self.STEP):
            for change in (0x00, 0xff, ord("("), ord("."), ord("R"), ord("t"), ord("u"), ord("h"), ord("q")):
                self.ask(self.sound[:i] + bytes([change]) + self.sound[i + 1:])

    def test_odd_pickles(self):
        start = b"\x80\x02}q\x00(X\x07\x00\x00\x00versionX\x09\x00\x00\x00pg_config"
        for tail in (b"", b".", b"u.", b"h\x00u.", b"h\x00h\x00u.", b"j\xff\xff\xff\xffu.", b"r\xff\xff\xff\xffu.", b"p99999999999\nu.", b"g0\nu.", b"2" * 5000 + b"u.", b"(" * 100000 + b".",
                     b"]" * 100000 + b"a" * 99999 + b"u.", b"0" * 50, b"1" * 50, b"\x8a\xff", b"\x8b\xff\xff\xff\x7f", b"\x8d" + b"\xff" * 8, b"\x8e" + b"\x7f" * 8, b"X\xff\xff\xff\xff", b"t" * 20,
                     b"\x85\x86\x87" * 9, b"I01\nI00\nu.", b"L12345678901234567890123456789L\nNu.", b"S'abc\n", b"Sabc'\n", b"(lp1\n(dp2\n", b"\x95" + b"\xff" * 8 + b"Nu.",
                     b"]q\x01h\x01ah\x01ah\x01aX\x01\x00\x00\x00xu.", b"]q\x01" + b"(" + b"h\x01" * 3000 + b"eXu."):
            self.ask(start + tail)
            self.ask(start + tail, "info")

    def test_doubling(self):
        """Each list holds the one before twice: 2^200 values, were they followed."""
        body = b"]q\x00" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(200))
        self.ask(b"\x80\x02}(X\x07\x00\x00\x00versionX\x03\x00\x00\x002.9X\x09\x00\x00\x00pg_config}X\x07\x00\x00\x00entries" + body + b"u.")

    def test_copies_of_long_lists(self):
        """A long list, referred to again and again: a copy of each would take more than there is."""
        long = b"](" + b"K\x01" * 100_000 + b"eq\x01"
        start = oracle.children_cpu_s()
        self.ask(b"\x80\x02}(X\x07\x00\x00\x00versionX\x03\x00\x00\x002.9X\x09\x00\x00\x00pg_config}X\x07\x00\x00\x00entries](" + long + b"h\x01" * 100_000 + b"eu.")
        self.assertLess(oracle.children_cpu_s() - start, 10)

    def test_shared_lists_are_walked_once_in_a_while(self):
        """What many entries share is small in the file, and not small to whoever looks at it from each of them."""
        wide, ranks = [[1] * 20_000], [None] * 200_000
        entries = [{"profiling_name": "nccl:all_reduce", "state": "scheduled", "input_sizes": wide, "output_sizes": wide} for _ in range(2_000)]
        groups = {str(i): {"name": str(i), "ranks": ranks} for i in range(20_000)}
        start = oracle.children_cpu_s()
        for doc in ({"version": "2.9", "pg_config": {}, "entries": entries}, {"version": "2.9", "pg_config": groups, "entries": []}):
            _, out, err = self.ask(pickle.dumps(doc, 2), "info")
            self.assertIn(b"it holds too many values", out + err)
        self.assertLess(oracle.children_cpu_s() - start, 10)

    def test_many_calls_of_a_large_group(self):
        """The group's members are written once, not for each call."""
        n = 4_000
        entries = [{"profiling_name": "nccl:all_reduce", "state": "scheduled", "process_group": ["0", "dp"], "collective_seq_id": i + 1, "record_id": i, "time_created_ns": i + 1} for i in range(n)]
        doc = {"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "dp", "ranks": str(list(range(n)))}}, "entries": entries}
        start = oracle.children_cpu_s()
        self.assertEqual(self.ask(pickle.dumps(doc, 2))[0], 0)
        self.assertLess(oracle.children_cpu_s() - start, 5)


if __name__ == "__main__":
    oracle.main()
