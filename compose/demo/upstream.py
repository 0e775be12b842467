#!/usr/bin/env python3
"""The demo's upstream: answers every request with what reached it.

    compose/demo/upstream.py [PORT]      on 127.0.0.1; 0, the default, takes any free port; the first line says which
"""

import http.server
import sys


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        lines = [self.requestline, *(f"{name}: {value}" for name, value in self.headers.items())]
        body = "\n".join(lines).encode("latin-1") + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, *unused):
        """The edge's access log is the one to look at."""


def main():
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Echo) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


main()
