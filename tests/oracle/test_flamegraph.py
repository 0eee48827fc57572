"""export flamegraph: the page's own data add up to the trace's time, whatever is merged; hostile names stay text; a browser draws it."""
import json
import os
import re
import subprocess
import tempfile

import oracle

PYTHON, MODULE, USER, OP, WORK, NONE = 1, 2, 3, 4, 5, 6


def page(path, *args, stdin=None):
    code, out, err = oracle.run("export", "flamegraph", path, *args, stdin=stdin)
    if code:
        raise AssertionError(err.decode())
    return out.decode()


def frames(html):
    """(parent, name, self ns, total ns, kind, count) of every frame, as the page's script has them."""
    names = json.loads(re.search(r"const NAMES=(\[.*?\]);\n", html, re.S).group(1))
    numbers = json.loads(re.search(r"const D=(\[.*?\]);\n", html, re.S).group(1))
    rows = [numbers[i:i + 6] for i in range(0, len(numbers), 6)]
    return [(p, f"merged {-n}" if n < 0 else names[n], s, t, k, c) for p, n, s, t, k, c in rows]


def op(name, ts, dur, **args):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def text(events):
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()


class Flamegraph(oracle.Case):
    def check_sums(self, rows):
        inside = [r[2] for r in rows]
        for i in range(len(rows) - 1, 0, -1):
            self.assertTrue(rows[i][0] < i or rows[i][1].startswith("merged"))
        for p, _, _, t, _, _ in rows[1:]:
            inside[p] += t
        for r, ns in zip(rows, inside):
            self.assertEqual(r[3], ns, r)

    def test_adds_up(self):
        for parts in (("tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"), ("torch", "torch214_cpu", "resnet_full.json.gz"),
                      ("tb_plugin", "resnet50_num_workers_0", "worker0.1623143089861.pt.trace.json.gz")):
            path = oracle.data(*parts)
            for by in ("stack", "module", "op"):
                _, lines, _ = oracle.run("export", "stacks", "--by=" + by, path)
                ns = sum(int(l.rsplit(b" ", 1)[1]) for l in lines.split(b"\n") if l)
                whole, few = frames(page(path, "--by=" + by)), frames(page(path, "--by=" + by, "--frames=30"))
                for rows in (whole, few):
                    self.assertEqual(rows[0][3], ns)
                    self.check_sums(rows)
                merged = [r for r in few if r[1].startswith("merged")]
                self.assertEqual(len(few) - 1 - len(merged), min(30, len(whole) - 1))
                kept = sorted((r[3] for r in whole[1:]), reverse=True)[:30]
                self.assertEqual(sorted((r[3] for r in few[1:] if r not in merged), reverse=True), kept)

    def test_many_frames(self):
        """Of 12,000 frames 500 are kept; the note says how many are not, and their time."""
        events = [op("all", 0, 12000 * 10)] + [op(f"op{i}", 10 * i, 5 + i % 5) for i in range(12000)]
        html = page("-", "--frames=500", stdin=text(events))
        rows = frames(html)
        self.check_sums(rows)
        rest = [r for r in rows if r[1].startswith("merged")]
        self.assertEqual([r[1] for r in rest], ["merged 11501"])
        self.assertIn(f"11501 frames, the smallest ones, with {rest[0][3]} ns in all, are merged", html)
        self.assertNotIn("are merged", page("-", stdin=text(events)))

    def test_small_tree(self):
        events = [op("aten::mm", 10, 20, **{"External id": 1, "Call stack": "nn.Module: Linear_0;a.py(3): f"}),
                  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 5,
                   "args": {"External id": 1, "correlation": 1}},
                  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 40, "dur": 8,
                   "args": {"External id": 1, "correlation": 1, "device": 0, "stream": 7}}]
        rows = frames(page("-", stdin=text(events)))
        self.assertEqual([r[1:] for r in rows[1:]], [("a.py(3): f", 0, 8000, PYTHON, 1), ("nn.Module: Linear_0", 0, 8000, MODULE, 1),
                                                    ("aten::mm", 0, 8000, OP, 1), ("gemm", 8000, 8000, WORK, 1)])
        rows = frames(page("-", "--by=module", "--metric=cpu", stdin=text(events)))
        self.assertEqual([r[1:] for r in rows[1:]], [("nn.Module: Linear_0", 0, 20000, MODULE, 1), ("aten::mm", 20000, 20000, OP, 1)])

    HOSTILE = "</script><script>alert(1)</script><!-- ]]> \" ' \\ \u202e \u2028 \x01 ${x}"

    def test_hostile_names(self):
        html = page("-", stdin=text([op(self.HOSTILE, 1, 2), op("b", 5, 2)]))
        self.assertEqual((html.count("<script"), html.count("</script")), (1, 1))
        self.assertNotIn("<!--", html)
        for c in ("\u202e", "\u2028", "\x01"):
            self.assertNotIn(c, html)
        self.assertIn("alert(1)", frames(html)[1][1])

    def test_nothing_outside(self):
        html = page("-", stdin=text([op("a", 1, 2)]))
        self.assertIn("default-src 'none'", html)
        self.assertEqual(re.findall(r"(?:src|href)=|url\(|@import", html.replace("default-src=", "")), [])
        self.assertEqual(set(re.findall(r"https?://[^'\" ]+", html)), {"http://www.w3.org/2000/svg"})

    def test_errors(self):
        code, out, err = oracle.run("export", "flamegraph", "-", "--metric=device", stdin=text([op("a", 1, 2)]))
        self.assertEqual((code, out), (1, b""))
        self.assertIn(b"there is no device work in the input; to record it", err)
        for frames_ in ("0", "x", "-4"):
            code, out, err = oracle.run("export", "flamegraph", "-", "--frames=" + frames_, stdin=text([op("a", 1, 2)]))
            self.assertEqual((code, out), (2, b""))
            self.assertIn(b"a number of frames was expected", err)

    def test_in_a_browser(self):
        browser = oracle.browser()
        html = page("-", stdin=text([op("outer", 0, 100), op(self.HOSTILE, 10, 50), op("wide enough", 60, 40)]))
        html = html.replace("tell(0);draw();", "tell(0);draw();$('q').value='wide';search();")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            with open(path, "w") as f:
                f.write(html)
            p = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,720", "--user-data-dir=" + folder,
                                "--dump-dom", "file://" + path], capture_output=True, timeout=120)
        dom = p.stdout.decode()
        self.assertIn("<html", dom, p.stderr.decode(errors="replace")[-2000:])
        svg = dom[dom.index("<svg"):dom.index("</svg>")]
        self.assertEqual(svg.count("<rect"), 4)
        self.assertIn(">wide enough</text>", svg)
        self.assertEqual(svg.count("hit"), 1)
        self.assertIn("1 frames, 40.000 us, 40.00 % of all", dom)


if __name__ == "__main__":
    oracle.main()
