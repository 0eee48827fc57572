# The same input gives the same bytes, in every format.
for report in overview operators kernels; do
	for format in text csv json html; do
		opscope report $report $TRACES/synthetic/all_categories.json --format=$format >one
		opscope report $report $TRACES/synthetic/all_categories.json --format=$format >two
		cmp one two && echo "$report $format"
	done
done
