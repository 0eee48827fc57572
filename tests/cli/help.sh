# --help goes to stdout with status 0; the commands, reports and formats are listed.
opscope --help | sed -n '1,4p'
opscope help | grep -c '^  '  >/dev/null
opscope --version | grep -c '^opscope [0-9]'
opscope report --help | head -3
COLUMNS=80 opscope --help | awk 'length($0) > 80' | head -3
COLUMNS=80 opscope --help | sed -n '/^  flight-recorder/,/^  memory-snapshot/p' | head -2
