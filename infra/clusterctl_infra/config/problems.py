"""Turns what pydantic found into sentences for a person: no word of pydantic's reaches the screen."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any  # pydantic's error context

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from clusterctl_infra.config.document import Path
from clusterctl_infra.config.ssh_keys import SecretPasted
from clusterctl_infra.config.storage_fields import NOT_BUILT
from clusterctl_infra.nearest import did_you_mean

VALUE_LENGTH = 60


@dataclass(frozen=True, kw_only=True)
class ConfigProblem:
    """One thing wrong, where it is."""

    path: Path
    message: str
    """With the value seen, where there is one."""
    line: int | None = None

    def text(self) -> str:
        """`gpus: 'h100:9': a node has …`"""
        where = path_text(self.path)
        return f"{where}: {self.message}" if where else self.message


def path_text(path: Path) -> str:
    """`storage[0].size`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def path_of(text: str) -> Path:
    """What `path_text` was made from: `storage[0].size` is `("storage", 0, "size")`."""
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", text))


def shown(value: object) -> str:
    """The value as a person wrote it, quoted and not too long."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value)
    return repr(text if len(text) <= VALUE_LENGTH else text[: VALUE_LENGTH - 1] + "…")


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[ConfigProblem]:
    """One problem for each of pydantic's errors, in pydantic's order."""
    return [_problem(details, model) for details in error.errors(include_url=False)]


def _problem(details: ErrorDetails, model: type[BaseModel]) -> ConfigProblem:
    path: Path = tuple(details["loc"])
    say = _SENTENCES.get(details["type"], _plainly)
    return ConfigProblem(path=path, message=say(details, model))


def _value_error(details: ErrorDetails, model: type[BaseModel]) -> str:
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, SecretPasted) or isinstance(details["input"], BaseModel):
        return str(cause)
    if isinstance(details["input"], Mapping | list | tuple):
        return str(cause)
    return _with_value(details, str(cause))


def _unknown_key(details: ErrorDetails, model: type[BaseModel]) -> str:
    key, around = str(details["loc"][-1]), details["loc"][:-1]
    if around and (why := NOT_BUILT.get((str(around[-1]), key))) is not None:
        return why
    places = [] if around else _places_inside(key, model)
    if places:
        return f"unknown key (did you mean {' or '.join(places)}?)"
    return f"unknown key{did_you_mean(key, keys_at(model, around))}"


def _missing(details: ErrorDetails, model: type[BaseModel]) -> str:
    return "missing; every cluster needs it" if len(details["loc"]) == 1 else "missing"


def _choice(details: ErrorDetails, model: type[BaseModel]) -> str:
    known = details.get("ctx", {}).get("expected", "").replace("'", "").replace(" or ", ", ").split(", ")
    near = did_you_mean(str(details["input"]), known)
    verb = "is" if len(known) == 1 else "are"
    return _with_value(details, f"allowed {verb} {', '.join(known)}{near}")


def _not_mapping(details: ErrorDetails, model: type[BaseModel]) -> str:
    keys = ", ".join(sorted(keys_at(model, details["loc"])))
    return _with_value(details, f"not a mapping{f' with keys {keys}' if keys else ''}")


def _not_list(details: ErrorDetails, model: type[BaseModel]) -> str:
    return _with_value(details, "not a list: write [a, b], or one entry a line, each after a hyphen")


def _plainly(details: ErrorDetails, model: type[BaseModel]) -> str:
    return _with_value(details, "not a value that is allowed here")


def _with_value(details: ErrorDetails, sentence: str) -> str:
    if details["input"] is None:
        return "empty; give a value or leave the key out"
    return f"{shown(details['input'])}: {sentence}"


_SENTENCES: Mapping[str, Callable[[ErrorDetails, type[BaseModel]], str]] = {
    "value_error": _value_error,
    "extra_forbidden": _unknown_key,
    "missing": _missing,
    "literal_error": _choice,
    "model_type": _not_mapping,
    "model_attributes_type": _not_mapping,
    "tuple_type": _not_list,
    "list_type": _not_list,
}


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that the mapping at `path` may have, as written in the file; none where there is no mapping."""
    here: type[BaseModel] | None = model
    for part in path:
        if here is None or isinstance(part, int):
            continue
        here = next((_model_in(field.annotation) for name, field in _fields(here) if name == part), None)
    return [] if here is None else [name for name, _ in _fields(here)]


def _places_inside(key: str, model: type[BaseModel]) -> list[str]:
    """`caps.runtime` for `runtime`: where the mappings of a file have such a key; lists are left out."""
    mappings = [name for name, field in _fields(model) if typing.get_origin(field.annotation) is not tuple]
    return [f"{name}.{key}" for name in mappings if key in keys_at(model, (name,))]


def _fields(model: type[BaseModel]) -> list[tuple[str, Any]]:
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(each) for each in typing.get_args(annotation))
    return next((each for each in inner if each is not None), None)
