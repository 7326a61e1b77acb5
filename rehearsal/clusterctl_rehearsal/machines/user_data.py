"""What a machine without cloud-init takes from user-data: pure unpacking, nothing is executed."""

from __future__ import annotations

import base64
import binascii
import email
import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

from clusterctl_rehearsal.machines.driver import MachineError, MachineFile

CLOUD_CONFIG = "text/cloud-config"
_GZIP_MAGIC = b"\x1f\x8b"
_NOT_GZIP = (OSError, EOFError, zlib.error)
"""What `gzip.decompress` raises for data that is not gzip, that ends too soon, and that is corrupt."""
_GZIP_ENCODINGS = ("gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64")
_BASE64_ENCODINGS = ("b64", "base64", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64")


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """The declared parts of user-data: host keys, who may log in, files."""

    host_keys: Mapping[str, str]
    authorized_keys: tuple[str, ...]
    files: Mapping[str, MachineFile]


def unpack(user_data: bytes) -> Unpacked:
    """The declarations in user-data, read as cloud-init would. Raises MachineError if they cannot be read."""
    host_keys: dict[str, str] = {}
    authorized: list[str] = []
    files: dict[str, MachineFile] = {}
    for content_type, content in parts(user_data):
        if content_type != CLOUD_CONFIG:
            continue
        config = _mapping(content)
        host_keys.update({str(name): str(text) for name, text in (config.get("ssh_keys") or {}).items()})
        authorized += _authorized_keys(config)
        for entry in config.get("write_files") or []:
            files[str(entry["path"])] = written_file(entry)
    return Unpacked(host_keys=host_keys, authorized_keys=tuple(authorized), files=files)


def parts(user_data: bytes) -> Iterator[tuple[str, bytes]]:
    """Content type and content of each part; a single document counts as one part. Raises MachineError."""
    plain = _gunzip(user_data)
    if not plain.lstrip().lower().startswith((b"content-type:", b"mime-version:")):
        kind = CLOUD_CONFIG if plain.startswith(b"#cloud-config") else "text/x-shellscript"
        yield kind, plain
        return
    for part in email.message_from_bytes(plain).walk():
        if not part.is_multipart():
            yield part.get_content_type(), _gunzip(cast(bytes, part.get_payload(decode=True)))


def written_file(entry: Mapping[str, Any]) -> MachineFile:
    """The file that one entry of write_files describes, as parsed from YAML. Raises MachineError."""
    content = entry.get("content", "")
    data = content if isinstance(content, bytes) else str(content).encode()
    encoding = str(entry.get("encoding", "")).lower()
    try:
        if encoding in _BASE64_ENCODINGS:
            data = base64.b64decode(data)
        if encoding in _GZIP_ENCODINGS:
            data = gzip.decompress(data)
    except (binascii.Error, *_NOT_GZIP) as error:
        raise MachineError(f"write_files {entry.get('path')}: not {encoding}: {error}") from error
    return MachineFile(content=data, mode=_mode(entry.get("permissions", "0644")))


def _mode(permissions: object) -> int:
    """The file mode. cloud-init takes a string of octal digits; YAML may have read 0644 as a number already."""
    return permissions if isinstance(permissions, int) else int(str(permissions), 8)


def _mapping(content: bytes) -> Mapping[str, Any]:
    try:
        config = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise MachineError(f"the cloud-config in user-data cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise MachineError("the cloud-config in user-data is not a mapping")
    return config


def _authorized_keys(config: Mapping[str, Any]) -> Iterator[str]:
    yield from config.get("ssh_authorized_keys") or []
    for user in config.get("users") or []:
        if isinstance(user, dict):
            yield from user.get("ssh_authorized_keys") or []


def _gunzip(data: bytes) -> bytes:
    try:
        return gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
    except _NOT_GZIP as error:
        raise MachineError(f"the gzip in user-data cannot be read: {error}") from error
