"""EC2's filters and pages, applied to views: resources as the API shows them."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any  # views are JSON-like

from clusterctl_rehearsal.refusal import AwsError

View = dict[str, Any]


def matching(views: Sequence[View], filters: Sequence[Mapping[str, Any]], paths: Mapping[str, str]) -> list[View]:
    """The views that fit every filter. `paths`: filter name → dotted path of its value, if not in the name.

    Raises InvalidParameterValue for a filter whose value a view does not have.
    """
    return [view for view in views if all(_fits(view, row["Name"], row.get("Values") or [], paths) for row in filters)]


def page(rows: Sequence[Any], parameters: Mapping[str, Any]) -> tuple[list[Any], str | None]:
    """The wanted page and the token of the next. Raises InvalidParameterValue for a token that is not ours."""
    try:
        start = int(base64.b64decode(parameters.get("NextToken") or base64.b64encode(b"0")))
    except (binascii.Error, ValueError):
        start = -1
    if start < 0:
        raise AwsError("InvalidParameterValue", "Invalid value for parameter nextToken.")
    size = parameters.get("MaxResults") or 1000
    rest = base64.b64encode(str(start + size).encode()).decode() if start + size < len(rows) else None
    return list(rows[start : start + size]), rest


Bounds = Callable[[str, str], tuple[int | None, int | None]]
_BOUNDED_BY_DOCUMENTATION = ("DescribeInstances", "DescribeTags", "DescribeVolumes")
"""Only the documentation bounds their page size, not the model: 5 to 1000 (EC2 API reference; 2026-11-26)."""


_PAGES_OR_IDS = ("DescribeInstances", "DescribeInstanceStatus")
"""Operations that take a page size or ids, but not both (EC2 API reference; 2026-11-26)."""


def check_page_size(operation: str, parameters: Mapping[str, Any], bounds: Bounds) -> None:
    """Raises AWS's refusal of a page that is smaller or larger than the operation takes.

    `bounds`: gives the least and the greatest value that the service's model allows for an operation's parameter.
    """
    for name in ("MaxResults", "MaxItems"):
        asked = parameters.get(name)
        if asked is None:
            continue
        least, most = (5, 1000) if operation in _BOUNDED_BY_DOCUMENTATION else bounds(operation, name)
        if least is not None and asked < least:
            raise _page_error(name, asked, f"greater than {least}")
        if most is not None and asked > most:
            raise _page_error(name, asked, f"less than {most}")
    if operation in _PAGES_OR_IDS and parameters.get("MaxResults") and parameters.get("InstanceIds"):
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise AwsError("InvalidParameterCombination", message)


def _page_error(name: str, asked: int, expected: str) -> AwsError:
    shown = name[0].lower() + name[1:]
    message = f"Value ( {asked} ) for parameter {shown} is invalid. Expecting a value {expected}."
    return AwsError("InvalidParameterValue", message)


def values_at(view: Any, path: str) -> list[Any]:
    """All values at a dotted path; a list on the way contributes the values of each of its items."""
    found = [view]
    for part in path.split("."):
        found = [item.get(part) for item in found if isinstance(item, Mapping)]
        found = [value for item in found for value in (item if isinstance(item, list) else [item])]
    return [item for item in found if item is not None]


def _fits(view: View, name: str, wanted: Sequence[str], paths: Mapping[str, str]) -> bool:
    tags = view.get("Tags") or view.get("TagSet") or []
    if name.startswith("tag:"):
        found = [row["Value"] for row in tags if row["Key"] == name.removeprefix("tag:")]
    elif name == "tag-key":
        found = [row["Key"] for row in tags]
    else:
        path = paths.get(name) or "".join(part[:1].upper() + part[1:] for part in name.split("-"))
        if path.split(".")[0] not in view:
            raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
        found = [_written(value) for value in values_at(view, path)]
    return any(fnmatch.fnmatchcase(value, _pattern(text)) for value in found for text in wanted)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pattern(text: str) -> str:
    return re.sub(r"\[", "[[]", text)
