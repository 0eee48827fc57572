# Folded stacks, and memory by category, of the bundled trace; what is said when an input lacks it.
T=$TRACES/torch214_cpu_resnet.json.gz
opscope export stacks --by=op $T | head -4
opscope export stacks --by=module --unit=us $T | sort -k1,1 | tail -3
opscope export stacks --compat=torch-2.14 $T
opscope export memory-timeline $T | cut -c1-120
opscope export memory-timeline --form=raw $TRACES/synthetic/memory_curve.json
opscope export memory-timeline --device=cpu $TRACES/synthetic/memory_curve.json
opscope export memory-timeline --device=7 $TRACES/synthetic/memory_curve.json || echo status $?
opscope export flamegraph --metric=device $T || echo status $?
opscope export flamegraph --frames=none $T || echo status $?
