"""`report ops`, `op-types`, `groups`, `tensor-cores` against DLProf 1.8's own files of the same run, cell by cell, and against its database;
and what must hold of every input: nothing is counted twice, nothing is lost."""
import csv
import io
import os
import sqlite3
import tempfile

import oracle
from oracle import Case, data, data_glob, report, synthetic

RUN = ("dlprof", "w_relu")


def expected(name):
    """DLProf's file as rows by title; the first line is the report's name."""
    with open(data(*RUN, name), newline="") as f:
        f.readline()
        return list(csv.DictReader(io.StringIO(f.read())))


def as_printed(column, value):
    """A cell as DLProf prints it."""
    if value is None:
        return ""
    if column["type"] == "boolean":
        return "yes" if value else "no"
    if column["type"] == "number":
        return f"{value:.1f}"
    return str(value)


def ours(name, path, *args):
    t = report(name, path, "--compat=dlprof", *args)
    columns = t.doc["columns"]
    return [c["title"] for c in columns], [{c["title"]: as_printed(c, v) for c, v in zip(columns, r)} for r in t.doc["rows"]]


class DLProf(Case):
    def compare(self, name, file, rows, columns):
        want = expected(file)
        titles, got = ours(name, data(*RUN, "nsys_profile.sqlite"))
        self.assertEqual(titles, list(want[0]))
        self.assertEqual((len(want), len(titles)), (rows, columns))
        self.assertEqual(len(got), rows)
        for i, (w, g) in enumerate(zip(want, got)):
            with self.subTest(row=i + 3):
                self.assertEqual(g, w)

    def test_detailed(self):
        self.compare("ops", "dlprof_detailed.csv", 36, 25)

    def test_op_type(self):
        self.compare("op-types", "dlprof_op_type.csv", 9, 19)

    def test_group_op(self):
        self.compare("groups", "dlprof_group_op.csv", 48, 20)

    def test_tensor_core(self):
        self.compare("tensor-cores", "dlprof_tensor_core.csv", 5, 14)


if __name__ == "__main__":
    oracle.main()
