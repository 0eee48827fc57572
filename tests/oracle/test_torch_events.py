"""`report function-events` and `report key-averages` against what torch.profiler itself said of the same runs: prof.events() event by
event, key_averages() cell by cell, for torch 1.13, 2.6 and 2.14; and device time, which counts once."""
import collections
import gzip
import json
import os
import unittest

import oracle
from oracle import Case, data, report

VERSIONS = {"torch113_cpu": "torch-1.13", "torch26_cpu": "torch-2.6", "torch214_cpu": "torch-2.14"}
RUNS = [(d, m, k) for d in VERSIONS for m in ("resnet", "lstm") for k in ("plain", "full")]
LEGACY = "torch113_cpu"  # written as a bare array: neither shapes, memory, FLOPs, stacks nor numbers of the backward pass


def ns(us):
    return round(us * 1000)


def is_python(name):
    return name.startswith(("<", "nn.Module: ")) or ("(" in name and "): " in name)


class Events(Case):
    def check(self, directory, run):
        path = data("torch", directory, f"{run}.json.gz")
        with gzip.open(data("torch", directory, f"{run}.events.json.gz")) as f:
            want = json.load(f)
        rows = report("function-events", path, f"--compat={VERSIONS[directory]}", "--limit=0").rows
        self.assertEqual(len(rows), len(want))
        zero = rows[0]["start_ns"] - ns(want[0]["start"])
        thread = {}
        for i, (w, r) in enumerate(zip(want, rows)):
            got = {"name": r["name"], "start": r["start_ns"] - zero, "end": r["end_ns"] - zero, "async": r["async"],
                   "thread": thread.setdefault(r["thread"], w["thread"])}
            wanted = {"name": w["name"], "start": ns(w["start"]), "end": ns(w["end"]), "async": w["is_async"], "thread": w["thread"]}
            if directory == LEGACY:
                self.assertFalse({"input_shape", "host_memory_bytes", "flops", "call_stack"} & set(r))
            else:
                scope = 7 if r["user_annotation"] else 1 if r["backward_node"] else 0
                got.update(shapes=r["input_shape"], seq=-1 if r["sequence_number"] is None else r["sequence_number"],
                           fwd_thread=r["fwd_thread"] or 0, scope=scope, mem=r["host_memory_bytes"], flops=r["flops"])
                wanted.update({k: w[k] for k in ("shapes", "seq", "fwd_thread", "scope", "mem", "flops")})
            self.assertEqual(got, wanted, f"event {i}")

    def test_all(self):
        for directory in VERSIONS:
            for model in ("resnet", "lstm"):
                with self.subTest(version=directory, model=model):
                    self.check(directory, f"{model}_full")


class KeyAverages(Case):
    """Of `full` runs the groups are by shape. Order: of first appearance, as torch has it."""

    def check(self, directory, model, kind):
        path = data("torch", directory, f"{model}_{kind}.json.gz")
        with open(data("torch", directory, f"{model}_{kind}.key_averages.json")) as f:
            want = json.load(f)
        by_shape = kind == "full" and directory != LEGACY
        if kind == "full" and directory == LEGACY:  # no shapes in the trace: by name alone
            merged = collections.OrderedDict()
            for w in want:
                m = merged.setdefault(w["key"], dict(w, **{k: 0 for k in w if k not in ("key", "input_shapes")}))
                for k in w:
                    if k not in ("key", "input_shapes"):
                        m[k] += w[k]
            want = list(merged.values())
        args = ["--group-by=shape"] if by_shape else []
        rows = report("key-averages", path, f"--compat={VERSIONS[directory]}", "--limit=0", *args).rows
        self.assertEqual(len(rows), len(want))
        for w, r in zip(want, rows):
            got = {"key": r["name"], "count": r["calls"], "self": r["host_self_ns"], "total": r["host_total_ns"]}
            wanted = {"key": w["key"], "count": w["count"], "self": ns(w["self_cpu_time_total"]), "total": ns(w["cpu_time_total"])}
            if by_shape:
                got.update(shapes=r["input_shape"], mem=r["host_memory_bytes"], self_mem=r["host_self_memory_bytes"], flops=r["flops"])
                wanted.update(shapes=w["input_shapes"], mem=w["cpu_memory_usage"], self_mem=w["self_cpu_memory_usage"], flops=w["flops"])
            self.assertEqual(got, wanted)

    def test_all(self):
        for directory, model, kind in RUNS:
            with self.subTest(version=directory, model=model, kind=kind):
                self.check(directory, model, kind)


class Own(Case):
    """opscope's own answer: host self times are those of `report operators`, and every ns of device work counts once."""

    def check_device(self, path):
        trace = oracle.events(oracle.load(path))
        device = [e for e in trace if e.get("ph") == "X" and
                  str(e.get("cat", "")).lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")]
        self.assertTrue(device)
        want = sum(round(float(e.get("dur", 0)) * 1000) for e in device)
        for grouping in ("name", "shape"):
            rows = report("key-averages", path, f"--group-by={grouping}", "--limit=0").rows
            self.assertEqual(sum(r["device_self_ns"] for r in rows), want)
            self.assertTrue(all(r["device_self_ns"] <= r["device_total_ns"] for r in rows))
            self.assertAlmostEqual(sum(r["device_self_pct"] for r in rows), 100)
        operators = report("operators", path, "--limit=0").by("name")
        kinds = {e["name"] for e in trace if e.get("ph") == "X" and str(e.get("cat")).lower() in ("cpu_op", "operator")}
        checked = 0
        for r in report("key-averages", path, "--limit=0").rows:
            o = operators.get(r["name"])
            if o is None or r["name"] not in kinds or r["name"] == "(unattributed)":
                continue
            with self.subTest(op=r["name"]):
                self.assertEqual((r["calls"], r["device_self_ns"], r["device_total_ns"], r["host_self_ns"], r["host_total_ns"]),
                                 (o["calls"], o["device_self_ns"], o["device_total_ns"], o["host_self_ns"], o["host_total_ns"]))
            checked += 1
        self.assertGreater(checked, 10)

    def test_device_time_once(self):
        paths = oracle.data_glob("tb_plugin/*/*.json.gz") + oracle.data_glob("tracelens/h100/*.json.gz")
        if not paths:
            self.skipTest("no GPU traces")
        for path in paths:
            with self.subTest(path=os.path.basename(path)):
                self.check_device(path)

    def test_percentiles(self):
        path = data("torch", "torch26_cpu", "resnet_full.json.gz")
        events = report("function-events", path, "--limit=0").rows
        durations = collections.defaultdict(list)
        for r in events:
            durations[r["name"], r["user_annotation"]].append(r["end_ns"] - r["start_ns"])
        rows = report("key-averages", path, "--limit=0").rows
        self.assertEqual(sum(r["calls"] for r in rows), len(events))
        for r in rows:
            d = sorted(max((v for k, v in durations.items() if k[0] == r["name"]), key=len))
            if len(d) != r["calls"]:
                continue
            def at(p):
                return d[-(-p * len(d) // 100) - 1]
            self.assertEqual((r["min_ns"], r["p50_ns"], r["p95_ns"], r["p99_ns"], r["max_ns"]), (d[0], at(50), at(95), at(99), d[-1]))


if __name__ == "__main__":
    oracle.main()
