opscope report overview $TRACES/synthetic/two_steps.json
