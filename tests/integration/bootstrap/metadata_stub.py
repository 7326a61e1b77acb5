"""A metadata service inside a test's network: a token and a Date, which the test may shift for one machine."""

from __future__ import annotations

import socket
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MetadataStub:
    """Answers like IMDSv2 as far as a boothook asks; it knows a machine by its address."""

    def __init__(self, listener: socket.socket) -> None:
        self.shift_s: dict[str, float] = {}
        """Address → seconds that its Date is ahead of this computer's clock."""
        self.silent: set[str] = set()
        """Addresses whose connections are closed without a word."""
        self.asked: list[tuple[str, str]] = []
        """(address, request line) of every request answered."""
        self._server = _Server(listener, self)

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, stub: MetadataStub) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
        self.stub = stub


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 5

    def do_PUT(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        stub, address = self.server.stub, str(self.client_address[0])
        if address in stub.silent:
            self.close_connection = True
            return
        stub.asked.append((address, self.requestline))
        self.send_response_only(200)
        self.send_header("Date", formatdate(time.time() + stub.shift_s.get(address, 0), usegmt=True))
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"token")

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""
