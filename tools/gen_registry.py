#!/usr/bin/env python3
"""Writes the registry of a folder: the list of its exported structs, in the order of its meson.build.

usage: gen_registry.py OUT TYPE INCLUDE SYMBOL NAME...
  OUT      C file to write          TYPE    struct name and symbol prefix ("report")
  INCLUDE  header of the struct     SYMBOL  name of the array ("report_registry")
"""
import sys

out, type_, include, symbol, *names = sys.argv[1:]
with open(out, "w") as f:
    f.write(f'#include "{include}"\n\n')
    for n in names:
        f.write(f"extern const struct {type_} {type_}_{n};\n")
    f.write(f"\nconst struct {type_} *const {symbol}[] = {{\n")
    for n in names:
        f.write(f"\t&{type_}_{n},\n")
    f.write("\tNULL,\n};\n")
