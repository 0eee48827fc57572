"""`opscope diff`: which module of A is which of B, whatever number or name it has, and the tree of both. Planted changes are recovered."""
import collections

import oracle
from test_diff import Written, left_out_ns


def numbered(tree, count, path=""):
    """The ops of [(class, [...])], where a leaf is (op, shapes, [(kernel, us)]); modules are numbered by class, as the profiler does it."""
    ops = []
    for name, inside, *kernels in tree:
        if kernels:
            ops.append((name, inside, kernels[0], path[1:]))
            continue
        count[name] += 1
        ops += numbered(inside, count, f"{path}/{name}_{count[name] - 1}")
    return ops


def linear(width, us, name="Linear"):
    return (name, [("aten::linear", [[64, 512], [width, 512]], [(f"gemm_{width}", us)])])


def norm(us):
    return ("LayerNorm", [("aten::layer_norm", [[64, 512]], [("layer_norm_kernel", us)])])


def block(gemm_us=400.0, first=(), name="Block", widths=(512, 512, 2048)):
    return (name, [*first, norm(50.0), ("Attention", [linear(widths[0], gemm_us), linear(widths[1], gemm_us / 2)]), norm(50.0), linear(widths[2], gemm_us * 2)])


class Aligned(Written):
    """Modules of A and of B that belong together, whatever numbers and names they have."""

    def aligned(self, a, b, *args):
        return self.compare(numbered(b, collections.Counter()), *args, base=numbered(a, collections.Counter()))

    def changed(self, rows):
        """What differs but for the names."""
        return [(r["name"], r["label"], r["delta_ns"]) for r in rows if r["kind"] == "compute" and (r["delta_ns"] or r["label"] != "same")]

    def test_an_inserted_module(self):
        """One more Linear in the third of six blocks: it alone is new, though all behind it have other numbers."""
        gpt = lambda *first: [("GPT", [block() for _ in range(2)] + [block(first=first)] + [block() for _ in range(3)])]
        _, rows, _ = self.aligned(gpt(), gpt(linear(768, 123.0)), "--by=op")
        self.assertEqual(self.changed(rows), [("/GPT_0/Block_2/Linear_6/linear", "new", 123_000)])
        moved = {r["a_name"]: r["name"] for r in rows if r["a_name"]}
        self.assertEqual(moved["/GPT_0/Block_2/Attention_2/Linear_6/linear"], "/GPT_0/Block_2/Attention_2/Linear_7/linear")
        self.assertEqual(len(moved), 3 * 4)
        _, rows, _ = self.aligned(gpt(linear(768, 123.0)), gpt(), "--by=op")
        self.assertEqual(self.changed(rows), [("/GPT_0/Block_2/Linear_6/linear", "gone", -123_000)])

    def test_a_layer_gone(self):
        """The fifth of eight layers was the only one of its widths."""
        layers = [block(widths=(512, 512, 2048 + 64 * i)) for i in range(8)]
        _, rows, _ = self.aligned([("GPT", layers)], [("GPT", layers[:4] + layers[5:])], "--by=op")
        self.assertEqual(sorted(set(r["name"].split("/")[2] for r in rows if r["label"] == "gone")), ["Block_4"])
        self.assertEqual({label for _, label, _ in self.changed(rows)}, {"gone"})

    def test_renamed_and_wrapped(self):
        """A class renamed throughout, a module around all, and one slower layer in it."""
        a, b = [("GPT", [block() for _ in range(6)])], [("DistributedDataParallel", [("GPT", [block(name="FusedBlock") for _ in range(4)] + [block(600.0, name="FusedBlock")] + [block(name="FusedBlock")])])]
        _, rows, _ = self.aligned(a, b, "--by=op")
        self.assertEqual({name.split("/")[3] for name, _, _ in self.changed(rows)}, {"FusedBlock_4"})
        self.assertEqual({label for _, label, _ in self.changed(rows)}, {"slower"})
        for how in ("term", "module"):
            verdict, rows, _ = self.aligned(a, b, f"--by={how}")
            self.assertEqual({label for _, label, _ in self.changed(rows)}, {"slower"}, how)
            self.assertEqual({(r["name"].split("/Linear")[0].split("/Attention")[0], r["a_name"].split("/Linear")[0].split("/Attention")[0]) for r in rows if r["kind"] == "compute" and r["delta_ns"]},
                             {("/DistributedDataParallel/GPT/FusedBlock", "/GPT/Block")})
        self.assertIn("/DistributedDataParallel/GPT/FusedBlock/Linear/linear forward (slower)", verdict["verdict"] if how == "term" else self.aligned(a, b)[0]["verdict"])
        _, rows, _ = self.aligned(b, a, "--by=op")
        self.assertEqual({name.split("/")[2] for name, _, _ in self.changed(rows)}, {"Block_4"})

    def test_tree(self):
        """Each module holds what is below it; the roots add up; rows without a difference below them are left out."""
        gpt = lambda us, *first: [("GPT", [block() for _ in range(2)] + [block(us, first=first)] + [block() for _ in range(3)]), ("Loss", [norm(20.0)])]
        verdict, rows, _ = oracle.diff(self.write(numbered(gpt(400.0), collections.Counter())), self.write(numbered(gpt(500.0, linear(768, 123.0)), collections.Counter())), "--by=tree")
        tree = [(r["depth"], r["name"], r["label"], r["delta_ns"]) for r in rows if r["kind"] == "compute" and r["delta_ns"]]
        self.assertEqual(tree, [ # a Linear is one row with its only op
            (0, "GPT_0", "other kernels", 473_000), (1, "Block_2", "other kernels", 473_000), (2, "Linear_6", "new", 123_000), (2, "Attention_2", "slower", 150_000), (3, "Linear_7", "slower", 100_000),
            (3, "Linear_8", "slower", 50_000), (2, "Linear_9", "slower", 200_000)])
        self.assertNotIn("Loss_0", [r["name"] for r in rows])
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows if r["depth"] == 0), verdict["delta_ns"], delta=1)

    def test_what_the_tree_leaves_out(self):
        """Rows without an op come first. Less than 0.1 % of the step is left out, and the notes say how much that is; what is new is not. All rows are shown, however many they are."""
        kinds = lambda us: [(f"Part{i}", [("aten::linear", [[64, 512], [64 + i, 512]], [(f"gemm_{i}", us(i))]), ("aten::relu", [[64, 512]], [("relu_kernel", 10.0)])]) for i in range(40)]
        a = numbered(kinds(lambda i: 500.0), collections.Counter())
        b = numbered(kinds(lambda i: 501.0 + 50 * (i < 35)) + [("Added", [("aten::tanh", [[8]], [("tanh_kernel", 1.0)])])], collections.Counter()) + [("c10d::allreduce_", [[64]], [("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 700.0)])]
        files = self.write(a), self.write(b)
        verdict, rows, notes = oracle.diff(*files, "--by=tree")
        self.assertEqual(rows[0]["kind"], "comm")
        self.assertEqual(sorted(r["name"] for r in rows if r["kind"] == "compute" and r["depth"] == 0), sorted([f"Part{i}_0" for i in range(35)] + ["Added_0"]))
        self.assertNotIn("relu", [r["name"] for r in rows]) # the same in both
        self.assertRegex(notes, r"\d+ rows whose difference is less than 0\.1 % of A's step, with nothing larger, new, gone or renamed below, are left out; those of depth 0 add up to \+5\.\d us")
        self.assertAlmostEqual(sum(r["delta_ns"] for r in rows if r["depth"] == 0) + left_out_ns(notes), verdict["delta_ns"], delta=60)
        for form in ("text", "markdown"):
            out = oracle.run("diff", *files, "--by=tree", f"--format={form}")[1].decode()
            self.assertTrue(all(f"Part{i}" in out for i in range(35)), form)

    def test_another_order(self):
        """Modules that are told apart by content change places; nothing else changes."""
        parts = [("Stem", [linear(96, 10.0)]), block(), ("Head", [linear(1000, 70.0)])]
        _, rows, _ = self.aligned([("Net", parts)], [("Net", [parts[2], parts[1], parts[0]])], "--by=op")
        self.assertEqual(self.changed(rows), [])

    def test_other_shapes_of_one_op(self):
        """Half the width: each op stands beside itself, and says the shapes of both."""
        _, rows, _ = self.aligned([("GPT", [block() for _ in range(3)])], [("GPT", [block(300.0, widths=(512, 256, 1024)) for _ in range(3)])], "--by=op")
        rows = [r for r in rows if r["delta_ns"]]
        self.assertEqual([(r["label"], r["delta_ns"]) for r in rows if r["label"] != "faster"], [("other shapes", -200_000)] * 3 + [("other shapes", -50_000)] * 3)
        self.assertEqual(len([r for r in rows if r["label"] == "faster" and r["delta_ns"] == -100_000 and not r["a_shapes"]]), 3)
        self.assertEqual({(r["a_shapes"].split("; ")[1], r["shapes"].split("; ")[1]) for r in rows if r["label"] == "other shapes"}, {("<M:2048, K:512>", "<M:1024, K:512>"), ("<M:512, K:512>", "<M:256, K:512>")})


if __name__ == "__main__":
    oracle.main()
