"""The program of the package: `python -m opscope`, and what a wheel installs as opscope, dlprof, pyprof-parse and so on."""
from __future__ import annotations

import os
import sys
from typing import NoReturn


def run(name: str, *options: str) -> NoReturn:
    """The program under that name, by which it goes, with these options and those of the command line."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "opscope")
    if not os.access(program, os.X_OK):
        sys.exit(f"opscope: {program} is not there: this package is of a build tree, or was installed without the program")
    os.execv(program, [name, *options, *sys.argv[1:]])


def main() -> NoReturn:
    name = os.path.basename(sys.argv[0])
    run("opscope" if name == "__main__.py" else name)


if __name__ == "__main__":
    main()
