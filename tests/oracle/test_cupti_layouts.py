"""collect/cupti_abi.h against the layouts of CUPTI's own headers (tests/data/cupti_layouts.json holds, of each toolkit, the struct that its
CUPTI fills for each kind of record): every field that the collector reads lies where every version puts it."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import oracle

HEADER = os.path.join(oracle.ROOT, "collect", "cupti_abi.h")
LAYOUTS = json.load(open(os.path.join(oracle.ROOT, "tests", "data", "cupti_layouts.json")))
WIDTH = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "int32_t": 4, "uint64_t": 8, "const char *": 8, "cupti_object": 12, "cupti_uuid": 16}
TOOLKITS = ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include")


def declared():
    """{record: (struct named in the comment, "since" or None, [(offset, type, field)])}"""
    text = open(HEADER).read()
    out = {}
    for name, comment, body in re.findall(r"^RECORD\((\w+), /\* (.*?) \*/\n(.*?)\);$", text, re.S | re.M):
        since = re.search(r"since (CUPTI_VERSION_\w+)", comment)
        fields = [(int(o), t, f) for o, t, f in re.findall(r"AT\((\d+), ([\w *]+?), (\w+)\)", body)]
        out[name] = (re.match(r"\w+", comment).group(), since and since.group(1), fields)
    return out


def versions():
    text = open(HEADER).read()
    return {name: int(v) for name, v in re.findall(r"(CUPTI_VERSION_\w+) = (\d+)", text)}


class Layouts(oracle.Case):
    def setUp(self):
        self.records, self.versions = declared(), versions()

    def test_header_is_understood(self):
        """The parse above sees all of the header: as many records and fields as its macros are used."""
        text = open(HEADER).read()
        body = text[:text.index("#undef RECORD")]
        self.assertEqual(len(self.records), len(re.findall(r"^RECORD\(", body, re.M)))
        self.assertEqual(sum(len(r[2]) for r in self.records.values()), len(re.findall(r"^\tAT\(", body, re.M)))
        self.assertGreater(sum(len(r[2]) for r in self.records.values()), 80)

    def test_every_field_in_every_version(self):
        compared = 0
        for version, layout in LAYOUTS.items():
            if layout["version"] < self.versions["CUPTI_VERSION_MIN"]:
                continue
            for record, (_, since, fields) in self.records.items():
                if since and layout["version"] < self.versions[since]:
                    continue
                theirs = layout["records"][record.split("_")[0]]["fields"]
                for offset, kind, field in fields:
                    with self.subTest(version=version, record=record, field=field):
                        self.assertEqual(theirs[field], [offset, WIDTH[kind]])
                        compared += 1
        self.assertGreater(compared, 400)

    def test_the_oldest_struct_is_named(self):
        """The comment of a record names the struct of the first version that has all of its fields."""
        for record, (struct, since, _) in self.records.items():
            least = self.versions[since or "CUPTI_VERSION_MIN"]
            first = min((l for l in LAYOUTS.values() if l["version"] >= least and record.split("_")[0] in l["records"]), key=lambda l: l["version"])
            self.assertEqual(first["records"][record.split("_")[0]]["struct"], struct, record)

    def test_older_versions_lack_something(self):
        """What is refused as too old would be misread: its kernel ends before the last field that is read."""
        old = [l for l in LAYOUTS.values() if l["version"] < self.versions["CUPTI_VERSION_MIN"]]
        self.assertTrue(old)
        for layout in old:
            self.assertLess(layout["records"]["kernel"]["bytes"], min(l["records"]["kernel"]["bytes"] for l in LAYOUTS.values() if l not in old))

    def test_compiled_offsets(self):
        """The macros do what the text of the header says."""
        cc = shutil.which("cc") or shutil.which("gcc")
        if not cc:
            self.skipTest("no C compiler")
        lines = ['#include "%s"' % HEADER]
        for record, (_, _, fields) in self.records.items():
            for offset, kind, field in fields:
                lines.append('_Static_assert(offsetof(struct cupti_%s, %s) == %d, "%s.%s");' % (record, field, offset, record, field))
                lines.append('_Static_assert(sizeof(((struct cupti_%s *)0)->%s) == %d, "%s.%s");' % (record, field, WIDTH[kind], record, field))
        self.compile(cc, lines, [])

    def test_headers_of_a_toolkit(self):
        """The same against the headers of the CUDA toolkit that is installed, where one is."""
        cc = shutil.which("cc") or shutil.which("gcc")
        folders = [f for f in TOOLKITS if os.path.isdir(f)]
        if not cc or not any(os.path.exists(os.path.join(f, "cupti.h")) for f in folders):
            self.skipTest("no CUPTI headers")
        if not any(os.path.exists(os.path.join(f, "cuda.h")) for f in folders):
            self.skipTest("no CUDA headers")
        lines = ["#include <stddef.h>", "#include <cuda.h>", "#include <cupti.h>"]
        text = "".join(open(os.path.join(f, n), errors="replace").read() for f in folders for n in ("cupti_activity.h", "cupti_activity_deprecated.h")
                       if os.path.exists(os.path.join(f, n)))
        for record, (struct, _, fields) in self.records.items():
            base = re.sub(r"\d+$", "", struct)
            newest = max(re.findall(r"\b(%s\d*);" % base, text), key=lambda n: int(n[len(base):] or 1), default=None)
            self.assertIsNotNone(newest, record)
            for offset, _, field in fields:
                lines.append('_Static_assert(offsetof(%s, %s) == %d, "%s.%s");' % (newest, field, offset, newest, field))
        self.compile(cc, lines, ["-I" + f for f in folders])

    def compile(self, cc, lines, options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "check.c")
            open(path, "w").write("\n".join(lines) + "\n")
            done = subprocess.run([cc, "-std=gnu11", "-fsyntax-only", *options, path], capture_output=True, timeout=oracle.TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace")[:2000])


if __name__ == "__main__":
    oracle.main()
