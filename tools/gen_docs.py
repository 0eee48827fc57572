#!/usr/bin/env python3
"""Writes what the documentation takes from the program itself, so that it cannot go stale: the pages of docs/ that list
what is registered (reports.md, detectors.md, inputs.md, commands.md, the tables of viewer.md) and the examples in README.md, tutorial.md, tutorial_cpu.md, export.md, torch.md, sql.md and questions/*.md.

usage: gen_docs.py BUILD            write them
       gen_docs.py --check BUILD    say (in TAP) which are not what they would be
"""
import glob
import itertools
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, "tests", "oracle"))
from oracle import DATA, unanswered  # noqa: E402

EXAMPLE = "tests/data/torch214_cpu_resnet.json.gz"
PUBLIC = "traces"  # the folder of public traces in examples
GENERATED = "<!-- written by tools/gen_docs.py; change the source and run it again -->\n\n"


class Program:
    def __init__(self, build):
        self.opscope = os.path.join(build, "src", "cli", "opscope")
        self.dump = os.path.join(build, "tools", "registry_dump")

    def registry(self, name):
        doc = json.loads(subprocess.run([self.dump, name], check=True, capture_output=True).stdout)
        ids = [c["id"] for c in doc["columns"]]
        return [dict(zip(ids, r)) for r in doc["rows"]]

    def run(self, *args, cwd=ROOT):
        env = {**os.environ, "ARGP_HELP_FMT": "rmargin=100", "LC_ALL": "C.UTF-8"}
        env.pop("COLUMNS", None)
        return subprocess.run([self.opscope, *args], capture_output=True, text=True, env=env, cwd=cwd)


def cell(text):
    return (text or "").replace("|", "\\|").replace("\n", " ")


def reports_page(program):
    out = ["# Reports\n\n", GENERATED,
           "`opscope report NAME INPUT` prints one of these. Times are integers of nanoseconds in CSV and JSON; an empty "
           "cell (`null` in JSON) means *not known*, never zero. In CSV a row that is one unknown value is `\"\"`; control characters are written as `\\x1b`; a text that a "
           "spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@`, a tab or a carriage return, also behind blanks, has more behind that, and is no number) has a `'` in front.\n\n"
           "A column that is not in every trace's table says in front of its description what it needs: device work in the "
           "trace, a grouping, or, *where recorded*, an argument that the profiler writes only when told so (shapes, stacks, "
           "modules, memory) or only for certain work. The columns under `--compat` are those of the predecessor "
           "([compat.md](compat.md)).\n\n",
           "| report | what it shows |\n|---|---|\n"]
    reports, columns = program.registry("reports"), program.registry("columns")
    out += [f"| [`{r['name']}`](#{r['name']}) | {cell(r['title'])} |\n" for r in reports]
    for r in reports:
        out.append(f"\n## {r['name']}\n\n**{r['title']}.** {r['help']}\n\n")
        if r["group_by"]:
            how = "one or more, separated by commas; the first unless told otherwise" if r["combines"] else "the first unless told otherwise"
            out.append(f"`--group-by={'|'.join(r['group_by'].split())}` ({how})\n\n")
        if r["compat"]:
            out.append(f"`--compat={'|'.join(r['compat'].split())}`\n\n")
        for section, those in itertools.groupby((c for c in columns if c["report"] == r["name"]), lambda c: c["section"]):
            if section:
                out.append(f"Section `{section}`:\n\n")
            out.append("| column | unit | what it is |\n|---|---|---|\n")
            for c in those:
                when = f"*({c['when']})* " if c["when"] else ""
                out.append(f"| `{c['id']}` | {c['unit'] or c['type']} | {when}{cell(c['help'])} |\n")
            out.append("\n")
    return "".join(out)


def scores_table():
    """How often detectors were right on real recordings: what tests/oracle/test_verdicts.py measured and holds them to."""
    with open(os.path.join(ROOT, "tests", "data", "detector_scores.json")) as f:
        scores = json.load(f)
    rows = [f"| `{d}` | {n} | {right} | {false} | {missed} |\n" for d, (right, false, missed, n) in scores.items()]
    return ("\n## How often they are right\n\nOn real recordings of others, each looked at by hand: the label of each says from the data why the finding is right or would be wrong "
            "(`tests/oracle/verdict_labels_*.py`). A test holds every detector to a precision and a recall of 0.95 there, and to these numbers. What a "
            "planted cause costs is bounded within 10 % (`tests/oracle/labelled*.py`).\n\n| detector | recordings labelled | right | false | missed |\n|---|---|---|---|---|\n" + "".join(rows))


