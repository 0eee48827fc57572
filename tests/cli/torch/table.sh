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
opscope report key-averages $t --compat=torch-2.5 || echo "status $?"
# A page says the unit.
opscope report key-averages $t --compat=torch-2.14 --format=html | grep -o '>Self CPU (us)<'
