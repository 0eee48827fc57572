# A column that a report has for other inputs is empty, and that is said; one that it never has is refused.
plain=$TRACES/synthetic/costs_plain_gpu.json
opscope report conv $plain --columns=op,calls,over_peak,peak
opscope report conv $plain --columns=op,calls,tc_hint --format=csv --sort=tc_hint
(opscope report conv $plain --columns=op,nonsense 2>&1 || true) | grep -o "no column 'nonsense'"
