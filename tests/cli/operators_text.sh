opscope report operators $TRACES/synthetic/self_time.json
