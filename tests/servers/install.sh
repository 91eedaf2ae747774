#!/bin/sh
# Installs the storage servers that the tests run against: moto (PyPI, in a virtual environment) and Azurite (npm).
# Usage: install.sh [DIRECTORY]; by default $CARGO_TARGET_DIR/servers or target/servers. What is there stays.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-${CARGO_TARGET_DIR:-$here/../../target}/servers}
mkdir -p "$dir"

if ! "$dir/venv/bin/python" -c 'import moto, boto3, azure.storage.blob' 2>/dev/null; then
    python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
        'moto[server]==5.2.*' 'azure-storage-blob==12.*'
fi
if [ ! -x "$dir/npm/node_modules/.bin/azurite-blob" ]; then
    mkdir -p "$dir/npm"
    npm install --silent --no-fund --no-audit --prefix "$dir/npm" 'azurite@3'
fi
printf '%s\n' "$dir"
