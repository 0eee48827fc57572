#!/bin/bash
# Makes the viewer's pages, web.sh SOURCE OUT DEPFILE, or the script that draws one picture, packed with gzip: web.sh SOURCE OUT.gz DEPFILE plot. Libraries are fetched once into
# SOURCE/node_modules, as package-lock.json says.
# A tarball of a release brings what is made in SOURCE/pages and SOURCE/pages-plot (web.sh --pages SOURCE FOLDER makes FOLDER and FOLDER-plot), and nothing is fetched.
set -eu
tools=$(cd "$(dirname "$0")" && pwd)

# bundle SOURCE main|plot FOLDER
bundle() {
	local source=$1 what=$2 folder=$3 stamp=$1/node_modules/.opscope-lock format=esm
	(
		flock 9
		cmp -s "$source/package-lock.json" "$stamp" || {
			(cd "$source" && npm ci --no-audit --no-fund --loglevel=error >&2) && cp "$source/package-lock.json" "$stamp"
		}
	) 9>"$source/.lock"
	[ "$what" = main ] || format=iife
	mkdir -p "$folder"
	"$source/node_modules/.bin/esbuild" "$source/src/$what.ts" --bundle --minify --format="$format" --target=es2020 --legal-comments=eof --loader:.css=css --outfile="$folder/$what.js" --log-level=warning
	[ "$what" = plot ] || cp "$source/src/index.html" "$source/src/icon.svg" "$folder/"
}

if [ "$1" = --pages ]; then
	source=$(cd "$2" && pwd)
	bundle "$source" main "$3"
	bundle "$source" plot "$3-plot"
	exit
fi
source=$(cd "$1" && pwd) out=$2 depfile=$3 what=${4:-main}
made=$source/pages
[ "$what" = main ] || made=$source/pages-plot
if [ ! -d "$made" ]; then
	made=$(mktemp -d)
	trap 'rm -rf "$made"' EXIT
	bundle "$source" "$what" "$made"
fi
if [ "$what" = main ]; then
	python3 "$tools/embed.py" "$out" "$made"
else
	gzip -9nc "$made/$what.js" >"$out.part"
	mv "$out.part" "$out"
fi
printf '%s:' "$out" >"$depfile"
find "$source/src" -type f -printf ' %p' >>"$depfile"
printf ' %s %s\n' "$source/package-lock.json" "$tools/embed.py" >>"$depfile"
