"""Memory snapshots of torch: the facts of real ones, what of them is whose, counted again by python's own reader; and pickles that are damaged, or would run something."""
import collections
import glob
import json
import os
import pickle
import shutil
import subprocess
import tempfile

import oracle
from oracle import Case, data, report, run

FOLDER = ("more", "memory_snapshot")


def snapshots():
    return sorted(glob.glob(data(*FOLDER) + "/*.pickle"))


def load(path):
    with open(path, "rb") as f:
        return pickle.load(f)


def expected(path):
    with open(path.replace(".pickle", ".expected.json"), encoding="utf-8") as f:
        return json.load(f)


def sql(path, text):
    code, out, err = run("sql", path, text, "--format=json")
    if code:
        raise AssertionError(err.decode())
    return json.loads(out)["rows"]


def found(path):
    """The findings of `advise`."""
    code, out, err = run("advise", path, "--format=json")
    if code:
        raise AssertionError(err.decode())
    return oracle.Table(json.loads(out)).rows


class Real(Case):
    def test_facts(self):
        """Each number of each expected.json."""
        self.assertTrue(snapshots())
        for path in snapshots():
            want = expected(path)
            with self.subTest(os.path.basename(path)):
                self.assertEqual(facts(path), {k: v for k, v in want.items() if k != "keys"})

    def test_rows(self):
        """Every entry of the trace, every block and segment, as python reads them."""
        for path in snapshots():
            doc = load(path)
            with self.subTest(os.path.basename(path)):
                sign = {"alloc": 1, "free_completed": -1}
                want = [[e["time_us"] * 1000, e["addr"], e["size"] * sign[e["action"]], e["action"]] for e in doc["device_traces"][0] if e["action"] in sign]
                self.assertEqual(sql(path, "SELECT time_ns, addr, bytes, cat FROM memory"), want)
                want = [[s["address"], s["total_size"], s["stream"], s["segment_type"], str(s["segment_pool_id"]), int(s["is_expandable"])] for s in doc["segments"]]
                self.assertEqual(sql(path, "SELECT addr, total_bytes, stream, type, pool, expandable FROM memory_segment"), want)
                want = [[b["address"], b["size"], b["requested_size"] if b["state"] != "inactive" else None, b["state"], i]
                        for i, s in enumerate(doc["segments"]) for b in s["blocks"]]
                self.assertEqual(sql(path, "SELECT addr, bytes, requested_bytes, state, segment FROM memory_block"), want)
                want = [[a["name"], a["time_us"] * 1000, a["stage"]] for a in doc.get("external_annotations", [])]
                self.assertEqual(sql(path, "SELECT name, time_ns, arg(args, 'Stage') FROM mark WHERE cat = 'external_annotation'"), want)

    def test_totals(self):
        """Counted back from the end."""
        for path in snapshots():
            doc = load(path)
            allocated, reserved = sum(s["active_size"] for s in doc["segments"]), sum(s["total_size"] for s in doc["segments"])
            want = []
            for e in reversed(doc["device_traces"][0]):
                if e["action"] in ("alloc", "free_completed"):
                    want.append([allocated, reserved])
                allocated += {"alloc": -1, "free_completed": 1}.get(e["action"], 0) * e["size"]
                reserved += {"segment_alloc": -1, "segment_free": 1, "segment_map": -1, "segment_unmap": 1}.get(e["action"], 0) * e["size"]
            self.assertEqual(sql(path, "SELECT total_allocated, total_reserved FROM memory"), want[::-1], path)

    def test_leaks(self):
        """Blocks that are active at the end, by line."""
        for path in snapshots():
            want = collections.Counter()
            for line, size in live(load(path)):
                want[line] += size
            got = collections.Counter()
            for row in report("leaks", path, "--group-by=line").rows:
                got[row.get("line")] += row["bytes"]
            self.assertEqual(got, want, path)
            for by in ("owner", "op", "module"):
                self.assertEqual(sum(r["bytes"] for r in report("leaks", path, f"--group-by={by}").rows), sum(want.values()))

    def test_owners(self):
        """Of the two that say it in words: what the backward pass of attention holds, and the KV cache."""
        rows = report("leaks", data(*FOLDER, "cs336_tiny.pickle"), "--group-by=op").rows
        self.assertEqual(rows[0]["operator"], "aten::bmm (BmmBackward0)")
        rows = report("leaks", data(*FOLDER, "kv_cache_no_alloc_entries.pickle")).rows
        self.assertEqual({r["since"] for r in rows}, {"before it"})
        self.assertTrue(any("cache_utils_V2.py(225): update_new" in (r["line"] or "") and r["blocks"] == 32 for r in rows))

    def test_peak(self):
        """What is held at the peak adds up to it, block by block."""
        for path in snapshots():
            table = report("memory", path)
            peak = table.section("peaks").rows[0]["peak_allocated_bytes"]
            for name in ("held", "held_by_op"):
                self.assertEqual(sum(r["bytes"] for r in table.section(name).rows), peak, path)
            doc = load(path)
            rounded = sum(r["bytes"] for r in table.section("held").rows if r["category"].startswith("rounded"))
            given = {b["address"]: b["size"] for s in doc["segments"] for b in s["blocks"] if b["state"] != "inactive"}
            open_ = {}
            for e in doc["device_traces"][0]:
                if e["action"] == "alloc":
                    open_[e["addr"]] = e["size"]
                elif e["action"] == "free_completed":
                    open_.pop(e["addr"], None)
            self.assertEqual(rounded, sum(given[a] - size for a, size in open_.items()), path)

    def test_blocks(self):
        """The life of each block, and who allocated it."""
        path = data(*FOLDER, "federated_llm.pickle")
        start, open_, want = None, {}, []
        for e in load(path)["device_traces"][0]:
            start = e["time_us"] if start is None else start
            if e["action"] == "alloc":
                open_[e["addr"]] = [user_line(e["frames"]) or "<unknown>", e["size"], (e["time_us"] - start) * 1000, None]
                want.append(open_[e["addr"]])
            elif e["action"] == "free_completed":
                open_.pop(e["addr"])[3] = (e["time_us"] - start) * 1000
        rows = report("memory", path).section("events").rows
        # times count from the first allocation or free
        first = min(r["allocation_time_ns"] for r in rows) - want[0][2]
        self.assertEqual([[r["operator"], r["size_bytes"], r["allocation_time_ns"] - first, None if r["release_time_ns"] is None else r["release_time_ns"] - first] for r in rows], want)

    def test_fragmentation_in_80_columns(self):
        """What tells where the free memory lies goes last."""
        table = run("report", "fragmentation", data(*FOLDER, "federated_llm.pickle"), "--width=80")[1].decode().split("in every row")[0]
        for title in ("Reserved", "split", "whole", "Largest"):
            self.assertIn(title, table)

    def test_fragmentation(self):
        """Free memory by where it lies, as torch counts inactive splits."""
        for path in snapshots():
            doc = load(path)
            split = whole = expandable = largest = 0
            for s in doc["segments"]:
                free = [b["size"] for b in s["blocks"] if b["state"] == "inactive"]
                largest = max([largest] + free)
                if s["is_expandable"]:
                    expandable += sum(free)
                elif len(s["blocks"]) > 1:
                    split += sum(free)
                else:
                    whole += sum(free)
            row, = [r for r in report("fragmentation", path).rows if r["pool"] == "all"]
            self.assertEqual((row["split_free_bytes"], row["whole_free_bytes"], row["expandable_free_bytes"], row["largest_free_bytes"]),
                             (split, whole, expandable, largest), path)
            self.assertEqual(row["reserved_bytes"], row["allocated_bytes"] + row["waiting_bytes"] + split + whole + expandable)

    def test_none_is_in_small_pieces(self):
        for path in snapshots():
            self.assertEqual(found(path), [], path)

    def test_kept_as_a_file(self):
        for path in snapshots()[:3]:
            kept = os.path.join(self.folder(), "a.opscope")
            self.assertEqual(run("import", path, "-o", kept)[0], 0)
            for name in ("memory", "leaks", "fragmentation"):
                a, b = report(name, kept).doc, report(name, path).doc
                self.assertEqual([t["rows"] for t in [a] + a["sections"]], [t["rows"] for t in [b] + b["sections"]])

    def test_others_say_it_in_one_line(self):
        path = data(*FOLDER, "federated_llm.pickle")
        for name in ("overview", "kernels", "steps", "ops", "operators", "memory-categories", "overlap", "gemm", "roofline", "ranks", "modules", "mfu"):
            code, _, err = run("report", name, path)
            self.assertEqual((code, err.count(b"\n")), (1, 1), (name, err))

    def folder(self):
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        return tmp


