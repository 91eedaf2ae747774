#!/bin/sh
# run.sh DIR URL [TOKEN]: installs the Python libSQL client into DIR and runs check.py against URL, for example
# http://127.0.0.1:8080/-/db/users
# The package is `libsql`, which speaks Hrana 3 over HTTP. The older `libsql-client` speaks only Hrana 1 there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
shift
[ -x "$dir/bin/python" ] || python3 -m venv "$dir"
"$dir/bin/python" -c 'import libsql' 2>/dev/null ||
    "$dir/bin/pip" install --quiet --disable-pip-version-check 'libsql==0.1.11'
exec "$dir/bin/python" "$here/check.py" "$@"
