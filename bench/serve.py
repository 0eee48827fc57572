#!/usr/bin/env python3
"""Measures `opscope serve` and its pages on a real trace scaled up with bench/scale and imported: how soon it is ready, how fast tiles
come while several clients pan and zoom, how many reports a second it gives, and what the browser makes of it (bench/page.mjs).

usage: bench/serve.py [--build BUILD] [--trace TRACE.json.gz] [--clients N] [--seconds S] [--write] [MEGABYTES...]   (default 1000 7300)
  --write    put the table into docs/performance.md
Needs room in $TMPDIR for an eighth of the trace. Clients are processes of this script, on the same cores as the server; each asks
again as soon as it has its answer, so that the cores are never idle. Pages need node, Chromium and web/node_modules, which the build fetches.
"""
import argparse
import gzip
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from common import ROOT, machine, write_section

DATA = os.path.normpath(os.environ.get("OPSCOPE_DATA", os.path.join(ROOT, "..", "shared", "data")))
TRACES = (os.path.join(DATA, "tracelens", "h100", "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"),
          os.path.join(ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"))
REPORTS = ("overview", "operators", "kernels", "devices", "steps", "api")
SCREEN = 1400  # pixels that a client shows
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Client:
    """Speaks HTTP by hand: http.client takes longer to read an answer's head than the server to make most tiles, on the cores that both use."""

    def __init__(self, port):
        self.socket = socket.create_connection(("localhost", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = port

    def more(self):
        block = self.socket.recv(1 << 18)
        if not block:
            sys.exit("the server has closed the connection")
        return block

    def get(self, path, **args):
        """(seconds, body) of an answer that must be good and states its length."""
        url = path + "?" + urllib.parse.urlencode(args) if args else path
        start = time.perf_counter()
        self.socket.sendall(f"GET {url} HTTP/1.1\r\nHost: localhost:{self.port}\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        answer = self.more()
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self.more()
        head = answer[:end]
        pieces, left = [answer[end + 4:]], int(LENGTH.search(head)[1]) - (len(answer) - end - 4)
        while left > 0:
            pieces.append(self.more())
            left -= len(pieces[-1])
        seconds, body = time.perf_counter() - start, b"".join(pieces)
        if head.split(b" ", 2)[1] != b"200":
            sys.exit(f"{url}: {head[:100]}: {body[:300]}")
        return seconds, body

    def json(self, path, **args):
        body = self.get(path, **args)[1]
        return json.loads(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)


def pan_and_zoom(port, info, seconds, seed, out):
    """What a person does: a zoom, some panning, another zoom; each picture asks for the tiles that it shows and has not had."""
    client, chance, times, seen = Client(port), random.Random(seed), [], set()
    length, end = info["length"], time.monotonic() + seconds
    widest = max(0, math.ceil(math.log2(max(1, length) / SCREEN)))
    while time.monotonic() < end:
        zoom, middle = widest, chance.random() * length
        while zoom >= 0 and time.monotonic() < end:
            width = info["tile_pixels"] << zoom
            for _ in range(chance.randrange(1, 5)):
                first = max(0, int(middle - SCREEN / 2 * (1 << zoom)) // width)
                last = min(length, int(middle + SCREEN / 2 * (1 << zoom))) // width
                for index in range(first, last + 1):
                    if (zoom, index) not in seen:
                        seen.add((zoom, index))
                        times.append(client.get("/api/timeline/tile", zoom=zoom, index=index)[0])
                middle = min(length, max(0, middle + chance.uniform(-0.5, 0.5) * SCREEN * (1 << zoom)))
            zoom -= chance.randrange(1, 4)
    out.put(times)


def ask_reports(port, seconds, seed, out):
    client, chance, n, end = Client(port), random.Random(seed), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        client.get("/api/report/" + chance.choice(REPORTS), limit=100)
        n += 1
    out.put(n)


def together(work, clients, *args):
    out = multiprocessing.Queue()
    all_ = [multiprocessing.Process(target=work, args=(*args, seed, out)) for seed in range(clients)]
    for p in all_:
        p.start()
    results = [out.get() for _ in all_]
    for p in all_:
        p.join()
    return results


def quantile(sorted_values, q):
    return sorted_values[min(len(sorted_values) - 1, int(q * len(sorted_values)))]


def make_input(opscope, scale, trace, megabytes, folder):
    """(the .opscope file, bytes of the trace that it was made from): the trace itself is never on disk."""
    kept, size = os.path.join(folder, f"{megabytes}.opscope"), 0
    importer = subprocess.Popen([opscope, "import", "-", "-o", kept], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    scaler = subprocess.Popen([scale, trace, str(megabytes)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while block := scaler.stdout.read(1 << 20):
        importer.stdin.write(block)
        size += len(block)
    importer.stdin.close()
    if importer.wait() or scaler.wait():
        sys.exit(f"no input of {megabytes} MB could be made")
    return kept, size


def memory_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return max(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return sum(int(x) for x in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def page(url, key):
    """What bench/page.mjs says, or None where there is nothing to run it."""
    tools = [shutil.which("node"), shutil.which(os.environ.get("CHROMIUM", "chromium")), os.path.join(ROOT, "web", "node_modules", "playwright-core")]
    if not all(tools) or not os.path.exists(tools[2]):
        print("no node, Chromium or web/node_modules: pages are not measured", file=sys.stderr)
        return None
    command = [tools[0], os.path.join(ROOT, "bench", "page.mjs"), url, key]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "CHROMIUM": tools[1]})
    return json.loads(done.stdout)


def measure(opscope, kept, args):
    row, start = {"load": os.getloadavg()[0]}, time.perf_counter()
    server = subprocess.Popen([opscope, "serve", "-p", "0", kept], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        port = urllib.parse.urlparse(url).port
        client = Client(port)
        client.json("/api/state")
        row["ready"] = time.perf_counter() - start
        info = client.json("/api/timeline")
        row["first"], row["first_cpu"] = time.perf_counter() - start, cpu_of(server.pid)
        row["slices"], row["tracks"] = info["slices"], len(info["tracks"])
        state = client.json("/api/state")["inputs"][0]
        row["events"], row["loaded"] = state["events"], memory_of(server.pid)
        cpu = cpu_of(server.pid)
        row["tiles"] = sorted(t for l in together(pan_and_zoom, args.clients, port, info, args.seconds) for t in l)
        row["tile_cpu"] = (cpu_of(server.pid) - cpu) / len(row["tiles"])
        for name in REPORTS:
            client.get("/api/report/" + name, limit=100)  # what is kept for it is made once
        row["reports"] = sum(together(ask_reports, args.clients, port, args.seconds)) / args.seconds
        row["page"] = page(url, state["input"])
        row["memory"] = memory_of(server.pid)
    finally:
        server.terminate()
        server.wait()
    return row


def spread(values, digits=0):
    v = sorted(values)
    return f"{quantile(v, 0.5):.{digits}f} / {v[-1]:.{digits}f}"


def page_lines(pages):
    """Rows of the table about what the browser does; a number for each input."""
    frames = [sorted(p["interval_ms"]) for p in pages]
    draws = [sorted(p["draw_ms"]) for p in pages]
    return [
        ("**first page painted**, ms, median / longest", [f"**{spread(p['paint_ms'])}**" for p in pages], "≤ 1500"),
        ("timeline painted, ms, median / longest", [spread(p["timeline_paint_ms"]) for p in pages], ""),
        ("timeline with its tiles, ms, median / longest", [spread(p["timeline_ready_ms"]) for p in pages], ""),
        ("a picture's script while panning and zooming, ms, median / 99th percentile",
         [f"{quantile(d, 0.5):.1f} / {quantile(d, 0.99):.1f}" for d in draws], "≤ 16.7"),
        ("from picture to picture, ms, median / 99th percentile", [f"{quantile(f, 0.5):.1f} / {quantile(f, 0.99):.1f}" for f in frames], "16.7"),
        ("**most memory of the page**, MB", [f"**{p['page_bytes'] / 1e6:.0f}**" for p in pages], "≤ 300"),
        ("with the browser's spare processes, MB", [f"{p['all_bytes'] / 1e6:.0f}" for p in pages], ""),
    ]


def table(rows, sizes, args):
    ms = [[1000 * t for t in row["tiles"]] for row in rows]
    lines = [
        ("events", [f"{r['events']:,}" for r in rows], ""),
        ("of them drawn: ranges and device work", [f"{r['slices']:,}" for r in rows], ""),
        ("**server ready**, s", [f"**{r['ready']:.2f}**" for r in rows], "≤ 1"),
        ("first look at the timeline (file opened, levels made), s", [f"{r['first']:.2f}" for r in rows], ""),
        ("CPU time of that, s", [f"{r['first_cpu']:.2f}" for r in rows], ""),
        (f"tiles asked for by {args.clients} clients, a second", [f"{len(m) / args.seconds:.0f}" for m in ms], ""),
        ("`/api/timeline/tile`, all tracks, median, ms", [f"{quantile(m, 0.5):.1f}" for m in ms], ""),
        ("**99th percentile**, ms", [f"**{quantile(m, 0.99):.1f}**" for m in ms], "≤ 5"),
        ("longest, ms", [f"{m[-1]:.1f}" for m in ms], ""),
        ("CPU time of the server for a tile, ms", [f"{1000 * r['tile_cpu']:.2f}" for r in rows], ""),
        ("**reports a second**", [f"**{r['reports']:.0f}**" for r in rows], "≥ 200"),
        ("memory of the server with the timeline made, MB", [f"{r['loaded'] / 1e6:.0f}" for r in rows], ""),
        ("for each event, bytes", [f"{r['loaded'] / r['events']:.0f}" for r in rows], ""),
        ("most memory of the server, answers kept, MB", [f"{r['memory'] / 1e6:.0f}" for r in rows], ""),
    ]
    if all(r["page"] for r in rows):
        lines += page_lines([r["page"] for r in rows])
    lines.append(("processes that ran or waited to, before (load)", [f"{r['load']:.1f}" for r in rows], ""))
    head = "| | " + " | ".join(f"{s / 1e6:.0f} MB" for s in sizes) + " | wanted |\n|---|" + "---|" * (len(sizes) + 1) + "\n"
    return head + "".join(f"| {a} | {' | '.join(b)} | {c} |\n" for a, b, c in lines)


def browser_text(rows):
    if not all(r["page"] for r in rows):
        return ""
    p = rows[0]["page"]
    return f"""
The pages were opened in headless Chromium without a GPU, {p['width']} by {p['height']} pixels: it draws in software, on the cores that the server
uses. Each opening is by a new browser context, which has kept nothing. Memory is the PSS of the page's renderer process, sampled while the
timeline is panned and zoomed by held keys.
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--trace", default=next(t for t in TRACES if os.path.exists(t)))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("megabytes", nargs="*", type=int, default=[1000, 7300])
    args = parser.parse_args()
    opscope, scale = os.path.join(args.build, "src", "cli", "opscope"), os.path.join(args.build, "bench", "scale")
    rows, sizes = [], []
    for megabytes in args.megabytes:
        with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
            kept, size = make_input(opscope, scale, args.trace, megabytes, folder)
            sizes.append(size)
            rows.append(measure(opscope, kept, args))
    text = table(rows, sizes, args)
    print(text)
    if args.write:
        write_section("The viewer", f"""{machine()}, clients and server together, by

```
bench/serve.py --build build-bench --write {' '.join(map(str, args.megabytes))}
```

from `{os.path.basename(args.trace)}`, repeated by `bench/scale` and imported. Each client asks again as soon as it has its answer.

{text}{browser_text(rows)}""")


if __name__ == "__main__":
    main()
