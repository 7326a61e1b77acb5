"""A stand-in for HashiCorp Vault's transit keys, which tests' stacks have in the place of a passphrase.

With a passphrase each run of the engine begins with a million rounds of SHA-256, 0.2 s of the processor; tests run the
engine 500 times. Stacks with a passphrase are those of scripts/quickstart, and of real stacks that are rehearsed.
"""

from __future__ import annotations

import functools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROVIDER = "hashivault://tests"
"""As `pulumi stack init --secrets-provider` takes it."""
_PREFIX = "vault:v1:"


class _Handler(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        """Answers the two calls that the engine makes (Vault API, "Transit secrets engine"): nothing is encrypted."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "/encrypt/" in self.path:
            answer = {"ciphertext": _PREFIX + asked["plaintext"]}
        else:
            answer = {"plaintext": asked["ciphertext"].removeprefix(_PREFIX)}
        body = json.dumps({"data": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Calls are not logged."""


@functools.cache
def variables() -> dict[str, str]:
    """What the engine needs to know of this process's key service, which starts with the first call."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name="key service").start()
    return {"VAULT_SERVER_URL": f"http://127.0.0.1:{server.server_port}", "VAULT_SERVER_TOKEN": "of a test"}
