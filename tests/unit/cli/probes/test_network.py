"""What nodes say of each other, read and judged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusterctl.probes.finding import sentences_of
from clusterctl.probes.network import PORTS, network_findings, parse_network
from clusterctl.probes.probe import ProbeUnreadable

ANSWER: dict[str, Any] = {
    "slot": 0,
    "trouble": "",
    "busy": [],
    "names": [],
    "are_names_known": True,
    "unreached": [],
}
NAMES = {0: "train-0", 1: "train-1", 2: "train-2"}


def findings(*, unheard: tuple[int, ...] = (), **changes: Any) -> list[str]:
    return sentences_of(network_findings(parse_network(json.dumps({**ANSWER, **changes})), NAMES, unheard=unheard))


def row(slot: int, port: int) -> dict[str, Any]:
    return {"slot": slot, "port": port, "why": "no answer"}


def test_a_node_with_nothing_to_tell_has_no_finding() -> None:
    assert findings() == []


def test_a_pair_that_fails_is_a_fault_with_its_ports() -> None:
    assert findings(unreached=[row(1, 29400), row(1, 29500)]) == [
        "does not reach train-1 (port 29400,29500: no answer)"
    ]
    every = [row(2, port) for port in PORTS]
    assert findings(unreached=every) == ["does not reach train-2 (any port: no answer)"]
    assert findings(unreached=every, unheard=(2,)) == []


def test_names_addresses_and_other_programs_are_told() -> None:
    assert findings(names=[{"name": "train-1", "means": "127.0.1.1"}]) == [
        "train-1 does not resolve to its address (127.0.1.1)"
    ]
    assert findings(are_names_known=False) == ["looking up the nodes' names got no answer"]
    assert findings(trouble="10.0.8.0: no") == ["no port can be opened (10.0.8.0: no)"]
    busy = parse_network(json.dumps({**ANSWER, "busy": [{"port": 29500}]}))
    assert [each.level for each in network_findings(busy, NAMES, unheard=())] == ["remark"]


@pytest.mark.parametrize("text", ["", "no python3", "[]", json.dumps({**ANSWER, "slot": "x"}), '{"slot": 0}'])
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(ProbeUnreadable, match="network"):
        parse_network(text)
