#!/usr/bin/env python3
"""Mutation testing: would a test notice if a condition were wrong?

Takes conditions of src/analysis, src/query and src/report at random (the same ones for the same seed), builds the program once with all of
them switchable, and runs, for each switched condition, the tests that reach it until one fails. A mutant that no test notices
survives, and is listed. A condition is negated, or its < becomes <= (> becomes >=, and back).

usage: tools/mutate.py [--count=200] [--seed=1] [--only=ID,ID] [--folder=build-mutate] [--jobs=1]
       status 1 when more than a tenth survives. A run takes about an hour on one core; what is done is kept in the folder, and a
       second run goes on from there. tools/mutate.accepted lists mutants that change nothing that can be seen, with the reason.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import mmap
import os
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("src/analysis", "src/query", "src/report")
SUITES = ("unit", "oracle", "cli")
# Tests that are too long to be run for each mutant, or that measure time; shorter ones look at the same code.
LEFT_OUT = {"serve_attack", "hostile_memory", "hostile_size", "python_wheel", "record_nsys", "capture_cuda", "guest", "cupti_layouts", "gpu_check", "torture",
            "interrupted", "failing_reads", "no_memory", "api_memory", "record", "record_own", "record_sample", "own_capture", "invariants"}
SURVIVORS_MOST = 0.1
HEADER = """#define MUTANT(id, right, wrong) (mutant_is(id) ? (wrong) : (right))
int mutant_is(int id);
"""
# At the end of one file. The byte of a mutant in the file OPSCOPE_REACHED is set when its condition is evaluated.
SWITCH_AT = "src/base/err.c"
SWITCH = """
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int mutant_chosen = -1;
static unsigned char *mutant_reached;

__attribute__((constructor)) static void mutant_begin(void)
{
	const char *id = getenv("OPSCOPE_MUTANT"), *path = getenv("OPSCOPE_REACHED");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd >= 0 ? mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	mutant_chosen = id ? atoi(id) : -1;
	mutant_reached = p == MAP_FAILED ? NULL : p;
	if (fd >= 0)
		close(fd);
}

int mutant_is(int id)
{
	if (mutant_reached)
		mutant_reached[id] = 1;
	return mutant_chosen == id;
}
"""
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def closing(text, at):
    """Of the parenthesis at text[at]; None where the text is not that simple."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if text[i] in "\"'#":
            return None
        if depth == 0:
            return i
    return None


def clauses(text):
    """(start, end) of what && and || join at the top."""
    depth = start = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and text[i:i + 2] in ("&&", "||"):
            yield start, i
            start = i + 2
        if depth == 0 and c in "?,;":
            return
    yield start, len(text)


def conditions(path):
    """(start, end, replacement) of each mutation of a file, by place."""
    with open(path) as f:
        text = f.read()
    for m in re.finditer(r"\b(?:if|while) \(", text):
        at = m.end() - 1
        end = closing(text, at)
        if end is None:
            continue
        inside = text[at + 1:end]
        for a, b in clauses(inside):
            right = inside[a:b].strip()
            if not right or re.search(r"[^=!<>]=[^=]|\+\+|--|\?|[{;]|\b(?:sizeof|va_arg)\b", right):
                continue  # it does something, which two evaluations would do in other places
            start = at + 1 + a + (len(inside[a:b]) - len(inside[a:b].lstrip()))
            yield start, start + len(right), right, f"!({right})"
            order = re.fullmatch(r"([\w.\->\[\]]+) (<=?|>=?) ([\w.\->\[\]]+)", right)
            if order:
                yield start, start + len(right), right, f"{order[1]} {OTHER[order[2]]} {order[3]}"


def choose(count, seed):
    found = []
    for folder in FOLDERS:
        for base, _, files in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(files):
                if name.endswith(".c"):
                    path = os.path.relpath(os.path.join(base, name), ROOT)
                    found += [(path, *c) for c in conditions(os.path.join(ROOT, path))]
    random.Random(seed).shuffle(found)
    taken, places = [], set()
    for c in found:
        if (c[0], c[1]) not in places and len(taken) < count:
            places.add((c[0], c[1]))
            taken.append(c)
    return len(found), sorted(taken)


def plant(mutants, tree):
    for path in sorted({m[0] for m in mutants}):
        with open(os.path.join(tree, path)) as f:
            text = f.read()
        for i, (_, start, end, right, wrong) in sorted(((i, m) for i, m in enumerate(mutants) if m[0] == path), key=lambda x: -x[1][1]):
            assert text[start:end] == right
            text = f"{text[:start]}MUTANT({i}, {right}, {wrong}){text[end:]}"
        with open(os.path.join(tree, path), "w") as f:
            f.write(text)
    with open(os.path.join(tree, SWITCH_AT), "a") as f:
        f.write(SWITCH)


