"""`report key-averages --compat=torch-*` against what prof.key_averages(...).table(...) itself printed, byte for byte; and
total-average. Traces without Kineto (torch 1.13 here) hold no memory, shapes, stacks and FLOPs: of those the rest is compared."""
import os
import subprocess

import oracle
from oracle import Case, data, data_glob, report, run

VERSIONS = {"torch113_cpu": "torch-1.13", "torch26_cpu": "torch-2.6", "torch214_cpu": "torch-2.14"}
LEGACY = "torch113_cpu"
SORTED = ("count", "cpu_memory_usage", "cpu_time", "cpu_time_total", "self_cpu_memory_usage", "self_cpu_time_total")
GROUPED = {"group_by_input_shape": "name,shape", "group_by_stack_n1": "stack:1", "group_by_stack_n5": "stack:5"}


def tables(directory):
    """(path of the trace, path of the table, kind of the table) of the models whose trace is there."""
    out = []
    for path in data_glob(f"torch/{directory}/*.table.*.txt"):
        model, _, rest = os.path.basename(path).partition(".table.")
        trace = os.path.join(os.path.dirname(path), model + ".json.gz")
        if os.path.exists(trace):
            out.append((trace, path, rest[:-len(".txt")]))
    return out


def options(kind):
    """How the table was asked for: these by themselves in this order, the rest sorted by self_cpu_time_total."""
    if kind in SORTED:
        return ["--sort=" + kind, "--limit=40"]
    by = ["--group-by=" + GROUPED[kind]] if kind in GROUPED else []
    return ["--sort=self_cpu_time_total", "--limit=40" if "stack" in kind else "--limit=-1", *by]


def printed(trace, version, *args):
    code, out, err = run("report", "key-averages", trace, "--compat=" + version, *args)
    assert code == 0, err
    return out.decode() + "\n"  # which print() put behind it


def cells(line):
    """What stands between blanks, two and more of which part columns."""
    return [c.strip() for c in line.split("  ") if c.strip()]


def us(text):
    """A time as printed, in us, and half of its last digit."""
    for unit, factor in (("us", 1), ("ms", 1e3), ("s", 1e6)):
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor, 0.0005 * factor
    raise ValueError(text)


class Tables(Case):
    """torch 2: all that is there, byte for byte."""

    def test_byte_for_byte(self):
        n = 0
        for directory, version in VERSIONS.items():
            for trace, path, kind in tables(directory) if directory != LEGACY else ():
                with self.subTest(table=os.path.basename(path), version=version), open(path, encoding="utf-8") as f:
                    self.assertEqual(printed(trace, version, *options(kind)), f.read())
                n += 1
        if not n:
            data("torch", "torch214_cpu")
        self.assertEqual(n, 68)


class Legacy(Case):
    """The bare array: rows, columns and times of what does not need what it lacks. It has whole microseconds, as torch 1.13 itself."""
    SHOWN = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")

    def columns(self, line):
        return [cells(line).index(c) for c in self.SHOWN]

    def check(self, trace, path, kind):
        got = printed(trace, "torch-1.13", *options(kind))
        with open(path, encoding="utf-8") as f:
            want = f.read()
        full = "_full" in path
        if not full:
            self.assertEqual(got, want.rstrip("\n") + got[got.index("\nnot known"):])
            return
        head = self.columns(want.split("\n")[1])
        self.assertEqual(cells(got.split("\n")[1]), list(self.SHOWN))
        lines = [[cells(t)[i] for i in head] for t in want.split("\n")[3:] if t and not t.startswith(("---", "Self "))]
        ours = [cells(t) for t in got.split("\n")[3:] if t and not t.startswith(("---", "Self ", "not known"))]
        if "memory" in kind:  # sorted by what the trace lacks: the same rows of those shown, in some order
            have = {tuple(r) for r in (cells(t) for t in printed(trace, "torch-1.13", "--limit=0").split("\n")[3:] if t.strip())}
            self.assertTrue(all(tuple(r) in have for r in lines))
        else:
            self.assertEqual(ours, lines)
        footer = [t for t in want.split("\n") if t.startswith("Self CPU time total")]
        self.assertEqual([t for t in got.split("\n") if t.startswith("Self CPU time total")], footer)

    def test_without_what_the_trace_lacks(self):
        n = 0
        for trace, path, kind in tables(LEGACY):
            if kind not in GROUPED:
                with self.subTest(table=os.path.basename(path)):
                    self.check(trace, path, kind)
                n += 1
        if not n:
            data("torch", LEGACY)
        self.assertEqual(n, 28)


