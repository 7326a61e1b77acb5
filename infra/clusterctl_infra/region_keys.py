"""The key pair of a rehearsed region: whoever signs with it owns the home, since nobody else can read the file."""

from __future__ import annotations

import json
import secrets
import string
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl_infra.put_in_place import put_in_place

_PREFIX = "REHEARSAL"
_ID_LENGTH = 20
"""The length of AWS's own ids. Those begin with AKIA or ASIA, so no account has one of ours."""


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """A key pair for signing requests; AWS calls it an access key."""

    access_key_id: str
    secret_access_key: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class RegionAccess:
    """Where the rehearsed region listens, and the keys that calls to it are signed with."""

    endpoint_url: str
    keys: KeyPair


def read_keys(file: Path) -> KeyPair:
    """The key pair in `file`. Raises OSError, ValueError."""
    content = file.read_bytes()
    try:
        row = json.loads(content)
        return KeyPair(access_key_id=row["access_key_id"], secret_access_key=row["secret_access_key"])
    except (ValueError, KeyError, TypeError) as e:
        raise ValueError(f"{file} holds no key pair") from e


def own_keys(file: Path) -> KeyPair:
    """The key pair in `file`; made there if it holds none, and kept, so that whoever was given it can go on.

    Raises OSError.
    """
    try:
        return read_keys(file)
    except (FileNotFoundError, ValueError):
        made = new_keys()
    row = {"access_key_id": made.access_key_id, "secret_access_key": made.secret_access_key}
    put_in_place(file, json.dumps(row))
    return made


def new_keys() -> KeyPair:
    """A new random pair."""
    letters = string.ascii_uppercase + string.digits
    tail = "".join(secrets.choice(letters) for _ in range(_ID_LENGTH - len(_PREFIX)))
    return KeyPair(access_key_id=_PREFIX + tail, secret_access_key=secrets.token_urlsafe(30))
