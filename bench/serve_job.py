#!/usr/bin/env python3
"""Measures the timeline of the ranks of a job in `opscope serve`: how soon it is there, and how fast tiles of all ranks come while somebody pans and zooms.

usage: bench/serve_job.py [--build BUILD] [--ranks N] [--seconds S] [FOLDER]   (default: 64 ranks, made of those of the real job in FOLDER)
The ranks of FOLDER are repeated under other numbers.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from random import Random

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from common import ROOT  # noqa: E402
from serve import DATA, SCREEN, Client  # noqa: E402


def make(folder, source, n):
    files, rest = sorted(f for f in os.listdir(source) if ".json" in f), {}
    for r in range(n):
        name = files[r % len(files)]
        if name not in rest:
            with gzip.open(os.path.join(source, name), "rt", encoding="utf-8") as f:
                rest[name] = json.dumps({k: v for k, v in json.load(f).items() if k != "distributedInfo"})[1:]
        with open(os.path.join(folder, f"{r}.json"), "w", encoding="utf-8") as f:
            f.write(f'{{"distributedInfo": {{"backend": "nccl", "rank": {r}, "world_size": {n}}}, {rest[name]}')


def pan_and_zoom(client, info, run, seconds):
    """Times of tiles with all tracks, and their bytes."""
    chance, times, sizes, end = Random(1), [], [], time.monotonic() + seconds
    seen, length = set(), info["length"]
    widest = max(0, (max(1, length) // SCREEN).bit_length())
    while time.monotonic() < end:
        zoom = chance.randrange(max(0, widest - 14), widest + 1)
        index = chance.randrange(length // (info["tile_pixels"] << zoom) + 1)
        if (zoom, index) in seen:
            continue
        seen.add((zoom, index))
        took, body = client.get("/api/job/timeline/tile", run=run, zoom=zoom, index=index)
        times.append(took)
        sizes.append(len(body))
        if len(seen) > 4000:
            break
    return sorted(times), sizes


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--build", default=os.path.join(ROOT, "build"))
    args.add_argument("--ranks", type=int, default=64)
    args.add_argument("--seconds", type=float, default=20)
    args.add_argument("folder", nargs="?", default=os.path.join(DATA, "multirank", "megatron_a100_tp8"))
    o = args.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make(folder, o.folder, o.ranks)
        server = subprocess.Popen([os.path.join(o.build, "src", "cli", "opscope"), "serve", "-p", "0", folder], stdout=subprocess.PIPE, text=True)
        try:
            client = Client(int(server.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1]))
            run = client.json("/api/state")["inputs"][0]["run"]
            start = time.perf_counter()
            info = client.json("/api/job/timeline", run=run)
            print(f"{o.ranks} ranks, {info['slices']} kernels and copies on {len(info['tracks'])} streams; there after {time.perf_counter() - start:.1f} s")
            times, sizes = pan_and_zoom(client, info, run, o.seconds)
            at = lambda share: times[min(len(times) - 1, int(share * len(times)))] * 1000  # noqa: E731
            with open(f"/proc/{server.pid}/status", encoding="ascii") as f:
                peak = next(line.split()[1] for line in f if line.startswith("VmHWM"))
            print(f"{len(times)} tiles: median {at(.5):.1f} ms, p99 {at(.99):.1f} ms, longest {times[-1] * 1000:.1f} ms; up to {max(sizes) / 1e3:.0f} KB packed; peak memory {int(peak) // 1024} MB")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
