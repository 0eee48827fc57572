"""`inference`: phases of an inference server. Against recordings whose truth is planted, for each server's way to name iterations, and against two real
decodes, whose numbers are counted from the JSON by themselves."""
import csv
import decimal
import gzip
import json
import os
import tempfile

import oracle
from oracle import Case, data, steps_report

US = 1000  # ns


class Recording:
    """Of one thread and GPUs, times in ns."""

    def __init__(self):
        self.events, self.correlation = [], 0

    def add(self, cat, name, tid, start, dur, pid=1, **args):
        ts = f"{start // US}.{start % US:03d}"
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": decimal.Decimal(ts), "dur": decimal.Decimal(dur) / US, "args": args})

    def iteration(self, name, start, end):
        self.add("user_annotation", name, 1, start, end - start)

    def launch(self, at, start, dur, gpu=0, name="kernel"):
        self.correlation += 1
        self.add("cuda_runtime", "cudaLaunchKernel", 1, at, 1 * US, correlation=self.correlation)
        self.add("kernel", name, 7, start, dur, pid=gpu, correlation=self.correlation, device=gpu, stream=7, grid=[1, 1, 1], block=[32, 1, 1])

    def write(self, path):
        def plain(x):
            if isinstance(x, decimal.Decimal):
                return Number(x)
            raise TypeError(x)
        gpus = sorted({e["args"]["device"] for e in self.events if e["cat"] == "kernel"})
        doc = {"schemaVersion": 1, "deviceProperties": [{"id": g, "name": "NVIDIA H100 80GB HBM3"} for g in gpus], "traceEvents": self.events}
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(doc, default=plain))
        return path


class Number(float):
    """A decimal as it is, which json would round."""

    def __new__(cls, x):
        self = super().__new__(cls, x)
        self.text = str(x)
        return self

    def __repr__(self):
        return self.text


def vllm(p, pt, d, dt):
    return f"execute_context_{p}({pt})_generation_{d}({dt})"


def detailed(p, pt, d, dt):
    return f"execute_{pt + dt}_context_{p}(sq{pt}sk{2 * pt}sqsq{pt * pt}sqsk{2 * pt * pt})_generation_{d}(sq{dt}sk{100 * d}sqsq{dt}sqsk{100 * dt})"


def sglang(p, pt, d, dt):
    return f"step[DECODE bs={d}]" if not p else f"step[EXTEND bs={p} toks={pt}]" if not d else f"step[MIXED bs={p + d} toks={pt + dt}]"


def atom(p, pt, d, dt):
    return f"decode[bs={d}/64 tok={dt} d={d}]" if not p else f"prefill[bs={p} tok={pt} ctx=[{pt}]]" if not d else sglang(p, pt, d, dt)


def tensorrt(p, pt, d, dt):
    return f"[Executor] _forward_step 7: {p} ctx reqs, {pt} ctx tokens, {d} gen reqs"


def phase_of(p, d):
    return "mixed" if p and d else "prefill" if p else "decode" if d else "idle"


# Prefill requests and tokens, decode requests and tokens, then how long two kernels run, and the pause behind, in us.
PLAN = [(2, 900, 0, 0, 700, 40, 100), (0, 0, 2, 2, 30, 10, 60), (0, 0, 2, 2, 33, 12, 44), (1, 300, 2, 2, 400, 25, 130), (0, 0, 3, 3, 31, 11, 50), (0, 0, 3, 3, 29, 14, 0)]


