"""The C API: its example program prints what the CSV report says, and the library gives out its own names only."""
import csv
import ctypes
import glob
import io
import json
import os
import subprocess
import unittest

import oracle

BUILD = os.environ.get("OPSCOPE_BUILD", os.path.join(oracle.ROOT, "build"))
EXAMPLE = os.path.join(BUILD, "src", "api", "top_operators")
BUNDLED = os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz")
GPU = ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143566756.pt.trace.json.gz")


TORCH_SCHEDULES = """
import itertools, json, torch.profiler as t
schedules = []
for wait, warmup, active, repeat, skip in itertools.product(range(3), range(3), range(1, 4), range(3), range(3)):
    f = t.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip)
    schedules.append([[wait, warmup, active, repeat, skip], [f(s).value for s in range(30)]])
moves = []
for (a, b), todo in t.profile().action_map.items():
    moves.append([a.value, 4 if b is None else b.value, [getattr(f, '__name__', 'warn') for f in todo]])
print(json.dumps({'schedules': schedules, 'transitions': moves}))
"""


class Api(oracle.Case):
    def example(self, *args):
        return subprocess.run([oracle.built(EXAMPLE, "OPSCOPE_BUILD"), *args], capture_output=True, text=True, timeout=oracle.TIMEOUT)

    def agrees(self, trace, time):
        code, out, err = oracle.run("report", "operators", trace, "--format=csv", "--sort=" + time)
        self.assertEqual(code, 0, err)
        rows = list(csv.DictReader(io.StringIO(out.decode())))[:5]
        p = self.example(trace)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        got = [line.split() for line in p.stdout.splitlines()[:len(rows)]]
        self.assertEqual([(g[0], g[1], g[3]) for g in got], [(r["name"], r["calls"] or "-", r[time]) for r in rows])
        notes = oracle.report("operators", trace).notes
        self.assertEqual(p.stdout.splitlines()[len(rows):], notes)

    def test_example_bundled(self):
        self.agrees(BUNDLED, "host_self_ns")

    def test_example_gpu(self):
        self.agrees(oracle.data(*GPU), "device_self_ns")

    def test_unknown_values(self):
        """Device work that no op launched: the row has time, but no calls."""
        trace = oracle.synthetic("communication_annotation")
        p = self.example(trace)
        line = next(x for x in p.stdout.splitlines() if x.startswith("(unattributed)"))
        self.assertEqual(line.split()[1:3], ["-", "calls"])
        self.agrees(trace, "device_self_ns")

    def test_errors(self):
        p = self.example("/no/such/file")
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stderr.count("\n"), 1)
        self.assertIn("/no/such/file", p.stderr)
        self.assertEqual(self.example().returncode, 2)

    def test_schedules_as_torch_has_them(self):
        """Every small schedule and every transition, by torch's own functions where torch is installed."""
        theirs = subprocess.run([os.environ.get("TORCH_PYTHON", "/usr/bin/python3"), "-W", "ignore", "-c", TORCH_SCHEDULES],
                                capture_output=True, text=True)
        if theirs.returncode:
            self.skipTest("torch is not installed: " + (theirs.stderr.strip().splitlines() or ["no python"])[-1])
        theirs = json.loads(theirs.stdout)
        path = oracle.built(os.path.join(BUILD, "src", "api", "libopscope.so"), "OPSCOPE_BUILD")
        with open(path, "rb") as f:
            if b"__asan_init" in f.read():
                self.skipTest("a python without AddressSanitizer cannot load a library that has it")
        library = ctypes.CDLL(path)
        compared = 0
        for arguments, actions in theirs["schedules"]:
            spec = (ctypes.c_int64 * 6)(*arguments, 0)
            got = [library.opscope_schedule(spec, ctypes.c_int64(step), None, ctypes.c_size_t(0)) for step in range(len(actions))]
            self.assertEqual(got, actions, f"wait, warmup, active, repeat, skip_first = {arguments}")
            compared += len(actions)
        names = {"prepare_trace": 1, "start_trace": 2, "stop_trace": 3, "_trace_ready": 4}
        for a, b, operations in theirs["transitions"]:
            out, warning = (ctypes.c_int * 4)(), ctypes.c_char_p()
            n = library.opscope_transition(a, b, out, ctypes.byref(warning))
            self.assertEqual(list(out)[:n], [names[o] for o in operations if o in names], (a, b))
            self.assertEqual(warning.value is not None, "warn" in operations, (a, b))
        self.assertEqual(len(theirs["transitions"]), 19)
        self.assertEqual(compared, 3 * 3 * 3 * 3 * 3 * 30)

    def test_per_names_and_notes(self):
        """The options that say how tables are told."""
        path = oracle.built(os.path.join(BUILD, "src", "api", "libopscope.so"), "OPSCOPE_BUILD")
        with open(path, "rb") as f:
            if b"__asan_init" in f.read():
                self.skipTest("a python without AddressSanitizer cannot load a library that has it")
        library, error = ctypes.CDLL(path), ctypes.create_string_buffer(500)
        for f in ("opscope_open", "opscope_report", "opscope_options_new", "opscope_table_render"):
            getattr(library, f).restype = ctypes.c_void_p
        trace = library.opscope_open(oracle.data("hta", "df_index_resolver", "df_index_resolver.json.gz").encode(), None, error, ctypes.c_size_t(500))

        def told(format, **options):
            o = ctypes.c_void_p(library.opscope_options_new())
            for name, value in options.items():
                if library.opscope_options_set(o, name.encode(), value.encode(), error, ctypes.c_size_t(500)):
                    return error.value.decode()
            table = library.opscope_report(ctypes.c_void_p(trace), b"kernels", o, error, ctypes.c_size_t(500))
            text = library.opscope_table_render(ctypes.c_void_p(table), format, o, None, error, ctypes.c_size_t(500))
            return ctypes.string_at(text).decode()

        self.assertIn("elementwise<CUDAFunctor_add> vectorized ", told(b"text"))
        self.assertNotIn("elementwise<CUDAFunctor_add> vectorized ", told(b"text", names="full"))
        self.assertIn("kernels 977.859 ms = ", told(b"text"))
        self.assertEqual(told(b"text"), told(b"text", notes="full"))
        self.assertIn("kernels 977.859 ms = ", told(b"text", notes="brief"))
        self.assertTrue(told(b"csv", per="step", columns="name,calls").startswith("name,calls_per_step\r\nncclKernel") or
                        told(b"csv", per="step", columns="name,calls").startswith("name,calls_per_step\nncclKernel"))
        self.assertEqual(told(b"csv", per="day"), "per=day: total, step or call was expected")
        self.assertEqual([told(b"csv", names="x"), told(b"csv", notes="x")], ["names=x: short or full was expected", "notes=x: brief or full was expected"])

    def test_exported_names(self):
        library = oracle.built(os.path.join(BUILD, "src", "api", "libopscope.so"), "OPSCOPE_BUILD")
        out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        names = [line.split()[-1] for line in out.splitlines()]
        foreign = [n for n in names if not n.startswith("opscope_") and n not in ("_init", "_fini", "__bss_start", "_edata", "_end")  # by linkers
                   and "asan" not in n and "ubsan" not in n]
        self.assertEqual(foreign, [])
        header = "".join(open(os.path.join(oracle.ROOT, "include", "opscope", name), encoding="utf-8").read()
                         for name in ("opscope.h", "arrow.h", "schedule.h"))
        self.assertEqual([n for n in names if n.startswith("opscope_") and n + "(" not in header], [])
        self.assertGreater(len(names), 30)


if __name__ == "__main__":
    oracle.main()
