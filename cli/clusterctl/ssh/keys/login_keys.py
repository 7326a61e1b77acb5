"""The private keys a person logs in with: the cluster's own, else the person's. Without paramiko: it costs 0.1 s."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clusterctl_infra.outputs import Inventory

from clusterctl.home import Home
from clusterctl.ssh.failures import NodeFailure
from clusterctl.ssh.keys.identity_files import Identities, identities
from clusterctl.ssh.keys.key_agent import agent_keys
from clusterctl.ssh.keys.openssh_files import login_key_file

AGENT_VARIABLE = "SSH_AUTH_SOCK"
OWN_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
MOST_KEYS = 5
"""sshd hangs up after six tries by default, and the first may go to `none` (MaxAuthTries, sshd_config(5))."""

_OPENSSH = "-----BEGIN OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"


@dataclass(frozen=True, kw_only=True)
class LoginKey:
    """One key: a file's, or one that only the agent has."""

    public: bytes
    """The public half as SSH writes it; empty for an old file without a `.pub` beside it."""
    private: bytes | None = None
    """The file's text; None when the agent holds the key."""
    path: Path | None = None
    agent_socket: str = ""


@dataclass(frozen=True, kw_only=True)
class LoginKeys:
    """The keys for all connections, read once; `described` says where they come from."""

    keys: Sequence[LoginKey]
    described: str


def load_login_keys(
    inventory: Inventory, home: Home, *, ssh_dir: Path, environ: Mapping[str, str] | None = None
) -> LoginKeys:
    """The keys to try, in this order. Raises NodeFailure naming the file that is missing or unreadable.

    `environ` names the agent; None: this process's.
    """
    path = login_key_file(inventory, home)
    if path is not None:
        return LoginKeys(keys=(key_in_file(path),), described=str(path))
    usual_socket = (os.environ if environ is None else environ).get(AGENT_VARIABLE, "")
    declared = _declared(inventory.ssh.public_keys)
    found, unusable = _found(Identities(), usual_socket, ssh_dir)
    if not any(key.public in declared for key in found):  # only then is the configuration read
        found, unusable = _found(identities(inventory.nodes, ssh_dir / "config"), usual_socket, ssh_dir)
    if not any(key.public in declared for key in found):
        _refuse_unusable(unusable, declared, has_others=bool(found))
    if not found:
        raise NodeFailure("key", f"no SSH key: the agent has none, and {ssh_dir} has none of {', '.join(OWN_KEYS)}")
    keys = keys_to_try(found, inventory.ssh.public_keys)
    described = (
        f"your {len(keys)} SSH keys" if len(keys) == len(found) else f"{len(keys)} of your {len(found)} SSH keys"
    )
    return LoginKeys(keys=tuple(keys), described=described)


def _found(configured: Identities, usual_socket: str, ssh_dir: Path) -> tuple[list[LoginKey], dict[Path, NodeFailure]]:
    """The agent's keys, those of the files that are named, the usual ones; and why some cannot be used."""
    agent = _in_agent(configured.agent_socket(usual_socket))
    if configured.is_only:
        only = _public_halves(configured.files or _usual_files(ssh_dir))
        agent = [key for key in agent if key.public in only]
    others = [] if configured.is_only and configured.files else _usual_files(ssh_dir)
    usual, unusable = _usable(others, agent)
    named, unusable_named = _usable(configured.files, [*agent, *usual])
    return [*agent, *named, *usual], unusable | unusable_named


def identities_for_ssh(inventory: Inventory, home: Home, ssh_dir: Path) -> Identities:
    """The identities to give OpenSSH, which here reads no configuration of the person's; no files: the usual ones."""
    if login_key_file(inventory, home) is not None:
        return Identities()
    configured = identities(inventory.nodes, ssh_dir / "config")
    if not configured.files:
        return configured
    files = configured.files if configured.is_only else dict.fromkeys([*configured.files, *_usual_files(ssh_dir)])
    return replace(configured, files=tuple(path for path in files if path.is_file()))