def plan(name_of, steps=PLAN):
    """A recording, and the truth by phase. The first kernel of a step begins 20 us after it, its call 10 us after; the second was launched before the first ended and begins 5 us behind it; a
    sampler's kernel runs in each pause, from 10 to 25 us, launched 4 us after the step. The GPU waits for the host until a call begins, and what the call queued waits from there on."""
    r, now, truth = Recording(), 1_000_000 * US, {}

    def count(phase, ns, busy, host, queued, kernels, requests=0, tokens=0):
        t = truth.setdefault(phase, [0, 0, 0, 0, 0, 0, 0, 0])
        for i, v in enumerate((1, ns, busy, host, queued, kernels, requests, tokens)):
            t[i] += v

    for i, (p, pt, d, dt, first, second, pause) in enumerate(steps):
        end = now + (20 + first + 5 + second) * US
        r.iteration(name_of(p, pt, d, dt), now, now + 30 * US)
        r.launch(now + 10 * US, now + 20 * US, first * US)
        r.launch(now + 12 * US, end - second * US, second * US)
        count(phase_of(p, d), end - now, (first + second) * US, 10 * US, 15 * US, 2, p + d, d if not p else pt + dt)
        if i + 1 < len(steps):
            r.launch(end + 4 * US, end + 10 * US, 15 * US, name="sample")
            count("between", pause * US, 15 * US, (pause - 21) * US, 6 * US, 1)
        now = end + pause * US
    return r, truth


def spread(pieces, ops):
    """Of each piece of time: how long work ran, how long the GPU had none and the call of its next had not begun, and how long it had none though that call had begun. Each op is (start, end, start of its call)."""
    busy, host, queued, until = [0] * len(pieces), [0] * len(pieces), [0] * len(pieces), pieces[0][0]
    within = lambda i, a, b: max(0, min(b, pieces[i][1]) - max(a, pieces[i][0]))
    for start, end, called in sorted(ops):
        for i in range(len(pieces)):
            busy[i] += within(i, max(start, until), end)
            host[i] += within(i, until, min(called, start))
            queued[i] += within(i, max(until, called), start)
        until = max(until, end)
    for i in range(len(pieces)):
        host[i] += within(i, until, pieces[-1][1])
    return busy, host, queued


class InferenceCase(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "trace.json")

    def report(self, r, *args):
        return steps_report("inference", r.write(self.path), *args)


