#!/bin/sh
# Installs the programs of others that tests compare with into a virtual environment (target/peers, or the folder
# given) and prints what to export. Needs python3 with venv and a package index that pip can reach.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/target/peers}
[ -x "$folder/bin/pip" ] || python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$root/tests/peers/requirements.txt"
"$folder/bin/litestream" version >&2
echo "export HOLDFAST_LITESTREAM_BIN=$folder/bin/litestream"
