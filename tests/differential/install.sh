#!/bin/sh
# install.sh DIR: installs workerd from npm into DIR.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cp "$here/package.json" "$1/"
cd "$1"
[ -x node_modules/.bin/workerd ] || npm install --no-audit --no-fund --no-package-lock --loglevel=error
node_modules/.bin/workerd --version
