#!/usr/bin/env python3
"""Measures `opscope serve` on a real trace scaled up with bench/scale and imported: how soon it is ready, how fast tiles come while
several clients pan and zoom, how many reports a second it gives.

usage: bench/serve.py [--build BUILD] [--trace TRACE.json.gz] [--clients N] [--seconds S] [--write] [MEGABYTES]      (default 1000)
  --write    put the table into docs/performance.md
Needs room in $TMPDIR for the trace twice. Clients are processes of this script, on the same cores as the server.
"""
import argparse
import gzip
import http.client
import json
import math
import multiprocessing
import os
import random
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


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("localhost", port, timeout=120)

    def get(self, path, **args):
        """(seconds, body) of an answer that must be good."""
        url = path + "?" + urllib.parse.urlencode(args) if args else path
        start = time.perf_counter()
        self.connection.request("GET", url, headers={"Accept-Encoding": "gzip"})
        answer = self.connection.getresponse()
        body = answer.read()
        seconds = time.perf_counter() - start
        if answer.status != 200:
            sys.exit(f"{url}: status {answer.status}: {body[:300]}")
        return seconds, gzip.decompress(body) if answer.getheader("Content-Encoding") == "gzip" else body

    def json(self, path, **args):
        return json.loads(self.get(path, **args)[1])


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
    plain, kept = os.path.join(folder, "trace.json"), os.path.join(folder, "trace.opscope")
    with open(plain, "wb") as f:
        subprocess.run([scale, trace, str(megabytes)], stdout=f, stderr=subprocess.DEVNULL, check=True)
    subprocess.run([opscope, "import", plain, "-o", kept], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    size = os.path.getsize(plain)
    os.unlink(plain)
    return kept, size


def memory_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return max(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def measure(server, port, start, args):
    client, row = Client(port), {}
    client.json("/api/state")
    row["ready"] = time.perf_counter() - start
    info = client.json("/api/timeline")
    row["first"] = time.perf_counter() - start
    row["slices"], row["tracks"] = info["slices"], len(info["tracks"])
    times = sorted(t for l in together(pan_and_zoom, args.clients, port, info, args.seconds) for t in l)
    row["tiles"] = times
    for name in REPORTS:
        client.get("/api/report/" + name, limit=100)  # what is kept for it is made once
    row["reports"] = sum(together(ask_reports, args.clients, port, args.seconds)) / args.seconds
    row["memory"] = memory_of(server.pid)
    return row


def table(row, size, args):
    ms = [1000 * t for t in row["tiles"]]
    lines = [("trace", f"{size / 1e6:.0f} MB", ""), ("ranges and device work", f"{row['slices']:,} on {row['tracks']} tracks", ""),
             ("**server ready**, s", f"**{row['ready']:.2f}**", "≤ 1"), ("first look at the timeline (file opened, levels made), s", f"{row['first']:.2f}", ""),
             (f"tiles asked for by {args.clients} clients, a second", f"{len(ms) / args.seconds:.0f}", ""),
             ("`/api/timeline/tile`, all tracks, median, ms", f"{quantile(ms, 0.5):.1f}", ""),
             ("**99th percentile**, ms", f"**{quantile(ms, 0.99):.1f}**", "≤ 50"), ("longest, ms", f"{ms[-1]:.1f}", ""),
             ("**reports a second**", f"**{row['reports']:.0f}**", "≥ 200"), ("most memory of the server, MB", f"{row['memory'] / 1e6:.0f}", "")]
    return "| | | wanted |\n|---|---|---|\n" + "".join(f"| {a} | {b} | {c} |\n" for a, b, c in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--trace", default=next(t for t in TRACES if os.path.exists(t)))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("megabytes", nargs="?", type=int, default=1000)
    args = parser.parse_args()
    opscope, scale = os.path.join(args.build, "src", "cli", "opscope"), os.path.join(args.build, "bench", "scale")
    with tempfile.TemporaryDirectory(prefix="opscope-bench-") as folder:
        kept, size = make_input(opscope, scale, args.trace, args.megabytes, folder)
        start = time.perf_counter()
        server = subprocess.Popen([opscope, "serve", "-p", "0", kept], stdout=subprocess.PIPE, text=True)
        try:
            port = urllib.parse.urlparse(server.stdout.readline().strip()).port
            text = table(measure(server, port, start, args), size, args)
        finally:
            server.terminate()
            server.wait()
    print(text)
    if args.write:
        write_section("The viewer's server", f"""{machine()}, clients and server together, by

```
bench/serve.py --build build-bench --write {args.megabytes}
```

from `{os.path.basename(args.trace)}`, repeated by `bench/scale` and imported.

{text}""")


main()
