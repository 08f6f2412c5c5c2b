"""A server in front of another that fails as storage does now and then."""

import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUSY = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)


class FailingServer:
    """Forwards requests to a server; `fails` returns how a request fails, given its number.

    That is a status of 500 or 503, "cut" for a truncated answer, or None.
    """

    def __init__(self, behind, fails):
        self.behind, self.fails = behind, fails
        self.requests = self.failed = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.body()
                how = outer.how()
                if how in (500, 503):
                    self.send_response(how)
                    self.send_header("Content-Type", "application/xml")
                    self.send_header("Content-Length", str(len(BUSY)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(BUSY)
                    return
                connection = HTTPConnection(outer.behind)
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() not in ("transfer-encoding", "content-length", "expect")
                }
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                content = response.read()
                self.send_response(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                length = response.getheader("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", length or str(len(content)))
                self.end_headers()
                if how == "cut":
                    self.wfile.write(content[: len(content) // 2])
                    self.close_connection = True
                    return
                self.wfile.write(content)

            def body(self):
                if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = []
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                while self.rfile.readline().strip():
                    pass
                return b"".join(parts)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def how(self):
        with self._lock:
            self.requests += 1
            failure = self.fails(self.requests)
            self.failed += failure is not None
            return failure

    def close(self):
        self.server.shutdown()
        self.server.server_close()
