"""The TensorBoard plugin's comparison of two runs, through its endpoints: the plugin's own answers, and those of an independent reading of its rules (tb_tree.py)."""
import gzip
import json
import os
import shutil
import tempfile

import oracle
import tb_tree
from served import Server

ROOT = "/data/plugin/pytorch_profiler/"
SIDES = ("left", "right")
PAIRS = {  # the plugin's answers
    "diff_resnet_span1_span2": ("tb_plugin/*/worker0.1623143089861.pt.trace.json.gz", "tb_plugin/*/worker0.1623143566756.pt.trace.json.gz"),
    "diff_transformer_h100_first_second": ("more/kineto_pairs/transformer_h100/first_run*", "more/kineto_pairs/transformer_h100/second_run*"),
    "diff_particle_002_512": ("more/kineto_pairs/*/forward_batch_002.json.gz", "more/kineto_pairs/*/forward_batch_512.json.gz"),
}
OTHERS = (  # with modules, and with backward passes
    ("torch/torch214_cpu/resnet_full.json.gz", "torch/torch214_cpu/lstm_full.json.gz"), ("tracelens/mi300/resnet_act_checkpoint.json.gz",) * 2,
    ("more/kineto_pairs/switch_transformer_moe_a100/trace.json.gz", "more/kineto_pairs/switch_transformer_moe_a100/trace_100Kpar_4exp_8batch_128seq_1024.json.gz"),
    ("tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz", "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
)


@oracle.of("tb_plugin")
class Diff(oracle.Case):
    def setUp(self):
        super().setUp()
        if oracle.run("help")[1].find(b"\n  serve ") < 0:
            self.skipTest("built without libmicrohttpd")

    def serve(self, *paths):
        """One run for each file: a, b."""
        tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, tmp)
        for name, path in zip("ab", paths):
            os.mkdir(os.path.join(tmp, name))
            shutil.copy(path, os.path.join(tmp, name, "w.pt.trace.json" + (".gz" if path.endswith(".gz") else "")))
        s = Server(self, tmp)
        worker = s.get(ROOT + "workers", run="a", view=s.get(ROOT + "views", run="a")[0])[0]
        span = s.get(ROOT + "spans", run="a", worker=worker)[0]
        return s, {"run": "a", "worker": worker, "span": span, "exp_run": "b", "exp_worker": worker, "exp_span": span}

    def same(self, got, want, at):
        self.assertEqual(list(got), list(want), at)
        for side in SIDES:
            g, w = got[side], want[side]
            self.assertEqual(list(g), list(w), at)
            self.assertEqual([a["name"] for a in g["aggs"]], [a["name"] for a in w["aggs"]], at)
            for x, y in [(g, w), *zip(g["aggs"], w["aggs"])]:
                for key, value in y.items():
                    if isinstance(value, (int, float)):  # sums of doubles near 1e12 us, or of many of them
                        self.assertAlmostEqual(x[key], value, delta=0.05 + 1e-6 * abs(value), msg=(at, y["name"], key))
                    elif key != "aggs":
                        self.assertEqual(x[key], value, at)

    def same_trees(self, got, want, at="0"):
        self.same({k: got[k] for k in SIDES}, {k: want[k] for k in SIDES}, at)
        self.assertEqual(len(got["children"]), len(want["children"]), at)
        for i, (g, w) in enumerate(zip(got["children"], want["children"])):
            self.same_trees(g, w, f"{at}-{i}")

    def test_the_plugins_answers(self):
        for name, patterns in PAIRS.items():
            with gzip.open(oracle.data("expected", "tb_plugin_diff", name + ".json.gz")) as f:
                want = json.load(f)
            s, args = self.serve(*(oracle.data_glob(p)[0] for p in patterns))
            with self.subTest(pair=name):
                got = s.get(ROOT + "diff", **args)
                self.assertEqual(list(got), list(want["diff"]))
                self.same_trees(got, want["diff"])
                self.assertEqual(len(tb_tree.paths(got)), want["paths"])
                for path, node in want["diffnode"].items():
                    answer = s.ask(ROOT + "diffnode", {**args, "path": path}).json()
                    self.same(answer, node, path)
                    self.assertEqual(answer["path"], path)
                    for g, w in zip(answer["children"], node["children"], strict=True):
                        self.same(g, w, g["path"])
                self.assertEqual(s.get(ROOT + "diffnode", **args), s.ask(ROOT + "diffnode", {**args, "path": "0"}).json())

    def test_others(self):
        for pair in OTHERS:
            paths = [oracle.data(*x.split("/")) for x in pair]
            with self.subTest(pair=pair):
                want = tb_tree.compare(*map(tb_tree.tree_of, paths))
                s, args = self.serve(*paths)
                self.same_trees(s.get(ROOT + "diff", **args), want)

    def test_backward(self):
        """Backward passes of modules, in place of the engine's ranges: of the bundled trace."""
        path = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
        s, args = self.serve(path, path)
        got = s.get(ROOT + "diff", **args)
        self.same_trees(got, tb_tree.compare(tb_tree.tree_of(path), tb_tree.tree_of(path)))
        names = [n["left"]["name"] for n in tb_tree.paths(got).values()]
        self.assertGreater(len([n for n in names if n.endswith(".backward")]), 50)

    def test_hostile(self):
        """Steps within each other to no end, and an answer that would be larger than its input by far."""
        def write(name, events):
            path = os.path.join(self.tmp, name + ".json")
            with open(path, "w") as f:
                f.write(json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, **e} for e in events]}))
            return path
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)
        n = 20000 if oracle.SANITIZED else 200000
        steps = write("steps", [{"cat": "user_annotation", "name": f"ProfilerStep#{k}", "ts": k, "dur": 2 * (n - k) + 2} for k in range(n)] + [{"cat": "cpu_op", "name": "aten::mm", "ts": n, "dur": 1}])
        modules = [{"cat": "python_function", "name": f"nn.Module: M_{k}", "ts": k, "dur": 10000 - 2 * k, "args": {"Python id": k + 1, "Python module id": k}} for k in range(290)]
        deep = write("deep", modules + [{"cat": "cpu_op", "name": f"aten::op{k}", "ts": 300 + k, "dur": 1} for k in range(3000)])
        s, args = self.serve(steps, deep)
        same = {**args, "exp_run": "a"}
        self.assertEqual(s.ask(ROOT + "diff", same).status, 200)
        large = {**args, "run": "b"}
        self.assertIn("diffnode gives it node by node", s.get(ROOT + "diff", 422, **large)["error"])
        self.assertEqual(s.ask(ROOT + "diffnode", {**large, "path": "0-0-0"}).json()["left"]["name"], "nn.Module: M_2")

    def test_refused(self):
        path = oracle.synthetic("two_steps_overlap")
        s, args = self.serve(path, path)
        for change, status in (({"exp_run": "c"}, 404), ({"span": "7"}, 404)):
            self.assertEqual(s.ask(ROOT + "diff", {**args, **change}).status, status, change)
        for wrong in ("1", "0-99", "x", "0-", "0--1", "-", "0-0-0-0-0-0-0-0-0-0-0", "0" * 5000):
            self.assertEqual(s.ask(ROOT + "diffnode", {**args, "path": wrong}).status, 404, wrong)
        del args["exp_worker"]
        self.assertEqual(s.ask(ROOT + "diff", args).status, 400)


if __name__ == "__main__":
    oracle.main()
