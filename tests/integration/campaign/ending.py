"""The end of a cluster's life: by `down`, or left alone by everybody until its deadline."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from tests.integration.campaign.living import COMMAND_S, Report, do_fault, make_whole, write
from tests.integration.campaign.mishap import Life
from tests.integration.campaign.truth import (
    billing,
    machines_alive,
    money,
    unlisted,
)
from tests.integration.rehearsed import Rehearsed, wait_until

ENDS_IN_S = 40
"""The deadline that an abandoned cluster gets, from then."""
PROMISED_S = 150.0
"""So late after its deadline the last machine is gone, whatever became of its own timers."""
SPAN_S = 45.0
"""Between the instant that a change is planned for, which the account has, and what the change then does."""


def end(cluster: Rehearsed, report: Report) -> None:
    """`down --all` must succeed, and nothing may be left."""
    done = cluster.run("down", str(cluster.folder), "--all", timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"down --all: exit {done.exit_code}: {done.text[-600:]}")
    _note_money(cluster, report, deadline=None)
    if left := billing(cluster):
        report.wrong.append(f"after down --all there is {left}")
    if still := machines_alive(cluster):
        report.wrong.append(f"after down --all these live: {still}")


def abandon(cluster: Rehearsed, life: Life, report: Report) -> None:
    """Nobody does anything any more: the deadline has to end the machines, and `reap` whatever else bills."""
    write(cluster, nodes=2)
    make_whole(cluster, report)
    deadline = int(time.time()) + ENDS_IN_S
    at = datetime.fromtimestamp(deadline, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    done = cluster.run("extend", "--until", at, "--cluster", f"{cluster.name}@rehearsal", timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"extend --until {at}: exit {done.exit_code}: {done.text[-600:]}")
    if life.is_frozen_at_the_end:
        do_fault(cluster, "freeze", f"{cluster.name}-1")
    wait_until(lambda: time.time() >= deadline, what="the deadline", timeout_s=COMMAND_S)
    give_up = deadline + PROMISED_S
    while (still := machines_alive(cluster)) and time.time() < give_up:
        time.sleep(0.1)
    report.late_s = time.time() - deadline
    if still:
        report.wrong.append(f"{PROMISED_S:.0f} s after the deadline these live: {still}")
    _note_money(cluster, report, deadline=deadline)
    _reap_rest(cluster, report)


def _reap_rest(cluster: Rehearsed, report: Report) -> None:
    """All local state is lost; what bills is listed, and reap ends it."""
    cluster.lose_home()
    lost = unlisted(cluster)
    report.leaks += len(lost)
    report.wrong += [f"after the deadline {one} bills and reap does not list it" for one in lost]
    words = ("reap", "--rehearse", "--region", "us-west-2", "--anyones", "--grace", "1s", "--yes")
    done = cluster.run(*words, timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"reap: exit {done.exit_code}: {done.text[-600:]}")
    if left := billing(cluster):
        report.wrong.append(f"after reap there is {left}")


def _note_money(cluster: Rehearsed, report: Report, *, deadline: float | None) -> None:
    """Each machine's span is true to some seconds; an account may err early, as a deadline then does."""
    found = report.money = money(cluster, deadline=deadline)
    report.wrong += [f"not the bill to the cent: {one}" for one in found.misbilled]
    if found.unreal:
        report.wrong.append(f"the account has machines that never were: {found.unreal}")
    if found.begun_late_s > SPAN_S or found.ended_early_s > SPAN_S:
        report.wrong.append(
            f"the account has a machine {found.begun_late_s:.1f} s after it began, or ends one "
            f"{found.ended_early_s:.1f} s before it did"
        )
