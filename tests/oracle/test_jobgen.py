"""Jobs of bench/jobgen: what is planted is found, and nothing else is said to be there."""
import filecmp
import json
import os
import shutil
import subprocess
import tempfile

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
        """Messages between stages are there, and no waiting is said to be known: nothing compares the clocks of two stages."""
        self.make("--tp=2", "--pp=3", "--rounds=2", "--offsets=20")
        rows = report("collectives", self.folder, "--group-by=instance").rows
        self.assertEqual({r["wait_ns"] for r in rows if r["kind"] == "send_recv"}, {None})
        self.assertEqual(sum(r["kind"] == "send_recv" for r in rows), 2 * 2 * (2 + 2))

    def test_refused(self):
        trace = jobgen.base(os.path.join(self.tmp, "base.json"))
        for option in ("--late=9:gc:1", "--late=0:sleep:1", "--late=0", "--missing=2-1", "--tp=0", "--what", "--jitter=x"):
            with self.assertRaises(AssertionError, msg=option) as raised:
                jobgen.make(trace, os.path.join(self.tmp, "none"), option)
            self.assertTrue(str(raised.exception).startswith("jobgen: "), option)


class Threads(Made):
    """Recordings are read on several threads; what is printed is that of one, byte for byte."""

    def test_same_output(self):
        self.make("--tp=4", "--dp=4", "--rounds=2", "--offsets=50", "--late=5:gc:3", "--missing=3", "--damaged=1,7,13", "--empty=9", "--repeated=12")
        with open(os.path.join(self.folder, "rank9.json"), "w") as f:
            f.write('{"distributedInfo": {"rank": 9, "world_size": 16}, "traceEvents": 17}')
        for args in (("report", "ranks"), ("report", "stragglers"), ("report", "collectives", "--group-by=instance"), ("report", "kernels"), ("report", "kernels", "--rank=all"), ("advise",)):
            said = set()
            for n in (1, 2, 5, 64):
                p = subprocess.run([oracle.OPSCOPE, *args, self.folder, "--notes=full"], capture_output=True, env={**os.environ, "OPSCOPE_THREADS": str(n)})
                said.add((p.returncode, p.stdout, p.stderr))
            self.assertEqual(len(said), 1, args)
            code, out, err = said.pop()
            self.assertEqual(code, 0, err)
            if args == ("report", "ranks"):
                p = subprocess.run([oracle.OPSCOPE, *args, self.folder, "--notes=full"], capture_output=True, env={**os.environ, "OPSCOPE_THREADS": "two"})
                self.assertEqual((p.returncode, p.stdout), (code, out))
                self.assertEqual(p.stderr, b"opscope: OPSCOPE_THREADS=two: a number from 1 on was expected; as many threads read as there are processors\n" + err)
            order = [line.split(b"rank")[1].split(b".json")[0] for line in err.splitlines() if b"ends inside" in line]
            self.assertEqual(order, [b"1", b"7", b"13"], err)
            self.assertIn(b"rank9.json is left out", out)

    def test_none_can_be_read(self):
        """The first by rank says why."""
        for r in range(6):
            with open(os.path.join(self.tmp, f"rank{r}.json"), "w") as f:
                f.write(f'{{"distributedInfo": {{"rank": {r}, "world_size": 6}}, "traceEvents": {r}}}')
        said = {subprocess.run([oracle.OPSCOPE, "report", "ranks", self.tmp], capture_output=True, env={**os.environ, "OPSCOPE_THREADS": str(n)}).stderr for n in (1, 4)}
        err, = said
        self.assertIn(b"rank0.json", err)
        self.assertEqual(err.count(b"\n"), 1)


