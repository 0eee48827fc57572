#!/usr/bin/env python3
"""Makes the seed corpus of fuzz_dldb: small databases, in pages of 512 bytes so that they hold interior and overflow pages too.

usage: fuzz/corpus/make_dldb.py [FOLDER]     (default: dldb beside this file)
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "oracle"))
import dldb_db

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "dldb")
os.makedirs(folder, exist_ok=True)


def put(name, rows, tables=dldb_db.TABLES):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.unlink(path)
    dldb_db.make(path, rows, page_size=512, tables=tables)


def only(*names):
    return {t: c for t, c in dldb_db.TABLES.items() if t in names}


sample = dldb_db.sample()
put("sample", sample)
domains = dldb_db.sample("1.3")
domains["read_only_ops"].append((4, 2, "CONV2D_1", "/Other/conv2d", 2, 0, 4, 5, ""))
domains["read_only_kernels"].append((9, 4, 0, *sample["read_only_kernels"][0][3:]))
put("domains", domains, only("dictionary", "db_version", "read_only_ops", "read_only_op_instances", "read_only_kernels"))
put("stated", sample, only("dictionary", "db_version", "read_only_ops", "aggregations", "model_summary", "iteration_key",
                           "expert_systems_feedback"))
