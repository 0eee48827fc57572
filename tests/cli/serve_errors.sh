# What `serve` refuses before it listens: one line on stderr, nothing on stdout.
t=$TRACES/synthetic/self_time.json
opscope help | grep -q '^  serve ' || { echo "built without libmicrohttpd" >&2; exit 77; }
opscope serve || echo "status $?"
opscope serve --port=70000 $t || echo "status $?"
opscope serve --port=x $t || echo "status $?"
opscope serve --memory=0 $t || echo "status $?"
opscope serve --memory=5P $t || echo "status $?"
opscope serve --query-time=0 $t || echo "status $?"
opscope serve --editor=emacs $t || echo "status $?"
opscope serve --editor='vscode://file/x' $t || echo "status $?"
opscope serve --path-prefix=x $t || echo "status $?"
opscope serve --nonsense $t || echo "status $?"
for option in --bind=localhost "-p 0" --path-prefix=/x --allow-host=name --query-time=1 --read-only --editor=none; do
	opscope serve $option --export=pages.html $t || echo "status $?"
done
ls
if [ -e /dev/full ]; then # an address that nobody can read
	timeout 20 opscope serve -p 0 $t >/dev/full || echo "status $?"
fi
opscope serve -p 0 ./nothing || echo "status $?"
