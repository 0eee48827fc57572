"""What NCCL's NVTX payloads say of communicators: ranks, groups and bytes, in JSON and in the binary form; of a real run, of planted ones, and of hostile ones."""
import json
import os
import statistics
import tempfile

from nsys_db import DOMAIN, call, kernel, make, nvtx, payload, strings
import oracle
from oracle import Case, data, report, run

DDP = ("more", "nsys", "2026.3_ddp_2gpu_nccl")
INIT, REDUCE, PEER = 16777218, 16777221, 16777225
FIELDS = {INIT: [(18, "NCCL communicator ID", None), (5, "No. of ranks", 8), (5, "Rank", 12), (5, "CUDA device", 16)],
          REDUCE: [(18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8), (5, "Root", 16)],
          PEER: [(18, "NCCL communicator ID", None), (22, "Message size [bytes]", 8), (5, "Peer rank", 16)]}
SCHEMAS = [{"domainId": 1, "schemaId": schema, "idx": i, "type": t, "name": n, "offset": o}
           for schema, fields in FIELDS.items() for i, (t, n, o) in enumerate(fields)] * 2  # each process states them
US = 1000


def sql(path, query):
    code, out, err = run("sql", path, query, "--format=json", "--limit=0")
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return [tuple(r) for r in json.loads(out)["rows"]]


class Real(Case):
    """DDP on two GPUs, whose payloads are JSON."""

    def setUp(self):
        super().setUp()
        self.path = data(*DDP, "ddp_overlapped.sqlite")
        with open(data(*DDP, "ddp_overlapped.expected.json"), encoding="utf-8") as f:
            self.want = json.load(f)

    def test_matched_in_order(self):
        rows = report("collectives", self.path, "--group-by=instance").rows
        want = self.want["ordinal_match"]
        self.assertEqual(len(rows), want["pairs"])
        self.assertEqual({r["ranks"] for r in rows}, {2})
        self.assertEqual(statistics.median(r["end_skew_ns"] for r in rows), want["end_skew_ns_median"])
        self.assertEqual(max(r["end_skew_ns"] for r in rows), want["end_skew_ns_max"])
        worst = max(rows, key=lambda r: r["end_skew_ns"])
        self.assertEqual((worst["kind"], worst["coincides"]), ("broadcast", False))
        for r in rows:
            self.assertEqual(r["coincides"], r["end_skew_ns"] <= 100_000, r)
        self.assertTrue(any("1 did not end on all ranks at one moment" in n for n in report("collectives", self.path).notes))

    def test_bytes_by_kind(self):
        rows = report("collectives", self.path).by("kind")
        for name, kind in ("ncclAllReduce", "all_reduce"), ("ncclBroadcast", "broadcast"):
            want = {x["bytes"] for x in self.want["message_bytes"] if x["name"] == name}
            self.assertEqual({rows[kind]["bytes"]}, want)
            self.assertGreater(rows[kind]["bus_min_gb_per_s"], 0)

    def test_group_is_the_communicator(self):
        row, = {r["group"] for r in report("collectives", self.path, "--group-by=instance").rows}
        self.assertEqual(row, "communicator 13429301450432826988 (ranks 0-1)")

    def test_ranks_are_those_of_the_communicator(self):
        stated = sql(self.path, "SELECT DISTINCT arg(args, 'GPU'), arg(args, 'Rank') FROM span WHERE name = 'ncclCommInitRankConfig' ORDER BY 1")
        self.assertEqual(sorted((r["device"], r["rank"]) for r in report("ranks", self.path).rows), [(int(g), int(r)) for g, r in stated])

    def test_before_and_after(self):
        """Payloads were taken out of these: the ranges still say that sends and receives are an all-to-all."""
        for name in "before", "after":
            rows = report("collectives", data("nsys", "2026.2_mfu_2gpu", f"mfu_2gpu_{name}.sqlite")).by("kind")
            self.assertGreaterEqual(rows["all_to_all"]["instances"], 30)
            self.assertIsNone(rows["all_to_all"]["bytes"])