# What the percentages of a detector's severities are of, where that is not the steps' time; and severities that do not go by a percentage.
SEVERITY_OF = {
    "low-gpu-utilization": "the steps' time with a kernel running", "tf32-off": "the kernel time", "unaligned-gemm": "the kernel time",
    "uneven-gpus": "the computing time of the GPU with most", "recomputation": "the GPU's memory in use", "throttling": "the samples",
}
SEVERITY_CASES = {
    "no-tensor-cores": "low where names of kernels do not tell, else medium", "memory-fragmentation": "low where the memory is nearly full, else info",
    "throttling": "heat: high from 50 %, else medium; power limit: low, medium where the hardware brakes; hardware: medium",
    "unfused-optimizer": "info with foreach", "unaligned-gemm": "info by the shape alone", "sleeping-host": "info without steps",
    "low-gpu-utilization": "medium without steps, too", "low-occupancy": "medium only where bytes are known",
    "wave-quantisation": "medium only from as much of the device time, too", "cudnn-benchmark": "low: the setting is off; medium: a search in the steps",
    "profiler-overhead": "info: the cost was not recorded", "far-from-roofline": "info where values in tensors choose what is read (experts)",
}


def severity_cells(detector):
    """By level, from which percentage on its file gives it: "from 10 %", "else"."""
    with open(os.path.join(ROOT, "src", "detect", detector.replace("-", "_") + ".c")) as f:
        text = f.read()
    number = {name: float(n) for name, n in re.findall(r"\b([A-Z_]{3,}) = ([\d.]+)[,;]", text)}
    cells = {}
    for chain in re.findall(r"findings_add\((?:x->)?f, ([^;]*)\);", text):
        for condition, level in re.findall(r"(?:([^?:]+)\?)?\s*FINDING_([A-Z]+)\b", chain):
            limit = re.search(r"(>=|>|<) ([A-Z_]{3,})\b", condition)
            if limit:
                cells[level] = f"{ {'>=': 'from', '>': 'above', '<': 'below'}[limit[1]]} {number[limit[2]] * (100 if 'lowest' in condition else 1):g} %"
            elif not condition:
                cells.setdefault(level, "always" if chain.startswith("FINDING") else "else")
    return cells


def severity_table(detectors):
    rows = []
    for d in (d["id"] for d in detectors if not d["compat"] and d["id"] != "numa"):
        cells = severity_cells(d)
        by_share = any(c.endswith("%") for c in cells.values())
        if d in SEVERITY_CASES:
            cells = {level: c for level, c in cells.items() if by_share and c != "always"}
        of = SEVERITY_OF.get(d, "the steps' time" if by_share else "")
        rows.append(f"| `{d}` | {of} | " + " | ".join(cells.get(level, "") for level in ("HIGH", "MEDIUM", "LOW", "INFO")) + f" | {SEVERITY_CASES.get(d, '')} |\n")
    return ("\n## How severe a finding is\n\nA severity says how much of the run the finding is about: **high**, it decides how long the step is; **medium**, one of "
            "the first things to mend; **low**, worth a change; **info**, to be known: nothing is bounded, or little can be gained. Each detector has limits of its own, "
            "mostly in percent of the time that the steps take; what is too small to matter is no finding. A finding is at least as severe as the findings that are parts of it.\n\n"
            "| detector | percent of | high | medium | low | info | other rules |\n|---|---|---|---|---|---|---|\n" + "".join(rows))


EXPERTS = {
    "dlprof": "\n## DLProf's expert systems\n\n`opscope advise --compat=dlprof INPUT` (and the `dlprof` command) asks these instead, and prints what "
              "DLProf printed, word for word where its output is known (see [compat.md](compat.md)).",
    "torch": "\n## torch's anti-patterns\n\n`opscope advise --compat=torch INPUT` looks for what torch.profiler's report_all_anti_patterns finds, by its "
             "rules and in its words, in traces of the CPU, too, whatever it costs. opscope's own detectors look for the same where a GPU waits for it.",
}


