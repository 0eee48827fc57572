export SOURCE_DATE_EPOCH=0
opscope import $TRACES/synthetic/two_steps_overlap.json -o run.opscope
opscope aggregate run.opscope --steps=2 --name='second step' \
  --columns=aggregation,name,made_by,created,key_op,steps,first_step,last_step,aggregated_steps,total_steps,wall_ns,gpu_utilization_pct
opscope report operators run.opscope --aggregation=2 --format=csv --columns=name,calls,device_self_ns
opscope sql run.opscope "SELECT aggregation, name, steps, created FROM aggregations" --format=csv
opscope aggregate run.opscope --delete=1 --format=csv --columns=aggregation,name
opscope aggregate run.opscope --list --format=csv --columns=aggregation,name
opscope report steps run.opscope --aggregation=1 || echo "status $?"
opscope aggregate run.opscope --steps=9 || echo "status $?"
opscope aggregate $TRACES/synthetic/two_steps.json || echo "status $?"
opscope aggregate run.opscope --list --delete=2 || echo "status $?"
opscope aggregate || echo "status $?"
ls
