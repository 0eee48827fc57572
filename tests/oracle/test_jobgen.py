"""Jobs of bench/jobgen: what is planted is found, and nothing else is said to be there."""
import filecmp
import os
import tempfile
import unittest

import jobgen
import oracle
from oracle import data, report, steps_report
from test_ranks import Job, texts

TP8 = ("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz")
CAUSES = {"slower": ("slower device", "slower_ns"), "more": ("more work", "more_work_ns"), "copies": ("copies", "copies_ns"), "data": ("data loader", "data_loader_ns"),
          "gc": ("garbage collection", "gc_ns"), "host": ("host", "host_ns"), "backward": ("host", "host_ns")}


class Made(Job):
    """A folder of a job for each test."""

    def make(self, *options, trace=None):
        trace = trace or jobgen.base(os.path.join(self.tmp, "base.json"))
        self.folder = os.path.join(tempfile.mkdtemp(dir=self.tmp), "job")
        return jobgen.make(trace, self.folder, *options)


class Itself(Made):
    """What jobgen writes is what it says that it writes."""

    def test_same_bytes(self):
        options = ("--tp=2", "--dp=2", "--offsets=50", "--drifts=20", "--late=turns:host:3", "--rounds=3")
        first, truth = (self.make(*options), self.folder)[::-1]
        self.assertEqual(self.make(*options), truth)
        names = sorted(os.listdir(first))
        self.assertEqual(len(names), 4)
        self.assertEqual(filecmp.cmpfiles(first, self.folder, names, shallow=False)[1:], ([], []))
        self.make(*options, "--seed=1")
        self.assertEqual(filecmp.cmpfiles(first, self.folder, names, shallow=False)[1], names)

    def check_truth(self, truth):
        """Waiting of each rank, and its clock, as planted; collectives of all groups are known."""
        rows = steps_report("ranks", self.folder).by("rank")
        per_step = {r: row["exposed_wait_ns"] * truth["steps"] for r, row in rows.items()}
        calls = sum(r["instances"] for r in report("collectives", self.folder).rows)
        for r in truth["ranks"]:
            row = rows[r["rank"]]
            self.assertAlmostEqual(per_step[r["rank"]], r["wait_ns"], delta=calls * 5_000, msg=r)
            offset = r["offset_ns"] - truth["ranks"][0]["offset_ns"]
            if row["clock"] == "by ends":
                self.assertLess(abs(row["offset_ns"] - offset), 50_000, r)
        waited = sum(row["exposed_wait_ns"] for row in rows.values())
        self.assertAlmostEqual(sum(row["waited_for_ns"] for row in rows.values()) / waited / truth["steps"], 1, delta=0.01)

    def test_truth(self):
        self.check_truth(self.make("--tp=4", "--dp=2", "--rounds=4", "--offsets=50", "--drifts=20", "--late=turns:host:3", "--jitter=200"))
        self.check_truth(self.make("--tp=2", "--dp=2", "--rounds=4", "--stages=1,1.5", "--jitter=500"))
        self.assertEqual({r["clock"] for r in steps_report("ranks", self.folder).rows}, {"as recorded"})

    def test_real_base(self):
        self.check_truth(self.make("--tp=4", "--dp=2", "--rounds=3", "--offsets=50", "--drifts=20", "--late=3:gc:20", trace=data(*TP8)))

    def test_stages(self):
        """Messages between stages are there, and their waiting is not said to be known."""
        self.make("--tp=2", "--pp=3", "--rounds=2", "--offsets=20")
        rows = report("collectives", self.folder, "--group-by=instance").rows
        self.assertEqual({r["wait_ns"] for r in rows if r["kind"] in ("send", "recv")}, {None})
        self.assertEqual(sum(r["kind"] == "send" for r in rows), 2 * 2 * (2 + 2) )

    def test_refused(self):
        trace = jobgen.base(os.path.join(self.tmp, "base.json"))
        for option in ("--late=9:gc:1", "--late=0:sleep:1", "--late=0", "--missing=2-1", "--tp=0", "--what", "--jitter=x"):
            with self.assertRaises(AssertionError, msg=option) as raised:
                jobgen.make(trace, os.path.join(self.tmp, "none"), option)
            self.assertTrue(str(raised.exception).startswith("jobgen: "), option)


if __name__ == "__main__":
    oracle.main()
