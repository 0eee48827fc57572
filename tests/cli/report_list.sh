# `report` alone lists the reports; those of a predecessor, whose folder may be left out, do not count here.
opscope report --format=csv --columns=name,title | cut -d, -f1 | grep -vx pyprof
