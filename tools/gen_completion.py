#!/usr/bin/env python3
"""Writes the completion for bash, zsh and fish: the scripts of tools/completion/ with what the program says of its commands, options, reports and formats.

usage: gen_completion.py OPSCOPE REGISTRY_DUMP OUT PROGRAM...    OUT gets opscope (for bash), _opscope and opscope.fish; PROGRAM: a command that is a program of its own
"""
import os
import re
import shlex
import sys

import cli_tables

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "completion")
BRIEF = 70


def brief(text):
    """The first clause of a description, for one line of a menu."""
    first = re.split(r"[;:] | \(", text)[0]
    text = first if " " in first else text
    return text if len(text) <= BRIEF else text[:BRIEF].rsplit(" ", 1)[0] + " ..."


def fill(name, parts):
    with open(os.path.join(SCRIPTS, name), encoding="utf-8") as f:
        text = f.read()
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text


def of_report(report):
    """The options whose values a report has of its own."""
    return [cli_tables.Option([f"--{key.replace('_', '-')}"], "WHAT", False, "", cli_tables.words_of([report], key)) for key in ("group_by", "compat") if report[key]]


# ---- bash ----


def bash_row(option, name):
    values = option.values + ["<"] * option.files
    return f"{name}:{0 if option.arg is None else 2 if option.optional else 1}:{'|'.join(values)}"


def bash(program):
    rows = {c.name: c.options for c in program.commands}
    rows |= {f"report {r['name']}": of_report(r) for r in program.reports}
    rows |= {f"export {e['name']}": e["options"] for e in program.exports}
    first = {c.name: program.way_words(c) for c in program.commands} | {"help": [c.name for c in program.commands]}
    return fill("opscope.bash", {
        "OPTIONS": "\n".join(f"\t[{shlex.quote(name)}]={shlex.quote(' '.join(bash_row(o, n) for o in options for n in o.names))}" for name, options in rows.items() if options),
        "FIRST": "\n".join(f"\t[{name}]={shlex.quote(' '.join(words))}" for name, words in first.items() if words),
        "COMMANDS": " ".join(c.name for c in program.commands), "PROGRAMS": " ".join(program.programs), "RUNNERS": " ".join(c.name for c in program.commands if program.runs(c))})


# ---- zsh ----


def zsh_quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_text(text):
    return re.sub(r"([\[\]\\:])", r"\\\1", text)


def zsh_action(option, variable):
    words = " ".join(option.values)
    if variable:
        return f"_opscope_of {variable}"
    if option.files:
        return f"_alternative 'words:word:({words})' 'files:file:_files'" if words else "_files"
    return f"({words})" if words else " "


def zsh_options(options, of_report=False):
    for o in options:
        own = f"_opscope_{o.names[0].strip('-').replace('-', '_')}" if of_report and o.names[0] in ("--group-by", "--compat") else None
        for name in o.names:
            text = f"[{zsh_text(brief(o.text))}]"
            if o.arg is None:
                yield zsh_quoted(name + text)
            else:
                equals = "=" if name.startswith("--") else "+"
                yield zsh_quoted(f"{name}{equals}{text}{'::' if o.optional else ':'}{zsh_text(o.arg)}:{zsh_action(o, own)}")


def zsh_first(program, command):
    if program.runs(command):
        return ["'*::command:_normal'"]
    words = program.way_words(command)
    if not words:
        return ["'*:input:_files'"]
    titles = {r["name"]: r["title"] for r in (program.reports if command.name == "report" else program.exports if command.name == "export" else [])}
    rows = " ".join(f'{w}\\:"{zsh_text(brief(titles[w])).replace(chr(34), "")}"' if w in titles else w for w in words)
    return [zsh_quoted(f"1:{command.name}:(({rows}))") if titles else zsh_quoted(f"1:{command.name}:({rows})"), "'*:input:_files'"]


