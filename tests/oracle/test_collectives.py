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
                json.dump(doc, f)
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


if __name__ == "__main__":
    oracle.main()
