# `report` alone lists the reports.
opscope report --format=csv --columns=name,title | cut -d, -f1
