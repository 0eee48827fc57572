"""Pictures: what is in the page, and what a browser draws of it."""
import base64
import gzip
import hashlib
import html
import json
import os
import re
import struct
import subprocess
import tempfile
import unittest
import zlib

from support import RESNET, oracle
from test_frames import HOSTILE, hostile
import opscope

GPU = oracle.synthetic("costs_gpu")
# The first three colours of the viewer, in which something is drawn in each picture.
COLORS = {(0x00, 0x72, 0xb2), (0xe6, 0x9f, 0x00), (0x00, 0x9e, 0x73), (0xcc, 0x79, 0xa7), (0x56, 0xb4, 0xe9), (0xd5, 0x5e, 0x00), (0x9a, 0x8c, 0x00), (0x7f, 0x7f, 0x7f)}


def drawn(plot):
    """What the page says is to be drawn."""
    return json.loads(re.search(r'id="opscope-plot">(.*?)</script>', plot.to_html(), re.S).group(1))


def pixels(path):
    """Rows of (r, g, b) of a PNG of 8 bits and no interlacing."""
    with open(path, "rb") as f:
        data = f.read()
    at, packed, width, channels = 8, b"", 0, 0
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, channels = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, stride, rows, before = zlib.decompress(packed), width * channels, [], bytearray(width * channels)
    for y in range(len(raw) // (stride + 1)):
        how, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = row[i - channels] if i >= channels else 0, before[i], before[i - channels] if i >= channels else 0
            p = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(p - v))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[how]) & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, stride, channels)])
        before = row
    return rows


def setUpModule():
    if not os.path.exists(os.path.join(os.path.dirname(opscope.__file__), "_plot.js.gz")):
        with unittest.TestCase().assertRaisesRegex(opscope.Error, "npm was not there"):
            opscope.load(RESNET).plot.timeline()
        raise unittest.SkipTest("built without npm")


