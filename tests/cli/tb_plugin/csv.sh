# --compat: the predecessor's own numbers, and its mistake.
opscope report operators $TRACES/synthetic/dup_node_with_own_call.json --compat=tb-plugin --format=csv
opscope report operators $TRACES/synthetic/dup_node_with_own_call.json --format=csv --columns=name,device_self_ns
