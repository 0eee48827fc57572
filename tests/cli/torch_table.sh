# torch's own text forms, by hand: two kernels under two ops, allocations on both sides, FLOPs 2*8*4*2, stacks; what it can be asked.
t=$TRACES/synthetic/torch_table.json
for v in 1.13 2.6 2.14; do
  opscope report key-averages $t --compat=torch-$v --sort=self_cuda_time_total
  opscope report total-average $t --compat=torch-$v
done
opscope report key-averages $t --compat=torch-1.13 --group-by=shape,stack:2 --limit=2 --title="Two rows" --max-width=input_shapes:20
opscope report key-averages $t --compat=torch-2.14 --top-level --time-unit=ms --columns=key,cpu_time_total,count
opscope report key-averages $t --compat=torch-2.14 --columns=key,count,cpu_time_total --format=csv
opscope report key-averages $t --compat=torch-2.14 --group-by=module || echo "status $?"
opscope report key-averages $t --compat=torch-2.6 --group-by=overload || echo "status $?"
opscope report key-averages $t --compat=torch-2.6 --group-by=stack || echo "status $?"
opscope report key-averages $t --group-by=shape,colour || echo "status $?"
opscope report operators $t --top-level || echo "status $?"
opscope report operators $t --time-unit=hours || echo "status $?"
opscope report operators $t --max-width=nothing:5 || echo "status $?"
opscope report key-averages $t --compat=torch-2.5 || echo "status $?"
# torch's sort keys and times since the start need no --compat; a page says the unit of torch's numbers.
opscope report key-averages $t --sort=cpu_time_total --columns=name,host_total_ns --limit=2 | head -5
opscope report function-events $t --columns=event,since_first_ns,start_ns,name --limit=3
opscope report key-averages $t --compat=torch-2.14 --format=html | grep -o '>Self CPU (us)<'
