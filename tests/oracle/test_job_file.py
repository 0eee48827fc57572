"""A job kept in one file by `opscope import DIR -o FILE`: reports of all ranks together, and advice, answer from the file what they answer from the folder."""
import os
import shutil
import sqlite3
import tempfile

import jobs
import oracle
from oracle import Case, data
from served import Server

TOGETHER = [["ranks"], ["ranks", "--align=none"], ["ranks", "--steps=2"], ["collectives"], ["collectives", "--group-by=instance"], ["collectives", "--group-by=kind", "--steps=2"],
            ["overlap"], ["stragglers"], ["phases"], ["traffic"]]


class JobFile(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.folder = os.path.join(self.tmp, "ranks")
        os.mkdir(self.folder)
        self.file = os.path.join(self.tmp, "job.opscope")

    def make(self, folder=None, **how):
        """A small job with a straggler and clocks that differ, kept."""
        if folder is None:
            jobs.Job(steps=4, late=lambda rank, step, part: 900_000 * (rank == 2 and part == 0), **how).write(self.folder, {1: (40_000_000, 0.0), 3: (-7_000_000, 0.0)})
        self.assertEqual(oracle.run("import", folder or self.folder, "-o", self.file)[0], 0)

    def assert_same(self, folder=None):
        folder = folder or self.folder
        for words in TOGETHER[-3:] + [None] if oracle.SANITIZED else TOGETHER + [None]:
            for form in ("csv",) if oracle.SANITIZED else ("text", "csv"):
                of = (lambda path: ["advise", path, f"--format={form}"]) if words is None else (lambda path: ["report", *words, path, f"--format={form}"])
                want, got = oracle.run(*of(folder)), oracle.run(*of(self.file))
                self.assertEqual(got, want, words)
        self.assertEqual(oracle.run(self.file), oracle.run(folder))


class Kept(JobFile):
    def test_a_planted_job(self):
        self.make()
        self.assert_same()
        rows = oracle.steps_report("stragglers", self.file).rows
        self.assertEqual((rows[0]["rank"], rows[0]["cause"]), (2, "slower device"))

    def test_without_sequence_numbers_and_members(self):
        self.make(seq=False, ranks_listed=False)
        self.assert_same()

    def test_some_of_the_ranks(self):
        self.make()
        for report in ("ranks", "collectives", "stragglers"):
            for form in ("text", "csv"):
                want = oracle.run("report", report, self.folder, "--rank=0,2..3", f"--format={form}")
                self.assertEqual(want[0], 0)
                self.assertEqual(oracle.run("report", report, self.file, "--rank=0,2..3", f"--format={form}"), want)

    def test_real_ranks(self):
        self.make(data("multirank", "megatron_a100_tp8"))
        self.assert_same(data("multirank", "megatron_a100_tp8"))

    def test_ends_that_do_not_coincide(self):
        self.make(data("multirank", "hta_trace_filter"))
        self.assert_same(data("multirank", "hta_trace_filter"))

    def test_missing_and_damaged_ranks_are_named_as_ever(self):
        jobs.Job(tp=4, dp=2).write(self.folder, ranks=[0, 1, 2, 4, 5, 6, 7], name="rank{}.json.gz")
        with open(os.path.join(self.folder, "rank3.json"), "w") as f:
            f.write('{"distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": 7')
        self.make(self.folder)
        self.assert_same()

    def test_a_file_of_a_file(self):
        self.make()
        again = os.path.join(self.tmp, "again.opscope")
        self.assertEqual(oracle.run("import", self.file, "-o", again)[0], 0)
        self.file = again
        self.assert_same()

    def test_it_may_lie_beside_the_ranks(self):
        """The file in the folder is none of the ranks, and is replaced by the next import."""
        self.make()
        want = oracle.run("report", "ranks", self.folder)
        inside = os.path.join(self.folder, "job.opscope")
        for _ in range(2):
            self.assertEqual(oracle.run("import", self.folder, "-o", inside)[0], 0)
            self.assertEqual(oracle.run("report", "ranks", self.folder), want)

    def test_the_viewer_shows_it(self):
        """The page Job asks for these; a timeline needs the recordings."""
        self.make()
        server = Server(self, self.file)
        self.assertEqual([r["rank"] for r in server.get("/api/job")["ranks"]], [0, 1, 2, 3])
        want = oracle.report("stragglers", self.folder).rows
        got = oracle.Table(server.get("/api/job/report/stragglers")).rows
        self.assertEqual(got, want)
        self.assertEqual(server.get("/api/job/steps")["steps"], [0, 1, 2, 3])
        self.assertIn("give the folder of the ranks", server.get("/api/job/timeline", status=422)["error"])

    def test_same_input_same_bytes(self):
        self.make()
        with open(self.file, "rb") as f:
            before = f.read()
        self.make(self.folder)
        with open(self.file, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_ranks_that_were_imported_one_by_one(self):
        """A folder of .opscope files, one a rank, answers as the recordings do; so does the file of these."""
        jobs.Job(tp=4, dp=2).write(self.folder)
        singles = os.path.join(self.tmp, "singles")
        os.mkdir(singles)
        for name in sorted(os.listdir(self.folder)):
            self.assertEqual(oracle.run("import", os.path.join(self.folder, name), "-o", os.path.join(singles, name.split(".")[0] + ".opscope"))[0], 0)
        for report in ("ranks", "collectives", "stragglers"):
            self.assertEqual(oracle.run("report", report, singles, "--format=csv"), oracle.run("report", report, self.folder, "--format=csv"))
        self.make(singles)
        self.assert_same(singles)


class Refused(JobFile):
    def one_line(self, *args, status):
        code, out, err = oracle.run(*args)
        self.assertEqual((code, out, err.count(b"\n")), (status, b"", 1), (args, err))
        return err.decode()

    def test_what_it_does_not_hold(self):
        self.make()
        for args in (["report", "kernels", self.file], ["report", "kernels", self.file, "--rank=all"], ["report", "ranks", self.file, "--rank=1"], ["info", self.file],
                     ["export", "chrome", self.file, "-o", os.path.join(self.tmp, "out.json")], ["sql", self.file, "SELECT 1"], ["report", "stragglers", self.file, "--steps=1"],
                     ["advise", self.file, "--steps=1"], ["report", "ranks", self.file, "--gpu=H100"]):
            self.assertIn("give the folder", self.one_line(*args, status=2), args)

    def test_ranks_that_it_does_not_hold(self):
        self.make()
        self.assertIn("no recording is of a rank that --rank asks for", self.one_line("report", "ranks", self.file, "--rank=77,90..95", status=2))

    def test_other_versions(self):
        self.make()
        db = sqlite3.connect(self.file)
        db.execute("PRAGMA user_version=9")
        db.close()
        self.assertIn("file version 9", self.one_line("report", "ranks", self.file, status=1))

    def test_a_piece_that_was_changed(self):
        self.make()
        db = sqlite3.connect(self.file)
        db.execute("UPDATE job_piece SET data=substr(data, 1, 100) WHERE id=2")
        db.commit()
        db.close()
        code, out, err = oracle.run("report", "ranks", self.file)
        self.assertEqual((code, err), (0, b""))
        self.assertIn(b"does not match its checksum", out)

    def test_damage_anywhere(self):
        self.make()
        with open(self.file, "rb") as f:
            good = f.read()
        step = 977 if oracle.SANITIZED else 331
        for at in range(0, len(good), step):
            for bad in (good[:at], good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:]):
                with open(self.file, "wb") as f:
                    f.write(bad)
                code, out, err = oracle.run("report", "ranks", self.file)
                self.assertIn(code, (0, 1), at)
                self.assertEqual(bool(out), code == 0, at)

    def test_no_file_where_no_rank_can_be_read(self):
        for rank in (0, 1):
            with open(os.path.join(self.folder, f"rank{rank}.json"), "w") as f:
                f.write('{"distributedInfo": {"rank": %d, "world_size": 2}, "traceEvents": 7' % rank)
        code, out, err = oracle.run("import", self.folder, "-o", self.file)
        self.assertEqual((code, out), (1, b""))
        self.assertFalse(os.path.exists(self.file))

    def test_a_rank_is_not_overwritten(self):
        self.make()
        rank = os.path.join(self.folder, sorted(os.listdir(self.folder))[0])
        self.one_line("import", self.folder, "-o", rank, status=2)


if __name__ == "__main__":
    oracle.main()
