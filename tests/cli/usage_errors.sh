# Wrong usage: one line on stderr, status 2, nothing on stdout.
t=$TRACES/synthetic/self_time.json
opscope nonsense || echo "status $?"
opscope report nonsense $t || echo "status $?"
opscope report operators $t --format=nonsense || echo "status $?"
opscope report operators $t --columns=name,nonsense || echo "status $?"
opscope report operators $t --group-by=nonsense || echo "status $?"
opscope report waits $t --compat=nonsense || echo "status $?"
opscope advise $t --compat=nonsense 2>/dev/null || echo "status $?"
opscope report operators $t --limit=many || echo "status $?"
opscope report operators $t -o m.xlsx || echo "status $?"
opscope advise /nonexistent.json -o ./a.b/m.tar.gz || echo "status $?"
ls
for command in "import $t" "export chrome-list $t" "report operators $t"; do opscope $command -o "" || echo "status $?"; done
opscope report operators $t --limit=99999999999999999999 || echo "status $?"
# A full disk is no success; a pipe is not looked into.
if [ -e /dev/full ]; then
	for option in --help --version "report --help"; do opscope $option >/dev/full || echo "status $?"; done
fi
mkfifo pipe
opscope import $t -o pipe || echo "status $?"
rm pipe
