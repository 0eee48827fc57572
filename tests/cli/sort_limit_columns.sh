t=$TRACES/synthetic/kernel_grouping.json
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns --sort=+total_ns
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns --limit=1
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns --filter=OP2