class Planted(Case):
    """Two processes, each of which sees one GPU as its device 0. The process on GPU 1 is rank 0."""

    GPU_OF = {10: 1, 20: 0}
    RANK_OF = {10: 0, 20: 1}

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "r.sqlite")

    def said(self, schema, binary, *values):
        """A payload in one of its two forms."""
        if binary:
            formats = {18: "Q", 22: "Q", 5: "i"}
            return {"binaryData": payload(1, schema, *[(formats[t], v) for (t, _, _), v in zip(FIELDS[schema], values)])}
        return {"jsonText": json.dumps(dict(zip((n for _, n, _ in FIELDS[schema]), values)), separators=(",", ":"))}

    def rows(self, binary, events, ranks=2):
        """events: function of (process, said) -> NVTX rows and [(launch, kernel name)], each at its number of microseconds."""
        nvtx_rows, calls, kernels, names = [], [], [], ["cudaLaunchKernel_v7000"]
        for p in self.GPU_OF:
            nvtx_rows.append(nvtx(1, None, "NCCL", p, p, DOMAIN, domainId=1))
            nvtx_rows.append(nvtx(2, 9, "ncclCommInitRankConfig", p, p, domainId=1, **self.said(INIT, binary, 2 ** 64 - 7, ranks, self.RANK_OF[p], 0)))
            more, launches = events(p, lambda schema, *v: self.said(schema, binary, *v))
            nvtx_rows += more
            for at, name in launches:
                if name not in names:
                    names.append(name)
                corr = p * 1000 + at
                calls.append(call(at * US, at * US + 100, corr, p, p, name=1))
                kernels.append(kernel((at + 1) * US, (at + 5) * US, corr, p, name=names.index(name) + 1, device=self.GPU_OF[p]))
        nvtx_rows.sort(key=lambda r: r["start"])
        return {"StringIds": strings(*names), "NVTX_EVENTS": nvtx_rows, "CUPTI_ACTIVITY_KIND_RUNTIME": sorted(calls, key=lambda r: r["start"]),
                "CUPTI_ACTIVITY_KIND_KERNEL": sorted(kernels, key=lambda r: r["start"]), "NVTX_PAYLOAD_SCHEMA_ENTRIES": SCHEMAS,
                "TARGET_INFO_CUDA_DEVICE": [{"gpuId": g, "cudaId": 0, "pid": p} for p, g in self.GPU_OF.items()],
                "TARGET_INFO_GPU": [{"vmId": 1, "id": g, "name": "NVIDIA A100-SXM4-80GB", "smCount": 108} for g in (0, 1)]}

    def range(self, at, name, p, said, us=3):
        return nvtx(at * US - 500, (at + us) * US, name, p, p, domainId=1, **(said or {}))

    def both(self, events, ranks=2):
        """The same answer in both forms."""
        answers = []
        for binary in False, True:
            path = os.path.join(self.folder.name, f"{binary}.sqlite")
            make(path, self.rows(binary, events, ranks))
            answers.append([report(*asked) for asked in (("collectives", path, "--group-by=instance"), ("ranks", path), ("comm", path))])
        for a, b in zip(*answers):
            self.assertEqual(a.rows, b.rows)
        return answers[0]

    def test_ranks_and_bytes(self):
        def events(p, said):
            return [self.range(100, "ncclAllReduce", p, said(REDUCE, 2 ** 64 - 7, 4096, 0)), self.range(200, "ncclAllGather", p, said(REDUCE, 2 ** 64 - 7, 512, 0)),
                    self.range(300, "ncclReduceScatter", p, said(REDUCE, 2 ** 64 - 7, 512, 0))], \
                   [(100, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), (200, "ncclDevKernel_AllGather_RING_LL"), (300, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL")]
        collectives, ranks, comm = self.both(events)
        self.assertEqual([(r["kind"], r["bytes"]) for r in collectives.rows], [("all_reduce", 4096), ("all_gather", 1024), ("reduce_scatter", 1024)])
        self.assertEqual({r["group"] for r in collectives.rows}, {"communicator 18446744073709551609 (ranks 0-1)"})
        self.assertEqual([(r["rank"], r["device"]) for r in ranks.rows], [(0, 1), (1, 0)])
        self.assertEqual({(r["collective"], r["bytes"], r["ranks"]) for r in comm.rows}, {("all_reduce", 4096, 2), ("all_gather", 1024, 2), ("reduce_scatter", 1024, 2)})

    def test_one_node_of_a_larger_job(self):
        def events(p, said):
            return [self.range(100, "ncclAllReduce", p, said(REDUCE, 2 ** 64 - 7, 4096, 0))], [(100, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]
        collectives, ranks, _ = self.both(events, ranks=16)
        self.assertIn("2 of 16 ranks are here; missing: 2 to 15.", "\n".join(ranks.notes))
        self.assertEqual(collectives.rows[0]["bytes"], 4096)

    def test_group_of_sends_and_receives(self):
        """ncclGroupEnd launches what the calls before it asked for: their bytes are of its kernel."""
        def events(p, said):
            return [nvtx(90 * US, 120 * US, "nccl:all_to_all", p, p), self.range(95, "ncclGroupStart", p, None, 0)] + \
                   [self.range(96 + i, ("ncclSend", "ncclRecv")[i % 2], p, said(PEER, 2 ** 64 - 7, 1000 + i, i // 2), 0) for i in range(4)] + \
                   [self.range(105, "ncclGroupEnd", p, None)], [(105, "ncclDevKernel_SendRecv")]
        collectives, _, _ = self.both(events)
        row, = collectives.rows
        self.assertEqual((row["kind"], row["bytes"], row["ranks"]), ("all_to_all", 1000 + 1002, 2))
        self.assertIn("communicator", row["group"])

    def test_group_of_two_communicators(self):
        """Which kernel is whose is not known: nothing is said."""
        def events(p, said):
            return [self.range(95, "ncclGroupStart", p, None, 0), self.range(96, "ncclAllReduce", p, said(REDUCE, 2 ** 64 - 7, 1000, 0), 0),
                    self.range(97, "ncclAllReduce", p, said(REDUCE, 5, 3000, 0), 0), self.range(105, "ncclGroupEnd", p, None)], \
                   [(105, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]
        collectives, _, _ = self.both(events)
        self.assertEqual([r["bytes"] for r in collectives.rows], [None])

    def test_a_rank_told_twice(self):
        """Two GPUs that claim the same rank: GPUs are counted, as where nothing is told."""
        self.RANK_OF = {10: 1, 20: 1}

        def events(p, said):
            return [self.range(100, "ncclAllReduce", p, said(REDUCE, 2 ** 64 - 7, 4096, 0))], [(100, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]
        _, ranks, _ = self.both(events)
        self.assertEqual([(r["rank"], r["device"]) for r in ranks.rows], [(0, 0), (1, 1)])

    def test_hostile_payloads(self):
        """Sizes, offsets, types, depths and texts that no NCCL writes: no crash, and never a number that nothing stated."""
        odd = [b"", b"x", b"\0" * 31, b"\0" * 32, payload(1, REDUCE, ("Q", 2 ** 64 - 1)), payload(1, REDUCE, ("Q", 1), ("Q", 2 ** 63), ("i", -1)),
               payload(1, INIT, ("Q", 1), ("i", -5), ("i", 2 ** 31 - 1), ("i", -(2 ** 31))), payload(2 ** 32 - 1, 2 ** 32 - 1, ("Q", 1)), payload(1, REDUCE, *[("Q", i) for i in range(500)])]
        texts = ["{", "{}", '{"NCCL communicator ID"', '{"NCCL communicator ID":', '{"NCCL communicator ID":{}}', '{"NCCL communicator ID":[[[[1]]]]}', '{"NCCL communicator ID":1,}',
                 '{"NCCL communicator ID":1,"Message size [bytes]":-5}', '{"NCCL communicator ID":1,"Message size [bytes]":99999999999999999999}',
                 '{"NCCL communicator ID":1,"No. of ranks":0,"Rank":0,"CUDA device":0}', '{"NCCL communicator ID":1,"No. of ranks":9223372036854775807,"Rank":9223372036854775806,"CUDA device":0}',
                 "{" + ",".join(f'"NCCL communicator ID{i}":{i}' for i in range(200)) + "}", '{"NCCL communicator ID":1' + "[" * 5000]

        def events(p, said):
            rows = [self.range(100 + i, "ncclAllReduce", p, {"binaryData": b}, 1) for i, b in enumerate(odd)]
            rows += [self.range(200 + i, "ncclSend", p, {"jsonText": t}, 1) for i, t in enumerate(texts)]
            rows += [self.range(300 + i, ("ncclGroupStart", "ncclGroupEnd")[i % 3 == 2], p, None, 1) for i in range(60)]
            return rows, [(at, "ncclDevKernel_AllReduce_Sum_f32_RING_LL") for at in (*range(100, 100 + len(odd)), *range(200, 200 + len(texts)), *range(300, 360))]
        rows = self.rows(False, events)
        rows["NVTX_PAYLOAD_SCHEMA_ENTRIES"] += [{"domainId": 1, "schemaId": REDUCE, "type": t, "name": "NCCL communicator ID", "offset": o}
                                                for t, o in ((REDUCE, 0), (18, 2 ** 62), (18, -8), (2 ** 40, 4), (-1, 24), (22, 2 ** 63 - 1))]
        make(self.path, rows)
        for asked in (("collectives", "--group-by=instance"), ("ranks",), ("stragglers",), ("comm",)):
            code, out, err = run("report", asked[0], self.path, *asked[1:], "--format=json")
            self.assertIn(code, (0, 1), err)
        told = report("collectives", self.path, "--group-by=instance").rows
        self.assertTrue(all(r["bytes"] is None or 0 < r["bytes"] < 2 ** 63 for r in told))


if __name__ == "__main__":
    oracle.main()
