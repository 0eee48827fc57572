opscope report operators $TRACES/synthetic/two_steps.json --steps=2..2 --format=csv --columns=name,calls,device_self_ns
opscope report operators $TRACES/synthetic/two_steps.json --steps=7..9 || echo "status $?"
opscope report trace $TRACES/synthetic/two_steps.json --steps=2 --format=csv --section=trace
opscope report trace $TRACES/synthetic/two_steps.json --steps=7 || echo "status $?"
opscope advise $TRACES/synthetic/two_steps.json --steps=1 --format=csv --columns=severity,detector | head -1
opscope report steps $TRACES/synthetic/two_steps.json --key-op=ProfilerStep#1 --columns=step,total_ns
