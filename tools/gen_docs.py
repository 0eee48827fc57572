#!/usr/bin/env python3
"""Writes what the documentation takes from the program itself, so that it cannot go stale: the pages of docs/ that list
what is registered (reports.md, detectors.md, inputs.md, commands.md) and the example in README.md.

usage: gen_docs.py BUILD            write them
       gen_docs.py --check BUILD    say (in TAP) which are not what they would be
"""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Small traces that between them give every report something to show, so that its columns can be listed.
SAMPLES = ("all_categories", "memory_curve", "module_hierarchy", "communication")
GENERATED = "<!-- written by tools/gen_docs.py; change the source and run it again -->\n\n"


class Program:
    def __init__(self, build):
        self.opscope = os.path.join(build, "src", "cli", "opscope")
        self.dump = os.path.join(build, "tools", "registry_dump")

    def registry(self, name):
        doc = json.loads(subprocess.run([self.dump, name], check=True, capture_output=True).stdout)
        ids = [c["id"] for c in doc["columns"]]
        return [dict(zip(ids, r)) for r in doc["rows"]]

    def run(self, *args):
        env = {**os.environ, "ARGP_HELP_FMT": "rmargin=100", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
        return subprocess.run([self.opscope, *args], capture_output=True, text=True, env=env, cwd=ROOT)


def cell(text):
    return (text or "").replace("|", "\\|").replace("\n", " ")


def columns(program, report):
    """The tables of a report with their columns, as the samples show them."""
    seen = {}
    for sample in SAMPLES:
        path = os.path.join(ROOT, "tests", "data", "synthetic", sample + ".json")
        p = program.run("report", report, path, "--format=json")
        if p.returncode:
            continue
        doc = json.loads(p.stdout)
        for table in [{**doc, "name": None}, *doc["sections"]]:
            have = seen.setdefault(table["name"], {})
            for c in table["columns"]:
                have.setdefault(c["id"], c)
    return seen


def reports_page(program):
    out = ["# Reports\n\n", GENERATED,
           "`opscope report NAME INPUT` prints one of these. Times are integers of nanoseconds in CSV and JSON; an empty "
           "cell (`null` in JSON) means *not known*, never zero.\n\n",
           "| report | what it shows |\n|---|---|\n"]
    listed = program.registry("reports")
    out += [f"| [`{r['name']}`](#{r['name']}) | {cell(r['title'])} |\n" for r in listed]
    for r in listed:
        out.append(f"\n## {r['name']}\n\n**{r['title']}.** {r['help']}\n\n")
        if r["group_by"]:
            out.append(f"`--group-by={'|'.join(r['group_by'].split())}` (the first unless told otherwise)\n\n")
        if r["compat"]:
            out.append(f"`--compat={'|'.join(r['compat'].split())}`\n\n")
        for section, have in columns(program, r["name"]).items():
            if section:
                out.append(f"Section `{section}`:\n\n")
            out.append("| column | unit | what it is |\n|---|---|---|\n")
            out += [f"| `{c['id']}` | {c['unit'] or c['type']} | {cell(c['help'])} |\n" for c in have.values()]
            out.append("\n")
    return "".join(out)


def detectors_page(program):
    out = ["# Detectors\n\n", GENERATED,
           "`opscope advise INPUT` asks each of these. One that lacks what it needs to look says so, with the reason.\n"]
    for d in program.registry("detectors"):
        out.append(f"\n## {d['id']}\n\n**{d['title']}.** {d['why'] or ''}\n\n*What to do:* {d['fix'] or ''}\n")
    return "".join(out)


def inputs_page(program):
    out = ["# Inputs and outputs\n\n", GENERATED,
           "An input is recognised by its content; `--input-format=NAME` overrides that. `-` is standard input, and a "
           "directory stands for all the traces in it.\n\n| input format | which files these are |\n|---|---|\n"]
    out += [f"| `{i['name']}` | {cell(i['help'])} |\n" for i in program.registry("inputs")]
    out.append("\n| output format | what it is |\n|---|---|\n")
    out += [f"| `{f['name']}` | {cell(f['help'])} |\n" for f in program.registry("formats")]
    return "".join(out)


def commands_page(program):
    general = program.run("--help").stdout
    out = ["# Commands\n\n", GENERATED, "```\n", general.rstrip() + "\n", "```\n"]
    names = re.findall(r"^  (?:opscope )?([a-z][a-z-]*)\b", general, re.M)
    for name in dict.fromkeys(names):
        p = program.run(name, "--help")
        if p.returncode == 0 and p.stdout:
            out.append(f"\n## {name}\n\n```\n{p.stdout.rstrip()}\n```\n")
    return "".join(out)


EXAMPLE = "tests/data/torch214_cpu_resnet.json.gz"
EXAMPLE_COMMANDS = (("report", "overview", EXAMPLE), ("report", "operators", EXAMPLE, "--limit=6"),
                    ("report", "modules", EXAMPLE, "--limit=6"), ("advise", EXAMPLE))


def readme(program):
    with open(os.path.join(ROOT, "README.md")) as f:
        text = f.read()
    shown = []
    for args in EXAMPLE_COMMANDS:
        shown.append(f"$ opscope {' '.join(args)}\n{program.run(*args, '--width=110').stdout.rstrip()}\n")
    head, _, rest = text.partition("<!-- example:")
    marker, _, rest = rest.partition("-->\n")
    _, end, tail = rest.partition("<!-- end of example -->")
    return f"{head}<!-- example:{marker}-->\n```\n" + "\n".join(shown) + f"```\n{end}{tail}"


PAGES = {"docs/reports.md": reports_page, "docs/detectors.md": detectors_page, "docs/inputs.md": inputs_page,
         "docs/commands.md": commands_page, "README.md": readme}


def main():
    check = "--check" in sys.argv[1:]
    build = [a for a in sys.argv[1:] if a != "--check"]
    if len(build) != 1:
        sys.exit(__doc__)
    program = Program(os.path.abspath(build[0]))
    stale = 0
    for n, (page, write) in enumerate(PAGES.items(), 1):
        path, text = os.path.join(ROOT, page), write(program)
        if not check:
            with open(path, "w") as f:
                f.write(text)
            continue
        have = open(path).read() if os.path.exists(path) else ""
        stale += have != text
        print(f"{'ok' if have == text else 'not ok'} {n} - {page} is what the program says")
        if have != text:
            print(f"# run: tools/gen_docs.py {build[0]}")
    if check:
        print(f"1..{len(PAGES)}")
    return 1 if stale else 0


sys.exit(main())
