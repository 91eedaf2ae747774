#!/bin/sh
# run.sh DIR URL [TOKEN]: installs @libsql/client into DIR and runs check.mjs against URL, for example
# http://127.0.0.1:8080/-/db/users/ (with the slash: the client resolves its paths against it).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
shift
mkdir -p "$dir"
cp "$here/package.json" "$here/check.mjs" "$dir/"
cd "$dir"
[ -d node_modules/@libsql/client ] || npm install --no-audit --no-fund --no-package-lock --loglevel=error
exec node check.mjs "$@"
