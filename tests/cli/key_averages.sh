# What events by name can be asked for, and what not; torch's sort keys and times since the start need no --compat.
t=$TRACES/synthetic/torch_table.json
opscope report key-averages $t --group-by=shape,colour || echo "status $?"
opscope report operators $t --top-level || echo "status $?"
opscope report operators $t --time-unit=hours || echo "status $?"
opscope report operators $t --max-width=nothing:5 || echo "status $?"
opscope report key-averages $t --sort=cpu_time_total --columns=name,host_total_ns --limit=2 | head -5
opscope report function-events $t --columns=event,since_first_ns,start_ns,name --limit=3
