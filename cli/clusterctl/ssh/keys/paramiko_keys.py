"""Login keys as paramiko wants them, for connections to one node."""

from __future__ import annotations

import paramiko

from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.login_keys import LoginKey, LoginKeys


def paramiko_keys(keys: LoginKeys) -> list[paramiko.PKey]:
    """The same keys in the same order, without those that the agent has dropped. Raises NodeFailure."""
    held: dict[bytes, paramiko.PKey] = {}
    if any(key.path is None for key in keys.keys):
        held = {key.asbytes(): key for key in paramiko.Agent().get_keys()}
    found = (held.get(key.public) if key.path is None else _parsed(key) for key in keys.keys)
    return [key for key in found if key is not None]


def _parsed(key: LoginKey) -> paramiko.PKey:
    assert key.path is not None
    try:
        return paramiko.PKey.from_path(key.path)
    except (OSError, ValueError, paramiko.SSHException) as e:
        raise NodeFailure("key", f"{key.path} cannot be read as a private key ({e})") from e
