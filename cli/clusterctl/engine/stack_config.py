"""The Pulumi config file of a stack, with some `clusterctl:` values set or removed and all else as it was.

Written as a file, not by `pulumi config set`: that takes 0.2 s a value. The values are numbers, flags and the
ledger (instance ids, times, prices), no secrets, so nothing here needs the stack's encryption.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any  # YAML before it is checked

import yaml
from clusterctl_infra.config.stack import NAMESPACE, OWN_KEYS
from clusterctl_infra.errors import ConfigError
from clusterctl_infra.private_home import make_private_folder
from clusterctl_infra.put_in_place import put_in_place

from clusterctl.engine.extended_budget import taken_back
from clusterctl.text.next_commands import edit


def config_values(text: str) -> dict[str, str]:
    """The `clusterctl:` values, without the prefix, as strings. Raises ValueError when the text is no such file."""
    rows = _load(text).get("config") or {}
    if not isinstance(rows, dict):
        raise ValueError("config: is not a mapping")
    return {
        str(key).removeprefix(NAMESPACE): _as_text(value)
        for key, value in rows.items()
        if str(key).startswith(NAMESPACE) and not isinstance(value, dict)
    }


def secrets_provider(text: str) -> str | None:
    """What encrypts the stack's secrets, as `pulumi stack init --secrets-provider` takes it; None if nothing is said.

    Raises ValueError when the text is no such file.
    """
    found = _load(text).get("secretsprovider")
    return None if found is None else str(found)


def with_values(text: str, changes: Mapping[str, str | None]) -> str:
    """`text` with these values (None removes one); comments and order of all other lines are kept."""
    wanted = _load(text)
    before = wanted.get("config") or {}
    rows = {key: value for key, value in before.items() if key.removeprefix(NAMESPACE) not in changes}
    rows |= {NAMESPACE + key: value for key, value in changes.items() if value is not None}
    if rows == before:
        return text
    wanted = {**wanted, "config": rows}
    if not rows:
        del wanted["config"]
    edited = _edited_lines(text, changes)
    if _is_same(edited, wanted):
        return edited
    return yaml.safe_dump(wanted, sort_keys=False, width=10_000)


def read_config(path: Path) -> str:
    """The text of a config file; empty when there is none. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
        config_values(text)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, yaml.YAMLError) as e:
        raise ConfigError(f"{path}: cannot be read: {e}", hint=edit(path)) from e
    return text


def own_config(path: Path, *, written_for: Path) -> str:
    """The text of a config file; a rehearsal's own one begins with what a person wrote for the real stack."""
    if path == written_for or path.exists():
        return read_config(path)
    values = config_values(read_config(written_for))
    person = {key: value for key, value in {**values, **taken_back(values)}.items() if key not in OWN_KEYS}
    text = with_values("", person)
    if text:
        write_config(path, text)
    return text


def refuse_read_only(path: Path) -> None:
    """Raises ConfigError where the config file could not be written: a change keeps there what it means to do.

    Raises OSError where the whole file system is read-only: then a `down` ends machines without it.
    """
    if path.parent.is_dir() and not os.access(path.parent, os.W_OK):
        if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path.parent))
        raise ConfigError(
            f"{path.parent} cannot be written by this user, and a change of the stack keeps {path.name} there: nothing "
            "was changed; take a checkout, or a copy of the stack, of your own",
            hint=f"ls -ld {shlex.quote(str(path.parent))}",
        )


def write_config(path: Path, text: str) -> None:
    """Puts the file in place, whole or not at all."""
    make_private_folder(path.parent)  # in the home; a stack's own folder is there already
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    put_in_place(path, text, mode=mode, keeps_owner=True)


@contextlib.contextmanager
def config_of_one_run(path: Path, text: str, *, why: str) -> Iterator[Path]:
    """A file beside the config file `path` with another text, while entered; `why` is a part of its name."""
    temporary = path.with_name(f".{path.stem}.{why}.yaml")
    write_config(temporary, text)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def _load(text: str) -> dict[str, Any]:
    data = yaml.safe_load(text) if text.strip() else {}
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ValueError("not a mapping")
    return data


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)


def _edited_lines(text: str, changes: Mapping[str, str | None]) -> str:
    prefixes = tuple(f"{NAMESPACE}{key}:" for key in changes)
    lines = [line for line in text.splitlines() if not line.strip().startswith(prefixes)]
    fresh = [f"  {NAMESPACE}{key}: {json.dumps(value)}" for key, value in changes.items() if value is not None]
    if not fresh and not any(line.startswith((" ", "-")) for line in lines):
        lines = [line for line in lines if line != "config:"]
    elif "config:" in lines:
        at = lines.index("config:") + 1
        lines[at:at] = fresh
    elif fresh:
        lines = ["config:", *fresh, *lines]
    return "".join(f"{line}\n" for line in lines)


def _is_same(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        data = _load(text)
    except (ValueError, yaml.YAMLError):
        return False
    return data == dict(wanted)
