"""The part of Amazon States Language that the stand-in runs; the rest is refused when a state machine is made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any  # definitions are JSON

from clusterctl_rehearsal.refusal import AwsError, StandInRefusal
from clusterctl_rehearsal.states.paths import is_expression, is_place

MOST_BYTES = 1_048_576
MOST_PARALLEL = 40
"""The highest MaxConcurrency of an inline Map (developer guide, "Service quotas"; 2026-11-21)."""
_ALWAYS = {"Type", "Comment"}
_ONWARD = {"Next", "End"}
_RESULT = {"ResultPath", "OutputPath"}
FIELDS: Mapping[str, set[str]] = {
    "Task": {"Resource", "Parameters", "Retry", "Catch"} | _RESULT | _ONWARD,
    "Map": {"InputPath", "ItemsPath", "ItemSelector", "ItemProcessor", "MaxConcurrency"} | _RESULT | _ONWARD,
    "Pass": {"Result", "ResultPath"} | _ONWARD,
    "Choice": {"Choices", "Default"},
    "Wait": {"Seconds", "SecondsPath"} | _ONWARD,
    "Succeed": set(),
    "Fail": {"Error", "Cause"},
}
REFERENCES = ("Variable", "ItemsPath", "SecondsPath", "ResultPath")
"""Fields that take only reference paths, which lead to one place: no `[*]` (same guide, "Reference paths")."""
TESTS = ("IsPresent", "IsNull", "BooleanEquals", "StringGreaterThan", "StringMatches", "NumericGreaterThan")
SDK = "states:::aws-sdk:ec2:"
States = Mapping[str, Any]


def check_definition(text: str) -> None:
    """Raises AwsError for what AWS refuses, StandInRefusal for what only the stand-in lacks."""
    try:
        parsed = json.loads(text)
        states = parsed["States"]
    except (ValueError, TypeError, KeyError) as e:
        raise _invalid("SCHEMA_VALIDATION_FAILED: the definition is not a JSON object with States") from e
    if len(text.encode()) > MOST_BYTES:
        raise _invalid(f"the definition has more than {MOST_BYTES} bytes")
    _unknown("the definition", parsed, {"Comment", "StartAt", "States", "TimeoutSeconds"})
    _check_states(parsed["StartAt"], states)


def _check_states(start: str, states: States) -> None:
    targets = {start} | {target for state in states.values() for target in _targets(state)}
    for target in sorted(targets - states.keys()):
        raise _invalid(f"MISSING_TRANSITION_TARGET: Missing 'Next' target: {target}")
    for name in states.keys() - targets:
        raise _invalid(f'MISSING_TRANSITION_TARGET: State "{name}" is not reachable')
    for name, state in states.items():
        _check_state(name, state)


def _check_state(name: str, state: States) -> None:
    kind = state.get("Type", "")
    if kind not in FIELDS:
        raise StandInRefusal(f"the stand-in does not run states of type {kind!r} yet ({name})")
    _unknown(name, state, FIELDS[kind] | _ALWAYS)
    if FIELDS[kind] >= _ONWARD and ("Next" in state) == bool(state.get("End")):
        raise _invalid(f"SCHEMA_VALIDATION_FAILED: {name} needs either Next or End")
    for key, path in _paths(state):
        if not is_expression(path):
            raise StandInRefusal(f"the stand-in does not follow the path {path!r} yet ({name})")
        if key in REFERENCES and "[*]" in path:
            raise _invalid(f"SCHEMA_VALIDATION_FAILED: Value is not a Reference Path at /States/{name}/{key}")
        if key == "ResultPath" and not is_place(path):
            raise StandInRefusal(f"the stand-in puts no result at {path!r} yet ({name})")
    if kind == "Task" and SDK not in str(state.get("Resource")):
        raise StandInRefusal(f"so far the stand-in runs only tasks of aws-sdk:ec2 ({name})")
    if kind == "Choice":
        for rule in state["Choices"]:
            for test in rule.get("And", [rule]):
                _unknown(name, test, {"Variable", "Next", *TESTS})
    if kind == "Map":
        if int(state.get("MaxConcurrency", 1)) > MOST_PARALLEL:
            raise _invalid(f"{name}: MaxConcurrency of an inline Map is at most {MOST_PARALLEL}")
        inner = state["ItemProcessor"]
        _check_states(inner["StartAt"], inner["States"])


def _targets(state: States) -> Iterator[str]:
    yield from (state[key] for key in ("Next", "Default") if key in state)
    yield from (rule["Next"] for key in ("Choices", "Catch") for rule in state.get(key, ()))


def _paths(value: Any) -> Iterator[tuple[str, Any]]:
    """(key, path) for every path in a state, also deep in its templates."""
    if isinstance(value, list):
        for item in value:
            yield from _paths(item)
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        if key in ("InputPath", "OutputPath", *REFERENCES) or key.endswith(".$"):
            yield from () if item is None else ((key, item),)
        elif key not in ("ItemProcessor", "Result"):
            yield from _paths(item)


def _unknown(name: str, given: States, known: set[str]) -> None:
    for key in sorted(given.keys() - known):
        raise StandInRefusal(f"the stand-in does not know {key} in {name} yet")


def _invalid(message: str) -> AwsError:
    return AwsError("InvalidDefinition", f"Invalid State Machine Definition: '{message}'")
