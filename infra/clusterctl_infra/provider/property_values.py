"""Pulumi property values as Python values, and back: secrets and unknowns included.

The engine sends properties as a protobuf Struct; a secret is an object with a signature, an unknown is a sentinel
string (pulumi sdk/go/common/resource/plugin/rpc.go and sdk/python pulumi/runtime/rpc.py, 3.250).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final  # property values are whatever JSON can say

from google.protobuf import struct_pb2

_SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
_SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN_STRING = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_UNKNOWN_SENTINELS = frozenset(
    {
        _UNKNOWN_STRING,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


@dataclass(frozen=True)
class Secret:
    """A value that the engine keeps encrypted."""

    value: Any


@dataclass(frozen=True)
class Unknown:
    """A value that nobody knows before the resource it comes from exists."""


UNKNOWN: Final = Unknown()


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """The properties as a dictionary; whole numbers as int, secrets as `Secret`, unknowns as `UNKNOWN`."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def to_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The Struct for a dictionary of JSON-able values, `Secret` and `UNKNOWN` at any depth."""
    return struct_pb2.Struct(fields={key: _to_value(value) for key, value in properties.items()})


def reveal(value: Any) -> Any:
    """The value without its `Secret` wrappers, at any depth."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, Mapping):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [reveal(item) for item in value]
    return value


def has_unknown(value: Any) -> bool:
    """Whether anything in it is unknown."""
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_unknown(item) for item in value)
    return isinstance(value, Unknown)


def _from_value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWN_SENTINELS else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_from_value(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _from_object({key: _from_value(item) for key, item in value.struct_value.fields.items()})
    return None


def _from_object(row: dict[str, Any]) -> Any:
    signature = row.get(_SIGNATURE_KEY)
    if signature == _SECRET_SIGNATURE:
        return Secret(row.get("value"))
    if signature == _OUTPUT_SIGNATURE:
        known = row.get("value", UNKNOWN)
        return Secret(known) if row.get("secret") else known
    return row


def _to_value(value: Any) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, Unknown):
        return struct_pb2.Value(string_value=_UNKNOWN_STRING)
    if isinstance(value, Secret):
        wrapped = {_SIGNATURE_KEY: _SECRET_SIGNATURE, "value": value.value}
        return struct_pb2.Value(struct_value=to_struct(wrapped))
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=to_struct(value))
    if isinstance(value, (list, tuple)):
        return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_to_value(item) for item in value]))
    raise TypeError(f"not a property value: {type(value).__name__}")
