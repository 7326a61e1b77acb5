"""An OpenSSH host certificate for an ed25519 key, the same bytes every time.

ssh-keygen and cryptography draw the nonce at random, and user-data has to be the same at every `up`
(format: PROTOCOL.certkeys in OpenSSH, checked 2026-11).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Sequence

from clusterctl_infra.openssh_key import KEY_TYPE, public_blob, string

CERTIFICATE_TYPE = b"ssh-ed25519-cert-v01@openssh.com"
_HOST = 2
_ALWAYS = (0, 2**64 - 1)
"""Valid from and to: a node's certificate ends with the node, whose deadline may move."""
_SERIAL = 0


def host_certificate_line(
    public: bytes,
    *,
    authority: bytes,
    sign: Callable[[bytes], bytes],
    nonce: bytes,
    key_id: str,
    principals: Sequence[str],
) -> str:
    """`ssh-ed25519-cert-v01@openssh.com AAAA…`, without a newline: `public` is the key of a host with these names.

    `authority` is the signer's public key; `sign` returns the signer's 64-byte signature of the bytes it is given.
    Raises ValueError without principals: the certificate would be good for every host.
    """
    if not principals:
        raise ValueError("a host certificate without principals would be good for every host")
    signed = (
        string(CERTIFICATE_TYPE)
        + string(nonce)
        + string(public)
        + struct.pack(">QI", _SERIAL, _HOST)
        + string(key_id.encode())
        + string(b"".join(string(name.encode()) for name in principals))
        + struct.pack(">QQ", *_ALWAYS)
        + string(b"") * 3  # critical options, extensions, reserved
        + string(public_blob(authority))
    )
    blob = signed + string(string(KEY_TYPE) + string(sign(signed)))
    return f"{CERTIFICATE_TYPE.decode()} {base64.b64encode(blob).decode()}"