class Planted(Made):
    """Who was late, and why: each is found (recall), and nobody else is said to be (precision)."""

    def check_late(self, table, late, others_pct=3):
        """`late`: {rank: cause}. What is said with a cause of any other rank is little."""
        rows = table.by("rank")
        waited = sum(r["waited_for_ns"] for r in rows.values())
        for rank, how in late.items():
            cause, column = CAUSES[how]
            self.assertEqual(rows[rank]["cause"], cause, (rank, how))
            self.assertGreater(rows[rank][column] / rows[rank]["waited_for_ns"], 0.7, (rank, how))
            self.assertEqual(rows[rank]["pattern"], "always" if len(late) == 1 else rows[rank]["pattern"])
        self.assertEqual({r["rank"] for r in table.rows[:len(late)]}, set(late))
        for rank, row in rows.items():
            if rank not in late:
                self.assertLess((row["waited_for_ns"] - row["unknown_ns"]) / waited * 100, others_pct, rank)

    def test_8_ranks(self):
        for i, how in enumerate(CAUSES):
            rank = i * 5 % 8
            self.make("--tp=4", "--dp=2", "--rounds=4", "--offsets=50", "--drifts=20", f"--seed={i}", f"--late={rank}:{how}:3")
            self.check_late(steps_report("stragglers", self.folder), {rank: how})

    def test_nobody_is_late(self):
        self.make("--tp=4", "--dp=2", "--rounds=4", "--offsets=50")
        code, out, err = oracle.run("advise", self.folder, "--format=json")
        self.assertEqual((code, b"straggler" in out), (0, False), err)
        self.assertEqual({r["pattern"] for r in steps_report("stragglers", self.folder).rows} - {None}, {"at times"})

    def test_in_turns(self):
        self.make("--tp=4", "--dp=2", "--rounds=8", "--late=turns:gc:3")
        rows = steps_report("stragglers", self.folder).rows
        self.assertEqual({r["pattern"] for r in rows} - {None}, {"at times"})
        known = sum(r["waited_for_ns"] for r in rows)
        self.assertGreater(sum(r["gc_ns"] for r in rows) / known, 0.9)

    def test_64_ranks(self):
        """Two stages of 8 replicas of 4 ranks, of which the second computes longer; a collective holds no more than 8 ranks, and none of both stages."""
        size = ("--tp=4", "--dp=8", "--pp=2", "--rounds=4", "--offsets=50", "--drifts=20", "--stages=1,1.4")
        self.make(*size, "--late=37:slower:3")
        self.check_late(steps_report("stragglers", self.folder), {37: "slower"})
        self.assertIn("ties ranks 32 to 63 to the others", texts(steps_report("ranks", self.folder)))
        self.make(*size, "--late=21:data:4", "--seed=1")
        self.check_late(steps_report("stragglers", self.folder), {21: "data"})

    def test_lost_recordings_of_64_ranks(self):
        """Missing, damaged, empty and repeated ones are each named; of the others all is said."""
        self.make("--tp=4", "--dp=16", "--rounds=4", "--late=37:gc:3", "--missing=3,40-42", "--damaged=7", "--empty=9", "--repeated=12")
        table = steps_report("stragglers", self.folder)
        self.check_late(table, {37: "gc"})
        said = texts(table)
        self.assertIn("missing: 3, 9, 40 to 42.", said)
        self.assertIn("59 of 64 ranks are here", said)
        self.assertIn("1 recording of a rank that another recording is of, too", said)
        self.assertIn("rank9.json is left out: the file is empty", said)
        self.assertIn(b"rank7.json: the input ends inside an event", oracle.run("report", "stragglers", self.folder)[2])

    def test_versions_of_torch(self):
        """One rank by torch 2.2, which names no groups: in a group of all it is found, in others it is said that it is not. Three months between time bases change nothing."""
        line = "rank 3 recorded no names of process groups, which PyTorch up to 2.2 leaves out, and the others did"
        for size, matched in ((("--tp=8",), 8), (("--tp=4", "--dp=2"), 3)):
            self.make(*size, "--rounds=4", "--old=3", "--months=1,6", "--late=5:gc:3")
            table = steps_report("stragglers", self.folder)
            self.check_late(table, {5: "gc"})
            self.assertEqual(texts(table).count(line), 1)
            self.assertIn(matched, {r["ranks"] for r in report("collectives", self.folder, "--group-by=group").rows})
        self.make("--tp=8", "--rounds=4", "--old=0-7", "--late=5:gc:3")
        table = steps_report("stragglers", self.folder)
        self.check_late(table, {5: "gc"})
        self.assertNotIn("recorded no names", texts(table))

    def test_512_ranks(self):
        if not oracle.ALL:
            self.skipTest("512 ranks: tools/nightly whole")
        size = ("--tp=8", "--dp=32", "--pp=2", "--rounds=4", "--offsets=50", "--drifts=20", "--stages=1,1.2")
        for i, how in enumerate(CAUSES):
            rank = i * 73 % 512
            self.make(*size, f"--seed={i}", f"--late={rank}:{how}:3")
            self.check_late(steps_report("stragglers", self.folder), {rank: how})
            shutil.rmtree(self.folder)
        self.make(*size, "--late=100:gc:3", "--missing=3,40-42,511", "--empty=9")
        table = steps_report("stragglers", self.folder)
        self.check_late(table, {100: "gc"})
        self.assertIn("missing: 3, 9, 40 to 42, 511.", texts(table))

    def test_delay_in_a_backward(self):
        """Host timers do not see 0.2 s in one rank's backward: the next all-reduce makes all ranks equally late."""
        truth = self.make("--dp=4", "--late=2:backward:200", "--offsets=50", trace=data("hta", "nccl_parser_config", "nccl_data.json.gz"))
        self.assertEqual(truth["steps"], 3)
        rows = steps_report("ranks", self.folder).by("rank")
        steps = [row["step_ns"] for row in rows.values()]
        self.assertLess(max(steps) - min(steps), 1_000_000)
        first = steps_report("stragglers", self.folder).rows[0]
        self.assertEqual((first["rank"], first["cause"], first["last_count"] > 0), (2, "host", True))
        self.assertGreater(first["share_pct"], 99)
        self.assertAlmostEqual(first["waited_for_ns"], 3 * 3 * 200_000_000, delta=10_000_000)
        self.assertTrue(first["op"].startswith("autograd::engine::evaluate_function"), first["op"])

    def test_recorded_with_stacks(self):
        """The one rank whose host recorded stacks is late for that alone."""
        self.make("--tp=4", "--dp=2", "--rounds=4", "--stacks=5")
        first = steps_report("stragglers", self.folder).rows[0]
        self.assertEqual((first["rank"], first["cause"], first["host_ns"]), (5, "recorded otherwise", 0))
        code, out, err = oracle.run("advise", self.folder, "--format=json", "--fail-on=medium")
        self.assertEqual(code, 0, err)
        row, = [r for r in oracle.Table(json.loads(out)).rows if r["detector"] == "straggler"]
        self.assertEqual(row["severity"], "low")
        self.assertIn("rank 5, which was recorded with more than the others", row["problem"])
        self.make("--tp=4", "--dp=2", "--rounds=4", "--stacks=0-7", "--late=5:host:3")
        self.check_late(steps_report("stragglers", self.folder), {5: "host"})


if __name__ == "__main__":
    oracle.main()