def zsh_of_format(program):
    """What stands among the arguments for the options of the format, and what sets it."""
    with_options = [e for e in program.exports if e["options"]]
    cases = "".join(f"    {e['name']}) own=({' '.join(zsh_options(e['options']))}) ;;\n" for e in with_options)
    return "$own ", f"  local -a own\n  case ${{words[(r)({'|'.join(e['name'] for e in with_options)})]}} in\n{cases}  esac\n"


def zsh(program):
    functions = []
    for key in ("group_by", "compat"):
        rows = "".join(f"  {r['name']} {zsh_quoted(' '.join(cli_tables.words_of([r], key)))}\n" for r in program.reports if r[key])
        functions.append(f"typeset -gA _opscope_{key}=(\n{rows})")
    for c in program.commands:
        lines = [*zsh_options(c.options, c.name == "report"), *zsh_first(program, c)]
        order = "-A '-*' " if program.runs(c) else ""
        body = " \\\n    ".join(lines)
        own, of_format = zsh_of_format(program) if c.name == "export" else ("", "")
        functions.append(f"_opscope_{c.name.replace('-', '_')}() {{\n{of_format}  _arguments -s {order}{own}\\\n    {body}\n}}")
    return fill("_opscope", {"PROGRAMS": " ".join(program.programs), "FUNCTIONS": "\n\n".join(functions),
                             "COMMANDS": "\n".join(f"    {zsh_quoted(zsh_text(c.name) + ':' + brief(c.what))}" for c in program.commands)})


# ---- fish ----


def fish_quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish_options(options, start):
    for o in options:
        line = start
        for name in o.names:
            line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
        if o.arg is not None and not o.optional:
            line += " -r" if o.files else " -x"
        if o.values:
            line += f" -a {fish_quoted(' '.join(o.values))}"
        yield line + (f" -d {fish_quoted(brief(o.text))}" if o.text else "")


def fish_first(program, command, start):
    titles = {r["name"]: r["title"] for r in program.reports} if command.name == "report" else {e["name"]: e["title"] for e in program.exports} if command.name == "export" else {}
    for word in program.way_words(command):
        yield f"{start} -f -a {word}" + (f" -d {fish_quoted(brief(titles[word]))}" if word in titles else "")


def fish(program):
    lines = []
    for c in program.commands:
        lines.append(f"complete -c opscope -n __fish_use_subcommand -a {c.name} -d {fish_quoted(brief(c.what))}")
    for c in program.commands:
        lines += fish_first(program, c, f"complete -c opscope -n {fish_quoted(f'__opscope_in {c.name} 0')}")
        own = ("--group-by", "--compat") if c.name == "report" else ()
        lines += fish_options([o for o in c.options if o.names[0] not in own], f"complete -c opscope -n {fish_quoted(f'__opscope_in {c.name}')}")
        if program.runs(c):
            lines.append(f"complete -c opscope -n {fish_quoted(f'__opscope_in {c.name}')} -x -a '(__fish_complete_subcommand --fcs-skip=2)'")
        if c.name in program.programs:
            lines += fish_options(c.options, f"complete -c {c.name}")
    report = next(c for c in program.commands if c.name == "report")
    for name, rows in (("report", [(r["name"], of_report(r)) for r in program.reports]), ("export", [(e["name"], e["options"]) for e in program.exports])):
        for word, options in rows:
            for o in options:
                o.text = o.text or report.option(o.names[0]).text
            lines += fish_options(options, f"complete -c opscope -n {fish_quoted(f'__opscope_asks {name} {word}')}")
    return fill("opscope.fish", {"LINES": "\n".join(lines)})


def main(opscope, dump, out, *programs):
    program = cli_tables.Program(opscope, dump, programs)
    for name, write in (("opscope", bash), ("_opscope", zsh), ("opscope.fish", fish)):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.write(write(program))


if __name__ == "__main__":
    main(*sys.argv[1:])
