# A grouping that the plugin's table does not have, and a predecessor that there is not.
t=$TRACES/synthetic/two_steps.json
opscope report operators $t --group-by=line --compat=tb-plugin || echo "status $?"
opscope report operators $t --compat=nonsense || echo "status $?"
