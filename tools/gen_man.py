#!/usr/bin/env python3
"""Writes the manual pages: opscope.1, one of each command, and one of each program of a predecessor. All of it is what the program says of itself.

usage: gen_man.py OPSCOPE REGISTRY_DUMP OUT PROGRAM... [--mpi COMMAND...]    PROGRAM: a command that is a program of its own; --mpi: those of opscope-mpi, which gets a page, too
"""
import os
import re
import sys

import cli_tables

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = (
    ("COLUMNS", "the width of text output, where --width does not say it"),
    ("NO_COLOR", "no colours on a terminal, where it is set to anything"),
    ("OPSCOPE_THREADS", "read on so many threads, where --threads does not say it; the default is one a processor"),
    ("TMPDIR", "where temporary files go"),
)


def escaped(text):
    """As text of roff: nothing of it is a request or an escape, and a minus stays one."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti").replace("'", "\\(aq")
    text = re.sub(r",(?=\w)", ",\\\\:", text)  # a long list may go on in the next line
    text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text).replace("`", "\\(ga")
    return "\n".join("\\&" + line if line.startswith(".") else line for line in text.split("\n"))


def sentence(text):
    """A description as a sentence: it begins with a capital, where it begins with a word of English, and ends with a point."""
    text = text[0].upper() + text[1:] if re.match(r"[a-z]+[ ,]", text) else text
    return escaped(text + ("" if re.search(r"[.!?]\W?$", text) else "."))


class Page:
    def __init__(self, name, what, program):
        self.text = [f".TH {escaped(name.upper())} 1 \"{released(program.version)}\" \"opscope {program.version}\" \"opscope\"",
                     ".nh", ".ad l", ".SH NAME", f"{escaped(name)} \\- {escaped(what)}"]

    def section(self, title):
        self.text.append(f".SH {title}")

    def part(self, title):
        self.text.append(f".SS {escaped(title)}")

    def paragraphs(self, text):
        for n, paragraph in enumerate(p for p in text.split("\n\n") if p):
            self.text += [".PP"] * (n > 0) + [escaped(paragraph)]

    def item(self, term, text):
        """`term` is roff already."""
        self.text += [".TP", term, text]

    def options(self, options):
        for o in options:
            arg = "" if o.arg is None else f"\\fI{escaped(o.arg)}\\fR"
            names = []
            for n in o.names:
                between = "=" if n.startswith("--") else " "
                value = "" if not arg or o.long and not n.startswith("--") else f"[{between}{arg}]" if o.optional else between + arg
                names.append(f"\\fB{escaped(n)}\\fR{value}")
            self.item(", ".join(names), sentence(o.text) if o.text else "\\&")

    def write(self, folder, name):
        with open(os.path.join(folder, f"{name}.1"), "w", encoding="utf-8") as f:
            f.write('.\\" Written by tools/gen_man.py from what the program says of itself.\n' + "\n".join(self.text) + "\n")


def released(version):
    """The day that CHANGELOG.md states behind the version; none before it is released."""
    with open(os.path.join(ROOT, "CHANGELOG.md"), encoding="utf-8") as f:
        m = re.search(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", f.read(), re.M)
    return m[1] if m else ""


def synopsis(page, ways):
    page.section("SYNOPSIS")
    for n, way in enumerate(ways):
        words = way.split(" ")
        at = 2 if words[0] == "opscope" and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) else 1
        page.text += [".br"] * (n > 0) + [f"\\fB{escaped(' '.join(words[:at]))}\\fR {escaped(' '.join(words[at:]))}".rstrip()]


def page_name(program, command):
    return command.name if command.name in program.programs else f"opscope-{command.name}"


def see_also(page, names):
    page.section("SEE ALSO")
    page.text.append(", ".join(f"\\fB{escaped(n)}\\fR(1)" for n in names))


def exit_status(page, program):
    page.section("EXIT STATUS")
    states = re.search(r"^Exit status: (.*)\.$", program.general, re.M)[1]
    for status in states.split(", "):
        page.item(f"\\fB{status.split()[0]}\\fR", sentence(status.split(" ", 1)[1]))


def general_page(program):
    page = Page("opscope", "tells where the GPU time of a deep-learning run went", program)
    synopsis(page, re.findall(r"^(?:Usage:|   or:) (.*?)(?:   .*)?$", program.general, re.M))
    page.section("DESCRIPTION")
    page.paragraphs("opscope reads what profilers recorded of a run, and says where the time went, what launched each kernel, and what to do about it. "
                    "`opscope INPUT` is a first look. What a recording does not tell is shown as unknown, never as zero.")
    page.section("COMMANDS")
    for c in program.commands:
        page.item(f"\\fB{escaped(page_name(program, c))}\\fR(1)", sentence(c.what))
    page.item("\\fBopscope help\\fR [\\fICOMMAND\\fR]", "The options of all commands, or of one.")
    page.section("OPTIONS")
    page.item("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "All commands, inputs, reports and formats.")
    page.item("\\fB\\-V\\fR, \\fB\\-\\-version\\fR", "The version.")
    page.section("INPUTS")
    page.paragraphs("An INPUT is a file, recognised by its content, a directory of traces, or - for standard input.")
    for i in program.inputs:
        page.item(f"\\fB{escaped(i['name'])}\\fR", sentence(i["help"]))
    reports_section(page, program, short=True)
    page.section("OUTPUT FORMATS")
    for f in program.formats:
        page.item(f"\\fB{escaped(f['name'])}\\fR", sentence(f["help"]))
    exit_status(page, program)
    page.section("ENVIRONMENT")
    for name, text in ENVIRONMENT:
        page.item(f"\\fB{name}\\fR", sentence(text))
    see_also(page, [page_name(program, c) for c in program.commands])
    return page


def reports_section(page, program, short):
    page.section("REPORTS")
    for r in program.reports:
        more = "" if short else "".join(f" {escaped(option)} takes {', '.join(escaped(w) for w in r[key].split())}." for option, key in (("--group-by", "group_by"), ("--compat", "compat")) if r[key])
        page.item(f"\\fB{escaped(r['name'])}\\fR", sentence(r["title"]) + more)


def formats_section(page, program):
    page.section("FORMATS")
    for e in program.exports:
        page.item(f"\\fB{escaped(e['name'])}\\fR", sentence(e["title"]))
        if e["options"]:
            page.text.append(".RS")
            page.options(e["options"])
            page.text.append(".RE")


def command_page(program, command):
    page = Page(page_name(program, command), command.what, program)
    synopsis(page, command.ways if command.name in program.programs else [f"opscope {way}" for way in command.ways])
    page.section("DESCRIPTION")
    page.paragraphs("\n\n".join(t for t in (command.about, command.after) if t))
    page.section("OPTIONS")
    for title, options in command.groups:
        if title:
            page.part(title)
        page.options(options)
    if command.name == "report":
        reports_section(page, program, short=False)
    if command.name == "export":
        formats_section(page, program)
    if "status" not in command.about.lower():
        exit_status(page, program)
    see_also(page, ["opscope"])
    return page


def mpi_page(program, commands):
    page = Page("opscope-mpi", "opscope for the ranks of a job, read in the processes of an MPI", program)
    synopsis(page, [f"mpirun -n N opscope-mpi {c.ways[0]}" for c in program.commands if c.name in commands])
    page.section("DESCRIPTION")
    page.paragraphs("Each process reads a part of the recordings of a job, and what it learned of them goes to the first, which answers. Options, answers and exit status are those of opscope.")
    see_also(page, ["opscope", *(f"opscope-{name}" for name in commands), "mpirun"])
    return page


def main(opscope, dump, out, *words):
    at = words.index("--mpi") if "--mpi" in words else len(words)
    programs, mpi_commands = words[:at], words[at + 1:]
    program = cli_tables.Program(opscope, dump, programs)
    if mpi_commands:
        mpi_page(program, mpi_commands).write(out, "opscope-mpi")
    general_page(program).write(out, "opscope")
    for c in program.commands:
        command_page(program, c).write(out, page_name(program, c))


main(*sys.argv[1:])
