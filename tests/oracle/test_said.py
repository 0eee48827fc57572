"""What notes and refusals say, and that they say it only where it holds."""
import gzip
import json
import os

import oracle
from oracle import Case, data, report, run

RESNET = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz")


class Said(Case):
    def said(self, name, parts, *args):
        return " ".join(report(name, data(*parts), *args).notes)

    def test_sizes_of_messages(self):
        note = "the size of the message is known for"
        self.assertIn(note, self.said("comm", ("hta", "df_index_resolver", "df_index_resolver.json.gz")))
        self.assertNotIn(note, self.said("comm", ("multirank", "megatron_a100_tp8", "megatron_kineto_4.json.gz")))  # by its ranges nccl:all_reduce
        self.assertNotIn(note, self.said("comm", ("hta", "nccl_parser_config", "nccl_data.json.gz")))

    def test_nothing_of_what_is_not_there(self):
        for name, note in (("waits", "for an event"), ("memcpy", "cannot be:"), ("operators", "repeated schedule")):
            with self.subTest(report=name):
                self.assertNotIn(note, self.said(name, RESNET))

        code, out, _ = run("advise", data(*RESNET), "--format=json")
        evidence = next(r["evidence"] for r in oracle.Table(json.loads(out)).rows if r["detector"] == "no-tensor-cores")
        self.assertRegex(evidence, "launched by operators are eligible[.] By published peaks")  # no kernel's name leaves it open

    def test_tensor_cores_without_kernels(self):
        t = report("tensor-cores", os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"))
        self.assertIn("unknown: the input holds no kernels; to record them: profile(activities=", t.notes[0])
        self.assertEqual({r[c] for r in t.rows for c in ("possible_ns", "tc_ns", "tc_used", "total_kernel_ns")}, {None})

    def test_highest_sum_of_each_device(self):
        """Where no totals were recorded, the peak is the highest sum of the device's own events, above the lowest."""
        path = data(*RESNET)
        with gzip.open(path) as f:
            events = [e for e in json.load(f)["traceEvents"] if e.get("name") == "[memory]" and e["args"]["Device Type"] == 1]
        total = lowest = highest = 0
        for e in sorted(events, key=lambda e: e["ts"]):
            total += e["args"]["Bytes"]
            lowest, highest = min(lowest, total), max(highest, total)
        held = report("memory", path).section("held")
        self.assertTrue(held.notes[0].startswith(f"GPU0: {highest - lowest} bytes by the events of the recording"), held.notes[0])
        self.assertEqual([r["bytes"] for r in held.rows], [highest - lowest])

    def test_shares(self):
        whole = report("groups", data(*RESNET)).rows[0]
        self.assertEqual((whole["group"], whole["gpu_pct"]), ("(all ops)", 100))
        self.assertTrue(all(r["tc_pct"] == 0 for r in report("op-types", data(*RESNET)).rows if r["type"] == "conv2d"))

    def test_refused_queries(self):
        for query, hint in (("SELECT a FROM no_such_table", True), ("SELECT no_such_column FROM span", False)):
            code, out, err = run("sql", data(*RESNET), query)
            self.assertEqual((code, out, b"opscope_tables" in err, err.count(b"\n")), (2, b"", hint, 1), err)


if __name__ == "__main__":
    oracle.main()
