# Without a name: all reports by the question that they answer, none cut at 80 columns.
opscope report > list
grep -c '?$' list
awk 'length($0) > 80' list
grep -A3 '^What do comm' list
[ "$(grep -c '^  ' list)" = "$(opscope report --format=csv | tail -n +2 | wc -l)" ]
opscope report --format=csv --columns=name,question --filter=comm
