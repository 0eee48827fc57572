# A column of opscope's own table is refused of TraceLens'; the page about the report says that there is one.
plain=$TRACES/synthetic/costs_plain_gpu.json
(opscope report conv $plain --columns=op,over_peak --compat=tracelens 2>&1 || true) | grep -o "not in this table.*\|no column.*; " || true
opscope report roofline --help | grep -- --compat
