"""Buckets in each VPC of a rehearsal: the first connection starts the S3 server, which ends with the network."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

SERVER_MODULE = "clusterctl_rehearsal.storage.buckets"
ADDRESS, PORT = "169.254.170.3", 80
"""A link-local address, as AWS's own services in a VPC have; no machine has it."""
POLL_S = 0.2
END_TIMEOUT_S = 5.0


class BucketService:
    """One server process for each network that ever spoke to a bucket."""

    def __init__(self, folder: Path) -> None:
        """`folder` holds one folder for each bucket."""
        self._folder = folder
        self._closing: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}

    def serve(self, network: str, listener: socket.socket) -> None:
        """Starts a server at the first connection to `listener`, and another one if it ends."""
        self.close(network)
        closing = self._closing[network] = threading.Event()
        thread = threading.Thread(target=self._serve, args=(listener, closing), daemon=True, name=f"buckets {network}")
        self._threads[network] = thread
        thread.start()

    def close(self, network: str) -> None:
        """Ends the server, and closes the socket: the kernel keeps a network while a socket in it is open."""
        closing = self._closing.pop(network, None)
        if closing is not None:
            closing.set()
            self._threads.pop(network).join(END_TIMEOUT_S)

    def _serve(self, listener: socket.socket, closing: threading.Event) -> None:
        server: subprocess.Popen[bytes] | None = None
        try:
            while not closing.wait(POLL_S):
                if server is None or server.poll() is not None:
                    waiting, _, _ = select.select([listener], [], [], 0)
                    server = self._start(listener) if waiting else None
        finally:
            listener.close()
            if server is not None:
                server.kill()
                server.wait(END_TIMEOUT_S)

    def _start(self, listener: socket.socket) -> subprocess.Popen[bytes]:
        # The server ends with the region, even if the region is killed: hence pdeathsig.
        argv = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-P", "-m", SERVER_MODULE]
        log = os.open(self._folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            return subprocess.Popen(
                [*argv, str(listener.fileno()), str(self._folder)],
                pass_fds=(listener.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        finally:
            os.close(log)
