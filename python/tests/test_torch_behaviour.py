"""What torch expects of its profilers, asked of opscope.profile: stacks of TorchScript and of the backward pass, sequence numbers, memory that runs out, nested
tensors, threads, data loaders, observers.

Skipped under a Python without torch (Debian: python3-torch).
"""
import json
import os
import tempfile
import threading
import unittest
import warnings

from support import oracle
import opscope

try:
    import torch
except ImportError:
    torch = None


def inner(x, y):
    return torch.matmul(x, y)


def parallel(x, y):
    other = torch.jit.fork(inner, x, y)
    return torch.jit.wait(other) + torch.neg(x).sum()


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Behaviour(oracle.Case):
    def one(self, events, name):
        found = [e for e in events if e.name == name]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def test_stacks_of_torchscript_and_of_the_backward_pass(self):
        scripted = torch.jit.script(inner)
        a, b = torch.ones(3, 4, requires_grad=True), torch.ones(4, 5)
        with opscope.profile(with_stack=True) as prof:
            scripted(a, b).sum().backward()
        events = prof.events()
        forward = self.one(events, "aten::matmul")
        self.assertRegex(forward.stack[0], r"test_torch_behaviour\.py\(\d+\): inner$")
        node = self.one(events, "MmBackward0")
        self.assertEqual(node.stack, self.one([e for e in events if e.cpu_parent and e.cpu_parent.name == "aten::matmul"], "aten::mm").stack)

    def test_sequence_numbers_link_both_passes(self):
        a, b = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
        with opscope.profile() as prof:
            (a * b + a).sum().backward()
        events = prof.events()
        for forward, node in (("aten::mul", "MulBackward0"), ("aten::sum", "SumBackward0")):
            made = next(e for e in events if e.name == forward and e.sequence_nr >= 0)
            back = self.one(events, node)
            self.assertEqual((back.sequence_nr, back.scope), (made.sequence_nr, 1))
            self.assertEqual(self.one(events, f"autograd::engine::evaluate_function: {node}").cpu_children[0].id, back.id)

    def test_memory_that_runs_out(self):
        with opscope.profile(profile_memory=True, record_shapes=True) as prof:
            with self.assertRaises(RuntimeError):
                torch.empty(1 << 60, dtype=torch.uint8)
        self.assertEqual(self.one(prof.events(), "[OutOfMemory]").time_range.elapsed_us(), 0)
        self.assertIn("[OutOfMemory]", prof.key_averages().table(row_limit=-1))

    def test_memory_is_of_the_op_that_takes_it(self):
        """4 bytes a number; what is freed outside of all ops is an event of its own."""
        with opscope.profile(profile_memory=True) as prof:
            kept = torch.ones(1000)
            del kept
        events = prof.events()
        taken = self.one(events, "aten::ones")
        self.assertEqual((taken.cpu_memory_usage, taken.self_cpu_memory_usage, self.one(events, "aten::empty").cpu_memory_usage), (4000, 0, 4000))
        self.assertEqual(self.one(events, "[memory]").cpu_memory_usage, -4000)

    def test_nested_tensors(self):
        """They have no one shape: that of such an input is empty, and nothing stops."""
        nested = torch.nested_tensor if hasattr(torch, "nested_tensor") else torch.nested.nested_tensor
        pair = nested([torch.ones(2, 5), torch.ones(3, 5)])
        with opscope.profile(record_shapes=True) as prof:
            torch.nn.functional.linear(pair, torch.ones(4, 5), torch.ones(4))
        outermost = next(e for e in prof.events() if e.name == "aten::linear")
        self.assertEqual(outermost.input_shapes, [[], [4, 5], [4]])

    def test_work_of_another_thread_of_torchscript(self):
        """What is forked is recorded where it runs, with its range."""
        scripted = torch.jit.script(parallel)
        with opscope.profile() as prof, opscope.record_function("outer"):
            scripted(torch.ones(3, 3), torch.ones(3, 3))
        names = {a.key: a.count for a in prof.key_averages()}
        self.assertEqual((names["outer"], names["aten::neg"], names["aten::mm"]), (1, 1, 1))
        self.assertEqual(sorted(e.name for e in prof.events() if e.cpu_parent is None and e.name == "outer"), ["outer"])

    def test_threads_of_python_are_not_recorded(self):
        """torch's profiler is a thread's; a range of another thread is no event, and disturbs none."""
        def other():
            with opscope.record_function("elsewhere", "with args"):
                torch.ones(2)
        with opscope.profile() as prof, opscope.record_function("here", "with args"):
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        self.assertEqual([e.name for e in prof.events() if e.is_user_annotation or e.name in ("here", "elsewhere")][:1], ["here"])
        self.assertNotIn("elsewhere", [e.name for e in prof.events()])

    def test_loaders_and_optimizers_are_ranges(self):
        model = torch.nn.Linear(3, 2)
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 3)), batch_size=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with opscope.profile() as prof:
            for batch, in data:
                optimizer.zero_grad()
                model(batch).sum().backward()
                optimizer.step()
        counts = {a.key: a.count for a in prof.key_averages()}
        self.assertEqual(counts["Optimizer.step#SGD.step"], 4)
        self.assertEqual(counts["Optimizer.zero_grad#SGD.zero_grad"], 4)
        self.assertEqual(counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"], 5)  # the last one finds nothing

    def test_observer_of_a_graph(self):
        """It has what ran between its start and its stop, and goes with each recording of a profile."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.json")
            observer = opscope.ExecutionTraceObserver()
            observer.register_callback(path)
            with opscope.profile(execution_trace_observer=observer):
                with opscope.record_function("## seen ##"):
                    torch.mm(torch.ones(2, 2), torch.ones(2, 2))
            torch.sin(torch.ones(2))
            observer.unregister_callback()
            with open(path) as f:
                names = [node["name"] for node in json.load(f)["nodes"]]
        self.assertIn("aten::mm", names)
        self.assertIn("## seen ##", names)
        self.assertNotIn("aten::sin", names)

    def test_events_are_told_apart_by_their_ids(self):
        seen = set()
        for _ in range(2):
            with opscope.profile() as prof:
                torch.nn.functional.relu(torch.ones(4, 4) @ torch.ones(4, 4))
            ids = [e.id for e in prof.events()]
            self.assertEqual(len(set(ids)), len(ids))
            seen.add(prof.get_trace_id())
        self.assertEqual(len(seen), 2)

    def test_unit_of_flops(self):
        with opscope.profile(record_shapes=True, with_flops=True) as prof:
            torch.mm(torch.ones(50, 40), torch.ones(40, 30))
        self.assertIn("Total KFLOPs", prof.key_averages().table())
        self.assertEqual({a.key: a.flops for a in prof.key_averages()}["aten::mm"], 2 * 50 * 40 * 30)


# Uses of the profilers that torch's docstrings and recipes show: with opscope in the place of torch.profiler and torch.autograd.profiler. `model`, `x` and `folder` are given.
USES = [
    ("autograd.profiler.profile", """
a = torch.randn((1, 1), requires_grad=True)
with opscope.profile() as prof:
    for _ in range(10):
        (a ** 2).backward()
said = prof.key_averages().table(sort_by="self_cpu_time_total")
assert "aten::pow" in said and "Self CPU time total" in said
"""),
    ("autograd.profiler.record_function", """
with opscope.profile() as prof:
    y = x ** 2
    with opscope.record_function("label-z"):
        z = y ** 3
prof.key_averages().table(sort_by="self_cpu_time_total")
assert [e.count for e in prof.key_averages() if e.key == "label-z"] == [1]
"""),
    ("autograd.profiler.emit_itt, emit_nvtx", """
for emit in (opscope.emit_nvtx, opscope.emit_itt):
    with emit(enabled=False):
        model(x)
"""),
    ("profile(activities)", """
with opscope.profile(activities=[opscope.ProfilerActivity.CPU, opscope.ProfilerActivity.CUDA]) as p:
    model(x)
said = p.key_averages().table(sort_by="self_cuda_time_total", row_limit=-1)
assert "aten::linear" in said
"""),
    ("profile(schedule, on_trace_ready)", """
seen = []
def trace_handler(prof):
    seen.append(prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=-1))
    prof.export_chrome_trace(os.path.join(folder, "test_trace_" + str(prof.step_num) + ".json"))
