"""report trace: counts against python's own, settings without secrets, and what it says to be absent."""
import collections
import json
import os
import tempfile

import oracle
from oracle import Case, data, load, report

TRACES = ["tb_plugin/resnet50_num_workers_0/worker0.1623143089861.pt.trace.json.gz",
          "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz", "torch/torch214_cpu/resnet_plain.json.gz",
          "torch/torch113_cpu/lstm_full.json.gz", "hta/timeline_analysis/sampled_rank-0.json.gz"]


class Trace(Case):
    def test_counts(self):
        for name in TRACES:
            with self.subTest(trace=name):
                doc = load(data(*name.split("/")))
                want = collections.Counter((str(e.get("cat", "")), e["ph"]) for e in oracle.events(doc))
                t = report("trace", data(*name.split("/")))
                self.assertEqual({(r["category"], r["phase"]): r["events"] for r in t.rows}, dict(want))
                self.assertTrue(t.notes[0].startswith(f"{sum(want.values())} events in all"), t.notes[0])

    def test_settings_leave_out_what_may_be_secret(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            json.dump({"schemaVersion": 1, "with_stack": 1, "env": {"TOKEN": "not to be shown"}, "long": "x" * 201,
                       "host": "a", "traceEvents": []}, f)
        self.addCleanup(os.unlink, f.name)
        code, out, _ = oracle.run("report", "trace", f.name, "--format=json")
        self.assertEqual(code, 0)
        self.assertNotIn(b"not to be shown", out)
        settings = report("trace", f.name).section("settings").by("key")
        self.assertEqual({k: v["value"] for k, v in settings.items()},
                         {"schemaVersion": "1", "with_stack": "1", "env": "(28 bytes)", "long": "(201 bytes)", "host": "a"})

    def test_contents(self):
        full = report("trace", data("torch", "torch214_cpu", "resnet_full.json.gz")).section("contents").by("what")
        plain = report("trace", data("torch", "torch214_cpu", "resnet_plain.json.gz")).section("contents").by("what")
        self.assertEqual((full["memory events"]["events"], plain["memory events"]["events"]), (2022, 0))
        self.assertEqual((full["module calls"]["events"], plain["module calls"]["events"]), (81, 0))
        self.assertEqual(full["Python frames or call stacks"]["events"], 3108)
        self.assertEqual(full["backward ops with a sequence number"]["events"], 204)
        self.assertIn("profile_memory=True", plain["memory events"]["how_to_record"])
        self.assertIsNone(full["memory events"]["how_to_record"])
        self.assertEqual((full["device work"]["events"], full["steps (ProfilerStep ranges)"]["events"]), (0, 3))

    def test_tracks(self):
        t = report("trace", data("tracelens", "h100", "gaunernst_bert-small-uncased__1016001.json.gz")).section("tracks")
        main = next(r for r in t.rows if r["thread"] == "19392")
        self.assertEqual((main["ops"], main["python_frames"], main["memory_events"]), (479, 1380, 236))
        self.assertEqual(next(r for r in t.rows if r["thread"] == "7")["device_operations"], 61)


if __name__ == "__main__":
    oracle.main()
