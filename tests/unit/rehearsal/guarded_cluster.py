"""A cluster in the small region, with the state machine and the schedule that end it at its deadline."""

from __future__ import annotations

import json
from typing import Any  # of a schedule

from clusterctl_infra.plan.ending_machine import SCHEDULE_INPUT, ending_definition
from clusterctl_rehearsal.api.front import Api
from clusterctl_rehearsal.api.state_machine_calls import ec2_calls
from clusterctl_rehearsal.region.record import Record
from clusterctl_rehearsal.region.types.deadline import SCHEDULE, STATE_MACHINE
from clusterctl_rehearsal.region.types.identity import ROLE
from clusterctl_rehearsal.states.interpreter import Call

from tests.unit.rehearsal.small_region import CLUSTER_ID, REGION, TAGS, SmallRegion

SERVICES = ["scheduler.amazonaws.com", "states.amazonaws.com"]
TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": SERVICES}, "Action": "sts:AssumeRole"}]}
DEADLINE = 1_800_000_600
AT = "at(2027-01-15T08:10:00)"
"""The deadline as a schedule's expression."""


def guarded(world: SmallRegion, **schedule: Any) -> Record:
    """The role, the state machine and the schedule of the cluster; the machine asks the region's EC2."""
    role = world.make(ROLE, name="guard", assumeRolePolicy=json.dumps(TRUST)).outputs["arn"]
    definition = json.dumps(ending_definition(CLUSTER_ID))
    machine = world.make(STATE_MACHINE, name="guard", roleArn=role, definition=definition, tags=TAGS)
    target = {"arn": machine.id, "roleArn": role, "input": SCHEDULE_INPUT}
    given = {"scheduleExpression": AT, "flexibleTimeWindow": {"mode": "OFF"}, "target": target, **schedule}
    world.make(SCHEDULE, name="guard", **given)
    world.ec2 = region_ec2(world)
    return machine


def region_ec2(world: SmallRegion) -> Call:
    """EC2 as the region's state machines call it."""
    api = Api(region=world.region, before=lambda: None, executions=world.executions, buckets=world.buckets)
    return ec2_calls(api, REGION)
