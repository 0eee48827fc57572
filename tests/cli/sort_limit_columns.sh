t=$TRACES/synthetic/kernel_grouping.json
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns --sort=+total_ns
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns --limit=1
opscope report kernels $t --group-by=op --format=csv --columns=operator,calls,total_ns --filter=OP2
# What no row has: what the filter looks for, and what there is. A near column, a near value, a column of numbers, a text.
for filter in operator=op2 operatr=op2 operator=opp2 calls=1 opp2 nothing_near; do
	opscope report kernels $t --group-by=op --filter=$filter --columns=operator,calls --notes=full | grep 'no text column holds'
done
opscope report kernels $t --group-by=op --filter=operator=op2 --format=json | grep -c 'did you mean --filter=op2'
