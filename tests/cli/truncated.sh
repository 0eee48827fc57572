# Everything before the damage is used, and it says so with place and number.
head -c 500 $TRACES/synthetic/self_time.json >cut.json
opscope report operators cut.json --format=csv --columns=name,calls
