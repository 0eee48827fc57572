"""A folder with the ranks of one job is a job: exact against the program; and what is no job is what it was."""
import json
import os
import shutil
import tempfile
import unittest

from support import RESNET, csv, oracle
import opscope

# Reports of all ranks together, of each rank joined, and a predecessor's.
REPORTS = ("ranks", "collectives", "stragglers", "overlap", "traffic", "kernels", "operators", "overview", "steps")


def two_ranks(case, names=("rank0.json", "rank1.json")):
    """A folder with traces of two ranks, whose names say so."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    for name in names:
        os.makedirs(os.path.dirname(os.path.join(folder.name, name)), exist_ok=True)
        shutil.copy(oracle.synthetic("communication"), os.path.join(folder.name, name))
    return folder.name


class Jobs(oracle.Case):
    def check_reports(self, job, path, names):
        for name in names:
            code, out, err = oracle.run("report", name, path, "--format=json")
            if code:
                with self.assertRaises(opscope.Error) as caught:
                    job.report(name)
                self.assertEqual(f"opscope: {caught.exception}\n", err.decode())
            else:
                self.assertEqual(job.report(name).to_json(), out.decode(), name)

    def test_small(self):
        folder = two_ranks(self)
        job = opscope.load(folder)
        self.assertIsInstance(job, opscope.Job)
        self.assertEqual((len(job), list(job.ranks), job.kept, job.path), (2, [0, 1], False, folder))
        self.assertEqual([(f.rank, os.path.basename(f.path)) for f in job.recordings], [(0, "rank0.json"), (1, "rank1.json")])
        self.check_reports(job, folder, REPORTS)
        self.assertEqual(job.advise().to_csv(), csv("advise", folder))
        self.assertEqual(opscope.advise(folder).to_csv(), csv("advise", folder))
        self.assertEqual(opscope.advise(job).to_csv(), csv("advise", folder))
        self.assertEqual(job.report.kernels(rank="all", sort="name").to_csv(), csv("report", "kernels", folder, "--rank=all", "--sort=name"))
        self.assertIn("2 ranks", repr(job))
        self.assertTrue({"report", "ranks"} <= set(vars(job)))  # see test_frames.py

    def test_of_eight_ranks(self):
        path = oracle.data("multirank", "megatron_a100_tp8")
        told = []
        job = opscope.load(path, progress=lambda done, total: told.append((done, total)))
        self.assertEqual(told, [])  # nothing has been read
        self.check_reports(job, path, ("ranks", "collectives", "stragglers", "kernels"))
        size = sum(os.path.getsize(f.path) for f in job.recordings)
        self.assertEqual(told[7], (size, size))
        self.assertEqual(len(told), 8 * 4)
        self.assertEqual(job.advise().to_json(), oracle.run("advise", path, "--format=json")[1].decode())

    def test_ranks(self):
        job = opscope.load(two_ranks(self))
        with job:
            trace = job.ranks[1]
            self.assertIs(job.ranks[1], trace)
            self.assertEqual(trace.path, job.recordings[1].path)
            self.assertEqual(trace.report("kernels").to_csv(), csv("report", "kernels", trace.path))
            self.assertEqual([t.n_events for t in job.ranks.values()], [trace.n_events] * 2)
            with self.assertRaisesRegex(KeyError, "no rank 7; there are: 0, 1"):
                job.ranks[7]
            self.assertNotIn(7, job.ranks)
        self.assertTrue(trace.closed)
        self.assertFalse(job.ranks[1].closed)
        self.assertIn("ranks 0, 1", repr(job.ranks))

    def test_several_recordings_of_a_rank(self):
        folder = two_ranks(self, ("a_rank0.json", "b_rank0.json", "a_rank1.json", "b_rank1.json"))
        job = opscope.load(folder)
        self.assertEqual((len(job), [os.path.basename(f.path) for f in job.recordings]), (2, ["a_rank0.json", "b_rank0.json", "a_rank1.json", "b_rank1.json"]))
        with self.assertRaisesRegex(opscope.Error, "rank 0 has 2 recordings.*a_rank0"):
            job.ranks[0]
        self.check_reports(job, folder, ("kernels", "ranks"))

    def test_kept_in_one_file(self):
        folder = two_ranks(self)
        file = os.path.join(folder, "job.opscope")
        self.assertEqual(oracle.run("import", folder, "-o", file)[0], 0)
        job = opscope.load(file)
        self.assertTrue(job.kept)
        self.check_reports(job, file, ("ranks", "collectives", "stragglers", "kernels"))
        self.assertEqual(job.advise().to_csv(), csv("advise", file))
        with self.assertRaisesRegex(opscope.Error, "no recordings"):
            job.ranks[0]
        with self.assertRaisesRegex(opscope.Error, "keeps no recordings"):
            opscope.load(file, gpu="H100 SXM")

    def test_no_job(self):
        """One trace, several that no rank tells apart, one that is chosen."""
        folder = two_ranks(self)
        self.assertIsInstance(opscope.load(folder, rank=1), opscope.Trace)
        self.assertIsInstance(opscope.load(RESNET), opscope.Trace)
        other = two_ranks(self, ("run1.json", "run2.json"))
        with self.assertRaisesRegex(opscope.Error, "2 traces where one was expected"):
            opscope.load(other)
        with self.assertRaisesRegex(opscope.Error, "no traces"), tempfile.TemporaryDirectory() as empty:
            opscope.load(empty)
        with self.assertRaisesRegex(opscope.Error, "two traces or two jobs"):
            opscope.diff(folder, RESNET)

    def test_options(self):
        folder = two_ranks(self)
        job, gpu = opscope.load(folder, gpu="H100 80GB HBM3"), "--gpu=H100 80GB HBM3"
        self.assertEqual(job.report("devices", steps="all").to_csv(), csv("report", "devices", folder, gpu, "--steps=all"))
        self.assertEqual(job.ranks[0].report("devices").to_csv(), csv("report", "devices", job.recordings[0].path, gpu))
        for ask, code in ((lambda: job.report("no-such"), "usage"), (lambda: job.report("kernels", rank=1), "usage"), (lambda: job.report("kernels", group_by="no-such"), "usage"),
                          (lambda: job.report("kernels", sort="no-such"), "usage"), (lambda: job.advise(device=0), "usage"), (lambda: job.advise(rank="all"), "usage"),
                          (lambda: opscope.load(folder, no_such=1), "usage"), (lambda: job.report("attention"), "lacks")):
            with self.assertRaises(opscope.Error) as caught:
                ask()
            self.assertEqual(caught.exception.code, code, str(caught.exception))
        with self.assertRaises(FileNotFoundError):
            opscope.load(os.path.join(folder, "gone"))

    def test_diff(self):
        path = oracle.data("multirank", "megatron_a100_tp8")
        other = tempfile.TemporaryDirectory()
        self.addCleanup(other.cleanup)
        for rank in (0, 1, 2, 3):
            os.symlink(os.path.join(path, f"megatron_kineto_{rank}.json.gz"), os.path.join(other.name, f"megatron_kineto_{rank}.json.gz"))
        for ask in ({}, {"by": "kernel", "limit": 3}, {"force": True, "sort": "-change_ns"}):
            options = [f"--{k}" if v is True else f"--{k}={v}" for k, v in ask.items()]
            code, out, err = oracle.run("diff", path, other.name, *options, "--format=json")
            if code:
                with self.assertRaises(opscope.Error) as caught:
                    opscope.diff(path, other.name, **ask)
                self.assertEqual(err.decode(), f"opscope: {caught.exception}\n")
            else:
                self.assertEqual(json.loads(opscope.diff(path, other.name, **ask).to_json())["rows"], json.loads(out)["rows"])

    def test_a_damaged_recording(self):
        folder = two_ranks(self, ("rank0.json", "rank1.json", "rank2.json", "rank3.json"))
        with open(os.path.join(folder, "rank2.json"), "w") as f:
            f.write('{"traceEvents": [')
        open(os.path.join(folder, "rank3.json"), "w").close()
        job = opscope.load(folder)
        self.check_reports(job, folder, ("ranks", "kernels"))
        self.assertIn("rank3.json", " ".join(job.report("ranks").notes))

    def test_what_a_function_raises(self):
        def stop(done, total):
            raise KeyError("enough")

        job = opscope.load(two_ranks(self), progress=stop)
        for ask in (lambda: job.report("kernels"), job.advise):
            with self.assertRaisesRegex(KeyError, "enough"):
                ask()

    def test_threads(self):
        import threading

        job, got = opscope.load(two_ranks(self)), []
        threads = [threading.Thread(target=lambda: got.append(job.report("ranks").to_csv())) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, [got[0]] * 4)

    def test_shown(self):
        folder = two_ranks(self, tuple(f"<img src=x>/rank{i}.json" for i in range(12)))
        html = opscope.load(folder)._repr_html_()
        self.assertNotIn("<img", html)
        self.assertIn("&lt;img src=x&gt;", html)
        self.assertIn("4 more", html)
        self.assertNotIn("<script", html)
        json.dumps(html)


if __name__ == "__main__":
    oracle.main()
