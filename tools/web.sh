#!/bin/bash
# Makes the viewer's pages: web.sh SOURCE OUT DEPFILE. Libraries are fetched once into SOURCE/node_modules, as package-lock.json says.
set -eu
source=$(cd "$1" && pwd) out=$2 depfile=$3
(
	flock 9
	stamp=$source/node_modules/.opscope-lock
	cmp -s "$source/package-lock.json" "$stamp" || {
		(cd "$source" && npm ci --no-audit --no-fund --loglevel=error >&2) && cp "$source/package-lock.json" "$stamp"
	}
) 9>"$source/.lock"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$source/node_modules/.bin/esbuild" "$source/src/main.ts" --bundle --minify --format=esm --target=es2020 --legal-comments=eof \
	--loader:.css=css --outfile="$work/main.js" --log-level=warning
cp "$source/src/index.html" "$source/src/icon.svg" "$work/"
python3 "$(dirname "$0")/embed.py" "$out" "$work"
printf '%s:' "$out" >"$depfile"
find "$source/src" -type f -printf ' %p' >>"$depfile"
printf ' %s %s\n' "$source/package-lock.json" "$(cd "$(dirname "$0")" && pwd)/embed.py" >>"$depfile"