def detectors_page(program):
    out = ["# Detectors\n\n", GENERATED,
           "`opscope advise INPUT` asks each of these. A detector that lacks what it needs says so, with the reason.\n\n"
           "* A finding says what it was measured on (with the op and the line of Python where that was recorded), how much of a step can be gained at most, what that bound is, and what would prove the finding wrong.\n"
           "* Findings stand in order of gain. A finding of whose time another one has at least four fifths stands below that one, which says more of why or gains more (*Same time as*); the bound says how much of the time that is. A finding that only tells of idle time, half or more of which other findings explain, stands below the one that explains most.\n"
           "* Gains of several findings overlap, and the bound says with which: they do not add up. The last line says how short a step can become when all findings are mended; time that several of them share counts once.\n"
           "* Findings are of the steps. Where there are none, they are of the repeats of a pattern of device work, or of the time from the first to the last device work, as the finding says. Each of several GPUs is measured by itself.\n"
           "* `--fail-on=high` (or medium, low) ends with status 3 where there is such a finding.\n"
           "* The columns `from_ns` and `to_ns` of CSV and JSON say where, on the clock of the recording, the finding is seen best, if one moment shows it. The viewer's link to the timeline goes there.\n"]
    detectors = program.registry("detectors")
    reports = {r["name"] for r in program.registry("reports")}
    for d in detectors:
        if d["report"] and d["report"] not in reports:
            raise SystemExit(f"detector {d['id']}: there is no report {d['report']}")
        if not d["compat"]:
            where = f"`opscope report {d['report']}`" if d["report"] else "the timeline"
            out.append(f"\n## {d['id']}\n\n**{d['title']}.** {d['why'] or ''}\n\n*What to do:* {d['fix'] or ''}\n\n*Wrong if:* {d['disprove'] or ''}\n\n"
                       f"*Where to look:* {where}\n")
    out.append(severity_table(detectors))
    out.append(scores_table())
    for compat, about in EXPERTS.items():
        rows = [f"| `{d['id']}` | {cell(d['title'])} |\n" for d in detectors if d["compat"] == compat]
        out += [about, "\n\n| detector | what it finds |\n|---|---|\n", *rows] if rows else []
    return "".join(out)


def inputs_page(program):
    out = ["# Inputs and outputs\n\n", GENERATED,
           "An input is recognised by its content; `--input-format=NAME` overrides that. `-` is standard input, and a "
           "directory stands for all the traces in it. Addresses (`s3://`, `gs://`, `az://`, `https://`) are inputs, too: [remote.md](remote.md).\n\n| input format | which files these are |\n|---|---|\n"]
    out += [f"| `{i['name']}` | {cell(i['help'])} |\n" for i in program.registry("inputs")]
    out.append("\n| output format | what it is |\n|---|---|\n")
    out += [f"| `{f['name']}` | {cell(f['help'])} |\n" for f in program.registry("formats")]
    return "".join(out)


DIRECTORIES = """
## Directories

An INPUT that is a directory stands for the traces in it, at any depth; symbolic links are followed, each directory is entered
once, names that begin with a dot are left out. Each trace has a run, a worker and a span:

| file | worker | span |
|---|---|---|
| `WORKER.DIGITS.pt.trace.json`, also `.gz` | `WORKER` | `1`, `2`, ... in the text order of the digits |
| `WORKER.pt.trace.json`, also `.gz` | `WORKER` | `default` |
| `NAME.json`, `NAME.json.gz`, `NAME.opscope` whose content is a trace | `NAME` | `default` |

* The run is the directory that holds the file, named relative to the one given, or by its last part when it is that one.
* The rank is the one stated in the trace (`distributedInfo`), else the number after `rank` in the worker's name, else the last
  number in it.
* `--run`, `--worker`, `--span` and `--rank` choose. Several ranks of one run are a [job](jobs.md). Where several other traces are left, a report ends
  with status 2 and says so; `opscope info DIRECTORY` lists them all.
* A directory without traces ends with status 1, a choice that leaves none with status 2.
"""


def commands_page(program):
    general = program.run("--help").stdout
    out = ["# Commands\n\n", GENERATED, "```\n", general.rstrip() + "\n", "```\n"]
    names = re.findall(r"^  (?:opscope )?([a-z][a-z-]*)\b", general, re.M)
    for name in dict.fromkeys(names):
        p = program.run(name, "--help")
        if p.returncode == 0 and p.stdout:
            out.append(f"\n## {name}\n\n```\n{p.stdout.rstrip()}\n```\n")
    return "".join(out) + DIRECTORIES


