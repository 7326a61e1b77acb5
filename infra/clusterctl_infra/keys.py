"""The keys of a cluster, all derived from its seed: the same at every `up`, on every computer, for every size.

HKDF-SHA256 (RFC 5869) without salt; `info` is `clusterctl/1/<purpose>`, followed by `/<slot>` for a key of one slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from clusterctl_infra.openssh_certificate import host_certificate_line
from clusterctl_infra.openssh_key import private_pem, public_line

HOST_KEY_PURPOSE = "ssh-host-key"
LOGIN_KEY_PURPOSE = "ssh-login-key"
NODE_KEY_PURPOSE = "ssh-node-key"
HOST_AUTHORITY_PURPOSE = "ssh-host-authority"
HOST_CERTIFICATE_PURPOSE = "ssh-host-certificate"
BARRIER_PURPOSE = "barrier-secret"
NONCE_BYTES = 20
"""16 to 32 are usual (PROTOCOL.certkeys); with this many, base64 writes the host's key with the same letters as in its
public line."""


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """An ed25519 key; `private_pem` is a secret."""

    private_pem: str
    """openssh-key-v1, ends in a newline."""
    public: str
    """`ssh-ed25519 AAAA… comment`."""

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public!r})"


def host_key(seed: bytes, slot: int) -> KeyPair:
    """The SSH host key of `slot`: it stays when the slot's machine is replaced."""
    return _key_pair(seed, HOST_KEY_PURPOSE, slot, comment=_host_comment(slot))


def host_public_key(seed: bytes, slot: int) -> str:
    """The public line of `host_key` alone, in half the time: a plan has that of every slot."""
    return public_line(_public(_private(seed, HOST_KEY_PURPOSE, slot)), _host_comment(slot))


def login_key(seed: bytes) -> KeyPair:
    """The key that clusterctl logs in with, the same for all nodes."""
    return _key_pair(seed, LOGIN_KEY_PURPOSE, None, comment="clusterctl-login")


def node_key(seed: bytes) -> KeyPair:
    """The key that nodes log in to each other with, the same on all."""
    return _key_pair(seed, NODE_KEY_PURPOSE, None, comment="clusterctl-node")


def host_authority(seed: bytes) -> str:
    """The public key, as a line, of the authority that signs this cluster's host keys; no node has the private half."""
    return public_line(_public(_private(seed, HOST_AUTHORITY_PURPOSE)), "clusterctl-host-authority")


def host_certificate(seed: bytes, slot: int, *, principals: Sequence[str]) -> str:
    """The certificate line which says that the host key of `slot` belongs to these names and addresses.

    Its key id, a free text, has as many blanks as it takes for base64 to write the authority's key with the same
    letters as in the authority's own line: gzip then stores them once, and user-data cannot spare the 70 bytes.
    """
    authority = _private(seed, HOST_AUTHORITY_PURPOSE)
    lines = [
        host_certificate_line(
            _public(_private(seed, HOST_KEY_PURPOSE, slot)),
            authority=_public(authority),
            sign=authority.sign,
            nonce=derive(seed, HOST_CERTIFICATE_PURPOSE, slot, length=NONCE_BYTES),
            key_id=" " * blanks,
            principals=principals,
        )
        for blanks in range(3)
    ]
    return next(line for line in lines if host_authority(seed).split()[1] in line)


def barrier_secret(seed: bytes) -> bytes:
    """32 bytes that all nodes of a cluster share, for the start barrier."""
    return derive(seed, BARRIER_PURPOSE)


def derive(seed: bytes, purpose: str, slot: int | None = None, length: int = 32) -> bytes:
    """`length` bytes that only the holder of `seed` can compute; another purpose or slot gives unrelated ones."""
    place = "" if slot is None else f"/{slot}"
    info = f"clusterctl/1/{purpose}{place}".encode()
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(seed)


def _key_pair(seed: bytes, purpose: str, slot: int | None, *, comment: str) -> KeyPair:
    private = _private(seed, purpose, slot)
    public = _public(private)
    check = derive(seed, f"{purpose}-check", slot, length=4)
    return KeyPair(
        private_pem=private_pem(private.private_bytes_raw(), public, check=check, comment=comment),
        public=public_line(public, comment),
    )


def _host_comment(slot: int) -> str:
    return f"clusterctl-host-{slot}"


def _private(seed: bytes, purpose: str, slot: int | None = None) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(derive(seed, purpose, slot))


def _public(private: Ed25519PrivateKey) -> bytes:
    return private.public_key().public_bytes_raw()
