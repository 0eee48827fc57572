#!/usr/bin/env python3
"""Checks the house's include rules and speaks TAP:

  1. A layer includes only itself and those that it stands on, by src/meson.build; python/ includes what is installed, and itself.
  2. docs/tree.md has the layers in the order of src/meson.build.
  3. Each header compiles alone: it includes what it uses. The build has shown it of a header that a C file begins with; the others are compiled here.

usage: check_layers.py [ROOT]
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), ".."))
SRC = os.path.join(ROOT, "src")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

def read_layers():
    """{layer: all that it may include besides itself}, in the order of src/meson.build. A layer that is listed before one that it stands on has
    a word in its set that is no layer."""
    below = {}
    with open(os.path.join(SRC, "meson.build"), encoding="utf-8") as f:
        for layer, on in re.findall(r"^subdir\('(\w+)'\)(?: *# on ([\w ]+))?$", f.read(), re.M):
            below[layer] = {over for under in on.split() for over in {under, *below.get(under, {f"{under}, which is not listed above {layer}"})}}
    return {layer: {other for other in below if other != layer} if "all" in under else under for layer, under in below.items()}

BELOW = read_layers()

def sources():
    for folder, _, names in os.walk(SRC):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".def")):
                yield os.path.join(folder, name)

def check_includes(layer):
    trouble = []
    allowed = {layer, *BELOW[layer]}
    for path in sources():
        rel = os.path.relpath(path, SRC)
        if rel.split(os.sep)[0] != layer:
            continue
        with open(path, encoding="utf-8") as f:
            included = INCLUDE.findall(f.read())
        for target in included:
            top = target.split("/")[0]
            if top == "opscope":  # include/opscope/: the installed API, the format of captures, and what is said to programs that record on demand
                if layer not in ("api", "cli") and target not in ("opscope/wire.h", "opscope/ask.h"):
                    trouble.append(f"src/{rel} includes {target}: only api and cli know the installed API")
            elif os.path.exists(os.path.join(SRC, target)) and top not in allowed:
                trouble.append(f"src/{rel} includes {target}: {layer} stands below {top}")
            elif not os.path.exists(os.path.join(SRC, target)) and os.path.exists(os.path.join(os.path.dirname(path), target)):
                trouble.append(f"src/{rel} includes {target}: write it from src/, as {layer}/{target}")
    return trouble

def check_order():
    """What a layer stands on is listed above it."""
    return [f"src/meson.build: {layer} stands on {under}" for layer, all_under in BELOW.items() for under in sorted(all_under) if under not in BELOW]

def check_tree():
    with open(os.path.join(ROOT, "docs", "tree.md"), encoding="utf-8") as f:
        shown = [m for row in re.findall(r"^\| (`src/.*?) \|", f.read(), re.M) for m in re.findall(r"`src/(\w+)/`", row)]
    trouble = [f"docs/tree.md: the tree lacks src/{layer}/" for layer in BELOW if layer not in shown]
    for at, layer in enumerate(shown):
        trouble += [f"docs/tree.md: src/{layer}/ stands in the tree above src/{under}/, on which it stands" for under in shown[at + 1:] if under in BELOW.get(layer, ())]
    return trouble

def check_python():
    """The package is a user of the library as others are."""
    trouble = []
    for folder, _, names in os.walk(os.path.join(ROOT, "python")):
        for name in sorted(n for n in names if n.endswith((".c", ".h"))):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as f:
                included = INCLUDE.findall(f.read())
            trouble += [f"{os.path.relpath(path, ROOT)} includes {target}: python/ knows <opscope/...> and its own headers alone"
                        for target in included if not os.path.exists(os.path.join(folder, target))]
    return trouble

def shown_by_the_build():
    """Headers that a C file includes before anything else stands in it."""
    out = set()
    for path in sources():
        if path.endswith(".c"):
            with open(path, encoding="utf-8") as f:
                begin = re.match(r'(?:\s|/\*.*?\*/|//[^\n]*)*#\s*include\s+"([^"]+)"', f.read(), re.S)
            if begin:
                out.add(os.path.join(SRC, begin[1]))
    return out

def check_header(path, tmp):
    source = os.path.join(tmp, "one.c")
    with open(source, "w") as f:
        f.write(f'#include "{path}"\n')
    p = subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-unused-function",
                        "-Werror", "-I" + SRC, "-I" + os.path.join(ROOT, "include"), "-fsyntax-only", source],
                       capture_output=True, text=True)
    return p.stderr.splitlines()[:5] if p.returncode else []

def main():
    n = failed = 0

    def result(name, trouble):
        nonlocal n, failed
        n += 1
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {n} - {name}", *("# " + t for t in trouble), sep="\n", flush=True)

    unknown = sorted(d for d in os.listdir(SRC) if os.path.isdir(os.path.join(SRC, d)) and d not in BELOW)
    result("every folder of src has its place", [f"src/{d}: give it a line in src/meson.build" for d in unknown] + check_order())
    result("docs/tree.md has the layers in their order", check_tree())
    for layer in BELOW:
        result(f"{layer} includes downward only", check_includes(layer))
    result("python includes what is installed", check_python())
    with tempfile.TemporaryDirectory() as tmp:
        headers = [p for p in sources() if p.endswith(".h")]
        public = os.path.join(ROOT, "include", "opscope")
        if os.path.isdir(public):
            headers += [os.path.join(public, h) for h in sorted(os.listdir(public)) if h.endswith(".h")]
        shown = shown_by_the_build()
        result("most headers compile alone where the build does", [] if len(shown & set(headers)) > len(headers) // 2 else ["few C files begin with their headers"])
        for path in (h for h in headers if h not in shown):
            result(f"{os.path.relpath(path, ROOT)} compiles alone", check_header(path, tmp))
    print(f"1..{n}")
    return 1 if failed else 0

sys.exit(main())
