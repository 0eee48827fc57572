"""`report phases`: what each phase adds to the step of the ranks together, against the definition counted by hand, and of planted faults."""
import json
import os
import random
import shutil
import tempfile

import oracle
from phased import MS, PHASES, Run
from oracle import Case, data, report, steps_report

class Phases(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def ask(self, run, *args):
        folder = tempfile.mkdtemp(dir=self.tmp)
        run.write(folder)
        return report("phases", folder, *args)

    def test_definition(self):
        """Cell by cell, on jobs whose ranks are late by chance; the phases add up to the longest time of a rank, to the nanosecond."""
        for seed, n in enumerate((1, 2, 3, 5, 8)):
            chance = random.Random(seed)
            run = Run(n, 6, late=lambda r, s, p, c=chance: c.randrange(3 * MS) if c.random() < 0.3 else 0, host=seed % 2, seed=seed)
            table = self.ask(run)
            added, beyond = run.frontier()
            rows = table.by("phase")
            for phase, ns in added.items():
                if not ns and phase not in rows:
                    continue
                self.assertEqual(round(rows[phase]["added_ns"] * 6), ns, (n, phase))
                self.assertEqual(round(rows[phase]["beyond_ns"] * 6), beyond[phase], (n, phase))
            self.assertEqual(round(sum(r["added_ns"] for r in table.rows) * 6), max(run.steps[r][-1][1] - run.steps[r][0][0] for r in range(n)))
            self.assertAlmostEqual(sum(r["share_pct"] for r in table.rows), 100)

    def test_one_step_is_exact(self):
        run = Run(4, 3, late=lambda r, s, p: 777_777 * r if p == "forward" else 0)
        for s in range(3):
            rows = self.ask(run, f"--steps={s}").rows
            self.assertEqual(sum(r["added_ns"] for r in rows), max(run.steps[r][s][1] - run.steps[r][s][0] for r in range(4)))

    def test_planted_faults(self):
        """50 faults, one rank slower or later in one phase: phase and rank are among the first two that Beyond median tells. Also in the optimizer, for which others wait in the next step,
        and in backward, which the timers of hosts cannot see."""
        chance = random.Random(7)
        for i in range(50):
            rank, phase, n = chance.randrange(6), chance.choice(list(Run.LENGTH)), 6
            delay = chance.choice((1, 2, 20, 200)) * MS
            run = Run(n, 4, late=lambda r, s, p: delay if (r, p) == (rank, phase) else 0, host=i % 2 and phase != "data loading", seed=i)
            rows = sorted(self.ask(run).rows, key=lambda r: -r["beyond_ns"])[:2]
            self.assertIn((phase, rank), [(r["phase"], r["rank"]) for r in rows], (i, delay))
            found, = [r for r in rows if r["phase"] == phase]
            self.assertAlmostEqual(found["beyond_ns"] / delay, 1, delta=0.15)

    def test_names(self):
        """The rank at the frontier, and the one next behind it."""
        run = Run(5, 4, late=lambda r, s, p: {3: 8 * MS, 1: 6 * MS}.get(r, 0) if p == "forward" else 0)
        row = self.ask(run).by("phase")["forward"]
        self.assertEqual((row["rank"], row["rank_steps_pct"], row["second_rank"], row["longest_rank"]), (3, 100, 1, 3))
        self.assertAlmostEqual(row["lead_ns"] / (2 * MS), 1, delta=0.1)

    def test_steps_with_gaps(self):
        """Numbers that do not follow each other: time begins anew, and what lies between is of no step."""
        run = Run(3, 3, numbers=[4, 5, 9])
        table = self.ask(run)
        want = max(run.steps[r][1][1] - run.steps[r][0][0] for r in range(3)) + max(run.steps[r][2][1] - run.steps[r][2][0] for r in range(3))
        self.assertEqual(round(sum(r["added_ns"] for r in table.rows) * 3), want)

    def test_steps_that_some_ranks_lack(self):
        folder = tempfile.mkdtemp(dir=self.tmp)
        run = Run(3, 5)
        run.write(folder)
        trace = run.trace(1)
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e["name"] != "ProfilerStep#4"]
        with open(os.path.join(folder, "rank1.json"), "w") as f:
            f.write(json.dumps(trace))
        table = report("phases", folder)
        self.assertEqual({r["steps"] for r in table.rows}, {4})
        self.assertIn("1 step that not all ranks recorded is left out", "\n".join(table.notes))
        code, _, err = oracle.run("report", "phases", folder, "--steps=4")
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)

    def test_pipeline(self):
        """Ranks are compared with those of their pipeline stage."""
        folder = tempfile.mkdtemp(dir=self.tmp)
        run = Run(4, 3, late=lambda r, s, p: 7 * MS if p == "forward" and r >= 2 else 0)
        for r in range(4):
            trace = run.trace(r)
            for e in trace["traceEvents"]:
                if "Group size" in e.get("args", {}):
                    e["args"].update({"Group size": 2, "Process Group Ranks": str([r % 2, r % 2 + 2]), "Process Group Name": str(r % 2),
                                      "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP"})
            with open(os.path.join(folder, f"rank{r}.json"), "w") as f:
                f.write(json.dumps(trace))
        rows = {(r["stage"], r["phase"]): r for r in report("phases", folder).rows}
        for stage in (0, 1):
            self.assertIn(rows[stage, "forward"]["rank"], (2 * stage, 2 * stage + 1))
            self.assertLess(rows[stage, "forward"]["beyond_ns"], MS)
        self.assertAlmostEqual(rows[1, "forward"]["added_ns"] - rows[0, "forward"]["added_ns"], 7 * MS, delta=MS)

    def test_host(self):
        """Without device work the phases are those of the host."""
        trace = Run(2, 3).trace(0)
        trace["traceEvents"] = [e for e in trace["traceEvents"] if e["cat"] in ("cpu_op", "user_annotation")]
        for name in ("rank0.json", "rank1.json"):
            trace["distributedInfo"]["rank"] = int(name[4])
            with open(os.path.join(self.tmp, name), "w") as f:
                f.write(json.dumps(trace))
        table = report("phases", self.tmp)
        self.assertIn("2 ranks recorded no device work", "\n".join(table.notes))
        self.assertEqual(table.by("phase")["data loading"]["beyond_ns"], 0)


class Real(Case):
    def check(self, *path):
        table = steps_report("phases", data(*path))
        ranks = steps_report("ranks", data(*path)).rows
        self.assertGreaterEqual(sum(r["added_ns"] for r in table.rows) + 1, max(r["step_ns"] for r in ranks))
        own = sum(r["own_ns"] for r in table.rows if r["phase"] != "between steps")
        self.assertAlmostEqual(own, sum(r["step_ns"] for r in ranks) / len(ranks), delta=1)
        return table

    def test_eight_ranks(self):
        """Ranks 0 and 6 hold the others up (test_ranks.py)."""
        table = self.check("multirank", "megatron_a100_tp8")
        worst = max(table.rows, key=lambda r: r["beyond_ns"])
        self.assertIn(worst["rank"], (0, 6))

    def test_where_clocks_are_refused(self):
        self.check("multirank", "hta_trace_filter")

    def test_nsys(self):
        self.check("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_before.sqlite")
        table = self.check("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite")
        self.assertEqual([r["phase"] for r in table.rows], ["work", "communication"])  # nothing tells more
        self.assertIn("of no known phase", "\n".join(table.notes))
        self.assertEqual(table.rows[0]["rank"], steps_report("stragglers", data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite")).rows[0]["rank"])


if __name__ == "__main__":
    oracle.main()
