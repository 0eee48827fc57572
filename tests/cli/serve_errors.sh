# What `serve` and `dlprofviewer` refuse before they listen: one line on stderr, nothing on stdout.
t=$TRACES/synthetic/self_time.json
opscope help | grep -q '^  serve ' || exit 0
opscope serve || echo "status $?"
opscope serve --port=70000 $t || echo "status $?"
opscope serve --port=x $t || echo "status $?"
opscope serve --memory=0 $t || echo "status $?"
opscope serve --memory=5T $t || echo "status $?"
opscope serve --query-time=0 $t || echo "status $?"
opscope serve --path-prefix=x $t || echo "status $?"
opscope serve --nonsense $t || echo "status $?"
for option in --bind=localhost "-p 0" --path-prefix=/x --allow-host=name --query-time=1 --read-only; do
	opscope serve $option --export=pages.html $t || echo "status $?"
done
ls
if [ -e /dev/full ]; then # an address that nobody can read
	timeout 20 opscope serve -p 0 $t >/dev/full || echo "status $?"
	timeout 20 opscope dlprofviewer -p 0 $t >/dev/full || echo "status $?"
fi
opscope serve -p 0 ./nothing || echo "status $?"
opscope dlprofviewer || echo "status $?"
opscope dlprofviewer $t $t || echo "status $?"
opscope dlprofviewer -p 0 ./nothing || echo "status $?"
opscope dlprofviewer --version | sed 's/[0-9].*//'
