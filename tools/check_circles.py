#!/usr/bin/env python3
"""Checks that no files of one layer (a folder of src/, or collect/) call each other in a circle, but for the circles that docs/design.md names, and speaks TAP.

A file needs another where its object file uses a symbol that the other defines. A generated registry has no source below the root: it calls all that it lists,
so it is left out.

usage: check_circles.py BUILD
"""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OBJECT_FOLDERS = {"src/libopscope_core.a.p": "src", "src/serve/libopscope_serve.a.p": "src/serve", "src/cli/opscope.p": "src/cli", "collect/libopscope-inject.so.p": "collect"}


def objects(build):
    """{object: source, from the root}"""
    found = {}
    for folder, base in OBJECT_FOLDERS.items():
        folder = os.path.join(build, folder)
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.endswith(".c.o"):
                found[os.path.join(folder, name)] = place(base, name[:-2].replace(".._", "../").split("_"))
    return {o: s for o, s in found.items() if s}


def place(base, words, at=""):
    """The source whose path the words make: meson writes "/" as "_", and a "_" may also be part of a name."""
    for i in range(len(words), 0, -1):
        path = os.path.normpath(os.path.join(base, at, "_".join(words[:i])))
        if i == len(words):
            if os.path.isfile(os.path.join(ROOT, path)):
                return path
        elif os.path.isdir(os.path.join(ROOT, path)):
            found = place(base, words[i:], os.path.join(at, "_".join(words[:i])))
            if found:
                return found
    return None


def uses(build):
    """{source: sources of the same layer that it needs}"""
    defined, wanted = {}, collections.defaultdict(set)
    sources = objects(build)
    # One process for all of them: to start one takes longer than to read an object file.
    listed = subprocess.run(["nm", "-A", *sources], check=True, capture_output=True, text=True).stdout if sources else ""
    for line in listed.splitlines():
        path, _, rest = line.partition(".o:")
        source, program = sources[path + ".o"], os.path.dirname(path)
        *_, kind, symbol = rest.split()
        if kind in "TDBRVWC":
            defined[program, symbol] = source
        elif kind == "U":
            wanted[source].add((program, symbol))
    layer = lambda source: source.split("/")[:2] if source.startswith("src/") else source.split("/")[:1]
    return {s: {defined[w] for w in those if w in defined and defined[w] != s and layer(defined[w]) == layer(s)} for s, those in wanted.items()}


def circles(graph):
    """Sets of files that reach each other (Tarjan)."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(v):
        number[v] = lowest[v] = len(number)
        stack.append(v)
        for w in sorted(graph.get(v, ())):
            if w not in number:
                visit(w)
            if w in stack:
                lowest[v] = min(lowest[v], lowest[w])
        if lowest[v] == number[v]:
            circle = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(circle) > 1:
                found.append(frozenset(circle))

    for v in sorted(graph):
        if v not in number:
            visit(v)
    return found


def intended():
    """The circles that docs/design.md allows: a row of the table names the files."""
    with open(os.path.join(ROOT, "docs", "design.md"), encoding="utf-8") as f:
        table = f.read().split("## Circles", 1)[1].split("\n## ", 1)[0]
    rows = [re.findall(r"`([\w/.]+\.c)`", line) for line in table.splitlines() if line.startswith("| `")]
    return {frozenset(os.path.join(os.path.dirname(row[0]), os.path.basename(name)) for name in row) for row in rows}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("usage: ")[1])
    found, known = circles(uses(os.path.abspath(sys.argv[1]))), intended()
    wrong = [f"no circle, but docs/design.md names it: {', '.join(sorted(c))}" for c in known - set(found)]
    wrong += [f"a circle that docs/design.md does not name: {', '.join(sorted(c))}" for c in found if c not in known]
    print(f"{'not ' if wrong else ''}ok 1 - files do not call each other in circles, but where docs/design.md says so")
    for text in wrong:
        print("# " + text)
    print("1..1")
    sys.exit(bool(wrong))


main()
