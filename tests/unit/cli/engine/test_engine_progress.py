"""The display of a run, fed with events: counts, times, which instance is in which slot."""

from __future__ import annotations

import pytest
from clusterctl.engine.events import Message, Step
from clusterctl.engine.progress import Progress, clock_text, group_line, group_of, live_line, summary
from clusterctl.lifecycle.display import remark

INSTANCE = "aws:ec2/instance:Instance"
VPC = "aws:ec2/vpc:Vpc"


def step(stage: str, type: str, name: str, *, op: str = "create", id: str = "", slot: int | None = None) -> Step:
    inputs = {} if slot is None else {"tags": {"clusterctl:slot": str(slot)}}
    return Step(stage=stage, op=op, urn=f"u::{type}::{name}", type=type, id=id, inputs=inputs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type", "group"),
    [
        (VPC, "network"),
        ("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "network"),
        ("aws:ec2/capacityReservation:CapacityReservation", "capacity"),
        ("aws:fsx/lustreFileSystem:LustreFileSystem", "storage"),
        (INSTANCE, "nodes"),
    ],
)
def test_each_type_counts_in_one_group(type: str, group: str) -> None:
    assert group_of(type) == group


def test_a_group_counts_what_is_done_of_what_began() -> None:
    progress = Progress()
    progress.feed(step("began", VPC, "a"), at=1.0)
    progress.feed(step("began", VPC, "b"), at=1.0)
    progress.feed(step("done", VPC, "a"), at=4.0)
    assert group_line("network", progress.groups["network"], now=5.0) == " network     1/2     … 4 s"
    progress.feed(step("done", VPC, "b"), at=4.0)
    assert group_line("network", progress.groups["network"], now=9.0) == " network     2/2     ✓ 3 s"


def test_groups_before_the_nodes_are_finished_when_a_node_begins() -> None:
    progress = Progress()
    progress.feed(step("began", VPC, "a"), at=1.0)
    progress.feed(step("done", VPC, "a"), at=2.0)
    assert progress.finished_groups() == ()
    progress.feed(step("began", INSTANCE, "n", slot=0), at=3.0)
    assert progress.finished_groups() == ("network",)


def test_what_stays_the_same_is_not_counted_as_changed() -> None:
    progress = Progress()
    progress.feed(step("done", VPC, "a", op="same"), at=1.0)
    assert not progress.groups["network"].changed


def test_a_slot_has_the_instance_that_was_made_last() -> None:
    progress = Progress()
    progress.feed(step("done", INSTANCE, "n", op="same", id="i-1", slot=0), at=1.0)
    assert progress.instances == {0: "i-1"}
    progress.feed(step("done", INSTANCE, "n", op="delete-replaced", id="i-1", slot=0), at=2.0)
    assert progress.instances == {}
    progress.feed(step("done", INSTANCE, "n", op="create-replacement", id="i-2", slot=0), at=3.0)
    assert progress.instances == {0: "i-2"}


def test_a_failure_shows_as_one() -> None:
    progress = Progress()
    progress.feed(step("began", INSTANCE, "n"), at=1.0)
    progress.feed(step("failed", INSTANCE, "n"), at=2.0)
    assert "✗" in group_line("nodes", progress.groups["nodes"], now=3.0)


def test_what_a_provider_says_stands_in_the_living_line_until_it_is_done() -> None:
    progress = Progress()
    began = step("began", INSTANCE, "train-0", slot=0)
    progress.feed(began, at=1.0)
    progress.feed(Message(urn=began.urn, severity="info", text="booting", ephemeral=True), at=1.5)
    assert live_line(progress, now=2.0, began_at=0.0) == "2 s · nodes 0/1 · train-0: booting"
    progress.feed(step("done", INSTANCE, "train-0", slot=0), at=2.0)
    assert "booting" not in live_line(progress, now=2.0, began_at=0.0)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (59.9, "59 s"), (60, "1:00"), (472, "7:52")])
def test_times_are_short(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"same": 42}, "nothing changed"),
        ({"create": 3, "same": 1, "delete": 1}, "3 created, 1 deleted"),
        ({}, "nothing changed"),
    ],
)
def test_the_summary_names_changes_only(changes: dict[str, int], text: str) -> None:
    assert summary(changes) == text


@pytest.mark.parametrize(
    ("severity", "text", "line"),
    [
        ("warning", "slow", "  warning  slow"),
        ("info", "machines: no machines, as asked", " machines    no machines, as asked"),
        ("info", "base image: unpacking", None),
    ],
)
def test_warnings_and_the_choice_of_machines_stay_on_the_screen(severity: str, text: str, line: str | None) -> None:
    assert remark(Message(urn="u", severity=severity, text=text, ephemeral=True)) == line
