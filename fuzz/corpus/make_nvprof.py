#!/usr/bin/env python3
"""Makes the seed corpus of fuzz_nvprof: small databases, in pages of 512 bytes so that they hold interior and overflow pages too.

usage: fuzz/corpus/make_nvprof.py [FOLDER]     (default: nvprof beside this file)
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "oracle"))
import nvprof_db

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "nvprof")
os.makedirs(folder, exist_ok=True)


def put(name, version, rows, strings=nvprof_db.STRINGS):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.unlink(path)
    nvprof_db.make(path, version, rows, strings, page_size=512)


def some(rows, *tables):
    return {t: rows[t] for t in tables}


sample = nvprof_db.sample()
put("version_8", 8, sample)
put("version_18", 18, sample)
put("ranges", 12, some(sample, "MARKER", "RUNTIME", "CONCURRENT_KERNEL"))
put("mangled", 12, some(sample, "CONCURRENT_KERNEL"), ("_Z1fIJiiiEEvDpT_S1_S1_", *nvprof_db.STRINGS[1:13], "_Z1f" + "PFvvE" * 60))