def sqlite3_list(path, query):
    """What `sqlite3 -header FILE QUERY` prints."""
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    cursor = db.execute(query)
    rows = [[d[0] for d in cursor.description], *cursor]
    db.close()
    return "".join("|".join("" if v is None else str(v) for v in r) + "\n" for r in rows)


def run_command(program, line, folder):
    words = shlex.split(line)
    if words[:2] == ["sqlite3", "-header"]:
        return sqlite3_list(os.path.join(folder, words[2]), words[3])
    if words[0] != "opscope":
        raise SystemExit(f"an example must run opscope or sqlite3 -header: {line}")
    width = [] if words[1] in ("import", "export") or any(w.startswith("--width") for w in words) else ["--width=110"]
    p = program.run(*words[1:], *width, cwd=folder)
    if p.returncode:
        raise SystemExit(f"{line}: {p.stderr}")
    return p.stdout


def run_block(program, block, folder):
    """The commands in a block, each with what it prints now. A command goes on over lines until its quotes are closed. A block that asks a predecessor
    whose folder is not there stays as it is, and so does one about public traces where these are not there."""
    out, lines = [], block.splitlines()
    if any(unanswered(line[len("$ opscope "):]) for line in lines) or any(not os.path.exists(os.path.join(folder, path)) for path in re.findall(rf"(?m)^\$ .*?({PUBLIC}/\S+)", block)):
        return block
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            continue
        while line.count('"') % 2:
            line += "\n" + lines.pop(0)
        out.append(f"{line}\n{run_command(program, line[2:], folder).rstrip()}".rstrip() + "\n")
    return "\n".join(out)


def examples(page):
    """A page written by hand, in which blocks that begin with `$ opscope` show what the program prints."""
    def write(program):
        with open(os.path.join(ROOT, page)) as f, tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
            os.symlink(DATA, os.path.join(folder, PUBLIC))
            return re.sub(r"(?<=^```\n)\$ opscope .*?(?=^```$)", lambda m: run_block(program, m[0], folder), f.read(),
                          flags=re.M | re.S)
    return write


def endpoints(program, page):
    """The tables of viewer.md between the marks; as they are where the program was built without the server."""
    def table(rows):
        out = ["| address | what it answers | arguments |\n|---|---|---|\n"]
        for k in rows:
            params = [line.split("\t") for line in (k["params"] or "").split("\n") if line]
            names = [f"**`{n}`**" for n in (k["input"] or "").split()]
            names += [f"`{n[:-1]}`" if n.endswith("?") else f"**`{n}`**" for n, _ in params]
            path = k["path"] + ("..." if k["path"].endswith("/") else "")
            out.append(f"| `{'POST ' if k['method'] == 'POST' else ''}{path}` | {cell(k['help'])} | {', '.join(names)} |\n")
        return "".join(out)

    def meanings(rows):
        seen = {}
        for k in rows:
            for n, h in (line.split("\t") for line in (k["params"] or "").split("\n") if line):
                seen.setdefault(n.rstrip("?"), []).append(h)
        return "| argument | what it is |\n|---|---|\n" + "".join(f"| `{n}` | {cell('; or '.join(dict.fromkeys(h)))} |\n" for n, h in sorted(seen.items()))

    rows = program.registry("endpoints")
    own = [k for k in rows if k["path"].startswith("/api/")]
    parts = {"api": table(own), "arguments": meanings(own), "plugin": table(k for k in rows if k not in own)}
    for name, text in parts.items() if rows else ():
        page = re.sub(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", lambda _: text, page, count=1, flags=re.S)
    return page


def viewer_page(program):
    with open(os.path.join(ROOT, "docs/viewer.md")) as f:
        return endpoints(program, f.read())


PAGES = {"docs/reports.md": reports_page, "docs/detectors.md": detectors_page, "docs/inputs.md": inputs_page,
         "docs/commands.md": commands_page, "docs/sql.md": examples("docs/sql.md"), "docs/export.md": examples("docs/export.md"), "docs/torch.md": examples("docs/torch.md"), "docs/viewer.md": viewer_page,
         "docs/tutorial.md": examples("docs/tutorial.md"), "docs/tutorial_cpu.md": examples("docs/tutorial_cpu.md"), "README.md": examples("README.md")}
PAGES |= {page: examples(page) for page in (os.path.relpath(path, ROOT) for path in sorted(glob.glob(os.path.join(ROOT, "docs", "questions", "*.md"))))}


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
