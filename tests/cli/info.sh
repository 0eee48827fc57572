opscope info $TRACES/synthetic/two_steps.json | grep -v "held in memory"
