"""Runs a state machine's definition: the few kinds of states that ours has, within Step Functions' limits.

Compared with moto's interpreter (5.2.5, 2026-11-22), which ended the same machines; docs/adr/0014 says why moto's is
not used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any  # states' data are JSON

from clusterctl_rehearsal.states.failure import DATA_LIMIT, NO_CHOICE, TIMEOUT, ExecutionFailed, TaskFailed
from clusterctl_rehearsal.states.paths import is_there, placed, rendered, value_at

ANSWER_LIMIT_BYTES = 262_144
EVENT_LIMIT = 25_000
"""This and ANSWER_LIMIT_BYTES are from the developer guide, "Service quotas" (2026-11-21)."""
EVENTS_PER_STATE = {"Task": 2, "Map": 4, "Pass": 2, "Choice": 2, "Wait": 2, "Succeed": 2, "Fail": 1}
_EVENTS_PER_CALL = 3
_EVENTS_PER_ITEM = 2
Call = Callable[[str, Mapping[str, Any]], Any]
"""An EC2 action such as `describeTags` with its parameters → its answer. Raises TaskFailed."""
States = Mapping[str, Any]


@dataclass(kw_only=True)
class Execution:
    """One run of a checked definition."""

    definition: States
    call: Call
    pause: Callable[[float], None]
    clock: Callable[[], float]
    events: int = 2
    """How many events the execution's history would have by now; its start and its end are two."""
    _ends_at: float = 0.0

    def run(self, given: Any) -> Any:
        """Runs the definition to its end, and returns the output. Raises ExecutionFailed."""
        self._ends_at = self.clock() + float(self.definition.get("TimeoutSeconds", 31_536_000))
        return self._from(self.definition, given, {})

    def _from(self, machine: States, data: Any, context: Mapping[str, Any]) -> Any:
        name: str | None = machine["StartAt"]
        while name is not None:
            state = machine["States"][name]
            self._count(EVENTS_PER_STATE[state["Type"]])
            if self.clock() > self._ends_at:
                raise ExecutionFailed(TIMEOUT, f"in {name}")
            name, data = self._step(name, state, data, context)
            _check_size(data, name)
        return data

    def _step(self, name: str, state: States, data: Any, context: Mapping[str, Any]) -> tuple[str | None, Any]:
        kind = state["Type"]
        if kind == "Choice":
            return _chosen(name, state, data), data
        if kind == "Wait":
            self.pause(float(state["Seconds"] if "Seconds" in state else value_at(state["SecondsPath"], data, context)))
            return state.get("Next"), data
        if kind == "Succeed":
            return None, data
        if kind == "Fail":
            raise ExecutionFailed(state.get("Error", ""), state.get("Cause", ""))
        try:
            result = state.get("Result", data) if kind == "Pass" else self._result(name, state, data, context)
            made = placed(result, state.get("ResultPath", "$"), data)
        except TaskFailed as e:
            catcher = next((row for row in state.get("Catch", ()) if _matches(row, e)), None)
            if catcher is None:
                raise ExecutionFailed(e.error, e.cause) from e
            caught = {"Error": e.error, "Cause": e.cause}
            return catcher["Next"], placed(caught, catcher.get("ResultPath", "$"), data)
        return state.get("Next"), value_at(state["OutputPath"], made, context) if "OutputPath" in state else made

    def _result(self, name: str, state: States, data: Any, context: Mapping[str, Any]) -> Any:
        result = (self._map if state["Type"] == "Map" else self._task)(state, data, context)
        _check_size(result, name)
        return result

    def _task(self, state: States, data: Any, context: Mapping[str, Any]) -> Any:
        action = str(state["Resource"]).rpartition(":")[2]
        parameters = rendered(state.get("Parameters", {}), data, context)
        attempts = 0
        while True:
            self._count(_EVENTS_PER_CALL)
            try:
                return self.call(action, parameters)
            except TaskFailed as e:
                retrier = next((row for row in state.get("Retry", ()) if _matches(row, e)), None)
                if retrier is None or attempts >= int(retrier.get("MaxAttempts", 3)):
                    raise
                wait_s = float(retrier.get("IntervalSeconds", 1)) * float(retrier.get("BackoffRate", 2.0)) ** attempts
                self.pause(min(wait_s, float(retrier.get("MaxDelaySeconds", wait_s))))
                attempts += 1

    def _map(self, state: States, data: Any, context: Mapping[str, Any]) -> list[Any]:
        """Runs the items one after another, where AWS runs `MaxConcurrency` side by side; returns all results."""
        results = []
        effective = value_at(state.get("InputPath", "$"), data, context)
        for item in value_at(state.get("ItemsPath", "$"), effective, context):
            self._count(_EVENTS_PER_ITEM)
            of_item = {**context, "Map": {"Item": {"Value": item}}}
            given = rendered(state["ItemSelector"], effective, of_item) if "ItemSelector" in state else item
            results.append(self._from(state["ItemProcessor"], given, of_item))
        return results

    def _count(self, events: int) -> None:
        self.events += events
        if self.events > EVENT_LIMIT:
            raise ExecutionFailed("States.Runtime", f"The execution reached the limit of {EVENT_LIMIT} events")


def _chosen(name: str, state: States, data: Any) -> str:
    """The state that a Choice leads to. Raises ExecutionFailed if no rule holds and there is no default."""
    chosen = next((rule["Next"] for rule in state["Choices"] if _holds(rule, data)), state.get("Default"))
    if chosen is None:
        raise ExecutionFailed(NO_CHOICE, f"No choice rule of the state '{name}' holds, and it has no default")
    return str(chosen)


def _holds(rule: States, data: Any) -> bool:
    return all(_passes(test, data) for test in rule.get("And", [rule]))


def _passes(test: States, data: Any) -> bool:
    path = test["Variable"]
    if not is_there(path, data):
        return test.get("IsPresent") is False
    value = value_at(path, data, {})
    if "IsPresent" in test:
        return test["IsPresent"] is True
    if "IsNull" in test:
        return (value is None) is test["IsNull"]
    if "BooleanEquals" in test:
        return value is test["BooleanEquals"]
    if "NumericGreaterThan" in test:
        return isinstance(value, int | float) and value > test["NumericGreaterThan"]
    if "StringMatches" in test:
        parts = map(re.escape, str(test["StringMatches"]).split("*"))
        return isinstance(value, str) and re.fullmatch(".*".join(parts), value, re.DOTALL) is not None
    return isinstance(value, str) and value > test["StringGreaterThan"]


def _matches(row: States, failed: TaskFailed) -> bool:
    return any(name in ("States.ALL", "States.TaskFailed", failed.error) for name in row["ErrorEquals"])


def _check_size(value: Any, name: str | None) -> None:
    size = len(json.dumps(value, separators=(",", ":")).encode())
    if size > ANSWER_LIMIT_BYTES:
        message = f"The state/task '{name}' returned a result with a size exceeding the maximum number of bytes"
        raise ExecutionFailed(DATA_LIMIT, f"{message} ({size} > {ANSWER_LIMIT_BYTES})")
