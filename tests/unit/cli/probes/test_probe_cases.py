"""Every probe's parser against outputs in cases/<probe>/*.yaml: a new case needs no code.

A GPU output with a `source` is from a capture in that public repository (NVIDIA's own say there whether they come from
physical nodes or from a stand-in for the driver's library). The others are written from NVIDIA's document types and
public reports. All are cut to the elements about a GPU's condition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any  # parsed YAML

import pytest
import yaml
from clusterctl.probes.sweep import PROBES

CASES = sorted((Path(__file__).parent / "cases").glob("*/*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=[f"{path.parent.name}-{path.stem}" for path in CASES])
def test_a_captured_output_is_read(path: Path) -> None:
    case = yaml.safe_load(path.read_text())
    reading = plain(PROBES[path.parent.name].parse(case["output"]))
    assert expected_part(reading, case["expect"]) == case["expect"]


def test_every_probe_has_cases() -> None:
    assert {path.parent.name for path in CASES} == set(PROBES)


def plain(value: Any) -> Any:
    """Dataclasses as mappings, tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def expected_part(value: Any, expected: Any) -> Any:
    """The part of `value` that `expected` speaks of; lists must be of one length."""
    if isinstance(value, dict) and isinstance(expected, dict):
        return {key: expected_part(value[key], expected[key]) for key in expected if key in value} or value
    if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        return [expected_part(item, other) for item, other in zip(value, expected, strict=True)]
    return value
