"""An ed25519 key in the two forms that OpenSSH reads, the same bytes every time.

cryptography's own serialiser draws the check integers at random, and sshd before 9.6 refuses ed25519 keys in PKCS8;
user-data has to be the same at every `up`, so this module writes openssh-key-v1 itself (PROTOCOL.key in OpenSSH).
"""

from __future__ import annotations

import base64
import struct

KEY_TYPE = b"ssh-ed25519"
_MAGIC = b"openssh-key-v1\0"
_BLOCK_BYTES = 8
"""Padding unit of the cipher `none`."""
_LINE_LENGTH = 70


def public_line(public: bytes, comment: str) -> str:
    """`ssh-ed25519 AAAA… comment`, without a newline."""
    return f"{KEY_TYPE.decode()} {base64.b64encode(public_blob(public)).decode()} {comment}"


def private_pem(private: bytes, public: bytes, *, check: bytes, comment: str) -> str:
    """The unencrypted private key as openssh-key-v1 PEM with a newline at its end.

    `private` and `public` are 32 bytes each; `check` is 4 bytes, written twice where OpenSSH writes random ones.
    """
    if (len(private), len(public), len(check)) != (32, 32, 4):
        raise ValueError("an ed25519 key has 32 private and 32 public bytes, and 4 check bytes")
    secrets = check * 2 + string(KEY_TYPE) + string(public) + string(private + public) + string(comment.encode())
    secrets += bytes(range(1, 1 + -len(secrets) % _BLOCK_BYTES))
    blob = (
        _MAGIC
        + string(b"none") * 2
        + string(b"")
        + struct.pack(">I", 1)
        + string(public_blob(public))
        + string(secrets)
    )
    text = base64.b64encode(blob).decode()
    lines = [text[start : start + _LINE_LENGTH] for start in range(0, len(text), _LINE_LENGTH)]
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""])


def public_blob(public: bytes) -> bytes:
    """A public key in the form in which OpenSSH embeds it in lines, private keys and certificates."""
    return string(KEY_TYPE) + string(public)


def string(value: bytes) -> bytes:
    """`string` of RFC 4251: the length, then the bytes."""
    return struct.pack(">I", len(value)) + value
