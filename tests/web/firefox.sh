#!/bin/sh
# Firefox, whose home is its profile, the one folder among its words, and which ends with the process that started it, even if that is killed.
for word; do
	[ ! -d "$word" ] || export HOME="$word"
done
exec setpriv --pdeathsig KILL "$FIREFOX" "$@"
