"""What memory is for, as opscope.profile(profile_memory=True) tells the recording: the bytes of each category against a model whose parameters, gradients, state
and batches are known; the moments at which they come and go; that the program is as it would be without.

Skipped under a Python without torch (Debian: python3-torch).
"""
import gc
import json
import os
import tempfile
import threading
import unittest
import unittest.mock
import warnings
import weakref

from support import oracle
import opscope

try:
    import torch
    from opscope import _held
except ImportError:
    torch = None

FLAGS = {"record_shapes": True, "profile_memory": True}
PREEXISTING, CREATE, DESTROY = 1, 2, 4
CATEGORIES = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "Unknown"]
BATCH, WIDTH, HIDDEN, CLASSES = 32, 60, 200, 10
#: Floats of Linear(WIDTH, HIDDEN), BatchNorm1d(HIDDEN), Linear(HIDDEN, CLASSES).
PARAMETERS = 4 * (WIDTH * HIDDEN + HIDDEN + 2 * HIDDEN + HIDDEN * CLASSES + CLASSES)
#: Adam: two moments of each, and a step of each of the six.
STATE = 2 * PARAMETERS + 6 * 4
BUFFERS = 4 * 2 * HIDDEN + 8
INPUTS = 4 * BATCH * WIDTH + 8 * BATCH  # floats, and labels


class Net(torch.nn.Module if torch else object):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(WIDTH, HIDDEN), torch.nn.BatchNorm1d(HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES))

    def forward(self, x=None, labels=None):
        return torch.nn.functional.cross_entropy(self.body(x), labels)


def setUpModule():
    if torch is None:
        raise unittest.SkipTest("this Python has no torch")


