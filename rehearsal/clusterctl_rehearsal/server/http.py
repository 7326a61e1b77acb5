"""The region's HTTP side: private requests under /clusterctl/, everything else is the AWS API.

Every user of the computer can connect. Only requests with the token, or signed with the region's key pair, are served;
both are in the home, which only its owner can read.
"""

from __future__ import annotations

import errno
import hmac
import io
import json
import socket
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # JSON values; what the handler's base class takes

from clusterctl_infra.names import REGION_PRIVATE, REGION_TOKEN_HEADER
from clusterctl_infra.region_keys import KeyPair

from clusterctl_rehearsal.api.front import Api, Reply
from clusterctl_rehearsal.api.signature import Authorization, Request, check_signature, known_authorization
from clusterctl_rehearsal.full_disk import log_traceback, message_for_client
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.fault_arguments import FaultError, NoSuchNode
from clusterctl_rehearsal.region.settings import SettingsError
from clusterctl_rehearsal.server.activity import Activity
from clusterctl_rehearsal.server.connections import PROOF_BYTES, GuardedReads, UnprovenConnections
from clusterctl_rehearsal.server.private_requests import PrivateRequests

MAX_BODY_BYTES = 4 * 1024 * 1024
"""The largest body that is read, S3 objects included. AWS takes at most 1 MiB for a state machine's definition."""
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
ENDING = AwsError("Unavailable", "The rehearsed region is ending: the next command starts it again.", status=503)
"""What the region answers once it ends. AWS's clients ask again after this code (EC2 API, error codes; 2026-11)."""
PAUSE_S = 0.1
"""How long the server waits when the process can open no more files."""


class RegionServer(ThreadingHTTPServer):
    """The region's HTTP server, which listens on this computer only."""

    daemon_threads = True
    request_queue_size = 512  # 256 nodes are made at once

    def __init__(
        self,
        port: int,
        *,
        requests: PrivateRequests,
        api: Api,
        token: str,
        keys: KeyPair,
        listens: bool = True,
    ) -> None:
        """`keys`: of the home's owner. `listens`: False where connections are only handed to `finish_request`."""
        super().__init__(("127.0.0.1", port), _Handler, bind_and_activate=listens)
        self.requests = requests
        self.api = api
        self.token = token
        self.keys = keys
        self.unproven = UnprovenConnections()
        self.activity = Activity()

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection. Raises OSError; after a pause if the process can open no more files."""
        try:
            return super().get_request()
        except OSError as e:
            if e.errno in NO_ROOM:
                time.sleep(PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in its own thread, once there is a place for it."""
        self.unproven.admit(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        """Closes a connection."""
        self.unproven.forget(request)
        super().close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs the error, unless a client closed its connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            log_traceback()


class _Handler(BaseHTTPRequestHandler):
    server: RegionServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Has `GuardedReads` read the connection: they limit one that has not proved whose it is."""
        super().setup()
        self.rfile.close()
        self.reads = GuardedReads(self.connection, self.server.unproven)
        self.rfile = io.BufferedReader(self.reads)

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def handle_expect_100(self) -> bool:
        """Sends `100 Continue`, unless the body is too large: then the client gets the refusal instead."""
        length = content_length(self.headers.get("Content-Length"))
        return True if length is None or length > MAX_BODY_BYTES else super().handle_expect_100()

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The value of the header `Date`: the time of AWS's clock, which may be ahead or behind."""
        return super().date_time_string(time.time() + self.server.api.clock_ahead_s if timestamp is None else timestamp)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged; errors are."""

    def _answer(self) -> None:
        length = content_length(self.headers.get("Content-Length"))
        if (
            self.headers.get("Transfer-Encoding") is not None
        ):  # as S3's MissingContentLength; no client of ours sends it
            return self._turn_away(_empty_reply(411), PROOF_BYTES)
        if length is None:
            return self._turn_away(_empty_reply(400), 0)
        try:
            authorization = self._authorization()
        except AwsError as e:
            return self._turn_away(self._refusal(e), length)
        if length > MAX_BODY_BYTES:
            return self._turn_away(self._too_large(), length)
        self.reads.prove()
        if not self.server.activity.begin():  # the client starts the next region
            return self._turn_away(self._refusal(ENDING), length)
        try:
            self._serve(authorization, self.rfile.read(length))
        finally:
            self.server.activity.end()

    def _authorization(self) -> Authorization | None:
        """The unchecked authorization of a call of AWS; None for a private request with the token. Raises AwsError."""
        if not self.path.startswith(REGION_PRIVATE):
            return known_authorization(self.headers, self.server.keys)
        if not hmac.compare_digest(self.headers.get(REGION_TOKEN_HEADER, "").encode(), self.server.token.encode()):
            raise AwsError("InvalidClientTokenId", "The token is not the region's", status=403)
        return None

    def _serve(self, authorization: Authorization | None, body: bytes) -> None:
        if authorization is None:
            return self._private(self.path.removeprefix(REGION_PRIVATE), body)
        request = Request(method=self.command, target=self.path, headers=self.headers, body=body)
        try:
            check_signature(request, authorization, self.server.keys, now=time.time())
            self.server.requests.check_credentials()
        except AwsError as e:
            return self._turn_away(self._refusal(e), 0)
        self._reply(self.server.api.answer(dict(self.headers.items()), body, method=self.command, path=self.path))

    def _refusal(self, error: AwsError) -> Reply:
        if self.path.startswith(REGION_PRIVATE):
            return _empty_reply(error.status)
        return self.server.api.refusal(dict(self.headers.items()), error)

    def _too_large(self) -> Reply:
        if self.path.startswith(REGION_PRIVATE):
            return _empty_reply(413)
        return self.server.api.too_large(dict(self.headers.items()))

    def _turn_away(self, reply: Reply, unread_bytes: int) -> None:
        """Answers, reads what still arrives (else the answer would be lost), and ends the connection."""
        self.close_connection = True
        self._reply(reply)
        self.rfile.read(min(unread_bytes, PROOF_BYTES))

    def _private(self, verb: str, body: bytes) -> None:
        answer = self.server.requests.answers.get(verb)
        if answer is None:
            return self._reply(_empty_reply(404))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        result: dict[str, Any]
        try:
            result = {"result": answer(json.loads(body or b"{}"), self._progress)}
        except AwsError as e:
            result = {"aws": {"code": e.code, "message": e.message, "status": e.status}}
        except MachineError as e:
            result = {"refused": f"{e}; next: {e.hint}" if e.hint else str(e)}
        except NoSuchNode as e:
            result = {"absent": str(e)}
        except (StandInRefusal, FaultError, SettingsError) as e:
            result = {"refused": str(e)}
        except Exception as e:  # noqa: BLE001 — the boundary: the client gets a sentence, the log the rest
            log_traceback()
            result = {"refused": message_for_client(e)}
        self._line(result)
        self.wfile.write(b"0\r\n\r\n")

    def _progress(self, message: str) -> None:
        self._line({"progress": message})

    def _line(self, row: dict[str, Any]) -> None:
        line = json.dumps(row).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def _reply(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        if not any(name == "Content-Length" for name, _ in reply.headers):
            self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":  # an answer to HEAD has no body, whatever its Content-Length
            self.wfile.write(reply.body)


def content_length(text: str | None) -> int | None:
    """The length of a request's body; 0 without the header, None if the header is no number."""
    if text is None:
        return 0
    return int(text) if text.isascii() and text.isdigit() else None


def _empty_reply(status: int) -> Reply:
    return Reply(status=status, body=b"{}", content_type="application/json")
