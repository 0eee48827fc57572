opscope report operators $TRACES/synthetic/self_time.json --format=json | sed 's|"input":"[^"]*"|"input":"..."|'
