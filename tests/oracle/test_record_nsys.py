"""`opscope record --backend=nsys`, with a stand-in for nsys (nsys_stand_in.py) that behaves as its releases do."""
import json
import os
import shutil
import signal
import subprocess
import sys

import nsys_db
import oracle
from recording import RecordCase, python, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))


class Nsys(RecordCase):
    def setUp(self):
        super().setUp()
        tools = os.path.join(self.dir, "tools")
        os.mkdir(tools)
        script = self.write("tools/nsys-stand-in.py", open(os.path.join(HERE, "nsys_stand_in.py")).read())
        self.write("tools/nsys", f"#!/bin/sh\nexec '{sys.executable}' '{script}' \"$@\"\n", 0o755)
        shutil.copy(shutil.which("sleep"), os.path.join(tools, "nsys-agent"))
        self.tools = tools
        self.database = os.path.join(self.dir, "given.sqlite")
        nsys_db.make(self.database, nsys_db.sample())
        self.log = os.path.join(self.dir, "log")
        self.env["PATH"] = tools + ":" + self.env["PATH"]

    def how(self, **how):
        self.env["STAND_IN"] = json.dumps({"database": self.database, "log": self.log, **how})

    def run_nsys(self, *args, status=0, how=None, command=("true",), **kw):
        self.how(**(how or {}))
        return self.record("--backend=nsys", "-o", "out", *args, "--", *command, status=status, **kw)

    def commands(self):
        with open(self.log) as f:
            return [json.loads(line) for line in f]

    def profile_args(self):
        """Of `nsys profile`, without the program."""
        return next(c for c in self.commands() if c[0] == "profile" and c[1] != "--help")[1:]

    def out_files(self):
        return [n for n in self.files("out") if not n.endswith(".run.json")]

    # --- the way it should go

    def test_profile_and_export(self):
        out, err = self.run_nsys(command=["sh", "-c", "echo said"])
        base = os.path.join(os.path.realpath(self.work), "out", "nsys")
        self.assertEqual(self.commands(), [
            ["--version"], ["profile", "--help"],
            ["profile", "-t", "cuda,nvtx,osrt,cudnn,cublas", "-s", "none", "--cpuctxsw=none", "--cuda-graph-trace=node", "-f", "true", "-o", base,
             "sh", "-c", "echo said"],
            ["export", "-t", "sqlite", "-f", "true", "-o", base + ".sqlite", base + ".nsys-rep"]])
        self.assertEqual(self.out_files(), ["nsys.nsys-rep", "nsys.sqlite"])
        self.assertEqual(out.splitlines()[0], "said")
        for text in ("Findings", "recorded in", "out"):
            self.assertIn(text, err)
        self.assertNotIn("Findings", out)
        with open(os.path.join(self.work, "out", "nsys.sqlite"), "rb") as a, open(self.database, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual(self.run_file("out")["backend"], "nsys")
        # the directory is an input like any other
        self.assertEqual(oracle.report("kernels", self.path("out")).rows, oracle.report("kernels", self.database).rows)

    def test_output_is_a_file(self):
        self.how()
        _, err = self.record("--backend=nsys", "-o", "x.opscope", "--", "true")
        self.assertEqual(self.files(), ["x.opscope"])
        self.assertEqual(oracle.report("kernels", self.path("x.opscope")).rows, oracle.report("kernels", self.database).rows)
        self.assertIn("x.opscope", err)
        _, err = self.record("--backend=nsys", "-o", "x.opscope", "--", "true", status=1)
        self.assertIn("x.opscope is there already: --force replaces it", err)
        self.record("--backend=nsys", "-o", "x.opscope", "--force", "--no-report", "--", "true")

    def test_options_of_each_release(self):
        """Only what this nsys has is asked of it, and what it lacks is said."""
        want = {
            2020: (["-t", "cuda,nvtx,osrt", "-s", "cpu", "--cuda-memory-usage=true"], "does not trace cudnn, cublas", "has no --cuda-graph-trace"),
            2022: (["-t", "cuda,nvtx,osrt,cudnn,cublas", "-s", "process-tree", "--cpuctxsw=none", "--cuda-graph-trace=graph", "--cuda-memory-usage=true"],),
        }
        want[2023] = want[2024] = want[2022]
        for release, (options, *said) in want.items():
            with self.subTest(release=release):
                _, err = self.run_nsys("--sample=cpu", "--memory", "--graph=graph", "--force", how={"release": release})
                args = self.profile_args()
                self.assertEqual(args[:args.index("-f")], options)
                for text in said:
                    self.assertIn(text, err)
                self.assertEqual(self.out_files(), ["nsys.qdrep" if release == 2020 else "nsys.nsys-rep", "nsys.sqlite"])
                os.unlink(self.log)

    def test_ranges(self):
        for release, end in ((2020, "--stop-on-range-end=true"), (2022, "--capture-range-end=stop"), (2024, "--capture-range-end=stop")):
            with self.subTest(release=release):
                self.run_nsys("--range=cudaProfilerApi", "--force", how={"release": release}, command=["sh", "-c", "exit 0"])
                args = self.profile_args()
                at = args.index("-c")
                self.assertEqual(args[at:at + 4], ["-c", "cudaProfilerApi", end, "--kill=none"])
                os.unlink(self.log)
        # texts that are not registered match, too; a range means what it does for our own capture
        for asked, told in (("a", "a@*"), ("a@b", "a@b"), ("a@", "a"), ("a@*", "a@*"), ("a\\@b", "a\\@b@*"), ("a\\@b@c\\@d", "a\\@b@c\\@d"), ("a\\*", "a*@*")):
            self.run_nsys("--range=" + asked, "--force")
            args = self.profile_args()
            at = args.index("-c")
            self.assertEqual(args[at:at + 4], ["-c", "nvtx", "-p", told])
            self.assertIn("nsys.sqlite", self.out_files())
            os.unlink(self.log)
        for asked in ("a*", "a*@b", "a@b*"):
            _, err = self.run_nsys("--range=" + asked, "--force", status=2)
            self.assertIn("nsys knows whole texts", err)

    def test_times(self):
        self.run_nsys("--delay=2", "--duration=1.5")
        args = self.profile_args()
        self.assertEqual(args[args.index("-y"):-1], ["-y", "2", "-d", "1.500", "--kill=none"])
        self.assertEqual(args[-1], "true")

    def test_further_options_and_environment(self):
        self.run_nsys("--nsys-options=--trace-fork-before-exec=true -w 'true'", "--env", "A=b c", command=["sh", "-c", 'test "$A" = "b c"'])
        self.assertIn("--trace-fork-before-exec=true", self.profile_args())
        _, err = self.run_nsys("--nsys-options=-o x", "--force", status=2)
        self.assertIn("the output is chosen by --output", err)

    # --- statuses

    def test_status_of_the_program(self):
        for code, status in (("exit 7", 7), ("kill -KILL $$", 137), ("exit 0", 0)):
            _, err = self.run_nsys("--force", command=["sh", "-c", code], status=status)
            self.assertIn("nsys.sqlite", self.out_files())
            self.assertIn("recorded in", err)
            self.assertEqual(self.run_file("out")["status"], status)

    def test_program_is_not_ended_with_duration_or_range(self):
        """nsys' own default would: status 143."""
        for option in ("--duration=1", "--range=cudaProfilerApi", "--range=step"):
            self.run_nsys(option, "--force", command=["sh", "-c", "exit 3"], status=3)
        self.run_nsys("--duration=1", "--kill", "--force", command=["sleep", "1000"], status=143)

    def test_no_such_program(self):
        _, err = self.run_nsys(command=["no-such-program"], status=127)
        self.assertIn("no-such-program: cannot be run: no such program", err)
        self.assertFalse(os.path.exists(self.log))
        self.assertEqual(self.files(), [])

    def test_errors_of_nsys(self):
        _, err = self.run_nsys("--nsys-options=--export-sqlite=true", status=1)
        self.assertIn("unrecognised option '--export-sqlite=true'", err)
        self.assertIn("nsys ended with status 1 and wrote no report", err)
        _, err = self.run_nsys("--nsys-options=-t foo", status=1)
        self.assertIn("Illegal --trace argument 'foo'", err)
        self.assertEqual(self.files(), [])

    def test_broken_nsys(self):
        _, err = self.run_nsys(how={"broken": True}, status=1)
        self.assertIn("ended with status 1: this nsys does not work", err)
        self.assertEqual(self.files(), [])

    def test_no_nsys(self):
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        os.symlink(shutil.which("true"), os.path.join(empty, "true"))
        _, err = self.run_nsys(status=1, env={"PATH": empty})
        self.assertIn("nsys was not found on the PATH", err)
        self.assertEqual(self.files(), [])

    def test_program_broken_by_an_old_nsys(self):
        _, err = self.run_nsys(how={"release": 2020, "breaks_program": True}, status=127)
        self.assertIn("so old an nsys breaks programs on newer systems", err)

    def test_refused(self):
        for option, said in (("--steps=1..2", "nsys cannot choose steps"), ("--max-size=1G", "nsys has no such bound")):
            _, err = self.run_nsys(option, status=2)
            self.assertIn(said, err)
        _, err = self.record("--backend=own", "--nsys-options=-x", "--", "true", status=2)
        self.assertIn("with --backend=nsys only", err)
        self.assertEqual(self.files(), [])

    # --- missing files

    def test_never_triggered(self):
        _, err = self.run_nsys("--range=epoch", how={"never": True}, command=["sh", "-c", "exit 4"], status=4)
        self.assertIn("nsys ended with status 4 and wrote no report", err)
        _, err = self.run_nsys("--range=epoch", how={"never": True})
        self.assertIn("nothing was recorded: the program never entered the range epoch", err)
        _, err = self.run_nsys("--delay=100", how={"early": True})
        self.assertIn("nothing was recorded: the program ended before --delay", err)
        _, err = self.run_nsys(how={"never": True})
        self.assertIn("nsys ended with status 0 and wrote no report", err)
        self.assertEqual(self.files(), [])

    def test_importer_fails(self):
        _, err = self.run_nsys(how={"importer_fails": True})
        self.assertIn("nsys.qdstrm: its importer failed", err)
        self.assertEqual(self.out_files(), ["nsys.qdstrm"])

    def test_export_fails(self):
        _, err = self.run_nsys(how={"export_fails": True})
        self.assertIn("failed with status 1: Export failed: the report is damaged.; the report is kept", err)
        self.assertEqual(self.out_files(), ["nsys-export.log", "nsys.nsys-rep"])
        _, err = self.run_nsys("--force", how={"export_empty": True})
        self.assertIn("failed with status 0: done; the report is kept", err)
        self.assertEqual(self.out_files(), ["nsys-export.log", "nsys.nsys-rep"])
        self.run_nsys("--force")
        self.assertEqual(self.out_files(), ["nsys.nsys-rep", "nsys.sqlite"])

    def test_report_elsewhere(self):
        """A report that could not go where it should is told of, and not taken for ours: another nsys may have left it."""
        old = self.write("tmp/nsys-report-old0.nsys-rep", "old")
        _, err = self.run_nsys(how={"unwritable": True})
        found = [n for n in os.listdir(self.env["TMPDIR"]) if n != os.path.basename(old)]
        self.assertEqual(len(found), 1)
        self.assertIn(f"{os.path.join(self.env['TMPDIR'], found[0])} is new and may be it", err)
        self.assertNotIn("old0", err)

    def test_existing_output(self):
        self.run_nsys()
        before = self.files("out")
        _, err = self.run_nsys(status=1)
        self.assertIn("there are captures already: --force removes them", err)
        self.assertEqual(self.files("out"), before)
        with open(self.path("out", "notes.txt"), "w") as f:
            f.write("mine")
        self.run_nsys("--force", how={"importer_fails": True})
        self.assertEqual(self.out_files(), ["notes.txt", "nsys.qdstrm"])

    def test_files_of_another_nsys(self):
        os.mkdir(self.path("out"))
        with open(self.path("out", "nsys.sqlite"), "w") as f:
            f.write("mine")
        _, err = self.run_nsys("--force", status=1)
        self.assertIn("files of nsys are there that opscope record did not write", err)
        self.assertEqual(self.out_files(), ["nsys.sqlite"])

    # --- what does not end, and signals

    def test_spinning_agent(self):
        """Its agent never ends after the program has: it is ended, the status is kept, and the report is read."""
        _, err = self.run_nsys(how={"release": 2022, "spins": True}, command=["sh", "-c", "exit 5"], status=5, env={"OPSCOPE_NSYS_TIMEOUT": "5"})
        self.assertIn("nsys did not end in 5 s after the program had", err)
        self.assertEqual(self.out_files(), ["nsys.nsys-rep", "nsys.sqlite"])

    def test_agent_left_behind(self):
        self.run_nsys(how={"leaves": True}, env={"OPSCOPE_NSYS_TIMEOUT": "1"})
        agent = os.path.join(self.tools, "nsys-agent")
        for p in os.listdir("/proc"):
            try:
                self.assertNotEqual(p.isdigit() and os.readlink(f"/proc/{p}/exe"), agent)
            except OSError:
                pass

    def test_patience_while_the_program_runs(self):
        """The time-out counts from the program's end: however long it lasts, nothing is ended."""
        marker = self.path("goes-on")
        code = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"
        self.how()
        p = self.start("--backend=nsys", "-o", "out", "--", *python(code, marker), env={"OPSCOPE_NSYS_TIMEOUT": "1"})
        try:
            p.wait(timeout=3.5)  # several time-outs; longer would be as good
        except subprocess.TimeoutExpired:
            pass
        running = p.poll() is None
        open(marker, "w").close()
        p.communicate(timeout=120)
        self.assertTrue(running)

    def test_interrupt_goes_to_nsys(self):
        """Ctrl-C's signal, sent to opscope alone: nsys gets it, ends the program in its own way and writes the report."""
        started, hit = self.path("started"), self.path("hit")
        code = ("import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: open(sys.argv[2], 'w'))\n"
                "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nopen(sys.argv[1], 'w')\nwhile True: time.sleep(0.01)")
        self.how()
        p = self.start("--backend=nsys", "-o", "out", "--", *python(code, started, hit))
        wait_until(lambda: os.path.exists(started), "the program's start")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, 9, err)
        self.assertFalse(os.path.exists(hit))
        self.assertEqual(self.out_files(), ["nsys.nsys-rep", "nsys.sqlite"])


if __name__ == "__main__":
    oracle.main()
