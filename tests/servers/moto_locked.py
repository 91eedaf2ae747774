"""Serves moto's S3 on a port, one request at a time.

moto answers conditional writes with the right codes, but checks and writes without a lock, so that two writers can both
win. Behind one lock it is a server with the promises that the bucket needs.

    python moto_locked.py [PORT]      prints `port N` once it listens; without PORT takes a free one
"""

import io
import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

LOCK = threading.Lock()
MOTO = DomainDispatcherApplication(create_backend_app)


def one_at_a_time(environ, start_response):
    # The body is read first, so that a slow client does not hold the lock.
    if not environ.get("wsgi.input_terminated"):
        length = int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    with LOCK:
        response = MOTO(environ, start_response)
        try:
            return [b"".join(response)]
        finally:
            if hasattr(response, "close"):
                response.close()


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    server = make_server("127.0.0.1", port, one_at_a_time, threaded=True)
    print(f"port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
