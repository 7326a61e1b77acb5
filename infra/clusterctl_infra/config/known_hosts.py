"""The host keys that a known_hosts file declares; its text is OpenSSH's format (sshd(8), SSH_KNOWN_HOSTS). Pure."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac

PREFERRED = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
REVOKED = "@revoked"


def host_key_in(text: str, host: str) -> str | None:
    """`ssh-ed25519 AAAA…` of the host, of several the first of PREFERRED; None where the file declares none.

    A key that is revoked anywhere is no key of anybody. Certificate authorities declare no key.
    """
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    revoked = {tuple(words[2:4]) for words in rows if words[0] == REVOKED}
    found = [
        (words[1], words[2])
        for words in rows
        if len(words) > 2 and not words[0].startswith("@") and _names(words[0], host)
    ]
    usable = [key for key in found if key[0] in PREFERRED and key not in revoked]
    best = min(usable, key=lambda key: PREFERRED.index(key[0]), default=None)
    return None if best is None else " ".join(best)


def _names(patterns: str, host: str) -> bool:
    """Whether a line's first field means the host, at port 22; a pattern behind `!` excludes it."""
    if patterns.startswith("|1|"):
        return _is_hash_of(patterns, host)
    words = [word.lower() for word in patterns.split(",")]
    wanted = host.lower()
    if any(word.startswith("!") and fnmatch.fnmatchcase(wanted, word[1:]) for word in words):
        return False
    return any(fnmatch.fnmatchcase(wanted, word.removesuffix("]:22").removeprefix("[")) for word in words)


def _is_hash_of(field: str, host: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in field.removeprefix("|1|").split("|"))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, host.lower().encode(), hashlib.sha1).digest(), digest)
