# What a report is, from the program itself; and what a wrong name or column is told.
opscope report roofline --help | sed -n '/--compat/d;1,2p;/^Options/,/^  op /p'
opscope report --help roofline | cmp - <(opscope report roofline --help) && echo "same"
opscope report overview --help | grep '^Columns'
for name in gpu_timelin foo op; do
  (opscope report $name $TRACES/synthetic/two_steps.json 2>&1 || true)
done
opscope sql $TRACES/synthetic/costs_gpu.json 'SELECT foo FROM attention' || echo "status $?"
opscope advise $TRACES/synthetic/two_steps.json $TRACES/synthetic/self_time.json || echo "status $?"
