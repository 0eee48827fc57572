"""`report key-averages --compat=torch-*` against what prof.key_averages(...).table(...) itself printed, byte for byte; and
total-average. Traces without Kineto (torch 1.13 here) hold no memory, shapes, stacks and FLOPs: of those the rest is compared."""
import os
import subprocess
import sys
import unittest

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


if __name__ == "__main__":
    oracle.main()
