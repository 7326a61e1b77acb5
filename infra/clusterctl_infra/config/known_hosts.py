"""The host keys that a known_hosts file declares; its text is OpenSSH's format (sshd(8), SSH_KNOWN_HOSTS). Pure."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import hmac

from clusterctl_infra.host_and_port import SSH_PORT

PREFERRED = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
REVOKED = "@revoked"


def host_key_in(text: str, host: str, port: int = SSH_PORT) -> str | None:
    """The host's key, `ssh-ed25519 AAAA…`; of several, the kind that is first in PREFERRED; None if there is none.

    A key that is revoked anywhere is nobody's key. Certificate authorities declare no key. If nothing is declared for a
    port other than 22, what is declared for the host without a port counts, as in OpenSSH (sshconnect.c,
    check_host_key).
    """
    found = _key_at(text, host, port)
    return found if found is not None or port == SSH_PORT else _key_at(text, host, SSH_PORT)


def _key_at(text: str, host: str, port: int) -> str | None:
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    revoked = {tuple(words[2:4]) for words in rows if words[0] == REVOKED}
    found = [
        (words[1], words[2])
        for words in rows
        if len(words) > 2 and not words[0].startswith("@") and _names(words[0], host, port)
    ]
    usable = [key for key in found if key[0] in PREFERRED and key not in revoked]
    best = min(usable, key=lambda key: PREFERRED.index(key[0]), default=None)
    return None if best is None else " ".join(best)


def _names(patterns: str, host: str, port: int) -> bool:
    """Whether a line's first field matches the host at the port; a pattern behind `!` excludes it."""
    if patterns.startswith("|1|"):
        return _is_hash_of(patterns, host if port == SSH_PORT else f"[{host}]:{port}")
    words = patterns.lower().split(",")
    if any(word.startswith("!") and _means(word[1:], host.lower(), port) for word in words):
        return False
    return any(_means(word, host.lower(), port) for word in words)


def _means(pattern: str, host: str, port: int) -> bool:
    """Whether a pattern matches the host at the port: `10.1.0.*` is for port 22, `[10.1.0.*]:2222` for port 2222."""
    name, _, at = pattern.removeprefix("[").partition("]:") if pattern.startswith("[") else (pattern, "", "")
    return fnmatch.fnmatchcase(host, name) and (at or str(SSH_PORT)) == str(port)


def _is_hash_of(field: str, host: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in field.removeprefix("|1|").split("|"))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, host.lower().encode(), hashlib.sha1).digest(), digest)
