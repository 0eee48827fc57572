"""Arguments of events that have two spellings (src/store/arg_keys.def): whichever a trace has, every answer is the same."""
import gzip
import json
import os
import tempfile
import unittest

import oracle
from oracle import Case, data, run, synthetic

ASKED = (("operators", "--group-by=shape"), ("ops",), ("op-types",), ("costs",), ("conv",), ("gemm",), ("attention",), ("roofline", "--group-by=shape"), ("tensor-cores",),
         ("memory",), ("trace",), ("module-flops",), ("function-events",), ("key-averages", "--group-by=shape"), ("kernels", "--group-by=launch"))


def bytes_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return f.read()


class OldSpelling(Case):
    """torch 1.8 wrote "Input dims"; later versions write "Input Dims"."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def planted(self, path, new, old):
        """The trace as it is, and with the other spelling."""
        text = bytes_of(path)
        self.assertIn(new, text)
        paths = [os.path.join(self.folder.name, name) for name in ("new.json", "old.json")]
        for p, t in zip(paths, (text, text.replace(new, old))):
            with open(p, "wb") as f:
                f.write(t)
        return paths

    def same(self, paths, *args):
        new, old = [run(*args[:1], *args[1:2], p, *args[2:], "--format=json") for p in paths]
        with self.subTest(args=args):
            self.assertEqual(new[0], old[0], old[2])
            for a, b in zip(new[1:], old[1:]):
                self.assertEqual(a.replace(b"new.json", b"old.json"), b)
        return new

    def check(self, path):
        paths = self.planted(path, b'"Input Dims"', b'"Input dims"')
        answered = sum(self.same(paths, "report", *asked)[0] == 0 for asked in ASKED)
        self.assertGreater(answered, len(ASKED) / 2)
        code, out, err = run("advise", paths[0], "--all", "--format=json")
        self.assertEqual(code, 0, err)
        code, old, err = run("advise", paths[1], "--all", "--format=json")
        self.assertEqual(json.loads(out)["rows"], json.loads(old)["rows"])
        return paths

    def test_planted(self):
        self.check(synthetic("costs_gpu"))

    def test_ops_have_shapes(self):
        """They had none: `ops` did not know the old spelling."""
        old = self.planted(synthetic("costs_gpu"), b'"Input Dims"', b'"Input dims"')[1]
        shapes = {r["name"]: r["shapes"] for r in oracle.report("ops", old).rows}
        self.assertTrue(shapes and all(shapes.values()), shapes)

    def test_sql(self):
        old = self.planted(synthetic("costs_gpu"), b'"Input Dims"', b'"Input dims"')[1]
        for key in ("Input Dims", "Input dims"):
            code, out, err = run("sql", old, f"SELECT count(arg(args, '{key}')) FROM span", "--format=json")
            self.assertEqual(code, 0, err)
            self.assertGreater(json.loads(out)["rows"][0][0], 0)

    @unittest.skipIf(oracle.SANITIZED, "the planted trace shows the same")
    def test_real(self):
        self.check(data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz"))


if __name__ == "__main__":
    oracle.main()
