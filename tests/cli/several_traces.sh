# Where one trace is wanted and there are several: which options tell them apart, with their values.
mkdir job
trace() {
	echo "{\"distributedInfo\":{\"rank\":$2,\"world_size\":11},\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op$2\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":2}]}" >"job/$1.json"
}
trace first 0
trace second 1
trace third 10
opscope report operators job || echo "status $?"
opscope report operators job --rank=10 --format=csv --columns=name
rm job/first.json job/second.json
trace fourth 10 # the same rank
opscope report operators job || echo "status $?"
