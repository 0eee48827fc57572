# What would look done and is not, is refused.
opscope report operators $TRACES/synthetic/two_steps.json --device=0 || echo "status $?"
opscope report operators $TRACES/synthetic/two_steps.json --key-op=nonsense || echo "status $?"
opscope report operators $TRACES/synthetic/two_steps.json --key-op= || echo "status $?"
opscope report kernels $TRACES/synthetic/two_steps.json --device=banana || echo "status $?"
opscope advise $TRACES/synthetic/two_steps.json --device=0 || echo "status $?"
opscope info $TRACES/synthetic/two_steps.json --device=0 || echo "status $?"
cp $TRACES/synthetic/two_steps.json mine.json
opscope import mine.json -o mine.json || echo "status $?"
opscope report operators mine.json --format=csv -o ./mine.json || echo "status $?"
cmp mine.json $TRACES/synthetic/two_steps.json && echo "the input is untouched"
opscope import mine.json -o - || echo "status $?"
