"""Server that receives a Sentry client's envelopes over a real socket."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SentryServer:
    def __init__(self, port):
        self.dsn = f"http://key@127.0.0.1:{port}/42"
        self.bodies = []  # decompressed
        self.paths = []

    @property
    def events(self):
        """An envelope is a header line, then for each item a header line and the item."""
        found = []
        for body in self.bodies:
            _, *lines = body.splitlines()
            for head, item in zip(lines[::2], lines[1::2], strict=False):
                if json.loads(head)["type"] == "event":
                    found.append(json.loads(item))
        return found


@contextmanager
def sentry_server():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            taken.paths.append(self.path)
            taken.bodies.append(body)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    taken = SentryServer(server.server_port)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield taken
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