def keys_to_try(keys: Sequence[LoginKey], declared: Sequence[str]) -> list[LoginKey]:
    """At most MOST_KEYS: first the keys that the cluster declares, then others, each group in its old order."""
    publics = _declared(declared)
    return sorted(keys, key=lambda key: key.public not in publics)[:MOST_KEYS]


def _in_agent(agent_socket: str) -> list[LoginKey]:
    keys = agent_keys(agent_socket) if agent_socket else []
    return [LoginKey(public=key, agent_socket=agent_socket) for key in keys]


def _public_halves(files: Iterable[Path]) -> set[bytes]:
    """The public halves of keys in these files, whose private halves need not be here: an agent may have those."""
    halves = set()
    for file in files:
        with contextlib.suppress(NodeFailure):
            halves.add(_public_half(file) or key_in_file(file).public)
    return halves - {b""}


def _usual_files(ssh_dir: Path) -> list[Path]:
    return [ssh_dir / name for name in OWN_KEYS]


def _declared(lines: Sequence[str]) -> set[bytes]:
    return {_decoded(line.split()[1]) for line in lines if len(line.split()) > 1}


def _usable(files: Iterable[Path], known: Sequence[LoginKey]) -> tuple[list[LoginKey], dict[Path, NodeFailure]]:
    """The keys of the files that exist and are not `known`; and why others cannot be used, which is no error yet."""
    publics = {key.public for key in known if key.public}  # an empty one would equal that of every file without .pub
    keys: list[LoginKey] = []
    unusable: dict[Path, NodeFailure] = {}
    for file in files:
        if not file.is_file() or _public_half(file) in publics:
            continue
        try:
            keys.append(key_in_file(file))
        except NodeFailure as failure:
            unusable[file] = failure
    return keys, unusable


def _refuse_unusable(unusable: Mapping[Path, NodeFailure], declared: set[bytes], *, has_others: bool) -> None:
    """Raises NodeFailure for a key that would be the right one, or is all there is."""
    for file, failure in unusable.items():
        if not has_others or _public_half(file) in declared:
            raise failure


def key_in_file(path: Path) -> LoginKey:
    """The private key in a file. Raises NodeFailure when there is none that can be used as it is."""
    try:
        private = path.read_bytes()
        text = private.decode("ascii")
    except FileNotFoundError as e:
        message = (
            f"{path} is not there: was the cluster made on another computer? clusterctl up of its stack writes it here"
        )
        raise NodeFailure("key", message) from e
    except (OSError, UnicodeDecodeError) as e:
        raise NodeFailure("key", f"{path} cannot be read as a private key ({e})") from e
    if "PRIVATE KEY-----" not in text:
        raise NodeFailure("key", f"{path} cannot be read as a private key (it does not begin like one)")
    is_locked, public = _opened(text, path) if text.lstrip().startswith(_OPENSSH) else ("ENCRYPTED" in text, b"")
    if is_locked:
        raise NodeFailure("key", f"{path} has a passphrase: add it to your agent with ssh-add {path}")
    return LoginKey(public=public or _public_half(path), private=private, path=path)


def _opened(text: str, path: Path) -> tuple[bool, bytes]:
    """Whether the key has a passphrase, and its public half, which is not encrypted (OpenSSH's PROTOCOL.key)."""
    body = "".join(line for line in text.strip().splitlines() if not line.startswith("-----"))
    data = _decoded(body)
    if not data.startswith(_MAGIC):
        raise NodeFailure("key", f"{path} cannot be read as a private key (its text is damaged)")
    parts, rest = [], data[len(_MAGIC) :]
    for index in range(4):
        if index == 3:
            rest = rest[4:]  # how many keys follow: one
        length = int.from_bytes(rest[:4], "big")
        parts.append(rest[4 : 4 + length])
        rest = rest[4 + length :]
    return parts[0] != b"none", parts[3]


def _public_half(path: Path) -> bytes:
    """The key in the `.pub` beside a private key; empty where there is none."""
    try:
        words = path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return b""
    return _decoded(words[1]) if len(words) > 1 else b""


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
