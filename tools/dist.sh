#!/bin/bash
# What `meson dist` packs besides the files of git: the viewer's pages, so that a build of the tarball fetches nothing. What makes Debian packages of it is
# not part of it.
set -eu
"$MESON_SOURCE_ROOT/tools/web.sh" --pages "$MESON_SOURCE_ROOT/web" "$MESON_DIST_ROOT/web/pages"
rm -rf "$MESON_DIST_ROOT/debian"
