opscope report operators $TRACES/synthetic/two_steps.json --steps=2..2 --format=csv --columns=name,calls,device_self_ns
opscope report operators $TRACES/synthetic/two_steps.json --steps=7..9 || echo "status $?"