ASK_TORCH = """
import json, sys
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEventAvg
def make(r):
    e = FunctionEventAvg()
    e.key, e.count, e.node_id, e.is_async = r["key"], r["count"], r["node_id"], r["is_async"]
    e.cpu_time_total, e.self_cpu_time_total = r["cpu_time_total"], r["self_cpu_time_total"]
    e.cuda_time_total, e.self_cuda_time_total = r["device_time_total"], r["self_device_time_total"]
    e.cpu_memory_usage, e.self_cpu_memory_usage = r["cpu_memory_usage"] or 0, r["self_cpu_memory_usage"] or 0
    e.cuda_memory_usage, e.self_cuda_memory_usage = r["device_memory_usage"] or 0, r["self_device_memory_usage"] or 0
    e.input_shapes = r["input_shapes"] or ""
    e.stack = r["stack"].split(";") if r["stack"] else []
    e.flops = r["flops"] or 0
    e.device_type = DeviceType.CPU if r["device_type"] == "CPU" else DeviceType.CUDA
    return e
for q in json.load(sys.stdin):
    events = EventList([make(r) for r in q["rows"]], profile_memory=q["memory"], with_flops=q["flops"])
    print(json.dumps(events.table(**q["args"])))
"""


class Live(Case):
    """The table of torch 1.13 itself (Debian's python3-torch, where it is) of the same rows: the form, with devices, stacks, FLOPs."""
    ASKED = (  # options, and the same for torch
        (["--limit=0"], {"row_limit": -1}),
        (["--sort=self_cuda_time_total", "--limit=7", "--title=A title"], {"sort_by": "self_cuda_time_total", "row_limit": 7, "header": "A title"}),
        (["--sort=cuda_time", "--group-by=shape", "--max-width=key:30,input_shapes:25"],
         {"sort_by": "cuda_time", "max_name_column_width": 30, "max_shapes_column_width": 25}),
        (["--sort=cpu_time", "--group-by=name,stack:7,shape", "--max-width=stack:40"], {"sort_by": "cpu_time", "max_src_column_width": 40}),
        (["--sort=flops", "--group-by=stack:2"], {"sort_by": "flops"}),
        (["--sort=self_cuda_memory_usage"], {"sort_by": "self_cuda_memory_usage"}),
    )
    TRACES = ("torch/torch214_cpu/lstm_full.json.gz", "torch/torch26_cpu/resnet_full.json.gz", "tb_plugin/**/*.json*", "tracelens/h100/**/*.json*",
              "hta/**/*.json*")

    def test_same_as_torch(self):
        python = "/usr/bin/python3"
        if subprocess.run([python, "-c", "import torch; assert torch.__version__.startswith('1.13')"], capture_output=True).returncode:
            self.skipTest(f"no torch 1.13 for {python}")
        paths = [oracle.synthetic("torch_table")]
        for pattern in self.TRACES:
            paths += [p for p in data_glob(pattern) if "expected" not in p and os.path.getsize(p) < 4 << 20][:1 if oracle.SANITIZED else 2]
        asked, ours = [], []
        for path in paths:
            for mine, args in self.ASKED:
                if run("report", "key-averages", path, "--compat=torch-1.13", *mine)[0]:
                    continue  # no trace of torch
                mine_rows = [o for o in mine if o.startswith("--group")]
                rows = report("key-averages", path, "--compat=torch-1.13", "--limit=0", *mine_rows).rows
                text = printed(path, "torch-1.13", *mine)[:-1]
                asked.append({"rows": rows, "memory": "CPU Mem" in text, "flops": "FLOPs" in text, "args": args})
                ours.append((os.path.basename(path), mine, text))
        p = subprocess.run([python, "-c", ASK_TORCH], input=oracle.json.dumps(asked), capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stderr)
        theirs = [oracle.json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual(len(theirs), len(ours))
        self.assertTrue(any("Self CUDA time total" in text for _, _, text in ours))
        for (name, mine, text), want in zip(ours, theirs):
            with self.subTest(trace=name, options=mine):
                self.assertEqual(text, want)


if __name__ == "__main__":
    oracle.main()