class Pages(oracle.Case):
    def test_timeline_has_every_event(self):
        """Of a trace that is small enough, one by one; all that is drawn or said not to be is all that there is."""
        trace = opscope.load(oracle.synthetic("all_categories"))
        events = trace.event_table()
        page = drawn(trace.plot.timeline())["data"]
        first = min(events["start_ns"])
        want = sorted((r["name"], r["start_ns"] - first, r["duration_ns"]) for r in events if r["kind"] != "trace")
        self.assertEqual(sorted((page["names"][name], start, duration) for _, start, duration, _, _, name, _ in page["items"]), want)
        self.assertEqual([(s[0], s[2]) for s in page["steps"]], [(str(r["step"]), r["total_ns"]) for r in trace.report("steps") if r["step"] is not None])

    def test_timeline_is_summed_up(self):
        trace = opscope.load(oracle.data("tracelens", "h100", "Falconsai_nsfw_image_detection__1016002.json.gz"))
        plot = trace.plot.timeline()
        data = drawn(plot)["data"]
        self.assertLess(len(plot.to_html()), 1_200_000)
        self.assertLess(len(data["items"]), 6100)
        left = sum(int(n.replace(",", "")) for note in plot.notes for n in re.findall(r"Not drawn: ([\d,]+)", note))
        events = trace.event_table()
        self.assertEqual(sum(item[4] for item in data["items"]) + left, sum(kind != "trace" for kind in events["kind"]))
        # What the device did in all is kept: streams are drawn whole.
        lanes = [i for i, lane in enumerate(data["lanes"]) if lane["device"]]
        busy = sum(item[3] for item in data["items"] if item[0] in lanes)
        self.assertAlmostEqual(busy / sum(r["duration_ns"] for r in events if r["kind"] in ("kernel", "memcpy", "memset")), 1, delta=0.01)
        # The report as a whole says the same with another bound, and of some steps.
        table = opscope._core.Profile.timeline(trace._profile, {"limit": "100"})
        self.assertLess(table.rows, 400)

    def test_memory_keeps_its_peak(self):
        trace = opscope.load(RESNET)
        memory = trace.report("memory")
        page = drawn(trace.plot.memory())
        at = [c["id"] for c in page["data"]["columns"]].index("allocated_bytes")
        self.assertEqual(max(r[at] for r in page["data"]["rows"]), memory.sections["peaks"][0]["peak_allocated_bytes"])
        self.assertEqual(page["title"], "Memory over time, CPU")
        self.assertLessEqual(len(page["data"]["rows"]), 2000)
        self.assertEqual(page["data"]["rows"][-1][0], memory.sections["curve"]["time_ns"][-1])

    def test_roofline(self):
        trace = opscope.load(GPU)
        page, table = drawn(trace.plot.roofline(group_by="kernel")), trace.report("roofline", group_by="kernel")
        ids = [c["id"] for c in page["data"]["columns"]]
        want = [[r[i] for i in ids] for r in table if r["flops_per_byte"] and r["tflops_per_s"]]
        self.assertTrue(want)
        self.assertEqual(page["data"]["rows"], want)

    def test_what_a_trace_lacks(self):
        trace = opscope.load(RESNET)
        for ask in (trace.plot.roofline, opscope.load(GPU).plot.memory, lambda: trace.plot.timeline(steps=70)):
            with self.assertRaises(opscope.Error) as caught:
                ask()
            self.assertIn(caught.exception.code, ("lacks", "usage"))
        self.assertIn("timeline", repr(trace.plot))

    def test_pages_are_closed(self):
        """One script of ours by its hash, no address; no name gets out of the data."""
        trace = opscope.load(hostile(self))
        plot = trace.plot.timeline()
        page = plot.to_html()
        self.assertEqual(page.count("<script"), 3)
        self.assertNotIn("onerror=alert(2)>", re.sub(r'id="opscope-plot">.*?</script>', "", page, flags=re.S))
        self.assertIn(HOSTILE, drawn(plot)["data"]["names"])
        self.assertNotRegex(page, r'(?:src|href)\s*=\s*"?https?:')
        packed = base64.b64decode(re.search(r'id="opscope-script">(.*?)</script>', page, re.S).group(1))
        self.assertIn("'sha256-" + base64.b64encode(hashlib.sha256(gzip.decompress(packed)).digest()).decode(), page)
        self.assertIn("default-src 'none'", page)
        shown = plot._repr_html_()
        self.assertTrue(shown.startswith("<iframe "))
        self.assertEqual(html.unescape(re.search(r'srcdoc="(.*)"></iframe>$', shown, re.S).group(1)), page)
        self.assertNotIn("allow-same-origin", shown)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "plot.html")
            plot.save(path)
            with open(path, encoding="utf-8", newline="") as f:
                self.assertEqual(f.read(), page)


class Drawn(oracle.Case):
    def test_by_a_browser(self):
        """As a notebook has them: one below the other, each in its frame. In each something is drawn in the viewer's colours."""
        browser = oracle.browser()
        gpu = opscope.load(GPU)
        plots = [gpu.plot.timeline(), gpu.plot.roofline(group_by="kernel"), opscope.load(RESNET).plot.memory(), opscope.load(hostile(self)).plot.timeline()]
        with tempfile.TemporaryDirectory() as folder:
            path, picture = os.path.join(folder, "notebook.html"), os.path.join(folder, "picture.png")
            with open(path, "w", encoding="utf-8") as f:
                f.write('<!doctype html><meta charset="utf-8"><body style="margin:0">' + "".join(f'<div style="height:{p.height}px">{p._repr_html_()}</div>' for p in plots))
            height = sum(p.height for p in plots)
            subprocess.run([browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size=600,{height}", "--virtual-time-budget=10000", f"--screenshot={picture}",
                            f"--user-data-dir={folder}/profile", "file://" + path], capture_output=True, timeout=oracle.TIMEOUT, check=True)
            rows = pixels(picture)
        top = 0
        for plot in plots:
            part = rows[top:top + plot.height]
            found = {p for row in part for p in row} & COLORS
            many = sum(p in COLORS for row in part for p in row)
            self.assertTrue(found and many > 100, (plot.title, found, many))
            top += plot.height


if __name__ == "__main__":
    oracle.main()
