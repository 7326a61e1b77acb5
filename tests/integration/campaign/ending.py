"""The end of a cluster's life: by `down`, or left alone by everybody until its deadline."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from clusterctl_infra.names import DEADLINE_TAG
from clusterctl_rehearsal.region.store import Store

from tests.integration.campaign.befalling import COMMAND_S, do_fault
from tests.integration.campaign.cost_check import has_inventory, wrong_last_word
from tests.integration.campaign.ledger_and_bill import ledger_and_bill
from tests.integration.campaign.living import Tell, befall_and_look, look, make_whole, note_cost, write
from tests.integration.campaign.mishap import Life
from tests.integration.campaign.region_facts import DATA, billed, billing, home_of, machines_alive
from tests.integration.campaign.report import Report
from tests.integration.kill_campaign import assert_gone
from tests.integration.rehearsed import Rehearsed, wait_until

ENDS_IN_S = 25
"""The deadline that a whole cluster gets, from then: an `extend` has to be over before it."""
RUNTIME_S = 45
"""Of a run that is cut off and forsaken: it has to have got somewhere."""
NODES_PROMISE_S = 15.0
"""This long after the deadline the nodes' own timers have ended the last one: 5 s, and more on a busy computer."""
SCHEDULE_PROMISE_S = 150.0
"""This long after it AWS's schedule has, where a node cannot end itself."""
AWS_IS_LATE_S = 60
"""The schedule's delay where nodes have to end themselves: on time, it would hide that they did not."""


def end(cluster: Rehearsed, report: Report) -> None:
    """`down --all` must succeed and show the true sum, and nothing may be left."""
    cluster_id = cluster.inventory()["cluster_id"] if has_inventory(cluster) else None
    note_cost(cluster, report)
    done = cluster.run("down", str(cluster.folder), "--all", timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"down --all: exit {done.exit_code}: {done.text[-600:]}")
    bill = [row for row in billed(cluster) if row.cluster_id == cluster_id]
    if (wrong := wrong_last_word(done.stderr, bill)) is not None:
        report.wrong.append(wrong)
    _note_account(cluster, report, deadline=None)
    if left := billing(cluster):
        report.wrong.append(f"after down --all there is {left}")
    try:
        assert_gone(cluster)
    except AssertionError as gone:
        report.wrong.append(f"after down --all something is left: {gone}")


def outlive(cluster: Rehearsed, life: Life, report: Report) -> None:
    """A whole cluster, and nobody does anything any more: the deadline ends its machines, and `reap` all else."""
    write(cluster, nodes=2, schedule_late_s=0 if life.is_frozen_at_the_end else AWS_IS_LATE_S)
    make_whole(cluster, report)
    deadline = int(time.time()) + ENDS_IN_S
    at = datetime.fromtimestamp(deadline, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    done = cluster.run("extend", "--until", at, "--cluster", f"{cluster.name}@rehearsal", timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"extend --until {at}: exit {done.exit_code}: {done.text[-600:]}")
    note_cost(cluster, report)
    if life.is_frozen_at_the_end and not do_fault(cluster, "freeze", f"{cluster.name}-1"):
        report.wrong.append(f"{cluster.name}-1 could not be frozen before its deadline")
    _await_end(cluster, report, deadline, SCHEDULE_PROMISE_S if life.is_frozen_at_the_end else NODES_PROMISE_S)
    _reap_rest(cluster, report)


def forsake(cluster: Rehearsed, life: Life, report: Report, tell: Tell) -> None:
    """A new run is cut off while it begins, and nobody comes back."""
    note_cost(cluster, report)
    done = cluster.run("down", str(cluster.folder), timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"down: exit {done.exit_code}: {done.text[-600:]}")
    write(cluster, nodes=2, schedule_late_s=AWS_IS_LATE_S, caps={"runtime": f"{RUNTIME_S}s"})
    befall_and_look(cluster, ["up", str(cluster.folder)], life.mishaps[-1], report, tell)
    # The run began while the command ran: its deadline is no later than that.
    _await_end(cluster, report, deadline_of(cluster) or int(time.time()) + RUNTIME_S, NODES_PROMISE_S)
    _reap_rest(cluster, report)


def deadline_of(cluster: Rehearsed) -> int | None:
    """The deadline in the tags that everything of the cluster carries; None where nothing was made yet."""
    deadlines = {row.tags[DEADLINE_TAG] for row in Store(home_of(cluster).store).live() if DEADLINE_TAG in row.tags}
    return int(max(datetime.fromisoformat(time).timestamp() for time in deadlines)) if deadlines else None


def _await_end(cluster: Rehearsed, report: Report, deadline: int, promised_s: float) -> None:
    """Until the last machine is gone; none may be left this long after the deadline."""
    wait_until(lambda: time.time() >= deadline, what="the deadline", timeout_s=COMMAND_S)
    while (still := machines_alive(cluster)) and time.time() < deadline + promised_s:
        time.sleep(0.1)
    report.late_s = time.time() - deadline
    if still:
        report.wrong.append(f"{promised_s:.0f} s after the deadline these live: {still}")
    note_cost(cluster, report)
    _note_account(cluster, report, deadline=deadline)


def _reap_rest(cluster: Rehearsed, report: Report) -> None:
    """All local state is lost; what bills is listed, and reap ends it."""
    cluster.lose_home()
    look(cluster, report, after="the deadline, with all local state lost")
    words = ("reap", "--rehearse", "--region", "us-west-2", "--anyones", "--grace", "1s", "--yes")
    data = [word for id, token in billing(cluster).items() if token in DATA for word in ("--data", id)]
    done = cluster.run(*words, *data, timeout_s=COMMAND_S)
    if done.exit_code != 0:
        report.wrong.append(f"reap: exit {done.exit_code}: {done.text[-600:]}")
    if left := billing(cluster):
        report.wrong.append(f"after reap there is {left}")


def _note_account(cluster: Rehearsed, report: Report, *, deadline: float | None) -> None:
    report.ledger_and_bill = ledger_and_bill(cluster, deadline=deadline)
    report.wrong += report.ledger_and_bill.wrong
