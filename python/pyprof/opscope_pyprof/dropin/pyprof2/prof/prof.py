#!/usr/bin/env python3
from opscope.__main__ import run

run("pyprof-prof", "--compat=pyprof2")
