#!/bin/bash
# What action.yml runs: `opscope gate check` with its inputs, which come as environment variables. Other CI systems can call it, too.
#   GATE_RUNS       recordings, one path a line
#   GATE_BASELINE   what `opscope gate learn` wrote
#   GATE_OPTIONS    further options, one a line
#   GATE_UNDECIDED  pass (the default) or fail
#   GATE_JUNIT      JUnit XML goes there; empty = nowhere
#   OPSCOPE         the program (opscope)
# Appends verdict=pass|fail|undecided|error to $GITHUB_OUTPUT. The status is 0 where the job may go on, 3 of a failed gate, 4 of an undecided one that shall fail, 1 or 2 of an error.
set -u
: "${GATE_RUNS:?}" "${GATE_BASELINE:?}"
case "${GATE_UNDECIDED:=pass}" in
pass | fail) ;;
*) echo "gate.sh: GATE_UNDECIDED=$GATE_UNDECIDED: pass or fail was expected" >&2; exit 2 ;;
esac

# lines TEXT: those that are not empty, into the array `found`.
lines() {
	local line
	found=()
	while IFS= read -r line; do
		[ -z "$line" ] || found+=("$line")
	done <<<"$1"
}

lines "$GATE_RUNS"
runs=("${found[@]}")
lines "${GATE_OPTIONS:-}"
options=(--baseline="$GATE_BASELINE" --github "${found[@]}")
[ -z "${GATE_JUNIT:-}" ] || options+=(--junit="$GATE_JUNIT")

"${OPSCOPE:-opscope}" gate check "${options[@]}" -- "${runs[@]}"
status=$?
case $status in
0) verdict=pass ;;
3) verdict=fail ;;
4) verdict=undecided ;;
*) verdict=error ;;
esac
[ -z "${GITHUB_OUTPUT:-}" ] || echo "verdict=$verdict" >>"$GITHUB_OUTPUT"
[ "$verdict $GATE_UNDECIDED" != "undecided pass" ] || status=0
exit "$status"
