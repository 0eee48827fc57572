"""`opscope gate`: runs that are like the accepted ones pass, worse ones fail, and what cannot be told is not."""
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as xml

import oracle
from oracle import Case, data
from test_diff import H200, Run, layer

SIM = os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build")), "tests", "gate_sim")


def simulated(series, accepted, slower, trials):
    """{"fail": % of trials, "undecided": %, "least": % that the gate says it finds}"""
    p = subprocess.run([oracle.built(SIM, "OPSCOPE_BUILD"), *map(str, (accepted, len(series), slower, trials))], input="\n".join(map(str, series)), capture_output=True, text=True, check=True)
    return {k: float(v) for k, v in re.findall(r"(\w+) ([\d.]+)", p.stdout)}


class Simulated(Case):
    """10,000 runs for each series of real steps, drawn in blocks."""

    def series(self):
        with open(data("multirank", "straggler_AR", "result-AR.json")) as f:
            job = json.load(f)
        found = {name: [1e9 * v for _, v in sorted(job[name].items(), key=lambda x: int(x[0]))] for name in ("step_t_base", "step_t_nodelay")}
        for name, path in (("poolformer", ("nsys", "tensorrt_poolformer", "poolformer.sqlite")), ("power iteration", ("nsys", "2025.3_nsightful_t4", "power_iteration__baseline.sqlite")),
                           ("resnet50, 0 workers", ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")),
                           ("resnet50, 4 workers", ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz"))):
            found[name] = [r["total_ns"] for r in oracle.steps_report("steps", data(*path)).rows]
        return found

    def test_alarms(self):
        print("# series                 accepted  false alarms %  3 % slower: fail %  undecided %  passes %  least seen %")
        caught = 0
        for name, series in self.series().items():
            trials = 10000 if oracle.ALL else 1000
            for accepted in (3, 5, 10, 20):
                same, slower = simulated(series, accepted, 0, trials), simulated(series, accepted, 3, trials // 10)
                passes = abs(100 - slower["fail"] - slower["undecided"])
                print(f"# {name:24}{accepted:8}{same['fail']:16.2f}{slower['fail']:20.1f}{slower['undecided']:13.1f}{passes:10.1f}{slower['least']:14.2f}")
                with self.subTest(series=name, accepted=accepted):
                    self.assertLess(same["fail"], 1)
                    if name.startswith("step_t"):  # steps scatter by half a percent
                        self.assertGreaterEqual(slower["fail"], 95)
                        caught += 1
                    elif slower["fail"] < 50 and accepted >= 10:  # what it cannot find, it says that it cannot
                        self.assertGreater(slower["least"], 3)
        self.assertEqual(caught, 8)


class Gate(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        self.file = os.path.join(self.tmp, "gate.txt")
        self.random = random.Random(3)
        self.n = 0

    def run_of(self, scale=1.0, scatter=0.003, **more):
        """A recording of a training, whose kernels take `scale` times their time, give or take."""
        self.n += 1
        path = os.path.join(self.tmp, f"run{self.n}.json")
        doc = Run(layer(6, 500 * scale * (1 + self.random.gauss(0, scatter)), 100 * scale), steps=8, jitter=[self.random.randrange(1, 20) for _ in range(8)], **more).doc
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        return path

    def gate(self, *args, status=0):
        code, out, err = oracle.run("gate", *args)
        self.assertEqual(code, status, (args, out[-500:], err))
        return out.decode(), err.decode()

    def learn(self, n=6, *args, **more):
        runs = [self.run_of(**more) for _ in range(n)]
        self.gate("learn", *runs, "-o", self.file, *args)
        return runs

    def check(self, *runs, status=0, args=()):
        out, _ = self.gate("check", *runs, "--baseline=" + self.file, "--format=json", *args, status=status)
        doc = json.loads(out)
        sections = {s["name"]: oracle.Table(s) for s in doc["sections"]}
        return sections["decision"].rows[0]["decision"], oracle.Table(doc), sections

    def test_pass_and_fail(self):
        self.learn()
        decision, table, sections = self.check(self.run_of())
        self.assertRegex(decision, r"^pass: step time 3\.\d ms -> 3\.\d ms \([+-]0\.\d %\); a change of [2-4]\.\d % would have been seen$")
        self.assertEqual({r["verdict"] for r in table.rows}, {"pass"})
        self.assertNotIn("diff", sections)
        decision, table, sections = self.check(self.run_of(1.05), status=3)
        self.assertRegex(decision, r"^fail: step time 3\.\d ms -> 3\.\d ms \(\+[45]\.\d %; fails from \+2\.\d %\)$")
        row = table.by("id")["step_ns"]
        self.assertAlmostEqual(row["change_pct"], 100 * (row["value"] / row["accepted_value"] - 1), places=6)
        self.assertEqual([r["id"] for r in table.rows if r["verdict"] == "fail"], ["step_ns"])
        # it is taken apart: the kernels that take longer, not the idle time
        self.assertEqual([(r["name"], r["label"]) for r in sections["diff"].rows[:2]], [("/linear", "slower"), ("/layer_norm", "slower")])
        self.assertFalse([s for s in sections if "verdict" in s])  # that of the steps would stand beside that of the runs

    def test_faster_passes(self):
        self.learn()
        decision, _, _ = self.check(self.run_of(0.9))
        self.assertIn("(-", decision)

    def test_too_few_runs(self):
        for n in (1, 2):
            self.learn(n)
            decision, table, _ = self.check(self.run_of(1.5), status=4)
            self.assertIn(f"{n} accepted run{'s' if n > 1 else ''}, at least 3 are needed", decision)
            self.assertEqual({r["verdict"] for r in table.rows if r["id"] == "step_ns"}, {"undecided"})

    def test_two_accepted_runs_fail_nothing(self):
        """Neither against themselves nor against the anchor that one of them is."""
        self.learn(1)
        self.gate("learn", self.run_of(), "--baseline=" + self.file, "-o", self.file)
        self.check(self.run_of(3), status=4)

    def test_order_of_facts(self):
        """Steps that were chosen are part of the configuration; what the user states goes before what the recording does."""
        self.learn(3, "--steps=2..5", "--key=GPU=mine")
        with open(self.file) as f:
            self.assertIn("  GPU: mine\n", f.read())
        self.check(self.run_of(), args=["--steps=2..5", "--key=GPU=mine"])
        _, err = self.gate("check", self.run_of(), "--baseline=" + self.file, "--key=GPU=mine", status=4)
        self.assertIn("steps is not stated, in the gate 2..5", err)

    def test_scatter_hides_a_change(self):
        self.learn(5, scatter=0.05)
        decision, table, _ = self.check(self.run_of(1.06, scatter=0), status=4)
        row = table.by("id")["step_ns"]
        self.assertEqual(row["verdict"], "undecided")
        self.assertGreater(row["fails_from_pct"], row["change_pct"])
        self.assertIn("accepted runs may differ as much", decision)

    def test_small_changes_do_not_matter(self):
        self.learn(scatter=0)
        slower = self.run_of(1.015, scatter=0)
        self.assertTrue(self.check(slower)[0].startswith("pass"))
        self.check(slower, status=3, args=["--threshold=0.5"])

    def test_several_runs(self):
        self.learn(5, scatter=0.01)
        one, three = (self.check(*[self.run_of() for _ in range(k)])[1].by("id")["step_ns"] for k in (1, 3))
        self.assertLess(three["least_pct"], one["least_pct"])

    def test_creep(self):
        """Each run is 0.4 % slower than the one before, and accepted: the anchors see it."""
        self.learn(5, scatter=0.001)
        for i in range(1, 12):
            path = self.run_of(1 + 0.004 * i, scatter=0.001)
            out, _, _ = self.check(path, status=3) if i == 11 else (None, None, None)
            if i < 11:
                self.gate("learn", path, "--baseline=" + self.file, "-o", self.file)
        self.assertIn("against the anchors", out)
        table, _ = self.gate("learn", self.run_of(1.05, scatter=0.001), "--baseline=" + self.file, "-o", self.file)
        self.assertRegex(table, r"accepted runs drift: step time rises by \d\.\d %")
        # a change that was meant: anchored anew
        runs = [self.run_of(1.044, scatter=0.001) for _ in range(4)]
        self.gate("learn", *runs, "--anchor", "--baseline=" + self.file, "-o", self.file)
        with open(self.file) as f:
            text = f.read()
        self.assertEqual((text.count("\nanchor "), text.count("\nrun ")), (4, 16))
        self.assertTrue(self.check(self.run_of(1.044, scatter=0.001))[0].startswith("pass"))
        self.assertNotIn("drift", self.gate("learn", self.run_of(1.044, scatter=0.001), "--baseline=" + self.file, "-o", self.file)[0])

    def test_a_failed_run_is_not_learned_in_silence(self):
        self.learn()
        bad, good = self.run_of(1.1), self.run_of()
        out, err = self.gate("learn", good, bad, "--baseline=" + self.file, "-o", self.file)
        said = [n for n in (out + err).splitlines() if "would not have passed" in n]
        self.assertEqual(len(said), 1, out + err)
        self.assertIn(f"{bad} is learned although it would not have passed: fail: step time ", said[0])
        out, err = self.gate("learn", self.run_of(1.2), "--anchor", "--baseline=" + self.file, "-o", self.file)
        self.assertNotIn("would not have passed", out + err)

    def test_configurations(self):
        self.learn()
        with open(self.run_of()) as f:
            doc = json.load(f)
        doc["deviceProperties"][0]["name"] = "Tesla T4"
        other = os.path.join(self.tmp, "t4.json")
        with open(other, "w") as f:
            f.write(json.dumps(doc))
        _, err = self.gate("check", other, "--baseline=" + self.file, status=4)
        self.assertEqual(err, f"opscope: {other}: undecided, because no run of this configuration was accepted: GPU is Tesla T4, in the gate NVIDIA A100-SXM4-80GB\n")
        _, err = self.gate("check", self.run_of(), "--baseline=" + self.file, "--key=machine=b", status=4)
        self.assertIn("machine is b, in the gate not stated", err)
        self.gate("learn", other, "--baseline=" + self.file, "-o", self.file)
        with open(self.file) as f:
            text = f.read()
        self.assertEqual((text.count("configuration\n"), text.count("\nanchor ")), (2, 7))
        self.check(self.run_of())

    def test_chosen_ops(self):
        self.learn(5, "--op=aten::layer_norm", "--op=linear")
        _, table, _ = self.check(self.run_of())
        rows = table.by("id")
        self.assertAlmostEqual(rows["op:aten::layer_norm"]["value"], 600e3, delta=1)
        self.assertAlmostEqual(rows["op:linear"]["value"], 3000e3, delta=60e3)
        self.assertAlmostEqual(rows["kernels"]["value"], 12.75, delta=0.26)  # and one behind the sleep, which may be of the next step

    def test_an_op_is_chosen_later(self):
        self.learn(4)
        runs = [self.run_of() for _ in range(3)]
        self.gate("learn", *runs, "--op=linear", "--baseline=" + self.file, "-o", self.file)
        self.assertEqual([r["runs"] for r in self.check(self.run_of())[1].rows if r["id"] == "op:linear"], [3])

    def test_odd_options(self):
        """An op twice is one metric; one that no run has is told; recordings are not replaced; a run without steps is no matter of configurations."""
        runs = self.learn(3, "--op=linear", "--op=linear")
        out, _ = self.gate("learn", self.run_of(), "--op=nosuchop", "--baseline=" + self.file, "-o", self.file)
        self.assertIn("no run has the op nosuchop", out)
        self.check(self.run_of())
        slow = self.run_of(1.05)
        for option in ("-o", "--junit="):
            _, err = self.gate("check", slow, "--baseline=" + self.file, "--against=" + runs[0], *([option, runs[0]] if option == "-o" else [option + runs[0]]), status=2)
            self.assertIn("is the input", err)
        here = os.path.join(self.tmp, "x.txt")
        self.gate("check", slow, "--baseline=" + self.file, "-o", here, "--junit=" + os.path.join(self.tmp, ".", "x.txt"), status=2)
        _, err = self.gate("check", oracle.synthetic("lightning"), "--baseline=" + self.file, status=1)
        self.assertIn("no steps were found", err)
        empty = os.path.join(self.tmp, "empty.json")
        with open(empty, "w") as f:
            f.write('{"traceEvents":[]}')
        for args in (["learn", empty, "-o", here], ["check", empty, "--baseline=" + self.file]):
            _, err = self.gate(*args, status=1)
            self.assertIn("no events that could be compared", err)
        for wrong in ("--false-alarms=1e-323", "--key=batch=", "--key=steps=3"):
            self.gate("check", slow, "--baseline=" + self.file, wrong, status=2)

    def test_copies(self):
        runs = self.learn(3)
        _, err = self.gate("learn", runs[0], "--baseline=" + self.file, "-o", self.file, status=1)
        self.assertIn("one is a copy of the other", err)
        self.assertEqual(err.count("\n"), 1)

    def test_without_steps(self):
        with open(self.run_of()) as f:
            doc = json.load(f)
        doc["traceEvents"] = [e for e in doc["traceEvents"] if not e["name"].startswith("ProfilerStep")]
        path = os.path.join(self.tmp, "none.json")
        with open(path, "w") as f:
            f.write(json.dumps(doc))
        _, err = self.gate("learn", path, "-o", self.file, status=1)
        self.assertIn("no steps were found", err)
        self.assertFalse(os.path.exists(self.file))

    def test_where_ci_looks(self):
        self.learn()
        junit, summary = os.path.join(self.tmp, "gate.xml"), os.path.join(self.tmp, "summary.md")
        os.environ["GITHUB_STEP_SUMMARY"] = summary
        self.addCleanup(os.environ.pop, "GITHUB_STEP_SUMMARY")
        out, _ = self.gate("check", self.run_of(1.05), "--baseline=" + self.file, "--junit=" + junit, "--github", status=3)
        self.assertRegex(out, r"(?m)^::error title=opscope gate::fail: step time 3\.\d ms -> 3\.\d ms \(\+\d\.\d %25; fails from \+\d\.\d %25\)$")
        suite = xml.parse(junit).getroot().find("testsuite")
        self.assertEqual((suite.get("failures"), suite.get("skipped")), ("1", "0"))
        self.assertEqual([c.get("name") for c in suite if c.find("failure") is not None], ["step_ns"])
        with open(summary) as f:
            text = f.read()
        self.assertIn("fail: step time", text)
        self.assertIn("| step time | fail |", text)
        self.assertIn("#### What changed from an accepted run (A) to this one (B)", text)

    def test_action(self):
        """The script of integrations/github, with the environment that action.yml gives it."""
        self.learn()
        script = os.path.join(oracle.ROOT, "integrations", "github", "gate.sh")
        with open(os.path.join(os.path.dirname(script), "action.yml")) as f:
            given = set(re.findall(r"^ +([A-Z_]+): \$\{\{ inputs", f.read(), re.M))
        with open(script) as f:
            self.assertEqual(given, set(re.findall(r"^#   ([A-Z_]+) ", f.read(), re.M)))
        said = os.path.join(self.tmp, "output")
        for scale, undecided, verdict, want in ((1, "pass", "pass", 0), (1.05, "pass", "fail", 3), (None, "pass", "undecided", 0), (None, "fail", "undecided", 4), ("no", "pass", "error", 1)):
            path = self.run_of(scale or 1) if scale != "no" else os.path.join(self.tmp, "no.json")
            options = "--threshold=1.5\n" + ("--key=machine=b\n" if scale is None else "")
            env = {**os.environ, "GATE_RUNS": path + "\n", "GATE_BASELINE": self.file, "GATE_OPTIONS": options, "GATE_UNDECIDED": undecided, "GATE_JUNIT": "", "OPSCOPE": oracle.OPSCOPE, "GITHUB_OUTPUT": said}
            p = subprocess.run([script], env=env, capture_output=True, text=True)
            self.assertEqual(p.returncode, want, p.stdout + p.stderr)
            with open(said) as f:
                self.assertEqual(f.read(), f"verdict={verdict}\n")
            os.unlink(said)

    def test_undecided_is_told(self):
        self.learn()
        junit = os.path.join(self.tmp, "gate.xml")
        out, err = self.gate("check", self.run_of(), "--baseline=" + self.file, "--key=machine=b", "--junit=" + junit, "--github", status=4)
        self.assertRegex(out, r"^::warning title=opscope gate::.*machine is b")
        case, = xml.parse(junit).getroot().iter("testcase")
        self.assertIn("machine is b", case.find("skipped").get("message"))

    def test_against(self):
        runs = self.learn()
        for r in runs:
            os.unlink(r)
        slower = self.run_of(1.05)
        _, table, sections = self.check(slower, status=3)
        self.assertNotIn("diff", sections)
        self.assertIn("--against=RUN", " ".join(table.notes))
        _, _, sections = self.check(slower, status=3, args=["--against=" + self.run_of()])
        self.assertIn("diff", sections)

    def test_real_runs(self):
        """Recordings from a GPU of ours, of eager ResNet steps: measured as `diff` measures them."""
        for name in sorted(os.listdir(H200)):
            if not name.endswith(".json.gz"):
                continue
            path = os.path.join(H200, name)
            code, out, err = oracle.run("gate", "learn", path, "-o", self.file, "--format=json")
            if code:
                self.assertIn(b"no steps were found", err)
                continue
            rows = oracle.Table(json.loads(out)).by("id")
            parts = oracle.Table(json.loads(oracle.run("diff", path, path, "--format=json")[1])).section("verdict").rows[0]
            self.assertGreater(rows["step_ns"]["value"], 0)
            self.assertLess(abs(rows["step_ns"]["value"] / parts["a_step_ns"] - 1), 0.5)

    def test_wrong_usage(self):
        run = self.run_of()
        for args, word in ((["x", run], "learn or check"), (["learn"], "at least one RUN"), (["learn", run], "-o FILE"), (["check", run], "--baseline=FILE"),
                           (["check", run, "--baseline=" + self.file, "--op=x"], "--op"), (["learn", run, "-o", self.file, "--threshold=0"], "--threshold"),
                           (["learn", run, "-o", self.file, "--key=x"], "NAME=VALUE"), (["learn", run, "-o", run], "input"),
                           (["check", run, "--baseline=" + self.file, "-o", self.file], "input"), (["learn", run, "-o", self.file, "--key=a=1", "--key=a=2"], "another value"),
                           (["check", run, "--baseline=" + self.file, "--github", "--format=json"], "--github"), (["check", run, "--baseline=" + self.file, "-o", "x.bin"], ".md")):
            if "--baseline=" + self.file in args and not os.path.exists(self.file):
                self.gate("learn", run, "-o", self.file)
            _, err = self.gate(*args, status=2)
            self.assertIn(word, err)
            self.assertEqual(err.count("\n"), 1)
        with open(self.file, "w") as f:
            f.write("opscope gate 1\nnonsense\n")
        _, err = self.gate("check", run, "--baseline=" + self.file, status=1)
        self.assertEqual(err, f"opscope: {self.file}, line 2: configuration, metric NAME, anchor PATH or run PATH was expected\n")
        self.gate("check", run, "--baseline=" + os.path.join(self.tmp, "none"), status=1)


if __name__ == "__main__":
    oracle.main()
