# What `dlprofviewer` refuses before it listens: one line on stderr, nothing on stdout.
t=$TRACES/synthetic/self_time.json
opscope help | grep -q '^  dlprofviewer ' || { echo "built without libmicrohttpd" >&2; exit 77; }
if [ -e /dev/full ]; then # an address that nobody can read
	timeout 20 opscope dlprofviewer -p 0 $t >/dev/full || echo "status $?"
fi
opscope dlprofviewer || echo "status $?"
opscope dlprofviewer $t $t || echo "status $?"
opscope dlprofviewer -p 0 ./nothing || echo "status $?"
opscope dlprofviewer --version | sed 's/[0-9].*//'
