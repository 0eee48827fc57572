#!/usr/bin/env python3
"""Compiles every C file with clang for its warnings alone (-fsyntax-only), with the options of a build. This takes a sixth of the time of a build.

usage: check_clang.py BUILD [COMPILED TARGET]     a folder that `CC=clang meson setup` made; status 1 when clang says anything
Files that clang compiles for TARGET of the folder COMPILED, where warnings are errors too, are left out.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

build = sys.argv[1]
compiled = set()
if len(sys.argv) > 2:
    shown = subprocess.run(["ninja", "-C", sys.argv[2], "-t", "commands", sys.argv[3]], capture_output=True, text=True, check=True).stdout
    compiled = {os.path.realpath(os.path.join(sys.argv[2], name)) for name in re.findall(r"^clang .* -Werror .* -c (\S+\.c)$", shown, re.M)}
targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
made = re.findall(r"^(\S+\.[ch]): CUSTOM_COMMAND", targets, re.M)  # sources and headers that a build writes
if made:
    subprocess.run(["ninja", "-C", build, "--quiet", *made], check=True, stdout=subprocess.DEVNULL)
with open(os.path.join(build, "compile_commands.json")) as f:
    commands = [c for c in json.load(f) if c["file"].endswith(".c") and os.path.realpath(os.path.join(c["directory"], c["file"])) not in compiled]


def look(command):
    words, skip = [], False
    for word in shlex.split(command["command"]):
        if not skip and word not in ("-MD", "-o", "-MQ", "-MF"):
            words.append(word)
        skip = not skip and word in ("-o", "-MQ", "-MF")
    return subprocess.run([*words, "-fsyntax-only"], cwd=command["directory"], capture_output=True, text=True)


bad = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for command, p in zip(commands, pool.map(look, commands)):
        if p.returncode or p.stderr:
            bad += 1
            sys.stderr.write(p.stderr or f"{command['file']}: clang ends with status {p.returncode}\n")
print(f"clang: {len(commands)} files, {bad} with warnings")
sys.exit(1 if bad or not commands else 0)
