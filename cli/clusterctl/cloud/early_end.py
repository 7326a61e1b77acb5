"""What ended a cluster before its deadline.

Nodes that end their cluster start its state machine, and name the execution after their reason. `reap` also deletes the
state machine itself, once no machine and no reservation is left.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any  # rows of ListExecutions

from clusterctl_infra.plan.ending_machine import SPARED

from clusterctl.cloud.boundary import Clients
from clusterctl.cloud.deadline_resources import state_machines
from clusterctl.cloud.look import look_at_each
from clusterctl.cloud.refusal import aws_errors
from clusterctl.cloud.storage_resources import DATA_KINDS

UNSURE = "unsure"
"""The reason of nodes that could not know whether slot 0 died: AWS looks for its machine, and ends nothing if there is
one."""
LOST = "without slot 0"
REASONS = {"idle": "idle", "alone": "without a majority of its nodes", "lost": LOST, UNSURE: LOST}
"""The first word in the name of an execution that nodes start, and what it means."""
SINCE = "-%Y-%m-%dT%H-%M-%SZ"
"""The rest of the name: since when the reason has held."""
LOOKED_AT = 50
REAPED = "reaped"
"""Ended by `clusterctl reap`, or by hand in the same way: the two cannot be told apart."""


@dataclass(frozen=True, kw_only=True)
class EarlyEnd:
    """An end before the deadline."""

    reason: str
    since: datetime | None
    """Since when the reason held; None if the reason is not a state that lasts."""
    at: datetime
    """When AWS had ended all of it."""
    keeps_data: bool = True
    """Whether a file system of the cluster is still there."""

    @property
    def is_reaped(self) -> bool:
        """Whether all of it went, network and permissions too: `up` finds nothing of what the cluster's state names."""
        return self.reason == REAPED


def early_end(
    clients: Clients, cluster_id: str, *, after: datetime, gone_at: datetime | None, now: datetime
) -> EarlyEnd | None:
    """The early end that was begun after an instant, if there was one. Raises CloudError.

    `gone_at`: since when neither a machine nor a reservation is there; None while there is a reservation, or if nobody
    knows.
    """
    with aws_errors("asking what ended the cluster"):
        machine = next(iter(state_machines(clients, cluster_id)), None)
        if machine is None:
            if gone_at is None:
                return None
            data = look_at_each(clients, cluster_id, DATA_KINDS)
            # A kind that AWS does not list counts as there: a sum that is too high makes a person ask.
            return EarlyEnd(reason=REAPED, since=None, at=gone_at, keeps_data=bool(data.things or data.not_listed))
        listed = clients.sfn.list_executions(stateMachineArn=machine.id, maxResults=LOOKED_AT)["executions"]
        rows = [row for row in listed if not _has_spared(clients, row)]
    return newest_early_end(rows, after=after, now=now)


@dataclass(frozen=True, kw_only=True)
class RunningEnd:
    """An execution that ends the cluster now, or is about to."""

    reason: str | None
    """The reason of the nodes that began it; None: it began at the deadline, or is a trial with DryRun. The list does
    not tell these two apart."""
    age: timedelta


def running_ends(clients: Clients, cluster_id: str) -> tuple[RunningEnd, ...]:
    """The executions of the state machine that are ending the cluster now, oldest first. Raises CloudError."""
    with aws_errors("asking whether the cluster is being ended"):
        machine = next(iter(state_machines(clients, cluster_id)), None)
        if machine is None:
            return ()
        answer = clients.sfn.list_executions(stateMachineArn=machine.id, statusFilter="RUNNING", maxResults=LOOKED_AT)
    return tuple(_running(row, now=datetime.now(UTC)) for row in reversed(answer["executions"]))


def _running(row: Mapping[str, Any], *, now: datetime) -> RunningEnd:
    named = _reason_and_since(str(row["name"]))
    reason = None if named is None else "if slot 0 has no machine" if _is_unsure(row) else named[0]
    return RunningEnd(reason=reason, age=max(timedelta(0), now - row["startDate"]))


def _has_spared(clients: Clients, row: Mapping[str, Any]) -> bool:
    """Whether an execution ended nothing, because slot 0 had a machine."""
    if not _is_unsure(row) or row["status"] != "SUCCEEDED":
        return False
    answer = clients.sfn.describe_execution(executionArn=row["executionArn"])
    return bool(json.loads(answer.get("output") or "null") == SPARED)


def _is_unsure(row: Mapping[str, Any]) -> bool:
    return str(row["name"]).partition("-")[0] == UNSURE


def newest_early_end(rows: Iterable[Mapping[str, Any]], *, after: datetime, now: datetime) -> EarlyEnd | None:
    """The last early end among executions; one that failed does not count, since it may have ended nothing."""
    found = []
    for row in rows:
        named = _reason_and_since(str(row["name"]))
        if named is not None and row["startDate"] > after and row["status"] in ("RUNNING", "SUCCEEDED"):
            found.append(EarlyEnd(reason=named[0], since=named[1], at=row.get("stopDate") or now))
    return max(found, key=lambda end: end.at, default=None)


def _reason_and_since(name: str) -> tuple[str, datetime] | None:
    """The reason of nodes that began an execution, and since when it held, by its name; None if no node began it."""
    word = name.partition("-")[0]
    if word in REASONS:
        with contextlib.suppress(ValueError):
            return REASONS[word], datetime.strptime(name, word + SINCE).replace(tzinfo=UTC)
    return None