def files():
    """Of the project, as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return [name for name in listed if name and os.path.exists(os.path.join(ROOT, name))]


def hash_of_files():
    """Of all that a verdict rests on. Documents do not count."""
    h = hashlib.sha256()
    for name in files():
        if not name.startswith(("docs/", "tools/")) and not name.endswith(".md"):
            with open(os.path.join(ROOT, name), "rb") as f:
                h.update(name.encode() + b"\0" + hashlib.sha256(f.read()).digest())
    return h.hexdigest()


def build(folder, mutants):
    tree, out = os.path.join(folder, "tree"), os.path.join(folder, "build")
    if os.path.isdir(folder) and os.listdir(folder) and not os.path.exists(os.path.join(folder, "mutant.h")):
        sys.exit(f"mutate.py: {folder} is not empty, and not a folder of mutants")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(tree)
    for name in files():
        os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), os.path.join(tree, name), follow_symlinks=False)
    plant(mutants, tree)
    header = os.path.join(folder, "mutant.h")
    with open(header, "w") as f:
        f.write(HEADER)
    subprocess.run(["meson", "setup", out, tree, "-Dtests=enabled", "-Dviewer=disabled", "-Dpython=disabled", "-Dwerror=false",
                    f"-Dc_args=-include {header} -w"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", out, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return out


def tests_of(out):
    tests = json.loads(subprocess.run(["meson", "introspect", "--tests", out], capture_output=True, check=True).stdout)
    return {t["name"]: t for t in tests if any(s.split(":")[-1] in SUITES for s in t["suite"]) and t["name"] not in LEFT_OUT}


def run(test, timeout, **env):
    """Whether the test passes, and how long it takes."""
    began = time.monotonic()
    data = os.path.normpath(os.path.join(ROOT, "..", "shared", "data"))
    full = {**os.environ, **test["env"], "OPSCOPE_DATA": os.environ.get("OPSCOPE_DATA", data), **env}
    p = subprocess.Popen(test["cmd"], env=full, cwd=test["workdir"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said = p.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9)
        p.communicate()
        return False, timeout
    return p.returncode == 0 and b"\nnot ok" not in b"\n" + said, time.monotonic() - began


def reach(folder, tests, n):
    """{test: (seconds, the mutants that it reaches)} of the tests that pass."""
    found, path = {}, os.path.join(folder, "reached")
    for name, test in tests.items():
        with open(path, "wb") as f:
            f.truncate(65536)
        good, took = run(test, 600, OPSCOPE_REACHED=path)
        with open(path, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
            hit = [i for i in range(n) if m[i]]
        if good:
            found[name] = (took, hit)
        print(f"{name}: {'reaches' if good else 'fails by itself and is left out; reaches'} {len(hit)}, {took:.1f} s", flush=True)
    return found


def judge(i, tests, reached, by):
    """The test that notices mutant i, or None. Short tests come first, and those that have noticed many."""
    noticed = collections.Counter(by.values())
    for name in sorted((n for n in reached if n in tests and i in reached[n][1]), key=lambda n: reached[n][0] / (1 + noticed[n])):
        if not run(tests[name], 10 + 5 * reached[name][0], OPSCOPE_MUTANT=str(i))[0]:
            return name
    return None


def accepted():
    """Mutants that change nothing that can be seen: "FILE: RIGHT -> WRONG: why"."""
    try:
        with open(os.path.join(ROOT, "tools", "mutate.accepted")) as f:
            return {": ".join(line.split(": ")[:2]) for line in f.read().splitlines() if line and not line.startswith("#")}
    except FileNotFoundError:
        return set()


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--count", type=int, default=200)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--only", default="")
    args.add_argument("--folder", default=os.path.join(ROOT, "build-mutate"))
    args.add_argument("--jobs", type=int, default=1)
    o = args.parse_args()
    folder = os.path.abspath(o.folder)
    kept = os.path.join(folder, "state.json")
    n, mutants = choose(o.count, o.seed)
    state = None
    if os.path.exists(kept):
        with open(kept) as f:
            state = json.load(f)
    of = hash_of_files()
    if not state or state.get("of") != of or state["mutants"] != [list(m) for m in mutants]:
        tests = tests_of(build(folder, mutants))
        state = {"of": of, "mutants": [list(m) for m in mutants], "reached": reach(folder, tests, len(mutants)), "by": {}}
    tests = tests_of(os.path.join(folder, "build"))
    print(f"{len(mutants)} of {n} mutants in {' and '.join(FOLDERS)}, {len(state['reached'])} tests", flush=True)
    wanted = [int(i) for i in o.only.split(",")] if o.only else [i for i in range(len(mutants)) if str(i) not in state["by"]]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for i, by in zip(wanted, pool.map(lambda i: judge(i, tests, state["reached"], state["by"]), wanted)):
            state["by"][str(i)] = by
            path, start, _, right, wrong = mutants[i]
            print(f"{i} {path}: {right} -> {wrong}: {by or 'SURVIVES'}", flush=True)
            with open(kept, "w") as f:
                json.dump(state, f)
    alive = [i for i in range(len(mutants)) if str(i) in state["by"] and not state["by"][str(i)]]
    known = accepted()
    alike = [i for i in alive if f"{mutants[i][0]}: {mutants[i][3]} -> {mutants[i][4]}" in known]
    left = [i for i in alive if i not in alike]
    for i in left:
        path, start, _, right, wrong = mutants[i]
        with open(os.path.join(ROOT, path)) as f:
            line = f.read()[:start].count("\n") + 1
        never = "" if any(i in r[1] for r in state["reached"].values()) else " (no test comes here)"
        print(f"{path}:{line}: {right} -> {wrong}: no test notices{never}  [{i}]")
    judged = len(state["by"])
    print(f"{judged} mutants, {judged - len(alive)} noticed, {len(alike)} change nothing that can be seen, {len(left)} survive")
    sys.exit(1 if len(left) > SURVIVORS_MOST * judged else 0)


if __name__ == "__main__":
    main()
