"""Whether a line is an SSH public key. A private key pasted by mistake is refused without being repeated."""

from __future__ import annotations

import base64
import binascii

KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


class SecretPasted(ValueError):
    """The value is a secret, so the error must not show it."""


def check_public_key(value: object) -> str:
    """The key's line. Raises ValueError; for a private key SecretPasted, which is a ValueError, too."""
    if not isinstance(value, str):
        raise ValueError("not a single value")
    text = value.strip()
    if "PRIVATE KEY" in text:
        raise SecretPasted("this is a private key; write the public one (the file that ends in .pub)")
    words = text.split(None, 2)
    if text.startswith(("/", "~", ".")) or text.endswith(".pub"):
        raise ValueError("a file's name; write the line that is in the file")
    if not words or words[0] not in KINDS:
        raise ValueError(f"not an SSH public key; it begins with {KINDS[0]}, {KINDS[1]} or {KINDS[4]}")
    if "\n" in text or "\r" in text:
        raise ValueError("more than one line; each key is an entry of its own")
    if len(words) < 2 or not _holds_kind(words[1], words[0]):
        raise ValueError("not a whole SSH public key; was it cut when copied?")
    return text


def _holds_kind(encoded: str, kind: str) -> bool:
    """Whether the key's blob begins with the kind's length and name, and more follows (RFC 4253, section 6.6)."""
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return False
    start = len(kind).to_bytes(4, "big") + kind.encode("ascii")
    return blob.startswith(start) and len(blob) >= len(start) + 4 + 32
