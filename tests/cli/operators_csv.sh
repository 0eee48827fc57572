# CSV: column ids as header, numbers in full.
opscope report operators $TRACES/synthetic/self_time.json --format=csv
