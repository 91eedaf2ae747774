#!/bin/sh
# install.sh DIR: makes DIR the project, with its libraries from npm.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
rm -rf "$1/src"
cp -R "$here/src" "$here/wrangler.jsonc" "$1/"
if ! cmp -s "$here/package.json" "$1/package.json" || [ ! -d "$1/node_modules" ]; then
  cp "$here/package.json" "$1/"
  cd "$1"
  # No script of a package runs: nothing here is to be built.
  npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error
fi
