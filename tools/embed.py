#!/usr/bin/env python3
"""Writes the viewer's pages as C: each file packed with gzip, with its type and etag (src/serve/assets.h).

usage: embed.py OUT FOLDER
"""
import base64
import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".json": "application/json; charset=utf-8", ".txt": "text/plain; charset=utf-8"}


def files(folder):
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(root, name)
            yield "/" + os.path.relpath(path, folder).replace(os.sep, "/"), path


def bytes_of(data):
    return "\n".join("\t" + ",".join(map(str, data[i:i + 32])) + "," for i in range(0, len(data), 32))


def main(out, folder):
    rows = []
    with open(out + ".part", "w", encoding="ascii") as f:
        f.write('#include "serve/assets.h"\n\n')
        for i, (name, path) in enumerate(files(folder)):
            with open(path, "rb") as g:
                data = g.read()
            packed = gzip.compress(data, 9, mtime=0)
            f.write(f"static const unsigned char data_{i}[] = {{\n{bytes_of(packed)}\n}};\n")
            kind = TYPES[os.path.splitext(name)[1]]
            sha256 = hashlib.sha256(data)
            rows.append(f'\t{{"{name}", "{kind}", "{sha256.hexdigest()[:16]}", "{base64.b64encode(sha256.digest()).decode()}", data_{i}, sizeof data_{i}, {len(data)}}},\n')
        f.write("\nconst struct asset asset_registry[] = {\n" + "".join(rows) + "\t{0},\n};\n")
    os.replace(out + ".part", out)


main(*sys.argv[1:])
