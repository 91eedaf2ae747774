"""Starts the storage servers, makes a bucket in each, runs a command, stops them. See run.sh."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

import boto3
from azure.storage.blob import BlobServiceClient

HERE = pathlib.Path(__file__).resolve().parent
BUCKET = "holdfast-test"

# Azurite's published account, in its documentation.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def start(command, pattern, log):
    """Starts a server and returns it with the port that its first lines name."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    for line in server.stdout:
        found = re.search(pattern, line)
        if found:
            # The rest of its output goes nowhere, but must be read, or the server would block on a full pipe.
            threading.Thread(target=lambda: [None for _ in server.stdout], daemon=True).start()
            return server, int(found.group(1))
    status = server.wait()
    log.seek(0)
    raise SystemExit(f"{command[0]} ended before it listened, with status {status}:\n{log.read()}")


def main():
    installed, command = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if not command:
        raise SystemExit("usage: run.sh COMMAND...")
    servers = []
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder) / "log", "w+") as log:
        try:
            moto, s3_port = start([sys.executable, str(HERE / "moto_locked.py")], r"port (\d+)", log)
            servers.append(moto)
            azurite_command = [
                str(installed / "npm/node_modules/.bin/azurite-blob"),
                "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence",
                "--disableTelemetry", "--skipApiVersionCheck",
            ]
            azurite, az_port = start(azurite_command, r"successfully listens on http://\S+:(\d+)", log)
            servers.append(azurite)
            sys.exit(subprocess.call(command, env=prepare(s3_port, az_port)))
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()


def prepare(s3_port, az_port):
    """Makes the buckets, and returns the environment that names them."""
    s3_endpoint = f"http://127.0.0.1:{s3_port}"
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    s3 = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name=keys["AWS_REGION"],
        aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
    )
    s3.create_bucket(Bucket=BUCKET)
    az_endpoint = f"http://127.0.0.1:{az_port}/{AZURE_ACCOUNT}"
    account = BlobServiceClient(az_endpoint, credential={"account_name": AZURE_ACCOUNT, "account_key": AZURE_KEY})
    account.create_container(BUCKET)
    return {
        **os.environ,
        **keys,
        "HOLDFAST_TEST_S3_URL": f"s3://{BUCKET}",
        "HOLDFAST_TEST_S3_ENDPOINT": s3_endpoint,
        "HOLDFAST_TEST_AZ_URL": f"az://{BUCKET}",
        "HOLDFAST_TEST_AZ_ENDPOINT": az_endpoint,
        "AZURE_STORAGE_ACCOUNT_NAME": AZURE_ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": AZURE_KEY,
        # The server of `gs://` is in the test itself, and takes no tokens: this says that there are none to be had.
        "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(
            {"private_key": "none", "private_key_id": "none", "client_email": "none", "disable_oauth": True}
        ),
    }


if __name__ == "__main__":
    main()
