#!/bin/bash
# Makes the viewer's pages, web.sh SOURCE OUT DEPFILE, or the script that draws one picture, packed with gzip: web.sh SOURCE OUT.gz DEPFILE plot. Libraries are fetched once into
# SOURCE/node_modules, as package-lock.json says.
set -eu
source=$(cd "$1" && pwd) out=$2 depfile=$3 what=${4:-main}
tools=$(cd "$(dirname "$0")" && pwd)
(
	flock 9
	stamp=$source/node_modules/.opscope-lock
	cmp -s "$source/package-lock.json" "$stamp" || {
		(cd "$source" && npm ci --no-audit --no-fund --loglevel=error >&2) && cp "$source/package-lock.json" "$stamp"
	}
) 9>"$source/.lock"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle() {
	"$source/node_modules/.bin/esbuild" "$source/src/$what.ts" --bundle --minify --target=es2020 --legal-comments=eof --loader:.css=css --outfile="$work/$what.js" --log-level=warning "$@"
}
if [ "$what" = main ]; then
	bundle --format=esm
	cp "$source/src/index.html" "$source/src/icon.svg" "$work/"
	python3 "$tools/embed.py" "$out" "$work"
else
	bundle --format=iife
	gzip -9nc "$work/$what.js" >"$out.part"
	mv "$out.part" "$out"
fi
printf '%s:' "$out" >"$depfile"
find "$source/src" -type f -printf ' %p' >>"$depfile"
printf ' %s %s\n' "$source/package-lock.json" "$tools/embed.py" >>"$depfile"
