# A report whose data was not recorded says what to record.
opscope report memory $TRACES/synthetic/self_time.json || echo "status $?"
opscope report kernels $TRACES/synthetic/pure_cpu.json || echo "status $?"
