"""Where packages go: install_dir.py PREFIX FOLDER prints FOLDER, or a folder below PREFIX in which this Python looks when FOLDER is none."""
import os
import site
import sys

prefix, folder = (os.path.normpath(p) for p in sys.argv[1:])
known = [p for p in site.getsitepackages() if p.startswith(prefix + os.sep)]
print(folder if folder in known or not known else known[0])
