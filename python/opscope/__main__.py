"""The program of the package: `python -m opscope`, and what a wheel installs as opscope, dlprof, pyprof-parse and so on."""
from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "opscope")
    name = os.path.basename(sys.argv[0])
    if not os.access(program, os.X_OK):
        sys.exit(f"opscope: {program} is not there: this package is of a build tree, or was installed without the program")
    # One program under several names, which it goes by.
    os.execv(program, ["opscope" if name == "__main__.py" else name, *sys.argv[1:]])


if __name__ == "__main__":
    main()
