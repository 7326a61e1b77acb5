"""Asks every node all probes at once, over one connection each."""

from __future__ import annotations

import dataclasses
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import Any  # probes of any reading

from clusterctl_infra.outputs import Inventory, InventoryNode
from clusterctl_infra.strict_json import LARGEST_NUMBER, MOST_TEXT

from clusterctl.probes.probe import Probe, ProbeTrouble, ProbeUnreadable, first_words
from clusterctl.probes.readings import NodeAnswer, Readings, readings_of
from clusterctl.ssh.deadlines import Deadlines
from clusterctl.ssh.fanout.fan_out import run_on_nodes
from clusterctl.ssh.keys.login_keys import LoginKeys
from clusterctl.ssh.results import NodeResult


def ask_nodes(
    inventory: Inventory,
    nodes: Sequence[InventoryNode],
    probes: Sequence[Probe[Any]],
    *,
    keys: LoginKeys,
    connect_timeout_s: float,
    timeout_s: float,
) -> tuple[NodeAnswer, ...]:
    """One answer per node, in the nodes' order; a silent node's answer has a failure."""
    ended_at_s: dict[int, float] = {}

    def note_end(result: NodeResult) -> None:
        ended_at_s[result.slot] = time.time()

    results = run_on_nodes(
        inventory,
        nodes,
        probe_script(probes),
        keys=keys,
        deadlines=Deadlines.within(connect_timeout_s),
        timeout_s=timeout_s,
        on_result=note_end,
    )
    return tuple(_answer(node, results[node.slot], ended_at_s[node.slot], probes) for node in nodes)


def _answer(node: InventoryNode, result: NodeResult, ended_at_s: float, probes: Sequence[Probe[Any]]) -> NodeAnswer:
    has_output = bool(result.stdout)  # what came before the node was lost still counts
    readings = readings_of(read_script(result.stdout.decode(errors="replace"), probes)) if has_output else Readings()
    return NodeAnswer(
        node=node,
        readings=readings,
        failure=result.failure,
        asked_at_s=ended_at_s - result.duration_s,
        answered_at_s=ended_at_s,
    )


BEGIN, END = "@@probe", "@@end"
TIMED_OUT = "124"  # coreutils timeout(1)
MOST_ROWS = 20_000
"""The most rows of one reading: a check of 1024 nodes may have four for each."""
KILL_AFTER_S = 2

_FUNCTION = f"""probe() {{
printf '\\n{BEGIN} %s\\n' "$1"
timeout -k {KILL_AFTER_S} "$2" sh -c "$3" 2>&1
printf '\\n{END} %s\\n' $?
}}
"""
_SECTION = re.compile(rf"^{BEGIN} (\S+)\n(.*?)(?:^{END} (\d+)$|(?=^{BEGIN} )|\Z)", re.MULTILINE | re.DOTALL)


def probe_script(probes: Sequence[Probe[Any]]) -> str:
    """One line for any login shell: each probe in turn, with its own time limit, so that one that hangs does not
    cost the others.
    """
    calls = [f"probe {probe.name} {probe.limit_s} {shlex.quote(probe.command)}" for probe in probes]
    return "exec sh -c " + shlex.quote(_FUNCTION + "\n".join(calls) + "\n")


def read_script(stdout: str, probes: Sequence[Probe[Any]]) -> Mapping[str, Any]:
    """Each probe's reading by its name; ProbeTrouble where there is none, or none that can be read."""
    sections = {match[1]: (match[2], match[3]) for match in _SECTION.finditer(stdout)}
    return {probe.name: _reading(probe, sections.get(probe.name)) for probe in probes}


def _reading(probe: Probe[Any], section: tuple[str, str | None] | None) -> Any:
    if section is None:
        return ProbeTrouble(message="not asked: the node was lost before")
    text, code = section
    if code is None or code == TIMED_OUT:
        return ProbeTrouble(message=f"no answer in {probe.limit_s} s")
    try:
        reading = probe.parse(text)
        refuse_unbounded(reading)
    except ProbeUnreadable as e:
        return ProbeTrouble(message=str(e) or f"unreadable: {first_words(text)}")
    except (ValueError, ArithmeticError, LookupError, TypeError, RecursionError) as e:
        # The boundary: if the output of a broken or hostile node breaks a parser, only this reading of it is lost.
        return ProbeTrouble(message=f"unreadable ({first_words(str(e))}): {first_words(text)}")
    return reading


def refuse_unbounded(reading: object) -> None:
    """Raises ProbeUnreadable where a number or a text in the reading is larger than any real one."""
    if isinstance(reading, str):
        if len(reading) > MOST_TEXT:
            raise ProbeUnreadable(f"a text of {len(reading)} characters")
    elif isinstance(reading, int | float):
        if not abs(reading) <= LARGEST_NUMBER:  # refuses NaN, too
            raise ProbeUnreadable("a number out of bounds")
    elif dataclasses.is_dataclass(reading):
        for field in dataclasses.fields(reading):
            refuse_unbounded(getattr(reading, field.name))
    elif isinstance(reading, Mapping):
        refuse_unbounded((*reading.keys(), *reading.values()))
    elif isinstance(reading, list | tuple):
        if len(reading) > MOST_ROWS:
            raise ProbeUnreadable(f"{len(reading)} rows, at most {MOST_ROWS} are read")
        for value in reading:
            refuse_unbounded(value)
