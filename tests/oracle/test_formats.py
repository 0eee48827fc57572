"""What few traces have, in one small trace: every phase, other vendors, an unknown category, CUDA graphs."""
import json

import oracle
from oracle import Case, info, report, run, synthetic

TRACE = synthetic("formats")


def sql(query):
    code, out, err = run("sql", TRACE, query, "--format=json")
    if code:
        raise AssertionError(err.decode(errors="replace"))
    return [tuple(r) for r in json.loads(out)["rows"]]


class Formats(Case):
    def test_begin_and_end(self):
        self.assertEqual(sql("select name, start_ns, dur_ns from span where kind = 'user' order by start_ns"), [
            ("outer", 10000, 90000), ("inner", 20500, 9750), ("endless", 400000, 100000)])

    def test_diagnostics(self):
        kinds = {r["kind"]: r["count"] for r in info(TRACE).section("problems").rows}
        self.assertEqual(kinds["begin-without-end"], 1)
        self.assertEqual(kinds["end-without-begin"], 1)

    def test_unknown_category_is_kept(self):
        self.assertEqual(sql("select name, dur_ns, cat, kind from span where cat = 'npu_stage'"),
                         [("unheard of", 6000, "npu_stage", "other")])

    def test_other_phases_are_kept(self):
        self.assertEqual(sql("select name, phase, time_ns from mark order by time_ns"), [("power", "C", 50000), ("mark", "i", 51000)])
        self.assertEqual(sql("select phase, time_ns, count(distinct id) from flow group by phase order by time_ns"),
                         [("s", 60000, 1), ("t", 61000, 1), ("f", 62000, 1)])

    def test_names_of_threads(self):
        self.assertEqual(sql("select tid_text, process_name, thread_name from track where tid_text = 'worker'"),
                         [("worker", "trainer", "loader 1")])

    def test_every_kernel_is_accounted_for(self):
        by_op = {r["name"]: r["operator"] for r in report("kernels", TRACE, "--group-by=op").rows}
        self.assertEqual(by_op, {"xpu_add": "aten::add", "node_a": "replay", "node_b": "replay", "orphan": None})
        rows = {r["name"]: r["device_self_ns"] for r in report("operators", TRACE).rows}
        self.assertEqual(rows["(unattributed)"], 9000)
        self.assertEqual(rows["replay"], 12000)

    def test_graph_nodes(self):
        self.assertEqual(sql("select name, graph_id, graph_node_id from kernels_raw where graph_id is not null order by 3"),
                         [("node_a", 2, 81), ("node_b", 2, 82)])


if __name__ == "__main__":
    oracle.main()
