"""Collectives of a job: what its process groups divide, on which hosts they are, and how fast they move bytes: against real ranks and planted truths."""
import gzip
import json
import os
import shutil
import tempfile

import jobs
import oracle
from oracle import Case, data, report, steps_report

TP8 = ("multirank", "megatron_a100_tp8")


def texts(table):
    return "\n".join(table.notes)


def calls(doc):
    return [e for e in doc["traceEvents"] if e["cat"] == "kernel" and "nccl" in e["name"]]


def size(event):
    return event["args"]["Group size"]


class Job(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def job(self, change=lambda rank, doc: None, **how):
        """A job of oracle/jobs.py whose groups have no speaking names, each recording changed; the folder."""
        job = jobs.Job(**{"names": lambda rank, kind: {"tp": "3", "dp": "7"}[kind], **how})
        folder = tempfile.mkdtemp(dir=self.tmp)
        for r in range(job.n):
            doc = job.trace(r)
            change(r, doc)
            with gzip.open(os.path.join(folder, f"r{r}.json.gz"), "wt", compresslevel=1) as f:
                f.write(json.dumps(doc))
        return folder


class Groups(Job):
    def kinds(self, folder):
        """By number of ranks: what the groups divide, and how that is known."""
        rows = report("collectives", folder, "--group-by=group").rows
        return {row["ranks"]: (row["parallel"], row["parallel_by"]) for row in rows}

    def test_real_ranks(self):
        """Megatron's regions ask for tensor parallelism; its description says nothing."""
        row, = steps_report("collectives", data(*TP8), "--group-by=group").rows
        self.assertEqual((row["parallel"], row["parallel_by"], row["hosts"]), ("TP", "ops", 1))
        self.assertIn("8 ranks on 1 host (by the number of GPUs that each process sees); 1 group TP, by the ops that use them", texts(steps_report("ranks", data(*TP8))))

    def test_names(self):
        names = {"tp": "TENSOR_MODEL_PARALLEL_GROUP", "dp": "mesh_dp_shard_cp"}

        def describe(rank, doc):
            for e in calls(doc):
                e["args"]["Process Group Description"] = names["tp" if size(e) == 4 else "dp"]
        self.assertEqual(self.kinds(self.job(describe, tp=4, dp=2)), {4: ("TP", "said"), 2: ("DP+CP", "said")})
        self.assertEqual(self.kinds(self.job(tp=4, dp=2, names=lambda rank, kind: kind)), {4: ("TP", "said"), 2: ("DP", "said")})

    def test_neighbours(self):
        """Neighbours that add up, and ranks as far apart as there are neighbours."""
        folder = self.job(tp=4, dp=2)
        self.assertEqual(self.kinds(folder), {4: ("TP", "ranks (guess)"), 2: ("DP", "ranks (guess)")})
        self.assertIn("2 groups TP, by which ranks are together: a guess; 4 groups DP, by which ranks are together: a guess", texts(report("ranks", folder)))

    def test_shards_and_replicas_look_like_that_too(self):
        def shard(rank, doc):
            for i, e in enumerate(x for x in calls(doc) if size(x) == 4):
                e["args"]["Collective name"] = ("_allgather_base", "_reduce_scatter_base")[i % 2]
        folder = self.job(shard, tp=4, dp=2)
        self.assertEqual(self.kinds(folder), {4: (None, None), 2: (None, None)})
        self.assertIn("is unknown: tensor and data parallelism, and data parallelism in shards and replicas, look alike", texts(report("ranks", folder)))

    def test_stages(self):
        """The farthest apart send and receive: stages. What the neighbours do is not known then."""
        def send(rank, doc):
            for e in calls(doc):
                if size(e) == 2:
                    e["name"] = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
                    e["args"]["Collective name"] = "send" if rank < 4 else "recv"
        rows = report("collectives", self.job(send, tp=4, dp=2), "--group-by=group").rows
        self.assertEqual({(r["kind"], r["parallel"], r["parallel_by"]) for r in rows},
                         {("all_reduce", None, None), ("send", "PP", "ranks (guess)"), ("recv", "PP", "ranks (guess)")})

    def test_experts(self):
        """All-to-alls of unequal parts, not over all ranks."""
        def route(rank, doc):
            for e in calls(doc):
                if size(e) == 2:
                    e["args"].update({"Collective name": "all_to_allv", "In msg nelems": 1000 + 100 * rank, "Out msg nelems": 1000})
        self.assertEqual(self.kinds(self.job(route, tp=4, dp=2))[2], ("EP", "ranks (guess)"))

    def test_lists_that_are_cut(self):
        """Kineto cuts lists at 30 ranks; record_param_comms around the launch says where the group begins and how far its ranks are apart."""
        def cut(rank, doc):
            new = []
            for e in calls(doc):
                first = rank // 4 * 4 if size(e) == 4 else rank % 4
                launch = next(x for x in doc["traceEvents"] if x["cat"] == "cuda_runtime" and x["args"]["correlation"] == e["args"]["correlation"])
                new.append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": launch["ts"] - 0.1, "dur": 0.6,
                            "args": {"External id": launch["args"]["External id"], "Global rank start": first, "Global rank stride": 1 if size(e) == 4 else 4}})
                e["args"]["Process Group Ranks"] = f"[{first}, ...]"
            doc["traceEvents"] += new
        rows = report("collectives", self.job(cut, tp=4, dp=2), "--group-by=group").rows
        self.assertEqual({r["group"] for r in rows}, {"3 (ranks 0-3)", "3 (ranks 4-7)"} | {f"7 (ranks {i}, {i + 4})" for i in range(4)})

    def test_one_group_of_all(self):
        folder = self.job(tp=4, dp=1)
        self.assertEqual(self.kinds(folder)[4], (None, None))
        self.assertIn("a group of all ranks may be of any kind", texts(report("ranks", folder)))

    def test_hosts_by_gpus(self):
        def place(rank, doc):
            doc["deviceProperties"] = [{"id": i, "name": "NVIDIA A100-SXM4-80GB"} for i in range(4)]
            for e in doc["traceEvents"]:
                if e["cat"] == "kernel":
                    e["args"]["device"] = rank % 4
        rows = report("collectives", self.job(place, tp=4, dp=2), "--group-by=group").rows
        self.assertEqual({(r["ranks"], r["hosts"]) for r in rows}, {(4, 1), (2, 2)})

        def mask(rank, doc):
            place(rank, doc)
            for e in doc["traceEvents"]:
                if e["cat"] == "kernel":
                    e["args"]["device"] = 0
        self.assertEqual({r["hosts"] for r in report("collectives", self.job(mask, tp=4, dp=2), "--group-by=group").rows}, {None})

    def test_a_range_around_the_model_says_nothing(self):
        """DLRM's all-to-alls run inside DistributedDataParallel.forward, and are no data parallelism."""
        by_kind = report("collectives", data("multirank", "hta_trace_filter"), "--group-by=group").by("kind")
        self.assertIsNone(by_kind["all_to_all"]["parallel"])

    def test_one_recording_is_of_one_host(self):
        rows = report("collectives", data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite"), "--group-by=group").rows
        self.assertEqual({r["hosts"] for r in rows}, {1})


class Rates(Job):
    """Bandwidths. One collective of a kind lasts as long as `transfer` says; ranks wait besides."""

    def move(self, kind, n_in, n_out, transfer, gpus=8, gpu="NVIDIA A100-SXM4-80GB"):
        """Eight ranks that come one after the other; n_in and n_out: elements of float32 by rank."""
        def change(rank, doc):
            doc["deviceProperties"] = [{"id": i, "name": gpu} for i in range(gpus)]
            for e in doc["traceEvents"]:
                if e["cat"] == "kernel":
                    e["args"]["device"] = rank % gpus
            for e in calls(doc):
                if size(e) == 8:
                    e["args"].update({"Collective name": kind, "In msg nelems": n_in(rank), "Out msg nelems": n_out(rank)})
        return self.job(change, tp=8, dp=1, steps=3, transfer=transfer, late=lambda r, s, p: r * 10_000 if p == 0 else 0)

    def row(self, *args, **how):
        row, = (r for r in report("collectives", self.move(*args, **how), "--group-by=group").rows if r["ranks"] == 8)
        return row

    def test_formulas_of_tracelens(self):
        """Two rows that it printed of eight ranks: GiB/s, as means over the collectives of a row, from their shortest durations. nccl-tests' formulas give the same."""
        for kind, mib, us, algorithm, bus in (("_allgather_base", 1632.03, 6041.88, 264.01, 231.01), ("_reduce_scatter_base", 3264.06, 11662.77, 273.43, 239.25)):
            whole = round(mib * 2**20 / 4) // 8 * 8
            sizes = (lambda r: whole // 8, lambda r: whole) if kind == "_allgather_base" else (lambda r: whole, lambda r: whole // 8)
            row = self.row(kind, *sizes, transfer=round(us * 1000))
            for which in ("", "_min"):
                got = row[f"algorithm{which}_gb_per_s"] * 1e9 / 2**30
                self.assertLess(abs(got / algorithm - 1), 0.001, kind)
                self.assertAlmostEqual(row[f"bus{which}_gb_per_s"] / row[f"algorithm{which}_gb_per_s"], 7 / 8, delta=1e-6)
                self.assertLess(abs(got * 7 / 8 / bus - 1), 0.001, kind)

    def test_all_reduce(self):
        """n ranks send each byte 2 (n - 1) / n times."""
        row = self.row("allreduce", lambda r: 1 << 20, lambda r: 1 << 20, transfer=100_000)
        self.assertAlmostEqual(row["algorithm_gb_per_s"], 4 * 2**20 / 100_000, delta=1e-9)
        self.assertAlmostEqual(row["bus_gb_per_s"], 4 * 2**20 / 100_000 * 14 / 8, delta=1e-3)

    def test_link(self):
        def link(**how):
            row = self.row("allreduce", lambda r: 1 << 20, lambda r: 1 << 20, 100_000, **how)
            return row["hosts"], row["link_gb_per_s"], row["link_pct"] and round(row["link_pct"] / row["bus_gb_per_s"] * 100)
        self.assertEqual(link(), (1, 300, 33))
        self.assertEqual(link(gpu="NVIDIA H100 80GB HBM3"), (1, 450, 22))
        self.assertEqual(link(gpu="NVIDIA A100 80GB PCIe"), (1, None, None))
        self.assertEqual(link(gpus=4), (2, None, None))
        self.assertEqual(link(gpus=1), (None, None, None))

    def test_unequal_parts(self):
        """Rank r sends 1000 + 100 r elements: no message has one size, and rates are of all together, from the first start to the last end."""
        row = self.row("all_to_allv", lambda r: 1000 + 100 * r, lambda r: 1350, transfer=50_000)
        self.assertAlmostEqual(row["imbalance"], 1700 / 1350, delta=1e-9)
        self.assertAlmostEqual(row["all_gb_per_s"], 4 * 8 * 1350 / (50_000 + 70_000), delta=1e-9)
        self.assertEqual((row["algorithm_gb_per_s"], row["bus_min_gb_per_s"]), (None, None))
        even = self.row("all_to_all", lambda r: 800, lambda r: 800, transfer=50_000)
        self.assertEqual(even["imbalance"], 1)
        self.assertAlmostEqual(even["bus_gb_per_s"], 4 * 800 / 50_000 * 7 / 8, delta=1e-9)

    def test_without_waiting_there_is_the_shortest_alone(self):
        row = self.row("broadcast", lambda r: 1000, lambda r: 1000, transfer=50_000)
        self.assertEqual((row["algorithm_gb_per_s"], row["algorithm_min_gb_per_s"]), (None, 4000 / 50_000))


class Pairs(Job):
    """Sends and receives between two ranks, after the collectives of a job: the receiver comes 30 us before the sender and is done 45 us after that."""
    SENDS = 4

    def pairs(self, change=lambda rank, doc, new: new, **how):
        def add(rank, doc):
            begin = max(e["ts"] + e["dur"] for e in doc["traceEvents"]) // 1000 * 1000 + 1000
            new = []
            for i in range(self.SENDS):
                start = begin + 1000 * i - (30 if rank else 0)
                args = {"Collective name": "recv" if rank else "send", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float", "Process Group Name": "5",
                        "Process Group Ranks": "[0, 1]", "Src Rank" if rank else "Dst Rank": 1 - rank, "device": 0, "stream": 9, "correlation": 5000 + i, "External id": 5000 + i}
                new.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start - 5, "dur": 1, "args": {"correlation": 5000 + i, "External id": 5000 + i}})
                new.append({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 9, "ts": start, "dur": 75 if rank else 50,
                            "args": args})
            doc["traceEvents"] += change(rank, doc, new)
        return self.job(add, **{"tp": 2, "dp": 1, "steps": 3, **how})

    def rows(self, folder):
        return [r for r in report("collectives", folder, "--group-by=instance").rows if "send" in r["kind"] or "recv" in r["kind"]]

    def test_a_receive_waits_for_the_send(self):
        folder = self.pairs()
        rows = self.rows(folder)
        self.assertEqual([(r["kind"], r["ranks"], r["bytes"], r["wait_ns"], r["transfer_ns"], r["last_rank"]) for r in rows], [("send_recv", 2, 4000, 30_000, 45_000, 0)] * self.SENDS)
        self.assertIn("4 sends stand with the receives: waiting is that of the receivers", texts(report("collectives", folder)))
        both, = (r for r in report("collectives", folder).rows if r["kind"] == "send_recv")
        self.assertAlmostEqual(both["wait_pct"], 30 / 75 * 100)
        row, = report("traffic", folder).rows
        self.assertEqual((row["from_rank"], row["to_rank"], row["kind"], row["messages"], row["bytes"], row["place"]), (0, 1, "send", 4, 16000, None))

    def test_clocks_that_do_not_compare(self):
        """Without a collective that ends on both ranks at one moment, nothing tells how far the clocks are apart."""
        def alone(rank, doc, new):
            doc["traceEvents"][:] = [e for e in doc["traceEvents"] if "nccl" not in e["name"]]
            return new
        folder = self.pairs(alone)
        self.assertEqual([(r["ranks"], r["wait_ns"], r["last_rank"]) for r in self.rows(folder)], [(2, None, None)] * self.SENDS)
        self.assertIn("waiting is unknown: the clocks of the two ranks cannot be compared", texts(report("collectives", folder)))

    def test_unequal_numbers_stand_alone(self):
        folder = self.pairs(lambda rank, doc, new: new[2:] if rank else new)
        self.assertEqual({(r["kind"], r["ranks"], r["wait_ns"]) for r in self.rows(folder)}, {("send", 1, None), ("recv", 1, None)})
        self.assertIn("7 sends and receives stand alone", texts(report("collectives", folder)))
        row, = report("traffic", folder).rows  # the sender knows what it sent
        self.assertEqual((row["messages"], row["bytes"]), (4, 16000))

    def test_a_sender_that_is_not_here(self):
        folder = self.pairs()
        os.remove(os.path.join(folder, "r0.json.gz"))
        row, = report("traffic", folder).rows
        self.assertEqual((row["from_rank"], row["to_rank"], row["bytes"]), (0, 1, 16000))

    def test_peers_by_the_names_of_ranges(self):
        def name(rank, doc, new):
            for e in new:
                if e["cat"] == "kernel":
                    e["args"] = {k: v for k, v in e["args"].items() if "Rank" not in k or k == "Process Group Ranks"}
            return new + [{"ph": "X", "cat": "user_annotation", "name": "nccl:recv 1<-0" if rank else "nccl:send 0->1", "pid": 1, "tid": 1, "ts": e["ts"] - 1, "dur": 3, "args": {}}
                          for e in new if e["cat"] == "cuda_runtime"]
        self.assertEqual([(r["kind"], r["wait_ns"]) for r in self.rows(self.pairs(name))], [("send_recv", 30_000)] * self.SENDS)

    def test_coalesced(self):
        """One kernel runs several operations, and carries nothing."""
        def coalesce(rank, doc, new):
            for e in new:
                if e["cat"] == "kernel":
                    e["args"] = {k: v for k, v in e["args"].items() if k in ("device", "stream", "correlation", "External id")}
            return new + [{"ph": "X", "cat": "user_annotation", "name": "nccl:coalesced", "pid": 1, "tid": 1, "ts": e["ts"] - 1, "dur": 3, "args": {}} for e in new if e["cat"] == "cuda_runtime"]
        folder = self.pairs(coalesce)
        table = report("collectives", folder)
        self.assertEqual([(r["instances"], r["wait_ns"]) for r in table.rows if r["kind"] == "coalesced"], [(4, None)])
        self.assertIn("8 kernels run a group of coalesced operations", texts(table))
        table = report("traffic", folder)
        self.assertEqual(table.rows, [])
        self.assertIn("are left out: from which rank to which their bytes go depends on the algorithm, or was not recorded", texts(table))


