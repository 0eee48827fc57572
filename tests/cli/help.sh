# --help goes to stdout with status 0; the commands, reports and formats are listed.
opscope --help | sed -n '1,4p'
opscope help | grep -c '^  '  >/dev/null
opscope --version | grep -c '^opscope [0-9]'
opscope report --help | head -3
