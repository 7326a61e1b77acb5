"""The host key that a machine shows, beside the one it was declared with."""

from __future__ import annotations

import base64
import binascii
import importlib

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.target import Target


def refuse_other_host_key(target: Target, seen: bytes) -> None:
    """Returns when `seen`, as SSH writes keys, is the declared one. Raises NodeFailure with both fingerprints."""
    try:
        declared = base64.b64decode(target.host_key, validate=True)
    except binascii.Error as e:
        raise NodeFailure("host-key", f"{target.name}: the declared host key is not one", phase="key exchange") from e
    if seen != declared:
        raise NodeFailure(
            "host-key",
            f"{target.name} ({target.place}) shows the host key {_fingerprint(seen)}, declared is "
            f"{_fingerprint(declared)}: not the machine that was made, or its key was changed. Nothing was sent to it",
            phase="key exchange",
        )


def _fingerprint(blob: bytes) -> str:
    """`SHA256:…` as ssh-keygen -l prints it."""
    hashlib = importlib.import_module("hashlib")
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
