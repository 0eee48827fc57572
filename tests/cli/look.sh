# opscope INPUT: the overview and the first findings; several traces are listed. Nearest words for commands, reports and options.
opscope "$TRACES/synthetic/two_steps.json" --width=80 > look
grep -E '^(Where|Steps|GPU|Environment|Findings)' look # the headings: without the table of steps
[ "$(grep -cE '^(high|medium|low|info)  ' look)" -le 3 ]
opscope look "$TRACES/synthetic/two_steps.json" --section=steps --format=csv --columns=step | head -2
opscope look "$TRACES/synthetic/two_steps.json" --format=json | grep -c '"advise"'
mkdir traces
cp "$TRACES/synthetic/two_steps.json" "$TRACES/synthetic/self_time.json" traces
opscope traces --width=40 # the options of output hold for the list, too
opscope traces --format=csv --columns=worker
opscope --width=80 "$TRACES/synthetic/two_steps.json" | cmp - look # options may stand first
opscope --names full --width 80 "$TRACES/synthetic/two_steps.json" | grep -c '^Findings'
opscope --width=80 report kernels x || echo "status $?"
opscope --wdith=80 x || echo "status $?"
for words in overview none.json reprot 'report loader x' 'report comunication x' 'report nothing_near x' 'report operators x --gruop-by=name' 'report operators x --stps=1' \
	'advise x --fomat=csv' 'info x --inptu-format=a' 'sql x --formt=csv' 'report kernels x --names=long' 'look x --wdith=3'; do
	opscope $words || echo "status $?"
done
