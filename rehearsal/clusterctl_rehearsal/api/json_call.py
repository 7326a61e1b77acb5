"""Checks a call's JSON parameters, and writes its answer as JSON, by the service's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any  # models, parameters and answers are JSON-like

Model = Mapping[str, Any]
Shape = Mapping[str, Any]
_TYPES: Mapping[str, tuple[type, ...]] = {
    "structure": (dict,),
    "list": (list, tuple),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
}
_READ: Mapping[str, type] = {"boolean": bool, "integer": int, "long": int, "float": float, "double": float}


def problem_with(model: Model, operation: str, parameters: Mapping[str, Any]) -> str | None:
    """The error with which an AWS SDK refuses to send the parameters; None if it sends them."""
    shape = model["operations"][operation].get("input", {}).get("shape")
    problems = list(_problems(model["shapes"], shape, parameters, "")) if shape else []
    return "\n".join(["Parameter validation failed:", *problems]) if problems else None


def _problems(shapes: Model, name: str, value: Any, where: str) -> Iterator[str]:
    shape = shapes[name]
    expected = _TYPES.get(shape["type"])
    if expected is not None and not isinstance(value, expected):
        kinds = ", ".join(str(kind) for kind in expected)
        yield f"Invalid type for parameter {where}, value: {value}, type: {type(value)}, valid types: {kinds}"
    elif shape["type"] == "structure":
        yield from _problems_of_members(shapes, shape, value, where)
    elif shape["type"] == "list":
        for place, item in enumerate(value):
            yield from _problems(shapes, shape["member"]["shape"], item, f"{where}[{place}]")


def _problems_of_members(shapes: Model, shape: Shape, value: Mapping[str, Any], where: str) -> Iterator[str]:
    members, place = shape["members"], where or "input"
    for key in shape.get("required", ()):
        if key not in value:
            yield f'Missing required parameter in {place}: "{key}"'
    for key, item in value.items():
        if key not in members:
            yield f'Unknown parameter in {place}: "{key}", must be one of: {", ".join(members)}'
        else:
            yield from _problems(shapes, members[key]["shape"], item, f"{where}.{key}" if where else key)


def shown(model: Model, operation: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the answer that the model knows, in JSON's types; an instant is text, as in XML."""
    output = model["operations"][operation].get("output")
    return {} if output is None else dict(_shown(model["shapes"], output["shape"], result))


def _shown(shapes: Model, name: str, value: Any) -> Any:
    shape = shapes[name]
    if shape["type"] == "structure":
        given = {key: value.get(key) for key in shape["members"]}
        return {
            key: _shown(shapes, shape["members"][key]["shape"], item) for key, item in given.items() if item is not None
        }
    if shape["type"] == "list":
        return [_shown(shapes, shape["member"]["shape"], row) for row in value]
    return _READ.get(shape["type"], str)(value)
