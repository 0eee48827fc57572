# -o: written whole or not at all; the suffix chooses the format.
opscope report operators $TRACES/synthetic/self_time.json -o out.csv --columns=name,calls
cat out.csv
echo keep >old.csv
opscope report operators /nonexistent.json -o old.csv || echo "status $?"
cat old.csv
ls
