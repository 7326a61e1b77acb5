"""An `up` of two runs whose second one fails: what the first one made bills, so it is undone or named."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any  # rows of EC2

import pytest
from clusterctl.engine.boundary import RunResult
from clusterctl.engine.state import INSTANCE_TYPE, StackState, StateResource
from clusterctl.lifecycle.change import Change
from clusterctl.lifecycle.failed_up import raise_failed
from clusterctl.lifecycle.stopped import noting_what_exists
from clusterctl_infra.errors import ClusterctlError, EngineError, NoCapacity
from clusterctl_infra.names import ID_TAG, IDENTITY_TYPE, SLOT_TAG

from tests.unit.cli.cloud.fake_answers import clients_of
from tests.unit.cli.lifecycle.recorded_runs import (
    BEFORE,
    CLUSTER,
    HELD,
    ID,
    MEANT,
    NO_ENGINE,
    RESERVED,
    ended,
    engine_of,
    failure_of,
    intent_of,
    refused,
    runs_of,
    screen_of,
    up,
)


@pytest.mark.parametrize(
    ("error", "text"),
    [(NO_ENGINE, "pulumi does not start"), (OSError(errno.ENOSPC, "full", "/x.log"), "/x.log cannot be written")],
)
def test_a_second_run_that_does_not_start_is_one_that_failed_after_the_first(
    runner: Callable[..., Change], error: Exception, text: str
) -> None:
    change = runner(lambda: ended(is_well=True), refused(error))
    ran = up(change)
    assert (ran.has_made, ran.result.succeeded) == (True, False)
    assert text in ran.result.stderr
    assert engine_of(change).wrote_state_once == [False, True]


def test_a_first_run_that_does_not_start_leaves_the_config_as_it_was(runner: Callable[..., Change]) -> None:
    change = runner(refused(NO_ENGINE))
    change.stack.config_file.write_text(BEFORE)
    with pytest.raises(EngineError):
        up(change)
    assert change.stack.config_file.read_text() == BEFORE


def test_where_undoing_it_fails_too_what_bills_is_named_with_the_command_that_ends_it(
    runner: Callable[..., Change],
) -> None:
    change = runner(lambda: ended(is_well=True), refused(NO_ENGINE), state=NO_ENGINE)
    error = failure_of(change, up(change))
    assert "Undoing it failed too (pulumi does not start: no such file)" in error.message
    assert "still there, and bills" in error.message
    assert "clusterctl down s ends it" in error.message
    assert error.hint == "scripts/engine"


def test_who_finds_the_stack_held_after_the_first_run_undoes_nothing_and_names_what_bills(
    runner: Callable[..., Change],
) -> None:
    change = runner(lambda: ended(is_well=True), lambda: ended(is_well=False, stderr=HELD))
    change.begin()
    error = failure_of(change, up(change))
    assert "started by bob on tower" in error.message
    assert "1 resource is there, no node runs, 33 reserved places are empty and bill" in error.message
    assert "clusterctl down s ends it" in error.message
    assert change.home.run_file("train").exists(), "the next change has to repair"
    assert change.stack.config_file.read_text() == MEANT, "what was made is of this config"


def test_ctrl_c_between_the_two_runs_names_what_the_first_one_made(runner: Callable[..., Change]) -> None:
    change = runner(lambda: ended(is_well=True), refused(KeyboardInterrupt()))
    ran = up(change)
    with pytest.raises(KeyboardInterrupt):
        raise_failed(change, ran, before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s")
    screen = screen_of(change)
    assert "1 resource is there, no node runs, 33 reserved places are empty and bill" in screen
    assert "next: clusterctl up s    goes on\n        clusterctl down s  ends it" in screen
    assert change.stack.config_file.read_text() == MEANT, "what was made is of this config"


def test_ctrl_c_after_the_last_run_names_what_exists(runner: Callable[..., Change]) -> None:
    change = runner()
    with pytest.raises(KeyboardInterrupt), noting_what_exists(change, shown="s"):
        raise KeyboardInterrupt
    assert "33 reserved places are empty and bill" in screen_of(change)


def test_who_finds_the_stack_held_at_once_has_begun_nothing(runner: Callable[..., Change]) -> None:
    change = runner(lambda: ended(is_well=False, stderr=HELD))
    change.begin()
    error = failure_of(change, up(change))
    assert "at 2026-11-21T10:15:13Z; wait for it; if you are certain that it has ended" in error.message
    assert error.hint == f"cd {change.stack.directory} && pulumi cancel --stack dev"
    assert not change.home.run_file("train").exists()
    assert change.stack.config_file.read_text() == BEFORE


def test_where_the_backend_is_silent_beside_another_what_bills_is_named_all_the_same(
    runner: Callable[..., Change],
) -> None:
    change = runner(lambda: ended(is_well=True), lambda: ended(is_well=False, stderr=HELD), state=NO_ENGINE)
    error = failure_of(change, up(change))
    assert "started by bob on tower" in error.message
    assert "places that are reserved and empty" in error.message
    assert "clusterctl down s ends it" in error.message


def test_who_stops_the_undoing_is_told_that_something_may_bill(runner: Callable[..., Change]) -> None:
    change = runner(lambda: ended(is_well=False, stderr="no room"), when_asked_for_its_lock=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        raise_failed(
            change, up(change), before_text=BEFORE, before_state=StackState(), intent=intent_of(change), shown="s"
        )
    screen = screen_of(change)
    assert "stopped during the repair" in screen
    assert "may bill" in screen
    assert "clusterctl down" in screen


def test_an_undone_up_says_that_nothing_bills_only_after_aws_was_asked_again(runner: Callable[..., Change]) -> None:
    """An address that a killed engine had asked for is there after the destroy, and may not be released."""
    identity = StateResource(urn="u::i", type=IDENTITY_TYPE, id="x", outputs={"cluster_id": ID})
    made = StackState(resources=(identity, *RESERVED.resources))
    addresses: list[dict[str, Any]] = []

    def destroyed() -> RunResult:
        addresses.append({"AllocationId": "eipalloc-1", "Tags": [{"Key": ID_TAG, "Value": ID}]})
        return ended(is_well=True)

    aws = clients_of(
        {("us-west-2", "describe_addresses", "Addresses"): addresses},
        refused={("ec2", "release_address"): "UnauthorizedOperation"},
    )
    change = runner(lambda: ended(is_well=False, stderr="no room"), destroyed, state=made, aws=aws)
    error = failure_of(change, up(change))
    assert "not all is gone: 1 thing that bills is left: elastic IP eipalloc-1: bills" in error.message
    assert "clusterctl down" not in error.message, "its state is empty: it would end nothing"
    assert error.hint == f"clusterctl reap --cluster {ID} --region us-west-2"
    repairs = [line for line in screen_of(change).splitlines() if "in no Pulumi state" in line]
    assert repairs == ["  repair   ending elastic IP eipalloc-1: it is in no Pulumi state"]


@pytest.mark.parametrize("runs_on", [False, True], ids=["a new cluster", "one that ran before"])
def test_of_spot_machines_only_what_can_still_be_chosen_is_advised(
    runner: Callable[..., Change], runs_on: bool
) -> None:
    machine = StateResource(urn="u::n", type=INSTANCE_TYPE, id="i-0", inputs={"tags": {SLOT_TAG: "0"}})
    before = StackState(resources=(machine,) if runs_on else ())
    change = runner(lambda: ended(is_well=False, codes=["InsufficientInstanceCapacity"]), state=before)
    change.stack.cluster_file.write_text(f"{CLUSTER}capacity: spot\n")
    ran, intent = up(change), intent_of(change)
    with pytest.raises(ClusterctlError) as caught:
        raise_failed(change, ran, before_text=BEFORE, before_state=before, intent=intent, shown="s")
    assert ("try again, or write another zone" in caught.value.message) is not runs_on
    assert caught.value.hint == "clusterctl up s"


REFUSALS = {
    "no capacity": ("InsufficientInstanceCapacity", RESERVED, True),
    "no capacity, and something is left": ("InsufficientInstanceCapacity", StackState(), False),
    "not allowed": ("UnauthorizedOperation", RESERVED, False),
}


@pytest.mark.parametrize(("code", "before", "may_be_tried_again"), REFUSALS.values(), ids=REFUSALS.keys())
def test_only_a_lack_of_capacity_that_left_nothing_behind_is_worth_waiting_for(
    runner: Callable[..., Change], code: str, before: StackState, may_be_tried_again: bool
) -> None:
    change = runner(lambda: ended(is_well=False, codes=[code]), lambda: ended(is_well=True))
    ran, intent = up(change), intent_of(change)
    with pytest.raises(ClusterctlError) as caught:
        raise_failed(change, ran, before_text=BEFORE, before_state=before, intent=intent, shown="s")
    assert isinstance(caught.value, NoCapacity) is may_be_tried_again


def test_where_the_disk_was_full_nothing_is_undone_which_may_cost_the_state(runner: Callable[..., Change]) -> None:
    stderr = "error: failed to save snapshot: write /not/there/dev.json.tmp: no space left on device"
    change = runner(lambda: ended(is_well=False, stderr=stderr))
    change.begin()
    error = failure_of(change, up(change))
    assert "once the disk has room, clusterctl up s goes on with it, and clusterctl down s ends it" in error.message
    assert error.hint == "df -h /"
    assert len(runs_of(change)) == 1, "no second run"
    assert change.home.run_file("train").exists(), "the next change has to repair"
