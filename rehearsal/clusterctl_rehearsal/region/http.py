"""The region's HTTP side: private requests under /clusterctl/, everything else is the AWS API."""

from __future__ import annotations

import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # JSON values; what the handler's base class takes

from clusterctl_infra.names import REGION_PRIVATE, REGION_TOKEN_HEADER

from clusterctl_rehearsal.api.front import Api, Reply
from clusterctl_rehearsal.full_disk import log_traceback, told
from clusterctl_rehearsal.machines.driver import MachineError
from clusterctl_rehearsal.region.desk import Desk
from clusterctl_rehearsal.region.fault_arguments import FaultError, NoSuchNode
from clusterctl_rehearsal.region.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.region.settings import SettingsError


class RegionServer(ThreadingHTTPServer):
    """Listens on this computer only."""

    daemon_threads = True
    request_queue_size = 512  # 256 nodes are made at once

    def __init__(self, port: int, *, desk: Desk, api: Api, token: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.desk = desk
        self.api = api
        self.token = token
        self.busy = 0
        self.last_request = time.monotonic()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is not worth a line."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            log_traceback()


class _Handler(BaseHTTPRequestHandler):
    server: RegionServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def date_time_string(self, timestamp: float | None = None) -> str:
        """What the header `Date` says."""
        return super().date_time_string(time.time() + self.server.api.clock_ahead_s if timestamp is None else timestamp)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged; errors are."""

    def _answer(self) -> None:
        self.server.busy += 1
        try:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.startswith(REGION_PRIVATE):
                self._private(self.path.removeprefix(REGION_PRIVATE), body)
            else:
                headers = dict(self.headers.items())
                self._reply(self.server.api.answer(headers, body, method=self.command, path=self.path))
        finally:
            self.server.busy -= 1
            self.server.last_request = time.monotonic()

    def _private(self, verb: str, body: bytes) -> None:
        if not hmac.compare_digest(self.headers.get(REGION_TOKEN_HEADER, ""), self.server.token):
            return self._reply(Reply(status=403, body=b"{}", content_type="application/json"))
        answer = self.server.desk.answers.get(verb)
        if answer is None:
            return self._reply(Reply(status=404, body=b"{}", content_type="application/json"))
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
        except Exception as e:  # noqa: BLE001 — the boundary: the plugin gets a sentence, the log the rest
            log_traceback()
            result = {"refused": told(e)}
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
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)
