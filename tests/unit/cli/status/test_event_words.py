"""What AWS plans for a node, in its row and in the JSON."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING  # an inventory's facts

import pytest
from clusterctl.cloud.scheduled_events import ScheduledEvent
from clusterctl.status.facts import Facts
from clusterctl.status.judge import judge
from clusterctl.status.overview import overview
from clusterctl.status.view import status_json, status_text

from tests.unit.cli.status.status_facts import NOW, READY, machine

if TYPE_CHECKING:
    from tests.unit.cli.conftest import MakeInventory

SOON, NEXT_WEEK = NOW + timedelta(hours=1), NOW + timedelta(days=7)
REPLACE = "; next: clusterctl replace --node 0 --cluster train"


def event(code: str, at: datetime | None = SOON, *, id: str = machine().instance_id) -> ScheduledEvent:
    return ScheduledEvent(
        instance_id=id,
        event_id="instance-event-0d59937288b749b32",
        code=code,
        description="The instance is running on degraded hardware",
        not_before=at,
        not_after=None,
        start_deadline=None,
    )


@pytest.mark.parametrize(
    ("planned", "note"),
    [
        (event("instance-retirement"), f"AWS retires it at 12:12 UTC{REPLACE}"),
        (event("instance-stop"), f"AWS stops it at 12:12 UTC{REPLACE}"),
        (event("instance-reboot"), "AWS reboots it at 12:12 UTC"),
        (event("system-reboot"), "AWS reboots its host at 12:12 UTC"),
        (
            event("system-maintenance"),
            "AWS maintains its host, which may cut it off or reboot it, at 12:12 UTC",
        ),
        (event("a-new-one"), "AWS plans an event (a-new-one) at 12:12 UTC"),
        (event("instance-stop", NOW), f"AWS stops it any time now{REPLACE}"),
        (event("instance-stop", None), f"AWS stops it any time now{REPLACE}"),
        (event("instance-stop", NEXT_WEEK), "AWS stops it at 2026-11-28 11:12 UTC, after the cluster's deadline"),
        (event("instance-stop", id="i-another"), None),
    ],
)
def test_what_aws_plans_is_in_the_row_of_its_node(
    make_inventory: MakeInventory, planned: ScheduledEvent, note: str | None
) -> None:
    facts = Facts(now=NOW, instances=(machine(),), answers={0: READY}, events=(planned,))
    (node,) = judge(make_inventory(size=1), facts)
    assert (node.state, node.note) == ("ready", note)


def test_an_event_within_a_long_cluster_has_its_date(make_inventory: MakeInventory) -> None:
    later = make_inventory(size=1, deadline=(NEXT_WEEK + timedelta(days=1)).isoformat())
    facts = Facts(now=NOW, instances=(machine(),), answers={0: READY}, events=(event("instance-stop", NEXT_WEEK),))
    assert judge(later, facts)[0].note == f"AWS stops it at 2026-11-28 11:12 UTC{REPLACE}"


def test_events_are_in_the_json_and_null_where_nobody_knows(make_inventory: MakeInventory) -> None:
    known = Facts(now=NOW, instances=(machine(),), answers={0: READY}, events=(event("instance-stop"),))
    shown = json.loads(json.dumps(status_json(overview(make_inventory(size=2), known))))
    assert [node["events"] for node in shown["nodes"]] == [
        [
            {
                "id": "instance-event-0d59937288b749b32",
                "code": "instance-stop",
                "description": "The instance is running on degraded hardware",
                "not_before": "2026-11-21T12:12:00+00:00",
                "not_after": None,
                "start_deadline": None,
            }
        ],
        [],
    ]
    assert shown["events_trouble"] is None


def test_a_missing_right_is_a_remark_and_no_failure(make_inventory: MakeInventory) -> None:
    facts = Facts(now=NOW, instances=(machine(),), answers={0: READY}, events_trouble="UnauthorizedOperation: no")
    seen = overview(make_inventory(size=1), facts)
    assert "AWS did not say what it plans for the machines (UnauthorizedOperation: no)" in status_text(seen)
    shown = status_json(seen)
    assert (seen.ready, shown["events_trouble"]) == (1, "UnauthorizedOperation: no")
    assert seen.nodes[0].events is None
