#!/usr/bin/env python3
"""Compares what two builds answer, byte by byte. A change that should change no output is checked with it.

usage: tools/same_output.py [options] keep FILE       asks everything of every input, and keeps a hash of each answer
       tools/same_output.py [options] check FILE      asks again, and prints each answer that differs from the kept one

  --program=PATH    the program to ask (default: $OPSCOPE)
  --most=BYTES      inputs larger than this are left out (default: 3000000)
  --jobs=N          how many inputs are asked at the same time (default: 2)
  FOLDER...         where inputs are looked for (default: tests/data and ../shared/data)

Every report is asked with each grouping, each predecessor and both, of all steps, of one step and per step; so are the findings, the
timeline and the instances. `--help` of each command and the addresses of the TensorBoard plugin are compared, too. The path of the
checkout is left out of the answers, so that builds of two checkouts can be compared.
The status of `check` is 1 when an answer differs.
"""
import argparse
import concurrent.futures
import hashlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLUGIN = "/data/plugin/pytorch_profiler/"


class Asked:
    """One server with one input; answers holds a hash for each question."""

    def __init__(self, program, path, home):
        self.answers = {}
        self.path = path
        self.process = subprocess.Popen([program, "serve", "-p", "0", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": home, "XDG_CACHE_HOME": home})
        url = self.process.stdout.readline().decode().strip()
        if not url:
            raise OSError("not an input")
        self.connection = http.client.HTTPConnection("127.0.0.1", urllib.parse.urlsplit(url).port, timeout=600)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, path, **args):
        url = path + ("?" + urllib.parse.urlencode(args) if args else "")
        self.connection.request("GET", url)
        answer = self.connection.getresponse()
        body = answer.read()
        self.answers[url] = f"{answer.status} {hashlib.sha1(body.replace(ROOT.encode(), b'ROOT')).hexdigest()}"
        return json.loads(body) if answer.status == 200 and body[:1] in (b"{", b"[") else None


def ask_reports(a, key):
    for report in a.ask("/api/reports")["reports"]:
        path = "/api/report/" + report["name"]
        groupings = [{}] + [{"group_by": g.replace(":N", ":2")} for g in report["group_by"]]
        compats = [{}] + [{"compat": c} for c in report["compat"]]
        for group in groupings:
            for compat in compats:
                a.ask(path, input=key, **group, **compat)
        a.ask(path, input=key, steps="all")
        a.ask(path, input=key, steps="1")
        a.ask(path, input=key, per="step")
        for compat in compats[1:]:
            a.ask(path, input=key, steps="1", **compat)
        if report["device"]:
            a.ask(path, input=key, device="0")


def ask_plugin(a):
    for run in (a.ask(PLUGIN + "runs") or {"runs": []})["runs"]:
        for view in a.ask(PLUGIN + "views", run=run) or []:
            for worker in a.ask(PLUGIN + "workers", run=run, view=view) or []:
                for span in a.ask(PLUGIN + "spans", run=run, worker=worker) or []:
                    of = {"run": run, "worker": worker, "span": span}
                    for name in ("overview", "operation", "operation/table", "kernel", "kernel/table", "kernel/tc_pie", "module", "tree",
                                 "memory", "memory_curve", "memory_events"):
                        a.ask(PLUGIN + name, **of)
                        a.ask(PLUGIN + name, **of, group_by="OperationAndInputShape" if "operation" in name else "Operation")


def ask_input(program, path):
    with tempfile.TemporaryDirectory() as home:
        try:
            a = Asked(program, path, home)
        except OSError:
            return {}
        try:
            state = a.ask("/api/state")
            key = state["inputs"][0]["input"]
            ask_reports(a, key)
            for compat in ({}, {"compat": "dlprof"}, {"compat": "torch"}):
                a.ask("/api/advise", input=key, **compat)
            for by in ("all", "kernel", "op", "step"):
                a.ask("/api/instances", input=key, by=by)
            a.ask("/api/timeline", input=key)
            a.ask("/api/timeline/events", input=key)
            ask_plugin(a)
        except (http.client.HTTPException, ConnectionError, TimeoutError) as e:
            a.answers["(the end)"] = repr(e)
        finally:
            a.end()
        del a.answers["/api/state"]
        return a.answers


def ask_help(program):
    answers = {}
    for words in (["--help"], ["report"], ["advise", "--help"], ["export", "--help"], *([command, "--help"] for command in
                  ("info", "report", "import", "aggregate", "sql", "serve", "record", "dlprof", "pyprof-parse", "pyprof-prof"))):
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        answers[" ".join(words)] = f"{done.returncode} {hashlib.sha1(done.stdout).hexdigest()}"
    return answers


def inputs_of(folders, most):
    for folder in folders:
        for at, _, files in os.walk(folder):
            for name in files:
                path = os.path.join(at, name)
                if 0 < os.path.getsize(path) <= most and not name.endswith((".md", ".txt", ".csv", ".png", ".py", ".html", ".xlsx")):
                    yield path


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\nEvery")[0])
    parser.add_argument("--program", default=os.environ.get("OPSCOPE"))
    parser.add_argument("--most", type=int, default=3000000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("do", choices=("keep", "check"))
    parser.add_argument("file")
    parser.add_argument("folders", nargs="*", default=[os.path.join(ROOT, "tests", "data"), os.path.join(ROOT, "..", "shared", "data")])
    a = parser.parse_args()
    if not a.program:
        sys.exit("tools/same_output.py: --program or $OPSCOPE was expected")
    program = os.path.abspath(a.program)
    paths = sorted({os.path.realpath(path) for path in inputs_of(a.folders, a.most)})
    found = {"help": ask_help(program)}
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for path, answers in zip(paths, pool.map(lambda path: ask_input(program, path), paths)):
            if answers:
                found[os.path.relpath(path, ROOT)] = answers
    count = sum(map(len, found.values()))
    if a.do == "keep":
        with open(a.file, "w") as f:
            json.dump(found, f)
        print(f"{count} answers of {len(found) - 1} inputs kept in {a.file}")
        return
    with open(a.file) as f:
        kept = json.load(f)
    different = [(name, url) for name in sorted({*found, *kept}) for url in sorted({*found.get(name, {}), *kept.get(name, {})})
                 if found.get(name, {}).get(url) != kept.get(name, {}).get(url)]
    for name, url in different:
        print(f"{name}: {url}: was {kept.get(name, {}).get(url, 'absent')}, is {found.get(name, {}).get(url, 'absent')}")
    print(f"{count} answers of {len(found) - 1} inputs, {len(different)} differ{'s' if len(different) == 1 else ''}")
    sys.exit(1 if different else 0)


main()