class Traffic(Job):
    def exchange(self, split, kind="all_to_allv", gpus=2):
        def change(rank, doc):
            doc["deviceProperties"] = [{"id": i, "name": "NVIDIA A100-SXM4-80GB"} for i in range(gpus)]
            for e in doc["traceEvents"]:
                if e["cat"] == "kernel":
                    e["args"]["device"] = rank % gpus
            for e in calls(doc):
                parts = split(rank)
                e["args"].update({"Collective name": kind, "In msg nelems": 1000, "Out msg nelems": 1000, "In split size": str(parts), "Out split size": "[]"})
        return self.job(change, tp=4, dp=1, steps=3)

    def matrix(self, folder):
        return {(r["from_rank"], r["to_rank"]): (r["messages"], r["bytes"], r["place"]) for r in report("traffic", folder).rows if r["kind"] == "all_to_all"}

    def test_parts(self):
        """Each row of the list goes to one rank of the group; its own stays. Hosts of two GPUs."""
        got = self.matrix(self.exchange(lambda r: [10 * (r + 1), 20, 30, 940 - 10 * r]))
        want = {}
        for r in range(4):
            for to, part in enumerate([10 * (r + 1), 20, 30, 940 - 10 * r]):
                if to != r:
                    want[r, to] = (3, 3 * 4 * part, "inside" if r // 2 == to // 2 else "between")
        self.assertEqual(got, want)

    def test_equal_parts(self):
        got = self.matrix(self.exchange(lambda r: [], kind="all_to_all"))
        self.assertEqual({v[:2] for v in got.values()}, {(3, 3 * 1000)})
        self.assertEqual(len(got), 12)

    def test_lists_that_are_cut(self):
        self.assertEqual(self.matrix(self.exchange(lambda r: "[1, 2, ...]")), {})

    def test_by_group(self):
        """An all-reduce of n ranks: each sends 2 (n - 1) / n of it."""
        rows = report("traffic", self.job(tp=4, dp=2, steps=3), "--group-by=group").rows
        self.assertEqual({(r["kind"], r["ranks"], r["parallel"], r["messages"], r["bytes"], r["sent_bytes"]) for r in rows},
                         {("all_reduce", 4, "TP", 3, 3 * 2**20, 3 * 2**20 * 6 // 4), ("all_reduce", 2, "DP", 3, 3 * 2**20, 3 * 2**20)})


class Advice(Job):
    def findings(self, folder):
        code, out, err = oracle.run("advise", folder, "--format=json")
        self.assertEqual((code, err), (0, b""))
        return {r["detector"]: r for r in oracle.Table(json.loads(out)).rows}

    def large(self, rank, doc):
        for e in calls(doc):
            e["args"].update({"In msg nelems": 4 << 20, "Out msg nelems": 4 << 20})

    def test_slow_link(self):
        """Of four data-parallel groups, one is five times as slow: 16 MiB in 2 ms and not in 0.4."""
        slow = self.findings(self.job(self.large, tp=4, dp=4, transfer=lambda group: 2_000_000 if group == [1, 5, 9, 13] else 400_000))["slow-link"]
        wire = 2**24 * 6 / 4
        self.assertIn(f"ranks 1, 5, 9, 13) move {wire / 2e6:.1f} GB/s, those of groups like it {wire / 4e5:.1f} GB/s", slow["problem"])
        self.assertAlmostEqual(slow["gain_ns_per_step"], 1_600_000 * 4 / 16, delta=1000)
        self.assertNotIn("slow-link", self.findings(self.job(self.large, tp=4, dp=4)))

    def test_slower_than_the_links_can_be(self):
        """On A100s, 64 MiB in 4 ms are 29 GB/s of 300; in 1 ms they are no finding, and neither are messages of 1 MiB."""
        def place(n):
            def change(rank, doc):
                doc["deviceProperties"] = [{"id": i, "name": "NVIDIA A100-SXM4-80GB"} for i in range(8)]
                for e in doc["traceEvents"]:
                    if e["cat"] == "kernel":
                        e["args"]["device"] = rank
                for e in calls(doc):
                    e["args"].update({"In msg nelems": n, "Out msg nelems": n})
            return change
        self.assertIn("29.4 GB/s, and NVLink 3 could 300 GB/s", self.findings(self.job(place(1 << 24), tp=8, dp=1, transfer=4_000_000))["slow-link"]["problem"])
        self.assertNotIn("slow-link", self.findings(self.job(place(1 << 24), tp=8, dp=1, transfer=1_000_000)))
        self.assertNotIn("slow-link", self.findings(self.job(place(1 << 18), tp=8, dp=1, transfer=4_000_000)))

    def test_unequal_exchange(self):
        def route(most):
            def change(rank, doc):
                for e in calls(doc):
                    if size(e) == 4:
                        n = most if rank % 4 == 3 else 1 << 20
                        e["args"].update({"Collective name": "all_to_allv", "In msg nelems": n, "Out msg nelems": 1 << 20})
            return change
        found = self.findings(self.job(route(5 << 20), tp=4, dp=2, transfer=2_000_000))["unequal-exchange"]
        self.assertIn("sends 2.5 times what a rank sends on average", found["problem"])
        self.assertAlmostEqual(found["gain_ns_per_step"], 2_000_000 * (1 - 2 / 5), delta=1000)
        self.assertNotIn("unequal-exchange", self.findings(self.job(route(1 << 20), tp=4, dp=2, transfer=2_000_000)))

    def test_false_straggler(self):
        """The rank whose host is late is the one that recorded stacks. A slower kernel is not the recording's doing."""
        def stacks(rank, doc):
            doc["with_stack"] = int(rank == 2)
        late = {"tp": 4, "dp": 1, "late": lambda r, s, p: 1_500_000 if r == 2 and p == 0 else 0, "how": "host"}
        found = self.findings(self.job(stacks, **late))["straggler"]
        self.assertEqual(found["severity"], "low")
        self.assertIn("most of it for rank 2, which was recorded with more than the others", found["problem"])
        self.assertTrue(found["advice"].startswith("Record all ranks with the same options"))
        self.assertNotIn("was recorded with", self.findings(self.job(**late))["straggler"]["problem"])
        slower = self.findings(self.job(stacks, **{**late, "how": "slower"}))["straggler"]
        self.assertNotEqual(slower["severity"], "low")


if __name__ == "__main__":
    oracle.main()