def raw(prof, device="cpu"):
    """The changes of the exported timeline."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.raw.json")
        prof.trace.export("memory-timeline", path, form="raw", device=device)
        with open(path) as f:
            return json.load(f)


def held_at(changes, time_ns):
    """Bytes by category at a time; those of 0 are left out."""
    of = dict.fromkeys(CATEGORIES, 0)
    for t, _, size, category in changes:
        if t <= time_ns:
            of[CATEGORIES[category]] += size
    return {c: n for c, n in of.items() if n}


def before(changes):
    return held_at(changes, -1)


class Training:
    """The steps of a training, with a mark at the end of each."""

    def __init__(self, keywords=False, optimizer=None):
        gc.collect()
        self.model, self.keywords, self.ends = Net(), keywords, []
        self.optimizer = optimizer(self.model.parameters()) if optimizer else torch.optim.Adam(self.model.parameters())

    def step(self):
        x, labels = torch.randn(BATCH, WIDTH), torch.randint(0, CLASSES, (BATCH,))
        self.optimizer.zero_grad(set_to_none=True)
        (self.model(x=x, labels=labels) if self.keywords else self.model(x, labels)).backward()
        self.optimizer.step()
        del x, labels
        self.ends.append(_now())

    def run(self, n, **options):
        with opscope.profile(**FLAGS, **options) as prof:
            for _ in range(n):
                self.step()
                prof.step()
        return prof


def _now():
    import time

    return time.time_ns()


def schedule(warmup, active, repeat=1):
    return opscope.schedule(wait=0, warmup=warmup, active=active, repeat=repeat)


class Bytes(unittest.TestCase):
    """Known bytes of each category."""

    def others(self):
        """What the process held before a model was made: of this test, or of others."""
        gc.collect()
        with opscope.profile(**FLAGS) as prof:
            torch.zeros(1)
        return before(raw(prof)).get("Unknown", 0)

    def test_first_steps(self):
        """Nothing has been run before: gradients and state are made in the recording, and parameters are there."""
        others = self.others()
        t = Training()
        changes = raw(t.run(3, schedule=schedule(0, 3)))
        self.assertEqual(before(changes), {"PARAMETER": PARAMETERS, "Unknown": others + BUFFERS})
        for end in t.ends:
            held = held_at(changes, end)
            self.assertEqual({c: held.get(c) for c in ("PARAMETER", "OPTIMIZER_STATE", "GRADIENT")},
                             {"PARAMETER": PARAMETERS, "OPTIMIZER_STATE": STATE, "GRADIENT": PARAMETERS})
            self.assertEqual((held.get("INPUT"), held.get("ACTIVATION"), held.get("AUTOGRAD_DETAIL"), held.get("TEMPORARY")), (None,) * 4)

    def test_later_steps(self):
        """Gradients and state were made before, gradients anew: the old ones are not counted beside the new, though torch records none of their frees."""
        others = self.others()
        t = Training()
        changes = raw(t.run(3, schedule=schedule(1, 2)))
        self.assertEqual(before(changes), {"PARAMETER": PARAMETERS, "OPTIMIZER_STATE": STATE, "GRADIENT": PARAMETERS, "Unknown": others + BUFFERS})
        for end in t.ends[1:]:
            held = held_at(changes, end)
            self.assertEqual({c: held.get(c) for c in ("PARAMETER", "OPTIMIZER_STATE", "GRADIENT")},
                             {"PARAMETER": PARAMETERS, "OPTIMIZER_STATE": STATE, "GRADIENT": PARAMETERS})
        moments = sorted({c[0] for c in changes})
        self.assertLessEqual(max(held_at(changes, at).get("GRADIENT", 0) for at in moments), PARAMETERS + 4 * WIDTH * HIDDEN)
        self.assertEqual(max(held_at(changes, at).get("INPUT", 0) for at in moments), INPUTS)

    def test_without_steps(self):
        """No moment between beginning and end: what is alive at the end is known, and gradients by their place."""
        t = Training()
        with opscope.profile(**FLAGS) as prof:
            for _ in range(2):
                t.step()
        held = held_at(raw(prof), t.ends[-1])
        self.assertEqual({c: held.get(c) for c in ("PARAMETER", "OPTIMIZER_STATE", "GRADIENT", "INPUT")},
                         {"PARAMETER": PARAMETERS, "OPTIMIZER_STATE": STATE, "GRADIENT": PARAMETERS, "INPUT": None})

    def test_inputs(self):
        """Arguments of the outermost module, by position and by name; one that was held before is one, too."""
        for keywords in (False, True):
            changes = raw(Training(keywords).run(2, schedule=schedule(1, 1)))
            made = [(size, CATEGORIES[c]) for _, action, size, c in changes if action == CREATE and size in (4 * BATCH * WIDTH, 8 * BATCH)]
            self.assertIn((4 * BATCH * WIDTH, "INPUT"), made, keywords)
            self.assertIn((8 * BATCH, "INPUT"), made, keywords)
        model, kept = Net(), torch.randn(BATCH, WIDTH)
        labels = torch.randint(0, CLASSES, (BATCH,))
        with opscope.profile(**FLAGS) as prof:
            model(kept, labels=labels)
        self.assertEqual(before(raw(prof))["INPUT"], INPUTS)

    def test_what_a_module_made_is_no_input_of_another(self):
        first, second = torch.nn.Linear(11, 1013), torch.nn.Linear(1013, 3)
        with opscope.profile(**FLAGS) as prof, torch.no_grad():
            second(first(torch.ones(7, 11)))
        got = {CATEGORIES[c] for _, action, size, c in raw(prof) if action == CREATE and size == 4 * 7 * 1013}
        self.assertEqual(len(got), 1)
        self.assertNotIn("INPUT", got)

    def test_a_model_made_in_the_recording(self):
        with opscope.profile(**FLAGS) as prof:
            model = Net()
        self.assertEqual(held_at(raw(prof), _now())["PARAMETER"], PARAMETERS)
        del model

    def test_what_is_freed_in_the_recording(self):
        """A tensor of before that goes, and one that autograd has still."""
        gone, saved = torch.ones(5003), torch.ones(7001, requires_grad=True)
        result = saved.exp()  # whose graph has the result
        product = (result * 2).sum()
        with opscope.profile(**FLAGS, schedule=schedule(0, 2)) as prof:
            del gone
            torch.zeros(3)
            first = _now()
            del result
            torch.zeros(3)
            prof.step()
            second = _now()
            product.backward()
            prof.step()
        changes = raw(prof)
        freed = {-size: t for t, action, size, _ in changes if action == DESTROY}
        self.assertLess(freed[4 * 5003], first)
        self.assertTrue(4 * 7001 not in freed or freed[4 * 7001] > second)

    def test_views_share_a_storage(self):
        whole = torch.zeros(9001)
        parts = [whole[:10], whole[5000:]]
        with opscope.profile(**FLAGS) as prof:
            del whole
            torch.zeros(1)
        changes = raw(prof)
        self.assertEqual([size for _, _, size, _ in changes if abs(size) == 4 * 9001], [4 * 9001])
        del parts

    def test_other_optimizers(self):
        """State that is nested (LBFGS), or none (SGD)."""
        t = Training(optimizer=lambda p: torch.optim.SGD(p, 0.1))
        self.assertNotIn("OPTIMIZER_STATE", before(raw(t.run(2, schedule=schedule(1, 1)))))
        layer = torch.nn.Linear(50, 2)
        optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=3)

        def closure():
            optimizer.zero_grad()
            loss = layer(torch.ones(4, 50)).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        with opscope.profile(**FLAGS) as prof:
            torch.zeros(1)
        self.assertGreaterEqual(before(raw(prof))["OPTIMIZER_STATE"], 4 * 102)

    def test_reports(self):
        """The same by report memory-categories, and its words."""
        t = Training()
        prof = t.run(3, schedule=schedule(1, 2))
        table = prof.report("memory-categories")
        rows = dict(zip(table["category"], table["end_bytes"]))
        text = str(prof.report("memory-categories"))
        self.assertIn("what the program said", text)
        self.assertIn(f"{BUFFERS} bytes that were held before have no category: a buffer of a module, which is none of the categories", table.notes)
        self.assertNotIn("is damaged", text)
        self.assertEqual([rows[c] for c in ("PARAMETER", "OPTIMIZER_STATE", "GRADIENT", "INPUT")], [PARAMETERS, STATE, PARAMETERS, 0])

    def test_recordings_together(self):
        """acc_events: what was held before the first is what was held before."""
        t = Training()
        with opscope.profile(**FLAGS, acc_events=True, schedule=schedule(1, 1, 2)) as prof:
            for _ in range(4):
                t.step()
                prof.step()
        self.assertEqual(len(prof.recordings), 2)
        changes = raw(prof)
        self.assertEqual({c: before(changes)[c] for c in CATEGORIES[:2]}, {"PARAMETER": PARAMETERS, "OPTIMIZER_STATE": STATE})
        self.assertEqual(held_at(changes, _now())["PARAMETER"], PARAMETERS)


class Program(unittest.TestCase):
    """It is as it would be without."""

    def test_nothing_is_kept(self):
        """Tensors and modules die when they would; hooks are gone afterwards."""
        hooks = torch.nn.modules.module._global_forward_pre_hooks, torch.nn.modules.module._global_forward_hooks
        t = Training()
        tensor = torch.ones(10)
        refs = [weakref.ref(tensor), weakref.ref(t.model), weakref.ref(t.optimizer), weakref.ref(next(t.model.parameters()))]
        with opscope.profile(**FLAGS, schedule=schedule(0, 2)) as prof:
            t.step()
            prof.step()
            del tensor
            self.assertIsNone(refs[0]())
            self.assertEqual([len(h) for h in hooks], [1, 1])
            del t
            gc.collect()
            self.assertEqual([r() for r in refs], [None] * 4)
        self.assertEqual([len(h) for h in hooks], [0, 0])
        self.assertIn("PARAMETER", before(raw(prof)))

    def test_hooks_go_when_the_program_fails(self):
        with self.assertRaisesRegex(ValueError, "mine"), opscope.profile(**FLAGS):
            raise ValueError("mine")
        self.assertEqual(len(torch.nn.modules.module._global_forward_pre_hooks), 0)
        with unittest.mock.patch.object(torch.autograd.profiler.profile, "_start_trace", side_effect=RuntimeError("no")):
            with self.assertRaisesRegex(RuntimeError, "no"), opscope.profile(**FLAGS):
                pass
        self.assertEqual(len(torch.nn.modules.module._global_forward_pre_hooks), 0)

    def test_same_numbers(self):
        """A training gives the same to the bit."""
        def train(profiled):
            torch.manual_seed(3)
            t = Training()
            if profiled:
                t.run(3, schedule=schedule(1, 2))
            else:
                for _ in range(3):
                    t.step()
            return [p.detach().clone() for p in t.model.parameters()]

        self.assertTrue(all(torch.equal(a, b) for a, b in zip(train(False), train(True))))

    def test_objects_with_opinions(self):
        """Objects that claim to be tensors are not asked; tensors that cannot be asked are left out."""
        class Claims:
            @property
            def __class__(self):
                raise AssertionError("asked")

        class Overrides(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                raise AssertionError("asked")

        claims = [Claims()]
        odd = [torch.ones(3).to_sparse(), torch.ones(3, device="meta"), torch.ones(4001).as_subclass(Overrides)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with opscope.profile(**FLAGS) as prof:
                torch.zeros(1)
        self.assertIn(4 * 4001, [size for _, _, size, _ in raw(prof)])
        del claims, odd

    def test_a_failure_is_a_warning(self):
        with unittest.mock.patch.object(_held.Held, "_walk", side_effect=RuntimeError("no walk")):
            with self.assertWarnsRegex(UserWarning, "what memory is for could not be noted: RuntimeError: no walk"), opscope.profile(**FLAGS) as prof:
                torch.zeros(1)
        self.assertGreater(len(prof.report("memory")), 0)

    def test_without_memory(self):
        """Nothing is looked at."""
        with unittest.mock.patch.object(_held.Held, "begin", side_effect=AssertionError):
            with opscope.profile(record_shapes=True) as prof:
                torch.zeros(1)
        with open(prof.recordings[0].path) as f:
            self.assertNotIn(_held.KEY, f.read())

    def test_another_thread_frees(self):
        tensors = [torch.ones(1000 + k) for k in range(50)]

        def free():
            while tensors:
                tensors.pop()

        thread = threading.Thread(target=free)
        with opscope.profile(**FLAGS) as prof:
            torch.zeros(1)
            thread.start()
            thread.join()
        freed = [size for _, action, size, _ in raw(prof) if action == DESTROY]
        self.assertEqual(sorted(s for s in freed if -4 * 1050 < s <= -4 * 1000), [-4 * (1000 + k) for k in reversed(range(50))])


class File(unittest.TestCase):
    def test_page(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.html")
            Training().run(2, schedule=schedule(1, 1)).trace.export("memory-timeline", path, form="html")
            with open(path) as f:
                page = f.read()
        self.assertIn("what tensors of Python held when it began", page)
        self.assertIn("what the program said", page)

    def test_where_torch_is_another(self):
        """A torch in whose events addresses are not where they were found has none; what is no list of them is an error."""
        from opscope import _direct, _profiler
        self.assertGreater(_direct.Direct.find(), 0)
        result = _direct.Direct._sample(torch)
        events = len(result.events())
        known = _direct.Direct._allocations(result.experimental_event_tree())
        try:
            self.assertGreater(len(known), 3)
            for wrong in ([], known[1:], [(a + 8, *rest) for a, *rest in known], [(a, size, total + 1, 0) for a, size, total, _ in known]):
                self.assertIs(_profiler.find_memory(result, _profiler.stride(result, events), wrong), False)
            with opscope.profile(**FLAGS) as prof:
                torch.zeros(1000)
            with open(prof.recordings[0].path) as f:
                self.assertNotIn('"Addr"', f.read())
            for odd in (None, (), [1], [(1, 2, 3)], [(1, 2, 3, "4")]):
                self.assertRaises(TypeError, _profiler.find_memory, result, 40, odd)
        finally:
            self.assertIs(_profiler.find_memory(result, _profiler.stride(result, events), known), True)
        with opscope.profile(**FLAGS) as prof:
            torch.zeros(1000)
        with open(prof.recordings[0].path) as f:
            self.assertIn('"Addr"', f.read())

    def test_files_of_kineto(self):
        """Whatever stands behind the events, and however the file ends."""
        facts = _held.Facts([1, 2], [[0, 0, -1, 5, 16, 512]], [], 0)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            for text in ('{"schemaVersion": 1, "traceEvents": [\n  ],\n  "traceName": "/tmp/x.json"\n}', '{"traceEvents": []}\n\n', '{\n"traceEvents": [{"args": {}}]\n}\n'):
                with open(path, "w") as f:
                    f.write(text)
                _held.tell(path, facts)
                with open(path) as f:
                    whole = json.load(f)
                self.assertEqual(whole.pop(_held.KEY)["blocks"], facts.blocks)
                self.assertEqual(whole, json.loads(text))

    def test_other_readers(self):
        """A member of the object beside the events: the events are what they were."""
        t = Training()
        prof = t.run(2, schedule=schedule(1, 1))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            prof.save(path)
            with open(path) as f:
                whole = json.load(f)
        fact = whole.pop(_held.KEY)
        self.assertEqual(fact["kinds"], list(_held.KINDS))
        self.assertEqual(sorted(fact), ["blocks", "freed", "kinds", "left_out", "moments", "version"])
        self.assertFalse([e for e in whole["traceEvents"] if _held.KEY in json.dumps(e)])

    def test_limits(self):
        """More blocks than a fact has room for: parameters come first, and the report says that some are left out."""
        many = [torch.ones(3) for _ in range(40)]
        model = Net()
        with unittest.mock.patch.object(_held, "BLOCKS_MOST", 10):
            with opscope.profile(**FLAGS) as prof:
                torch.zeros(1)
        self.assertEqual(before(raw(prof))["PARAMETER"], PARAMETERS)
        self.assertIn("than the recording has room for", str(prof.report("memory-categories")))
        del many, model


class ExecutionTrace(unittest.TestCase):
    """From a trace alone, with torch's execution trace beside it: what must have been held before, against what the process held."""

    def both(self, run, warmup):
        """What was held before by the execution trace, and by the process."""
        from torch.profiler import ExecutionGraphObserver
        for _ in range(warmup):
            run()
        with tempfile.TemporaryDirectory() as folder:
            beside, plain, told = (os.path.join(folder, n) for n in ("et.json", "plain.json", "told.json"))
            observer = ExecutionGraphObserver()
            observer.register_callback(beside)
            with opscope.profile(**FLAGS, execution_trace_observer=observer) as prof:
                run()
            observer.unregister_callback()
            prof.save(told)
            with open(told) as f:
                trace = json.load(f)
            with open(beside) as f:
                nodes = sorted((n for n in json.load(f)["nodes"] if not n["name"].startswith("[")), key=lambda n: n["rf_id"])
            del trace[_held.KEY]
            # With Kineto, ops have these numbers themselves: both count from the beginning of an op.
            ops = sorted((e for e in trace["traceEvents"] if e["cat"] in ("cpu_op", "user_annotation")), key=lambda e: (e["ts"], -e["dur"]))
            self.assertEqual([n["name"] for n in nodes], [e["name"] for e in ops])
            for node, op in zip(nodes, ops):
                op["args"].update({"External id": node["rf_id"], "Record function id": node["rf_id"]})
            with open(plain, "w") as f:
                json.dump(trace, f)
            return [self.held(path, *args) for path, args in ((plain, ("--execution-trace=" + beside,)), (told, ()))]

    def held(self, path, *args):
        code, out, err = oracle.run("export", "memory-timeline", path, "--form=raw", *args)
        self.assertEqual(code, 0, err)
        return before(json.loads(out))

    def test_linear(self):
        model, x = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4)), torch.randn(50, 64)
        optimizer = torch.optim.Adam(model.parameters())

        def run():
            optimizer.zero_grad(set_to_none=True)
            model(x).square().sum().backward()
            optimizer.step()

        floats = 64 * 128 + 128 + 128 * 4 + 4
        mine, known = self.both(run, 1)
        # On a busy machine the result of the run before, 50 rows of 4, was once still there when the recording began.
        self.assertLessEqual(sum(mine.values()), 12 * floats + 16 + 4 * 50 * 64 + 4 * 50 * 4)
        self.assertLessEqual(mine["PARAMETER"], 4 * floats)
        self.assertLessEqual(mine["OPTIMIZER_STATE"], 8 * floats + 16)
        self.assertGreater(sum(mine.values()), 0.9 * (12 * floats + 16 + 4 * 50 * 64))
        self.assertEqual((known["PARAMETER"], known["OPTIMIZER_STATE"], known["INPUT"]), (4 * floats, 8 * floats + 16, 4 * 50 * 64))

    def test_never_more_than_there_was(self):
        """Convolutions, attention, LSTM, embeddings; several optimizers, gradients kept and not, one step and some: a lower bound of each category."""
        torch.manual_seed(1)
        models = {
            "conv": (torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 5)),
                     torch.randn(4, 3, 8, 8)),
            "attention": (torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.randn(3, 7, 32)),
            "embedding": (torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Flatten(), torch.nn.Linear(80, 3)), torch.randint(0, 50, (6, 5))),
        }
        for name, (model, x) in models.items():
            for make in (lambda p: torch.optim.SGD(p, 0.01), lambda p: torch.optim.SGD(p, 0.01, momentum=0.9), torch.optim.Adam, torch.optim.Adagrad):
                for none, steps, warmup in ((True, 1, 0), (True, 2, 1), (False, 2, 1)):
                    optimizer = make(model.parameters())

                    def run():
                        for _ in range(steps):
                            optimizer.zero_grad(set_to_none=none)
                            model(x).square().sum().backward()
                            optimizer.step()

                    for p in model.parameters():
                        p.grad = None
                    mine, known = self.both(run, warmup)
                    parameters = sum(4 * p.numel() for p in model.parameters())
                    state = sum(t.numel() * t.element_size() for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t))
                    what = (name, type(optimizer).__name__, none, steps, warmup, mine, known, parameters, state)
                    self.assertLessEqual(mine.get("PARAMETER", 0), parameters, what)
                    self.assertLessEqual(mine.get("GRADIENT", 0), parameters, what)
                    self.assertLessEqual(mine.get("OPTIMIZER_STATE", 0), state if warmup or make is torch.optim.Adagrad else 0, what)
                    self.assertLessEqual(sum(mine.values()), sum(known.values()), what)
                    self.assertGreater(mine.get("PARAMETER", 0), 0, what)
                    self.assertGreater(sum(mine.values()), 0.9 * parameters, what)

    def test_a_recording_that_begins_within_a_step(self):
        """Gradients of before are neither parameters nor state."""
        model, x = torch.nn.Linear(40, 30), torch.randn(8, 40)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

        def run():
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            model(x).square().sum().backward()

        model(x).square().sum().backward()
        mine, known = self.both(run, 1)
        for category in ("PARAMETER", "OPTIMIZER_STATE", "GRADIENT"):
            self.assertLessEqual(mine.get(category, 0), known.get(category, 0), (mine, known))


if __name__ == "__main__":
    oracle.main()
