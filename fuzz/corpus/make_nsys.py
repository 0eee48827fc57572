#!/usr/bin/env python3
"""Makes the seed corpus of fuzz_nsys: small databases, in pages of 512 bytes so that they hold interior and overflow pages too.

usage: fuzz/corpus/make_nsys.py [FOLDER]     (default: nsys beside this file)
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "oracle"))
import nsys_db

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "nsys")
os.makedirs(folder, exist_ok=True)


def put(name, rows, **more):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.unlink(path)
    nsys_db.make(path, rows, page_size=512, **more)


many = nsys_db.sample()
many["CUPTI_ACTIVITY_KIND_KERNEL"] += [nsys_db.kernel(600 + 9 * i, 605 + 9 * i, i, 10) for i in range(60)]
many["NVTX_EVENTS"] += [nsys_db.nvtx(600, 700, "x" * 1500, 10, 11)]
put("sample", nsys_db.sample())
put("many_pages", many)
put("utf16", nsys_db.sample(), encoding="UTF-16le")
put("no_tables", {"StringIds": nsys_db.strings("a")})
metrics = nsys_db.sample()
metrics["CUPTI_ACTIVITY_KIND_KERNEL"] = [nsys_db.kernel(200, 900, 1, 10), nsys_db.kernel(1000, 1040, 2, 10), nsys_db.kernel(1045, 1100, 3, 10), nsys_db.kernel(1100, 1400, 4, 10)]
metrics["TARGET_INFO_GPU_METRICS"] = [{"typeId": 0x1000100000000, "metricId": i, "metricName": n} for i, n in enumerate(
    ["SMs Active [Throughput %]", "DRAM Read Bandwidth [Throughput %]", "DRAM Write Bandwidth [Throughput %]", "GPC Clock Frequency [MHz]", "Compute Warps in Flight [Avg]"])]
metrics["GPU_METRICS"] = [{"timestamp": 40 * i, "typeId": 0x1000100000000, "metricId": m, "value": v} for i in range(-3, 40) for m, v in enumerate([90, 30 + i % 3, 10, -1768172296, 5])]
put("gpu_metrics", metrics)
