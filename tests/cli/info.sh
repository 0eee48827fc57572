cp $TRACES/synthetic/two_steps.json .
opscope info two_steps.json | grep -v "held in memory"
