#!/bin/bash
# Makes the viewer's pages: web.sh SOURCE OUT DEPFILE. Libraries are fetched once into SOURCE/node_modules, as package-lock.json says.
# A tarball of a release brings the pages in SOURCE/pages (web.sh --pages SOURCE FOLDER makes them), and nothing is fetched.
set -eu
tools=$(cd "$(dirname "$0")" && pwd)

# pages SOURCE FOLDER
pages() {
	local source=$1 stamp=$1/node_modules/.opscope-lock
	(
		flock 9
		cmp -s "$source/package-lock.json" "$stamp" || {
			(cd "$source" && npm ci --no-audit --no-fund --loglevel=error >&2) && cp "$source/package-lock.json" "$stamp"
		}
	) 9>"$source/.lock"
	"$source/node_modules/.bin/esbuild" "$source/src/main.ts" --bundle --minify --format=esm --target=es2020 --legal-comments=eof \
		--loader:.css=css --outfile="$2/main.js" --log-level=warning
	cp "$source/src/index.html" "$source/src/icon.svg" "$2/"
}

if [ "$1" = --pages ]; then
	mkdir -p "$3"
	pages "$(cd "$2" && pwd)" "$3"
	exit
fi
source=$(cd "$1" && pwd) out=$2 depfile=$3
made=$source/pages
if [ ! -d "$made" ]; then
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
	pages "$source" "$made"
fi
python3 "$tools/embed.py" "$out" "$made"
printf '%s:' "$out" >"$depfile"
find "$source/src" -type f -printf ' %p' >>"$depfile"
printf ' %s %s\n' "$source/package-lock.json" "$tools/embed.py" >>"$depfile"
