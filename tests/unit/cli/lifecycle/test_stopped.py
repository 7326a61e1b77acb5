"""What is said to whoever stops a change: what exists, what bills, what to type."""

from __future__ import annotations

from clusterctl.engine.state import RESERVATION_TYPE, StackState, StateResource
from clusterctl.lifecycle.stopped import what_exists
from clusterctl_infra.names import IDENTITY_TYPE

from tests.unit.cli.engine.state_rows import machines

ONE = StackState(resources=(StateResource(urn="u::i", type=IDENTITY_TYPE, id="x"),))


def test_who_stops_is_told_what_exists_and_what_to_type() -> None:
    assert what_exists(StackState(), shown="s").splitlines()[0] == "stopped; nothing exists."
    text = what_exists(ONE, shown="s")
    assert "1 resource is there, no node runs" in text
    assert "clusterctl up s" in text
    assert "clusterctl down s" in text


def test_who_stops_is_told_of_reserved_places_which_bill_empty() -> None:
    places = {"instanceCount": 33, "instanceType": "p5.48xlarge"}
    reserved = StateResource(urn="u::r", type=RESERVATION_TYPE, id="cr-1", inputs=places)
    text = what_exists(StackState(resources=(reserved,)), shown="s")
    assert "no node runs, 33 reserved places are empty and bill." in text
    text = what_exists(StackState(resources=(reserved, *machines(range(32)))), shown="s")
    assert "32 nodes run and bill, 1 reserved place is empty and bills." in text
    assert "reserved" not in what_exists(StackState(resources=(reserved, *machines(range(33)))), shown="s")


def test_who_killed_the_engine_is_told_of_machines_that_no_state_knows() -> None:
    """A run that makes many writes its state at its end: killed, it has written none of them."""
    text = what_exists(ONE, shown="s", unknown=40)
    assert "its state has no node; 40 machines beside it run and bill, and the next command ends them." in text
    assert "no node runs" not in text
    silent = what_exists(ONE, shown="s", unknown=None)
    assert "its state has no node; AWS did not say whether more run and bill." in silent
