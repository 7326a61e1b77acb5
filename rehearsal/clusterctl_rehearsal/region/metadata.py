"""The instance metadata service, one per VPC, on a socket inside it: IMDSv2, and IMDSv1 unless a token is required."""

from __future__ import annotations

import base64
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any  # what the handler's base class takes

from clusterctl_infra.names import REHEARSAL_CREDENTIAL

from clusterctl_rehearsal.region.record import ACCOUNT_ID, Record
from clusterctl_rehearsal.region.scheduled_events import event_pages
from clusterctl_rehearsal.region.spot_notices import notice_pages

Lookup = Callable[[str, str], Record | None]
"""(network, private address) → the live instance that has it."""
RoleOf = Callable[[Record], str | None]
"""The name of an instance's role; None if it has none."""
Ask = Callable[[Record, Mapping[str, str], bytes], tuple[int, bytes]]
"""(instance, headers, body) of a machine's request to AWS → (status, body). Machines have no other way to AWS."""
MAX_TOKEN_S = 21600
SIMULATED_CREDENTIALS = {
    "Code": "Success",
    "Type": "AWS-HMAC",
    "AccessKeyId": REHEARSAL_CREDENTIAL,
    "SecretAccessKey": REHEARSAL_CREDENTIAL,
    "Token": REHEARSAL_CREDENTIAL,
    "Expiration": "2100-01-01T00:00:00Z",
}
"""The credentials of every machine's role, valid nowhere."""


class MetadataService:
    """Answers each machine about itself; it knows a machine by the address that the request comes from."""

    def __init__(self, lookup: Lookup, *, role_of: RoleOf = lambda record: None, ask: Ask | None = None) -> None:
        self._lookup = lookup
        self._role_of = role_of
        self._ask = ask
        self._servers: dict[str, ThreadingHTTPServer] = {}

    def serve(self, network: str, listener: socket.socket) -> None:
        """Answers on `listener` until the network is closed."""
        self.close(network)
        server = _Server(listener, network, self._lookup, self._role_of, self._ask)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        self._servers[network] = server

    def close(self, network: str) -> None:
        """Stops answering, and closes the socket: the kernel keeps a network while a socket in it is open."""
        server = self._servers.pop(network, None)
        if server is not None:
            server.shutdown()
            server.server_close()


def metadata_text(record: Record, path: str, role: str | None = None) -> str | None:
    """The page at a path under `/latest/meta-data/`; None if there is none. A folder's page lists its names."""
    tree = _tree(record)
    if role is not None:
        tree["iam"] = {"security-credentials": {role: json.dumps(SIMULATED_CREDENTIALS)}}
    node: Any = tree
    for part in path.strip("/").split("/"):
        if part == "":
            break
        node = node.get(part) if isinstance(node, dict) else None
        if node is None:
            return None
    if isinstance(node, dict):
        return "\n".join(f"{key}/" if isinstance(value, dict) else key for key, value in node.items())
    return str(node)


def _tree(record: Record) -> dict[str, Any]:
    facts, outputs = record.facts, record.outputs
    cards = {
        card["mac"]: {
            "device-number": card["device"],
            "interface-id": card["id"],
            "local-ipv4s": card["ip"] or "",
            "mac": card["mac"],
            "network-card": card["card"],
            "subnet-id": card["subnet"],
            "vpc-id": facts["vpc"],
        }
        for card in facts["interfaces"]
    }
    tags = {key: value for key, value in record.tags.items() if "/" not in key and " " not in key}
    shown = facts["metadata_options"].get("instanceMetadataTags") == "enabled"
    return {
        "ami-id": facts["image"],
        "ami-launch-index": 0,
        "hostname": outputs["privateDns"],
        "instance-action": "none",
        "instance-id": record.id,
        "instance-life-cycle": facts["market"] or "on-demand",
        "instance-type": facts["instance_type"],
        "local-hostname": outputs["privateDns"],
        "local-ipv4": outputs["privateIp"],
        "mac": facts["interfaces"][0]["mac"],
        "network": {"interfaces": {"macs": cards}},
        "placement": {
            "availability-zone": facts["zone"],
            "group-name": facts["placement_group"] or "",
            "region": record.region,
        },
        "reservation-id": "r-" + record.id.removeprefix("i-"),
        "services": {"domain": "amazonaws.com", "partition": "aws"},
        **({"tags": {"instance": tags}} if shown else {}),
        **_notices(record),
    }


def _notices(record: Record) -> dict[str, Any]:
    pages, maintenance = notice_pages(record), event_pages(record)
    return {**pages, "events": {**pages.get("events", {}), "maintenance": maintenance}} if maintenance else pages


def identity_document(record: Record) -> str:
    """The page `/latest/dynamic/instance-identity/document`, which is JSON."""
    facts = record.facts
    return json.dumps(
        {
            "accountId": ACCOUNT_ID,
            "architecture": facts["architecture"],
            "availabilityZone": facts["zone"],
            "imageId": facts["image"],
            "instanceId": record.id,
            "instanceType": facts["instance_type"],
            "privateIp": record.outputs["privateIp"],
            "region": record.region,
        }
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, network: str, lookup: Lookup, role_of: RoleOf, ask: Ask | None) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
        self.network = network
        self.lookup = lookup
        self.role_of = role_of
        self.ask = ask
        self.tokens: dict[str, float] = {}


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "EC2ws", ""
    timeout = 10

    def do_PUT(self) -> None:
        life_s = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", "")
        if self.path != "/latest/api/token":
            return self._say(404)
        if not life_s.isdigit() or not 1 <= int(life_s) <= MAX_TOKEN_S:
            return self._say(400)
        token = secrets.token_urlsafe(40)
        self.server.tokens[token] = time.monotonic() + int(life_s)
        self._say(200, token.encode(), {"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": life_s})

    def do_GET(self) -> None:
        record = self.server.lookup(self.server.network, self.client_address[0])
        token = self.headers.get("X-aws-ec2-metadata-token")
        needed = record is None or record.facts["metadata_options"].get("httpTokens") == "required"
        if (needed or token is not None) and self.server.tokens.get(token or "", 0) < time.monotonic():
            return self._say(401)
        page = None if record is None else _page(record, self.path, self.server.role_of(record))
        return self._say(404) if page is None else self._say(200, page)

    def do_POST(self) -> None:
        record = self.server.lookup(self.server.network, self.client_address[0])
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if record is None or self.server.ask is None or self.path != "/":
            return self._say(404)
        self._say(*self.server.ask(record, dict(self.headers.items()), body))

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: nobody would read it."""

    def _say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)  # with a Date header, from which a node takes the time
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _page(record: Record, path: str, role: str | None) -> bytes | None:
    path = path.partition("?")[0]
    _version, _, rest = path.strip("/").partition("/")
    if rest == "user-data":
        return base64.b64decode(record.facts["user_data"]) or None
    if rest == "dynamic/instance-identity/document":
        return identity_document(record).encode()
    if rest == "meta-data" or rest.startswith("meta-data/"):
        text = metadata_text(record, rest.removeprefix("meta-data"), role)
        return None if text is None else text.encode()
    return None
