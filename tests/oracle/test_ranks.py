"""Reports of a job: `ranks` and `collectives` against what TraceLens printed of eight real ranks, against planted truths, and on broken jobs; and the tables of
other reports, joined over the ranks."""
import csv
import gzip
import json
import os
import shutil
import statistics
import tempfile

import jobs
import oracle
import phased
from oracle import Case, data, report, steps_report

TP8 = ("multirank", "megatron_a100_tp8")


def tracelens(name):
    with open(data("expected", "megatron_a100_tp8", name), newline="") as f:
        return list(csv.DictReader(f))


def texts(table):
    return "\n".join(table.notes)


class Job(Case):
    def setUp(self):
        super().setUp()
        self.tmp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.tmp)

    def copy_tp8(self, change=lambda rank, doc: doc, ranks=range(8)):
        """The eight ranks, each changed."""
        for r in ranks:
            doc = change(r, oracle.load(data(*TP8, f"megatron_kineto_{r}.json.gz")))
            with gzip.open(os.path.join(self.tmp, f"k{r}.json.gz"), "wt", compresslevel=1) as f:
                f.write(json.dumps(doc))
        return self.tmp


class Real(Job):
    """Eight ranks of one tensor-parallel step: multirank/megatron_a100_tp8."""

    def test_collectives_against_tracelens(self):
        ours = report("collectives", data(*TP8), "--group-by=instance").rows
        theirs = tracelens("tracelens_megatron_a100_tp8_nccl_implicit_sync_cat.csv")
        self.assertEqual(len(ours), 84)
        self.assertEqual(len(theirs), 84)
        for row, want in zip(ours, theirs):
            got = [row["min_ns"] / 1000, row["start_skew_ns"] / 1000, row["wait_ns"] / 8 / 1000, row["end_skew_ns"] / 1000]
            self.assertEqual(got, [float(want[c]) for c in ("comm_latency", "skew in start time", "avg_wait_time", "skew in end time")], want["collective_id"])
            self.assertEqual((row["kind"], row["ranks"], row["first_rank"]), ("all_reduce", 8, int(want["earliest arrival rank"])))
        summary, = tracelens("tracelens_megatron_a100_tp8_summary_nccl_implicit_sync_cat.csv")
        for column, name in (("min_ns", "comm_latency"), ("start_skew_ns", "skew in start time"), ("end_skew_ns", "skew in end time")):
            values = [row[column] / 1000 for row in ours]
            self.assertAlmostEqual(statistics.mean(values), float(summary[name + "_mean"]), places=6)
            self.assertAlmostEqual(statistics.stdev(values), float(summary[name + "_std"]), places=6)
        by_kind, = report("collectives", data(*TP8)).rows
        self.assertEqual((by_kind["instances"], by_kind["min_ns"]), (int(summary["count"]), round(float(summary["Total comm latency (ms)"]) * 1e6)))

    def test_ranks_against_tracelens(self):
        """A collective that two ranks reach in the same microsecond is last on both: TraceLens and we count the lower rank."""
        ours = steps_report("ranks", data(*TP8)).by("rank")
        for want in tracelens("tracelens_megatron_a100_tp8_straggler_summary.csv"):
            row = ours[int(want["rank"])]
            self.assertEqual((row["last_count"], row["first_count"]), (int(want["times_arrived_last"]), int(want["times_arrived_first"])), want["rank"])
            self.assertEqual(round(row["last_pct"], 1), float(want["pct_arrived_last"]), want["rank"])
            self.assertEqual(round(row["exposed_wait_ns"] / 1000 / int(want["num_collectives"]), 1), float(want["mean_wait_time_us"]), want["rank"])
            self.assertEqual(round(row["exposed_wait_ns"] / 1000), int(want["total_wait_time_us"]), want["rank"])
            self.assertEqual(round((row["exposed_wait_ns"] + row["exposed_transfer_ns"]) / 1000), int(want["total_nccl_dur_us"]), want["rank"])

    def test_step_without_waiting(self):
        """The note says the longest step of a rank less what it waited."""
        table = steps_report("ranks", data(*TP8))
        ns, rank, idle_ns = max((r["step_ns"] - r["exposed_wait_ns"], r["rank"], r["idle_ns"]) for r in table.rows)
        self.assertGreater(idle_ns, 0)
        self.assertIn(f"rank {rank} takes longest without waiting for others, {ns:.0f} ns a step (of it {idle_ns:.0f} ns idle): before that rank gets faster, a step takes no less", texts(table))

    def test_share_of_waiting(self):
        row, = steps_report("collectives", data(*TP8)).rows
        self.assertAlmostEqual(row["wait_pct"], row["wait_ns"] / row["total_ns"] * 100)
        by_kind = report("collectives", data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite")).by("kind")
        self.assertIsNone(by_kind["broadcast"]["wait_pct"])
        some = by_kind["all_reduce"]  # one of these has no known wait, and counts for neither
        self.assertGreater(some["wait_pct"], some["wait_ns"] / some["total_ns"] * 100)

    def test_overlap_against_hta(self):
        with open(data("expected", "megatron_a100_tp8", "hta_megatron_a100_tp8.json"), encoding="utf-8") as f:
            want = {r["rank"]: r["comp_comm_overlap_pctg"] for r in json.load(f)["overlap"]}
        rows = steps_report("overlap", data(*TP8)).by("rank")
        self.assertEqual({r: row["overlap_pct"] for r, row in rows.items()}, want)
        for path in (data("multirank", "hta_trace_filter"), data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite")):
            for row in steps_report("overlap", path).rows:
                self.assertAlmostEqual(sum(row[c] for c in ("compute_only_ns", "overlap_ns", "communication_only_ns", "other_ns")), row["step_ns"], delta=1)
                self.assertAlmostEqual(row["overlap_ns"] / (row["overlap_ns"] + row["communication_only_ns"]) * 100, row["overlap_pct"], delta=1e-6)
                self.assertGreater(row["overlap_ns"], 0)

    def test_parts_of_a_step_add_up(self):
        for path in (data(*TP8), data("multirank", "hta_trace_filter"), data("nsys", "2026.2_mfu_2gpu", "mfu_2gpu_after.sqlite")):
            for row in steps_report("ranks", path).rows:
                parts = [row.get(c) or 0 for c in ("compute_ns", "exposed_transfer_ns", "exposed_wait_ns", "exposed_unknown_ns", "exposed_copy_ns", "idle_ns")]
                self.assertAlmostEqual(sum(parts), row["step_ns"], delta=1, msg=path)

    def test_parts_are_those_of_each_rank(self):
        """What `gpu-timeline` says of each rank by itself."""
        for row in steps_report("ranks", data(*TP8)).rows:
            alone = steps_report("gpu-timeline", data(*TP8), f"--rank={row['rank']}").by("kind")
            self.assertEqual(row["compute_ns"], alone["computation"]["time_ns"])
            self.assertEqual(row["exposed_transfer_ns"] + row["exposed_wait_ns"], alone["exposed_communication"]["time_ns"])
            self.assertEqual(row["idle_ns"], alone["idle"]["time_ns"])

    def test_planted_clocks(self):
        """Offsets within 50 ms and drifts of 20 ppm on these files are found within 50 us, and so is who came last."""
        offsets = {r: (r * 37_123 % 101 - 50) * 1000 for r in range(8)}  # us

        def change(rank, doc):
            for e in doc["traceEvents"]:
                if "ts" in e:
                    e["ts"] += offsets[rank] + (e["ts"] - 1706850122846038) * 20e-6 * (rank % 3 - 1)
            return doc
        folder = self.copy_tp8(change)
        moved, plain = steps_report("ranks", folder), steps_report("ranks", data(*TP8))
        base = moved.by("rank")[0]["offset_ns"]
        for r, row in moved.by("rank").items():
            self.assertEqual(row["clock"], "by ends")
            self.assertLess(abs(row["offset_ns"] - base - (offsets[r] - offsets[0]) * 1000), 50_000, r)
            self.assertLess(abs(row["exposed_wait_ns"] - plain.by("rank")[r]["exposed_wait_ns"]), 84 * 50_000, r)
        self.assertEqual([r for r, row in sorted(moved.by("rank").items(), key=lambda x: -x[1]["waited_for_ns"])][:2], [0, 6])
        self.assertIn("compared by the ends", texts(moved))

    def test_sampled_ranks_are_refused(self):
        table = steps_report("collectives", data("multirank", "hta_trace_filter"))
        for row in table.rows:
            self.assertIsNone(row["wait_ns"])
            self.assertIsNone(row["last_rank"])
            self.assertEqual(row["unknown"], row["instances"])
        self.assertIn("do not coincide", texts(table))
        self.assertIn("2 of 128 ranks are here; missing: 2 to 127.", texts(table))
        for row in steps_report("ranks", data("multirank", "hta_trace_filter")).rows:
            self.assertIsNone(row["exposed_wait_ns"])
            self.assertGreater(row["exposed_unknown_ns"], 0)
            self.assertEqual(row["clock"], "unknown")

    def test_two_processes_of_one_database(self):
        """DDP on 2 GPUs: 230 of 230 collectives match in order; one does not end together."""
        rows = report("collectives", data("more", "nsys", "2026.3_ddp_2gpu_nccl", "ddp_overlapped.sqlite"), "--group-by=instance").rows
        self.assertEqual(len(rows), 230)
        self.assertEqual({r["ranks"] for r in rows}, {2})
        apart = [r for r in rows if r["kind"] == "all_reduce" and r["wait_ns"] is None]
        self.assertEqual(len(apart), 1)
        self.assertGreater(apart[0]["end_skew_ns"], 100_000)

    def test_missing_rank(self):
        table = steps_report("ranks", self.copy_tp8(ranks=(0, 1, 2, 5, 6, 7)))
        self.assertEqual([r["rank"] for r in table.rows], [0, 1, 2, 5, 6, 7])
        self.assertIn("6 of 8 ranks are here; missing: 3, 4.", texts(table))
        table = steps_report("ranks", data(*TP8), "--rank=2")
        self.assertIn("1 of 8 ranks is here; missing: 0, 1, 3 to 7.", texts(table))

    def test_damaged_and_repeated_ranks(self):
        folder = self.copy_tp8(ranks=(0, 1, 2))
        shutil.copy(os.path.join(folder, "k1.json.gz"), os.path.join(folder, "k9.json.gz"))
        with open(os.path.join(folder, "rank5.json"), "w") as f:
            f.write('{"distributedInfo": {"rank": 5, "world_size": 8}, "traceEvents": 17}')
        table = steps_report("ranks", folder)
        self.assertEqual([r["rank"] for r in table.rows], [0, 1, 2])
        self.assertIn("rank5.json is left out", texts(table))
        self.assertIn("1 recording of a rank that another recording is of, too", texts(table))

    def test_imported_ranks(self):
        """Files of `opscope import` know their rank, whatever they are called."""
        for r in range(3):
            self.assertEqual(oracle.run("import", data(*TP8, f"megatron_kineto_{r}.json.gz"), "-o", os.path.join(self.tmp, f"rank{7 - r}.opscope"))[0], 0)
        self.assertEqual(steps_report("gpu-timeline", self.tmp, "--rank=2").rows, steps_report("gpu-timeline", data(*TP8), "--rank=2").rows)
        self.assertEqual({os.path.basename(r["path"]): r["rank"] for r in oracle.info(self.tmp).rows}, {f"rank{7 - r}.opscope": r for r in range(3)})
        files = [data(*TP8, f"megatron_kineto_{r}.json.gz") for r in range(3)]
        self.assertEqual(steps_report("stragglers", self.tmp).rows, steps_report("stragglers", *files).rows)

    def test_one_rank(self):
        """One rank cannot tell waiting from transfer."""
        row, = steps_report("ranks", data(*TP8, "megatron_kineto_3.json.gz")).rows
        self.assertEqual((row["rank"], row["exposed_wait_ns"], row["last_count"]), (3, None, None))
        self.assertEqual(row["exposed_unknown_ns"], 472_390_000)


class Planted(Job):
    """Jobs of oracle/jobs.py."""

    def check_waits(self, job, table, least=0):
        for r, row in table.by("rank").items():
            self.assertAlmostEqual(row["exposed_wait_ns"] * job.steps, job.waits(r), delta=least or 20 * job.steps, msg=r)

    def test_waits_of_two_kinds_of_groups(self):
        job = jobs.Job(tp=4, dp=3, late=lambda r, s, p: 2_000_000 if r == 5 and p == 0 else r * 1000 * (s + 1))
        job.write(self.tmp)
        table = steps_report("ranks", self.tmp)
        self.check_waits(job, table)
        self.assertEqual(max(table.rows, key=lambda r: r["waited_for_ns"])["rank"], 5)
        groups = steps_report("collectives", self.tmp, "--group-by=group").rows
        self.assertEqual(sorted(r["ranks"] for r in groups), [3] * 4 + [4] * 3)

    def test_collective_that_a_rank_did_not_record(self):
        job = jobs.Job(tp=3, dp=1, steps=5)
        job.events[1] = [e for e in job.events[1] if e[4] != 2]
        job.write(self.tmp)
        self.assertIn("2 kernels of group tp (ranks 0-2) are of collectives that not all of its ranks recorded", texts(report("collectives", self.tmp)))

    def test_names_of_groups_that_differ_by_rank(self):
        job = jobs.Job(tp=2, dp=2, late=lambda r, s, p: r * 10_000, names=lambda rank, kind: str(rank * 2 + (kind == "dp")))
        job.write(self.tmp)
        self.check_waits(job, steps_report("ranks", self.tmp))

    def test_groups_without_members_or_numbers(self):
        """By name alone, groups of the same name with other members are not one: their numbers are unknown."""
        job = jobs.Job(tp=2, dp=2, seq=False, ranks_listed=False)
        job.write(self.tmp)
        table = steps_report("collectives", self.tmp, "--group-by=group")
        self.assertEqual({r["wait_ns"] for r in table.rows}, {None})
        self.assertIn("unknown", texts(table))

    def test_clocks_over_a_chain_of_groups(self):
        """No group holds all ranks: offsets follow from group to group."""
        job = jobs.Job(tp=4, dp=4, steps=12, late=lambda r, s, p: (r * 7919 + s * 104729 + p * 31) % 200_000)
        clocks = {r: ((r * 7_777_777) % 100_000_000 - 50_000_000, 0.0) for r in range(16)}
        job.write(self.tmp, clocks)
        table = steps_report("ranks", self.tmp)
        for r, row in table.by("rank").items():
            self.assertLess(abs(row["offset_ns"] - (clocks[r][0] - clocks[0][0])), 50_000, r)
        self.check_waits(job, table, 50_000 * job.steps)

    def test_drift(self):
        """Over 6 s a clock that gains 20 ppm is 120 us off."""
        job = jobs.Job(tp=4, dp=1, steps=30, compute=100_000_000, late=lambda r, s, p: (r * 7919 + s * 104729 + p * 31) % 200_000)
        clocks = {0: (0, 0.0), 1: (30_000_000, 20e-6), 2: (-45_000_000, -20e-6), 3: (1_000_000, 5e-6)}
        job.write(self.tmp, clocks)
        table = steps_report("ranks", self.tmp)
        drift = {r: row["drift_ppm"] for r, row in table.by("rank").items()}
        for r in range(1, 4):
            self.assertAlmostEqual(drift[r] - drift[0], clocks[r][1] * 1e6, delta=1, msg=r)
        self.check_waits(job, table, 50_000 * job.steps)

    def test_clocks_as_recorded_on_demand(self):
        job = jobs.Job(tp=2, dp=1)
        job.write(self.tmp, {1: (3_000_000, 0.0)})
        table = steps_report("collectives", self.tmp, "--align=none")
        self.assertEqual({r["wait_ns"] for r in table.rows}, {None})
        self.assertEqual({r["clock"] for r in steps_report("ranks", self.tmp).rows}, {"by ends"})

    def clocks(self, text):
        path = os.path.join(self.tmp, "clocks.csv")
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
        return "--align=" + path

    def planted_drift(self):
        job = jobs.Job(tp=4, dp=1, steps=30, compute=100_000_000, late=lambda r, s, p: (r * 7919 + s * 104729 + p * 31) % 200_000)
        folder = os.path.join(self.tmp, "job")
        os.mkdir(folder)
        job.write(folder, {0: (0, 0.0), 1: (30_000_000, 20e-6), 2: (-45_000_000, -20e-6), 3: (1_000_000, 5e-6)})
        return folder

    def test_clocks_of_a_file(self):
        """What `ranks` says of the clocks, given back as a file, gives the same numbers; without drifts it does not."""
        folder = self.planted_drift()
        found = steps_report("ranks", folder)
        _, text, _ = oracle.run("report", "ranks", folder, "--format=csv")
        given = steps_report("ranks", folder, self.clocks(text))
        self.assertEqual({r["clock"] for r in given.rows}, {"by file"})
        for row, want in zip(given.rows, found.rows):
            self.assertAlmostEqual(row["drift_ppm"], want["drift_ppm"], places=9)
            exact = set(row) - {"clock", "drift_ppm"}
            self.assertEqual({k: row[k] for k in exact}, {k: want[k] for k in exact})
        self.assertIn("clocks of 4 ranks are as the file states them", texts(given))
        rough = "# rank 2 is 45 ms behind\n\"offset_ns\", note,rank\r\n30000000,\"a, b\",1\n-45000000,,2\n1000000,,3\n0,,0\n"
        rows = steps_report("ranks", folder, self.clocks(rough)).by("rank")
        self.assertEqual({r: row["offset_ns"] for r, row in rows.items()}, {0: 0, 1: 30_000_000, 2: -45_000_000, 3: 1_000_000})
        self.assertEqual({row["drift_ppm"] for row in rows.values()}, {0})
        self.assertGreater(rows[1]["residual_ns"], found.by("rank")[1]["residual_ns"])

    def test_clocks_that_a_file_does_not_state(self):
        folder = self.planted_drift()
        table = steps_report("ranks", folder, self.clocks("rank,offset_ns\n0,0\n1,30000000\n2,\n"))
        self.assertEqual({r: row["clock"] for r, row in table.by("rank").items()}, {0: "by file", 1: "by file", 2: "unknown", 3: "unknown"})
        self.assertIn("the file does not state the clocks of ranks 2, 3: waiting of collectives", texts(table))
        self.assertEqual({row["exposed_wait_ns"] for row in table.rows}, {None})
        code, _, err = oracle.run("report", "ranks", folder, self.clocks("rank,offset_ns\n77,0\n"))
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)
        self.assertIn(b"states the clock of no rank that is here", err)

    def test_files_that_are_not_of_clocks(self):
        folder = self.planted_drift()
        bad = {"": "no rank", "# nothing\n": "no rank", "rank,offset_ns\n": "no rank", "rank,offset\n0,1\n": ":1: the first line", "0,1\n": ":1: the first line",
               "rank,offset_ns\n0,1\nx,2\n": ":3: rank \"x\"", "rank,offset_ns\n-1,2\n": "from 0 on", "rank,offset_ns\n,2\n": ":2: rank", "rank,offset_ns\n0,1.5\n": "offset_ns \"1.5\"",
               "rank,offset_ns\n0,9999999999999999999999\n": "offset_ns", "rank,offset_ns\n0,-99999999999999999\n": "a year at most", "rank,offset_ns\n0,1\n0,2\n": "rank 0 stands there twice",
               "rank,offset_ns,drift_ppm\n0,1,nan\n": "drift_ppm", "rank,offset_ns,drift_ppm\n0,1,1e6\n": "drift_ppm", "rank,offset_ns,drift_ppm\n0,1,1e\n": "drift_ppm",
               b"rank,offset_ns\n0,\x001\n": "a zero byte"}
        for text, want in bad.items():
            code, out, err = oracle.run("report", "ranks", folder, self.clocks(text))
            self.assertEqual((code, out, err.count(b"\n")), (2, b"", 1), (text, err))
            self.assertIn(want, err.decode(), text)
        code, _, err = oracle.run("report", "ranks", folder, "--align=end")
        self.assertEqual((code, err.count(b"\n")), (2, 1), err)
        self.assertIn(b"auto, ends, none or a file of clocks was expected", err)

    def test_steps(self):
        job = jobs.Job(tp=2, dp=1, steps=5, late=lambda r, s, p: 1_000_000 if (r, s) == (1, 3) else 0)
        job.write(self.tmp)
        self.assertEqual([r["exposed_wait_ns"] for r in steps_report("ranks", self.tmp, "--steps=3").rows], [1_000_000, 0])
        self.assertEqual([r["exposed_wait_ns"] for r in steps_report("ranks", self.tmp, "--steps=1..2").rows], [0, 0])
        self.assertEqual([r["instances"] for r in steps_report("collectives", self.tmp, "--steps=3", "--group-by=group").rows if r["ranks"] == 2], [1])
        code, _, err = oracle.run("report", "ranks", self.tmp, "--steps=77")
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)


