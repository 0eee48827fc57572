# Text is searched in time that grows with the text alone; text times pattern would take hours. A pattern of LIKE, in which each place is tried, has a limit.
for value in "instr(hex(zeroblob(20000000)), hex(zeroblob(10000000)) || '1')" "length(replace(hex(zeroblob(20000000)), hex(zeroblob(10000000)) || '1', 'x'))" \
	"length(trim(hex(zeroblob(1000000)), replace(hex(zeroblob(500000)), '00', 'äö') || '10'))" "'x' LIKE '%' || hex(zeroblob(4000))" "'x' LIKE '%' || hex(zeroblob(5000))"; do
	opscope sql --format=csv $TRACES/synthetic/training_gpu.json "SELECT $value AS v" 2>&1 || echo "status $?"
done
