"""Property values travel to the engine and back unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from clusterctl_infra.provider.property_values import (
    UNKNOWN,
    Secret,
    from_struct,
    has_unknown,
    reveal,
    to_struct,
)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        1.5,
        "text",
        [],
        [1, ["two", None]],
        {"a": {"b": []}},
        Secret("hush"),
        [Secret({"key": "hush"})],
        UNKNOWN,
        {"deep": [UNKNOWN]},
    ],
)
def test_a_value_survives_the_way_to_the_engine_and_back(value: Any) -> None:
    assert from_struct(to_struct({"value": value})) == {"value": value}


def test_a_tuple_arrives_as_a_list() -> None:
    assert from_struct(to_struct({"value": (1, 2)})) == {"value": [1, 2]}


def test_an_object_that_is_not_a_property_value_is_refused() -> None:
    with pytest.raises(TypeError, match="not a property value: set"):
        to_struct({"value": {1}})


def test_reveal_takes_the_secret_wrappers_off_at_any_depth() -> None:
    assert reveal({"a": Secret([Secret("x"), 1])}) == {"a": ["x", 1]}


@pytest.mark.parametrize(("value", "expected"), [({"a": [Secret(UNKNOWN)]}, True), ({"a": [Secret("x")]}, False)])
def test_unknowns_are_found_at_any_depth(value: Any, expected: bool) -> None:
    assert has_unknown(value) is expected
