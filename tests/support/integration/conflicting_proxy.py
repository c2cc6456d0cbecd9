"""A proxy to a real API server that rejects every write with a conflict the first time."""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.integration.real_control_plane import RealControlPlane, token_of

USER = "system:kube-scheduler"
_PASSED_ON = ("Content-Type", "Accept", "User-Agent")
_CONFLICT = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Conflict",
    "message": "the object has been modified; please apply your changes to the latest version and try again",
    "code": 409,
}


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, plane: RealControlPlane) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plane = plane
        self.refused: list[tuple[str, str]] = []
        self.lock = threading.Lock()
        self.onward: set[http.client.HTTPSConnection] = set()

    def close_watches(self) -> None:
        """End the watches that have no reader any more."""
        for connection in list(self.onward):
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def refuses(self, method: str, path: str) -> bool:
        write = (method, path.partition("?")[0])
        with self.lock:
            if method == "GET" or "/leases" in path or write in self.refused:
                return False
            self.refused.append(write)
            return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.refuses(self.command, self.path):
            self._answer(409, json.dumps(_CONFLICT).encode())
            return
        context = ssl._create_unverified_context()  # noqa: S323 - a server of this test
        onward = http.client.HTTPSConnection("127.0.0.1", self.server.plane.port, context=context, timeout=60)
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        headers["Authorization"] = f"Bearer {token_of(USER)}"
        self.server.onward.add(onward)
        # Either of the two may disconnect at any time.
        with closing(onward), suppress(OSError, http.client.HTTPException):
            onward.request(self.command, self.path, body or None, headers)
            with onward.getresponse() as answer:
                if "watch=" in self.path and answer.status == 200:
                    self._stream(answer)
                else:
                    self._answer(answer.status, answer.read())
        self.server.onward.discard(onward)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while line := answer.readline():
            self.wfile.write(line)
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Discard log messages."""


@contextmanager
def conflicting(plane: RealControlPlane) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the address of the proxy, and the writes that it has rejected so far."""
    server = _Server(plane)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.refused
    finally:
        server.shutdown()
        server.close_watches()
        server.server_close()
        thread.join()
