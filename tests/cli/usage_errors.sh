# Wrong usage: one line on stderr, status 2, nothing on stdout.
t=$TRACES/synthetic/self_time.json
opscope nonsense || echo "status $?"
opscope report nonsense $t || echo "status $?"
opscope report operators $t --format=nonsense || echo "status $?"
opscope report operators $t --columns=name,nonsense || echo "status $?"
opscope report operators $t --group-by=nonsense || echo "status $?"
opscope report operators $t --compat=nonsense || echo "status $?"
opscope report operators $t --limit=many || echo "status $?"
opscope report operators $t -o m.xlsx || echo "status $?"
opscope advise /nonexistent.json -o ./a.b/m.tar.gz || echo "status $?"
ls
