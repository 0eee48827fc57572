"""`export chrome` of a job: all ranks in one Chrome trace, against the exports of the ranks by themselves and against planted truths."""
import collections
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

import jobs
import oracle
from oracle import OPSCOPE, Case, data, report, steps_report

TP8 = ("multirank", "megatron_a100_tp8")
IDS = ("correlation", "External id", "Sequence number", "Python id")


def real(events):
    """Without names, and without the arrows that only the file of all ranks has."""
    return [e for e in events if e["ph"] != "M" and e.get("cat") != "collective"]


class Merged(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.folder = os.path.join(self.tmp, "job")
        os.mkdir(self.folder)

    def export(self, source, *args, name="all.json"):
        path = os.path.join(self.tmp, name)
        code, out, err = oracle.run("export", "chrome", source, *args, "-o", path)
        self.assertEqual((code, out), (0, b""), err)
        self.said = err.decode()
        with (gzip.open if name.endswith(".gz") else open)(path, "rt") as f:
            return json.load(f)

    def by_rank(self, doc):
        """Events of each rank."""
        rank = {pid: r["rank"] for r in doc["opscope_job"]["ranks"] for pid in r["pids"]}
        out = collections.defaultdict(list)
        for e in doc["traceEvents"]:
            out[rank[e["pid"]]].append(e)
        return out

    def check_ids(self, doc):
        """Threads and ids are of one rank each; numbers, as Perfetto wants them."""
        ranks, owner = self.by_rank(doc), {}
        for rank, events in ranks.items():
            for e in events:
                self.assertIs(type(e["pid"]), int)
                self.assertIs(type(e["tid"]), int)
                if e["ph"] == "M" and e["name"].startswith("process_"):
                    continue
                keys = [("thread", e["tid"], e["pid"])] + [("id", e["args"][k]) for k in IDS if e.get("args", {}).get(k, 0) not in (0, -1)]
                if e["ph"] in "stf" and e["cat"] != "collective":
                    keys.append(("id", e["id"]))
                for key in keys:
                    self.assertEqual(owner.setdefault(key[:2], (rank, key[2:])), (rank, key[2:]), (key, e))

    def check_names(self, doc):
        named = {(e["name"], e["pid"]): e["args"] for e in doc["traceEvents"] if e["ph"] == "M" and e["name"].startswith("process_")}
        order = []
        for r in doc["opscope_job"]["ranks"]:
            for pid in r["pids"]:
                self.assertTrue(named["process_name", pid]["name"].startswith(f"rank {r['rank']}: "), named["process_name", pid])
                order.append(named["process_sort_index", pid]["sort_index"])
        self.assertEqual(order, sorted(order))
        threads = {(e["pid"], e["tid"]) for e in doc["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertLessEqual({(e["pid"], e["tid"]) for e in real(doc["traceEvents"])}, threads)

    def test_real_ranks(self):
        """Each rank has the events of its own export, and nothing else differs than numbers and times."""
        doc = self.export(data(*TP8))
        ranks = self.by_rank(doc)
        self.assertEqual([r["rank"] for r in doc["opscope_job"]["ranks"]], list(range(8)))
        self.check_ids(doc)
        self.check_names(doc)
        for rank in range(8):
            alone = real(self.export(data(*TP8), f"--rank={rank}", name="one.json")["traceEvents"])
            merged = real(ranks[rank])
            self.assertEqual(len(merged), len(alone))
            for a, b in zip(alone, merged):
                self.assertEqual({k: a.get(k) for k in ("ph", "cat", "name")}, {k: b.get(k) for k in ("ph", "cat", "name")})
                self.assertEqual(list(a.get("args", {})), list(b.get("args", {})))
                other = {k for k, v in a.get("args", {}).items() if v != b["args"][k]}
                self.assertLessEqual(other, {*IDS, "Python parent id", "device", "Device Id"}, a)
            shift = {round((b["ts"] - a["ts"]) * 1000) for a, b in zip(alone, merged)}
            self.assertLessEqual(max(shift) - min(shift), 1)
        for e in doc["traceEvents"]:
            if e["ph"] == "X" and e.get("cat") == "kernel":
                self.assertIn(e["args"]["device"], range(8))
        self.assertEqual(sorted(d["id"] for d in doc["deviceProperties"]), list(range(8)))

    def test_arrows(self):
        """One chain of arrows for each of the 84 all-reduces, from who came first to who came last, each end at the start of the kernel."""
        doc = self.export(data(*TP8))
        starts = collections.defaultdict(set)
        for e in doc["traceEvents"]:
            if e.get("cat") == "kernel":
                starts[e["pid"], e["tid"]].add(e["ts"])
        chains = collections.defaultdict(list)
        for e in doc["traceEvents"]:
            if e.get("cat") == "collective":
                chains[e["id"]].append(e)
                self.assertIn(e["ts"], starts[e["pid"], e["tid"]])
        self.assertEqual(len(chains), 84)
        rank = {pid: r["rank"] for r in doc["opscope_job"]["ranks"] for pid in r["pids"]}
        last = collections.Counter()
        for chain in chains.values():
            chain.sort(key=lambda e: e["ts"])
            self.assertEqual("".join(e["ph"] for e in sorted(chain, key=lambda e: (e["ts"], rank[e["pid"]]))), "stttttt" + "f")
            self.assertEqual({e["name"] for e in chain}, {"all_reduce"})
            last[min(rank[e["pid"]] for e in chain if e["ts"] == chain[-1]["ts"])] += 1
        self.assertEqual(dict(last), {r["rank"]: r["last_count"] for r in steps_report("ranks", data(*TP8)).rows if r["last_count"]})

    def test_opens_again_as_the_job(self):
        """The file is a job of its GPUs: what each rank computed and waited is what the folder says."""
        self.export(data(*TP8))
        whole = report("ranks", data(*TP8)).by("rank")
        again = report("ranks", os.path.join(self.tmp, "all.json")).by("rank")
        self.assertEqual(sorted(again), sorted(whole))
        instances = report("collectives", os.path.join(self.tmp, "all.json"), "--group-by=instance").rows
        for row, want in zip(instances, report("collectives", data(*TP8), "--group-by=instance").rows):
            for c in ("kind", "ranks", "min_ns", "wait_ns", "transfer_ns", "start_skew_ns", "end_skew_ns", "last_rank"):
                self.assertEqual(row[c], want[c], c)
        for r, row in again.items():
            self.assertEqual(row["last_count"], whole[r]["last_count"])
            self.assertEqual(row["waited_for_ns"], whole[r]["waited_for_ns"])

    def test_clocks(self):
        """Offsets and drifts are taken out: ends of a collective coincide, and the file says by how much clocks were moved."""
        job = jobs.Job(tp=4, dp=1, steps=30, compute=100_000_000, late=lambda r, s, p: (r * 7919 + s * 104729 + p * 31) % 200_000)
        clocks = {0: (0, 0.0), 1: (30_000_000, 20e-6), 2: (-45_000_000, -20e-6), 3: (1_000_000, 5e-6)}
        job.write(self.folder, clocks)
        doc = self.export(self.folder)
        self.check_ids(doc)
        ends = collections.defaultdict(list)
        for rank, events in self.by_rank(doc).items():
            for e in events:
                if e.get("cat") == "kernel" and "Seq" in e["args"]:
                    ends[e["args"]["Process Group Name"], e["args"]["Process Group Ranks"], e["args"]["Seq"]].append(e["ts"] + e["dur"])
        self.assertEqual({len(v) for (_, ranks, _), v in ends.items() if "," in ranks}, {4})
        for v in ends.values():
            self.assertLess(max(v) - min(v), 50)
        stated = {r["rank"]: r for r in doc["opscope_job"]["ranks"]}
        for row in steps_report("ranks", self.folder).rows:
            mine = stated[row["rank"]]
            self.assertEqual((mine["clock"], mine["offset_ns"], mine.get("residual_ns")), (row["clock"], row["offset_ns"], row["residual_ns"]))
            self.assertAlmostEqual(mine["drift_ppm"], row["drift_ppm"], places=5)

    def test_epochs(self):
        """Recordings that count from different moments stand on one clock."""
        job = jobs.Job(tp=2, dp=1, steps=3)
        base = 1_700_000_000_000_000_000
        for r in range(2):
            trace = job.trace(r, -5_000_000 * r)
            trace["baseTimeNanoseconds"] = base + 5_000_000 * r
            with open(os.path.join(self.folder, f"{r}.json"), "w") as f:
                f.write(json.dumps(trace))
        doc = self.export(self.folder)
        self.assertEqual(doc["baseTimeNanoseconds"], base)
        ts = {r: [e["ts"] for e in events if e.get("cat") == "kernel"] for r, events in self.by_rank(doc).items()}
        for a, b in zip(*ts.values()):
            self.assertAlmostEqual(a, b, delta=1)

    def test_chosen_ranks(self):
        jobs.Job(tp=4, dp=2, steps=2).write(self.folder)
        doc = self.export(self.folder, "--rank=1,4..6", name="some.json.gz")
        self.assertEqual([r["rank"] for r in doc["opscope_job"]["ranks"]], [1, 4, 5, 6])
        self.assertEqual(doc["opscope_job"]["world_size"], 8)
        self.assertIn("4 of 8 ranks are here and written", self.said)
        again = report("ranks", os.path.join(self.tmp, "some.json.gz"))
        self.assertEqual([r["rank"] for r in again.rows], [1, 4, 5, 6])
        self.assertIn("4 of 8 ranks are here; missing: 0, 2, 3, 7.", "\n".join(again.notes))
        self.assertEqual([r["rank"] for r in report("ranks", self.folder, "--rank=2,7").rows], [2, 7])
        for bad in ("1,", "3..1", "1,x", "..", "-1..2"):
            code, out, err = oracle.run("report", "ranks", self.folder, "--rank=" + bad)
            self.assertEqual((code, out, err.count(b"\n")), (2, b"", 1), bad)

    def test_steps(self):
        jobs.Job(tp=2, dp=1, steps=4).write(self.folder)
        doc = self.export(self.folder, "--steps=2")
        self.assertEqual({e["name"] for e in doc["traceEvents"] if e["name"].startswith("ProfilerStep")}, {"ProfilerStep#2"})

    def test_refused_clocks_and_damaged_ranks(self):
        doc = self.export(data("multirank", "hta_trace_filter"))
        self.assertEqual({r["clock"] for r in doc["opscope_job"]["ranks"]}, {"unknown"})
        self.assertIn("could not be compared", self.said)
        self.check_ids(doc)
        job = jobs.Job(tp=4, dp=1, steps=2)
        for r in (0, 1, 3):
            with open(os.path.join(self.folder, f"x_rank{r}.json"), "w") as f:
                f.write(json.dumps(job.trace(r)))
        with open(os.path.join(self.folder, "x_rank2.json"), "w") as f:
            f.write('{"distributedInfo": {"rank": 2, "world_size": 4}, "traceEvents": 17}')
        doc = self.export(self.folder)
        self.assertEqual([r["rank"] for r in doc["opscope_job"]["ranks"]], [0, 1, 3])
        self.assertIn("x_rank2.json is left out", self.said)
        self.assertIn("3 of 4 ranks are here and written", self.said)

    def test_other_forms_of_events(self):
        """Ids as text, devices that stand in the process alone, events without arguments or threads, text pids."""
        for r in range(2):
            trace = jobs.Job(tp=2, dp=1, steps=2).trace(r)
            for e in trace["traceEvents"]:
                if e["cat"] == "kernel":
                    del e["args"]["device"]
            trace["traceEvents"] += [
                {"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0, "ts": 5, "args": {"name": "Sp\"ans"}},
                {"ph": "X", "cat": "Trace", "name": "a", "pid": "Spans", "tid": "t\n1", "ts": 1.5, "dur": 2},
                {"ph": "s", "id": "0x1", "pid": 1, "tid": 1, "ts": 1, "cat": "x", "name": "x"}, {"ph": "f", "id": "0x1", "pid": 1, "tid": 1, "ts": 2, "cat": "x", "name": "x", "bp": "e"},
                {"ph": "b", "id2": {"local": "0x1"}, "pid": 1, "tid": 1, "ts": 1, "cat": "x", "name": "x"},
                {"ph": "X", "cat": "kernel", "name": "bare", "pid": 0, "tid": 7, "ts": 3, "dur": 1},
                {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 3, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 4, "Addr": 1}},
            ]
            with open(os.path.join(self.folder, f"{r}.json"), "w") as f:
                f.write(json.dumps(trace))
        doc = self.export(self.folder)
        self.check_ids(doc)
        self.check_names(doc)
        for rank, events in self.by_rank(doc).items():
            self.assertEqual({e["args"]["device"] for e in events if e.get("cat") == "kernel"}, {rank})
            self.assertEqual({e["args"]["Device Id"] for e in events if e["name"] == "[memory]"}, {rank})
            ends = [e["id"] for e in events if e.get("cat") == "x" and e["ph"] in "sf"]
            self.assertEqual(len(ends), 2)
            self.assertEqual(len(set(ends)), 1)

    def test_memory_is_that_of_one_rank(self):
        """Eight ranks take little more than two."""
        if oracle.SANITIZED:
            self.skipTest("the sanitizer keeps what is freed")
        peaks = []
        for n in (2, 8):
            folder = tempfile.mkdtemp(dir=self.tmp)
            for r in range(n):
                doc = oracle.load(data(*TP8, "megatron_kineto_0.json.gz"))
                doc["distributedInfo"] = {"backend": "nccl", "rank": r, "world_size": n}
                with open(os.path.join(folder, f"{r}.json"), "w") as f:
                    f.write(json.dumps(doc))
            code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            p = subprocess.run([sys.executable, "-c", code, OPSCOPE, "export", "chrome", folder, "-o", os.path.join(self.tmp, "big.json")], capture_output=True, check=True)
            peaks.append(int(p.stdout))
        self.assertLess(peaks[1], 1.3 * peaks[0])


if __name__ == "__main__":
    oracle.main()
