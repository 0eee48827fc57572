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
opscope serve -p 0 ./nothing || echo "status $?"
opscope dlprofviewer || echo "status $?"
opscope dlprofviewer $t $t || echo "status $?"
opscope dlprofviewer -p 0 ./nothing || echo "status $?"
opscope dlprofviewer --version | sed 's/[0-9].*//'