class Planted(InferenceCase):
    def check(self, table, truth, gpus=1):
        whole = sum(t[1] for t in truth.values())
        self.assertEqual({r["phase"] for r in table.rows}, set(truth))
        for row in table.rows:
            n, ns, busy, host, queued, kernels, requests, tokens = truth[row["phase"]]
            with self.subTest(phase=row["phase"]):
                self.assertEqual((row["steps"], row["time_ns"]), (n, ns))
                self.assertAlmostEqual(row["time_pct"], 100 * ns / whole)
                self.assertAlmostEqual(row["step_ns"], ns / n)
                self.assertAlmostEqual(row["gpu_busy_pct"], 100 * busy / ns / gpus)
                self.assertAlmostEqual(row["host_gap_ns"], host / n / gpus)
                self.assertAlmostEqual(row["queued_ns"], queued / n / gpus)
                self.assertEqual(busy + host + queued, ns * gpus)
                self.assertAlmostEqual(row["step_kernels"], kernels / n / gpus)
                if row["phase"] == "between":
                    self.assertEqual([row[c] for c in ("requests", "tokens", "token_ns", "token_kernels")], [None] * 4)
                    continue
                self.assertAlmostEqual(row["requests"], requests / n)
                self.assertEqual(row["tokens"], tokens)
                self.assertAlmostEqual(row["step_tokens"], tokens / n)
                self.assertAlmostEqual(row["token_ns"], ns / tokens)
                self.assertAlmostEqual(row["tokens_per_s"], tokens * 1e9 / ns)
                self.assertAlmostEqual(row["token_kernels"], kernels / tokens / gpus)
        between = truth.get("between", (0, 0))[1]
        self.assertIn(f"from the first step to the last {whole} ns = steps {whole - between} + between {between}", table.notes)

    def test_servers(self):
        for name_of in (vllm, detailed, sglang, atom):
            with self.subTest(server=name_of.__name__):
                r, truth = plan(name_of)
                table = self.report(r)
                self.check(table, truth)
                steps = table.section("steps").rows
                self.assertEqual([(s["step"], s["phase"]) for s in steps], [(i, phase_of(x[0], x[2])) for i, x in enumerate(PLAN)])
                self.assertEqual([s["tokens"] for s in steps], [x[1] + x[3] for x in PLAN])
                self.assertEqual([s["between_ns"] for s in steps], [x[6] * US for x in PLAN[:-1]] + [None])
                self.assertEqual([(s["host_gap_ns"], s["queued_ns"]) for s in steps], [(10 * US, 15 * US)] * len(PLAN))
                if name_of in (vllm, detailed):
                    self.assertEqual([(s["prefill_requests"], s["prefill_tokens"], s["decode_requests"], s["decode_tokens"]) for s in steps], [x[:4] for x in PLAN])
                if name_of is detailed:
                    self.assertEqual([s["context_tokens"] for s in steps], [2 * x[1] + 100 * x[2] for x in PLAN])
                    self.assertEqual([s["attention_pairs"] for s in steps], [2 * x[1] * x[1] + 100 * x[3] for x in PLAN])
                if name_of is atom:
                    self.assertEqual([s["padded_batch"] for s in steps], [None if x[0] else 64 for x in PLAN])

    def test_no_requests(self):
        """An iteration without requests, as a server's ranks run that wait for others."""
        r, truth = plan(vllm, PLAN[:2] + [(0, 0, 0, 0, 9, 9, 50)] + PLAN[2:])
        table = self.report(r)
        idle = table.by("phase")["idle"]
        self.assertEqual((idle["steps"], idle["time_ns"], idle["requests"], idle["tokens"], idle["token_ns"]), (1, truth["idle"][1], 0, 0, None))

    def test_some_steps(self):
        r, _ = plan(vllm)
        table = self.report(r, "--steps=1..2")
        self.assertEqual([(x["phase"], x["steps"]) for x in table.rows], [("decode", 2), ("between", 1)])
        self.assertEqual([x["step"] for x in table.section("steps").rows], [1, 2])
        self.assertEqual(oracle.run("report", "inference", self.path, "--steps=9")[0], 1)

    def test_two_gpus(self):
        """The second has a kernel in every other step, and waits else."""
        r, truth = plan(detailed)
        at = [e["ts"] * US for e in r.events if e["cat"] == "user_annotation"]
        ends = [at[i] + (25 + x[4] + x[5]) * US for i, x in enumerate(PLAN)]
        ops = [(int(at[i]) + 40 * US, int(at[i]) + 55 * US, int(at[i]) + 14 * US) for i in range(0, len(PLAN), 2)]
        for start, end, called in ops:
            r.launch(called, start, end - start, gpu=1)
        pieces = sorted([(int(a), int(b)) for a, b in zip(at, ends)] + [(int(b), int(a)) for a, b in zip(at[1:], ends)])
        busy, host, queued = spread(pieces, ops)
        for i in range(len(pieces)):
            t = truth["between" if i % 2 else phase_of(PLAN[i // 2][0], PLAN[i // 2][2])]
            t[2] += busy[i]
            t[3] += host[i]
            t[4] += queued[i]
            t[5] += sum(pieces[i][0] <= o[0] < pieces[i][1] for o in ops)
        table = self.report(r)
        self.check(table, truth, gpus=2)
        self.assertIn("2 GPUs worked: busy, gaps and kernels are the means of them", table.notes)

    def test_not_told(self):
        """SGLang tells of a mixed batch its requests alone; of drafts that are verified no one knows how many are kept."""
        r, truth = plan(lambda p, pt, d, dt: sglang(p, pt, d, dt).split(" toks")[0] + "]" if p and d else sglang(p, pt, d, dt))
        table = self.report(r)
        mixed = table.by("phase")["mixed"]
        self.assertEqual((mixed["requests"], mixed["tokens"], mixed["token_ns"], mixed["token_kernels"]), (3, None, None, None))
        self.assertTrue(any(n.startswith("of 1 step the server's annotation does not tell the tokens") for n in table.notes), table.notes)
        self.assertEqual(table.by("phase")["decode"]["tokens"], truth["decode"][7])
        r, _ = plan(lambda p, pt, d, dt: detailed(p, pt, d, 4 * dt))
        table = self.report(r)
        self.assertEqual(table.by("phase")["decode"]["tokens"], None)
        self.assertTrue(any(n.startswith("4 decode steps computed more tokens than they have requests") for n in table.notes), table.notes)
        self.assertEqual([s["decode_tokens"] for s in table.section("steps").rows], [4 * x[3] for x in PLAN])
        r, truth = plan(tensorrt)
        rows = self.report(r).by("phase")
        self.assertEqual([(rows[x]["tokens"], rows[x]["requests"]) for x in ("prefill", "mixed", "decode")], [(900, 2), (None, 3), (None, 2.5)])

    def test_other_steps(self):
        """torch.profiler's own steps stay: what a step holds of the server's iterations is its phase, and some hold none."""
        r, _ = plan(vllm)
        at = [int(e["ts"] * US) for e in r.events if e["cat"] == "user_annotation"]
        borders = [at[0] - 99 * US, at[0] - 9 * US, at[1] - 1 * US, at[4] - 1 * US, at[5] + 99 * US]
        for i, (a, b) in enumerate(zip(borders, borders[1:])):
            r.iteration(f"ProfilerStep#{i + 4}", a, b)
        table = self.report(r)
        self.assertEqual([(s["step"], s["phase"], s["iterations"], s["tokens"]) for s in table.section("steps").rows],
                         [(4, "none", 0, None), (5, "prefill", 1, 900), (6, "mixed", 3, 306), (7, "decode", 2, 6)])
        self.assertIn("1 of 4 steps hold no iteration that the server marks: row none", table.notes)

    def test_host_alone(self):
        r, _ = plan(vllm)
        r.events = [e for e in r.events if e["cat"] == "user_annotation"]
        table = self.report(r)
        self.assertEqual(table.by("phase")["decode"]["time_ns"], 4 * 30 * US)
        self.assertNotIn("gpu_busy_pct", table.rows[0])

    def begin(self, wait, later=5, more=True, before=None):
        """A step of 40 us whose first work waits so long behind its call, in us, and two calls of work behind it, the last of which begins `later` us after its call, on an idle GPU."""
        r, now = Recording(), 1_000_000 * US
        first = now + (5 + wait) * US
        r.iteration(vllm(0, 0, 2, 2), now, now + 40 * US)
        if before:
            r.launch(now - 30 * US, *before)
        r.launch(now + 4 * US, first, 50 * US)
        r.launch(now + 7 * US if more else first + 1 * US, first + 51 * US, 50 * US)
        r.iteration(vllm(0, 0, 3, 3), first + 150 * US, first + 170 * US)
        r.launch(first + 160 * US, first + (161 + later) * US, 50 * US)
        table = self.report(r)
        told = [n for n in table.notes if n.startswith("Step 0 begins")]
        return table.section("steps").rows[0]["start_ns"] - now, first - now, told

    def test_begin_of_recording(self):
        """The first work waits for work that was not recorded, where it waits longer than a GPU without work lets any wait, and more is launched behind it."""
        start, first, told = self.begin(800)
        self.assertEqual((start, len(told)), (first, 1))
        self.assertIn("0.805 ms after its range (0.040 ms) did: this work waited 0.800 ms behind its launch, no later work waited longer than 0.005 ms", told[0])
        steps = steps_report("steps", self.path)
        self.assertEqual(sum(n.startswith("Step 0 begins") for n in steps.notes), 1)
        steps = steps_report("steps", self.path, "--steps=1")
        self.assertFalse(any(n.startswith("Step 0 begins") for n in steps.notes), steps.notes)
        for ask in ({"wait": 90}, {"wait": 800, "later": 90}, {"wait": 800, "more": False}):
            with self.subTest(**ask):
                self.assertEqual(self.begin(**ask)[0::2], (0, []))
        start, first, told = self.begin(800, before=(1_000_000 * US - 10 * US, 60 * US))
        self.assertEqual(start, 50 * US)
        self.assertEqual(told, ["Step 0 begins 0.050 ms after its range (0.040 ms) did, when the GPU had ended work that was launched before the range."])

    def test_no_server(self):
        code, out, err = oracle.run("report", "inference", oracle.synthetic("all_categories"))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"no inference server marks its iterations in the input", err)


class Real(InferenceCase):
    """One decode each, replayed as a graph."""

    def check(self, path, mark, requests, keys):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            events = [e for e in json.load(f, parse_float=decimal.Decimal)["traceEvents"] if e.get("ph") == "X"]
        span = lambda e: (int(e["ts"] * US), int(e["ts"] * US) + int(e["dur"] * US))
        begin, end = span(next(e for e in events if e["name"].startswith(mark)))
        calls = {e["args"]["correlation"]: span(e) for e in events if e["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in e["args"]}
        work = [(*span(e), calls.get(e["args"]["correlation"], (begin, begin)), e["cat"]) for e in events if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
        own = [w for w in work if begin <= w[2][0] and w[2][1] <= end]
        begin = max([begin] + [w[1] for w in work if w not in own and w[1] < min(o[0] for o in own)])
        end = max([end] + [w[1] for w in own])
        first = min(work)
        if first in own and first[0] > begin:  # nothing was recorded before it: of a decode's beginning, the wait is that for work of before
            self.assertGreater(first[0] - first[2][1], 10 * max(w[0] - max([w[2][1]] + [x[1] for x in work if x[0] < w[0]]) for w in work if w != first))
            begin = first[0]
        busy, host, queued = spread([(begin, end)], [(w[0], w[1], w[2][0]) for w in work])
        kernels = sum(w[3] == "kernel" and begin <= w[0] < end for w in work)
        table = steps_report("inference", path)
        self.assertEqual(len(table.rows), 1)
        row, step = table.rows[0], table.section("steps").rows[0]
        self.assertEqual((row["phase"], row["steps"], row["time_ns"], row["requests"], row["tokens"]), ("decode", 1, end - begin, requests, requests))
        self.assertEqual((row["step_kernels"], row["host_gap_ns"], row["queued_ns"]), (kernels, host[0], queued[0]))
        self.assertEqual(busy[0] + host[0] + queued[0], end - begin)
        self.assertAlmostEqual(row["gpu_busy_pct"], 100 * busy[0] / (end - begin))
        self.assertAlmostEqual(row["token_ns"], (end - begin) / requests)
        self.assertAlmostEqual(row["token_kernels"], kernels / requests)
        self.assertEqual((step["context_tokens"], step["attention_pairs"], step["decode_requests"], step["prefill_requests"]), (keys, keys, requests, 0))
        return row, table.notes

    def test_vllm(self):
        """The recording begins with the step, whose first copy waits 7.8 ms behind its call: the GPU is busy with what was not recorded. TraceLens counts from the first work on, too."""
        row, notes = self.check(data("graphs", "vllm_decode_full", "graph_execution.json.gz"), "execute_32_", 32, 55086)
        self.assertEqual(row["step_kernels"], 425)
        self.assertEqual(sum(n.startswith("Step 0 begins with its first device work, 8.371 ms after its range (2.409 ms) did: this work waited 7.826 ms behind its launch") for n in notes), 1, notes)
        with open(data("graphs", "vllm_decode_full", "perf_csvs", "gpu_timeline.csv"), encoding="utf-8") as f:
            ms = {x["type"]: float(x["time ms"]) for x in csv.DictReader(f)}
        self.assertAlmostEqual(row["time_ns"] / 1e6, ms["total_time"], delta=1e-5)
        self.assertAlmostEqual(row["gpu_busy_pct"], 100 * ms["busy_time"] / ms["total_time"], delta=1e-3)
        self.assertAlmostEqual(row["host_gap_ns"] + row["queued_ns"], 1e6 * ms["idle_time"], delta=20)

    def test_sglang(self):
        """The server's own range, in which its patch put none of the sums: they stand in the range around."""
        row, notes = self.check(data("tracelens", "inference", "sglang_decode", "sglang_Qwen3-8B_decode.json.gz"), "step[DECODE", 32, 32785)
        self.assertEqual(row["step_kernels"], 551)
        self.assertIn("Step 0 begins 463.189 ms after its range (465.248 ms) did, when the GPU had ended work that was launched before the range.", notes)


if __name__ == "__main__":
    oracle.main()
