"""Amazon States Language's paths and templates: `$.A.B[0]`, `$.A[*].B`, `$$.Map.Item.Value`, `States.Array($.A)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any  # states' data are JSON

from clusterctl_rehearsal.states.failure import RESULT_PATH, RUNTIME, ExecutionFailed, TaskFailed

_PATH = re.compile(r"\$\$?(\.[A-Za-z]\w*|\[\d+\]|\[\*\])*")
_PLACE = re.compile(r"\$(\.[A-Za-z]\w*)*")
_STEP = re.compile(r"\.([A-Za-z]\w*)|\[(\d+|\*)\]")
_ARRAY = re.compile(r"States\.Array\((?P<path>\$[^,()]*)\)")


def is_path(text: object) -> bool:
    """Whether it is a path that the stand-in can follow."""
    return isinstance(text, str) and _PATH.fullmatch(text) is not None


def is_expression(text: object) -> bool:
    """Whether it is a path that the stand-in can follow, or a `States.Array` of one."""
    array = _ARRAY.fullmatch(text) if isinstance(text, str) else None
    return is_path(text) if array is None else is_path(array["path"])


def is_place(text: object) -> bool:
    """Whether it is a path at which the stand-in can put a result: only keys, no `[…]`."""
    return isinstance(text, str) and _PLACE.fullmatch(text) is not None


def is_there(path: str, data: Any) -> bool:
    """Whether a path without `[*]` leads to something."""
    return bool(_found(path, data, {}))


def value_at(path: str, data: Any, context: Mapping[str, Any]) -> Any:
    """The value at a path; a list for a path with `[*]`. Raises ExecutionFailed if another path leads nowhere."""
    found = _found(path, data, context)
    if "[*]" in path:
        return found
    if not found:
        raise ExecutionFailed(RUNTIME, f"The JSONPath '{path}' could not be found in the input")
    return found[0]


def rendered(template: Any, data: Any, context: Mapping[str, Any]) -> Any:
    """The template with every `"key.$": path` filled in."""
    if isinstance(template, list):
        return [rendered(item, data, context) for item in template]
    if not isinstance(template, Mapping):
        return template
    return {
        key.removesuffix(".$"): _evaluated(value, data, context)
        if key.endswith(".$")
        else rendered(value, data, context)
        for key, value in template.items()
    }


def placed(result: Any, path: str | None, data: Any) -> Any:
    """The state's data with the result put at `path`: in place of all data for `$`, nowhere for None.

    Objects that the path names and the data lack are made. Raises TaskFailed where something else is in their place.
    """
    return data if path is None else _placed(result, path.split(".")[1:], data)


def _placed(result: Any, keys: list[str], data: Any) -> Any:
    if not keys:
        return result
    if not isinstance(data, Mapping):
        raise TaskFailed(RESULT_PATH, f"Unable to put the result at '{keys[0]}': the input has no object there")
    return {**data, keys[0]: _placed(result, keys[1:], data.get(keys[0], {}))}


def _evaluated(expression: str, data: Any, context: Mapping[str, Any]) -> Any:
    array = _ARRAY.fullmatch(expression)
    return value_at(expression, data, context) if array is None else [value_at(array["path"], data, context)]


def _found(path: str, data: Any, context: Mapping[str, Any]) -> list[Any]:
    found = [context if path.startswith("$$") else data]
    for name, index in _STEP.findall(path):
        if name:
            found = [item[name] for item in found if isinstance(item, Mapping) and name in item]
        elif index == "*":
            found = [value for item in found if isinstance(item, list) for value in item]
        else:
            found = [item[int(index)] for item in found if isinstance(item, list) and int(index) < len(item)]
    return found
