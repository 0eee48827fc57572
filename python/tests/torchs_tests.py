#!/usr/bin/env python3
"""Runs torch's own tests of its profilers against opscope.profile, and prints a table: torchs_tests.py FOLDER, the `test` folder of torch's sources, of the
version that is installed. They are not part of opscope: Debian has those of its torch (apt-get source --download-only pytorch).

Each test runs twice, as it is and with opscope's names in the place of torch's: profile, record_function, schedule, EventList and the like, wherever the
test's module names them. What fails as it is, or is skipped, says nothing of opscope.
"""
import importlib.util
import io
import os
import sys
import types
import unittest
import warnings

import torch

import opscope

# File -> classes and tests, by how their names begin. Not TestTorchTidyProfiler, TestExperimentalUtils and profiler/test_profiler_tree.py: what these look at is
# torch's tree of raw events (prof.profiler.kineto_results.experimental_event_tree()).
FILES = {
    "test_autograd.py": ("TestAutograd.test_profiler", "TestAutograd.test_record_function"),
    "profiler/test_profiler.py": ("TestRecordFunction.", "TestExecutionGraph.", "TestProfiler.", "TestProfilerITT.", "TestProfilerCUDA."),
}
NAMES = ("EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "ProfilerAction", "emit_itt", "emit_nvtx", "load_nvprof", "profile", "record_function",
         "schedule", "supported_activities", "tensorboard_trace_handler")
OURS = {**{name: getattr(opscope, name) for name in NAMES}, "_profile": opscope.profile}


class Instead:
    """A module with some names of others."""

    def __init__(self, module, names):
        self.__dict__.update(_module=module, _names=names)

    def __getattr__(self, name):
        return self._names[name] if name in self._names else getattr(self._module, name)

    def __setattr__(self, name, value):
        setattr(self._module, name, value)


def stand_in_for_expecttest():
    """torch's tests need it; those that run here ask it for one method."""
    class TestCase(unittest.TestCase):
        def assertExpectedInline(self, actual, expected, skip=0):
            self.assertEqual(actual, expected)

    if importlib.util.find_spec("expecttest") is None:
        sys.modules["expecttest"] = module = types.ModuleType("expecttest")
        module.TestCase, module.ACCEPT = TestCase, False


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put_ours(module, test):
    """opscope's names; also behind `torch.profiler.` and `torch.autograd.profiler.`, except where TorchScript looks for torch itself."""
    for name, value in OURS.items():
        if hasattr(module, name):
            setattr(module, name, value)
    profiler, of_autograd = Instead(torch.profiler, OURS), Instead(torch.autograd.profiler, OURS)
    scripted = "torch.jit.script" in open(module.__file__, encoding="utf-8").read().split(f"def {test}(", 1)[-1].split("\n    def test_", 1)[0]
    module.torch = torch if scripted else Instead(torch, {"profiler": profiler, "autograd": Instead(torch.autograd, {"profiler": of_autograd})})


def outcome(test):
    """(what became of it, why)."""
    result = unittest.TestResult()
    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        test.run(result)
    finally:
        sys.stdout = out
    bad = [*result.failures, *result.errors]
    if bad:
        return "fail", bad[0][1].strip().splitlines()[-1]
    return ("skipped", result.skipped[0][1]) if result.skipped else ("pass", "")


def tests_of(module, prefixes):
    for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
        for test in suite:
            name = test.id().split(".", 1)[1]
            if name.startswith(prefixes):
                yield name, test


def main():
    folder = os.path.abspath(sys.argv[1])
    del sys.argv[1:]
    stand_in_for_expecttest()
    warnings.simplefilter("ignore")
    print("| test | torch | opscope | why |\n|---|---|---|---|")
    for file, prefixes in FILES.items():
        path = os.path.join(folder, file)
        os.chdir(os.path.dirname(path))
        sys.path.insert(0, os.path.dirname(path))
        name = os.path.basename(file)[:-len(".py")]
        theirs, ours = load(path, name), load(path, name + "_by_opscope")
        again = dict(tests_of(ours, prefixes))
        for test, run in tests_of(theirs, prefixes):
            before, why = outcome(run)
            after = ""
            if before == "pass":
                put_ours(ours, test.split(".")[-1])
                after, why = outcome(again[test])
            print(f"| {name}: {test} | {before} | {after} | {why} |", flush=True)


if __name__ == "__main__":
    main()
