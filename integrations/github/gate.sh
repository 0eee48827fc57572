#!/bin/bash
# What action.yml runs: `opscope gate check` with its inputs, which come as environment variables. Other CI systems can call it, too.
#   GATE_RUNS       recordings, one path a line
#   GATE_BASELINE   what `opscope gate learn` wrote
#   GATE_OPTIONS    further options, one a line
#   GATE_UNDECIDED  pass (the default) or fail
#   GATE_JUNIT      JUnit XML goes there; empty = nowhere
#   OPSCOPE         the program (opscope)
# Appends verdict=pass|fail|undecided|error to $GITHUB_OUTPUT. The status is 0 where the job may go on, 3 of a failed gate, 4 of an undecided one that shall fail, another of an error.
set -u

# end STATUS VERDICT
end() {
	[ -z "${GITHUB_OUTPUT:-}" ] || echo "verdict=$2" >>"$GITHUB_OUTPUT"
	exit "$1"
}

wrong() {
	echo "gate.sh: $*" >&2
	end 2 error
}

[ -n "${GATE_RUNS:-}" ] && [ -n "${GATE_BASELINE:-}" ] || wrong "GATE_RUNS and GATE_BASELINE were expected"
case "${GATE_UNDECIDED:=pass}" in
pass | fail) ;;
*) wrong "GATE_UNDECIDED=$GATE_UNDECIDED: pass or fail was expected" ;;
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
runs=(${found[@]+"${found[@]}"}) # older versions of bash take an empty array for one that is not set
lines "${GATE_OPTIONS:-}"
options=(--baseline="$GATE_BASELINE" --github ${found[@]+"${found[@]}"})
[ -z "${GATE_JUNIT:-}" ] || options+=(--junit="$GATE_JUNIT")

"${OPSCOPE:-opscope}" gate check "${options[@]}" -- ${runs[@]+"${runs[@]}"}
status=$?
case $status in
0) verdict=pass ;;
3) verdict=fail ;;
4) verdict=undecided ;;
*) verdict=error ;;
esac
[ "$verdict $GATE_UNDECIDED" != "undecided pass" ] || status=0
end "$status" "$verdict"
