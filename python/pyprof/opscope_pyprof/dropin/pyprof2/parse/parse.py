#!/usr/bin/env python3
from opscope.__main__ import run

run("pyprof-parse", "--compat=pyprof2")
