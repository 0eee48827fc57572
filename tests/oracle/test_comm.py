"""`report comm` against python's own count of the collectives' kernels, and `report lines` against `operators --group-by=line`."""
import collections
import os
import tempfile

import labelled
import oracle
from oracle import Case, data, report


def kernels(path):
    """(GPU, start, end, name, args) of all kernels, copies and sets, ns."""
    out = []
    for e in oracle.events(oracle.load(path)):
        if e.get("ph") == "X" and e.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset"):
            start = round(e["ts"] * 1000)
            out.append((e["args"]["device"], start, start + round(e["dur"] * 1000), e["name"], e["args"]))
    return out


def exposed_ns(collectives, others):
    """Length of the union of the first that is not in the second, by a sweep."""
    points = [(t, kind, step) for kind, list_ in enumerate((collectives, others)) for a, b in list_ for t, step in ((a, 1), (b, -1))]
    open_, last, out = [0, 0], None, 0
    for t, kind, step in sorted(points):
        if last is not None and open_[0] and not open_[1]:
            out += t - last
        open_[kind] += step
        last = t
    return out


class Comm(Case):
    def check(self, path, exposed=None):
        work = kernels(path)
        rows = report("comm", path).rows
        gpus = {w[0] for w in work if "nccl" in w[3].lower()}
        self.assertEqual({r["device"] for r in rows}, gpus)
        for gpu in gpus:
            mine = [w for w in work if w[0] == gpu]
            comm = [w for w in mine if "nccl" in w[3].lower()]
            got = [r for r in rows if r["device"] == gpu]
            self.assertEqual(sum(r["calls"] for r in got), len(comm))
            self.assertEqual(sum(r["total_ns"] for r in got), sum(w[2] - w[1] for w in comm))
            want = exposed_ns([w[1:3] for w in comm], [w[1:3] for w in mine if w not in comm])
            self.assertEqual(sum(r["exposed_ns"] for r in got), want)
            if exposed is not None:
                self.assertEqual(want, exposed)
        return rows

    def test_exposed(self):
        self.check(data("hta", "df_index_resolver", "df_index_resolver.json.gz"), 357343000)
        self.check(data("multirank", "megatron_a100_tp8", "megatron_kineto_0.json.gz"), 241191000)

    def test_bytes_and_groups(self):
        """Kernels whose arguments tell the message, overlapped by the backward pass: 39.19 of 46.88 ms are exposed."""
        path = data("hta", "nccl_parser_config", "nccl_data.json.gz")
        rows = self.check(path)
        want = collections.Counter()
        size = {"Float": 4, "Long": 8}
        for _, _, _, name, args in kernels(path):
            if "nccl" in name.lower():
                key = (args["Collective name"].replace("allreduce", "all_reduce"), args["Process Group Description"], args["Group size"], args["dtype"])
                want[key] += args["In msg nelems"] * size[args["dtype"]]
        types = {"float32": "Float", "int64": "Long"}
        self.assertEqual({(r["collective"], r["process_group"], r["ranks"], types[r["dtype"]]): r["bytes"] for r in rows}, dict(want))
        by_size = report("comm", path, "--group-by=size").rows
        self.assertEqual(sum(r["bytes"] for r in by_size), sum(want.values()))
        for r in by_size:
            self.assertEqual(r["bytes"], r["calls"] * r["message_bytes"])
        self.assertEqual({r["collective"] for r in report("comm", path, "--group-by=kernel").rows},
                         {n.split("(")[0] for _, _, _, n, _ in kernels(path) if "nccl" in n})

    def test_gpus_apart(self):
        """One GPU's work hides nothing of another's."""
        rows = report("comm", data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")).rows
        exposed = collections.Counter()
        for r in rows:
            exposed[r["device"]] += r["exposed_ns"]
        self.assertEqual({g: round(ns / 1e6, 1) for g, ns in exposed.items()}, {0: 17.2, 1: 8.2})
        one = report("comm", data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite"), "--device=1").rows
        self.assertEqual(one, [r for r in rows if r["device"] == 1])

    def test_none(self):
        for path in oracle.data_glob("verdicts/*.gz")[:1]:
            code, _, err = oracle.run("report", "comm", path)
            self.assertEqual((code, b"no kernel in the input is of a collective" in err), (1, True))


NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


class Made(Case):
    def rows(self, *collectives, by="name"):
        """Rows and notes; a collective is its arguments."""
        t = labelled.Trace()
        for more in collectives:
            t.kernel(10, NCCL, **more)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            t.save(path)
            table = report("comm", path, f"--group-by={by}")
        return table.rows, table.notes

    @staticmethod
    def message(elements, dtype="Float", **more):
        return {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "Group size": 2, "dtype": dtype, **more}

    def test_more_bytes_than_64_bits(self):
        """Sums, and one message, that do not fit are unknown."""
        (r,), _ = self.rows(*[self.message(1 << 56, "Double")] * 16)
        self.assertEqual((r["calls"], r["bytes"], r["algorithm_gb_per_s"], r["bus_gb_per_s"]), (16, None, None, None))
        (r,), _ = self.rows(*[self.message(1 << 56, "Double")] * 15)
        self.assertEqual((r["calls"], r["bytes"]), (15, 15 << 59))
        (r,), _ = self.rows(self.message(5 << 54, "ComplexDouble"), by="size")
        self.assertEqual((r["message_bytes"], r["bytes"]), (5 << 58, 5 << 58))
        (r,), _ = self.rows(self.message(1 << 59, "ComplexDouble"), by="size")
        self.assertEqual((r["message_bytes"], r["bytes"]), (None, None))

    def test_groups_with_and_without_description(self):
        """The description where there is one; torch's "undefined" is none."""
        rows, notes = self.rows(self.message(8, **{"Process Group Name": "0", "Process Group Description": "default_pg"}),
                                self.message(8, **{"Process Group Name": "1"}),
                                self.message(8, **{"Process Group Name": "2", "Process Group Description": "undefined"}), {})
        self.assertEqual(sorted(r["process_group"] or "" for r in rows), ["", "1", "2", "default_pg"])
        self.assertTrue(any("the size of the message is known for 3 of 4 kernels" in n for n in notes), notes)


class Lines(Case):
    def test_same_as_operators(self):
        path = data("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")
        self.assertEqual(report("lines", path).rows, report("operators", path, "--group-by=line").rows)

    def test_says_what_a_row_is(self):
        """A function with the recorded line, which need not be the line that took the time; Calls are those of ops."""
        t = labelled.Trace()
        with t.frame("/home/me/train.py(12): forward"):
            for _ in range(3):
                t.launch("aten::mul", 10)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pt.trace.json.gz")
            t.save(path)
            table = report("lines", path)
            _, out, _ = oracle.run("report", "lines", path)
        self.assertEqual([r["calls"] for r in table.rows], [3])
        self.assertEqual(out.decode().splitlines()[0], "Time by function of Python, with its recorded line")

    def test_how_to_record(self):
        code, _, err = oracle.run("report", "lines", data("hta", "df_index_resolver", "df_index_resolver.json.gz"))
        self.assertEqual((code, b"with_stack=True" in err), (1, True))


if __name__ == "__main__":
    oracle.main()