with opscope.profile(activities=[opscope.ProfilerActivity.CPU], schedule=opscope.schedule(wait=1, warmup=1, active=2, repeat=1), on_trace_ready=trace_handler) as p:
    for iter in range(10):
        model(x)
        p.step()
assert len(seen) == 1 and os.listdir(folder) == ["test_trace_4.json"], (len(seen), os.listdir(folder))
"""),
    ("tensorboard_trace_handler", """
with opscope.profile(schedule=opscope.schedule(wait=2, warmup=2, active=6, repeat=1), on_trace_ready=opscope.tensorboard_trace_handler(folder, worker_name="worker0"),
                     with_stack=True) as profiler:
    for step in range(12):
        model(x)
        profiler.step()
name, = os.listdir(folder)
assert name.startswith("worker0.") and name.endswith(".pt.trace.json"), name
"""),
    ("start, step, stop", """
p = opscope.profile(record_shapes=True, with_flops=True, profile_memory=True)
p.start()
model(x)
p.step()
p.stop()
assert "Input Shapes" in p.key_averages(group_by_input_shape=True).table(sort_by="cpu_memory_usage", row_limit=10)
assert any(e.flops for e in p.key_averages())
"""),
    ("export_stacks", """
with opscope.profile(with_stack=True) as p:
    model(x)
p.export_stacks(os.path.join(folder, "profiler_stacks.txt"), "self_cpu_time_total")
assert all(line.rsplit(" ", 1)[1].strip().isdigit() for line in open(os.path.join(folder, "profiler_stacks.txt")))
p.key_averages(group_by_stack_n=5).table(sort_by="self_cpu_time_total", row_limit=2)
"""),
    ("export_memory_timeline", """
with opscope.profile(record_shapes=True, profile_memory=True, with_stack=True) as p:
    model(x).sum().backward()
p.export_memory_timeline(os.path.join(folder, "memory.html"))
assert os.path.getsize(os.path.join(folder, "memory.html")) > 1000
"""),
    ("add_metadata", """
with opscope.profile() as p:
    p.add_metadata("run", "first")
    p.add_metadata_json("sizes", "[1, 2]")
    model(x)
"""),
    ("flop_counter.FlopCounterMode", """
with opscope.FlopCounterMode(display=False) as counter:
    model(x)
assert counter.get_total_flops() == 2 * 2 * 4 * 3, counter.get_total_flops()
"""),
]


@unittest.skipUnless(torch, "no Python with torch (Debian: python3-torch)")
class Docstrings(oracle.Case):
    def test_uses(self):
        for name, code in USES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # no CUDA; a profiler without warm-up
                    exec(code, {"torch": torch, "opscope": opscope, "os": os, "model": torch.nn.Linear(4, 3), "x": torch.ones(2, 4), "folder": folder})


if __name__ == "__main__":
    oracle.main()
