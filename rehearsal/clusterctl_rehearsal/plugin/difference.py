"""What changed between two sets of inputs, and whether that makes a new resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # property values

from clusterctl_infra.provider.property_values import has_unknown

from clusterctl_rehearsal.region.types.row import ResourceType


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The changed inputs, those whose change needs a new resource, and whether the old resource must go first."""

    changed: tuple[str, ...]
    replacing: tuple[str, ...]
    delete_first: bool


def difference(row: ResourceType, old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    """The difference that the provider would see. Unknown values differ from everything."""
    before, after = {**row.defaults, **_given(old)}, {**row.defaults, **_given(new)}
    changed = tuple(sorted(key for key in {*before, *after} if _differs(before.get(key), after.get(key))))
    replacing = tuple(path for path in row.replace if _differs(_at(before, path), _at(after, path)))
    replacing += tuple(key for key in row.one_of if (key in before) != (key in after))
    if after.get("userDataReplaceOnChange"):
        replacing += tuple(key for key in ("userData", "userDataBase64") if key in changed)
    # As the bridge does: the old one goes first if both would have the same name, chosen by a person.
    kept_name = row.name is not None and row.name in new and not _differs(old.get(row.name), new.get(row.name))
    return Difference(changed=changed, replacing=replacing, delete_first=bool(replacing) and kept_name)


def refreshed(known: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs in the state, with the values that the resource has now, so that the next comparison shows drift.

    Inputs that the state lacks are left out, as the bridge reads back only what was given.
    """
    return {
        key: value if key.startswith("__") or value is None else now.get(key)
        for key, value in known.items()
        if key.startswith("__") or value is None or key in now
    }


def _given(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if value is not None and not key.startswith("__")}


def _differs(old: Any, new: Any) -> bool:
    return has_unknown(new) or _plain(old) != _plain(new)


def _plain(value: Any) -> Any:
    """The value without empty parts: an absent block and an empty one are the same to the provider."""
    if isinstance(value, Mapping):
        return {
            key: _plain(item) for key, item in value.items() if item not in (None, [], {}) and key != "__defaults"
        } or None
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value] or None
    return value


def _at(inputs: Mapping[str, Any], path: str) -> Any:
    value: Any = inputs
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
