"""layouts.py LAYOUTS.json VERSION OUT.h: the records of one version of CUPTI as C enums, for the mock. AT_<record>_<field> is -1 where
the version has no such field. Version `future` is the newest with 16 bytes more at the end of each record."""
import json
import sys


def main():
    path, version, out = sys.argv[1:]
    layouts = json.load(open(path))
    fields = {}
    for one in layouts.values():
        for record, layout in one["records"].items():
            fields.setdefault(record, set()).update(layout["fields"])
    future = version == "future"
    own = layouts["13.0" if future else version]
    lines = ["enum {", "\tMOCK_VERSION = %d," % (own["version"] + (10000 if future else 0))]
    for record in sorted(fields):
        layout = own["records"].get(record)
        lines.append("\tBYTES_%s = %d," % (record, layout["bytes"] + (16 if future else 0) if layout else 0))
        for field in sorted(fields[record]):
            at, width = layout["fields"].get(field, (-1, 0)) if layout else (-1, 0)
            lines.append("\tAT_%s_%s = %d, WIDTH_%s_%s = %d," % (record, field, at, record, field, width))
    lines.append("};")
    with open(out, "w") as f:
        f.write("\n".join(lines) + "\n")


main()