class Folder(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.path = os.path.join(self.tmp, "snapshot.pickle")

    def dump(self, doc, protocol=4):
        with open(self.path, "wb") as f:
            f.write(doc if isinstance(doc, bytes) else pickle.dumps(doc, protocol))
        return self.path


def frames(*places):
    return [{"filename": f, "line": n, "name": name} for f, n, name in places]


def block(size, state="active_allocated", **more):
    return {"size": size, "requested_size": size - 12, "state": state, **more}


def segment(address, blocks, device=0, kind="large", **more):
    active = [b for b in blocks if b["state"] != "inactive"]
    return {"device": device, "address": address, "total_size": sum(b["size"] for b in blocks), "allocated_size": sum(b["size"] for b in active if b["state"] == "active_allocated"),
            "active_size": sum(b["size"] for b in active), "requested_size": sum(b.get("requested_size", 0) for b in active), "stream": 0, "segment_type": kind, "segment_pool_id": (0, 0),
            "is_expandable": False, "frames": [], "blocks": blocks, **more}


def entry(action, addr, size, time_us, *places, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, "frames": frames(*places), **more}


TRAIN = ("/home/me/train.py", 10, "main")
NET = ("/home/me/net.py", 54, "forward")
LINEAR = ("/opt/site-packages/torch/nn/modules/linear.py", 125, "forward")
ADD = ("RegisterCUDA.cpp", 0, "at::_ops::add_Tensor::call(at::Tensor const&)")
EMPTY = ("??", 0, "at::_ops::empty_memory_format::call(c10::ArrayRef<long>)")


class Planted(Folder):
    """What each entry means, by small snapshots."""

    def test_a_loop_that_keeps(self):
        """Ten blocks of one line are allocated and eight kept; another line frees all."""
        trace, blocks = [], []
        for i in range(10):
            trace.append(entry("alloc", 1000 + i * 512, 500, 10 * i, EMPTY, ADD, LINEAR, NET, TRAIN))
            trace.append(entry("alloc", 90000, 700, 10 * i + 1, TRAIN))
            trace += [entry("free_requested", 90000, 700, 10 * i + 2), entry("free_completed", 90000, 700, 10 * i + 3)]
            if i in (3, 4):
                trace += [entry("free_requested", 1000 + i * 512, 500, 10 * i + 4), entry("free_completed", 1000 + i * 512, 500, 10 * i + 5)]
            blocks.append(block(512, "inactive" if i in (3, 4) else "active_allocated", address=1000 + i * 512))
        path = self.dump({"segments": [segment(1000, blocks, kind="small")], "device_traces": [trace]})
        row, = report("leaks", path).rows
        self.assertEqual((row["operator"], row["line"], row["module"]), ("aten::add_Tensor", "/home/me/net.py(54): forward", "net.py(54)"))
        self.assertEqual((row["since"], row["bytes"], row["blocks"], row["allocations"], row["first_ns"], row["last_ns"]), ("in the recording", 8 * 512, 8, 10, 0, 90_000))
        pools = {r["pool"]: r for r in report("fragmentation", path).rows}
        self.assertEqual((pools["small"]["split_free_bytes"], pools["all"]["free_blocks"], pools["all"]["largest_free_bytes"]), (1024, 2, 512))
        peak = report("memory", path).section("peaks").rows[0]
        self.assertEqual((peak["peak_allocated_bytes"], peak["peak_allocated_time_ns"]), (8 * 512 + 700, 91_000))
        self.assertEqual(peak["events"], 32)

    def test_rows_of_nothing_known(self):
        """A row without op, line and module says since when the memory is held, also where there is little room, and a note says why."""
        done = subprocess.run([oracle.OPSCOPE, "report", "leaks", data(*FOLDER, "cs336_forward_no_autocast.pickle"), "--notes=full"], env={**os.environ, "COLUMNS": "80"}, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        out = done.stdout
        row = next(line for line in out.decode().splitlines() if line.startswith("- "))
        self.assertRegex(row, r"^[- ]+before it +7\.6 GiB")
        self.assertIn("of these bytes is not known: rows without operator, line and module", " ".join(out.decode().split()))

    def test_waiting_for_a_stream(self):
        """A block that is freed and waits for another stream is active, and no leak."""
        blocks = [block(1024, "active_awaiting_free", address=4096), block(2048, address=5120)]
        path = self.dump({"segments": [segment(4096, blocks)], "device_traces": [[entry("alloc", 4096, 1000, 1, TRAIN), entry("free_requested", 4096, 1000, 2)]]})
        table = report("leaks", path)
        self.assertEqual([(r["bytes"], r["since"]) for r in table.rows], [(2048, "before it")])
        self.assertTrue(any("freed blocks that wait for another stream are not in the table: 1, of 1024 bytes" in n for n in table.notes), table.notes)
        row = report("fragmentation", path).rows[0]
        self.assertEqual((row["allocated_bytes"], row["waiting_bytes"]), (2048, 1024))

    def test_reserved_memory_comes_and_goes(self):
        trace = [entry("segment_map", 0x1000, 4096, 1), entry("alloc", 0x1000, 4000, 2, TRAIN), entry("segment_alloc", 0x9000, 8192, 3), entry("alloc", 0x9000, 8000, 4, TRAIN),
                 entry("free_completed", 0x9000, 8000, 5), entry("segment_free", 0x9000, 8192, 6), entry("free_completed", 0x1000, 4000, 7), entry("segment_unmap", 0x1000, 2048, 8),
                 entry("alloc", 0x1000, 100, 9)]
        path = self.dump({"segments": [segment(0x1000, [block(512, address=0x1000), block(1536, "inactive", address=0x1200)], is_expandable=True)], "device_traces": [trace]})
        self.assertEqual(sql(path, "SELECT total_reserved FROM memory"), [[4096], [12288], [12288], [4096], [2048]])
        self.assertEqual(sql(path, "SELECT total_allocated FROM memory"), [[4412], [12412], [4412], [412], [512]])
        self.assertEqual(report("fragmentation", path).rows[0]["expandable_free_bytes"], 1536)

    def test_small_pieces(self):
        """Of 3.1 GiB, 640 MiB are free in 40 pieces between blocks in use. A piece that is large, a whole segment, pages that can go back and the pool of a graph are none."""
        mib = 1 << 20

        def segments(n, *sizes, **more):
            return [segment(i << 32, [block(size * mib, state, address=(i << 32) + k) for k, (size, state) in enumerate(sizes)], **more) for i in range(n)]
        held, gone = "active_allocated", "inactive"
        row, = found(self.dump({"segments": segments(40, (64, held), (16, gone)), "device_traces": [[]]}))
        self.assertEqual((row["detector"], row["severity"], row["report"], row["events"], row["share_pct"]), ("memory-fragmentation", "info", "fragmentation", 40, 20.0))
        self.assertEqual(row["problem"], "0.62 of the 3.12 GiB that the allocator of GPU 0 held at the snapshot were free in 40 pieces between blocks in use, the largest of 16.0 MiB")
        for none in (segments(1, (64, held), (640, gone)), segments(40, (16, gone)), segments(40, (64, held), (16, gone), is_expandable=True), segments(40, (64, held), (16, gone), segment_pool_id=(1, 0)),
                     segments(400, (64, held), (6, gone))):
            self.assertEqual(found(self.dump({"segments": none, "device_traces": [[]]})), [])

    def test_out_of_memory(self):
        """It has no address in older ones, and the free memory of the device."""
        fail = {"action": "oom", "size": 1 << 40, "stream": 0, "device_free": 12345, "time_us": 5, "frames": frames(TRAIN)}
        path = self.dump({"segments": [segment(64, [block(512, address=64)])], "device_traces": [[entry("alloc", 64, 512, 1, TRAIN), fail]]})
        row = report("memory", path).section("peaks").rows[0]
        self.assertEqual((row["out_of_memory"], row["events"], row["peak_allocated_bytes"]), (1, 1, 512))

    def test_several_devices(self):
        traces = [[entry("alloc", 64, 512, 1, TRAIN)], [], [entry("alloc", 64, 256, 2, NET)]]
        path = self.dump({"segments": [segment(64, [block(512, address=64)]), segment(64, [block(512, address=64), block(64, address=576)], device=2)], "device_traces": traces})
        self.assertEqual([(r["device"], r["peak_allocated_bytes"]) for r in report("memory", path).section("peaks").rows], [("GPU0", 512), ("GPU2", 576)])
        self.assertEqual(sorted((r["device"], r["bytes"]) for r in report("leaks", path, "--device=2").rows), [("GPU2", 64), ("GPU2", 512)])

    def test_blocks_of_old_torch(self):
        """torch 1.13 to 2.0: history in place of frames, no address, no times; segments alone are a snapshot, too."""
        history = [{"addr": 64, "real_size": 400, "frames": frames(NET, TRAIN)}, {"addr": 64, "real_size": 300, "frames": frames(TRAIN)}]
        old = {"device": 0, "address": 4096, "total_size": 2048, "allocated_size": 512, "active_size": 1024, "stream": 0, "segment_type": "small",
               "blocks": [{"size": 512, "state": "active_allocated", "history": history}, {"size": 512, "state": "active_pending_free", "history": history},
                          {"size": 1024, "state": "inactive"}]}
        for doc in ([old], {"segments": [old], "device_traces": [[{k: v for k, v in entry("alloc", 4096, 400, 0, TRAIN).items() if k != "time_us"}]]}):
            for protocol in range(6):
                path = self.dump(doc, protocol)
                self.assertEqual(sql(path, "SELECT addr, bytes, requested_bytes FROM memory_block"), [[4096, 512, 400], [4608, 512, 400], [5120, 1024, None]])
                row, = report("leaks", path).rows
                self.assertEqual((row["line"], row["bytes"]), ("/home/me/net.py(54): forward" if isinstance(doc, list) else "/home/me/train.py(10): main", 512))
                self.assertEqual([r["requested_bytes"] for r in report("fragmentation", path).rows], [800, 800])

    def test_words_of_the_program(self):
        more = {"compile_context": "0/1", "user_metadata": "epoch 3"}
        path = self.dump({"segments": [segment(64, [block(512, address=64)])], "device_traces": [[entry("alloc", 64, 512, 1, TRAIN, **more), entry("free_requested", 8, 8, 2), {"action": "later_word", "time_us": 3}]],
                          "external_annotations": [{"name": "step", "stage": "START", "device": 0, "time_us": 1}], "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "a:1", "x": False, "n": -1}})
        self.assertEqual(sql(path, "SELECT arg(args, 'Compile context'), arg(args, 'User metadata'), arg(args, 'Stream') FROM memory"), [["0/1", "epoch 3", "0"]])
        self.assertEqual(sql(path, "SELECT name, arg(args, 'Stage'), arg(args, 'Bytes') FROM mark ORDER BY time_ns"), [["step", "START", None], ["free_requested", None, "8"], ["later_word", None, None]])
        self.assertEqual(json.loads(sql(path, "SELECT value FROM meta WHERE key = 'allocator_settings'")[0][0]), {"PYTORCH_CUDA_ALLOC_CONF": "a:1", "x": False, "n": -1})

    def test_a_trace_that_does_not_fit(self):
        """More is allocated than is held at the end: totals are unknown, not wrong."""
        path = self.dump({"segments": [segment(64, [block(512, address=64)])], "device_traces": [[entry("alloc", 64, 4096, 1, TRAIN)]]})
        self.assertEqual(sql(path, "SELECT total_allocated, total_reserved FROM memory"), [[None, None]])
        self.assertIn(b"totals-unknown", run("info", path)[1])


class Hostile(Folder):
    """A pickle may hold code: none is ever run, and no bytes crash or hang the reader."""
    STEP = 7 if oracle.SANITIZED else 1

    def setUp(self):
        super().setUp()
        trace = [entry("segment_alloc", 4096, 4096, 1, TRAIN), entry("alloc", 4096, 500, 2, EMPTY, ADD, NET, TRAIN), entry("free_completed", 4096, 500, 3), entry("alloc", 4096, 500, 4, NET)]
        self.doc = {"segments": [segment(4096, [block(512, address=4096, frames=frames(NET)), block(3584, "inactive", address=4608)])], "device_traces": [trace],
                    "allocator_settings": {"n": 1}, "external_annotations": [{"name": "x", "stage": "START", "device": 0, "time_us": 1}]}
        self.sound = pickle.dumps(self.doc, 4)

    def ask(self, content, *args):
        self.dump(content)
        code, out, err = run(*(args or ("report", "leaks")), self.path, "--format=json")
        self.assertIn(code, (0, 1), err)
        if code:  # one line that says why, behind the one that says what was left out
            self.assertLessEqual(err.count(b"\n"), 2, err)
            self.assertTrue(all(line.startswith(b"opscope: ") for line in err.splitlines()), err)
        return code, out, err

    def test_code_is_not_run(self):
        made = os.path.join(self.tmp, "made")

        class Evil:
            def __reduce__(self):
                return os.mkdir, (made,)
        for protocol in range(6):
            for doc in ({**self.doc, "allocator_settings": Evil()}, {**self.doc, "device_traces": [[Evil()]]}, {**self.doc, "segments": [Evil()]}, [*self.doc["segments"], Evil()]):
                _, out, err = self.ask(pickle.dumps(doc, protocol), "info", "--input-format=memory-snapshot")
                self.assertIn(b"nothing in a pickle is run", out + err)
                self.assertFalse(os.path.exists(made))

    def test_cut_anywhere(self):
        for n in range(0, len(self.sound), 3 * self.STEP):
            self.ask(self.sound[:n], "report", "leaks", "--input-format=memory-snapshot")
        self.ask(self.sound[:-5])
        self.assertEqual(report("leaks", self.path).rows[0]["bytes"], 512)
        self.assertIn(b"damaged-pickle", run("info", self.path)[1])
        self.assertEqual(sql(self.path, "SELECT DISTINCT total_allocated FROM memory"), [[None]])

    def test_changed_bytes(self):
        for i in oracle.part(range(0, len(self.sound), 9 * self.STEP), 3):
            for change in (0x00, 0xff, ord("("), ord("."), ord("R"), ord("t"), ord("u"), ord("h"), 0x94):
                self.ask(self.sound[:i] + bytes([change]) + self.sound[i + 1:], "report", "leaks", "--input-format=memory-snapshot")

    def test_odd_values(self):
        """Each value of each entry, block, segment in turn is what it never is."""
        odd = (None, True, -1, 1 << 62, -(1 << 63), (1 << 63) - 1, 1 << 70, 1.5, "x" * 5000, b"x", [], {}, [[]], {"a": 1}, [None] * 5, ["a", 1])
        places = [("segments",), ("device_traces",), ("external_annotations",), ("allocator_settings",), ("segments", 0), ("device_traces", 0), ("device_traces", 0, 1),
                  ("external_annotations", 0), ("segments", 0, "blocks", 0), ("device_traces", 0, 1, "frames", 0)]
        places += [("segments", 0, k) for k in self.doc["segments"][0]] + [("segments", 0, "blocks", 0, k) for k in self.doc["segments"][0]["blocks"][0]]
        places += [("device_traces", 0, 1, k) for k in self.doc["device_traces"][0][1]] + [("device_traces", 0, 1, "frames", 0, k) for k in ("filename", "line", "name")]
        for place in oracle.part(places[::self.STEP], 2):
            for value in odd[::3 if oracle.SANITIZED else 1]:
                doc = pickle.loads(self.sound)
                at = doc
                for k in place[:-1]:
                    at = at[k]
                at[place[-1]] = value
                for name in ("leaks", "memory", "fragmentation") if value in (1 << 62, -1) else ("leaks",):
                    self.ask(pickle.dumps(doc, 2), "report", name, "--input-format=memory-snapshot")

    def test_a_snapshot_in_itself(self):
        doc = pickle.loads(self.sound)
        doc["segments"].append(doc)
        doc["device_traces"].append(doc["device_traces"])
        doc["device_traces"][0].append(doc["device_traces"][0][1])
        doc["device_traces"][0][1]["frames"].append(doc)
        doc["segments"][0]["blocks"].append(doc["segments"][0])
        doc["allocator_settings"]["x"] = doc["allocator_settings"]
        self.assertEqual(self.ask(pickle.dumps(doc, 4))[0], 0)

    def test_repeated(self):
        """What is small in the file and endless for who walks it: one trace of each device, one list of blocks of each segment, one stack of each entry, one frame in each stack."""
        trace = [self.doc["device_traces"][0][1]] * 100_000
        blocks = [self.doc["segments"][0]["blocks"][0]] * 100_000
        stack = frames(("a" * 100_000, 1, "b;" * 100_000)) * 1_000_000
        start = oracle.children_cpu_s()
        for doc in ({**self.doc, "device_traces": [trace] * 100_000}, {**self.doc, "segments": [segment(0, blocks)] * 100_000},
                    {**self.doc, "device_traces": [[entry("alloc", i, 1, i) | {"frames": stack} for i in range(10_000)]]},
                    {**self.doc, "device_traces": [[entry("alloc", i, 1, i) | {"frames": stack[:1000] * 2 + [i]} for i in range(1_000)]]}):
            self.ask(pickle.dumps(doc, 4), "info")
        self.assertLess(oracle.children_cpu_s() - start, 60 if oracle.SANITIZED else 10)

    def test_deep(self):
        for tail in (b"(" * 100_000, b"]" * 100_000 + b"a" * 99_999 + b"."):
            self.ask(b"\x80\x04}(X\x08\x00\x00\x00segments" + tail, "info", "--input-format=memory-snapshot")

    def test_many_entries(self):
        """Half a million, with stacks of forty frames that are shared: some seconds, and not much more than the file."""
        stack = frames(*[(f"/home/me/file{i}.py", i + 1, "f") for i in range(40)])
        trace = []
        for i in range(100_000):
            trace.append({"action": "alloc", "addr": 512 * i, "size": 512, "stream": 0, "time_us": i, "frames": stack[i % 7:]})
        self.dump({"segments": [], "device_traces": [trace]})
        start = oracle.children_cpu_s()
        self.assertEqual(sum(r["blocks"] for r in report("leaks", self.path).rows), 100_000)
        self.assertLess(oracle.children_cpu_s() - start, 30 if oracle.SANITIZED else 5)


USER_CODE_NOT = ("site-packages/", "site-packages\\", "dist-packages/", "/lib/python3", "<built-in", "<frozen", "\\python\\cpython-")
NATIVE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".o", ".S", ".so", "??")


def user_line(frames):
    for f in frames:
        text = f"{f['filename']}({f['line']}): {f['name']}"
        if f["line"] > 0 and f["filename"] and not f["filename"].endswith(NATIVE) and not text.startswith("<") and not any(x in text for x in USER_CODE_NOT):
            return text
    return None


def live(doc):
    """(line, size) of each block that is allocated at the end: by its allocation in the trace, else by its own stack."""
    last = {}
    for e in doc["device_traces"][0]:
        if e["action"] == "alloc":
            last[e["addr"]] = e
        elif e["action"] == "free_completed":
            last.pop(e["addr"], None)
    for s in doc["segments"]:
        for b in s["blocks"]:
            if b["state"] == "active_allocated":
                yield user_line(last.get(b["address"], b).get("frames", [])), b["size"]


def facts(path):
    table = report("fragmentation", path)
    devices = {}
    for row in table.rows:
        if row["pool"] != "all":
            continue
        device = row["device"][3:]
        states = [r for r in table.section("states").rows if r["device"] == row["device"]]
        actions = dict(sql(path, "SELECT cat, sum(events) FROM count WHERE phase = 'i' AND cat <> 'external_annotation' GROUP BY cat"))
        bytes_ = [b for b, in sql(path, f"SELECT bytes FROM memory WHERE name = '[memory]' AND device_id = {device}")]
        times = [t for t, in sql(path, "SELECT time_ns FROM memory UNION ALL SELECT time_ns FROM mark WHERE cat <> 'external_annotation'")]
        stacks = [s for s, in sql(path, "SELECT DISTINCT arg(args, 'Call stack') FROM memory UNION SELECT DISTINCT arg(args, 'Call stack') FROM mark")]
        curve = report("memory", path).section("peaks").rows
        peak, = [r["peak_allocated_bytes"] for r in curve if r["device"] == row["device"]]
        devices[device] = {
            "segments": row["segments"], "total_size": row["reserved_bytes"], "allocated_size": row["allocated_bytes"],
            "active_size": row["allocated_bytes"] + row["waiting_bytes"], "requested_size": row["requested_bytes"],
            "blocks": {r["state"]: r["blocks"] for r in states}, "block_bytes": {r["state"]: r["bytes"] for r in states},
            "trace_entries": sum(actions.values()), "trace_actions": actions, "trace_net_bytes": sum(bytes_),
            "peak_above_trace_start": max([0] + running(bytes_)),
            "peak_allocated_if_last_equals_allocated_size": max(peak, row["allocated_bytes"] - sum(bytes_)),
            "trace_span_us": (max(times) - min(times)) // 1000, "max_frames": max(len(s.split(";")) if s else 0 for s in stacks),
        }
    return {"segments": sum(d["segments"] for d in devices.values()), "devices": devices}


def running(values):
    out, total = [], 0
    for v in values:
        total += v
        out.append(total)
    return out


if __name__ == "__main__":
    oracle.main()