class Doubtful(Job):
    """Inputs that look like a job, and of which a number must not be said, or not without a word."""

    def write(self, name, trace):
        with open(os.path.join(self.tmp, name), "w") as f:
            f.write(json.dumps(trace))

    @staticmethod
    def random_job(first, seq=True):
        """Of the same job, the steps from `first` on: each collective comes at a time of its own."""
        return jobs.Job(tp=2, dp=1, steps=5, seq=seq, late=lambda r, s, p: (r * 7919 + (s + first) * 104729 + p * 31) % 200_000)

    def check_unknown(self, why):
        for row in steps_report("ranks", self.tmp).rows:
            self.assertIsNone(row["exposed_wait_ns"])
        self.assertIn(why, texts(steps_report("collectives", self.tmp)))

    def test_sums_that_64_bits_do_not_hold(self):
        """Each recording by itself can be added up: the waiting of all together cannot."""
        for r in range(40):
            nccl = {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", "pid": 0, "tid": 7, "ts": 0, "dur": 1.4e14,
                    "args": {"device": 0, "stream": 7, "Collective name": "allreduce", "Group size": 40, "Process Group Name": "0", "Process Group Ranks": str(list(range(40))), "Seq": 1}}
            self.write(f"rank{r}.json", {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": r, "world_size": 40}, "traceEvents": [nccl]})
        for words in (("report", "ranks"), ("report", "stragglers"), ("report", "collectives"), ("report", "phases"), ("advise",)):
            code, out, err = oracle.run(*words, self.tmp)
            self.assertEqual((code, out), (1, b""), words)
            self.assertIn(b"the times of the 40 ranks add up to more than 64 bits hold", err)

    def test_files_that_are_no_recordings_are_named(self):
        """Where a rank's file is damaged from its first byte on; of a rank that has a recording, nothing is said of other files."""
        job = jobs.Job(tp=4, dp=1)
        for r in (0, 1):
            self.write(f"rank{r}.json", job.trace(r))
        for name, content in (("rank2.json.gz", b"\x1f\x8b\x08\0\0\0\1\2\3\4"), ("rank3.json", bytes(3000)), ("rank1_et.json", b"{}"), ("rank9.json", b"{")):
            with open(os.path.join(self.tmp, name), "wb") as f:
                f.write(content)
        os.symlink("/nowhere", os.path.join(self.tmp, "rank7.json"))
        said = texts(steps_report("ranks", self.tmp))
        for name in ("rank2.json.gz", "rank3.json", "rank7.json", "rank9.json"):
            self.assertIn(f"{name} is left out: the file cannot be read, or is no recording", said)
        self.assertNotIn("rank1_et", said)

    def test_ranks_known_by_name(self):
        """Where recordings are silent, ranks are those of the names, in each report."""
        job = jobs.Job(tp=2, dp=1, ranks_listed=False, late=lambda r, s, p: r * 500_000)
        for r, name in ((0, "x_rank4.json"), (1, "x_rank7.json")):
            trace = job.trace(r)
            del trace["distributedInfo"]
            self.write(name, trace)
        self.assertEqual([r["rank"] for r in steps_report("ranks", self.tmp).rows], [4, 7])
        self.assertEqual({r["rank"] for r in steps_report("kernels", self.tmp, "--rank=all").rows}, {4, 7})
        self.assertEqual(steps_report("kernels", self.tmp).by("name")["gemm_kernel"]["max_rank"], 7)

    def test_missing_rank_that_only_groups_name(self):
        job = jobs.Job(tp=4, dp=1, late=lambda r, s, p: 500_000 if r == 3 else 0)
        for r in range(3):
            trace = job.trace(r)
            del trace["distributedInfo"]["world_size"]
            self.write(f"{r}.json", trace)
        for report in ("ranks", "collectives", "stragglers"):
            self.assertIn("3 of 4 ranks are here; missing: 3.", texts(steps_report(report, self.tmp)))

    def test_nobody_is_last_where_all_come_at_once(self):
        jobs.Job(tp=2, dp=1).write(self.tmp)
        self.assertEqual({r["last_count"] for r in steps_report("ranks", self.tmp).rows}, {0})
        self.assertEqual({r["last_rank"] for r in steps_report("collectives", self.tmp).rows}, {None})

    def test_repeated_rank_counts_once_in_means(self):
        job = jobs.Job(tp=2, dp=1, late=lambda r, s, p: r * 500_000)
        job.write(self.tmp)
        before = steps_report("kernels", self.tmp)
        self.write("y.json", job.trace(1))
        table = steps_report("kernels", self.tmp)
        self.assertEqual(table.rows, before.rows)
        self.assertIn("1 recording of a rank that another recording is of, too", texts(table))

    def test_other_steps(self):
        """Without sequence numbers, five steps here and five other ones there."""
        self.write("a.json", self.random_job(0, False).trace(0))
        trace = self.random_job(20, False).trace(1, 700_000_000)
        for e in trace["traceEvents"]:
            if e["name"].startswith("ProfilerStep#"):
                e["name"] = f"ProfilerStep#{int(e['name'][13:]) + 20}"
        self.write("b.json", trace)
        self.check_unknown("of other steps")

    def test_other_days(self):
        """The same numbers, a day later."""
        for r, first in ((0, 0), (1, 20)):
            trace = self.random_job(first).trace(r)
            trace["baseTimeNanoseconds"] = 1_700_000_000_000_000_000 + r * 86_400_000_000_000
            self.write(f"{r}.json", trace)
        self.check_unknown("clocks are not known")
        self.assertIn("cannot be compared", texts(steps_report("ranks", self.tmp)))
        self.assertEqual({r["clock"] for r in steps_report("ranks", self.tmp, "--align=ends").rows}, {"by ends"})

    def test_other_jobs(self):
        self.write("a_rank0.json", jobs.Job(tp=2, dp=1).trace(0))
        self.write("b_rank1.json", jobs.Job(tp=4, dp=2).trace(1))
        for report in ("ranks", "kernels"):
            self.assertIn("jobs of 2 and of 8 ranks", texts(steps_report(report, self.tmp)))


class Stragglers(Job):
    """Planted lateness: which rank, how long the others waited for it, and why."""
    CAUSES = {"slower": ("slower device", "slower_ns"), "more": ("more work", "more_work_ns"), "host": ("host", "host_ns"), "data": ("data loader", "data_loader_ns")}

    def stragglers(self, job, clocks=None):
        folder = tempfile.mkdtemp(dir=self.tmp)
        job.write(folder, clocks)
        return steps_report("stragglers", folder)

    def test_causes(self):
        for how, (cause, column) in self.CAUSES.items():
            job = jobs.Job(tp=4, dp=2, steps=6, late=lambda r, s, p: 2_000_000 if r == 3 and p == 0 and s else 0, how=how)
            table = self.stragglers(job, {r: (r * 11_000_000, 0.0) for r in range(8)})
            worst = table.rows[0]
            self.assertEqual((worst["rank"], worst["cause"]), (3, cause), how)
            waited = sum(job.waits(r) for r in range(8))
            self.assertAlmostEqual(worst["waited_for_ns"] / waited, 1, delta=0.01, msg=how)
            self.assertAlmostEqual(worst[column] / waited, 1, delta=0.01, msg=how)
            self.assertEqual(worst["pattern"], "always")
            folder = max((os.path.join(self.tmp, d) for d in os.listdir(self.tmp)), key=os.path.getmtime)
            self.assertEqual(steps_report("ranks", folder).by("rank")[3]["waited_for_ns"], worst["waited_for_ns"])

    def test_blame_is_passed_on(self):
        """Rank 1 keeps its tensor-parallel peers, and these keep the other replica: all of the waiting is because of rank 1."""
        job = jobs.Job(tp=4, dp=2, steps=6, late=lambda r, s, p: 2_000_000 if r == 1 and p == 0 and s else 0)
        table = self.stragglers(job).by("rank")
        waited = sum(job.waits(r) for r in range(8))
        self.assertAlmostEqual(table[1]["waited_for_ns"] / waited, 1, delta=0.01)
        self.assertGreater(sum(table[r]["passed_on_ns"] for r in (0, 2, 3)), 0)

    def test_sum(self):
        """What each cause has adds up to all waiting, whoever is late."""
        job = jobs.Job(tp=3, dp=3, steps=5, late=lambda r, s, p: (r * 7919 + s * 104729 + p * 31) % 200_000)
        table = self.stragglers(job)
        for row in table.rows:
            self.assertEqual(sum(row[c] for c in ("slower_ns", "more_work_ns", "copies_ns", "data_loader_ns", "gc_ns", "host_ns", "unknown_ns")), row["waited_for_ns"])
        self.assertAlmostEqual(sum(r["waited_for_ns"] for r in table.rows) / sum(job.waits(r) for r in range(9)), 1, delta=0.001)

    def test_in_turns(self):
        job = jobs.Job(tp=4, dp=1, steps=8, late=lambda r, s, p: 1_000_000 if s % 4 == r and p == 0 else 0)
        self.assertEqual({r["pattern"] for r in self.stragglers(job).rows}, {"at times"})

    def test_phases(self):
        """The phase in which the rank lost the time: also of the optimizer, for which others wait in the next step, and of backward, where the host's timers see nothing."""
        for phase in phased.Run.LENGTH:
            for host in (False, True):
                folder = tempfile.mkdtemp(dir=self.tmp)
                phased.Run(4, 6, late=lambda r, s, p: 20 * phased.MS if (r, p) == (2, phase) else 0, host=host).write(folder)
                first = steps_report("stragglers", folder).rows[0]
                self.assertEqual((first["rank"], first["phase"]), (2, phase), host)

    def test_persistent_or_rotating(self):
        """Of 8 steps one rank is the worst in 6 and more: persistent; in 3 and fewer: it rotates."""
        for steps, words in ((8, "is persistent: rank 2 is the one that the others waited longest for in 8 of 8"), (6, "is persistent: rank 2"), (5, "is mostly rank 2, in 5 of 8 steps"),
                             (4, "is mostly rank"), (3, "rotates: 4 ranks in turn are the one that the others waited longest for, and none in more than 3 of 8")):
            def late(r, s, p, steps=steps):
                worst = 2 if s < steps else (0, 1, 3)[s % 3]
                return 2_000_000 if p == 0 and r == worst else 0
            table = self.stragglers(jobs.Job(tp=4, dp=1, steps=8, late=late))
            self.assertIn("the straggler " + words, texts(table), steps)
            self.assertEqual(sum(r["worst_steps_pct"] for r in table.rows), 100)
            self.assertEqual(table.by("rank")[2]["worst_steps_pct"], steps * 12.5)
        few = self.stragglers(jobs.Job(tp=4, dp=1, steps=3, late=lambda r, s, p: 2_000_000 if r == 1 and p == 0 else 0))
        self.assertIn("takes 4 steps with waiting", texts(few))
        none = self.stragglers(jobs.Job(tp=4, dp=1, steps=8, late=lambda r, s, p: 10_000 if r == 1 and p == 0 else 0))
        self.assertIn("there is no straggler to speak of", texts(none))

    def test_victims_are_not_the_worst(self):
        """The step in which others waited for a victim is that of the rank which kept it."""
        table = self.stragglers(jobs.Job(tp=4, dp=2, steps=6, late=lambda r, s, p: 2_000_000 if r == 1 and p == 0 and s else 0)).by("rank")
        self.assertEqual(table[1]["worst_steps"], 5)

    def test_real_ranks(self):
        """Ranks 0 and 6 of the eight: their GPUs are idle for 0.2 s while the others wait."""
        table = steps_report("stragglers", data(*TP8))
        self.assertEqual([(r["rank"], r["cause"]) for r in table.rows[:2]], [(0, "host"), (6, "host")])
        self.assertEqual(sum(r["waited_for_ns"] for r in table.rows), sum(int(r["total_wait_time_us"]) for r in tracelens("tracelens_megatron_a100_tp8_straggler_summary.csv")) * 1000)

    def test_unknown(self):
        for path in (data("multirank", "hta_trace_filter"), data(*TP8, "megatron_kineto_3.json.gz")):
            code, _, err = oracle.run("report", "stragglers", path)
            self.assertEqual((code, err.count(b"\n")), (1, 1), err)
            self.assertIn(b"who waited for whom is not known", err)


class Advice(Job):
    """`advise` of a job."""

    def findings(self, *args):
        code, out, err = oracle.run("advise", *args, "--format=json")
        self.assertEqual(code, 0, err)
        return oracle.Table(json.loads(out))

    def test_real_ranks(self):
        table = self.findings(data(*TP8))
        first = table.rows[0]
        ranks = steps_report("ranks", data(*TP8)).rows
        self.assertEqual((first["detector"], first["severity"]), ("straggler", "high"))
        self.assertAlmostEqual(first["gain_ns_per_step"], max(r["exposed_wait_ns"] for r in ranks), delta=1)
        self.assertAlmostEqual(first["share_pct"], 100 * sum(r["exposed_wait_ns"] for r in ranks) / sum(r["step_ns"] for r in ranks), places=3)
        self.assertIn("most of it for ranks 0 and 6", first["problem"])
        self.assertIn("--rank=0", first["advice"])
        self.assertIn("The same for rank 6", first["advice"])
        self.assertNotIn("communication-bound", {r["detector"] for r in table.rows}) # 8 % of the step is transfer
        attention = table.by("detector")["unfused-attention"]
        self.assertTrue(attention["evidence"].startswith("On all 8 ranks; "), attention["evidence"])

    def test_planted(self):
        """A straggler is named with its cause; of equal ranks there is none."""
        for how, words in (("slower", "slower device"), ("data", "data loader")):
            folder = tempfile.mkdtemp(dir=self.tmp)
            jobs.Job(tp=4, dp=2, steps=6, late=lambda r, s, p: 2_000_000 if r == 6 and p == 0 else 0, how=how).write(folder)
            row = self.findings(folder).by("detector")["straggler"]
            self.assertIn("most of it for rank 6", row["problem"])
            self.assertIn(words, row["evidence"])
        folder = tempfile.mkdtemp(dir=self.tmp)
        jobs.Job(tp=4, dp=2, steps=6, late=lambda r, s, p: (r * 37 + s * 11) % 50 * 1000).write(folder)
        rows = self.findings(folder).by("detector")
        self.assertNotIn("straggler", rows)
        self.assertIn("transfer between ranks", rows["communication-bound"]["problem"]) # 11.8 % of the step
        folder = tempfile.mkdtemp(dir=self.tmp)
        jobs.Job(tp=4, dp=1, steps=6, late=lambda r, s, p: 3_000_000 if s % 4 == r and p == 0 else 0).write(folder)
        self.assertIn("in turns", self.findings(folder).by("detector")["straggler"]["problem"])

    def test_unknown(self):
        """Where clocks contradict each other, no one is named."""
        table = self.findings(data("multirank", "hta_trace_filter"))
        self.assertNotIn("straggler", {r["detector"] for r in table.rows})
        self.assertIn("is not told from transfer", texts(table))

    def test_fail_on(self):
        self.assertEqual(oracle.run("advise", data(*TP8), "--fail-on=high")[0], 3)


class Pitfalls(Job):
    """What has misled other tools."""

    def job(self, change=lambda rank, doc: None, **how):
        """A job of 4 ranks, each recording changed; the folder."""
        job = jobs.Job(**{"tp": 4, "dp": 1, "steps": 4, "late": lambda r, s, p: r * 100_000 if p == 0 else 0, **how})
        folder = tempfile.mkdtemp(dir=self.tmp)
        for r in range(job.n):
            doc = job.trace(r)
            change(r, doc)
            with gzip.open(os.path.join(folder, f"{'abcdefghij'[r]}.json.gz"), "wt", compresslevel=1) as f:
                f.write(json.dumps(doc))
        return folder

    @staticmethod
    def calls(doc):
        return [e for e in doc["traceEvents"] if e["cat"] == "kernel" and "nccl" in e["name"]]

    def check(self, folder, waits=(300_000, 200_000, 100_000, 0)):
        self.assertEqual([r["exposed_wait_ns"] for r in steps_report("ranks", folder).rows], list(waits))

    def test_shortest_is_not_the_last(self):
        """Of the 84 real collectives, the rank with the shortest kernel is not the last one in 24: `min_ns` is not `transfer_ns`."""
        rows = report("collectives", data(*TP8), "--group-by=instance").rows
        self.assertGreater(sum(r["min_ns"] != r["transfer_ns"] for r in rows), 24)

    def test_what_does_not_end_together(self):
        """A broadcast's ends say nothing of clocks, and its waits are unknown."""
        def change(rank, doc):
            for e in self.calls(doc):
                e["name"] = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                e["args"]["Collective name"] = "broadcast"
        folder = self.job(change)
        rows = [r for r in steps_report("collectives", folder, "--group-by=group").rows if r["ranks"] == 4]
        self.assertEqual([(r["kind"], r["wait_ns"], r["unknown"]) for r in rows], [("broadcast", None, 4)])
        self.assertEqual({r["residual_ns"] for r in steps_report("ranks", folder).rows}, {None})

    def test_lists_of_ranks_that_are_cut(self):
        """Kineto cuts lists at 30 ranks: the members are those of pg_config, and of a group as large as the job all."""
        def cut(rank, doc):
            for e in self.calls(doc):
                if len(e["args"]["Process Group Ranks"]) > 4:
                    e["args"]["Process Group Ranks"] = "[0, 1, ...]"
        self.check(self.job(cut))

        def listed(rank, doc):
            cut(rank, doc)
            doc["distributedInfo"]["world_size"] = 8
            doc["distributedInfo"]["pg_config"] = [{"pg_name": "tp", "pg_desc": "undefined", "pg_size": 4, "ranks": [0, 1, 2, 3]}]
        folder = self.job(listed)
        self.check(folder)
        self.assertIn("4 of 8 ranks are here", texts(steps_report("ranks", folder)))

    def test_metadata_missing_on_some_kernels(self):
        """Before 2026 some kernels lack all of it: by name and stream they are a group of their own, and nothing is counted twice."""
        def change(rank, doc):
            for e in self.calls(doc)[2::4]:
                e["args"] = {k: v for k, v in e["args"].items() if k in ("device", "stream", "correlation", "External id")}
        folder = self.job(change)
        rows = report("collectives", folder, "--group-by=instance").rows
        self.assertEqual(sum(r["total_ns"] for r in rows), sum(round(e["dur"] * 1000) for r in range(4) for e in self.calls(oracle.load(os.path.join(folder, f"{'abcd'[r]}.json.gz")))))
        self.check(folder)

    def test_names_of_kernels(self):
        """NCCL of all ages, RCCL, and the custom all-reduces of inference servers."""
        for name in ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclDevKernel_AllReduce_Sum_f32_TREE_LL(x)", "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
                     "void vllm::cross_device_reduce_1stage<float, 4>(vllm::RankData*)", "rcclAllReduce_Sum(x)"):
            def change(rank, doc):
                for e in self.calls(doc):
                    e["name"] = name
                    e["args"] = {k: v for k, v in e["args"].items() if k in ("device", "stream", "correlation", "External id")}
            rows = steps_report("collectives", self.job(change)).rows
            self.assertEqual([r["kind"] for r in rows], ["all_reduce"], name)

    def test_one_rank_with_stacks(self):
        def change(rank, doc):
            doc["with_stack"] = int(rank == 2)
        self.assertIn("rank 2 recorded stacks or memory and the others did not", texts(steps_report("stragglers", self.job(change))))

    def test_epochs(self):
        """Times count from baseTimeNanoseconds, which may differ by months."""
        def change(rank, doc):
            doc["baseTimeNanoseconds"] = 1_700_000_000_000_000_000 + (rank % 2) * 7_776_000_000_000_000
            for e in doc["traceEvents"]:
                e["ts"] -= (rank % 2) * 7_776_000_000_000
        self.check(self.job(change))

    def test_recordings_of_other_steps(self):
        """Ranks that recorded other steps: by Seq the common ones match."""
        def change(rank, doc):
            if rank == 3:
                doc["traceEvents"] = [e for e in doc["traceEvents"] if e["args"].get("Seq", 9) > 0 and e["name"] != "ProfilerStep#0"]
        rows = [r for r in report("collectives", self.job(change), "--group-by=instance").rows if r["ranks"] > 1]
        self.assertEqual(sorted(r["ranks"] for r in rows), [3, 4, 4, 4])

    def test_two_jobs_in_one_folder(self):
        """Equal ranks, other times: the second job's are named and left out."""
        folder = self.job()
        jobs.Job(tp=4, dp=1, steps=4).write(folder, {r: (3_600_000_000_000, 0.0) for r in range(4)}, name="z{}.json.gz")
        table = steps_report("ranks", folder)
        self.assertIn("4 recordings of a rank that another recording is of, too", texts(table))
        self.check(folder)

    def test_kernels_behind_the_step(self):
        """A step's mark ends before its kernels: these belong to the step that launched them."""
        def change(rank, doc):
            for e in doc["traceEvents"]:
                if e["name"].startswith("ProfilerStep"):
                    e["dur"] /= 3
                elif e["cat"] == "cuda_runtime":
                    step = next(m for m in doc["traceEvents"] if m["name"].startswith("ProfilerStep") and m["ts"] <= e["ts"] + 1 < m["ts"] + 8000)
                    e["ts"] = step["ts"] + (e["ts"] - step["ts"]) / 4
        total = sum(r["exposed_wait_ns"] for r in steps_report("ranks", self.job(change)).rows)
        self.assertAlmostEqual(total, 600_000, delta=6_000)

    def test_empty_files_among_the_ranks(self):
        """Each is named in a line, whatever it is called, and the rest is answered."""
        folder = self.job()
        with open(os.path.join(folder, "rank9.json"), "w"), open(os.path.join(folder, "node7_4711.1700000000.pt.trace.json"), "w"):
            pass
        with gzip.open(os.path.join(folder, "rank8.json.gz"), "wb"):
            pass
        self.check(folder)
        for name in ("ranks", "stragglers", "kernels"):
            said = texts(steps_report(name, folder))
            for file in ("rank9.json", "rank8.json.gz", "node7_4711.1700000000.pt.trace.json"):
                self.assertIn(f"{file} is left out: the file is empty", said)
        self.assertIn(b"is empty", oracle.run("advise", folder, "--notes=full")[1])

    def test_coalesced_collectives(self):
        """One kernel does the work of several ops and says nothing of them: it is one collective, of the kind that its name says."""
        def change(rank, doc):
            for e in self.calls(doc):
                e["args"] = {k: v for k, v in e["args"].items() if k in ("device", "stream", "correlation", "External id")}
                for k in range(3):
                    doc["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": e["ts"] - 2 + 0.2 * k, "dur": 0.1,
                                               "args": {"External id": 50_000 + 10 * e["args"]["correlation"] + k, "Collective name": "allreduce_coalesced", "Group size": 4, "In msg nelems": 10}})
        folder = self.job(change)
        self.check(folder)
        self.assertEqual([(r["kind"], r["instances"]) for r in steps_report("collectives", folder).rows], [("all_reduce", 8)])

    def test_communicators_on_the_stream_of_computation(self):
        """Groups and computation share stream 7: they are told apart all the same."""
        job = jobs.Job(tp=2, dp=2, late=lambda r, s, p: r * 10_000)
        self.assertEqual({e["args"]["stream"] for e in job.trace(0)["traceEvents"] if e["cat"] == "kernel"}, {7})
        folder = tempfile.mkdtemp(dir=self.tmp)
        job.write(folder)
        rows = steps_report("ranks", folder).by("rank")
        for r in range(4):
            self.assertAlmostEqual(rows[r]["exposed_wait_ns"] * job.steps, job.waits(r), delta=20 * job.steps)
            self.assertEqual(rows[r]["compute_ns"], 6_000_000 + 20_000 * r)

    def test_collectives_at_once(self):
        """Two on two streams at one moment: what is exposed counts once."""
        def change(rank, doc):
            more = []
            for e in self.calls(doc):
                twin = json.loads(json.dumps(e))
                twin["tid"] = twin["args"]["stream"] = 9
                twin["args"]["correlation"] += 5_000
                twin["args"]["Process Group Name"] = "other " + e["args"]["Process Group Name"]
                more += [twin, {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": e["ts"] - 0.09, "dur": 0.05, "args": {"correlation": twin["args"]["correlation"]}}]
            doc["traceEvents"] += more
        folder = self.job(change)
        self.check(folder)
        self.assertEqual(sum(r["instances"] for r in steps_report("collectives", folder).rows), 40)  # of each: 4 of all ranks, 16 of groups of one
        for row in steps_report("ranks", folder).rows:
            parts = [row.get(c) or 0 for c in ("compute_ns", "exposed_transfer_ns", "exposed_wait_ns", "exposed_unknown_ns", "exposed_copy_ns", "idle_ns")]
            self.assertAlmostEqual(sum(parts), row["step_ns"], delta=1)

    def test_kernels_of_a_graph(self):
        """All kernels of a launched graph have the correlation id of its one launch."""
        def change(rank, doc):
            for step in range(4):
                mark = next(e for e in doc["traceEvents"] if e["name"] == f"ProfilerStep#{step}")
                mine = [e for e in doc["traceEvents"] if e["cat"] in ("kernel", "cuda_runtime") and mark["ts"] - 1 <= e["ts"] < mark["ts"] + mark["dur"] - 1]
                for e in mine:
                    e["args"]["correlation"] = 1000 + step
                launches = [e for e in mine if e["cat"] == "cuda_runtime"]
                launches[0]["name"] = "cudaGraphLaunch"
                launches[0]["ts"] = mark["ts"] + 0.1
                gone = {id(e) for e in launches[1:]}
                doc["traceEvents"] = [e for e in doc["traceEvents"] if id(e) not in gone]
        folder = self.job(change)
        self.check(folder)
        self.assertEqual(sum(r["instances"] for r in steps_report("collectives", folder).rows), 20)  # 4 of all ranks, 16 of groups of one

    def test_kernels_before_their_launch(self):
        """Clocks of host and device differ by some us: a kernel may begin before the call that launched it."""
        def change(rank, doc):
            for e in doc["traceEvents"]:
                if e["cat"] == "cuda_runtime":
                    e["ts"] += 4
        self.check(self.job(change))

    def test_times_of_zero(self):
        """Work whose time was lost stands at 0: it moves neither steps nor clocks."""
        def change(rank, doc):
            doc["traceEvents"].append({"ph": "X", "cat": "kernel", "name": "lost_kernel", "pid": 0, "tid": 7, "ts": 0, "dur": 0, "args": {"device": 0, "stream": 7, "correlation": 9_999}})
        self.check(self.job(change))

    def test_names_of_files_that_lie(self):
        """rank0.json is that of rank 3: what the recording states counts."""
        job = jobs.Job(tp=4, dp=1, late=lambda r, s, p: r * 100_000 if p == 0 else 0)
        folder = tempfile.mkdtemp(dir=self.tmp)
        for r in range(4):
            with open(os.path.join(folder, f"rank{3 - r}.json"), "w") as f:
                f.write(json.dumps(job.trace(r)))
        self.check(folder)
        self.assertEqual([os.path.basename(r["input"]) for r in steps_report("ranks", folder).rows], ["rank3.json", "rank2.json", "rank1.json", "rank0.json"])

    def test_a_job_of_one(self):
        folder = self.job(tp=1)
        code, _, err = oracle.run("report", "stragglers", folder)
        self.assertEqual((code, err.count(b"\n")), (1, 1), err)


class Joined(Job):
    """Reports of one recording, asked of a job."""

    def test_means_and_extremes(self):
        each = {r: steps_report("gpu-timeline", data(*TP8), f"--rank={r}").by("kind") for r in range(8)}
        for row in steps_report("gpu-timeline", data(*TP8)).rows:
            values = [each[r][row["kind"]]["time_ns"] for r in range(8)]
            self.assertAlmostEqual(row["time_ns"], sum(values) / 8, delta=1e-6 * max(values))
            self.assertEqual((row["rank_min_ns"], row["rank_max_ns"]), (min(values), max(values)))
            self.assertEqual(values[row["max_rank"]], max(values))
            self.assertEqual(row["ranks_with"], 8)

    def test_largest_first(self):
        """Rows that each rank has the largest first are so over all ranks, too; steps stay in their order."""
        for name, column in (("kernels", "total_ns"), ("api", "total_ns"), ("operators", "device_self_ns")):
            values = [row[column] for row in steps_report(name, data(*TP8)).rows]
            self.assertEqual(values, sorted(values, reverse=True), name)
        job = jobs.Job(tp=2, dp=1, steps=5, late=lambda r, s, p: s * 1_000_000 * (r == 0))
        job.write(self.tmp)
        self.assertEqual([row["step"] for row in report("steps", self.tmp).rows], [0, 1, 2, 3, 4])

    def test_names_stay_on_a_narrow_terminal(self):
        head = oracle.run("report", "kernels", data(*TP8), "--width=80")[1].split(b"\n")
        self.assertTrue(any(line.startswith(b"Kernel ") for line in head[:5]), head[:5])

    def test_each(self):
        table = steps_report("kernels", data(*TP8), "--rank=all")
        for r in (0, 5):
            alone = steps_report("kernels", data(*TP8), f"--rank={r}")
            mine = [{k: v for k, v in row.items() if k != "rank"} for row in table.rows if row["rank"] == r]
            self.assertEqual(mine, alone.rows)

    def test_what_has_no_mean(self):
        for args, why in ((("groups",), b"a tree"), (("kernels", "--group-by=instance"), b"a row for each event")):
            code, _, err = oracle.run("report", *args, data(*TP8))
            self.assertEqual((code, err.count(b"\n")), (2, 1), err)
            self.assertIn(why, err)
            self.assertIn(b"--rank=N", err)
        self.assertEqual({r["rank"] for r in steps_report("groups", data(*TP8), "--rank=all").rows}, set(range(8)))

    def test_runs_are_not_ranks(self):
        """Files of which neither contents nor names say the rank."""
        for name in ("run1.json", "run2.json"):
            shutil.copy(oracle.synthetic("two_steps"), os.path.join(self.tmp, name))
        for args in (("ranks",), ("operators",)):
            code, out, err = oracle.run("report", *args, self.tmp)
            self.assertEqual((code, out), (2, b""))
            self.assertIn(b"2 traces where one was expected", err)

    def test_spans_of_a_worker_are_not_ranks(self):
        job = jobs.Job(tp=2, dp=1)
        job.write(self.tmp, ranks=(0,), name="w{}.100.pt.trace.json.gz")
        job.write(self.tmp, ranks=(0,), name="w{}.200.pt.trace.json.gz")
        code, _, err = oracle.run("report", "ranks", self.tmp)
        self.assertEqual(code, 2)
        self.assertIn(b"2 traces where one was expected", err)


if __name__ == "__main__":
    oracle.main()
