"""--per: sums of reports per step and per call, against the totals; and that no sum is forgotten (src/query/sums.def)."""
import json
import os
import re

import oracle
from oracle import Case, data, report

# Columns that do not grow with the number of steps.
NO_SUM = re.compile(r"^(mean|min|max|median|p\d+|stddev|peak|registers|shared)_|_pct$|_per_(s|byte|sm|thread)$|_delay_ns$|^changes_|^(device|stream|ops|length|longest_ns|ranks|b|m|n|k|depth|message_bytes|module_id)$")


def sums():
    with open(os.path.join(oracle.ROOT, "src", "query", "sums.def")) as f:
        text = re.sub(r'"\s+"', "", f.read())
    return {m[1]: m[2].split() for m in re.finditer(r'SUMS\("([^"]+)", \w+, "([^"]+)"\)', text)}


def table(*args):
    code, out, err = oracle.run("report", *args, "--format=json")
    return oracle.Table(json.loads(out)) if code == 0 else None


class Per(Case):
    RESNET = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")

    def check(self, name, path, steps, *args):
        total, step, call = (table(name, path, *args, *per) for per in ((), ("--per=step",), ("--per=call",)))
        if total is None:
            return 0
        ids, n = sums()[name], int(steps[-1]) - int(steps[0]) + 1
        for c in total.doc["columns"]:
            if c["type"] in ("integer", "number") and c["id"] not in ids:
                self.assertRegex(c["id"], NO_SUM, "a sum that sums.def lacks, or a column that this test does not know")
        self.assertEqual([i + "_per_step" if i in ids else i for i in total.ids], step.ids)
        self.assertEqual(call is not None, "calls" in total.ids)
        self.assertEqual([i + "_per_call" if i in ids and i != "calls" else i for i in total.ids] if call else None, call and call.ids)
        self.assertEqual(len(total.rows), len(step.rows))
        for a, b, c in zip(total.rows, step.rows, call.rows if call else total.rows):
            for i in total.ids:
                if i not in ids:
                    self.assertEqual((a[i], a[i]), (b[i], c[i]), i)
                elif a[i] is None:
                    self.assertIsNone(b[i + "_per_step"], i)
                else:
                    self.assertAlmostEqual(a[i] / n, b[i + "_per_step"], delta=1e-6 * abs(a[i]), msg=i)
                    if call and i != "calls" and a["calls"]:
                        self.assertAlmostEqual(a[i] / a["calls"], c[i + "_per_call"], delta=1e-6 * abs(a[i]), msg=i)
        return len(total.rows)

    def test_reports(self):
        path = data(*self.RESNET)
        seen = {name: self.check(name, path, (5, 8), "--steps=5..8") for name in ("operators", "lines", "kernels", "memcpy", "api", "gemm", "conv", "roofline", "op-classes", "short-kernels", "sequences",
                                                                            "queues", "streams")}
        self.assertEqual([n for n, rows in seen.items() if not rows], [])

    def test_comm_of_a_step(self):
        """404 collectives and 71.5 ms a step."""
        r, = table("comm", data("hta", "df_index_resolver", "df_index_resolver.json.gz"), "--per=step").rows
        self.assertEqual((r["calls_per_step"], round(r["exposed_ns_per_step"] / 1e6, 1)), (404, 71.5))

    def test_default(self):
        """Text is per step where all that the report counts is in the steps, and says so; CSV and JSON are totals."""
        path = data("hta", "df_index_resolver", "df_index_resolver.json.gz")
        text = lambda *args: oracle.run("report", *args)[1].decode()  # noqa: E731
        self.assertIn("Kernels, per step (mean of 5; notes are of all)", text("kernels", path))
        self.assertRegex(text("kernels", path), r"ncclKernel_AllReduce_RING_LL_Sum_float +communication +no +404 +71\.469 ms")
        self.assertRegex(text("kernels", path, "--per=total"), r"ncclKernel_AllReduce_RING_LL_Sum_float +communication +no +2,020 +357\.343 ms")
        self.assertEqual(text("kernels", path, "--per=total").splitlines()[0], "Kernels, of 5 steps together")
        self.assertIn("per step", text("operators", path).splitlines()[0])
        self.assertTrue(text("operators", path, "--steps=all").startswith("Time by operator\n"))  # API calls, some of which are outside the steps, count
        self.assertIn("per step", text("operators", path, "--steps=2..6").splitlines()[0])
        self.assertNotIn("per step", text("kernels", path, "--steps=2").splitlines()[0])  # one step is its own mean
        self.assertEqual(report("kernels", path).rows[0]["calls"], 2020)
        csv = text("kernels", path, "--format=csv", "--per=step", "--columns=name,total_ns").splitlines()[0]
        self.assertEqual(csv, "name,total_ns_per_step")  # found by its old id, too
        self.assertNotIn("per step", text("kernels", data(*self.RESNET), "--compat=tb-plugin").splitlines()[0])

    def test_steps_that_were_searched_for(self):
        """They are a guess: sums stay sums, and the heading says of how many steps."""
        path = data("more", "kineto_pairs", "switch_transformer_moe_a100", "trace_100Kpar_4exp_8batch_128seq_1024.json.gz")
        steps = sum(r.get("whole") is not False for r in oracle.steps_report("steps", path).rows)
        for name, title in (("kernels", "Kernels"), ("op-classes", "Time by class of op")):
            self.assertEqual(oracle.run("report", name, path)[1].decode().splitlines()[0], f"{title}, of {steps} steps together")

    def test_refused(self):
        path = data("hta", "df_index_resolver", "df_index_resolver.json.gz")
        for args, status, says in ((("operators", "--per=step", "--steps=all"), 1, b"--steps=2..6"), (("overview", "--per=step"), 2, b"no sums"), (("kernels", "--per=day"), 2, b"total, step or call"),
                                   (("kernels", "--per=call", "--group-by=instance"), 2, b"no sums")):
            code, _, err = oracle.run("report", args[0], path, *args[1:])
            self.assertEqual((code, says in err), (status, True), (args, err))
        code, _, err = oracle.run("report", "kernels", data("verdicts", "google_owlv2-large-patch14-ensemble__1016001.json.gz"), "--per=step")
        self.assertEqual(code, 0, err)
        code, _, err = oracle.run("report", "kernels", data(*self.RESNET), "--per=step", "--compat=tb-plugin")
        self.assertEqual((code, b"no sums" in err), (2, True), err)


if __name__ == "__main__":
    oracle.main()
