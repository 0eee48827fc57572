# Input that cannot be read: one line on stderr, status 1.
opscope report operators none.json || echo "status $?"
: >empty.json
opscope report operators empty.json || echo "status $?"
mkdir folder
opscope report operators folder || echo "status $?"
echo 'hello, world' >notes.txt
opscope report operators notes.txt || echo "status $?"
echo '{"schemaVersion": 1}' >no_events.json
opscope report operators no_events.json || echo "status $?"
