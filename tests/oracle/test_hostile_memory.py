"""Captures in which a few bytes call for long texts, again and again in new ways: what is read of them stays in proportion to the file. Run with a bound on
the addresses that the program may have, so that a reader that takes as much as it is told to take fails."""
import json
import resource
import shutil
import subprocess
import tempfile

import oracle
import segment
from segment import BASE, Segment

LIMIT = 320 << 20


class HostileMemory(oracle.Case):
    def setUp(self):
        super().setUp()
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def read(self, s, command, *more):
        """The JSON of a command; the file has some hundred KB, of which a careless reader would make more than LIMIT."""
        path = s.write(self.dir)
        p = subprocess.run([oracle.OPSCOPE, *command, path, "--format=json", *more], capture_output=True, timeout=oracle.TIMEOUT,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)))
        self.assertEqual(p.returncode, 0, p.stderr[-300:])
        return oracle.Table(json.loads(p.stdout))

    def problems(self, s):
        return {r["kind"]: r["count"] for r in self.read(s, ["info"]).section("problems").rows}

    def wide(self):
        return Segment(block=65536, grain=4096)

    def test_marks(self):
        """One text of 32 KB, another number behind it each time: 360 MB."""
        s = self.wide()
        for i in range(11000):
            s.push(1, "x" * 32768, BASE + i, kind=segment.MARK, seq=i)
        self.assertGreater(self.problems(s)["text-out-of-proportion"], 7000)

    def test_ranges(self):
        """The same as ranges, whose texts are looked into; the text in the record makes each another one."""
        s = self.wide()
        for i in range(11000):
            s.push(1, "x" * 32768, BASE + 2 * i, rest=f" {i:06}")
            s.pop(1, BASE + 2 * i + 1)
        table = self.read(s, ["report", "nvtx"], "--limit=0")
        self.assertEqual(sum(r["calls"] for r in table.rows), 11000)

    def test_steps(self):
        """The name of a step is cut before its number is put behind it: all are there, each with its own."""
        s = self.wide()
        name = s.text("x" * 32768)
        for i in range(11000):
            s.event(1, segment.STEP, 0, name, "qq", BASE + i, i)
        info = self.read(s, ["info"])
        self.assertEqual({r["kind"]: r["count"] for r in info.section("problems").rows}, {"step-name-cut": 11000})
        (n,), = self.read(s, ["sql"], "SELECT count(DISTINCT name) FROM span").doc["rows"]
        self.assertEqual(n, 11000)

    def test_streams(self):
        """Streams without end that have one long name: each lane is called by the beginning of it."""
        s = self.wide()
        name = s.text("x" * 32768)
        for i in range(11000):
            s.keep(segment.RESOURCE, 0, name, "IIQ", 0, 0x40000005, i)
            s.event(1, segment.KERNEL, 0, name, "qq4I3I3I4I3IIQ", BASE + 2 * i, BASE + 2 * i + 1, i, 0, 1, i, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        named = [r["thread_name"] for r in self.read(s, ["info"]).section("tracks").rows]
        self.assertEqual(len([n for n in named if n and n.endswith(": " + 200 * "x" + "…")]), 11000)

    def test_samples(self):
        """Stacks of 256 frames, each a text of 32 KB: 8 MB a stack."""
        s = self.wide()
        texts = [segment.FRAME_TEXT | s.text(chr(65 + i) * 32768) for i in range(16)]
        for i in range(200):
            frames = [texts[i >> (4 * k) & 15 if k < 3 else k % 16] for k in range(256)]
            s.event(1, segment.CPU_SAMPLE, 0, 1, "qII256Q", BASE + i, 256, 1000, *frames)
        found = self.problems(s)
        self.assertGreater(found["stack-out-of-proportion"], 150)

    def test_notes(self):
        """Kinds of notes without end: each would be looked for among all of them."""
        s = self.wide()
        text = s.text("y" * 1000)
        for i in range(11000):
            s.keep(segment.NOTE, 0, s.text(f"kind-{i}"), "qII", BASE, text, 0)
        found = self.problems(s)
        self.assertEqual(sum(n for k, n in found.items() if k.startswith("kind-") or k == "more-notes"), 11000)
        self.assertEqual(len([k for k in found if k.startswith("kind-")]), 128)

    def test_kernels(self):
        """Names that stand for much longer ones: 135 bytes for 139 KB, of all 332 MiB."""
        s = self.wide()
        # f(P<int, int>, P<P<int, int>, P<int, int>>, ...): each argument is twice as long as the one before
        pairs = "1PIiiE" + "".join(f"S_IS{k}_S{k}_E" for k in "0123456789AB")
        for i in range(2500):
            name = f"_Z6f{i:05}{pairs}"
            s.event(1, segment.KERNEL, 0, s.text(name), "qq4I3I3I4I3IIQ", BASE + 2 * i, BASE + 2 * i + 1, i, 0, 1, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        self.read(s, ["report", "kernels"], "--limit=0")


if __name__ == "__main__":
    oracle.main()
