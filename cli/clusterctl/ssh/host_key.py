"""Compares the host key that a machine shows with the one that was declared for it."""

from __future__ import annotations

import base64
import binascii
import importlib

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.target import Target


def signature_algorithms(key_type: str) -> tuple[str, ...]:
    """What SSH calls the signatures of a host key of this type, the strongest first.

    Only RSA signatures have other names than their key. The name `ssh-rsa` itself means a signature with SHA-1, which
    OpenSSH has not offered since 8.8 (RFC 8332; its release notes, 2026-11-26).
    """
    return ("rsa-sha2-512", "rsa-sha2-256") if key_type == "ssh-rsa" else (key_type,)


def refuse_other_host_key(target: Target, seen: bytes) -> None:
    """Returns if `seen`, in SSH's own encoding, is the declared key. Raises NodeFailure with both fingerprints."""
    try:
        declared = base64.b64decode(target.host_key, validate=True)
    except binascii.Error as e:
        message = f"{target.name}: the declared host key is not valid base64"
        raise NodeFailure("host-key", message, phase="key exchange") from e
    if seen != declared:
        raise NodeFailure(
            "host-key",
            f"{target.name} ({target.place}) shows the host key {_fingerprint(seen)}, but the declared one is "
            f"{_fingerprint(declared)}: another machine answers, or its key was changed. Nothing was sent to it",
            phase="key exchange",
        )


def _fingerprint(blob: bytes) -> str:
    """`SHA256:…` as ssh-keygen -l prints it."""
    hashlib = importlib.import_module("hashlib")
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
