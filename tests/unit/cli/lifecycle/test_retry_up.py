"""`up --retry-until-up` tries again while AWS has no capacity, and never longer than asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clusterctl.lifecycle.retry_up import bring_up_in_time
from clusterctl.lifecycle.up_request import UpRequest
from clusterctl.output import Output
from clusterctl_infra.errors import CloudError, ClusterctlError, NoCapacity, NotBegun

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Screen

REQUEST = UpRequest(
    stack_dir=Path("stacks/train"),
    stack_name="dev",
    rehearse=False,
    nodes=None,
    is_agreed=False,
    ready_timeout_s=None,
)
NOW = datetime(2026, 11, 26, tzinfo=UTC)
FULL = NoCapacity("InsufficientInstanceCapacity: no room. Nothing was kept.", code="InsufficientInstanceCapacity")


class Account:
    """An account in which tries end with these outcomes, on a clock that only pauses move."""

    def __init__(self, *outcomes: ClusterctlError | None) -> None:
        self.outcomes = list(outcomes)
        self.now_s = 0.0
        self.pauses_s: list[float] = []
        self.agreed: list[bool] = []
        self.request = REQUEST
        self.is_asked = True
        """Whether a try comes as far as its question, to which the person agrees."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What others do while it waits."""

    def attempt(self, request: UpRequest, output: Output, environ: Mapping[str, str]) -> None:
        self.agreed.append(request.is_agreed)
        if self.is_asked:
            request.on_agreed()
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if outcome is not None:
            raise outcome

    def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self.now_s += seconds
        self.meanwhile()

    def bring_up(self, screen: Screen, *, for_s: float) -> None:
        bring_up_in_time(
            self.request,
            screen.output,
            {},
            for_s=for_s,
            attempt=self.attempt,
            monotonic=lambda: self.now_s,
            wall_clock=lambda: NOW + timedelta(seconds=self.now_s),
            sleep=self.sleep,
        )


def test_it_goes_on_until_there_is_room_and_asks_once(screen: Screen) -> None:
    account = Account(FULL, FULL, FULL, None)
    account.bring_up(screen, for_s=3600)
    assert account.pauses_s == [10, 20, 40]
    assert account.agreed == [False, True, True, True]
    assert screen.err.count("Nothing was kept.\n  next try in ") == 3


def test_a_try_that_ends_before_its_question_agrees_to_nothing(screen: Screen) -> None:
    account = Account(FULL, FULL, None)
    account.is_asked = False
    account.bring_up(screen, for_s=3600)
    assert account.agreed == [False, False, False]


@pytest.mark.parametrize("is_agreed", [False, True])
def test_a_file_that_changes_meanwhile_is_asked_about_unless_nobody_was_asked(
    is_agreed: bool, tmp_path: Path, screen: Screen
) -> None:
    (tmp_path / "cluster.yaml").write_text("nodes: 2")
    account = Account(FULL, FULL, FULL, None)
    account.request = replace(REQUEST, stack_dir=tmp_path, is_agreed=is_agreed)
    sizes = iter((2, 16, 16))

    def somebody_writes() -> None:
        (tmp_path / "cluster.yaml").write_text(f"nodes: {next(sizes)}")

    account.meanwhile = somebody_writes
    account.bring_up(screen, for_s=3600)
    assert account.agreed == ([True] * 4 if is_agreed else [False, True, False, True])


def test_no_try_begins_later_than_asked(screen: Screen) -> None:
    account = Account(FULL)
    with pytest.raises(NoCapacity):
        account.bring_up(screen, for_s=6 * 3600)
    assert account.now_s <= 6 * 3600
    assert max(account.pauses_s) == 900


@pytest.mark.parametrize("other", [CloudError("VcpuLimitExceeded: …", code="VcpuLimitExceeded"), ClusterctlError("x")])
def test_what_is_no_lack_of_capacity_is_not_tried_again(screen: Screen, other: ClusterctlError) -> None:
    account = Account(other)
    with pytest.raises(type(other)) as raised:
        account.bring_up(screen, for_s=3600)
    assert raised.value is other
    assert account.pauses_s == []


def test_a_reservation_that_begins_later_is_waited_for(screen: Screen) -> None:
    begins_at = NOW + timedelta(hours=5)
    account = Account(NotBegun("cr-1 is scheduled", code="ReservationNotBegun", begins_at=begins_at), None)
    account.bring_up(screen, for_s=6 * 3600)
    assert account.pauses_s == [5 * 3600]


def test_a_reservation_that_begins_after_the_last_try_is_told_at_once(screen: Screen) -> None:
    begins_at = NOW + timedelta(hours=7)
    account = Account(NotBegun("cr-1 is scheduled", code="ReservationNotBegun", begins_at=begins_at), None)
    with pytest.raises(NotBegun):
        account.bring_up(screen, for_s=6 * 3600)
    assert account.pauses_s == []


def test_a_block_that_was_bought_meanwhile_changes_nothing_of_what_was_agreed_to(
    tmp_path: Path, screen: Screen
) -> None:
    config = tmp_path / "Pulumi.dev.yaml"
    config.write_text("config:\n")
    account = Account(FULL, None)
    account.request = replace(REQUEST, stack_dir=tmp_path)

    def somebody_buys() -> None:
        config.write_text('config:\n  clusterctl:block: "cr-1"\n')

    account.meanwhile = somebody_buys
    account.bring_up(screen, for_s=3600)
    assert account.agreed == [False, True]
