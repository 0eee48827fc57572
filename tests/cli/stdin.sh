# `-` is standard input, plain or gzip.
opscope report operators - --format=csv --columns=name,calls <$TRACES/synthetic/self_time.json
gzip -c $TRACES/synthetic/self_time.json | opscope report operators - --format=csv --columns=name,calls
