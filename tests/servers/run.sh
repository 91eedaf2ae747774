#!/bin/sh
# Runs a command beside a moto S3 server and an Azurite on free ports, installing them first where needed:
#   tests/servers/run.sh cargo nextest run -p holdfast-bucket --test external --run-ignored all
# HOLDFAST_TEST_SERVERS names another directory for the installation.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dir=$("$here/install.sh" ${HOLDFAST_TEST_SERVERS:+"$HOLDFAST_TEST_SERVERS"})
exec "$dir/venv/bin/python" "$here/run.py" "$dir" "$@"
