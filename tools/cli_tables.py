"""Asks the program which commands and options it has: one --help each, laid out so that every option is one line. For gen_man.py and gen_completion.py."""
import json
import os
import re
import subprocess

WIDTH = 200  # where the descriptions begin: behind the longest list of names
LAYOUT = f"opt-doc-col={WIDTH},rmargin=30000"
FILES = {"FILE", "PATH", "DIR", "OUT", "RUN"}
ABOUT_ARGP = "Mandatory or optional arguments to long options are also"


class Option:
    """`values`: the words that it takes, in order; `files`: whether files, too. `arg` is what --help calls the value, None = it takes none."""

    def __init__(self, names, arg, optional, text, values=(), files=False):
        self.names, self.arg, self.optional, self.text = names, arg, optional, text
        self.values, self.files = list(values), files

    @property
    def long(self):
        return [n for n in self.names if n.startswith("--")]


class Command:
    """`name`: as typed; `ways`: the lines of usage; `groups`: (heading, [Option])."""

    def __init__(self, name, what, help_text):
        self.name, self.what = name, what
        lines = help_text.split("\n")
        usage = [m[2] for m in (re.match(r"(Usage:|   or:) opscope (.*)", line) for line in lines) if m]
        self.ways = [re.sub(r"( \[OPTION\.\.\.\])+$", " [OPTION...]", way) for way in usage]
        self.groups, about, after = [("", [])], [], []
        for line in lines[len(usage):]:
            if line.startswith("  "):
                self.groups[-1][1].append(_option(line))
            elif line.startswith(" ") and line.endswith(":"):
                self.groups.append((line[1:-1], []))
            elif line and not line.startswith(ABOUT_ARGP):
                (after if self.options else about).append(line)
        self.groups = [g for g in self.groups if g[1]]
        self.about, self.after = "\n\n".join(about), "\n\n".join(after)

    @property
    def options(self):
        return [o for _, options in self.groups for o in options]

    def option(self, name):
        return next((o for o in self.options if name in o.names), None)


def _option(line):
    head, text = line[:WIDTH].strip(), line[WIDTH:].strip()
    arg, optional, names = None, False, []
    for part in head.split(", "):
        m = re.match(r"(-[A-Za-z]|--[\w-]+)(?:(\[=|[= ])(.*?)\]?)?$", part) if part.startswith("-") else None
        if not m:  # the value itself has ", " in it
            raise SystemExit(f"--help has an option that cannot be read: {line}")
        names.append(m[1])
        if m[2]:
            optional = m[2] == "[="
            arg = part[m.start(3):-1] if optional else part[m.start(3):]
    words = (arg or "").split("|")
    values = [w for w in words if re.fullmatch(r"[a-z][a-z0-9]*", w)] if len(words) > 1 else []
    return Option(names, arg, optional, text, values, bool(FILES.intersection(words)))


class Program:
    """`commands`: all; those in `programs` have programs of their own."""

    def __init__(self, opscope, dump, programs):
        self.opscope, self.dump, self.programs = opscope, dump, programs
        self.general = self._run("--help")
        self.version = self._run("--version").split()[1]
        self.reports, self.inputs, self.formats = (self.registry(n) for n in ("reports", "inputs", "formats"))
        self.exports = self.registry("exports")
        listed = re.findall(r"^  ([a-z][a-z-]*)\b.*?  +(.*)", self.general.split("\nAn INPUT")[0], re.M)
        self.commands = [Command(name, what, self._run(name, "--help")) for name, what in listed if name != "help"]
        for e in self.exports:
            e["options"] = [self._export_option(row.split("\t")) for row in (e["options"] or "").split("\n") if row]
        self._values()

    def _run(self, *args):
        env = {**os.environ, "ARGP_HELP_FMT": LAYOUT, "LC_ALL": "C.UTF-8"}
        env.pop("COLUMNS", None)
        return subprocess.run([self.opscope, *args], check=True, capture_output=True, text=True, env=env).stdout

    def registry(self, name):
        doc = json.loads(subprocess.run([self.dump, name], check=True, capture_output=True).stdout)
        ids = [c["id"] for c in doc["columns"]]
        return [dict(zip(ids, r)) for r in doc["rows"]]

    def _export_option(self, row):
        name, arg, values, text = row
        return Option([f"--{name}"], arg or None, False, text, values.split(), arg in FILES)

    def _values(self):
        """What the registries know of the values of options."""
        words = {"--format": [f["name"] for f in self.formats], "--input-format": [i["name"] for i in self.inputs]}
        in_reports = {"--group-by": words_of(self.reports, "group_by"), "--compat": words_of(self.reports, "compat")}
        experts = list(dict.fromkeys(d["compat"] for d in self.registry("detectors") if d["compat"]))
        own = {"report": in_reports, "advise": {"--compat": experts}}
        for c in self.commands:
            known = words | own.get(c.name, {})
            for o in c.options:
                for name in o.names:
                    o.values = o.values or known.get(name, [])
                o.files = o.files or "-o" in o.names

    def way_words(self, command):
        """The words of which one stands first behind the command; none where files do."""
        if command.name in ("report", "export"):
            return [row["name"] for row in (self.reports if command.name == "report" else self.exports)]
        first = [way.split()[1] for way in command.ways if len(way.split()) > 1]
        return [w for w in first if re.fullmatch(r"[a-z]+", w)]

    def runs(self, command):
        """Whether a program and its arguments stand behind the options."""
        return any(re.search(r"\b(COMMAND|PROGRAM) \[ARGUMENT\.\.\.\]", way) for way in command.ways)


def words_of(rows, key):
    """Each word once; not "depth:N", for whose N no word stands."""
    return list(dict.fromkeys(w for r in rows for w in (r[key] or "").split() if not re.search(r"[A-Z]", w)))
