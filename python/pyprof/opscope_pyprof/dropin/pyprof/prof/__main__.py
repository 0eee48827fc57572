from opscope.__main__ import run

run("pyprof-prof")
